//! Reads the release payload and renders it, or takes the last rendering from a file beside the charm.
//!
//! Rendering is a pure function of the payload and the settings, and by far the most expensive thing
//! a hook does: the CRDs alone are a megabyte of YAML. So its result is kept under a key made of
//! everything that goes into it. A file that is absent, damaged or of another key costs a rendering
//! and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mesh::control_plane::{ControlPlane, Settings, control_plane};
use mesh::payload::{Payload, PayloadError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::observe::{Release, ReleaseTrouble};
use juju_charm::chain;

/// Name of the file in the charm's directory.
const CACHE: &str = ".rendered.json";

/// The kept rendering.
#[derive(Deserialize, Serialize)]
struct Cached {
    key: String,
    sha256: String,
    version: String,
    control_plane: ControlPlane,
}

/// A payload whose version is known.
#[derive(Debug)]
pub struct Opened {
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// Version of the release.
    pub version: String,
    file: PathBuf,
    content: Content,
}

/// What there is of a payload: the last rendering, or the charts.
#[derive(Debug)]
enum Content {
    Kept(Box<CachedKey>),
    Charts(Box<Payload>),
}

/// A kept rendering and the key that it is kept under.
#[derive(Debug)]
struct CachedKey {
    key: String,
    control_plane: ControlPlane,
    bytes: Vec<u8>,
}

/// The bytes of the payload at `path` and their SHA-256, if that is among the `pinned`; none pinned
/// accept any. Every payload comes through here.
///
/// # Errors
/// No payload, one that cannot be read, or another than those pinned.
pub fn read(path: &Path, pinned: &BTreeSet<String>) -> Result<(Vec<u8>, String), ReleaseTrouble> {
    let bytes = fs::read(path).map_err(|why| ReleaseTrouble::Damaged(why.to_string()))?;
    if bytes.is_empty() {
        return Err(ReleaseTrouble::Missing);
    }
    let sha256 = hex(&Sha256::digest(&bytes));
    if !pinned.is_empty() && !pinned.contains(&sha256) {
        return Err(ReleaseTrouble::Pinned(sha256));
    }
    Ok((bytes, sha256))
}

/// Reads the payload at `path`. One that is not among the `pinned` is not even unpacked.
///
/// # Errors
/// No payload, or a damaged one.
pub fn open(
    path: &Path,
    pinned: &BTreeSet<String>,
    cache: &Path,
) -> Result<Opened, ReleaseTrouble> {
    let (bytes, sha256) = read(path, pinned)?;
    let file = cache.join(CACHE);
    if let Some(kept) = cached(&file).filter(|kept| kept.sha256 == sha256) {
        let Cached {
            key,
            sha256,
            version,
            control_plane,
        } = kept;
        let kept = CachedKey {
            key,
            control_plane,
            bytes,
        };
        return Ok(Opened {
            sha256,
            version,
            file,
            content: Content::Kept(Box::new(kept)),
        });
    }
    let payload = unpacked(&bytes)?;
    Ok(Opened {
        sha256,
        version: payload.version().to_owned(),
        file,
        content: Content::Charts(Box::new(payload)),
    })
}

impl Opened {
    /// What it renders to.
    ///
    /// # Errors
    /// A payload that does not go together with the settings.
    pub fn render(self, settings: Settings) -> Result<Release, ReleaseTrouble> {
        let Self {
            sha256,
            version,
            file,
            content,
        } = self;
        let key = key(&sha256, &settings);
        let payload = match content {
            Content::Kept(kept) if kept.key == key => {
                return Ok(Release {
                    sha256,
                    version,
                    settings,
                    control_plane: kept.control_plane,
                });
            }
            Content::Kept(kept) => unpacked(&kept.bytes)?,
            Content::Charts(payload) => *payload,
        };
        let control_plane = control_plane(&payload, &settings)
            .map_err(|why| ReleaseTrouble::Unrenderable(chain(&why)))?;
        let fresh = Cached {
            key,
            sha256,
            version,
            control_plane,
        };
        keep(&file, &fresh);
        let Cached {
            key: _,
            sha256,
            version,
            control_plane,
        } = fresh;
        Ok(Release {
            sha256,
            version,
            settings,
            control_plane,
        })
    }
}

fn unpacked(bytes: &[u8]) -> Result<Payload, ReleaseTrouble> {
    Payload::from_tar_gz(bytes).map_err(|why| match why {
        PayloadError::Empty => ReleaseTrouble::Missing,
        why => damaged(&why),
    })
}

/// What is wrong with the payload, short enough for a status with the command that mends it; the
/// log has the whole account.
fn damaged(why: &PayloadError) -> ReleaseTrouble {
    tracing::warn!("a release payload is damaged: {}", chain(why));
    let short = match why {
        PayloadError::Archive(source) => innermost(source),
        other => other.to_string(),
    };
    ReleaseTrouble::Damaged(short)
}

fn innermost(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), innermost)
}

/// Everything that a rendering depends on: payload, settings and this build of the renderer.
fn key(sha256: &str, settings: &Settings) -> String {
    let settings = serde_json::to_string(settings).unwrap_or_default();
    let mut digest = Sha256::new();
    for part in [env!("CARGO_PKG_VERSION"), &this_build(), sha256, &settings] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    hex(&digest.finalize())
}

/// Tells this build of the charm from another of the same version: a refresh may bring another
/// renderer into the same directory.
fn this_build() -> String {
    let file = std::env::current_exe().and_then(fs::metadata);
    let Ok(file) = file else { return String::new() };
    format!("{} {:?}", file.len(), file.modified().ok())
}

fn cached(file: &Path) -> Option<Cached> {
    let bytes = fs::read(file).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Writes beside and renames, so that a reader never sees half a file. A directory that cannot be
/// written costs the next hook a rendering.
fn keep(file: &Path, cached: &Cached) {
    let written = serde_json::to_vec(cached)
        .map_err(std::io::Error::other)
        .and_then(|bytes| {
            let beside = file.with_extension("tmp");
            fs::write(&beside, bytes)?;
            fs::rename(beside, file)
        });
    if let Err(why) = written {
        tracing::debug!(file = %file.display(), %why, "rendering not kept");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
