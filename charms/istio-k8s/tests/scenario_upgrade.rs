//! One release after another: in place, back, over several minors; and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod common;

use common::{Lab, Release};
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::{Value, json};

fn istiod() -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "Deployment", "istio-lab", "istiod")
}

fn templates(lab: &Lab) -> String {
    let config = lab.get("v1", "ConfigMap", "istio-sidecar-injector");
    config["data"]["config"].as_str().unwrap().to_owned()
}

/// The first write of an object whose path ends so, in the order of all writes.
#[track_caller]
fn place(lab: &Lab, end: &str) -> usize {
    let writes = lab.api.writes();
    let at = writes.iter().position(|write| write.ends_with(end));
    at.unwrap_or_else(|| panic!("no write of {end} among {writes:#?}"))
}

#[test]
fn the_next_minor_replaces_istiod_first_and_its_templates_after() {
    let lab = Lab::running("1.30.3");
    lab.attach(&Release::of("1.31.0")).hook(Event::UpgradeCharm);
    lab.assert_status("active", "Istio 1.31.0 in istio-lab");
    assert!(place(&lab, "/deployments/istiod") < place(&lab, "/configmaps/istio-sidecar-injector"));
    // The pod that pulled the images came first and is gone.
    assert!(place(&lab, "/istio-lab/pods") < place(&lab, "/deployments/istiod"));
    assert!(!lab.exists("Pod istio-lab/meshy-image-proof"));
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
}

#[test]
fn a_skipped_minor_is_refused_and_named_and_nothing_is_written() {
    let lab = Lab::running("1.28.1");
    lab.attach(&Release::of("1.31.0")).hook(Event::UpgradeCharm);
    lab.assert_says(
        "blocked",
        &["Istio 1.28.1 to 1.31.0", "not attached: 1.29, 1.30"],
    );
    lab.assert_untouched();
}

#[test]
fn attached_stages_are_taken_one_after_the_other() {
    let lab = Lab::running("1.28.1");
    lab.attach_stage(1, &Release::of("1.30.3"))
        .attach_stage(2, &Release::of("1.29.2"))
        .attach(&Release::of("1.31.0"))
        .hook(Event::UpgradeCharm);
    lab.assert_status("active", "Istio 1.29.2 in istio-lab, on the way to 1.31.0");
    let plan = lab.action("upgrade", json!({"dry-run": true}));
    assert_eq!(plan.failure, None);
    assert_eq!(plan.results["version"], "1.30.3");
    assert_eq!(plan.results["on-the-way-to"], "1.31.0");
    assert_eq!(lab.image("istiod"), "registry.example/pilot:1.29.2");
    let step = lab.action("upgrade", json!({}));
    assert_eq!(step.failure, None);
    assert_eq!(lab.image("istiod"), "registry.example/pilot:1.30.3");
    lab.update_status()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
}

#[test]
fn with_one_stage_missing_nothing_is_begun() {
    let lab = Lab::running("1.28.1");
    lab.attach_stage(1, &Release::of("1.30.3"))
        .attach(&Release::of("1.31.0"))
        .hook(Event::UpgradeCharm);
    lab.assert_says("blocked", &["Istio 1.28.1 to 1.31.0", "not attached: 1.29"]);
    lab.assert_untouched();
}

#[test]
fn a_missing_stage_is_asked_for_where_no_other_is_attached() {
    let lab = Lab::running("1.24.0");
    lab.attach(&Release::of("1.31.0"));
    let asked = |resource: &str| {
        let findings = lab.action("precheck", json!({})).results["findings"].clone();
        let mend = format!("mend: juju attach-resource meshy {resource}=FILE");
        assert!(findings.contains(&mend), "{resource} {findings}");
    };
    for (number, version) in (1..).zip(["1.27.0", "1.26.0", "1.25.0"]) {
        asked(&format!("istio-release-stage-{number}"));
        lab.attach_stage(number, &Release::of(version));
    }
    // There is no room for the rest: a nearer goal comes first.
    asked("istio-release");
    lab.hook(Event::UpgradeCharm)
        .assert_says("blocked", &["not attached: 1.28, 1.29, 1.30"])
        .assert_untouched();
    lab.attach(&Release::of("1.28.0"))
        .hook(Event::UpgradeCharm)
        .assert_status("active", "Istio 1.25.0 in istio-lab, on the way to 1.28.0");
}

#[test]
fn one_minor_back_the_templates_and_the_gateways_come_before_istiod() {
    let lab = Lab::running("1.31.0");
    lab.attach(&Release::of("1.30.3")).hook(Event::UpgradeCharm);
    lab.assert_status("active", "Istio 1.30.3 in istio-lab");
    let templates = place(&lab, "/configmaps/istio-sidecar-injector");
    assert!(templates < place(&lab, "/deployments/istiod"));
}

#[test]
fn an_image_that_is_missing_changes_nothing() {
    let lab = Lab::running("1.30.3");
    lab.attach(&Release::of("1.31.0"))
        .config("tag", "missing")
        .hook(Event::UpgradeCharm);
    lab.assert_says(
        "blocked",
        &["ErrImagePull of registry.example/pilot:missing"],
    );
    assert_eq!(lab.image("istiod"), "registry.example/pilot:1.30.3");
    assert!(!lab.exists("Pod istio-lab/meshy-image-proof"));
    lab.config("tag", "").update_status();
    lab.assert_status("active", "Istio 1.31.0 in istio-lab");
}

/// A lab in which 1.31.0 came and does not start.
fn failed() -> Lab {
    let lab = Lab::running("1.30.3");
    lab.controllers(false, true, true);
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "istiod-new", "namespace": "istio-lab", "labels": {"app": "istiod"}},
        "status": {"containerStatuses": [{"name": "discovery", "image": "registry.example/pilot:1.31.0",
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}}));
    lab.api
        .edit("kube-controller-manager", &istiod(), |istiod| {
            istiod["status"] = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1,
                                  "readyReplicas": 1});
        });
    lab.attach(&Release::of("1.31.0"));
    lab
}

#[test]
fn a_rollout_that_fails_never_reaches_the_templates_and_is_rolled_back() {
    let lab = failed();
    // What ran before comes back, and serves only once its rollout has ended.
    for event in [Event::UpgradeCharm, Event::UpdateStatus] {
        lab.hook(event).assert_says(
            "waiting",
            &[
                "Istio 1.31.0 failed (CrashLoopBackOff of discovery), 1.30.3 comes back: ",
                "istiod",
            ],
        );
    }
    assert_eq!(lab.image("istiod"), "registry.example/pilot:1.30.3");
    assert_eq!(templates(&lab), "templates of 1.30.3");
    assert_eq!(lab.state().workload_version, "1.30.3");
    // Not tried again by itself: the cluster remembers, whatever became of the charm's files.
    lab.controllers(true, true, true);
    lab.api.remove(&ObjectRef::namespaced(
        "v1",
        "Pod",
        "istio-lab",
        "istiod-new",
    ));
    lab.update_status().assert_says(
        "blocked",
        &["Istio 1.31.0 failed (CrashLoopBackOff of discovery), 1.30.3 serves"],
    );
    lab.update_status().api.forget_requests();
    lab.update_status().assert_untouched();
    lab.assert_says(
        "blocked",
        &["1.31.0 failed", "run: juju run meshy/leader upgrade"],
    );
    // But when somebody says so.
    let again = lab.action("upgrade", json!({}));
    assert_eq!(again.failure, None);
    lab.update_status()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
}

#[test]
fn after_a_failure_no_hook_reads_what_an_upgrade_rests_on() {
    let lab = failed();
    let asks = || {
        let requests = lab.api.requests();
        let asks = requests
            .iter()
            .filter(|request| request.path.contains("selfsubjectaccessreviews"));
        let asks = asks.count();
        lab.api.forget_requests();
        asks
    };
    lab.hook(Event::UpgradeCharm);
    assert_ne!(asks(), 0);
    lab.update_status()
        .assert_says("waiting", &["1.31.0 failed"]);
    assert_eq!(asks(), 0);
    lab.action("upgrade", json!({}));
    assert_ne!(asks(), 0);
}

#[test]
fn what_failed_is_forgotten_when_something_else_is_asked_for() {
    let lab = failed();
    lab.hook(Event::UpgradeCharm)
        .assert_says("waiting", &["1.31.0 failed"]);
    lab.controllers(true, true, true);
    lab.api.remove(&ObjectRef::namespaced(
        "v1",
        "Pod",
        "istio-lab",
        "istiod-new",
    ));
    lab.attach(&Release::of("1.31.1")).hook(Event::UpgradeCharm);
    lab.assert_status("active", "Istio 1.31.1 in istio-lab");
    let record = lab.get("v1", "Secret", "meshy.revision.default");
    let annotations = record["metadata"]["annotations"].as_object().unwrap();
    assert!(
        !annotations.keys().any(|key| key.contains("failed")),
        "{annotations:?}"
    );
}

#[test]
fn a_roll_back_that_is_cut_off_goes_on() {
    for writes in 1..6 {
        let lab = failed();
        let before = {
            let twin = failed();
            twin.hook(Event::UpgradeCharm);
            twin.api.writes().len()
        };
        lab.api
            .die_after_writes(u32::try_from(before - writes).unwrap());
        lab.hook(Event::UpgradeCharm);
        lab.api.revive();
        lab.api.remove(&ObjectRef::namespaced(
            "v1",
            "Pod",
            "istio-lab",
            "istiod-new",
        ));
        lab.controllers(true, true, true).update_status();
        let (status, message) = lab.status();
        let serves = lab.image("istiod");
        // Either the failure was noted and it stays back, or it was not and it is tried again.
        match status.as_str() {
            "blocked" => assert_eq!(serves, "registry.example/pilot:1.30.3", "{message}"),
            _ => assert_eq!(serves, "registry.example/pilot:1.31.0", "{message}"),
        }
        lab.update_status().api.forget_requests();
        lab.update_status().assert_untouched();
    }
}

#[test]
fn a_precheck_names_what_stands_in_the_way_and_writes_nothing() {
    let lab = Lab::running("1.28.1");
    lab.attach(&Release::of("1.31.0"));
    let answer = lab.action("precheck", json!({"format": "json"}));
    assert_eq!(answer.failure, None);
    assert_eq!(answer.results["from"], "1.28.1");
    assert_eq!(answer.results["to"], "1.31.0");
    let findings: Value = serde_json::from_str(&answer.results["findings"]).unwrap();
    let codes: Vec<_> = findings
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"minors-skipped"), "{codes:?}");
    // Nobody plays endpoints here, so every webhook is a dead one.
    assert!(codes.contains(&"dead-webhook"), "{codes:?}");
    lab.assert_untouched();
}
