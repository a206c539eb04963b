//! What is not there yet is waited for, and nothing that depends on it comes before it.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, Release};
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::json;

const INJECTOR: &str = "MutatingWebhookConfiguration istio-sidecar-injector-istio-lab";

#[test]
fn nothing_comes_before_the_definitions_are_served() {
    let lab = Lab::new();
    lab.controllers(true, false, true)
        .hook(Event::ConfigChanged);
    lab.assert_status(
        "waiting",
        "virtualservices.networking.istio.io v1 not established",
    );
    assert_eq!(
        lab.ours(),
        ["CustomResourceDefinition virtualservices.networking.istio.io"]
    );
    assert_eq!(lab.state().workload_version, "");
    lab.controllers(true, true, true)
        .update_status()
        .assert_says("active", &[]);
}

#[test]
fn no_webhook_and_no_gateway_comes_before_istiod_runs() {
    let lab = Lab::new();
    lab.controllers(false, true, true)
        .hook(Event::ConfigChanged);
    lab.assert_says("waiting", &["istiod", "istio-lab"]);
    assert!(lab.exists("Deployment istio-lab/istiod"));
    assert!(!lab.exists(INJECTOR) && !lab.exists("Deployment edge-lab/edge"));
    lab.controllers(true, true, true)
        .update_status()
        .assert_says("active", &[]);
    assert!(lab.exists(INJECTOR) && lab.exists("Deployment edge-lab/edge"));
}

#[test]
fn no_gateway_comes_before_istiod_has_signed_the_webhooks() {
    let lab = Lab::new();
    lab.controllers(true, true, false)
        .hook(Event::ConfigChanged);
    lab.assert_says("waiting", &["has no CA bundle"]);
    assert!(lab.exists(INJECTOR) && !lab.exists("Deployment edge-lab/edge"));
    lab.controllers(true, true, true)
        .update_status()
        .assert_says("active", &[]);
}

#[test]
fn a_gateway_that_does_not_start_is_told_and_holds_nothing_back() {
    let lab = Lab::installed();
    lab.controllers(false, true, true);
    let two = "- {name: edge, namespace: edge-lab, service-type: ClusterIP}\n- {name: back}\n";
    lab.config("gateways", two)
        .config_changed()
        .assert_says("waiting", &["back"]);
    assert!(lab.exists("Deployment istio-lab/back"));
    lab.controllers(true, true, true).update_status();
    lab.assert_status("active", "Istio 1.31.0 in istio-lab");
}

#[test]
fn a_failure_policy_that_istiod_set_is_kept() {
    let lab = Lab::installed();
    let policy = |name: &str| {
        let id = ObjectRef::cluster(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            name,
        );
        (
            lab.api.get(&id).unwrap()["webhooks"][0]["failurePolicy"].clone(),
            id,
        )
    };
    let validators = ["istio-validator-istio-lab", "istiod-default-validator"];
    for name in validators {
        let (before, id) = policy(name);
        assert_eq!(before, "Ignore");
        lab.api.edit("pilot-discovery", &id, |o| {
            o["webhooks"][0]["failurePolicy"] = json!("Fail");
        });
    }
    lab.update_status().assert_says("active", &[]);
    lab.attach(&Release::of("1.31.1")).hook(Event::UpgradeCharm);
    lab.assert_status("active", "Istio 1.31.1 in istio-lab");
    for name in validators {
        assert_eq!(policy(name).0, "Fail");
    }
    lab.update_status();
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
}

/// The release whose injector templates the running istiod reads.
fn templates(lab: &Lab) -> String {
    let config = lab.get("v1", "ConfigMap", "istio-sidecar-injector");
    config["data"]["config"].as_str().unwrap().to_owned()
}

#[test]
fn the_injectors_templates_of_another_release_follow_its_rollout() {
    let lab = Lab::installed();
    lab.controllers(false, true, true)
        .attach(&Release::of("1.31.1"));
    // However many hooks the rollout takes.
    for event in [
        Event::UpgradeCharm,
        Event::UpdateStatus,
        Event::UpdateStatus,
    ] {
        lab.hook(event).assert_says("waiting", &["istiod"]);
        let istiod = lab.get("apps/v1", "Deployment", "istiod");
        let image = &istiod["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(image, "registry.example/pilot:1.31.1");
        assert_eq!(templates(&lab), "templates of 1.31.0");
        assert_eq!(lab.state().workload_version, "1.31.0");
    }
    lab.controllers(true, true, true).update_status();
    lab.assert_status("active", "Istio 1.31.1 in istio-lab");
    assert_eq!(templates(&lab), "templates of 1.31.1");
    assert_eq!(lab.state().workload_version, "1.31.1");
}

#[test]
fn while_old_pods_are_left_the_templates_wait() {
    let lab = Lab::installed();
    lab.controllers(false, true, true)
        .attach(&Release::of("1.31.1"))
        .hook(Event::UpgradeCharm);
    let id = ObjectRef::namespaced("apps/v1", "Deployment", "istio-lab", "istiod");
    lab.api.edit("kube-controller-manager", &id, |istiod| {
        istiod["status"] = json!({
            "observedGeneration": istiod["metadata"]["generation"],
            "replicas": 2, "updatedReplicas": 1, "readyReplicas": 2,
        });
    });
    lab.update_status().assert_says("waiting", &["istiod"]);
    assert_eq!(templates(&lab), "templates of 1.31.0");
}

#[test]
fn on_a_fresh_installation_the_templates_come_before_istiod_which_mounts_them() {
    let lab = Lab::new();
    lab.controllers(false, true, true)
        .hook(Event::ConfigChanged);
    assert_eq!(templates(&lab), "templates of 1.31.0");
    lab.update_status().assert_says("waiting", &["istiod"]);
}
