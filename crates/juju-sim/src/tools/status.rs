//! status-set, status-get, application-version-set, goal-state.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::no_more;
use super::refused;
use super::usage;
use crate::agent::context::HookRun;
use crate::report::status::derived;
use crate::state::Life;
use crate::state::StatusInfo;
use crate::state::Unit;
use crate::state::split_unit;

const SETTABLE: [&str; 4] = ["maintenance", "blocked", "waiting", "active"];

pub(super) fn set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [status, message @ ..] = call.line.args.as_slice() else {
        return usage("invalid args, require <status> [message]");
    };
    if !SETTABLE.contains(&status.as_str()) {
        return usage(format!(
            "invalid status {status:?}, expected one of [maintenance blocked waiting active]"
        ));
    }
    let info = StatusInfo {
        status: status.clone(),
        message: message.join(" "),
        since: run.model.clock.now(),
    };
    if call.line.is("application") {
        if !run.is_leader() {
            return refused("this unit is not the leader");
        }
        if let Some(app) = run.model.state.applications.get_mut(&run.app) {
            app.status = Some(info);
        }
    } else if let Some(unit) = run.model.state.unit_mut(&run.unit.clone()) {
        unit.workload = info;
        unit.status_set = true;
    }
    saved(run)
}

/// Immediate writes are stored at once: they survive a hook that fails or a simulator that dies.
fn saved(run: &mut HookRun<'_>) -> Answer {
    run.model
        .save()
        .map(|()| String::new())
        .or_else(|e| refused(e.to_string()))
}

pub(super) fn get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let full = |info: &StatusInfo| json!({"status": info.status, "message": info.message, "status-data": {}});
    if !call.line.is("application") {
        let Some(unit) = run.state().unit(&run.unit) else {
            return refused("unit not found");
        };
        return if call.line.is("include-data") {
            call.print(&full(&unit.workload))
        } else {
            call.print(&json!(unit.workload.status))
        };
    }
    if !run.is_leader() {
        return refused("finding application status: this unit is not the leader");
    }
    let Some(app) = run.state().applications.get(&run.app) else {
        return refused("application not found");
    };
    let status = derived(app, run.state().created);
    if !call.line.is("include-data") {
        return call.print(&json!(status.status));
    }
    let units: Map<String, Value> = app
        .units
        .iter()
        .map(|(n, unit)| (format!("{}/{n}", run.app), full(&unit.workload)))
        .collect();
    let mut body = full(&status);
    body["units"] = Value::Object(units);
    call.print(&json!({"application-status": body}))
}

pub(super) fn version_set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let version = match call.line.args.as_slice() {
        [] => return usage("no version specified"),
        [version] => version.clone(),
        [_, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    if let Some(app) = run.model.state.applications.get_mut(&run.app) {
        app.workload_version = version;
    }
    saved(run)
}

pub(super) fn goal_state(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let entry = |unit: &Unit| {
        let status = if unit.life == Life::Dying {
            "dying"
        } else {
            unit.workload.status.as_str()
        };
        json!({"status": status, "since": since(&unit.workload)})
    };
    let state = run.state();
    let units_of = |app: &str| -> Map<String, Value> {
        let units = state
            .applications
            .get(app)
            .into_iter()
            .flat_map(|a| &a.units);
        units
            .map(|(n, unit)| (format!("{app}/{n}"), entry(unit)))
            .collect()
    };
    let mut relations: Map<String, Value> = Map::new();
    for relation in state.relations.values().filter(|r| !r.is_peer()) {
        let (Some(own), Some(remote)) = (relation.side(&run.app), relation.remote(&run.app)) else {
            continue;
        };
        let joined = if relation.life == Life::Alive {
            "joined"
        } else {
            "dying"
        };
        let slot = relations
            .entry(own.endpoint.clone())
            .or_insert_with(|| json!({}));
        let since = run.unit_since();
        slot[&remote.app] = json!({"status": joined, "since": since});
        for (name, value) in units_of(&remote.app) {
            slot[&name] = value;
        }
    }
    let goal = json!({"units": units_of(&run.app), "relations": relations});
    call.print(&goal)
}

/// Time in goal-state's own layout.
fn since(info: &StatusInfo) -> String {
    info.since.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

impl HookRun<'_> {
    fn unit_since(&self) -> String {
        let unit = split_unit(&self.unit).and_then(|_| self.state().unit(&self.unit));
        unit.map(|u| since(&u.workload)).unwrap_or_default()
    }
}
