//! What Juju cannot be, or cannot send: checked before anything runs, so that no test proves
//! something about a world that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{Metadata, OptionKind, ParamKind, ResourceKind, Role};
use juju_hooks::{
    Databag, Event, JujuVersion, RelationEvent, RelationKind, SecretId, SecretKind, StorageId,
};
use serde_json::{Map, Value};

use super::state::{Relation, State, UNIT_KEYS};

/// Everything that is wrong, in a stable order; empty if nothing is.
pub(super) fn mistakes(
    metadata: &Metadata,
    state: &State,
    event: &Event,
    params: &Map<String, Value>,
) -> Vec<String> {
    let mut checks = Checks {
        metadata,
        state,
        wrong: Vec::new(),
    };
    checks.resources();
    checks.config();
    checks.relations();
    checks.networks();
    checks.storages();
    checks.containers();
    checks.cloud();
    checks.event(event, params);
    checks.wrong
}

struct Checks<'a> {
    metadata: &'a Metadata,
    state: &'a State,
    wrong: Vec<String>,
}

impl Checks<'_> {
    fn demand(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(otherwise());
        }
    }

    fn resources(&mut self) {
        for name in self.state.resources.keys() {
            let file = self.metadata.resources.get(name) == Some(&ResourceKind::File);
            self.demand(file, || {
                format!("resource {name} is not declared as a file")
            });
        }
    }

    fn config(&mut self) {
        for (name, option) in &self.metadata.options {
            self.demand(option.kind.is_some(), || {
                format!("option {name} has no type")
            });
        }
        for (name, value) in &self.state.config {
            match self
                .metadata
                .options
                .get(name)
                .and_then(|option| option.kind)
            {
                None => self.wrong.push(format!("option {name} is not declared")),
                Some(kind) => self.demand(option_fits(kind, value), || {
                    format!("option {name} is {kind:?}, not {value}")
                }),
            }
        }
    }

    fn relations(&mut self) {
        let mut numbers = BTreeSet::new();
        let mut per_endpoint = BTreeMap::<_, u32>::new();
        for relation in &self.state.relations {
            let Relation { endpoint, id, .. } = relation;
            self.demand(numbers.insert(*id), || {
                format!("relation number {id} is used twice")
            });
            *per_endpoint.entry(endpoint).or_default() += 1;
            match self.metadata.endpoints.get(endpoint) {
                None => self
                    .wrong
                    .push(format!("endpoint {endpoint} is not declared")),
                Some(declared) => self.parties(relation, declared.role),
            }
            self.unit_keys(relation, "this unit", &relation.local_unit_data);
            for (unit, data) in &relation.remote_units {
                self.unit_keys(relation, &unit.to_string(), data);
            }
        }
        for (name, declared) in &self.metadata.endpoints {
            let count = per_endpoint.get(name).copied().unwrap_or_default();
            let limit = declared.limit.unwrap_or(u32::MAX);
            self.demand(count <= limit, || {
                format!("endpoint {name} has {count} relations, its limit is {limit}")
            });
            self.demand(declared.role != Role::Peers || count == 1, || {
                format!("peer endpoint {name} has {count} relations; juju makes exactly one")
            });
        }
    }

    fn parties(&mut self, relation: &Relation, role: Role) {
        let Relation {
            endpoint,
            remote_app,
            remote_units,
            ..
        } = relation;
        let own = self.state.unit.app() == remote_app;
        self.demand((role == Role::Peers) == own, || {
            format!("endpoint {endpoint} of role {role:?} is related to {remote_app}")
        });
        self.demand(!remote_units.contains_key(&self.state.unit), || {
            format!("endpoint {endpoint} has this unit among the others")
        });
        for unit in remote_units.keys() {
            self.demand(unit.app() == remote_app, || {
                format!("endpoint {endpoint}: unit {unit} is not of {remote_app}")
            });
        }
        if role == Role::Peers {
            let units = u32::try_from(remote_units.len()).unwrap_or(u32::MAX);
            self.demand(relation.remote_app_data.is_empty(), || {
                format!("peer endpoint {endpoint}: the application's data is local data")
            });
            let planned = self.state.planned_units.max(1);
            self.demand(units < planned + 1, || {
                format!("peer endpoint {endpoint} has {units} others, {planned} units are planned")
            });
        }
    }

    fn unit_keys(&mut self, relation: &Relation, unit: &str, data: &Databag) {
        for key in UNIT_KEYS {
            self.demand(data.contains_key(key), || {
                format!(
                    "relation {}: {unit} lacks juju's own key {key}",
                    relation.id
                )
            });
        }
    }

    fn networks(&mut self) {
        for binding in self.state.networks.keys() {
            let known = binding == "juju-info"
                || self.metadata.extra_bindings.contains(binding)
                || self
                    .metadata
                    .endpoints
                    .keys()
                    .any(|endpoint| *endpoint == binding.as_str());
            self.demand(known, || format!("binding {binding} is not declared"));
        }
    }

    fn storages(&mut self) {
        for id in self.state.storages.keys() {
            let known = self.metadata.storage.contains(&id.name);
            self.demand(known, || format!("storage {} is not declared", id.name));
        }
    }

    fn containers(&mut self) {
        for name in self.state.containers.keys() {
            let known = self.metadata.containers.contains(name);
            self.demand(known, || format!("container {name} is not declared"));
        }
    }

    fn cloud(&mut self) {
        let supported = self.state.juju_version >= JujuVersion::release(3, 6, 10);
        self.demand(self.state.credential.is_none() || supported, || {
            "on kubernetes juju tells the cloud's credentials from 3.6.10 on".to_owned()
        });
    }

    fn event(&mut self, event: &Event, params: &Map<String, Value>) {
        match event {
            Event::Relation(event) => self.relation_event(event),
            Event::Pebble(event) => {
                let known = self.metadata.containers.contains(&event.container);
                self.demand(known, || {
                    format!("container {} is not declared", event.container)
                });
                let answers = self.state.containers.get(&event.container) == Some(&true);
                self.demand(!known || answers, || {
                    format!("container {} does not answer in the state", event.container)
                });
            }
            Event::Storage(event) => {
                let known = self.metadata.storage.contains(&event.name);
                self.demand(known, || format!("storage {} is not declared", event.name));
                let id = StorageId {
                    name: event.name.clone(),
                    index: event.index,
                };
                let there = self.state.storages.contains_key(&id);
                self.demand(!known || there, || {
                    format!("storage {id} is not in the state")
                });
            }
            Event::Secret(event) => {
                let known = self
                    .state
                    .secrets
                    .keys()
                    .any(|id| id.xid() == event.id.xid());
                self.demand(known, || format!("secret {} is not in the state", event.id));
                let dated = matches!(event.kind, SecretKind::Expired | SecretKind::Remove);
                self.demand(event.revision.is_some() == dated, || {
                    "a secret has its revision named when it expired or is to go".to_owned()
                });
                let supported = self.state.juju_version.major >= 3;
                self.demand(supported, || "secrets need juju 3".to_owned());
            }
            Event::Action(call) => self.action(&call.name, params),
            Event::LeaderElected => {
                let leads = self.state.leader;
                self.demand(leads, || {
                    "leader-elected on a unit that does not lead".to_owned()
                });
            }
            _ => {}
        }
        let stray = !params.is_empty() && event.action().is_none();
        self.demand(!stray, || {
            "parameters for something that is no action".to_owned()
        });
    }

    fn relation_event(&mut self, event: &RelationEvent) {
        let Some(relation) = self.state.relations.iter().find(|r| r.id == event.id) else {
            self.wrong
                .push(format!("relation {} is not in the state", event.id));
            return;
        };
        self.demand(relation.endpoint == event.endpoint, || {
            format!(
                "relation {} is on {}, not {}",
                event.id, relation.endpoint, event.endpoint
            )
        });
        if let Some(app) = &event.remote_app {
            self.demand(*app == relation.remote_app, || {
                format!(
                    "relation {} is with {}, not {app}",
                    event.id, relation.remote_app
                )
            });
        }
        let peers = self.metadata.endpoints.get(&event.endpoint);
        let peers = peers.is_some_and(|endpoint| endpoint.role == Role::Peers);
        let unit = event.remote_unit.as_ref();
        let joined = unit.is_some_and(|unit| relation.remote_units.contains_key(unit));
        let (holds, otherwise) = match event.kind {
            RelationKind::Created => (unit.is_none(), "created is about no unit"),
            RelationKind::Joined => (joined, "joined is about a unit that is there"),
            RelationKind::Changed => (unit.is_none() || joined, "changed is about a unit there is"),
            RelationKind::Departed => (
                unit.is_some() && !joined,
                "departed is about a unit that is no longer there",
            ),
            RelationKind::Broken => (
                unit.is_none() && relation.remote_units.is_empty() && !peers,
                "broken comes when no unit is left, and never to peers",
            ),
        };
        self.demand(holds, || otherwise.to_owned());
        let departs = event.kind == RelationKind::Departed;
        self.demand(event.departing_unit.is_some() == departs, || {
            "departed, and only it, names who departs".to_owned()
        });
    }

    fn action(&mut self, name: &str, params: &Map<String, Value>) {
        let Some(spec) = self.metadata.actions.get(name) else {
            self.wrong.push(format!("action {name} is not declared"));
            return;
        };
        for (param, declared) in &spec.params {
            self.demand(declared.kind.is_some(), || {
                format!("parameter {param} has no type")
            });
        }
        for (param, value) in params {
            match spec.params.get(param) {
                None => self
                    .wrong
                    .push(format!("parameter {param} is not declared")),
                Some(declared) => {
                    let fits = declared.kind.is_none_or(|kind| param_fits(kind, value));
                    self.demand(fits, || format!("parameter {param} cannot be {value}"));
                }
            }
        }
        for param in &spec.required {
            let given = params.contains_key(param);
            self.demand(given, || format!("parameter {param} is required"));
        }
    }
}

fn option_fits(kind: OptionKind, value: &Value) -> bool {
    match kind {
        OptionKind::String => value.is_string(),
        OptionKind::Int => value.is_i64() || value.is_u64(),
        OptionKind::Float => value.is_number(),
        OptionKind::Boolean => value.is_boolean(),
        OptionKind::Secret => value.as_str().is_some_and(secret_uri),
    }
}

fn secret_uri(text: &str) -> bool {
    let bare = |xid: &str| xid.len() == 20 && SecretId::new(xid).is_ok();
    text.strip_prefix("secret:").is_some_and(bare)
}

fn param_fits(kind: ParamKind, value: &Value) -> bool {
    match kind {
        ParamKind::String => value.is_string(),
        ParamKind::Integer => value.is_i64() || value.is_u64(),
        ParamKind::Number => value.is_number(),
        ParamKind::Boolean => value.is_boolean(),
        ParamKind::Array => value.is_array(),
        ParamKind::Object => value.is_object(),
    }
}

#[cfg(test)]
mod tests;
