//! The document of `juju show-unit`.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::ports;
use crate::state::Life;
use crate::state::State;
use crate::state::by_number;
use crate::state::split_unit;

/// `{"app/0": {…}}`, none for an unknown unit.
pub(crate) fn json(state: &State, name: &str) -> Option<Value> {
    let (app_name, number) = split_unit(name)?;
    let app = state.applications.get(app_name)?;
    let unit = app.units.get(&number)?;
    let mut relations = Vec::new();
    for (id, relation) in &state.relations {
        let (Some(own), Some(remote)) = (relation.side(app_name), relation.remote(app_name)) else {
            continue;
        };
        // Only a peer relation shows the unit's own application databag.
        let app_data = relation.app_bags.get(&remote.app).map(|b| &b.data);
        let mut related: Vec<&String> = relation
            .scope
            .iter()
            .filter(|u| *u != name && split_unit(u).is_some_and(|(a, _)| a == remote.app))
            .collect();
        related.sort_by(|a, b| by_number(a, b));
        let side = |unit: &str| {
            let data = relation.unit_bags.get(unit).map(|b| &b.data);
            json!({"in-scope": relation.scope.contains(unit), "data": data.cloned().unwrap_or_default()})
        };
        let related: Map<String, Value> =
            related.into_iter().map(|u| (u.clone(), side(u))).collect();
        let mut entry = json!({
            "relation-id": id,
            "endpoint": own.endpoint,
            "related-endpoint": remote.endpoint,
            "application-data": app_data.cloned().unwrap_or_default(),
            "local-unit": side(name),
        });
        if relation.link.is_some() {
            entry["cross-model"] = json!(true);
        }
        if !related.is_empty() {
            entry["related-units"] = Value::Object(related);
        }
        relations.push(entry);
    }
    let body = json!({
        "workload-version": app.workload_version,
        "opened-ports": ports(unit),
        "charm": format!("local:{}-{}", app.charm.name, app.charm_rev),
        "leader": app.leader == Some(number),
        "life": if unit.life == Life::Alive { "alive" } else { "dying" },
        "relation-info": relations,
        "provider-id": format!("{app_name}-{number}"),
        "address": unit.address,
    });
    Some(json!({name: body}))
}
