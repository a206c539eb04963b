//! Where the repository is and what cargo knows about it.
//!
//! Invariant: paths handed out are absolute; nothing depends on the caller's directory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process;

/// The checkout this binary was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the checkout from the place of this crate's manifest.
    pub(crate) fn locate() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .context("xtask is not two folders below the workspace")?;
        Ok(Self {
            root: root.to_path_buf(),
        })
    }

    /// Another folder with a workspace in it.
    #[cfg(test)]
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path below the root.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// `cargo`, run in the root without what the cargo that started us left in the environment:
    /// build scripts that watch those variables would run again each time.
    pub(crate) fn cargo(&self) -> Command {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        for (name, _) in std::env::vars_os() {
            let Some(text) = name.to_str() else { continue };
            let inherited = [
                "CARGO_PKG_",
                "CARGO_MANIFEST_",
                "CARGO_BIN_",
                "CARGO_CRATE_",
            ];
            if inherited.iter().any(|prefix| text.starts_with(prefix)) || text == "OUT_DIR" {
                command.env_remove(&name);
            }
        }
        command
    }

    /// `cargo metadata` of the whole graph, locked.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let mut command = self.cargo();
        command.args(["metadata", "--format-version=1", "--locked"]);
        let text = process::stdout_of(&mut command)?;
        let value: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Ok(Metadata::from_json(&value))
    }
}

/// The part of `cargo metadata` that the commands use.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// Every package of the graph.
    pub(crate) packages: Vec<Package>,
}

/// One package of the graph.
#[derive(Debug, Default, Clone)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression, absent where a crate names a licence file only.
    pub(crate) licence: Option<String>,
    /// The folder of its Cargo.toml.
    pub(crate) folder: PathBuf,
    /// A member of this workspace.
    pub(crate) member: bool,
    /// Names of the packages it depends on directly, with the kind: `normal`, `dev`, `build`.
    pub(crate) dependencies: Vec<(String, String)>,
    /// Target name to its kinds (`lib`, `bin`, `test`, …).
    pub(crate) targets: BTreeMap<String, Vec<String>>,
}

impl Metadata {
    fn from_json(value: &Value) -> Self {
        let members: Vec<&str> = array(&value["workspace_members"])
            .filter_map(Value::as_str)
            .collect();
        let packages = array(&value["packages"])
            .map(|package| {
                let id = text(&package["id"]);
                let manifest = PathBuf::from(text(&package["manifest_path"]));
                Package {
                    member: members.contains(&id.as_str()),
                    id,
                    name: text(&package["name"]),
                    version: text(&package["version"]),
                    licence: package["license"].as_str().map(str::to_owned),
                    folder: manifest.parent().map(Path::to_path_buf).unwrap_or_default(),
                    dependencies: array(&package["dependencies"])
                        .map(|dependency| {
                            let kind = dependency["kind"].as_str().unwrap_or("normal");
                            (text(&dependency["name"]), kind.to_owned())
                        })
                        .collect(),
                    targets: array(&package["targets"])
                        .map(|target| {
                            let kinds = array(&target["kind"]).map(text).collect();
                            (text(&target["name"]), kinds)
                        })
                        .collect(),
                }
            })
            .collect();
        Self { packages }
    }

    /// The packages of this workspace, by name.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }
}

impl Package {
    /// Whether it has a binary of that name.
    pub(crate) fn has_bin(&self, name: &str) -> bool {
        self.targets
            .get(name)
            .is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    }
}

/// The elements of a JSON array; none for anything else.
pub(crate) fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A JSON string; empty for anything else.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
