//! What a unit agent can be about to run, with the names Juju gives it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

/// A hook and what it is about. Relation hooks carry names, not data: a retried hook sees the data
/// of the moment it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hook {
    /// First hook of a unit.
    Install,
    /// After the first config-changed, and after each new pod.
    Start,
    /// Before the unit or its pod goes.
    Stop,
    /// Last hook of a unit.
    Remove,
    /// Config, trust or address differ from what the charm last saw.
    ConfigChanged,
    /// The charm directory is new.
    UpgradeCharm,
    /// Periodic.
    UpdateStatus,
    /// The unit became leader.
    LeaderElected,
    /// A relation hook.
    Relation(RelationHook),
    /// A secret the unit reads has a new revision.
    SecretChanged {
        /// Bare secret id.
        id: String,
        /// Consumer's label.
        label: String,
    },
    /// A hook with all it is about.
    Told(Told),
    /// An action or exec, by task id.
    Task(u64),
}

/// A hook that does not follow from the model's state: it is told once, with its variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Full name.
    pub(crate) name: String,
    /// Its own variables.
    pub(crate) vars: BTreeMap<String, String>,
    /// Only the leader is told.
    pub(crate) leader_only: bool,
}

/// Kinds of relation hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RelationKind {
    /// The relation exists.
    Created,
    /// A remote unit came.
    Joined,
    /// Data of a remote unit, or of the remote application, differ.
    Changed,
    /// A remote unit went.
    Departed,
    /// The relation is over for this unit.
    Broken,
}

/// A relation hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelationHook {
    /// Kind.
    pub(crate) kind: RelationKind,
    /// Relation id.
    pub(crate) id: u32,
    /// The local endpoint.
    pub(crate) endpoint: String,
    /// Remote application.
    pub(crate) remote_app: String,
    /// Remote unit; none for created, broken and an application-level changed.
    pub(crate) remote_unit: Option<String>,
    /// For departed: the unit that leaves.
    pub(crate) departing: Option<String>,
}

impl Hook {
    /// Full name as in `JUJU_HOOK_NAME`; empty for tasks.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Install => "install".into(),
            Self::Start => "start".into(),
            Self::Stop => "stop".into(),
            Self::Remove => "remove".into(),
            Self::ConfigChanged => "config-changed".into(),
            Self::UpgradeCharm => "upgrade-charm".into(),
            Self::UpdateStatus => "update-status".into(),
            Self::LeaderElected => "leader-elected".into(),
            Self::Relation(r) => format!("{}-relation-{}", r.endpoint, r.kind.name()),
            Self::SecretChanged { .. } => "secret-changed".into(),
            Self::Told(told) => told.name.clone(),
            Self::Task(_) => String::new(),
        }
    }

    /// The relation a relation hook is about.
    pub(crate) fn relation(&self) -> Option<&RelationHook> {
        match self {
            Self::Relation(r) => Some(r),
            _ => None,
        }
    }
}

impl RelationKind {
    /// Last word of the hook name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Joined => "joined",
            Self::Changed => "changed",
            Self::Departed => "departed",
            Self::Broken => "broken",
        }
    }
}
