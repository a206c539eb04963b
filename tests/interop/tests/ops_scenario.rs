//! One charm on `ops`, under the simulator and in ops-scenario: the same hooks leave the same databags, statuses,
//! secrets, deferred events and stored state, and actions the same results.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use interop::charm_files::pack_python;
use interop::peers::ask;
use interop::venv::{Venv, scripts};
use juju_sim::clock::ManualClock;
use juju_sim::cloud::NoCloud;
use juju_sim::record::HookRecord;
use juju_sim::{DeployRequest, Model, Options};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

const UNIT: &str = "ledger/0";
/// What Juju and ops-scenario each fill in.
const ADDRESSES: [&str; 3] = ["ingress-address", "private-address", "egress-subnets"];

/// A model with the charm and an application to relate it to, and all that has happened to the charm.
struct Both {
    model: Model,
    relation: Option<u32>,
    config: Value,
    hooks: Vec<Value>,
    results: Vec<Value>,
    seen: u64,
    compared: usize,
    _dir: TempDir,
}

impl Both {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::at(1_800_000_000));
        let mut model = Model::open(dir.path(), Arc::new(NoCloud), clock, options).unwrap();
        let venv = Venv::ready().unwrap();
        for charm in ["ledger", "listener"] {
            let path = pack_python(charm, &venv).unwrap();
            model.deploy(&DeployRequest::new(path)).unwrap();
        }
        Self {
            model,
            relation: None,
            config: json!({}),
            hooks: Vec::new(),
            results: Vec::new(),
            seen: 0,
            compared: 0,
            _dir: dir,
        }
    }

    /// Lets the model settle, replays what the charm went through, and compares.
    fn agree(&mut self, what: &str, params: Option<&Value>) {
        self.model.advance().unwrap();
        let remote = self.remote();
        for record in self.model.hook_log().unwrap() {
            if record.seq <= self.seen && self.seen != 0 || record.unit != UNIT {
                continue;
            }
            self.seen = record.seq;
            assert!(record.ok, "{record:?}\n{}", self.model.debug_log().unwrap());
            if record.hook != "juju-exec" {
                self.hooks.push(self.hook(&record, &remote, params));
            }
        }
        let question = json!({"charm": scripts().join("charms/ledger"), "hooks": self.hooks});
        let theirs: Value = ask("beside", &[question]).unwrap().remove(0);
        let ours = self.traces();
        for (key, ours) in ours.as_object().unwrap() {
            let theirs = without_ids(&theirs[key]);
            assert_eq!(*ours, theirs, "{what}: {key}");
            self.compared += 1;
        }
        self.last_seen();
    }

    /// What was looked at by `juju-exec` is no history of the charm's.
    fn last_seen(&mut self) {
        let log = self.model.hook_log().unwrap();
        self.seen = log.last().map_or(0, |record| record.seq);
    }

    fn hook(&self, record: &HookRecord, remote: &Value, params: Option<&Value>) -> Value {
        let relation = record.relation_id.as_deref();
        let relation = relation.map(|id| id.rsplit(':').next().unwrap().parse::<u32>().unwrap());
        let unit = record.remote_unit.as_deref();
        let unit = unit.map(|unit| unit.rsplit('/').next().unwrap().parse::<u32>().unwrap());
        let mut hook = json!({
            "hook": record.hook, "relation": relation, "unit": unit, "config": self.config,
            "remote": remote,
        });
        if let (Some(params), "total") = (params, record.hook.as_str()) {
            hook["params"] = params.clone();
        }
        hook
    }

    /// The other side of the relation.
    fn remote(&self) -> Value {
        let Some(relation) = self.relation else {
            return json!({});
        };
        let bag = |owner: &str| self.model.databag(relation, owner).unwrap_or_default();
        json!({relation.to_string(): {
            "endpoint": "entry", "app": bag("listener"), "units": {"0": bag("listener/0")},
        }})
    }

    fn traces(&mut self) -> Value {
        let status = self.model.status();
        let app = &status["applications"]["ledger"];
        let pair = |status: &Value| {
            json!([
                status["current"],
                status["message"].as_str().unwrap_or_default()
            ])
        };
        let mut bags = Map::new();
        if let Some(relation) = self.relation
            && self.model.databag(relation, "ledger").is_some()
        {
            let own = |owner: &str| {
                let mut bag = self.model.databag(relation, owner).unwrap();
                bag.retain(|key, _| !ADDRESSES.contains(&key.as_str()));
                bag
            };
            bags.insert(
                relation.to_string(),
                json!({"app": own("ledger"), "unit": own(UNIT)}),
            );
        }
        let kept: Value = ask(
            "beside",
            &[json!({
                "database": self.model.charm_dir(UNIT).join(".unit-state.db"),
                "stored": "Ledger/StoredStateData[_stored]",
            })],
        )
        .unwrap()
        .remove(0);
        json!({
            "unit_status": pair(&app["units"][UNIT]["workload-status"]),
            "app_status": pair(&app["application-status"]),
            "bags": without_ids(&Value::Object(bags)),
            "secrets": self.secrets(),
            "deferred": kept["deferred"],
            "stored": kept["stored"],
            "results": self.results,
        })
    }

    /// The secrets, by label, as their owner and the other side see them.
    fn secrets(&mut self) -> Value {
        let listing = self.model.secrets();
        let mut found = BTreeMap::new();
        for (id, secret) in listing.as_object().into_iter().flatten() {
            let get = format!("secret-get secret:{id} --peek --format=json");
            let content = self.model.exec(UNIT, &get).unwrap();
            assert_eq!(content.status, "completed", "{content:?}");
            let content: Value =
                serde_json::from_str(content.results["stdout"].as_str().unwrap()).unwrap();
            let get = format!("secret-get secret:{id}");
            let granted = self.model.exec("listener/0", &get);
            let owner = secret["owner"].as_str().unwrap();
            let label = secret["label"].as_str().unwrap().to_owned();
            found.insert(
                label.clone(),
                json!({
                    "owner": if owner.contains('/') { "unit" } else { "app" },
                    "label": label,
                    "content": content,
                    "granted": granted.is_ok_and(|task| task.status == "completed"),
                }),
            );
        }
        found.into_values().collect()
    }

    fn set(&mut self, option: &str, value: Value) {
        let options = BTreeMap::from([(option.to_owned(), value.clone())]);
        self.model.set_config("ledger", &options).unwrap();
        self.config[option] = value;
    }
}

/// Ids of secrets are random on both sides.
fn without_ids(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("secret:") => json!("secret:…"),
        Value::Array(items) => items.iter().map(without_ids).collect(),
        Value::Object(fields) => {
            let each = fields
                .iter()
                .map(|(key, value)| (key.clone(), without_ids(value)));
            Value::Object(each.collect())
        }
        value => value.clone(),
    }
}

#[test]
fn a_model_and_ops_scenario_agree_on_every_trace_of_a_charms_life() {
    let mut both = Both::new();
    both.agree("deployed", None);

    both.relation = Some(
        both.model
            .integrate("ledger:entry", "listener:source")
            .unwrap(),
    );
    both.agree("related, and its entry deferred", None);

    both.model.fire_update_status("ledger").unwrap();
    both.agree("deferred once more", None);

    let relation = both.relation.unwrap();
    let word = format!("relation-set -r {relation} word='1e3 \"ü\"'");
    both.model.exec("listener/0", &word).unwrap();
    both.agree("a second event of the kind deferred", None);

    both.set("ink", json!("red *a"));
    both.agree("a new revision of a secret", None);

    both.set("ready", json!(true));
    both.agree("all that was deferred handled", None);

    let params = Map::from_iter([("times".to_owned(), json!(3))]);
    let task = both.model.run(UNIT, "total", params.clone()).unwrap();
    both.results
        .push(json!({"total": task.results["total"].as_str().unwrap()}));
    both.agree("an action", Some(&Value::Object(params)));

    both.model
        .exec("listener/0", &format!("relation-set -r {relation} word="))
        .unwrap();
    both.agree("a word taken back", None);

    both.model
        .remove_relation("ledger:entry", "listener:source")
        .unwrap();
    both.agree("the relation gone, and with it the secrets", None);
    assert_eq!(both.compared, 9 * 7);
}
