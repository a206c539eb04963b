//! Objects change hands only when a person says so, and definitions go only when it was said twice.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, foreign_injector, name};
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::{Value, json};

/// Every object of the lab as a Helm release made it: no label of ours, Helm's annotations.
fn as_helm_release(lab: &Lab) {
    for mut object in lab.api.objects() {
        let ours = object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-k8s";
        if !ours {
            continue;
        }
        let labels = object["metadata"]["labels"].as_object_mut().unwrap();
        labels.retain(|key, _| !key.starts_with("charms.istio-operators.dev/"));
        labels.insert("app.kubernetes.io/managed-by".to_owned(), json!("Helm"));
        labels.insert("operator.istio.io/component".to_owned(), json!("Pilot"));
        object["metadata"]["annotations"] = json!({
            "meta.helm.sh/release-name": "istiod",
            "meta.helm.sh/release-namespace": "istio-lab",
        });
        lab.api.seed(object);
    }
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "sh.helm.release.v1.istiod.v1", "namespace": "istio-lab",
                     "labels": {"owner": "helm", "name": "istiod"}},
    }));
    lab.api.forget_requests();
}

const HELM: &str = "Helm release istio-lab/istiod";

#[test]
fn a_foreign_install_is_left_alone_until_it_is_adopted_by_the_name_of_its_owner() {
    let lab = Lab::installed();
    as_helm_release(&lab);
    lab.config_changed().assert_untouched();
    assert_eq!(lab.status().0, "blocked");

    let shown = lab.action("adopt", json!({"dry-run": true}));
    assert_eq!(shown.failure, None);
    assert_eq!(shown.results["owners"], HELM);
    assert_eq!(
        shown.results["helm-records"],
        "Secret istio-lab/sh.helm.release.v1.istiod.v1"
    );
    let first = shown.results["objects"].lines().next().unwrap();
    assert!(first.starts_with("CustomResourceDefinition "), "{first}");
    lab.assert_untouched();

    let nameless = lab.action("adopt", json!({"dry-run": false}));
    assert!(nameless.failure.unwrap().contains("name the owner"));
    lab.assert_untouched();

    let taken = lab.action(
        "adopt",
        json!({"dry-run": false, "owner": HELM, "forget-helm-release": true}),
    );
    assert_eq!(taken.failure, None);
    assert!(!lab.exists("Secret istio-lab/sh.helm.release.v1.istiod.v1"));
    for object in lab.api.objects() {
        let metadata = &object["metadata"];
        assert_eq!(
            metadata["annotations"]["meta.helm.sh/release-name"],
            Value::Null
        );
        assert_eq!(
            metadata["labels"]["operator.istio.io/component"],
            Value::Null
        );
    }
    lab.config_changed()
        .assert_status("active", "Istio 1.31.0 in istio-lab");
    let again = lab.action("adopt", json!({"dry-run": true}));
    assert_eq!(again.results["count"], "0");
}

#[test]
fn only_the_named_object_is_taken_over() {
    let lab = Lab::installed();
    as_helm_release(&lab);
    let one = "Service istio-lab/istiod";
    lab.action("adopt", json!({"dry-run": false, "objects": one}));
    assert_eq!(lab.ours(), [one]);
}

#[test]
fn an_injector_of_another_istiod_is_not_taken_over() {
    let lab = Lab::installed();
    lab.api
        .seed(foreign_injector("istio-sidecar-injector-other", "canary"));
    let shown = lab.action("adopt", json!({"dry-run": true}));
    assert_eq!(
        (shown.failure, shown.results["count"].as_str()),
        (None, "0")
    );
}

#[test]
fn an_application_that_lets_go_can_be_removed_and_istio_stays() {
    let lab = Lab::installed();
    let before = lab.ours();
    let shown = lab.action("disown", json!({"from": "own", "dry-run": true}));
    assert_eq!(shown.failure, None);
    lab.assert_untouched();
    lab.action("disown", json!({"from": "own", "dry-run": false}));
    assert_eq!(lab.ours(), Vec::<String>::new());
    lab.change(|mut state| {
        state.planned_units = 0;
        state
    })
    .hook(Event::Remove);
    for object in before {
        assert!(lab.exists(&object), "{object} is gone");
    }
}

#[test]
fn nothing_is_left_that_istioctls_purge_would_find() {
    let lab = Lab::installed();
    as_helm_release(&lab);
    lab.action("disown", json!({"from": "istioctl", "dry-run": false}));
    let marked =
        |object: &&Value| !object["metadata"]["labels"]["operator.istio.io/component"].is_null();
    let objects = lab.api.objects();
    let left: Vec<String> = objects.iter().filter(marked).map(name).collect();
    assert_eq!(left, Vec::<String>::new());
    let crd = ObjectRef::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        None,
        "virtualservices.networking.istio.io",
    );
    let annotations = lab.api.get(&crd).unwrap()["metadata"]["annotations"].clone();
    assert_eq!(
        annotations["meta.helm.sh/release-name"], "istiod",
        "only what was named"
    );
    let first = lab.api.writes()[0].clone();
    assert!(first.contains("customresourcedefinitions"), "{first}");
}

const CRD: &str = "CustomResourceDefinition virtualservices.networking.istio.io";

fn removed(lab: &Lab) {
    lab.change(|mut state| {
        state.planned_units = 0;
        state
    })
    .hook(Event::Remove);
}

#[test]
fn definitions_stay_unless_option_and_confirmation_say_otherwise() {
    let check = |policy: &str, confirm: &str, goes: bool| {
        let lab = Lab::installed();
        lab.config("crd-policy", policy);
        let answer = lab.action("purge", json!({"confirm": confirm, "dry-run": false}));
        assert_eq!(
            answer.failure.is_none(),
            goes,
            "{policy} {confirm}: {answer:?}"
        );
        assert!(lab.exists(CRD), "the action itself deletes nothing");
        lab.config_changed();
        assert!(lab.exists(CRD));
        removed(&lab);
        assert_eq!(!lab.exists(CRD), goes, "{policy} {confirm}");
    };
    check("keep", "meshy", false);
    check("remove", "", false);
    check("remove", "yes", false);
    check("remove", "meshy", true);
}

#[test]
fn a_confirmation_that_was_taken_back_by_the_option_deletes_nothing() {
    let lab = Lab::installed();
    lab.config("crd-policy", "remove");
    lab.action("purge", json!({"confirm": "meshy", "dry-run": false}));
    lab.config("crd-policy", "keep");
    removed(&lab);
    assert!(lab.exists(CRD));
}

#[test]
fn definitions_that_another_control_plane_needs_are_not_deleted() {
    let lab = Lab::installed();
    lab.config("crd-policy", "remove");
    lab.api.seed_namespace("other-lab");
    lab.api.seed(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "istiod", "namespace": "other-lab", "labels": {"app": "istiod"}},
    }));
    let answer = lab.action("purge", json!({"confirm": "meshy", "dry-run": false}));
    assert!(answer.failure.unwrap().contains("other-lab/istiod"));
    removed(&lab);
    assert!(lab.exists(CRD));
}

#[test]
fn a_dry_run_counts_what_hangs_on_each_definition() {
    let lab = Lab::installed();
    lab.config("crd-policy", "remove");
    lab.api.seed(json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "books", "namespace": "istio-lab"},
    }));
    let answer = lab.action("purge", json!({"confirm": "", "dry-run": true}));
    assert_eq!(
        answer.results["definitions"],
        "virtualservices.networking.istio.io: 1 objects"
    );
    lab.assert_untouched();
}

#[test]
fn manifests_are_shown_without_definitions_or_written_to_a_file() {
    let lab = Lab::new();
    let shown = lab.action("render", json!({"crds": false, "file": ""}));
    assert_eq!(shown.failure, None);
    let manifests = &shown.results["manifests"];
    assert!(manifests.contains("kind: Deployment") && !manifests.contains("kind: CustomResource"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("all.yaml");
    let written = lab.action(
        "render",
        json!({"crds": true, "file": file.to_str().unwrap()}),
    );
    assert_eq!(written.failure, None);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("kind: CustomResourceDefinition"));
    lab.assert_untouched();
}
