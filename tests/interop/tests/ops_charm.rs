//! Charms that nobody here wrote the framework of, in the simulator: what an `ops` charm and a
//! shell charm see is what Juju would show them.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use interop::charm_files::pack_python;
use interop::venv::Venv;
use juju_sim::clock::ManualClock;
use juju_sim::cloud::NoCloud;
use juju_sim::{DeployRequest, Model, Options, RefreshRequest};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

struct Lab {
    model: Model,
    _dir: TempDir,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            jujuc: Some(env!("CARGO_BIN_EXE_simulator").into()),
            ..Options::default()
        };
        let clock = Arc::new(ManualClock::at(1_800_000_000));
        let model = Model::open(dir.path(), Arc::new(NoCloud), clock, options).unwrap();
        Self { model, _dir: dir }
    }

    /// Deploys a charm of this crate and lets its agents run.
    fn deploy(&mut self, charm: &str) {
        let path = pack_python(charm, &Venv::ready().unwrap()).unwrap();
        self.model.deploy(&DeployRequest::new(path)).unwrap();
        self.advance();
    }

    fn advance(&mut self) {
        self.model.advance().unwrap();
        for hook in self.model.hook_log().unwrap() {
            let expected = hook.hook == "refuse";
            assert!(
                hook.ok || expected,
                "{hook:?}\n{}",
                self.model.debug_log().unwrap()
            );
        }
    }

    /// What the witness has noted, from that event on.
    fn history(&mut self, unit: &str, since: usize) -> Vec<String> {
        let params = Map::from_iter([("since".to_owned(), json!(since))]);
        let task = self.model.run(unit, "history", params).unwrap();
        assert_eq!(task.status, "completed", "{task:?}");
        assert_eq!(task.log.len(), 1, "{task:?}");
        let events = task.results["events"].as_str().unwrap();
        events.lines().map(str::to_owned).collect()
    }

    fn status(&self, app: &str) -> (String, String) {
        let status = &self.model.status()["applications"][app]["application-status"];
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        (text("current"), text("message"))
    }
}

const DEPLOYED: [&str; 5] = [
    "install",
    "circle-relation-created witness",
    "leader-elected",
    "config-changed",
    "start",
];

#[test]
fn an_ops_charm_gets_its_events_in_jujus_order() {
    let mut lab = Lab::new();
    lab.deploy("witness");
    assert_eq!(lab.history("witness/0", 0), DEPLOYED);

    lab.deploy("listener");
    lab.model
        .integrate("witness:greeting", "listener:source")
        .unwrap();
    lab.advance();
    let mut since = DEPLOYED.len();
    assert_eq!(
        lab.history("witness/0", since),
        [
            "greeting-relation-created listener",
            "greeting-relation-joined listener/0",
            "greeting-relation-changed listener/0",
        ]
    );

    since += 3;
    lab.model.fire_update_status("witness").unwrap();
    lab.model
        .remove_relation("witness:greeting", "listener:source")
        .unwrap();
    lab.advance();
    let history = lab.history("witness/0", since);
    assert_eq!(
        history,
        [
            "greeting-relation-departed listener/0",
            "greeting-relation-broken listener",
            "update-status",
        ]
    );
    assert_eq!(lab.status("listener").0, "waiting");
}

#[test]
fn a_second_unit_is_no_leader_and_both_hear_of_each_other() {
    let mut lab = Lab::new();
    lab.deploy("witness");
    lab.model.add_units("witness", 1).unwrap();
    lab.advance();
    assert_eq!(
        lab.history("witness/1", 0),
        [
            "install",
            "circle-relation-created witness",
            "config-changed",
            "start",
            "circle-relation-joined witness/0",
            "circle-relation-changed witness/0",
        ]
    );
    assert_eq!(
        lab.history("witness/0", DEPLOYED.len()),
        [
            "circle-relation-joined witness/1",
            "circle-relation-changed witness/1"
        ]
    );
}

#[test]
fn a_new_pod_starts_again_and_has_lost_what_the_framework_kept_in_its_files() {
    let mut lab = Lab::new();
    lab.deploy("witness");
    lab.model
        .refresh("witness", &RefreshRequest::default())
        .unwrap();
    lab.model.restart_unit("witness/0", false).unwrap();
    lab.advance();
    assert_eq!(
        lab.history("witness/0", 0),
        ["upgrade-charm", "config-changed", "start"]
    );
}

#[test]
fn data_of_an_ops_charm_reach_a_charm_of_the_shell() {
    let mut lab = Lab::new();
    lab.deploy("listener");
    assert_eq!(
        lab.status("listener"),
        ("waiting".to_owned(), "nobody speaks".to_owned())
    );
    lab.deploy("witness");
    let relation = lab
        .model
        .integrate("witness:greeting", "listener:source")
        .unwrap();
    lab.advance();
    assert_eq!(
        lab.model.databag(relation, "witness").unwrap()["words"],
        "hello"
    );
    assert_eq!(
        lab.model.databag(relation, "witness/0").unwrap()["speaker"],
        "witness/0"
    );
    let (status, message) = lab.status("listener");
    assert_eq!(status, "active");
    assert!(message.starts_with("heard: hello"), "{message}");

    // The text would be a number, an alias or two lines to a careless reader.
    let config = [("greeting", "1e3 *a\n\u{1f4d6} \"x\""), ("times", "2")]
        .map(|(key, value)| (key.to_owned(), Value::from(value)));
    lab.model.set_config("witness", &config.into()).unwrap();
    lab.advance();
    let words = "1e3 *a\n\u{1f4d6} \"x\" 1e3 *a\n\u{1f4d6} \"x\"";
    assert_eq!(
        lab.model.databag(relation, "witness").unwrap()["words"],
        words
    );
    let expect = format!("heard: {words}");
    assert_eq!(lab.status("listener"), ("active".to_owned(), expect));
}

#[test]
fn an_action_that_fails_keeps_its_results() {
    let mut lab = Lab::new();
    lab.deploy("witness");
    let task = lab
        .model
        .run("witness/leader", "refuse", Map::new())
        .unwrap();
    assert_eq!(
        (task.status.as_str(), task.message.as_str()),
        ("failed", "refused")
    );
    assert_eq!(task.results["reason"], "asked to");
    assert_eq!(task.unit, "witness/0");
    assert_eq!(
        lab.status("witness"),
        ("active".to_owned(), "noted 5".to_owned())
    );
}

#[test]
fn an_action_is_refused_parameters_it_does_not_declare() {
    let mut lab = Lab::new();
    lab.deploy("witness");
    for params in [
        json!({"until": 3}),
        json!({"since": "three"}),
        json!({"since": 1.5}),
    ] {
        let Value::Object(params) = params else {
            panic!("{params}")
        };
        let error = lab
            .model
            .run("witness/0", "history", params.clone())
            .unwrap_err();
        assert!(
            error.to_string().starts_with("validation failed"),
            "{params:?}: {error}"
        );
    }
}
