//! Refreshing charms and resources, replacing pods.

use std::sync::Arc;

use juju_sim::DeployRequest;
use juju_sim::Options;
use juju_sim::RefreshRequest;
use juju_sim::cloud::NoCloud;

use crate::lab::Lab;
use crate::lab::options;
use crate::lab::write_charm;

fn next(lab: &Lab, script: &str) -> RefreshRequest {
    let dir = lab.root.path().join("next");
    write_charm(&dir, "meshy", "", script);
    RefreshRequest {
        charm: Some(dir),
        ..RefreshRequest::default()
    }
}

#[test]
fn a_refresh_replaces_the_pod_highest_unit_first() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "echo old > ../which; : > leftover");
    lab.model
        .deploy(&DeployRequest::new(charm).with_units(2))
        .unwrap();
    lab.model.advance().unwrap();
    let before = lab.model.hook_log().unwrap().len();
    let request = next(&lab, "[ ! -e leftover ]; echo new > ../which");
    lab.model.refresh("meshy", &request).unwrap();
    lab.model.advance().unwrap();
    let log = lab.model.hook_log().unwrap();
    let ran: Vec<String> = log[before..]
        .iter()
        .map(|r| format!("{} {}", r.unit, r.hook))
        .collect();
    let each = |unit: &str| {
        ["stop", "upgrade-charm", "config-changed", "start"].map(|hook| format!("{unit} {hook}"))
    };
    assert_eq!(ran, [each("meshy/1"), each("meshy/0")].concat());
    assert_eq!(lab.wrote("meshy/0", "../which"), "new\n");
    assert_eq!(lab.model.status()["applications"]["meshy"]["charm-rev"], 1);
}

#[test]
fn a_refresh_in_place_runs_upgrade_charm_and_config_changed() {
    let mut lab = Lab::with(
        Options {
            refresh_restarts: false,
            ..options()
        },
        Arc::new(NoCloud),
    );
    lab.deploy("meshy", "", "");
    let before = lab.hooks("meshy/0").len();
    let request = next(&lab, "");
    lab.model.refresh("meshy", &request).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.hooks("meshy/0")[before..],
        ["upgrade-charm", "config-changed"]
    );
}

#[test]
fn a_unit_in_error_takes_a_new_charm_only_by_force() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", "[ $hook != start ]");
    let mut request = next(&lab, "");
    lab.model.refresh("meshy", &request).unwrap();
    lab.wait(5);
    assert_eq!(
        lab.model.failed_units(),
        ["meshy/0"],
        "it still runs the old charm"
    );
    request.force_units = true;
    lab.model.refresh("meshy", &request).unwrap();
    lab.wait(10);
    assert!(lab.model.failed_units().is_empty());
    assert!(!lab.hooks("meshy/0").contains(&"upgrade-charm".to_owned()));
}

#[test]
fn a_refresh_that_would_break_a_relation_is_refused() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "provides: {out: {interface: cups}}\n", "");
    lab.deploy("taker", "requires: {in: {interface: cups}}\n", "");
    lab.model.integrate("meshy", "taker").unwrap();
    let request = next(&lab, "");
    let text = lab
        .model
        .refresh("meshy", &request)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("would break relation \"meshy:out\""),
        "{text}"
    );
}

#[test]
fn an_attached_resource_is_fetched_and_announced() {
    let mut lab = Lab::new();
    let charm = lab.charm(
        "meshy",
        "resources: {bundle: {type: file, filename: bundle.tgz}}\n",
        "resource-get bundle > ../path 2> ../err || true; [ ! -s ../path ] || cat $(cat ../path) > ../content",
    );
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.wrote("meshy/0", "../err"),
        "ERROR could not download resource: resource#meshy/bundle not found\n"
    );
    let file = lab.root.path().join("any-name");
    std::fs::write(&file, "charts").unwrap();
    let resources = [("bundle".to_owned(), file.to_string_lossy().into_owned())].into();
    lab.model.attach("meshy", &resources).unwrap();
    lab.model.advance().unwrap();
    let hooks = lab.hooks("meshy/0");
    assert_eq!(
        hooks[hooks.len() - 2..],
        ["upgrade-charm", "config-changed"]
    );
    assert!(
        lab.wrote("meshy/0", "../path").ends_with("/bundle.tgz"),
        "no newline behind the path"
    );
    assert_eq!(lab.wrote("meshy/0", "../content"), "charts");
}

#[test]
fn a_replaced_pod_starts_again_with_an_empty_charm_directory() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", ": > leftover");
    for (killed, expect) in [
        (
            false,
            &["stop", "upgrade-charm", "config-changed", "start"][..],
        ),
        (true, &["upgrade-charm", "config-changed", "start"][..]),
    ] {
        let before = lab.hooks("meshy/0").len();
        lab.model.restart_unit("meshy/0", killed).unwrap();
        lab.model.advance().unwrap();
        assert_eq!(lab.hooks("meshy/0")[before..], *expect);
    }
}
