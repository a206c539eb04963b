//! Which release payloads are used, and which are not.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::fs;

use common::{Lab, Release};
use juju_charm::Event;
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// A lab in which 1.29.2 runs, and from which 1.31.0 is two steps away.
fn far() -> Lab {
    let lab = Lab::new();
    lab.attach(&Release::of("1.29.2"))
        .hook(Event::ConfigChanged);
    lab.assert_says("active", &["1.29.2"]);
    lab.attach_stage(1, &Release::of("1.30.3"))
        .attach(&Release::of("1.31.0"));
    lab.api.forget_requests();
    lab
}

fn digest(lab: &Lab, resource: &str) -> String {
    let path = lab.state().resources[resource].clone();
    let digest = Sha256::digest(fs::read(path).unwrap());
    let hex = |byte: &u8| format!("{byte:02x}");
    digest.iter().map(hex).collect::<Vec<_>>().concat()
}

#[test]
fn of_the_stages_only_listed_ones_are_used() {
    let lab = far();
    let (stage, release) = (
        digest(&lab, "istio-release-stage-1"),
        digest(&lab, "istio-release"),
    );
    lab.config("release-sha256", release.as_str())
        .hook(Event::UpgradeCharm)
        .assert_says(
            "blocked",
            &[
                "resource istio-release-stage-1: is sha256 ",
                &stage[..8],
                "not release-sha256",
            ],
        )
        .assert_untouched();
    let findings = lab.action("precheck", json!({})).results["findings"].clone();
    let mend = "juju attach-resource meshy istio-release-stage-1=FILE";
    assert!(findings.contains(mend), "{findings}");
    lab.config("release-sha256", format!("{release}, {stage}"))
        .config_changed()
        .assert_status("active", "Istio 1.30.3 in istio-lab, on the way to 1.31.0");
    lab.config("release-sha256", stage)
        .config_changed()
        .assert_says("blocked", &["resource istio-release is sha256 "]);
}

#[test]
fn a_damaged_stage_is_named_with_what_is_wrong() {
    let lab = far();
    let path = lab.state().resources["istio-release-stage-1"].clone();
    fs::write(&path, b"<html>not found</html>").unwrap();
    lab.hook(Event::UpgradeCharm)
        .assert_says("blocked", &["resource istio-release-stage-1: ", "gzip"])
        .assert_untouched();
    let findings = lab.action("precheck", json!({})).results["findings"].clone();
    assert!(findings.contains("stage-unusable"), "{findings}");
    assert!(findings.contains("minors-skipped"), "{findings}");
    // What is not needed on the way is no obstacle.
    lab.attach_stage(2, &Release::of("1.30.3"))
        .hook(Event::UpgradeCharm)
        .assert_status("active", "Istio 1.30.3 in istio-lab, on the way to 1.31.0");
}

#[test]
fn an_empty_stage_is_none() {
    let lab = far();
    let empty = lab.payload().with_file_name("empty");
    fs::write(&empty, b"").unwrap();
    lab.change(|state| state.resource("istio-release-stage-2", empty))
        .hook(Event::UpgradeCharm)
        .assert_status("active", "Istio 1.30.3 in istio-lab, on the way to 1.31.0");
    let findings = lab.action("precheck", json!({})).results["findings"].clone();
    assert!(!findings.contains("stage-unusable"), "{findings}");
}

#[test]
fn a_migration_begins_with_no_release_but_a_listed_one() {
    let lab = Lab::new();
    lab.api.seed(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "istiod", "namespace": "kubeflow-lab", "labels": {"app": "istiod"}},
        "spec": {"template": {"spec": {"containers": [{"name": "discovery", "image": "pilot:1.30.3"}]}}},
    }));
    let migrate = || {
        let params = json!({"from-namespace": "kubeflow-lab", "dry-run": true});
        lab.action("migrate", params).failure.unwrap_or_default()
    };
    lab.config("release-sha256", "0".repeat(64));
    let why = migrate();
    assert!(why.contains("resource istio-release is sha256 "), "{why}");
    lab.config("release-sha256", digest(&lab, "istio-release"));
    let why = migrate();
    assert!(!why.contains("sha256"), "{why}");
    lab.assert_untouched();
}
