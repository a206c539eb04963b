//! `cargo xtask fuzz`: the targets of `tests/fuzz` under libFuzzer, on the stable toolchain.
//!
//! libFuzzer needs coverage instrumentation, which stable compilers have; only sanitizers need a
//! nightly one, and crates that forbid `unsafe` have little to show them.

use std::{ffi::OsString, fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::{delegate, process, workspace::Workspace};

/// What `cargo fuzz build --sanitizer none` gives the compiler.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=yes",
];

/// The longest input: more than any hook tool prints for a charm of ordinary size.
const MAX_LENGTH: usize = 16_384;

/// Runs one target, or each in turn, for so many seconds. What is new stays for the next run; an
/// input that breaks a target is named, and kept apart from the corpus, whose every input is run
/// before anything else.
pub(crate) fn run(workspace: &Workspace, only: Option<&str>, seconds: u64) -> Result<ExitCode> {
    let all = targets(workspace)?;
    let wanted: Vec<&String> = all
        .iter()
        .filter(|name| only.is_none_or(|only| only == name.as_str()))
        .collect();
    if wanted.is_empty() {
        bail!(
            "no target {}; there are: {}",
            only.unwrap_or_default(),
            all.join(", ")
        );
    }
    let host = host(workspace)?;
    let folder = workspace.path("target/fuzz");
    let mut build = workspace.cargo();
    build
        .current_dir(workspace.path("tests/fuzz/libfuzzer"))
        .args(["build", "--release", "--locked", "--target", &host])
        .env("CARGO_TARGET_DIR", &folder)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"));
    delegate::must(&mut build)?;
    for name in wanted {
        let folders = Folders::of(workspace, name);
        folders.create()?;
        let program = folder.join(&host).join("release").join(name);
        let mut fuzz = std::process::Command::new(program);
        fuzz.args(folders.arguments())
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={MAX_LENGTH}"))
            .args(["-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
        delegate::must(&mut fuzz).with_context(|| format!("target {name} broke"))?;
        println!("fuzz {name}: {seconds} s without a crash");
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the inputs of one target are.
struct Folders {
    kept: PathBuf,
    found: PathBuf,
    crashes: PathBuf,
}

impl Folders {
    fn of(workspace: &Workspace, target: &str) -> Self {
        Self {
            kept: workspace.path("tests/fuzz/corpus").join(target),
            found: workspace.path("target/fuzz/found").join(target),
            crashes: workspace.path("target/fuzz/crashes").join(target),
        }
    }

    fn create(&self) -> Result<()> {
        fs::create_dir_all(&self.found)?;
        fs::create_dir_all(&self.crashes)?;
        Ok(())
    }

    /// The first folder is the one that libFuzzer writes what is new into.
    fn arguments(&self) -> [OsString; 3] {
        let mut prefix = OsString::from("-artifact_prefix=");
        prefix.push(self.crashes.join("crash-"));
        [self.found.clone().into(), self.kept.clone().into(), prefix]
    }
}

/// The names of the corpora, which are those of the targets.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.path("tests/fuzz/corpus");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("no {}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn host(workspace: &Workspace) -> Result<String> {
    let mut rustc = std::process::Command::new("rustc");
    rustc.current_dir(workspace.root()).arg("-vV");
    let text = process::stdout_of(&mut rustc)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_a_target_is_kept_out_of_its_corpus() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(root.path());
        let folders = Folders::of(&workspace, "yaml");
        folders.create().unwrap();
        let [found, kept, prefix] = folders.arguments();
        let prefix = prefix.into_string().unwrap();
        let (option, crashes) = prefix.split_once('=').unwrap();
        assert_eq!(option, "-artifact_prefix");
        let crashes = PathBuf::from(crashes);
        assert!(crashes.parent().unwrap().is_dir());
        assert!(!crashes.starts_with(found) && !crashes.starts_with(kept));
    }
}
