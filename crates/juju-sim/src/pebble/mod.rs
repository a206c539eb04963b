//! Workload containers: what their Pebble remembers and answers. Nothing is run in them.
//!
//! Layers combine, services start and stop, and changes end as Pebble's do, at once. A service whose
//! command is `false` cannot be started: it ends too soon. Checks are what a test says they are.

pub(crate) mod plan;
pub(crate) mod server;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::plan::Layer;

/// One container's Pebble.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Container {
    /// Whether it answers.
    pub(crate) up: bool,
    /// Layers by label, in order.
    layers: Vec<(String, Layer)>,
    /// Services that run, each as the plan had it when it was started.
    running: BTreeMap<String, Value>,
    /// Services that ended too soon.
    failed: BTreeSet<String>,
    /// Checks that are down.
    down: BTreeSet<String>,
    /// How each change ended: kind and error.
    changes: Vec<(String, String)>,
}

/// What Pebble answers a request with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A result.
    Sync(Value),
    /// A change by its number, which is done already.
    Async(usize),
    /// HTTP status and message.
    Refused(u16, String),
}

impl Container {
    /// A container that was started: its Pebble answers and knows nothing.
    pub(crate) fn started() -> Self {
        Self {
            up: true,
            ..Self::default()
        }
    }

    /// Whether the plan has a check of that name.
    pub(crate) fn has_check(&self, name: &str) -> bool {
        self.plan().checks.contains_key(name)
    }

    /// Says how a check is; whether that is news.
    pub(crate) fn set_check(&mut self, name: &str, healthy: bool) -> bool {
        if healthy {
            self.down.remove(name)
        } else {
            self.down.insert(name.to_owned())
        }
    }

    /// The layers in one.
    fn plan(&self) -> Layer {
        let mut plan = Layer::default();
        for (_, layer) in &self.layers {
            plan.combine(layer);
        }
        plan
    }

    /// Answers one request.
    pub(crate) fn answer(&mut self, method: &str, target: &str, body: &Value) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let names = query
            .split('&')
            .find_map(|part| part.strip_prefix("names="));
        let names: Option<Vec<&str>> = names.map(|names| names.split(',').collect());
        let wanted = |name: &str| names.as_ref().is_none_or(|names| names.contains(&name));
        match (method, path) {
            ("GET", "/v1/system-info") => {
                Answer::Sync(json!({"version": "v1.19.0", "boot-id": "simulated"}))
            }
            ("GET", "/v1/plan") => match yaml::emit(&self.plan().document()) {
                Ok(text) => Answer::Sync(Value::from(text)),
                Err(error) => Answer::Refused(500, error.to_string()),
            },
            ("POST", "/v1/layers") => self.add_layer(body),
            ("GET", "/v1/services") => Answer::Sync(self.services(wanted)),
            ("POST", "/v1/services") => self.act(body),
            ("GET", "/v1/checks") => Answer::Sync(self.checks(wanted)),
            ("GET", path) => match path.strip_prefix("/v1/changes/") {
                Some(rest) => self.change(rest.strip_suffix("/wait").unwrap_or(rest)),
                None => Answer::Refused(404, "invalid API endpoint requested".into()),
            },
            _ => Answer::Refused(405, format!("method {method:?} not allowed")),
        }
    }

    fn add_layer(&mut self, body: &Value) -> Answer {
        let text = |key: &str| body[key].as_str().unwrap_or_default();
        if text("action") != "add" {
            return Answer::Refused(400, format!("invalid action {:?}", text("action")));
        }
        let label = text("label").to_owned();
        let layer = match Layer::parse(&label, text("layer")) {
            Ok(layer) => layer,
            Err(message) => return Answer::Refused(400, message),
        };
        match self.layers.iter_mut().find(|(known, _)| *known == label) {
            Some(_) if body["combine"] != true => {
                return Answer::Refused(400, format!("layer {label:?} already exists"));
            }
            Some((_, known)) => known.combine(&layer),
            None => self.layers.push((label, layer)),
        }
        Answer::Sync(json!(true))
    }

    fn services(&self, wanted: impl Fn(&str) -> bool) -> Value {
        let plan = self.plan();
        let service = |(name, body): (&String, &Map<String, Value>)| {
            let current = if self.running.contains_key(name) {
                "active"
            } else if self.failed.contains(name) {
                "error"
            } else {
                "inactive"
            };
            let startup = match body.get("startup") {
                Some(Value::String(startup)) => startup,
                _ => "disabled",
            };
            json!({"name": name, "startup": startup, "current": current})
        };
        let listed = plan.services.iter().filter(|(name, _)| wanted(name));
        listed.map(service).collect()
    }

    fn checks(&self, wanted: impl Fn(&str) -> bool) -> Value {
        let plan = self.plan();
        let check = |(name, body): (&String, &Map<String, Value>)| {
            let threshold = body.get("threshold").cloned().unwrap_or_else(|| json!(3));
            let down = self.down.contains(name);
            let failures = if down { threshold.clone() } else { json!(0) };
            let mut shown = json!({
                "name": name,
                "startup": body.get("startup").cloned().unwrap_or_else(|| json!("enabled")),
                "status": if down { "down" } else { "up" },
                "failures": failures,
                "threshold": threshold,
            });
            if let Some(level) = body.get("level") {
                shown["level"] = level.clone();
            }
            shown
        };
        let listed = plan.checks.iter().filter(|(name, _)| wanted(name));
        listed.map(check).collect()
    }

    /// Starts and stops services.
    fn act(&mut self, body: &Value) -> Answer {
        let plan = self.plan();
        let listed = body["services"].as_array().into_iter().flatten();
        let named: BTreeSet<String> = listed
            .filter_map(|v| Some(v.as_str()?.to_owned()))
            .collect();
        let enabled = plan
            .services
            .iter()
            .filter(|(_, service)| service.get("startup") == Some(&json!("enabled")))
            .map(|(name, _)| name.clone());
        let action = body["action"].as_str().unwrap_or_default();
        let (stop, start): (BTreeSet<String>, BTreeSet<String>) = match action {
            "start" => (BTreeSet::new(), named),
            "stop" => (named, BTreeSet::new()),
            "restart" => (named.clone(), named),
            "autostart" => (BTreeSet::new(), enabled.collect()),
            "replan" => {
                let changed = self.running.iter().filter(|(name, started)| {
                    plan.services.get(*name).map(|now| json!(now)).as_ref() != Some(*started)
                });
                let changed: BTreeSet<String> = changed.map(|(name, _)| name.clone()).collect();
                (changed.clone(), enabled.chain(changed).collect())
            }
            other => return Answer::Refused(400, format!("invalid action {other:?}")),
        };
        let unknown = |name: &&String| !plan.services.contains_key(*name);
        if let Some(name) = stop.union(&start).find(unknown)
            && action != "replan"
        {
            return Answer::Refused(400, format!("service {name:?} does not exist"));
        }
        for name in stop {
            self.running.remove(&name);
            self.failed.remove(&name);
        }
        let mut ended = Vec::new();
        for name in start {
            let Some(service) = plan.services.get(&name) else {
                continue;
            };
            let command = service
                .get("command")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let program = command.split_whitespace().next().unwrap_or_default();
            if program == "false" || program.ends_with("/false") {
                self.failed.insert(name.clone());
                ended.push(format!(
                    "\n- Start service {name:?} (cannot start service: exited quickly with code 1)"
                ));
            } else {
                self.failed.remove(&name);
                self.running.insert(name, json!(service));
            }
        }
        if !ended.is_empty() {
            ended.insert(0, "cannot perform the following tasks:".to_owned());
        }
        self.changes.push((action.to_owned(), ended.concat()));
        Answer::Async(self.changes.len())
    }

    fn change(&self, id: &str) -> Answer {
        let at = id.parse::<usize>().ok().and_then(|id| id.checked_sub(1));
        let Some((kind, error)) = at.and_then(|at| self.changes.get(at)) else {
            return Answer::Refused(404, format!("cannot find change with id {id:?}"));
        };
        let status = if error.is_empty() { "Done" } else { "Error" };
        let mut change = json!({
            "id": id, "kind": kind, "summary": kind, "status": status, "ready": true, "tasks": [],
        });
        if !error.is_empty() {
            change["err"] = json!(error);
        }
        Answer::Sync(change)
    }
}
