//! From options to a control plane, in order, by the leader alone.

mod common;

use common::{Lab, MODEL_UUID, Release, name};
use juju_charm::Event;
use juju_sim::scenario::Relation;
use serde_json::{Value, json};

/// Objects in the order in which they were first written.
fn written(lab: &Lab) -> Vec<String> {
    let requests = lab.api.requests();
    let writes = requests.iter().filter(|request| request.is_write());
    writes.map(|request| name(&request.body)).collect()
}

#[test]
fn the_leader_installs_in_stages() {
    let lab = Lab::new();
    lab.hook(Event::ConfigChanged)
        .assert_status("active", "Istio 1.31.0 in istio-lab");
    assert_eq!(
        written(&lab),
        [
            "Namespace edge-lab",
            "Namespace istio-lab",
            "CustomResourceDefinition virtualservices.networking.istio.io",
            "ServiceAccount istio-lab/istio-reader-service-account",
            "ServiceAccount istio-lab/istiod",
            "ClusterRole istiod-istio-lab",
            "ConfigMap istio-lab/istio",
            "ConfigMap istio-lab/istio-sidecar-injector",
            "Service istio-lab/istiod",
            "Deployment istio-lab/istiod",
            "MutatingWebhookConfiguration istio-sidecar-injector-istio-lab",
            "ValidatingWebhookConfiguration istio-validator-istio-lab",
            "ValidatingWebhookConfiguration istiod-default-validator",
            "ServiceAccount edge-lab/edge",
            "Service edge-lab/edge",
            "Deployment edge-lab/edge",
            "Secret istio-lab/meshy.revision.default",
        ]
    );
    assert_eq!(lab.state().workload_version, "1.31.0");
    assert_eq!(lab.state().app_status, lab.state().unit_status);
}

#[test]
fn an_ambient_profile_brings_its_node_components_before_the_gateways() {
    let lab = Lab::new();
    lab.config("profile", "ambient").hook(Event::ConfigChanged);
    lab.assert_status("active", "Istio 1.31.0 in istio-lab");
    let written = written(&lab);
    let place = |name: &str| written.iter().position(|w| w == name).unwrap();
    let webhook = place("MutatingWebhookConfiguration istio-sidecar-injector-istio-lab");
    let (cni, ztunnel) = (
        place("DaemonSet node-lab/istio-cni"),
        place("DaemonSet istio-lab/ztunnel"),
    );
    assert!(webhook < cni && cni < ztunnel && ztunnel < place("Deployment edge-lab/edge"));
    assert_eq!(written[2], "Namespace node-lab");
    let istiod = lab.get("apps/v1", "Deployment", "istiod");
    assert_eq!(
        istiod["spec"]["template"]["metadata"]["labels"]["profile"],
        "ambient"
    );
}

#[test]
fn everything_but_namespaces_is_marked_as_the_applications_own() {
    let lab = Lab::installed();
    let mut own = 0;
    for object in lab.api.objects() {
        let labels = &object["metadata"]["labels"];
        if object["kind"] == "Namespace" {
            assert!(labels.is_null(), "{labels}");
            continue;
        }
        own += 1;
        assert_eq!(labels["app.kubernetes.io/managed-by"], "istio-k8s");
        assert_eq!(labels["charms.istio-operators.dev/model"], MODEL_UUID);
        assert_eq!(labels["charms.istio-operators.dev/app"], "meshy");
        assert_eq!(
            labels["charms.istio-operators.dev/inventory"],
            "control-plane"
        );
    }
    assert_eq!(own, 15);
}

#[test]
fn nothing_carries_the_labels_by_which_other_tools_delete() {
    let lab = Lab::installed();
    for object in lab.api.objects() {
        let labels = &object["metadata"]["labels"];
        for label in [
            "operator.istio.io/component",
            "install.operator.istio.io/owning-resource",
        ] {
            assert!(labels[label].is_null(), "{} has {label}", name(&object));
        }
    }
    assert_eq!(
        lab.get("apps/v1", "Deployment", "istiod")["metadata"]["labels"]["app"],
        "istiod"
    );
}

#[test]
fn a_unit_that_does_not_lead_touches_nothing() {
    let lab = Lab::new();
    lab.change(|mut state| {
        state.leader = false;
        state.planned_units = 2;
        state
    });
    for event in [
        Event::Install,
        Event::ConfigChanged,
        Event::UpdateStatus,
        Event::Remove,
    ] {
        lab.hook(event).assert_untouched();
    }
    lab.assert_status("active", "standby: the leader acts");
}

#[test]
fn options_reach_the_charts() {
    let lab = Lab::new();
    lab.config("hub", "registry.lab/mesh")
        .config("tag", "patched")
        .config("revision", "canary")
        .config("values", "replicaCount: 3\nglobal: {hub: ignored}\n")
        .hook(Event::ConfigChanged)
        .assert_status("active", "Istio 1.31.0 in istio-lab, revision canary");
    let istiod = lab.get("apps/v1", "Deployment", "istiod-canary");
    let image = &istiod["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.lab/mesh/pilot:patched");
    assert_eq!(istiod["spec"]["replicas"], 3);
    assert!(lab.exists("MutatingWebhookConfiguration istio-sidecar-injector-canary-istio-lab"));
    assert!(!lab.exists("ValidatingWebhookConfiguration istiod-default-validator"));
}

#[test]
fn gateways_come_from_the_option_and_never_from_the_profile() {
    let lab = Lab::new();
    lab.config(
        "gateways",
        "- {name: here}\n- {name: there, namespace: back-lab}\n",
    )
    .hook(Event::ConfigChanged)
    .assert_says("active", &[]);
    assert!(lab.exists("Deployment istio-lab/here"));
    assert!(lab.exists("Deployment back-lab/there"));
    assert!(
        !lab.ours()
            .iter()
            .any(|name| name.ends_with("of-the-profile"))
    );
}

#[test]
fn related_applications_learn_the_root_namespace() {
    let check = |values: &str, expect: &str| {
        let lab = Lab::new();
        lab.config("values", values)
            .change(|state| state.relation(Relation::new("istio-metadata", 3, "router")))
            .hook(Event::ConfigChanged);
        let state = lab.state();
        let data = &state.get(3).unwrap().local_app_data;
        assert_eq!(data.get("root_namespace").map(String::as_str), Some(expect));
    };
    check("", "istio-lab");
    check("meshConfig: {rootNamespace: root-lab}", "root-lab");
}

#[test]
fn a_related_application_learns_nothing_while_nothing_runs() {
    let lab = Lab::new();
    lab.config("profile", "nosuch")
        .change(|state| state.relation(Relation::new("istio-metadata", 3, "router")))
        .hook(Event::ConfigChanged)
        .assert_says("blocked", &["option profile"]);
    assert!(lab.state().get(3).unwrap().local_app_data.is_empty());
}

#[test]
fn a_second_run_writes_nothing() {
    let lab = Lab::installed();
    for event in [
        Event::UpdateStatus,
        Event::ConfigChanged,
        Event::UpgradeCharm,
    ] {
        lab.hook(event)
            .assert_untouched()
            .assert_status("active", "Istio 1.31.0 in istio-lab");
    }
    // The same release attached once more is the same release.
    lab.attach(&Release::of("1.31.0"))
        .hook(Event::UpgradeCharm)
        .assert_untouched();
}

#[test]
fn what_somebody_deleted_or_edited_comes_back() {
    let lab = Lab::installed();
    lab.api.remove(&kube_apply::ObjectRef::namespaced(
        "v1",
        "Service",
        "istio-lab",
        "istiod",
    ));
    let role = kube_apply::ObjectRef::cluster(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "istiod-istio-lab",
    );
    lab.api.edit("kubectl-edit", &role, |role| {
        role["rules"][0]["verbs"] = json!(["delete"]);
    });
    lab.update_status().assert_says("active", &[]);
    assert!(lab.exists("Service istio-lab/istiod"));
    assert_eq!(
        lab.api.get(&role).unwrap()["rules"][0]["verbs"],
        json!(["get"])
    );
}

#[test]
fn a_gateway_taken_off_the_option_goes_and_its_namespace_stays() {
    let lab = Lab::installed();
    lab.config("gateways", "")
        .config_changed()
        .assert_says("active", &[]);
    assert_eq!(
        lab.api
            .writes()
            .iter()
            .filter(|w| w.starts_with("DELETE"))
            .collect::<Vec<_>>(),
        [
            "DELETE /apis/apps/v1/namespaces/edge-lab/deployments/edge",
            "DELETE /api/v1/namespaces/edge-lab/services/edge",
            "DELETE /api/v1/namespaces/edge-lab/serviceaccounts/edge",
        ]
    );
    // And the record of what runs is written anew.
    assert_eq!(lab.api.writes().len(), 4);
    assert!(lab.exists("Namespace edge-lab"));
}

#[test]
fn a_hook_that_was_cut_off_anywhere_is_completed_by_the_next() {
    for writes in 0..16 {
        let lab = Lab::new();
        lab.api.die_after_writes(writes);
        lab.hook(Event::ConfigChanged);
        lab.assert_status("waiting", "Kubernetes API server not reachable");
        lab.api.revive();
        lab.update_status()
            .assert_status("active", "Istio 1.31.0 in istio-lab");
        lab.api.forget_requests();
        lab.update_status().assert_untouched();
    }
}

#[test]
fn rendering_is_deterministic_across_runs() {
    let bodies = || -> Vec<Value> {
        let lab = Lab::new();
        lab.config("profile", "ambient").hook(Event::ConfigChanged);
        let requests = lab.api.requests();
        requests
            .into_iter()
            .filter(kube_apply::testing::Recorded::is_write)
            .map(|r| r.body)
            .collect()
    };
    let first = bodies();
    assert!(!first.is_empty());
    assert_eq!(first, bodies());
}
