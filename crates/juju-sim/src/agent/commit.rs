//! What the model remembers once a hook has succeeded (or was declared done).

use crate::agent::resolver::config_digest;
use crate::hook::Hook;
use crate::hook::RelationHook;
use crate::hook::RelationKind;
use crate::hook::Told;
use crate::pebble::Container;
use crate::state::Life;
use crate::state::State;
use crate::state::split_unit;

/// Records that `hook` of `unit` is done. The caller removes a unit whose remove hook is done.
pub(crate) fn done(state: &mut State, unit: &str, hook: &Hook) {
    let Some((app, number)) = split_unit(unit) else {
        return;
    };
    let digest = state
        .applications
        .get(app)
        .and_then(|a| a.units.get(&number).map(|u| config_digest(a, u)));
    if let Hook::Relation(hook) = hook {
        relation_done(state, unit, hook);
    }
    if let Hook::SecretChanged { id, .. } = hook
        && let Some(secret) = state.secrets.get_mut(id)
    {
        let latest = secret.latest();
        if let Some(consumer) = secret.consumers.get_mut(unit) {
            consumer.notified = latest;
        }
    }
    if *hook == Hook::Start {
        start_containers(state, unit);
    }
    let leads = state.is_leader(unit);
    let Some(u) = state.unit_mut(unit).map(|u| &mut u.uniter) else {
        return;
    };
    u.running = None;
    if u.queued.as_ref() == Some(hook) {
        u.queued = None;
    }
    match hook {
        Hook::Install => u.installed = true,
        Hook::LeaderElected => u.leader = leads,
        Hook::ConfigChanged => {
            u.config_seen = digest;
            if !u.started {
                u.queued = Some(Hook::Start);
            }
        }
        Hook::Start => {
            u.started = true;
            u.stopped = false;
        }
        Hook::Stop => u.stopped = true,
        Hook::UpgradeCharm => {
            u.upgrade = false;
            u.config_seen = None;
        }
        Hook::UpdateStatus => u.update_status_due = false,
        Hook::Told(told) => {
            if told.name.ends_with("-storage-detaching")
                && let Some(id) = told.vars.get("JUJU_STORAGE_ID")
            {
                u.storage.remove(id);
            }
            if let Some(at) = u.due.iter().position(|due| due == hook) {
                u.due.remove(at);
            }
        }
        Hook::Remove | Hook::Relation(_) | Hook::SecretChanged { .. } | Hook::Task(_) => {}
    }
}

/// Their Pebble answers for the first time in this pod, with nothing in its plan. When it does is
/// luck in a pod; here it is behind the unit's start, so that charms which count on it earlier fail.
fn start_containers(state: &mut State, unit: &str) {
    let names = split_unit(unit)
        .and_then(|(app, _)| state.applications.get(app))
        .map(|app| app.charm.containers.clone())
        .unwrap_or_default();
    let Some(unit) = state.unit_mut(unit) else {
        return;
    };
    unit.containers.retain(|name, _| names.contains(name));
    for name in names {
        unit.uniter.due.push(Hook::Told(Told {
            name: format!("{name}-pebble-ready"),
            vars: [("JUJU_WORKLOAD_NAME".to_owned(), name.clone())].into(),
            leader_only: false,
        }));
        unit.containers.insert(name, Container::started());
    }
}

fn relation_done(state: &mut State, unit: &str, hook: &RelationHook) {
    let Some(relation) = state.relations.get_mut(&hook.id) else {
        return;
    };
    let app_version = relation
        .app_bags
        .get(&hook.remote_app)
        .map_or(0, |bag| bag.version);
    let unit_version = |u: &str| relation.unit_bags.get(u).map_or(0, |bag| bag.version);
    let remote = hook
        .remote_unit
        .as_ref()
        .map(|u| (u.clone(), unit_version(u)));
    if hook.kind == RelationKind::Broken {
        relation.scope.remove(unit);
    }
    if let Some(u) = state.unit_mut(unit) {
        let seen = u.uniter.relations.entry(hook.id).or_default();
        match (hook.kind, remote) {
            (RelationKind::Created, _) => seen.created = true,
            (RelationKind::Joined, Some((remote, version))) => {
                seen.members.insert(remote.clone(), version);
                seen.changed_pending = Some(remote);
            }
            (RelationKind::Changed, Some((remote, version))) => {
                if seen.changed_pending.as_ref() == Some(&remote) {
                    seen.changed_pending = None;
                }
                seen.members.insert(remote, version);
            }
            (RelationKind::Changed, None) => seen.app_version = app_version,
            (RelationKind::Departed, Some((remote, _))) => {
                seen.members.remove(&remote);
            }
            (RelationKind::Broken, _) => seen.broken = true,
            (RelationKind::Joined | RelationKind::Departed, None) => {}
        }
    }
    reap_relations(state);
}

/// Removes dying relations nobody is in any more.
pub(crate) fn reap_relations(state: &mut State) {
    let over: Vec<u32> = state
        .relations
        .iter()
        .filter(|(_, r)| r.life == Life::Dying && r.scope.is_empty())
        .map(|(id, _)| *id)
        .collect();
    for id in over {
        state.relations.remove(&id);
        for app in state.applications.values_mut() {
            for unit in app.units.values_mut() {
                unit.uniter.relations.remove(&id);
            }
        }
    }
}
