//! The status document.

use jiff::Timestamp;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::ports;
use super::since;
use crate::Options;
use crate::model::consumed_json;
use crate::model::offers_json;
use crate::state::Application;
use crate::state::Life;
use crate::state::State;
use crate::state::StatusInfo;
use crate::state::Unit;

/// Severity by which an application without a status of its own takes one of its units'.
fn severity(status: &str) -> u32 {
    match status {
        "error" => 100,
        "blocked" => 90,
        "maintenance" => 80,
        "waiting" => 70,
        "active" => 60,
        "terminated" => 50,
        _ => 40,
    }
}

/// The workload status as shown: a failed hook covers what the charm said.
pub(crate) fn shown(unit: &Unit) -> StatusInfo {
    match &unit.uniter.error {
        Some(error) => StatusInfo {
            status: "error".into(),
            message: format!("hook failed: {:?}", error.hook.name()),
            since: error.since,
        },
        None => unit.workload.clone(),
    }
}

/// The application status: what the leader set, else the gravest of the units'.
pub(crate) fn derived(app: &Application, created: Timestamp) -> StatusInfo {
    if let Some(set) = &app.status {
        return set.clone();
    }
    let mut gravest: Option<StatusInfo> = None;
    for unit in app.units.values() {
        let status = shown(unit);
        if gravest
            .as_ref()
            .is_none_or(|g| severity(&status.status) > severity(&g.status))
        {
            gravest = Some(status);
        }
    }
    gravest.unwrap_or_else(|| crate::model::status("unknown", "", created))
}

/// The whole document.
pub(crate) fn json(state: &State, options: &Options, now: Timestamp) -> Value {
    let applications: Map<String, Value> = state
        .applications
        .iter()
        .map(|(name, app)| (name.clone(), application(state, options, name, app)))
        .collect();
    let mut doc = json!({
        "model": {
            "name": state.name,
            "type": "caas",
            "controller": "simulator",
            "cloud": "kubernetes",
            "version": options.juju_version,
            "model-status": {"current": "available", "since": since(state.created)},
            "sla": "unsupported",
        },
        "machines": {},
        "applications": applications,
        "storage": {},
        "controller": {"timestamp": now.strftime("%H:%M:%SZ").to_string()},
    });
    if !state.offers.is_empty() {
        doc["offers"] = offers_json(state);
    }
    if !state.saas.is_empty() {
        doc["application-endpoints"] = consumed_json(state);
    }
    doc
}

fn application(state: &State, options: &Options, name: &str, app: &Application) -> Value {
    let mut relations: Map<String, Value> = Map::new();
    for relation in state.relations.values() {
        if let (Some(own), Some(remote)) = (relation.side(name), relation.remote(name)) {
            let entry = json!({
                "related-application": remote.app,
                "interface": relation.interface,
                "scope": "global",
            });
            let list = relations
                .entry(own.endpoint.clone())
                .or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(entry);
            }
        }
    }
    let units: Map<String, Value> = app
        .units
        .iter()
        .map(|(n, u)| (format!("{name}/{n}"), unit(options, name, *n, app, u)))
        .collect();
    let mut doc = json!({
        "charm": format!("local:{}-{}", app.charm.name, app.charm_rev),
        "base": {"name": "ubuntu", "channel": app.charm.base_channel},
        "charm-origin": "local",
        "charm-name": app.charm.name,
        "charm-rev": app.charm_rev,
        "scale": app.units.len(),
        "provider-id": provider_id(state, name),
        "address": app.address,
        "exposed": false,
        "application-status": info(&derived(app, state.created)),
        "relations": relations,
        "units": units,
        "endpoint-bindings": app
            .charm
            .endpoints
            .keys()
            .map(|e| (e.clone(), json!("alpha")))
            .collect::<Map<_, _>>(),
    });
    if app.life == Life::Dying {
        doc["life"] = json!("dying");
    }
    if !app.workload_version.is_empty() {
        doc["version"] = json!(app.workload_version);
    }
    if !app.charm.version.is_empty() {
        doc["charm-version"] = json!(app.charm.version);
    }
    doc
}

fn unit(options: &Options, name: &str, number: u32, app: &Application, unit: &Unit) -> Value {
    let mut agent = info(&unit.agent);
    agent["version"] = json!(options.juju_version);
    let mut doc = json!({
        "workload-status": info(&shown(unit)),
        "juju-status": agent,
        "address": unit.address,
        "provider-id": format!("{name}-{number}"),
    });
    if app.leader == Some(number) {
        doc["leader"] = json!(true);
    }
    let ports = ports(unit);
    if !ports.is_empty() {
        doc["open-ports"] = json!(ports);
    }
    doc
}

/// A name for the application's stateful set, unique to the model.
pub(super) fn provider_id(state: &State, name: &str) -> String {
    format!("{}-{name}", &state.uuid[..8])
}

fn info(status: &StatusInfo) -> Value {
    let mut doc = json!({"current": status.status, "since": since(status.since)});
    if !status.message.is_empty() {
        doc["message"] = json!(status.message);
    }
    doc
}
