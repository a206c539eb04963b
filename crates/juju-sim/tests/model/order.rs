//! In which order hooks run.

use std::sync::Arc;

use juju_sim::DeployRequest;
use juju_sim::Options;
use juju_sim::TeardownOrder;
use juju_sim::cloud::NoCloud;

use crate::lab::Lab;
use crate::lab::options;

const PEERS: &str = "peers: {mates: {interface: mates}}\n";

#[test]
fn a_new_leader_unit_goes_from_install_to_start() {
    let mut lab = Lab::new();
    lab.deploy("meshy", PEERS, "");
    assert_eq!(
        lab.hooks("meshy/0"),
        [
            "install",
            "mates-relation-created",
            "leader-elected",
            "config-changed",
            "start"
        ]
    );
}

#[test]
fn a_unit_that_does_not_lead_has_no_leader_elected() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "");
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks("meshy/1"), ["install", "config-changed", "start"]);
}

#[test]
fn a_relation_made_before_the_units_run_is_created_before_config_changed() {
    let mut lab = Lab::new();
    let giver = lab.charm("giver", "provides: {out: {interface: cups}}\n", "");
    let taker = lab.charm("taker", "requires: {in: {interface: cups}}\n", "");
    lab.model.deploy(&DeployRequest::new(giver)).unwrap();
    lab.model.deploy(&DeployRequest::new(taker)).unwrap();
    lab.model.integrate("giver", "taker").unwrap();
    lab.model.advance().unwrap();
    let expect = [
        "install",
        "in-relation-created",
        "leader-elected",
        "config-changed",
        "start",
        "in-relation-joined giver/0",
        "in-relation-changed giver/0",
    ];
    assert_eq!(lab.hooks("taker/0"), expect);
}

#[test]
fn equal_seeds_give_equal_orders() {
    let order = |seed| {
        let mut lab = Lab::with(Options { seed, ..options() }, Arc::new(NoCloud));
        let charm = lab.charm("meshy", PEERS, "");
        lab.model
            .deploy(&DeployRequest::new(charm).with_units(3))
            .unwrap();
        lab.model.advance().unwrap();
        let log = lab.model.hook_log().unwrap();
        log.into_iter()
            .map(|r| format!("{} {}", r.unit, r.hook))
            .collect::<Vec<_>>()
    };
    assert_eq!(order(7), order(7));
    assert_ne!(order(7), order(8));
}

#[test]
fn config_changed_runs_for_another_value_only() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "");
    std::fs::write(
        charm.join("config.yaml"),
        "options: {size: {type: int, default: 1}}\n",
    )
    .unwrap();
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    let before = lab.hooks("meshy/0").len();
    for (value, more) in [("2", 1), ("2", 1), ("3", 2)] {
        let values = [("size".to_owned(), value.into())].into();
        lab.model.set_config("meshy", &values).unwrap();
        lab.model.advance().unwrap();
        assert_eq!(lab.hooks("meshy/0").len(), before + more, "after {value}");
    }
    lab.model.trust("meshy", true).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks("meshy/0").last().unwrap(), "config-changed");
}

#[test]
fn update_status_runs_when_its_interval_is_over() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", "");
    let count = |lab: &Lab| {
        lab.hooks("meshy/0")
            .iter()
            .filter(|h| *h == "update-status")
            .count()
    };
    lab.wait(299);
    assert_eq!(count(&lab), 0);
    lab.wait(1);
    assert_eq!(count(&lab), 1);
    lab.model
        .set_model_config("update-status-hook-interval", "10s")
        .unwrap();
    lab.wait(10);
    assert_eq!(count(&lab), 2);
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(count(&lab), 3);
}

#[test]
fn an_application_leaves_by_broken_stop_and_remove() {
    for (order, tail) in [
        (
            TeardownOrder::RelationsFirst,
            [
                "in-relation-departed giver/0",
                "in-relation-broken",
                "stop",
                "remove",
            ],
        ),
        (
            TeardownOrder::StopFirst,
            [
                "stop",
                "in-relation-departed giver/0",
                "in-relation-broken",
                "remove",
            ],
        ),
    ] {
        let options = Options {
            teardown: order,
            ..options()
        };
        let mut lab = Lab::with(options, Arc::new(NoCloud));
        lab.deploy("giver", "provides: {out: {interface: cups}}\n", "");
        lab.deploy("taker", "requires: {in: {interface: cups}}\n", "");
        lab.model.integrate("giver", "taker").unwrap();
        lab.model.advance().unwrap();
        lab.model.remove_application("taker", false).unwrap();
        lab.model.advance().unwrap();
        let hooks = lab.hooks("taker/0");
        assert_eq!(hooks[hooks.len() - 4..], tail);
        assert_eq!(
            lab.hooks("giver/0")[5..],
            [
                "out-relation-joined taker/0",
                "out-relation-changed taker/0"
            ]
            .into_iter()
            .chain(["out-relation-departed taker/0", "out-relation-broken"])
            .collect::<Vec<_>>()
        );
        assert_eq!(lab.model.application_names(), ["giver"]);
    }
}

#[test]
fn scaling_goes_by_pod_ordinals_and_spares_the_leader() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "");
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    // Kubernetes removes the highest unit; the leader goes only with the whole application.
    lab.model.remove_units("meshy", 1, false).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.model.unit_name("meshy/leader").unwrap(), "meshy/0");
    lab.model.add_units("meshy", 1).unwrap();
    lab.model.advance().unwrap();
    let again = lab.hooks("meshy/1");
    assert_eq!(
        again[again.len() - 3..],
        ["install", "config-changed", "start"]
    );
}

#[test]
fn a_unit_removed_before_install_runs_nothing() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "");
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.remove_application("meshy", false).unwrap();
    lab.model.advance().unwrap();
    assert!(lab.hooks("meshy/0").is_empty());
    assert!(lab.model.application_names().is_empty());
}

#[test]
fn planned_units_leave_dying_ones_out() {
    let mut lab = Lab::new();
    let script = r"if [ $hook = remove ]; then goal-state --format=json > ../../goal.txt; fi";
    let charm = lab.charm("meshy", "", script);
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    lab.model.remove_units("meshy", 1, false).unwrap();
    lab.model.advance().unwrap();
    let goal = std::fs::read_to_string(lab.model.dir().join("agents/goal.txt")).unwrap();
    let goal: serde_json::Value = serde_json::from_str(&goal).unwrap();
    assert_eq!(goal["units"]["meshy/0"]["status"], "unknown");
    assert_eq!(goal["units"]["meshy/1"]["status"], "dying");
}
