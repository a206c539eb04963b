//! Programs of the test cluster, built from pinned sources and only when a pin changes.
//!
//! A program lies under `target/testbed/bin/<key>/`, where the key covers the Go version, the module
//! file and its checksums, our own sources and every flag. Two processes may ask at once: the second
//! waits for the first and then finds everything built.

mod artifact;
mod envoy;
pub(crate) mod go;
mod packages;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

pub use artifact::Artifact;
pub(crate) use packages::{Tool, require};

use crate::paths;

/// One program about to be built.
#[derive(Debug)]
pub struct Progress<'a> {
    /// What is built now.
    pub artifact: &'a Artifact,
    /// Its place in the list, from 1.
    pub number: usize,
    /// How many are built in all.
    pub total: usize,
    /// Estimate for this and all that follow, from a cold cache on two cores.
    pub left: Duration,
}

/// Programs that exist.
#[derive(Debug, Clone)]
pub struct Built(BTreeMap<Artifact, PathBuf>);

impl Built {
    /// Path of one of the programs that were asked for.
    pub fn path(&self, artifact: Artifact) -> Result<&Path> {
        self.0
            .get(&artifact)
            .map(PathBuf::as_path)
            .with_context(|| format!("{artifact} was not asked for"))
    }
}

/// Builds what is missing of `artifacts`, quickest first where the order is free, and tells before
/// each one.
pub fn need(artifacts: &[Artifact], progress: &mut dyn FnMut(&Progress<'_>)) -> Result<Built> {
    let mut wanted = Vec::from(artifacts);
    wanted.sort_unstable();
    wanted.dedup();
    let go = go::Go::locate()?;
    let mut built = BTreeMap::new();
    for artifact in &wanted {
        built.insert(*artifact, target(&go, *artifact)?);
    }
    if built.values().all(|path| path.exists()) {
        return Ok(Built(built));
    }
    let _lock = lock("build.lock")?;
    let missing: Vec<_> = wanted
        .iter()
        .filter(|artifact| !built[*artifact].exists())
        .collect();
    let mut left: u64 = missing.iter().map(|artifact| artifact.seconds()).sum();
    for (index, artifact) in missing.iter().enumerate() {
        progress(&Progress {
            artifact,
            number: index + 1,
            total: missing.len(),
            left: Duration::from_secs(left),
        });
        let path = &built[*artifact];
        match artifact.recipe() {
            Some(recipe) => go.build(&recipe, path)?,
            None => envoy::install(path)?,
        }
        left -= artifact.seconds();
    }
    for (artifact, path) in &built {
        link(*artifact, path)?;
    }
    Ok(Built(built))
}

/// Path of one program, built first if it is missing.
pub fn program(artifact: Artifact) -> Result<PathBuf> {
    let built = need(&[artifact], &mut |_: &Progress<'_>| {})?;
    Ok(built.path(artifact)?.to_owned())
}

fn target(go: &go::Go, artifact: Artifact) -> Result<PathBuf> {
    let key = match artifact.recipe() {
        Some(recipe) => go.key(&recipe)?,
        None => envoy::key(),
    };
    Ok(paths::root().join("bin").join(key).join(artifact.program()))
}

/// `bin/<name>` always leads to the program built last, for people and scripts.
fn link(artifact: Artifact, path: &Path) -> Result<()> {
    let name = paths::root().join("bin").join(artifact.to_string());
    if fs::read_link(&name).is_ok_and(|current| current == path) {
        return Ok(());
    }
    let part = name.with_extension("part");
    let _ = fs::remove_file(&part);
    std::os::unix::fs::symlink(path, &part)?;
    fs::rename(&part, &name).with_context(|| format!("cannot link {}", name.display()))
}

/// Waits for a lock in the testbed's directory; it is held until the file is dropped.
pub(crate) fn lock(name: &str) -> Result<File> {
    fs::create_dir_all(paths::root())?;
    let path = paths::root().join(name);
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            artifact,
            number,
            total,
            left,
        } = self;
        let minutes = left.as_secs().div_ceil(60);
        write!(
            f,
            "building {artifact} ({number} of {total}), about {minutes} min left"
        )
    }
}
