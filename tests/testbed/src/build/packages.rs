//! Programs of the host that come from Debian packages.

use std::path::Path;

use anyhow::{Context, Result};

use super::lock;
use crate::run;

/// A program of the host and the Debian package it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Name on the path, or an absolute file.
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

impl Tool {
    fn exists(&self) -> bool {
        if self.program.starts_with('/') {
            Path::new(self.program).exists()
        } else {
            run::on_path(self.program)
        }
    }
}

/// Installs what is missing, or says what to install.
pub(crate) fn require(tools: &[Tool]) -> Result<()> {
    let missing = |tools: &[Tool]| {
        let mut packages: Vec<_> = tools
            .iter()
            .filter(|tool| !tool.exists())
            .map(|tool| tool.package)
            .collect();
        packages.sort_unstable();
        packages.dedup();
        packages
    };
    if missing(tools).is_empty() {
        return Ok(());
    }
    let _lock = lock("apt.lock")?;
    let packages = missing(tools);
    if packages.is_empty() {
        return Ok(());
    }
    let install = || {
        let mut apt = run::command("apt-get");
        apt.args(["install", "-y", "--no-install-recommends"])
            .args(&packages)
            .env("DEBIAN_FRONTEND", "noninteractive");
        run::output(&mut apt)
    };
    // A machine's package lists may be too old, or missing, for the first try.
    if install().is_err() {
        run::output(run::command("apt-get").arg("update"))
            .and_then(|_| install())
            .with_context(|| format!("missing Debian packages: {}", packages.join(" ")))?;
    }
    Ok(())
}
