//! Gateway API's definitions are installed when asked for, and never downgraded, taken or deleted.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::Lab;
use juju_charm::Event;
use kube_apply::ObjectRef;
use serde_json::{Value, json};

const ROUTES: &str = "httproutes.gateway.networking.k8s.io";
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";
const BUNDLE: &str = "gateway.networking.k8s.io/bundle-version";

fn definition(name: &str, version: &str) -> Value {
    let (plural, group) = name.split_once('.').unwrap();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {BUNDLE: format!("v{version}")}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "X", "plural": plural},
                 "versions": [{"name": "v1", "served": true, "storage": true}]},
    })
}

/// A lab with a bundle of one version attached.
fn lab(policy: &str, version: &str) -> (Lab, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let lab = Lab::new();
    attach(&lab, &dir, version);
    lab.config("gateway-api-crds", policy);
    (lab, dir)
}

fn attach(lab: &Lab, dir: &tempfile::TempDir, version: &str) {
    let text: Vec<String> = [ROUTES, GATEWAYS]
        .iter()
        .map(|name| format!("---\n{}", definition(name, version)))
        .collect();
    let file = dir.path().join("bundle.yaml");
    std::fs::write(&file, text.join("\n")).unwrap();
    lab.change(|state| state.resource("gateway-api-crds", file));
}

fn version(lab: &Lab, name: &str) -> Option<String> {
    let id = ObjectRef::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        None,
        name,
    );
    let live = lab.api.get(&id)?;
    Some(live["metadata"]["annotations"][BUNDLE].as_str()?.to_owned())
}

const FINE: (&str, &str) = ("active", "Istio 1.31.0 in istio-lab");

#[test]
fn nothing_is_installed_unless_asked_for() {
    let (lab, _dir) = lab("never", "1.5.1");
    lab.config_changed().assert_status(FINE.0, FINE.1);
    assert_eq!(version(&lab, ROUTES), None);
}

#[test]
fn where_there_are_none_the_whole_bundle_is_installed() {
    for policy in ["if-absent", "manage"] {
        let (lab, _dir) = lab(policy, "1.5.1");
        lab.config_changed().assert_status(FINE.0, FINE.1);
        for name in [ROUTES, GATEWAYS] {
            assert_eq!(version(&lab, name).as_deref(), Some("v1.5.1"), "{policy}");
        }
        let before = lab.api.objects();
        lab.api.forget_requests();
        lab.config_changed().assert_untouched();
        assert_eq!(lab.api.objects(), before);
    }
}

#[test]
fn a_foreign_definition_keeps_if_absent_from_installing_a_part() {
    let (lab, _dir) = lab("if-absent", "1.5.1");
    lab.api.seed(definition(ROUTES, "1.2.0"));
    lab.config_changed().assert_status(FINE.0, FINE.1);
    assert_eq!(version(&lab, ROUTES).as_deref(), Some("v1.2.0"));
    assert_eq!(version(&lab, GATEWAYS), None);
}

#[test]
fn managed_definitions_go_up_and_never_down() {
    let (lab, dir) = lab("manage", "1.5.1");
    lab.config_changed();
    attach(&lab, &dir, "1.6.0");
    lab.config_changed().assert_status(FINE.0, FINE.1);
    assert_eq!(version(&lab, ROUTES).as_deref(), Some("v1.6.0"));
    attach(&lab, &dir, "1.5.1");
    lab.config_changed().assert_status(FINE.0, FINE.1);
    assert_eq!(version(&lab, ROUTES).as_deref(), Some("v1.6.0"));
}

#[test]
fn definitions_of_another_owner_are_never_taken_and_istio_is_installed_all_the_same() {
    let (lab, _dir) = lab("manage", "1.6.0");
    let mut foreign = definition(ROUTES, "1.5.1");
    foreign["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!("addon");
    lab.api.seed(foreign);
    lab.config_changed()
        .assert_says("blocked", &["gateway-api-crds", ROUTES, "Helm release"]);
    assert_eq!(version(&lab, ROUTES).as_deref(), Some("v1.5.1"));
    assert_eq!(version(&lab, GATEWAYS), None);
    assert!(lab.exists("Deployment istio-lab/istiod"));
}

#[test]
fn a_file_that_is_no_bundle_costs_the_definitions_and_nothing_else() {
    let (lab, dir) = lab("manage", "1.6.0");
    std::fs::write(dir.path().join("bundle.yaml"), "a: 1").unwrap();
    lab.config_changed()
        .assert_says("blocked", &["resource gateway-api-crds", "no definition"]);
    assert!(lab.exists("Deployment istio-lab/istiod"));
}

#[test]
fn removal_leaves_the_definitions_whatever_was_confirmed() {
    let (lab, _dir) = lab("manage", "1.5.1");
    lab.config_changed();
    lab.config("crd-policy", "remove");
    lab.action("purge", json!({"confirm": "meshy", "dry-run": false}));
    lab.change(|state| state.planned_units(0))
        .hook(Event::Remove);
    assert_eq!(version(&lab, ROUTES).as_deref(), Some("v1.5.1"));
    assert!(!lab.exists("CustomResourceDefinition virtualservices.networking.istio.io"));
}
