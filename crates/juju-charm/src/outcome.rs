//! What a charm wants written at the end of a hook.

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{Databag, Port, RelationId, StatusMessage};

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

/// The result of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// This unit's status.
    pub unit_status: StatusMessage,
    /// The application's status; ignored unless this unit leads.
    pub app_status: Option<StatusMessage>,
    /// Data per relation. A relation that is being broken is left alone.
    pub databags: BTreeMap<RelationId, LocalData>,
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
