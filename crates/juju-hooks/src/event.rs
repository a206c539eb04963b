//! What happened, as typed values: one variant per hook kind, and the action.

use std::fmt;

use crate::ids::{AppName, EndpointName, RelationId, RelationKey, SecretId, UnitName};
use crate::storage::StorageForm;

/// The event one dispatch is about. A hook this crate does not know becomes [`Event::Unknown`],
/// so that a charm survives hooks of later Juju versions and of its own later revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// First hook of a unit.
    Install,
    /// After the first `config-changed`, and again after each pod churn.
    Start,
    /// Before the unit's pod goes away.
    Stop,
    /// Last hook of a unit.
    Remove,
    /// Config, trust or addresses changed; also after upgrades and pod churn.
    ConfigChanged,
    /// The charm was refreshed, or the pod was replaced.
    UpgradeCharm,
    /// The periodic hook.
    UpdateStatus,
    /// This unit became the leader (re-check: it may no longer be).
    LeaderElected,
    /// Never run by current agents.
    LeaderDeposed,
    /// Juju up to 3.x.
    LeaderSettingsChanged,
    /// Juju up to 3.x, restricted: most hook tools fail.
    CollectMetrics,
    /// Juju up to 3.x, restricted: most hook tools fail.
    MeterStatusChanged,
    /// Machines only.
    PreSeriesUpgrade,
    /// Machines only.
    PostSeriesUpgrade,
    /// `<endpoint>-relation-*`.
    Relation(RelationEvent),
    /// `secret-*`.
    Secret(SecretEvent),
    /// `<storage>-storage-*`.
    Storage(StorageEvent),
    /// `<container>-pebble-*`.
    Pebble(PebbleEvent),
    /// An action.
    Action(ActionCall),
    /// A hook this crate has no variant for, by name.
    Unknown(String),
}

/// A relation hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationEvent {
    /// This charm's endpoint.
    pub endpoint: EndpointName,
    /// The relation.
    pub id: RelationId,
    /// Which of the five.
    pub kind: RelationKind,
    /// The other application. Some agents leave it out in `-broken`.
    pub remote_app: Option<AppName>,
    /// The other unit; `None` for created, broken, and a change of application data.
    pub remote_unit: Option<UnitName>,
    /// Departed only: who leaves (the local unit if it is the one dying).
    pub departing_unit: Option<UnitName>,
}

impl RelationEvent {
    /// The relation with its endpoint.
    pub fn key(&self) -> RelationKey {
        self.id.on(&self.endpoint)
    }
}

/// Which relation hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelationKind {
    /// The relation exists; nobody has joined yet.
    Created,
    /// A remote unit joined.
    Joined,
    /// A remote unit's or the remote application's data changed.
    Changed,
    /// A remote unit left (or this one is leaving).
    Departed,
    /// No unit is left; may be the only hook seen of a short-lived relation.
    Broken,
}

impl RelationKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Created,
        Self::Joined,
        Self::Changed,
        Self::Departed,
        Self::Broken,
    ];

    /// The hook name's ending, `created` and so on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Joined => "joined",
            Self::Changed => "changed",
            Self::Departed => "departed",
            Self::Broken => "broken",
        }
    }
}

/// A secret hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretEvent {
    /// Which of the four.
    pub kind: SecretKind,
    /// The secret.
    pub id: SecretId,
    /// The label this application gave it.
    pub label: Option<String>,
    /// The revision, for `expired` and `remove`.
    pub revision: Option<u32>,
}

/// Which secret hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretKind {
    /// A secret this unit consumes has a new revision.
    Changed,
    /// An own secret is due for a new value.
    Rotate,
    /// A revision of an own secret expired.
    Expired,
    /// A revision of an own secret is used by nobody any more.
    Remove,
}

impl SecretKind {
    pub(crate) const ALL: [Self; 4] = [Self::Changed, Self::Rotate, Self::Expired, Self::Remove];

    /// The hook name's ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Rotate => "rotate",
            Self::Expired => "expired",
            Self::Remove => "remove",
        }
    }
}

/// A storage hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEvent {
    /// Attached or detaching.
    pub kind: StorageKind,
    /// The storage's declared name.
    pub name: String,
    /// Which instance of it.
    pub index: u32,
    /// Where it is mounted.
    pub location: Option<String>,
    /// Device or directory.
    pub form: Option<StorageForm>,
}

/// Which storage hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageKind {
    /// The storage can be used.
    Attached,
    /// The storage is about to go.
    Detaching,
}

impl StorageKind {
    pub(crate) const ALL: [Self; 2] = [Self::Attached, Self::Detaching];

    /// The hook name's ending.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Detaching => "detaching",
        }
    }
}

/// A workload container's hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleEvent {
    /// The container.
    pub container: String,
    /// What happened in it.
    pub kind: PebbleKind,
}

/// What happened in a workload container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PebbleKind {
    /// Pebble answers.
    Ready,
    /// A custom notice was recorded.
    CustomNotice {
        /// The notice's id.
        id: String,
        /// The notice's type, `custom`.
        kind: String,
        /// The notice's key.
        key: String,
    },
    /// A health check reached its failure threshold.
    CheckFailed {
        /// The check.
        check: String,
    },
    /// A failed health check succeeds again.
    CheckRecovered {
        /// The check.
        check: String,
    },
}

impl PebbleKind {
    /// The hook name's ending.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::CustomNotice { .. } => "custom-notice",
            Self::CheckFailed { .. } => "check-failed",
            Self::CheckRecovered { .. } => "check-recovered",
        }
    }
}

/// An action someone runs on this unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// The action's name.
    pub name: String,
    /// The task's number as text (Juju calls it a UUID; it is none).
    pub id: String,
}

/// Plain hooks: no data beyond their name.
pub(crate) const PLAIN: [(&str, Event); 14] = [
    ("install", Event::Install),
    ("start", Event::Start),
    ("stop", Event::Stop),
    ("remove", Event::Remove),
    ("config-changed", Event::ConfigChanged),
    ("upgrade-charm", Event::UpgradeCharm),
    ("update-status", Event::UpdateStatus),
    ("leader-elected", Event::LeaderElected),
    ("leader-deposed", Event::LeaderDeposed),
    ("leader-settings-changed", Event::LeaderSettingsChanged),
    ("collect-metrics", Event::CollectMetrics),
    ("meter-status-changed", Event::MeterStatusChanged),
    ("pre-series-upgrade", Event::PreSeriesUpgrade),
    ("post-series-upgrade", Event::PostSeriesUpgrade),
];

impl Event {
    /// The name Juju gives the hook or action, e.g. `ingress-relation-changed`.
    pub fn name(&self) -> String {
        match self {
            Self::Relation(event) => {
                format!("{}-relation-{}", event.endpoint, event.kind.as_str())
            }
            Self::Secret(event) => format!("secret-{}", event.kind.as_str()),
            Self::Storage(event) => format!("{}-storage-{}", event.name, event.kind.as_str()),
            Self::Pebble(event) => format!("{}-pebble-{}", event.container, event.kind.as_str()),
            Self::Action(call) => call.name.clone(),
            Self::Unknown(name) => name.clone(),
            plain => {
                let found = PLAIN.iter().find(|(_, event)| event == plain);
                found
                    .map(|(name, _)| (*name).to_owned())
                    .unwrap_or_default()
            }
        }
    }

    /// The relation hook, if it is one.
    pub fn relation(&self) -> Option<&RelationEvent> {
        match self {
            Self::Relation(event) => Some(event),
            _ => None,
        }
    }

    /// The action, if it is one.
    pub fn action(&self) -> Option<&ActionCall> {
        match self {
            Self::Action(call) => Some(call),
            _ => None,
        }
    }

    /// Whether Juju refuses most hook tools in this hook.
    pub fn is_restricted(&self) -> bool {
        matches!(self, Self::CollectMetrics | Self::MeterStatusChanged)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
