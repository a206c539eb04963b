//! Reads the release payload and renders it, or takes the last rendering from a file beside the charm.
//!
//! Rendering is a pure function of the payload and the settings, and by far the most expensive thing
//! a hook does: the CRDs alone are a megabyte of YAML. So its result is kept under a key made of
//! everything that goes into it. A file that is absent, damaged or of another key costs a rendering
//! and nothing else.

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
    version: String,
    control_plane: ControlPlane,
}

/// The control plane that the payload at `path` renders to. A payload that is not the `pinned` one is
/// not even unpacked.
///
/// # Errors
/// No payload, a damaged one, or one that does not go together with the settings.
pub fn read(
    path: Result<&PathBuf, &String>,
    pinned: Option<&str>,
    settings: &Settings,
    cache: &Path,
) -> Result<Release, ReleaseTrouble> {
    let path = path.map_err(|_| ReleaseTrouble::Missing)?;
    let bytes = fs::read(path).map_err(|why| ReleaseTrouble::Damaged(why.to_string()))?;
    let sha256 = hex(&Sha256::digest(&bytes));
    if bytes.is_empty() {
        return Err(ReleaseTrouble::Missing);
    }
    if pinned.is_some_and(|pinned| pinned != sha256) {
        return Err(ReleaseTrouble::Pinned(sha256));
    }
    let key = key(&sha256, settings);
    let file = cache.join(CACHE);
    if let Some(Cached {
        version,
        control_plane,
        ..
    }) = cached(&file, &key)
    {
        return Ok(Release {
            sha256,
            version,
            control_plane,
        });
    }
    let payload = Payload::from_tar_gz(&bytes).map_err(|why| match why {
        PayloadError::Empty => ReleaseTrouble::Missing,
        why => damaged(&why),
    })?;
    let version = payload.version().to_owned();
    let control_plane = control_plane(&payload, settings)
        .map_err(|why| ReleaseTrouble::Unrenderable(chain(&why)))?;
    let fresh = Cached {
        key,
        version,
        control_plane,
    };
    keep(&file, &fresh);
    let Cached {
        version,
        control_plane,
        ..
    } = fresh;
    Ok(Release {
        sha256,
        version,
        control_plane,
    })
}

/// What is wrong with the payload, short enough for a status with the command that mends it; the
/// log has the whole account.
fn damaged(why: &PayloadError) -> ReleaseTrouble {
    tracing::warn!("resource istio-release: {}", chain(why));
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

fn cached(file: &Path, key: &str) -> Option<Cached> {
    let bytes = fs::read(file).ok()?;
    let cached: Cached = serde_json::from_slice(&bytes).ok()?;
    (cached.key == key).then_some(cached)
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
