//! The charm's hooks and action, run against a simulated model.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use greeter::{Greet, Greeter, Settings};
use juju_charm::{Event, NoWorld, Status, StatusMessage};
use juju_sim::scenario::{Relation, Scenario, State};
use serde_json::json;

fn scenario() -> Scenario<Greeter> {
    Scenario::new().unwrap()
}

/// The leader of an application that one other is related to.
fn state() -> State {
    let relation = Relation::new("greeting", 7, "web");
    scenario().state("greeter/0").leader().relation(relation)
}

fn hook(state: &State) -> State {
    let after = scenario().run(Event::ConfigChanged, state, NoWorld);
    after.unwrap()
}

#[test]
fn related_applications_are_greeted() {
    let after = hook(&state().config("times", 2));
    assert_eq!(
        after.get(7).unwrap().local_app_data["greeting"],
        "hello hello"
    );
    assert_eq!(after.unit_status, StatusMessage::active("").into());
}

#[test]
fn a_bad_option_is_named_with_its_cure() {
    let after = hook(&state().config("times", 12));
    let expect = "option times: 12 is not between 1 and 9; run: juju config greeter times=VALUE";
    assert_eq!(
        after.unit_status,
        StatusMessage::new(Status::Blocked, expect).into()
    );
    assert!(after.get(7).unwrap().local_app_data.is_empty());
}

#[test]
fn somebody_is_greeted_by_an_action() {
    let after = scenario().run_action("greet", &json!({"name": "Ada"}), &state(), NoWorld);
    let answer = after.unwrap().record.action;
    assert_eq!(answer.results["greeting"], "hello Ada");
}

#[test]
fn the_types_agree_with_what_is_declared() {
    let scenario = scenario();
    let none: [&str; 0] = [];
    assert_eq!(scenario.metadata().config_disagreements::<Settings>(), none);
    assert_eq!(
        scenario.metadata().action_disagreements::<Greet>("greet"),
        none
    );
}
