//! A Juju model that runs real charm processes.
//!
//! A model is a directory. There is no daemon: [`Model::advance`] runs every hook that is due, the
//! way a unit agent would (the charm's own `dispatch`, a cleared environment, hook tools over the
//! agent's socket), and everything else only changes or reports the model. The `juju` command is
//! [`cli::main`]; the hook tools are the program `jujuc` ([`jujuc::main`]).
//!
//! # Invariants
//! * Writes of a hook are kept only if it exits 0, as in Juju.
//! * The stored state is always one complete moment; a killed simulator resumes from it.
//! * Everything Juju leaves unordered is drawn from a seeded generator, so a run can be repeated.
//! * One process at a time works on a model; hooks of different units never overlap.

mod agent;
mod charm;
pub mod cli;
pub mod clock;
pub mod cloud;
mod flags;
mod gojson;
mod hook;
pub mod jujuc;
mod model;
mod pebble;
pub mod record;
mod report;
pub mod scenario;
mod state;
mod store;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

pub use charm::CharmError;
pub use model::DeployRequest;
pub use model::Fault;
pub use model::Model;
pub use model::ModelError;
pub use model::RefreshRequest;
pub use model::TaskResult;
pub use state::Databag;
pub use store::StoreError;

/// In which order a dying unit says goodbye; Juju's code and documentation differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TeardownOrder {
    /// Relations departed and broken, then stop, then remove (Juju's code).
    #[default]
    RelationsFirst,
    /// stop, then the relations, then remove (Juju's documentation).
    StopFirst,
}

/// Whether an agent of version `juju_version` is of that major version or later.
pub(crate) fn at_least(juju_version: &str, major: u32) -> bool {
    let found = juju_version.split('.').next();
    found
        .and_then(|found| found.parse().ok())
        .is_some_and(|found: u32| found >= major)
}

/// How a model behaves where real ones differ.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name given to a model that does not exist yet.
    pub model_name: String,
    /// Seed of every random choice, used when the model is made.
    pub seed: u64,
    /// Value of `JUJU_VERSION`. From 4 on, actions refuse undeclared parameters by default.
    pub juju_version: String,
    /// The `jujuc` program; none looks beside the running program and one directory up.
    pub jujuc: Option<PathBuf>,
    /// `PATH` of the agent, behind the tools directory.
    pub agent_path: String,
    /// Time after which a hook's process is killed and the hook counts as failed.
    pub hook_limit: Duration,
    /// Teardown order.
    pub teardown: TeardownOrder,
    /// Whether a refresh replaces the pod (stop, upgrade-charm, config-changed, start), as on
    /// Kubernetes; otherwise it is upgrade-charm and config-changed only.
    pub refresh_restarts: bool,
    /// Greatest number of hooks one [`Model::advance`] runs, a guard against charms that keep
    /// answering each other.
    pub max_hooks: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model_name: "lab".into(),
            seed: 1,
            juju_version: "3.6.9".into(),
            jujuc: None,
            agent_path: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
            hook_limit: Duration::from_mins(5),
            teardown: TeardownOrder::default(),
            refresh_restarts: true,
            max_hooks: 1000,
        }
    }
}
