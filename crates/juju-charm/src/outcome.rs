//! What a charm wants written at the end of a hook.

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{
    Databag, Port, RelationId, SecretContent, SecretOwner, SecretRotate, StatusMessage,
};

use crate::problem::{Problem, status_line, worst};
use crate::view::ModelView;

/// Data for this side's databags of one relation. Keys not named are left alone, an empty value
/// deletes its key, equal values are not written again. `app` is ignored unless this unit leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalData {
    /// For the application's databag.
    pub app: Databag,
    /// For the unit's databag.
    pub unit: Databag,
}

/// A secret of this charm's own that is to exist, with what it is to be. Nothing is written where
/// it is so already.
///
/// The content goes to Juju by file, and is in no log: [`SecretContent`] does not print itself. A
/// new content is a new revision, which its readers are told of; a revision that Juju says nobody
/// reads any more is removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnSecret {
    /// The content, keys and values; empty removes the secret.
    pub content: SecretContent,
    /// Whose it is. One of the application's is ignored unless this unit leads.
    pub owner: SecretOwner,
    /// What it is for; `None` leaves it as it is.
    pub description: Option<String>,
    /// How often Juju is to ask for a new content; `None` leaves it as it is.
    pub rotate: Option<SecretRotate>,
    /// The relations whose other side may read it, each with the key that names it there, in this
    /// side's databag (the owner's: application's or unit's), as `secret:...`. From any other
    /// relation whose databag names it, both are taken back.
    pub shared: BTreeMap<RelationId, String>,
}

/// The result of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// This unit's status.
    pub unit_status: StatusMessage,
    /// The application's status; ignored unless this unit leads.
    pub app_status: Option<StatusMessage>,
    /// Data per relation. A relation that is being broken is left alone.
    pub databags: BTreeMap<RelationId, LocalData>,
    /// Secrets of this charm's own, by label. What is not named is left alone.
    pub secrets: BTreeMap<String, OwnSecret>,
    /// What `juju status` shows as the workload's version.
    pub workload_version: Option<String>,
    /// The ports this unit is to have open, all others closed; `None` leaves them as they are.
    pub ports: Option<BTreeSet<Port>>,
}

impl Outcome {
    /// Only statuses: the same for the unit and, on the leader, for the application.
    pub fn status(view: &ModelView, status: StatusMessage) -> Self {
        Self {
            app_status: view.leader.then(|| status.clone()),
            unit_status: status,
            databags: BTreeMap::new(),
            secrets: BTreeMap::new(),
            workload_version: None,
            ports: None,
        }
    }

    /// Statuses from problems: the worst decides, [`status_line`] words it; without problems
    /// `active` with the message `active` (often empty). Everything else is left unset.
    pub fn from_problems(
        view: &ModelView,
        active: impl Into<String>,
        problems: &[Problem],
    ) -> Self {
        let status = match (worst(problems), status_line(problems)) {
            (Some(worst), Some(line)) => StatusMessage::new(worst.severity.status(), line),
            _ => StatusMessage::active(active),
        };
        Self::status(view, status)
    }
}
