//! The environment of one dispatch, read once and typed.
//!
//! Invariants: an empty variable counts as unset; unknown variables are ignored; a missing variable
//! is an error only where nothing sensible can be done without it.

mod parse;
mod render;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::event::Event;
use crate::ids::{AppName, IdError, ModelName, ModelUuid, UnitName};
use crate::version::JujuVersion;

/// Why the environment is not one Juju makes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A variable that must be there is not.
    #[error("{0} is not set; this program is started by a juju agent only")]
    Missing(&'static str),
    /// A variable holds something else than it should.
    #[error("{variable} holds {value:?}")]
    Invalid {
        /// The variable.
        variable: &'static str,
        /// What it held.
        value: String,
    },
    /// A variable holds no valid name or number.
    #[error("cannot read {variable}")]
    Name {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        #[source]
        source: IdError,
    },
}

/// Proxy settings; each may be unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// For `ftp://`.
    pub ftp: Option<String>,
    /// Hosts reached directly, comma separated.
    pub no: Option<String>,
}

/// The trace this dispatch belongs to (Juju 4.x, when tracing is on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent {
    /// Trace id, hex.
    pub trace_id: String,
    /// Span id, hex.
    pub span_id: String,
    /// Flags.
    pub flags: Option<String>,
}

/// Where a pod has the sockets of its containers.
const CONTAINERS: &str = "/charm/containers";

/// The one variable that no agent of Juju's sets: where the simulator has them.
const SIM_CONTAINERS: &str = "JUJU_SIM_CONTAINERS";

/// Everything Juju tells a charm process through its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// What happened.
    pub event: Event,
    /// This unit.
    pub unit: UnitName,
    /// This unit's application.
    pub app: AppName,
    /// The model's name; on Kubernetes its namespace too.
    pub model_name: ModelName,
    /// The model's UUID.
    pub model_uuid: ModelUuid,
    /// Where the charm is unpacked; absolute.
    pub charm_dir: PathBuf,
    /// The agent's version; missing in restricted hooks of some agents.
    pub juju_version: Option<JujuVersion>,
    /// Controller addresses, `host:port`.
    pub api_addresses: Vec<String>,
    /// The Kubernetes API's host and port as seen from the pod.
    pub kubernetes: Option<(String, u16)>,
    /// The Kubernetes version as the agent knows it.
    pub cloud_api_version: Option<String>,
    /// The hook tools' key to the agent; changes with each dispatch.
    pub context_id: Option<String>,
    /// Where hook tools reach the agent.
    pub agent_socket: Option<String>,
    /// That socket's network, `unix`.
    pub agent_network: Option<String>,
    /// Machines only.
    pub machine_id: Option<String>,
    /// The unit's availability zone, if known.
    pub availability_zone: Option<String>,
    /// Subordinates only: the unit this one lives with.
    pub principal_unit: Option<UnitName>,
    /// The model's proxy settings for charms.
    pub proxies: Proxies,
    /// The trace to continue.
    pub trace: Option<TraceParent>,
    /// `pre-series-upgrade` only: the base to come, `ubuntu@24.04` (a series name on old agents).
    pub target_base: Option<String>,
    /// Where workload containers have their Pebble's sockets: `/charm/containers`, elsewhere in the
    /// simulator.
    pub containers_dir: PathBuf,
    /// `JUJU_DEBUG` was set: someone is debugging this hook.
    pub debug: bool,
}

impl Context {
    /// Reads the environment of this process. The one place that does.
    pub fn from_env() -> Result<Self, ContextError> {
        let vars = std::env::vars_os();
        Self::from_vars(vars.filter_map(|(key, value)| {
            Some((
                key.into_string().ok()?,
                value.to_string_lossy().into_owned(),
            ))
        }))
    }

    /// A context with nothing known but this; what tests start from.
    pub fn new(event: Event, unit: UnitName, model_name: ModelName, model_uuid: ModelUuid) -> Self {
        Self {
            event,
            app: unit.app().clone(),
            unit,
            model_name,
            model_uuid,
            charm_dir: PathBuf::from("/"),
            juju_version: None,
            api_addresses: Vec::new(),
            kubernetes: None,
            cloud_api_version: None,
            context_id: None,
            agent_socket: None,
            agent_network: None,
            machine_id: None,
            availability_zone: None,
            principal_unit: None,
            proxies: Proxies::default(),
            trace: None,
            target_base: None,
            containers_dir: PathBuf::from(CONTAINERS),
            debug: false,
        }
    }
}
