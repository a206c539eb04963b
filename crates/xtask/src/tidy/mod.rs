//! `cargo xtask tidy`: the rules of the repository that the compiler does not know.
//!
//! Invariant: a rule is one line of [`RULES`] and one function from [`Facts`] to findings; it
//! reads nothing else, so it can be tested on files that never were on a disk.

mod charms;
mod docs;
mod graph;
mod licence;
mod sources;
mod words;

use std::{collections::BTreeMap, fs, process::Command, process::ExitCode};

use anyhow::Result;

use crate::{
    process,
    test::Outcome,
    workspace::{Metadata, Workspace},
};

/// The files of the repository: tracked ones, and new ones that git does not ignore.
#[derive(Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, Vec<u8>>);

impl Tree {
    fn read(workspace: &Workspace) -> Result<Self> {
        let mut command = Command::new("git");
        command.current_dir(workspace.root());
        // The checkout may belong to another user than root, who runs the node.
        command.args(["-c", "safe.directory=*"]);
        command.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
        let mut files = BTreeMap::new();
        for path in process::stdout_of(&mut command)?.lines() {
            let full = workspace.path(path);
            if full.is_file() && !full.is_symlink() {
                files.insert(path.to_owned(), fs::read(full)?);
            }
        }
        Ok(Self(files))
    }

    /// Path and bytes of every file.
    fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// Path and text of every file that is text.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)))
    }

    /// Path and text of the files with this ending.
    fn ending<'t>(&'t self, ending: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.texts().filter(move |(path, _)| path.ends_with(ending))
    }

    fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.0.get(path)?).ok()
    }

    /// Whether a file, or a folder with files, is there.
    fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        let mut after = self.0.range(path.to_owned()..);
        path.is_empty()
            || self.0.contains_key(path)
            || after.any(|(found, _)| found.starts_with(&folder))
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        Self(
            files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), text.as_bytes().into()))
                .collect(),
        )
    }
}

/// What the rules look at.
#[derive(Debug, Default)]
struct Facts {
    tree: Tree,
    metadata: Metadata,
    /// What `cargo tree -e normal --prefix none` prints, for the crates in [`graph::watched`].
    trees: BTreeMap<String, String>,
}

impl Facts {
    fn gather(workspace: &Workspace) -> Result<Self> {
        let metadata = workspace.metadata()?;
        let mut trees = BTreeMap::new();
        for name in graph::watched() {
            if metadata.members().any(|package| package.name == name) {
                let mut command = workspace.cargo();
                command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
                command.args(["--package", name]);
                trees.insert(name.to_owned(), process::stdout_of(&mut command)?);
            }
        }
        Ok(Self {
            tree: Tree::read(workspace)?,
            metadata,
            trees,
        })
    }
}

/// What a rule has to say; nothing when it holds.
type Findings = Vec<String>;

struct Rule {
    name: &'static str,
    check: fn(&Facts) -> Findings,
}

const RULES: &[Rule] = &[
    Rule {
        name: "files are short",
        check: sources::length,
    },
    Rule {
        name: "files are small",
        check: sources::size,
    },
    Rule {
        name: "modules say what they are",
        check: sources::head,
    },
    Rule {
        name: "exceptions have reasons",
        check: sources::reasons,
    },
    Rule {
        name: "no words that do not belong here",
        check: words::words,
    },
    Rule {
        name: "crates depend as designed",
        check: graph::arrows,
    },
    Rule {
        name: "one crate reads YAML",
        check: graph::yaml_users,
    },
    Rule {
        name: "one crate talks to Kubernetes",
        check: graph::client_users,
    },
    Rule {
        name: "versions are in one place",
        check: graph::workspace_dependencies,
    },
    Rule {
        name: "licences are allowed",
        check: licence::licences,
    },
    Rule {
        name: "charms are described",
        check: charms::charmcraft,
    },
    Rule {
        name: "links lead somewhere",
        check: docs::links,
    },
    Rule {
        name: "decisions are numbered",
        check: docs::decisions,
    },
    Rule {
        name: "the changelog has its form",
        check: docs::changelog,
    },
];

/// Runs the rules as a tier.
pub(crate) fn check(workspace: &Workspace) -> Result<Outcome> {
    Ok(judge(&Facts::gather(workspace)?))
}

fn judge(facts: &Facts) -> Outcome {
    let mut outcome = Outcome::default();
    for rule in RULES {
        let findings = (rule.check)(facts);
        if findings.is_empty() {
            outcome.passed += 1;
            continue;
        }
        outcome.failed.push(format!("tidy: {}", rule.name));
        for finding in findings {
            outcome.say(&format!("{}: {finding}", rule.name));
        }
    }
    outcome
}

/// Runs the rules as a command, with advice that fails nothing.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let facts = Facts::gather(workspace)?;
    for advice in sources::long(&facts.tree) {
        eprintln!("advice: {advice}");
    }
    let outcome = judge(&facts);
    print!("{}", outcome.report);
    println!("{} passed, {} failed", outcome.passed, outcome.failed.len());
    Ok(if outcome.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Whether any crate has documentation examples that run.
pub(crate) fn has_examples(workspace: &Workspace) -> Result<bool> {
    Ok(sources::examples(&Tree::read(workspace)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_there_when_a_file_is_in_it() {
        let tree = Tree::of(&[("docs/adr/0001-a.md", ""), ("docs.md", "")]);
        for path in ["docs", "docs/adr", "docs/adr/0001-a.md", "docs.md", ""] {
            assert!(tree.has(path), "{path}");
        }
        for path in ["doc", "docs/ad", "adr"] {
            assert!(!tree.has(path), "{path}");
        }
    }

    #[test]
    fn rule_names_are_distinct() {
        let names: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
    }
}
