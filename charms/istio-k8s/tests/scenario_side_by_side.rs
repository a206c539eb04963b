//! Several applications in one cluster: each has its own, and what there is one of has one owner.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, Release};
use kube_apply::ObjectRef;
use serde_json::{Value, json};

const OTHER: &str = "application prod of model 11-22";

/// Labels by which another application of this charm owns an object.
fn of_prod() -> Value {
    json!({
        "app.kubernetes.io/managed-by": "istio-k8s",
        "charms.istio-operators.dev/app": "prod",
        "charms.istio-operators.dev/model": "11-22",
        "charms.istio-operators.dev/inventory": "control-plane",
    })
}

fn seed(lab: &Lab, api_version: &str, kind: &str, namespace: &str, name: &str, more: &Value) {
    let mut labels = of_prod();
    for (key, value) in more["labels"].as_object().into_iter().flatten() {
        labels[key] = value.clone();
    }
    let mut object = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels},
    });
    if !namespace.is_empty() {
        lab.api.seed_namespace(namespace);
        object["metadata"]["namespace"] = json!(namespace);
    }
    for key in ["spec", "webhooks"] {
        if !more[key].is_null() {
            object[key] = more[key].clone();
        }
    }
    lab.api.seed(object);
}

fn node_component(lab: &Lab, name: &str, label: (&str, &str)) {
    let spec = json!({"selector": {"matchLabels": {label.0: label.1}}});
    let more = json!({"labels": {label.0: label.1}, "spec": spec});
    seed(lab, "apps/v1", "DaemonSet", "prod-nodes", name, &more);
}

#[test]
fn the_default_validator_has_one_owner_and_a_second_application_says_whose_it_is() {
    let lab = Lab::new();
    let name = "istiod-default-validator";
    let webhooks = json!([{"name": "validation.istio.io", "failurePolicy": "Fail"}]);
    let group = "admissionregistration.k8s.io/v1";
    let more = json!({ "webhooks": webhooks });
    seed(
        &lab,
        group,
        "ValidatingWebhookConfiguration",
        "",
        name,
        &more,
    );
    lab.config_changed()
        .assert_says("blocked", &[name, OTHER])
        .assert_untouched();
    lab.config("revision", "canary")
        .config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab, revision canary");
}

#[test]
fn node_components_have_one_owner_wherever_they_run() {
    let check = |name: &str, label: (&str, &str)| {
        let lab = Lab::new();
        node_component(&lab, name, label);
        lab.config("profile", "ambient")
            .config_changed()
            .assert_says("blocked", &["a cluster has one", "prod-nodes", OTHER])
            .assert_untouched();
        lab.config("components", "base,istiod")
            .config_changed()
            .assert_status("active", "Istio 1.31.0 in istio-lab");
    };
    check("istio-cni-node", ("app", "istio-cni"));
    check("ztunnel", ("app", "ztunnel"));
}

#[test]
fn two_revisions_share_a_cluster_and_nothing_else() {
    let lab = Lab::installed();
    let before = lab.ours();
    let canary = Lab::new();
    // The same cluster, another application.
    for object in lab.api.objects() {
        let mut object = object;
        if object["metadata"]["labels"]["charms.istio-operators.dev/app"] == "meshy" {
            object["metadata"]["labels"]["charms.istio-operators.dev/app"] = json!("prod");
        }
        canary.api.seed(object);
    }
    canary.api.forget_requests();
    canary
        .config("namespace", "canary-lab")
        .config("revision", "canary")
        .config(
            "gateways",
            "[{name: out, namespace: out-lab, kind: egress, revision: default}]",
        )
        .config("values", "global: {trustBundleName: istio-ca-canary}")
        .config_changed()
        .assert_status("active", "Istio 1.31.0 in canary-lab, revision canary");
    for write in canary.api.writes() {
        let others = ["istio-lab/", "edge-lab/", "/istiod-istio-lab"];
        assert!(!others.iter().any(|other| write.contains(other)), "{write}");
    }
    assert!(before.iter().all(|object| canary.exists(object)));
    let gateway = ObjectRef::namespaced("apps/v1", "Deployment", "out-lab", "out");
    assert!(canary.api.get(&gateway).is_some());
}

#[test]
fn two_roots_under_one_name_are_refused_until_they_are_kept_apart() {
    let lab = Lab::new();
    let labels = json!({"labels": {"app": "istiod", "istio.io/rev": "default"}});
    seed(&lab, "apps/v1", "Deployment", "prod-lab", "istiod", &labels);
    lab.config("revision", "canary")
        .config_changed()
        .assert_says("blocked", &["prod-lab/istiod", "another root"])
        .assert_untouched();
    let apart = [
        ("values", "global: {trustBundleName: istio-ca-lab}"),
        (
            "mesh-config",
            "discoverySelectors: [{matchLabels: {mesh: lab}}]",
        ),
    ];
    for (option, value) in apart {
        lab.config(option, value)
            .config_changed()
            .assert_status("active", "Istio 1.31.0 in istio-lab, revision canary");
    }
}

#[test]
fn two_istiods_of_one_root_may_run_in_two_namespaces() {
    let lab = Lab::new();
    let labels = json!({"labels": {"app": "istiod", "istio.io/rev": "default"}});
    seed(&lab, "apps/v1", "Deployment", "prod-lab", "istiod", &labels);
    lab.api.seed_namespace("istio-lab");
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "istio-ca-secret", "namespace": "istio-lab"},
    }));
    lab.config("revision", "canary")
        .config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab, revision canary");
}

#[test]
fn an_application_of_gateways_alone_binds_them_to_a_revision_that_is_there() {
    let lab = Lab::new();
    lab.config("components", "none")
        .config(
            "gateways",
            "[{name: edge, namespace: edge-lab, revision: prod}]",
        )
        .config_changed()
        .assert_says("blocked", &["\"edge\"", "\"prod\"", "no injector"])
        .assert_untouched();
    let more = json!({"labels": {"istio.io/rev": "1-31", "istio.io/tag": "prod"}, "webhooks": []});
    let group = "admissionregistration.k8s.io/v1";
    seed(
        &lab,
        group,
        "MutatingWebhookConfiguration",
        "",
        "istio-revision-tag-prod",
        &more,
    );
    lab.config_changed();
    assert_eq!(lab.status().0, "active");
    let mut ours = lab.ours();
    ours.retain(|object| object.contains("edge-lab"));
    assert_eq!(
        ours,
        [
            "Service edge-lab/edge",
            "ServiceAccount edge-lab/edge",
            "Deployment edge-lab/edge",
        ]
    );
    assert!(!lab.exists("Deployment istio-lab/istiod"));
}

#[test]
fn a_control_plane_without_anybodys_definitions_is_refused() {
    let lab = Lab::new();
    lab.config("components", "istiod")
        .config_changed()
        .assert_says("blocked", &["option components", "definitions"])
        .assert_untouched();
}

#[test]
fn leaving_ambient_mode_is_refused_while_pods_run_through_it() {
    let lab = Lab::new();
    lab.config("profile", "ambient").config_changed();
    assert_eq!(lab.status().0, "active");
    lab.api.seed_namespace("web-lab");
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "web-lab",
                         "annotations": {"ambient.istio.io/redirection": "enabled"}},
            "spec": {"containers": []},
        })
    };
    lab.api.seed(pod("web-0"));
    lab.api.seed(pod("web-1"));
    lab.api.forget_requests();
    lab.config("profile", "default")
        .config_changed()
        .assert_says("blocked", &["web-lab/web-0 and 1 more pods"])
        .assert_untouched();
    for name in ["web-0", "web-1"] {
        lab.api
            .remove(&ObjectRef::namespaced("v1", "Pod", "web-lab", name));
    }
    lab.config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
    assert!(!lab.exists("DaemonSet node-lab/istio-cni"));
}

const POLICY_CRD: &str = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: authorizationpolicies.security.istio.io
spec:
  group: security.istio.io
  scope: Namespaced
  names: {kind: AuthorizationPolicy, plural: authorizationpolicies}
  versions: [{name: v1, served: true, storage: true}]
";

#[test]
fn hardened_mode_denies_what_no_policy_allows_but_not_requests_to_the_gateways() {
    let lab = Lab::new();
    lab.attach(
        &Release::of("1.31.0").with("manifests/charts/base/templates/policies.yaml", POLICY_CRD),
    );
    lab.config("hardened-mode", true)
        .config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
    let writes = lab.api.writes();
    let place = |name: &str| writes.iter().position(|w| w.ends_with(name)).unwrap();
    assert!(place("meshy-open-edge") < place("meshy-allow-nothing"));
    lab.config("hardened-mode", false).config_changed();
    let left: Vec<String> = lab.ours();
    assert!(
        !left.iter().any(|o| o.starts_with("AuthorizationPolicy")),
        "{left:?}"
    );
}
