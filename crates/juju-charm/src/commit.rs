//! Step 7: tell Juju.
//!
//! Secrets, databags and ports first: Juju keeps them until the hook exits 0. Then what it shows at
//! once: version, statuses. A failure on the way exits 1, which drops the former; the latter are
//! overwritten by the retry.

mod secrets;

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{Databag, HookTools, RelationId, RelationKey, Scope, Shown, ToolError};

use crate::outcome::{LocalData, Outcome};
use crate::view::ModelView;

/// Why the outcome could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The charm names a relation that is not in its view.
    #[error("the charm wrote to unknown relation {0}")]
    UnknownRelation(RelationId),
    /// A hook tool failed.
    #[error("cannot write the outcome")]
    Tool(#[from] ToolError),
}

pub(crate) fn commit(
    view: &ModelView,
    outcome: &Outcome,
    tools: &dyn HookTools,
) -> Result<(), CommitError> {
    let secrets = secrets::changes(view, outcome, tools)?;
    // Leadership may have ended since it was read: applying can take longer than its 30 s.
    let mut leads = view.leader;
    let mut asked = false;
    if secrets.iter().any(|change| change.needs_lead(view)) {
        leads = tools.is_leader()?;
        asked = true;
    }
    let named = secrets::write(&secrets, view, leads, tools)?;
    let writes = writes(view, &outcome.databags, named)?;
    if !asked && writes.iter().any(|(_, scope, _)| *scope == Scope::App) {
        leads = tools.is_leader()?;
    }

    for (relation, scope, data) in &writes {
        if *scope == Scope::Unit || leads {
            tools.relation_set(relation, *scope, data)?;
        }
    }
    if let Some(wanted) = &outcome.ports {
        let open: BTreeSet<_> = tools.opened_ports()?.into_iter().collect();
        wanted
            .difference(&open)
            .try_for_each(|port| tools.open_port(*port, &[]))?;
        open.difference(wanted)
            .try_for_each(|port| tools.close_port(*port, &[]))?;
    }

    let version = outcome.workload_version.as_deref();
    let shown = tools.show(&Shown {
        version: version.filter(|version| !version.is_empty()),
        app: outcome.app_status.as_ref().filter(|_| leads),
        unit: Some(&outcome.unit_status),
    });
    shown.version?;
    match shown.app {
        // Without application data nobody asked again; Juju itself says so at the latest here.
        Err(error) if error.is_access() => deposed(),
        told => {
            told?;
            if view.leader && !leads {
                deposed();
            }
        }
    }
    Ok(shown.unit?)
}

/// What differs in the databags, by relation and scope.
fn writes(
    view: &ModelView,
    wanted: &BTreeMap<RelationId, LocalData>,
    named: BTreeMap<RelationId, LocalData>,
) -> Result<Vec<(RelationKey, Scope, Databag)>, CommitError> {
    let mut all = wanted.clone();
    for (id, data) in named {
        let known = all.entry(id).or_default();
        known.app.extend(data.app);
        known.unit.extend(data.unit);
    }
    let mut writes = Vec::new();
    for (id, data) in &all {
        let relation = view
            .relation(*id)
            .ok_or(CommitError::UnknownRelation(*id))?;
        if relation.broken {
            tracing::debug!(
                "relation {}:{id} is broken: nothing written",
                relation.endpoint
            );
            continue;
        }
        let key = id.on(&relation.endpoint);
        let unit = changes(&relation.local_unit_data, &data.unit);
        let app = changes(&relation.local_app_data, &data.app);
        writes.push((key.clone(), Scope::Unit, unit));
        writes.push((key, Scope::App, app));
    }
    writes.retain(|(_, scope, data)| !data.is_empty() && (*scope == Scope::Unit || view.leader));
    Ok(writes)
}

fn deposed() {
    tracing::warn!("no longer the leader: application data and status are the new leader's");
}

/// The keys whose value differs. Deleting what is absent is no change.
fn changes(current: &Databag, wanted: &Databag) -> Databag {
    let differs = |key: &String, value: &String| {
        current.get(key).map_or("", String::as_str) != value.as_str()
    };
    let changed = wanted.iter().filter(|(key, value)| differs(key, value));
    changed
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
