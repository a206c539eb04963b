//! Hook tools that Juju 4 no longer has.
//!
//! Apart from [`HookTools`](crate::HookTools), so that a charm that needs one of them says so.
//! On an agent without the tool every method fails with
//! [`ToolError::Transport`](crate::ToolError::Transport).

use std::collections::BTreeMap;

use crate::error::Result;

/// Which of a unit's addresses `unit-get` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitAddress {
    /// Inside the model.
    Private,
    /// As seen from outside.
    Public,
}

/// A payload a unit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadId {
    /// Its type, e.g. `docker`.
    pub kind: String,
    /// Its class as the charm declares it.
    pub class: String,
}

/// The hook tools of Juju up to 3.x.
pub trait LegacyTools {
    /// What the leader left for its peers with [`Self::leader_set`]; any unit may read it.
    fn leader_get(&self) -> Result<BTreeMap<String, String>>;
    /// Sets keys for the peers, at once; an empty value deletes its key. Leader only.
    fn leader_set(&self, settings: &BTreeMap<String, String>) -> Result<()>;
    /// One of the unit's addresses.
    fn unit_get(&self, which: UnitAddress) -> Result<String>;
    /// Records metrics the charm declares; in `collect-metrics` only.
    fn add_metric(&self, metrics: &BTreeMap<String, String>) -> Result<()>;
    /// Tells Juju of a payload the unit runs.
    fn payload_register(&self, payload: &PayloadId, id: &str, tags: &[&str]) -> Result<()>;
    /// Takes that back.
    fn payload_unregister(&self, class: &str, id: &str) -> Result<()>;
    /// Tells how the payload does: `starting`, `started`, `stopping` or `stopped`.
    fn payload_status_set(&self, class: &str, id: &str, status: &str) -> Result<()>;
    /// The application's pod specification as YAML; empty if none was set.
    fn pod_spec_get(&self) -> Result<String>;
    /// Sets the pod specification (YAML), at exit. Leader only.
    fn pod_spec_set(&self, spec: &str) -> Result<()>;
    /// The application's raw Kubernetes specification as YAML; empty if none was set.
    fn k8s_raw_get(&self) -> Result<String>;
    /// Sets the raw Kubernetes specification (YAML), at exit. Leader only.
    fn k8s_raw_set(&self, spec: &str) -> Result<()>;
}
