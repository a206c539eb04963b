//! Failing hooks: error status, retries, resolving, signals, time limits, a killed simulator.

use std::sync::Arc;
use std::time::Duration;

use juju_sim::DeployRequest;
use juju_sim::Model;
use juju_sim::Options;
use juju_sim::cloud::NoCloud;
use serde_json::Map;

use crate::lab::Lab;
use crate::lab::options;

const FAILING: &str = "[ $hook != start ] || [ -e ../healed ]";

#[test]
fn a_failed_hook_is_retried_with_growing_pauses() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", FAILING);
    let tries = |lab: &Lab| {
        lab.hooks("meshy/0")
            .iter()
            .filter(|h| *h == "start")
            .count()
    };
    assert_eq!(tries(&lab), 1);
    let mut expect = 1;
    for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
        lab.wait(pause - 1);
        assert_eq!(tries(&lab), expect, "before {pause} s");
        lab.wait(1);
        expect += 1;
        assert_eq!(tries(&lab), expect, "after {pause} s");
    }
}

#[test]
fn nothing_else_runs_while_a_unit_is_in_error() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", FAILING);
    lab.model.trust("meshy", true).unwrap();
    lab.model.fire_update_status("meshy").unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.hooks("meshy/0").last().unwrap(), "start");
    assert_eq!(lab.status("meshy/0"), "error: hook failed: \"start\"");
    let agent = lab.model.status();
    let agent = &agent["applications"]["meshy"]["units"]["meshy/0"]["juju-status"]["current"];
    assert_eq!(agent, "idle");
}

#[test]
fn without_automatic_retries_only_resolve_goes_on() {
    let mut lab = Lab::new();
    lab.model
        .set_model_config("automatically-retry-hooks", "false")
        .unwrap();
    lab.deploy("meshy", "", FAILING);
    lab.wait(3600);
    assert_eq!(
        lab.hooks("meshy/0")
            .iter()
            .filter(|h| *h == "start")
            .count(),
        1
    );
    lab.model.resolve("meshy/0", true).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.hooks("meshy/0")
            .iter()
            .filter(|h| *h == "start")
            .count(),
        2
    );
    assert_eq!(lab.model.failed_units(), ["meshy/0"]);
    lab.model.resolve("meshy/0", false).unwrap();
    lab.model.advance().unwrap();
    assert!(lab.model.failed_units().is_empty());
    assert!(
        lab.model.resolve("meshy/0", false).is_err(),
        "there is nothing to resolve"
    );
}

#[test]
fn actions_run_on_a_unit_in_error() {
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", FAILING);
    std::fs::write(charm.join("actions.yaml"), "heal: {}\n").unwrap();
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    let result = lab.model.run("meshy/0", "heal", Map::new()).unwrap();
    assert_eq!(result.status, "completed");
    assert_eq!(lab.model.failed_units(), ["meshy/0"]);
}

#[test]
fn a_hook_that_is_killed_is_run_again_without_an_error() {
    let mut lab = Lab::new();
    lab.deploy(
        "meshy",
        "",
        "[ $hook != start ] || [ -e ../once ] || { : > ../once; kill -9 $$; }",
    );
    let starts: Vec<_> = lab
        .records("meshy/0")
        .into_iter()
        .filter(|r| r.hook == "start")
        .map(|r| r.ok)
        .collect();
    assert_eq!(starts, [false, true]);
    assert_eq!(lab.status("meshy/0"), "unknown: ");
}

#[test]
fn a_hook_over_its_time_limit_is_killed_and_fails() {
    let options = Options {
        hook_limit: Duration::from_millis(200),
        ..options()
    };
    let mut lab = Lab::with(options, Arc::new(NoCloud));
    lab.deploy("meshy", "", "[ $hook != start ] || sleep 600");
    assert_eq!(lab.status("meshy/0"), "error: hook failed: \"start\"");
}

#[test]
fn a_dispatch_that_is_not_executable_fails_the_hook() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut lab = Lab::new();
    let charm = lab.charm("meshy", "", "");
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(charm.join("dispatch"), mode).unwrap();
    lab.model.deploy(&DeployRequest::new(charm)).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.status("meshy/0"), "error: hook failed: \"install\"");
}

#[test]
fn a_forced_removal_does_not_wait_for_failing_hooks() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", "[ $hook != stop ]");
    lab.model.remove_application("meshy", false).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(lab.model.failed_units(), ["meshy/0"]);
    lab.model.remove_application("meshy", true).unwrap();
    lab.model.advance().unwrap();
    assert!(lab.model.application_names().is_empty());
}

#[test]
fn a_reopened_model_goes_on_where_it_was() {
    let mut lab = Lab::new();
    lab.deploy("meshy", "", FAILING);
    let dir = lab.model.dir().to_owned();
    let clock = Arc::clone(&lab.clock);
    drop(lab.model);
    clock.advance(Duration::from_secs(5));
    lab.model = Model::open(&dir, Arc::new(NoCloud), clock, options()).unwrap();
    lab.model.advance().unwrap();
    assert_eq!(
        lab.hooks("meshy/0")
            .iter()
            .filter(|h| *h == "start")
            .count(),
        2
    );
}
