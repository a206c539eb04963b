//! `cargo xtask pack`: charms as files that `juju deploy` takes.
//!
//! Invariants: the same sources and tools give the same bytes; no path of the building machine is
//! inside; every file written has passed [`verify::verify`].

mod archive;
mod describe;
mod elf;
mod verify;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use self::archive::Entry;
use crate::{
    delegate, process,
    workspace::{Metadata, Workspace},
};

/// The newest C library that may be asked for: that of Ubuntu 24.04.
const GLIBC: (u32, u32) = (2, 39);

/// A charm of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    /// Its name in Juju.
    name: String,
    /// The package and its binary that becomes `dispatch`.
    package: String,
    binary: String,
    version: String,
    /// Where `charmcraft.yaml` is.
    folder: PathBuf,
}

/// Builds and writes one charm, or all of them; the paths of the files, by name.
pub(crate) fn pack(workspace: &Workspace, only: Option<&str>) -> Result<Vec<PathBuf>> {
    let wanted = sources(&workspace.metadata()?, only)?;
    let built = build(workspace, &wanted)?;
    let folder = workspace.path("target/charms");
    fs::create_dir_all(&folder).context("cannot make target/charms")?;
    let mut paths = Vec::new();
    for charm in &wanted {
        let (file, bytes) = assemble(workspace, charm, &built.join(&charm.binary))
            .with_context(|| format!("cannot pack {}", charm.name))?;
        verify::verify(&bytes, GLIBC).with_context(|| format!("{file} is not fit to deploy"))?;
        let path = folder.join(file);
        // Never half a charm under the final name, even if two commands pack at once.
        let partial = path.with_extension(format!("charm.{}", std::process::id()));
        fs::write(&partial, &bytes)?;
        fs::rename(&partial, &path)?;
        eprintln!("packed {} ({} kB)", charm.name, bytes.len() / 1024);
        paths.push(path);
    }
    Ok(paths)
}

/// One charm, or all, of the members: a `charmcraft.yaml` in the package's folder or one below. The
/// binary has the charm's name, or else the package's.
fn sources(metadata: &Metadata, only: Option<&str>) -> Result<Vec<Source>> {
    let (mut charms, mut known) = (Vec::new(), Vec::new());
    for package in metadata.members() {
        for folder in charm_folders(&package.folder) {
            let name = describe::Charm::read(&folder)?.name().to_owned();
            known.push(name.clone());
            if only.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let binary = [&name, &package.name]
                .into_iter()
                .find(|name| package.has_bin(name));
            let Some(binary) = binary.cloned() else {
                bail!(
                    "{} has no binary {name} or {} to pack",
                    package.name,
                    package.name
                );
            };
            charms.push(Source {
                name,
                package: package.name.clone(),
                binary,
                version: package.version.clone(),
                folder,
            });
        }
    }
    if charms.is_empty() {
        bail!(
            "no charm {}; there are: {}",
            only.unwrap_or_default(),
            known.join(", ")
        );
    }
    charms.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(charms)
}

fn charm_folders(package: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(package)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = std::iter::once(package.to_path_buf())
        .chain(below)
        .collect();
    folders.retain(|folder| folder.join("charmcraft.yaml").is_file());
    folders.sort();
    folders
}

/// Builds the binaries; the folder where they are.
fn build(workspace: &Workspace, charms: &[Source]) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--locked"]);
    for charm in charms {
        command.args(["--package", &charm.package, "--bin", &charm.binary]);
    }
    command.env_remove("RUSTFLAGS");
    command.env(
        "CARGO_ENCODED_RUSTFLAGS",
        remapped(workspace)?.join("\u{1f}"),
    );
    delegate::must(&mut command)?;
    let metadata = workspace_target(workspace)?;
    Ok(metadata.join("release"))
}

/// Compiler flags that keep this machine's paths out of panic messages.
fn remapped(workspace: &Workspace) -> Result<Vec<String>> {
    let mut rustc = Command::new("rustc");
    rustc
        .current_dir(workspace.root())
        .args(["--print", "sysroot"]);
    let sysroot = process::stdout_of(&mut rustc)?;
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir()
            .context("no home directory")?
            .join(".cargo"),
    };
    Ok([
        (sysroot.trim().to_owned(), "/rust"),
        (home.display().to_string(), "/cargo"),
        (workspace.root().display().to_string(), "/src"),
    ]
    .map(|(from, to)| format!("--remap-path-prefix={from}={to}"))
    .into())
}

fn workspace_target(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.args(["metadata", "--format-version=1", "--no-deps", "--locked"]);
    let text = process::stdout_of(&mut command)?;
    let value: serde_json::Value = serde_json::from_str(&text)?;
    Ok(value["target_directory"]
        .as_str()
        .context("cargo names no target directory")?
        .into())
}

/// The charm's file name and bytes.
fn assemble(workspace: &Workspace, charm: &Source, binary: &Path) -> Result<(String, Vec<u8>)> {
    let description = describe::Charm::read(&charm.folder)?;
    let platform = description.platform(architecture()?)?;
    let version = version(workspace, &charm.version);
    let packer = describe::Packer {
        version: concat!(env!("CARGO_PKG_VERSION"), "+xtask").to_owned(),
        started_at: source_time(workspace),
    };
    let mut entries = description.files(&platform, &packer)?;
    entries.push(Entry::file("version", format!("{version}\n")));
    entries.push(Entry::file("LICENSE", fs::read(workspace.path("LICENSE"))?));
    let program = fs::read(binary).with_context(|| format!("no {}", binary.display()))?;
    entries.push(Entry::program("dispatch", program));
    for optional in ["icon.svg", "README.md"] {
        if let Ok(bytes) = fs::read(charm.folder.join(optional)) {
            entries.push(Entry::file(optional, bytes));
        }
    }
    Ok((
        format!("{}_{}.charm", charm.name, platform.file_part()),
        archive::write(entries)?,
    ))
}

/// This machine's architecture in Juju's words: nothing is compiled for another.
fn architecture() -> Result<&'static str> {
    Ok(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("Juju knows no name for {other} here"),
    })
}

/// The crate's version with the commit; the version alone outside of git.
fn version(workspace: &Workspace, version: &str) -> String {
    let mut git = Command::new("git");
    git.current_dir(workspace.root());
    git.args([
        "-c",
        "safe.directory=*",
        "describe",
        "--always",
        "--dirty",
        "--exclude=*",
    ]);
    match process::stdout_of(&mut git) {
        Ok(commit) => format!("{version}+{}", commit.trim()),
        Err(_) => version.to_owned(),
    }
}

/// When the packed commit was made, in UTC; the epoch outside of git.
fn source_time(workspace: &Workspace) -> String {
    let mut git = Command::new("git");
    git.current_dir(workspace.root()).env("TZ", "UTC");
    git.args(["-c", "safe.directory=*", "log", "-1", "--format=%cd"]);
    git.arg("--date=format-local:%Y-%m-%dT%H:%M:%SZ");
    match process::stdout_of(&mut git) {
        Ok(time) if !time.trim().is_empty() => time.trim().to_owned(),
        _ => "1970-01-01T00:00:00Z".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESHY: &str = "\
name: meshy
type: charm
summary: A mesh.
description: A mesh for tests.
platforms:
  ubuntu@24.04:amd64:
  ubuntu@24.04:arm64:
parts:
  charm: {plugin: nil}
config:
  options:
    hub: {type: string, description: Where images are.}
";

    #[test]
    fn a_packed_charm_is_fit_to_deploy_and_the_same_each_time() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = root.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        file("LICENSE", b"free\n");
        file("charmcraft.yaml", MESHY.as_bytes());
        let program = file("meshy", &elf::sample(1, b"\0GLIBC_2.34\0"));
        let charm = Source {
            name: "meshy".to_owned(),
            package: "meshy".to_owned(),
            binary: "meshy".to_owned(),
            version: "0.1.0".to_owned(),
            folder: root.path().to_path_buf(),
        };
        let workspace = Workspace::at(root.path());
        let (name, bytes) = assemble(&workspace, &charm, &program).unwrap();
        assert_eq!(
            name,
            format!("meshy_ubuntu-24.04-{}.charm", architecture().unwrap())
        );
        verify::verify(&bytes, GLIBC).unwrap();
        assert_eq!(
            assemble(&workspace, &charm, &program).unwrap(),
            (name, bytes)
        );
    }

    #[test]
    fn a_description_is_found_in_the_packages_folder_and_below() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["one", "two"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("charmcraft.yaml"), "").unwrap();
        }
        fs::create_dir(root.path().join("three")).unwrap();
        let names = |found: Vec<PathBuf>| -> Vec<PathBuf> {
            let below = |path: &PathBuf| path.strip_prefix(root.path()).unwrap().to_path_buf();
            found.iter().map(below).collect()
        };
        let found = names(charm_folders(root.path()));
        assert_eq!(found, [PathBuf::from("one"), PathBuf::from("two")]);
        let found = names(charm_folders(&root.path().join("one")));
        assert_eq!(found, [PathBuf::from("one")]);
    }
}
