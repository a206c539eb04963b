//! What an action does.

use crate::meshy::{Cluster, Failure, Meshy};
use juju_sim::scenario::{Relation, Scenario, ScenarioError, State};
use serde_json::json;

fn scenario() -> Scenario<Meshy> {
    Scenario::new().unwrap()
}

fn state() -> State {
    scenario()
        .state("meshy/0")
        .leader()
        .relation(Relation::new("mesh-info", 7, "web"))
}

fn act(name: &str, params: &serde_json::Value, state: &State, cluster: &Cluster) -> State {
    scenario().run_action(name, params, state, cluster).unwrap()
}

#[test]
fn a_plan_is_answered_and_nothing_is_written() {
    let cluster = Cluster::default();
    let after = act("plan", &json!({}), &state(), &cluster);
    let answer = &after.record.action;
    assert_eq!(
        (
            answer.results["plan"].as_str(),
            answer.results["depth"].as_str()
        ),
        ("web", "3")
    );
    assert_eq!(
        (&answer.failure, answer.log.as_slice()),
        (&None, ["planned".to_owned()].as_slice())
    );
    assert!(cluster.applied.borrow().is_empty());
    assert_eq!(
        State {
            record: state().record,
            ..after
        },
        state()
    );
}

#[test]
fn a_blocked_unit_still_answers() {
    let state = state().config("text", "bad");
    let after = act("plan", &json!({ "depth": 1 }), &state, &Cluster::default());
    let answer = &after.record.action;
    assert_eq!(answer.failure.as_deref(), Some("no plan"));
    assert_eq!(answer.results["depth"], "1");
    assert_eq!(
        answer.results["problems.0"],
        "option text is bad; run: juju config meshy text=good"
    );
}

#[test]
fn a_plan_that_cannot_be_had_is_told_with_the_reason() {
    let cluster = Cluster {
        plan_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let after = act("plan", &json!({}), &state(), &cluster);
    assert_eq!(after.record.action.failure.as_deref(), Some("no plan"));
    assert_eq!(
        after.record.action.results["problems.0"],
        "cluster not reachable"
    );
}

#[test]
fn without_a_cluster_the_action_fails_with_the_reason() {
    let cluster = Cluster {
        observe_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let after = act("describe", &json!({}), &state(), &cluster);
    assert_eq!(
        after.record.action.failure.as_deref(),
        Some("cluster not reachable")
    );
    assert_eq!(after.unit_status, state().unit_status);
}

#[test]
fn a_result_longer_than_an_argument_is_cut_and_says_so() {
    let after = act(
        "describe",
        &json!({ "key": "log" }),
        &state(),
        &Cluster::default(),
    );
    let value = &after.record.action.results["log"];
    assert_eq!("log=".len() + value.len(), 131_071);
    assert!(value.ends_with("x\n[cut: 200000 bytes in full]"));
}

#[test]
fn a_reserved_result_key_never_reaches_juju() {
    for key in ["stdout", "return-code", "Not-Valid"] {
        let params = json!({ "key": key });
        let failed = scenario().run_action("describe", &params, &state(), Cluster::default());
        let failed = failed.unwrap_err();
        assert!(matches!(failed, ScenarioError::Hook { .. }), "{failed}");
        assert_eq!(failed.state().unwrap().record.count("action-set"), 0);
    }
}
