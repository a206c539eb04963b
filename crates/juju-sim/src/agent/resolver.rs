//! What a unit agent does next: Juju's priority list as a pure function of the state.
//!
//! Where Juju promises no order the alternatives are all returned and the caller draws one.
//! Nothing here is remembered: a hook that did not commit is simply found again.

use jiff::Timestamp;
use jiff::ToSpan as _;

use crate::TeardownOrder;
use crate::hook::Hook;
use crate::hook::RelationHook;
use crate::hook::RelationKind;
use crate::model::timers;
use crate::state::Application;
use crate::state::Life;
use crate::state::RelationSeen;
use crate::state::Resolution;
use crate::state::State;
use crate::state::Unit;
use crate::state::by_number;
use crate::state::split_unit;

/// One thing an agent may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Run a hook or task.
    Run(Hook),
    /// Count the failed hook as done.
    Skip,
    /// Put the application's current charm into the unit's charm directory.
    SwapCharm,
    /// Remove the unit from the model without a hook.
    Vanish,
}

/// The equally possible next steps of a unit; empty when it is idle.
pub(crate) fn steps(
    state: &State,
    name: &str,
    now: Timestamp,
    teardown: TeardownOrder,
) -> Vec<Step> {
    let Some((app_name, number)) = split_unit(name) else {
        return Vec::new();
    };
    let Some(app) = state.applications.get(app_name) else {
        return Vec::new();
    };
    let Some(unit) = app.units.get(&number) else {
        return Vec::new();
    };
    let u = &unit.uniter;
    let task = state
        .tasks
        .iter()
        .find(|(_, t)| t.unit == name && t.status == "pending")
        .map(|(id, _)| Step::Run(Hook::Task(*id)));

    if let Some(error) = &u.error {
        return match error.resolved {
            _ if unit.force => vec![Step::Skip],
            _ if error.hook == Hook::LeaderElected && app.leader != Some(number) => {
                vec![Step::Skip]
            }
            Some(Resolution::Retry) => vec![Step::Run(error.hook.clone())],
            Some(Resolution::NoRetry) => vec![Step::Skip],
            None if u.force_charm => vec![Step::SwapCharm],
            None if task.is_some() => task.into_iter().collect(),
            None if state.config.automatically_retry_hooks && now >= error.next_retry => {
                vec![Step::Run(error.hook.clone())]
            }
            None => Vec::new(),
        };
    }
    let alive = unit.life == Life::Alive;
    if !u.installed {
        return vec![if alive {
            Step::Run(Hook::Install)
        } else {
            Step::Vanish
        }];
    }
    if u.queued.is_none() {
        if alive {
            let created = created_hooks(state, name, app_name, unit);
            if !created.is_empty() {
                return created;
            }
            if app.leader == Some(number) && !u.leader {
                return vec![Step::Run(Hook::LeaderElected)];
            }
            let leads = app.leader == Some(number);
            let wanted = |hook: &&Hook| !matches!(hook, Hook::Told(t) if t.leader_only && !leads);
            if let Some(hook) = u.due.iter().find(wanted) {
                return vec![Step::Run(hook.clone())];
            }
            if u.started
                && let Some(hook) =
                    secret_hook(state, name).or_else(|| timers::due(state, name, now))
            {
                return vec![Step::Run(hook)];
            }
        }
        if let Some(task) = task {
            return vec![task];
        }
    }
    if let Some(queued) = &u.queued {
        return vec![Step::Run(queued.clone())];
    }
    if !alive {
        return teardown_steps(state, name, unit, teardown);
    }
    if u.restart {
        if u.started && !u.stopped {
            return if turn_to_restart(app, number) {
                vec![Step::Run(Hook::Stop)]
            } else {
                Vec::new()
            };
        }
        return vec![Step::SwapCharm];
    }
    if u.charm_rev != Some(app.charm_rev) {
        return vec![Step::SwapCharm];
    }
    if u.upgrade {
        return vec![Step::Run(Hook::UpgradeCharm)];
    }
    if u.config_seen.as_deref() != Some(config_digest(app, unit).as_str()) {
        return vec![Step::Run(Hook::ConfigChanged)];
    }
    let relations = relation_hooks(state, name, unit);
    if !relations.is_empty() {
        return relations;
    }
    let interval = i64::from(state.config.update_status_interval_secs).seconds();
    let due = u
        .last_update_status
        .is_some_and(|last| last.checked_add(interval).is_ok_and(|due| now >= due));
    if u.started && (due || u.update_status_due) {
        return vec![Step::Run(Hook::UpdateStatus)];
    }
    Vec::new()
}

/// A digest (FNV-1a) of all that makes a config-changed when it changes.
pub(crate) fn config_digest(app: &Application, unit: &Unit) -> String {
    let seen = serde_json::to_string(&(&app.config, app.trusted, &unit.address));
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seen.unwrap_or_default().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// A rolling restart goes from the highest unit down, one at a time.
fn turn_to_restart(app: &Application, number: u32) -> bool {
    app.units.range(number + 1..).all(|(_, unit)| {
        let u = &unit.uniter;
        u.error.is_some() || unit.life == Life::Dying || (u.started && !u.restart && !u.upgrade)
    })
}

fn created_hooks(state: &State, name: &str, app: &str, unit: &Unit) -> Vec<Step> {
    let mut hooks = Vec::new();
    for (id, relation) in &state.relations {
        let created = unit
            .uniter
            .relations
            .get(id)
            .is_some_and(|seen| seen.created);
        if !created
            && relation.life == Life::Alive
            && relation.side(app).is_some()
            && let Some(hook) = relation_hook(state, name, *id, RelationKind::Created, None)
        {
            hooks.push(Step::Run(hook));
        }
    }
    hooks
}

/// Consumers hear of new revisions. Who makes them does not: a unit of its own secret, the leader of the application's.
fn secret_hook(state: &State, name: &str) -> Option<Hook> {
    let app = name.split('/').next().unwrap_or(name);
    let made_here = |owner: &str| {
        owner == format!("unit:{name}")
            || (owner == format!("application:{app}") && state.is_leader(name))
    };
    state.secrets.iter().find_map(|(id, secret)| {
        let consumer = secret.consumers.get(name)?;
        if made_here(&secret.owner) {
            return None;
        }
        (secret.latest() > consumer.notified).then(|| Hook::SecretChanged {
            id: id.clone(),
            label: consumer.label.clone(),
        })
    })
}

fn relation_hooks(state: &State, name: &str, unit: &Unit) -> Vec<Step> {
    unit.uniter
        .relations
        .iter()
        .filter_map(|(id, seen)| next_relation_hook(state, name, unit, *id, seen))
        .map(Step::Run)
        .collect()
}

fn teardown_steps(state: &State, name: &str, unit: &Unit, order: TeardownOrder) -> Vec<Step> {
    let u = &unit.uniter;
    let stop = u.started && !u.stopped;
    if order == TeardownOrder::StopFirst && stop {
        return vec![Step::Run(Hook::Stop)];
    }
    let relations = relation_hooks(state, name, unit);
    if !relations.is_empty() {
        return relations;
    }
    vec![Step::Run(if stop { Hook::Stop } else { Hook::Remove })]
}

/// The next hook within one relation: pending changed, departed, broken, app-level changed, joined,
/// unit changed.
fn next_relation_hook(
    state: &State,
    name: &str,
    unit: &Unit,
    id: u32,
    seen: &RelationSeen,
) -> Option<Hook> {
    let relation = state.relations.get(&id)?;
    if !seen.created || seen.broken {
        return None;
    }
    let hook = |kind, remote: Option<&str>| relation_hook(state, name, id, kind, remote);
    if let Some(pending) = &seen.changed_pending {
        return hook(RelationKind::Changed, Some(pending));
    }
    let (app, _) = split_unit(name)?;
    let remote_app = &relation.remote(app)?.app;
    let over = unit.life == Life::Dying || relation.life == Life::Dying;
    let mut present: Vec<&String> = relation
        .scope
        .iter()
        .filter(|u| !over && *u != name && split_unit(u).is_some_and(|(a, _)| a == remote_app))
        .collect();
    present.sort_by(|a, b| by_number(a, b));
    let mut members: Vec<&String> = seen.members.keys().collect();
    members.sort_by(|a, b| by_number(a, b));
    if let Some(gone) = members.into_iter().find(|m| !present.contains(m)) {
        return hook(RelationKind::Departed, Some(gone));
    }
    if over {
        return if relation.is_peer() {
            None
        } else {
            hook(RelationKind::Broken, None)
        };
    }
    let app_version = relation
        .app_bags
        .get(remote_app)
        .map_or(0, |bag| bag.version);
    if app_version != 0 && app_version != seen.app_version {
        return hook(RelationKind::Changed, None);
    }
    if let Some(new) = present.iter().find(|p| !seen.members.contains_key(**p)) {
        return hook(RelationKind::Joined, Some(new));
    }
    let version = |u: &str| relation.unit_bags.get(u).map_or(0, |bag| bag.version);
    let changed = present
        .iter()
        .find(|p| seen.members.get(**p) != Some(&version(p)))?;
    hook(RelationKind::Changed, Some(changed))
}

/// Names the parts of a relation hook.
fn relation_hook(
    state: &State,
    name: &str,
    id: u32,
    kind: RelationKind,
    remote: Option<&str>,
) -> Option<Hook> {
    let relation = state.relations.get(&id)?;
    let (app, _) = split_unit(name)?;
    let departing = (kind == RelationKind::Departed).then(|| {
        let dying = state.unit(name).is_some_and(|u| u.life == Life::Dying);
        if dying {
            name.to_owned()
        } else {
            remote.unwrap_or_default().to_owned()
        }
    });
    Some(Hook::Relation(RelationHook {
        kind,
        id,
        endpoint: relation.side(app)?.endpoint.clone(),
        remote_app: relation.remote(app)?.app.clone(),
        remote_unit: remote.map(ToOwned::to_owned),
        departing,
    }))
}
