//! Workload containers: a charm on this library, and the Pebble that it finds.

use std::path::PathBuf;

use juju_sim::DeployRequest;

use crate::lab::{Lab, packed};

const UNIT: &str = "tender/0";

fn deployed() -> Lab {
    let mut lab = Lab::new();
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tender-charm"));
    let charm = packed(
        lab.root.path(),
        "tender",
        include_str!("tender.yaml"),
        &program,
    );
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    lab
}

fn command(lab: &mut Lab, command: &str) {
    let values = [("command".to_owned(), command.into())].into();
    lab.model.set_config("tender", &values).unwrap();
    lab.model.advance().unwrap();
}

#[test]
fn pebble_answers_behind_start_and_not_before() {
    let lab = deployed();
    let hooks = lab.hooks(UNIT);
    assert_eq!(
        hooks,
        [
            "install",
            "leader-elected",
            "config-changed",
            "start",
            "web-pebble-ready"
        ]
    );
    assert_eq!(lab.status(UNIT), "active: web is active");
    let log = lab.model.debug_log().unwrap();
    let waiting = log.matches("the container is not up").count();
    assert!(waiting >= 4, "every hook before says so: {log}");
}

#[test]
fn a_service_that_ends_at_once_is_an_error_and_its_mend_is_none() {
    let mut lab = deployed();
    command(&mut lab, "false");
    let status = lab.status(UNIT);
    assert!(
        status.starts_with("blocked: pebble's change 2 failed: cannot perform the following tasks"),
        "{status}"
    );
    command(&mut lab, "serve");
    assert_eq!(lab.status(UNIT), "active: web is active");
}

#[test]
fn checks_that_fail_and_recover_are_told_once() {
    let mut lab = deployed();
    for healthy in [false, false, true, true] {
        lab.model.set_check(UNIT, "web", "alive", healthy).unwrap();
        lab.model.advance().unwrap();
    }
    let hooks = lab.hooks(UNIT);
    assert_eq!(
        hooks[hooks.len() - 2..],
        ["web-pebble-check-failed", "web-pebble-check-recovered"]
    );
    let refused = lab
        .model
        .set_check(UNIT, "web", "other", false)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "container \"web\" has no check \"other\""
    );
    let refused = lab.model.set_check(UNIT, "db", "alive", false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "unit \"tender/0\" has no container \"db\""
    );
}

#[test]
fn a_container_that_restarts_has_lost_its_plan_and_is_ready_again() {
    let mut lab = deployed();
    lab.model.set_container(UNIT, "web", false).unwrap();
    lab.wait(300);
    assert_eq!(lab.status(UNIT), "waiting: the container is not up");
    lab.model.set_container(UNIT, "web", true).unwrap();
    let refused = lab.model.set_check(UNIT, "web", "alive", false);
    assert!(refused.is_err(), "its plan is empty");
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks(UNIT).last().unwrap(), "web-pebble-ready");
    assert_eq!(lab.status(UNIT), "active: web is active");
}

#[test]
fn a_new_pod_has_new_containers() {
    let mut lab = deployed();
    lab.model.restart_unit(UNIT, false).unwrap();
    lab.model.advance().unwrap();
    let hooks = lab.hooks(UNIT);
    assert_eq!(
        hooks[5..],
        [
            "stop",
            "upgrade-charm",
            "config-changed",
            "start",
            "web-pebble-ready"
        ]
    );
    assert_eq!(lab.status(UNIT), "active: web is active");
}
