//! A model in a temporary directory, with a clock moved by hand and charms written as shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use juju_sim::Databag;
use juju_sim::DeployRequest;
use juju_sim::Model;
use juju_sim::Options;
use juju_sim::clock::ManualClock;
use juju_sim::cloud::Cloud;
use juju_sim::cloud::NoCloud;
use juju_sim::record::HookRecord;
use serde_json::Value;
use tempfile::TempDir;

/// A model and what it stands on.
pub(crate) struct Lab {
    pub(crate) root: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) model: Model,
}

/// Options of the tests: the tools just built, nothing else special.
pub(crate) fn options() -> Options {
    Options {
        jujuc: Some(PathBuf::from(env!("CARGO_BIN_EXE_jujuc"))),
        hook_limit: Duration::from_mins(1),
        ..Options::default()
    }
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with(options(), Arc::new(NoCloud))
    }

    pub(crate) fn with(options: Options, cloud: Arc<dyn Cloud>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(1_740_000_000));
        let dir = root.path().join("model");
        let model = Model::open(&dir, cloud, Arc::clone(&clock) as _, options).unwrap();
        Self { root, clock, model }
    }

    /// Writes a charm: its metadata besides the name, and what its dispatch does, with `$hook`
    /// set to the hook's or action's name. Shell errors fail the hook.
    pub(crate) fn charm(&self, name: &str, metadata: &str, script: &str) -> PathBuf {
        let dir = self.root.path().join(name);
        write_charm(&dir, name, metadata, script);
        dir
    }

    /// Deploys a new charm under its own name and lets the agents run.
    pub(crate) fn deploy(&mut self, name: &str, metadata: &str, script: &str) {
        let charm = self.charm(name, metadata, script);
        self.model.deploy(&DeployRequest::new(charm)).unwrap();
        self.model.advance().unwrap();
    }

    /// Lets time pass and the agents run.
    pub(crate) fn wait(&mut self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
        self.model.advance().unwrap();
    }

    /// Everything `unit` ran, oldest first.
    pub(crate) fn records(&self, unit: &str) -> Vec<HookRecord> {
        let mut records = self.model.hook_log().unwrap();
        records.retain(|r| r.unit == unit);
        records
    }

    /// Names of the hooks of `unit`, with the remote unit behind relation hooks about one.
    pub(crate) fn hooks(&self, unit: &str) -> Vec<String> {
        self.records(unit)
            .into_iter()
            .map(|r| match r.remote_unit {
                Some(remote) => format!("{} {remote}", r.hook),
                None => r.hook,
            })
            .collect()
    }

    /// Workload status and message of `unit`, as `status: message`.
    pub(crate) fn status(&self, unit: &str) -> String {
        let app = unit.split('/').next().unwrap();
        let status = self.model.status();
        let shown = &status["applications"][app]["units"][unit]["workload-status"];
        format!("{}: {}", text(&shown["current"]), text(&shown["message"]))
    }

    /// A stored databag without the keys Juju writes itself.
    pub(crate) fn bag(&self, relation: u32, owner: &str) -> Databag {
        let mut bag = self.model.databag(relation, owner).unwrap_or_default();
        for key in ["egress-subnets", "ingress-address", "private-address"] {
            bag.remove(key);
        }
        bag
    }

    /// Reads a file the charm wrote into its directory.
    pub(crate) fn wrote(&self, unit: &str, file: &str) -> String {
        fs::read_to_string(self.model.charm_dir(unit).join(file)).unwrap_or_default()
    }
}

pub(crate) fn write_charm(dir: &Path, name: &str, metadata: &str, script: &str) {
    fs::create_dir_all(dir).unwrap();
    let metadata = format!("name: {name}\nsummary: s\ndescription: d\n{metadata}");
    fs::write(dir.join("metadata.yaml"), metadata).unwrap();
    let script = format!("#!/bin/sh\nset -e\nhook=${{JUJU_DISPATCH_PATH##*/}}\n{script}\n");
    fs::write(dir.join("dispatch"), script).unwrap();
    fs::set_permissions(dir.join("dispatch"), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A charm as packed: a program as its dispatch, its metadata and options beside it.
pub(crate) fn packed(root: &Path, name: &str, charmcraft: &str, program: &Path) -> PathBuf {
    let dir = root.join(name);
    fs::create_dir_all(&dir).unwrap();
    let mut metadata: Value = yaml::parse(charmcraft).unwrap();
    let config = metadata.as_object_mut().unwrap().remove("config");
    metadata["summary"] = "s".into();
    metadata["description"] = "d".into();
    fs::write(dir.join("metadata.yaml"), metadata.to_string()).unwrap();
    fs::write(
        dir.join("config.yaml"),
        config.unwrap_or_default().to_string(),
    )
    .unwrap();
    fs::copy(program, dir.join("dispatch")).unwrap();
    dir
}

pub(crate) fn bag(pairs: &[(&str, &str)]) -> Databag {
    pairs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
