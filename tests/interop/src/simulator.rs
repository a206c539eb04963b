//! The programs of the model simulator: `juju` and the hook tools, as this workspace builds them.

use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::venv::{command, feed};

/// The directory with `juju` and `jujuc`: that of the running test's own build, where they are
/// built first if they are not there.
pub fn programs() -> Result<PathBuf> {
    let test = env::current_exe()?;
    let profile = test
        .parent()
        .and_then(|deps| deps.parent())
        .context("no target directory")?;
    let missing = || {
        ["juju", "jujuc"]
            .iter()
            .any(|name| !profile.join(name).is_file())
    };
    if missing() {
        let build = [
            "build",
            "--quiet",
            "--locked",
            "--package",
            "juju-sim",
            "--bins",
        ];
        feed(command(env!("CARGO")).args(build), "")?;
    }
    ensure!(!missing(), "no juju and jujuc in {}", profile.display());
    Ok(profile.to_owned())
}
