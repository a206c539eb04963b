//! Work: what a charm does that is no set of objects.

use crate::meshy::{Cluster, Failure, Meshy};
use juju_charm::{Event, Status, StatusMessage};
use juju_hooks::LogLevel;
use juju_sim::scenario::{Record, Relation, Scenario, ScenarioError, State};
use serde_json::{Map, json};

fn scenario() -> Scenario<Meshy> {
    Scenario::new().unwrap()
}

/// Two applications to move.
fn state() -> State {
    let state = scenario().state("meshy/0").leader();
    state
        .relation(Relation::new("mesh-info", 7, "web"))
        .relation(Relation::new("mesh-info", 8, "shop"))
}

fn act(state: &State, cluster: &Cluster) -> Record {
    let after = scenario().run_action("move", &json!({}), state, cluster);
    after.unwrap().record
}

fn hook(cluster: &Cluster) -> State {
    let state = state().config("text", "move");
    let after = scenario().run(Event::ConfigChanged, &state, cluster);
    after.unwrap()
}

const MOVED: [&str; 2] = ["moved web (1/2)", "moved shop (2/2)"];

#[test]
fn an_action_works_and_whoever_runs_it_sees_how_far_it_is() {
    let record = act(&state(), &Cluster::default());
    assert_eq!(record.action.failure, None);
    assert_eq!(record.action.results["moved"], "2");
    assert_eq!(record.action.log, MOVED);
    let debug: Vec<&str> = record.log.iter().map(|(_, line)| line.as_str()).collect();
    assert_eq!(debug, ["moving web", "moving shop"]);
}

#[test]
fn work_that_fails_fails_the_action_with_the_reason() {
    let cluster = Cluster {
        work_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let record = act(&state(), &cluster);
    let answer = record.action;
    assert_eq!(answer.failure.as_deref(), Some("cluster not reachable"));
    assert_eq!(answer.log, [MOVED[0]]);
    assert!(answer.results.is_empty(), "{answer:?}");
}

#[test]
fn an_action_whose_plan_failed_does_no_work() {
    let cluster = Cluster {
        plan_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let after = scenario().run_action("move", &json!({"plan": true}), &state(), &cluster);
    let answer = after.unwrap().record.action;
    assert_eq!(answer.results["problems.0"], "cluster not reachable");
    assert!(!answer.results.contains_key("moved"), "{answer:?}");
    assert!(answer.log.is_empty(), "{answer:?}");
}

#[test]
fn work_that_fails_unforeseen_fails_the_process() {
    let cluster = Cluster {
        work_fails: Some(Failure::Bug),
        ..Cluster::default()
    };
    let failed = scenario().run_action("move", &json!({}), &state(), &cluster);
    let failed = failed.unwrap_err();
    assert!(matches!(failed, ScenarioError::Hook { .. }));
    assert_eq!(
        failed.to_string(),
        "the hook failed: cannot work: nobody thought of this"
    );
}

#[tokio::test(start_paused = true)]
async fn an_action_has_nine_minutes() {
    let cluster = Cluster {
        work_hangs: true,
        ..Cluster::default()
    };
    let event = Event::Action(juju_hooks::ActionCall {
        name: "move".to_owned(),
        id: "1".to_owned(),
    });
    let start = tokio::time::Instant::now();
    let after = scenario()
        .run_async(event, Map::new(), &state(), &cluster)
        .await
        .unwrap();
    assert_eq!(start.elapsed(), juju_charm::ACTION_DEADLINE);
    assert_eq!(
        after.record.action.failure.as_deref(),
        Some("cannot work within 540 s; run the action again to go on")
    );
}

#[test]
fn a_hook_works_after_it_applied_and_tells_the_log() {
    let cluster = Cluster::default();
    let after = hook(&cluster);
    assert_eq!(cluster.applied.borrow().len(), 1);
    assert_eq!(
        after.unit_status,
        StatusMessage::active("2 objects, 2 moved").into()
    );
    let lines: Vec<(LogLevel, &str)> = after
        .record
        .log
        .iter()
        .map(|(level, line)| (*level, line.as_str()))
        .collect();
    let told = [
        (LogLevel::Debug, "moving web"),
        (LogLevel::Info, MOVED[0]),
        (LogLevel::Debug, "moving shop"),
        (LogLevel::Info, MOVED[1]),
    ];
    assert_eq!(lines[..4], told);
    assert_eq!(after.record.count("action-log"), 0);
}

#[test]
fn work_that_fails_in_a_hook_is_a_status() {
    let cluster = Cluster {
        work_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let after = hook(&cluster);
    let expect = StatusMessage::new(Status::Waiting, "cluster not reachable");
    assert_eq!(after.unit_status, expect.into());
}

#[test]
fn nothing_is_worked_on_unless_all_was_applied() {
    let cluster = Cluster {
        apply_fails: Some(Failure::Away),
        ..Cluster::default()
    };
    let after = hook(&cluster);
    let lines = after.record.log.iter().map(|(_, line)| line.as_str());
    assert!(
        lines.into_iter().all(|line| !line.contains("moving")),
        "{:?}",
        after.record.log
    );
    let follower = State {
        leader: false,
        ..state().config("text", "move")
    };
    let cluster = Cluster::default();
    let after = scenario()
        .run(Event::ConfigChanged, &follower, &cluster)
        .unwrap();
    assert_eq!(after.unit_status, StatusMessage::active("").into());
}
