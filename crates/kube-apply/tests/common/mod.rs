//! Objects that the tests of this crate want.

#![allow(dead_code, reason = "each test binary uses some of these")]
#![allow(clippy::expect_used, reason = "these are test helpers")]

use std::time::Duration;

use kube_apply::{Inventory, Object, ObjectRef, ObjectsSet, Owner, Stage};
use serde_json::{Value, json};

pub(crate) fn inventory() -> Inventory {
    Inventory {
        owner: Owner {
            charm: "istio-k8s".to_owned(),
            model_uuid: "6a1f0c9e-0000-4000-8000-000000000001".to_owned(),
            app: "meshy".to_owned(),
        },
        name: "control-plane".to_owned(),
    }
}

pub(crate) fn set(stages: Vec<Stage>) -> ObjectsSet {
    ObjectsSet {
        inventory: inventory(),
        stages,
        retain: Vec::new(),
        wait: Duration::from_secs(20),
        whole: false,
    }
}

pub(crate) fn object(value: Value) -> Object {
    Object::new(value).expect("an object")
}

pub(crate) fn namespace(name: &str) -> Object {
    object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

pub(crate) fn config_map(name: &str, value: &str) -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "istio-lab"}, "data": {"key": value},
    }))
}

pub(crate) fn account(name: &str) -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "istio-lab"},
    }))
}

pub(crate) fn service(name: &str) -> Object {
    object(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "istio-lab"},
        "spec": {
            "selector": {"app": name},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        },
    }))
}

pub(crate) fn deployment(name: &str, image: &str) -> Object {
    object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "istio-lab"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "serviceAccountName": name,
                    "containers": [{
                        "name": "discovery", "image": image,
                        "env": [{"name": "REVISION", "value": ""}],
                        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "0.5", "memory": "2048Mi"}},
                        "securityContext": {"privileged": false, "capabilities": {"drop": ["ALL"]}},
                    }],
                    "volumes": [{"name": "scratch", "emptyDir": {}}],
                },
            },
        },
    }))
}

pub(crate) fn webhook(name: &str, failure_policy: &str) -> Object {
    object(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "rev.validation.istio.io", "failurePolicy": failure_policy,
            "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": "istiod", "namespace": "istio-lab", "path": "/validate"}},
            "rules": [{
                "operations": ["CREATE"], "apiGroups": ["unused.example.org"],
                "apiVersions": ["*"], "resources": ["*"],
            }],
        }],
    }))
}

/// A definition of `Lantern`s, which hold a `spec.colour`.
pub(crate) fn crd() -> Object {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"colour": {"type": "string"}}},
    }}});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lanterns.lab.example.org"},
        "spec": {
            "group": "lab.example.org", "scope": "Namespaced",
            "names": {"kind": "Lantern", "plural": "lanterns", "singular": "lantern"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    }))
}

pub(crate) fn lantern(name: &str) -> Object {
    object(json!({
        "apiVersion": "lab.example.org/v1", "kind": "Lantern",
        "metadata": {"name": name, "namespace": "istio-lab"}, "spec": {"colour": "green"},
    }))
}

pub(crate) fn names(objects: &[ObjectRef]) -> Vec<String> {
    objects.iter().map(ToString::to_string).collect()
}
