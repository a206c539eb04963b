//! Building the test binaries once, and asking each for its tests.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Selection, tier::Tier};
use crate::{
    process::{self, Stderr},
    workspace::{Metadata, Workspace, array, text},
};

/// One test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binary {
    pub(crate) package: String,
    pub(crate) target: String,
    /// From `tests/`, not from the sources.
    pub(crate) integration: bool,
    pub(crate) path: PathBuf,
    /// The folder of its package: where cargo would run it.
    pub(crate) folder: PathBuf,
    /// The package's own binaries, by name: what cargo gives integration tests.
    pub(crate) programs: BTreeMap<String, PathBuf>,
}

impl Binary {
    /// `package` for its unit tests, `package/file` for an integration test.
    pub(crate) fn name(&self) -> String {
        if self.integration {
            format!("{}/{}", self.package, self.target)
        } else if self.package == self.target.replace('_', "-") {
            self.package.clone()
        } else {
            format!("{}:{}", self.package, self.target)
        }
    }

    /// The command that runs it as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        // Snapshots are accepted with `cargo test`, never by the gate.
        command
            .env("INSTA_UPDATE", "no")
            .env("CARGO_PKG_NAME", &self.package);
        for (name, path) in &self.programs {
            command.env(format!("CARGO_BIN_EXE_{name}"), path);
        }
        command
    }
}

/// Builds every test binary that the selection can need. `None`: the build failed, and cargo has
/// said why.
pub(crate) fn build(workspace: &Workspace, selection: &Selection) -> Result<Option<Vec<Binary>>> {
    let metadata = workspace.metadata()?;
    let mut command = workspace.cargo();
    command.args([
        "test",
        "--no-run",
        "--locked",
        "--message-format=json-render-diagnostics",
    ]);
    for package in &selection.packages {
        command.args(["--package", package]);
    }
    if selection.packages.is_empty() {
        command
            .arg("--workspace")
            .args(targets(selection.tier, &test_files(&metadata, selection)));
    } else {
        // A single package may have no library, which cargo would take for a mistake.
        command.arg("--tests");
    }

    let mut artifacts = Artifacts::default();
    let finished = process::run(&mut command, Stderr::Shown, &mut |line| {
        artifacts.read(line);
    })?;
    Ok(finished
        .status
        .success()
        .then(|| artifacts.binaries(&metadata)))
}

/// The integration test files of the selected packages: package and target.
fn test_files(metadata: &Metadata, selection: &Selection) -> BTreeSet<(String, String)> {
    metadata
        .members()
        .filter(|package| selection.takes(&package.name))
        .flat_map(|package| {
            let files = package
                .targets
                .iter()
                .filter(|(_, kinds)| kinds.iter().any(|k| k == "test"));
            files.map(|(target, _)| (package.name.clone(), target.clone()))
        })
        .collect()
}

/// Cargo's target options for a tier: only what it needs is built. All tiers: everything.
fn targets(tier: Option<Tier>, files: &BTreeSet<(String, String)>) -> Vec<String> {
    let Some(tier) = tier else {
        return ["--lib", "--bins", "--tests"].map(str::to_owned).into();
    };
    let mut options = Vec::new();
    if matches!(
        tier,
        Tier::Unit | Tier::Property | Tier::E2e | Tier::Interop
    ) {
        options.extend(["--lib", "--bins"].map(str::to_owned));
    }
    let wanted: BTreeSet<&String> = files
        .iter()
        .filter(|(package, target)| {
            let of = Tier::of(package, target, true, "");
            // A file of the unit tier may hold a module of properties.
            of == tier || (tier == Tier::Property && of == Tier::Unit)
        })
        .map(|(_, target)| target)
        .collect();
    for target in wanted {
        options.extend(["--test".to_owned(), target.clone()]);
    }
    if options.is_empty() {
        options.push("--lib".to_owned());
    }
    options
}

/// What cargo reported as built.
#[derive(Debug, Default)]
struct Artifacts {
    tests: Vec<(String, String, bool, PathBuf)>,
    programs: BTreeMap<String, BTreeMap<String, PathBuf>>,
}

impl Artifacts {
    fn read(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return;
        };
        let Some(executable) = message["executable"].as_str().map(PathBuf::from) else {
            return;
        };
        let package = text(&message["package_id"]);
        let target = text(&message["target"]["name"]);
        let is = |kind: &str| array(&message["target"]["kind"]).any(|found| found == kind);
        if message["profile"]["test"] == true {
            self.tests.push((package, target, is("test"), executable));
        } else if is("bin") {
            self.programs
                .entry(package)
                .or_default()
                .insert(target, executable);
        }
    }

    fn binaries(self, metadata: &Metadata) -> Vec<Binary> {
        let mut binaries: Vec<Binary> = self
            .tests
            .into_iter()
            .filter_map(|(id, target, integration, path)| {
                let package = metadata.members().find(|package| package.id == id)?;
                Some(Binary {
                    package: package.name.clone(),
                    target,
                    integration,
                    path,
                    folder: package.folder.clone(),
                    programs: self.programs.get(&id).cloned().unwrap_or_default(),
                })
            })
            .collect();
        binaries.sort_by_key(|binary| (binary.integration, binary.name()));
        binaries
    }
}

/// The names of a binary's tests, in its order.
pub(crate) fn list(binary: &Binary) -> Result<Vec<String>> {
    let mut command = binary.command();
    command.args(["--list", "--format", "terse"]);
    let text = process::stdout_of(&mut command)
        .with_context(|| format!("{} does not list its tests", binary.name()))?;
    Ok(names(&text))
}

fn names(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;

    #[test]
    fn only_tests_are_taken_from_a_list() {
        assert_eq!(names("a::b: test\nc: bench\nd: test\n"), ["a::b", "d"]);
    }

    #[test]
    fn a_tier_builds_only_its_files() {
        let files: BTreeSet<(String, String)> = [
            ("kube-apply", "apiserver_prune"),
            ("istio-k8s", "scenario_deploy"),
            ("mesh", "golden"),
            ("mesh", "property_plan"),
            ("e2e", "wire"),
        ]
        .map(|(package, target)| (package.to_owned(), target.to_owned()))
        .into();
        let check = |tier, expect: &[&str]| assert_eq!(targets(tier, &files), expect);
        check(None, &["--lib", "--bins", "--tests"]);
        check(Some(Tier::Unit), &["--lib", "--bins", "--test", "golden"]);
        check(
            Some(Tier::Property),
            &[
                "--lib",
                "--bins",
                "--test",
                "golden",
                "--test",
                "property_plan",
            ],
        );
        check(Some(Tier::Scenario), &["--test", "scenario_deploy"]);
        check(Some(Tier::E2e), &["--lib", "--bins", "--test", "wire"]);
        check(Some(Tier::Interop), &["--lib", "--bins"]);
    }

    #[test]
    fn test_binaries_are_found_among_cargos_messages() {
        let mut artifacts = Artifacts::default();
        for line in [
            r#"{"reason":"compiler-artifact","package_id":"p#1","target":{"name":"tool","kind":["bin"]},"profile":{"test":false},"executable":"/t/tool"}"#,
            r#"{"reason":"compiler-artifact","package_id":"p#1","target":{"name":"flow","kind":["test"]},"profile":{"test":true},"executable":"/t/flow-1"}"#,
            r#"{"reason":"compiler-artifact","package_id":"q#1","target":{"name":"q","kind":["lib"]},"profile":{"test":false},"executable":null}"#,
            "   Compiling nothing",
        ] {
            artifacts.read(line);
        }
        let package = Package {
            id: "p#1".to_owned(),
            name: "p".to_owned(),
            folder: "/src/p".into(),
            member: true,
            ..Package::default()
        };
        let binaries = artifacts.binaries(&Metadata {
            packages: vec![package],
        });
        assert_eq!(binaries.len(), 1);
        assert_eq!(binaries[0].name(), "p/flow");
        assert_eq!(binaries[0].programs["tool"], PathBuf::from("/t/tool"));
    }
}
