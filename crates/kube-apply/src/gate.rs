//! Do the objects of a stage do what they should? Pure.

use serde_json::Value;

use crate::object::Object;
use crate::query::{Observed, Served};
use crate::set::Gate;

/// What the gate waits for, for people; `None` when it holds.
pub(crate) fn pending(
    gate: Gate,
    objects: &[Object],
    live: &Observed,
    served: &Served,
) -> Option<String> {
    objects
        .iter()
        .filter(|object| concerns(gate, object))
        .find_map(|object| match gate {
            Gate::CrdEstablished => established(object, served),
            Gate::RolledOut => rolled_out(object, live.find(&object.id())),
            Gate::CaBundle => ca_bundle(object, live.find(&object.id())),
            Gate::NamespaceActive => active(object, live.find(&object.id())),
        })
}

/// Whether the gate looks at this object.
pub(crate) fn concerns(gate: Gate, object: &Object) -> bool {
    match gate {
        Gate::CrdEstablished => object.kind() == "CustomResourceDefinition",
        Gate::RolledOut => {
            object.group() == "apps"
                && matches!(object.kind(), "Deployment" | "DaemonSet" | "StatefulSet")
        }
        Gate::CaBundle => matches!(
            object.kind(),
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
        ),
        Gate::NamespaceActive => object.kind() == "Namespace",
    }
}

/// Whether the server serves every version that the definition declares as served.
fn established(crd: &Object, served: &Served) -> Option<String> {
    let group = crd
        .pointer("/spec/group")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = crd
        .pointer("/spec/names/kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let versions = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let missing = versions
        .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| version.get("name").and_then(Value::as_str))
        .find(|version| !served.serves(group, version, kind))?;
    Some(format!("{crd} {missing} not established", crd = crd.name()))
}

fn rolled_out(desired: &Object, live: Option<&Object>) -> Option<String> {
    let (name, namespace) = (desired.name(), desired.namespace().unwrap_or("default"));
    let Some(live) = live else {
        return Some(format!("{name} does not exist in {namespace}"));
    };
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64);
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    let (want, updated, ready, all) = if live.kind() == "DaemonSet" {
        let want = status("desiredNumberScheduled");
        (
            want,
            status("updatedNumberScheduled"),
            status("numberReady"),
            want,
        )
    } else {
        let want = number("/spec/replicas").unwrap_or(1);
        (
            want,
            status("updatedReplicas"),
            status("readyReplicas"),
            status("replicas"),
        )
    };
    let seen = number("/status/observedGeneration") >= number("/metadata/generation")
        && number("/status/observedGeneration").is_some();
    if !seen {
        return Some(format!("{name} 0/{want} updated pods ready in {namespace}"));
    }
    // Pods of older generations may be among the ready ones.
    let old = (all - updated).max(0);
    let updated_and_ready = (ready - old).clamp(0, updated.max(0));
    if updated == want && ready == want && old == 0 && all == want {
        return None;
    }
    let what = if updated_and_ready >= want && all > want {
        format!("{name} {} old pods left in {namespace}", all - want)
    } else {
        format!("{name} {updated_and_ready}/{want} updated pods ready in {namespace}")
    };
    Some(match stuck(live) {
        Some(reason) => format!("{what} ({reason})"),
        None => what,
    })
}

/// The reason of a rollout that will not go on by itself.
fn stuck(live: &Object) -> Option<&str> {
    let conditions = live
        .pointer("/status/conditions")
        .and_then(Value::as_array)?;
    conditions.iter().find_map(|condition| {
        let text = |key: &str| {
            condition
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let is_stuck = matches!(
            (text("type"), text("status")),
            ("Progressing", "False") | ("ReplicaFailure", "True")
        );
        (is_stuck && !text("reason").is_empty()).then(|| text("reason"))
    })
}

fn ca_bundle(desired: &Object, live: Option<&Object>) -> Option<String> {
    let name = desired.name();
    let Some(live) = live else {
        return Some(format!("webhook configuration {name} does not exist"));
    };
    let webhooks = live
        .pointer("/webhooks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let without = webhooks.into_iter().find(|webhook| {
        let bundle = webhook
            .pointer("/clientConfig/caBundle")
            .and_then(Value::as_str);
        bundle.is_none_or(str::is_empty)
    })?;
    let webhook = without.get("name").and_then(Value::as_str).unwrap_or("?");
    Some(format!("webhook {webhook} of {name} has no CA bundle"))
}

fn active(desired: &Object, live: Option<&Object>) -> Option<String> {
    let name = desired.name();
    match live {
        None => Some(format!("namespace {name} does not exist")),
        Some(live) if live.is_terminating() => Some(format!("namespace {name} is being deleted")),
        Some(live) => {
            let phase = live
                .pointer("/status/phase")
                .and_then(Value::as_str)
                .unwrap_or("Active");
            (phase != "Active").then(|| format!("namespace {name} is {phase}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::query::ServedKind;

    fn object(api_version: &str, kind: &str, extra: Value) -> Object {
        let mut value = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "istiod", "generation": 2},
        });
        if kind != "Namespace" && !kind.ends_with("Configuration") {
            value["metadata"]["namespace"] = "istio-lab".into();
        }
        if let (Value::Object(fields), Value::Object(extra)) = (&mut value, extra) {
            fields.extend(extra);
        }
        Object::new(value).expect("an object")
    }

    fn check(gate: Gate, live: Object, expect: Option<&str>) {
        let observed = Observed::from_objects([live.clone()]);
        let found = pending(gate, &[live], &observed, &Served::default());
        assert_eq!(found.as_deref(), expect);
    }

    #[test]
    fn a_rollout_is_done_when_only_updated_ready_pods_are_left() {
        let deployment = |generation: i64, [all, updated, ready]: [i64; 3]| {
            object(
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 1}, "status": {
                    "observedGeneration": generation, "replicas": all, "updatedReplicas": updated,
                    "readyReplicas": ready,
                }}),
            )
        };
        let check = |deployment, expect| check(Gate::RolledOut, deployment, expect);
        check(deployment(2, [1, 1, 1]), None);
        check(
            deployment(1, [1, 1, 1]),
            Some("istiod 0/1 updated pods ready in istio-lab"),
        );
        check(
            deployment(2, [1, 1, 0]),
            Some("istiod 0/1 updated pods ready in istio-lab"),
        );
        // The new pod cannot start while the old one serves: the old one's readiness does not count.
        check(
            deployment(2, [2, 1, 1]),
            Some("istiod 0/1 updated pods ready in istio-lab"),
        );
        check(
            deployment(2, [2, 1, 2]),
            Some("istiod 1 old pods left in istio-lab"),
        );
        check(
            deployment(2, [0, 0, 0]),
            Some("istiod 0/1 updated pods ready in istio-lab"),
        );
    }

    #[test]
    fn a_rollout_that_is_stuck_says_why() {
        let live = object(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 1}, "status": {
                "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1,
                "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
            }}),
        );
        let expect = "istiod 0/1 updated pods ready in istio-lab (ProgressDeadlineExceeded)";
        check(Gate::RolledOut, live, Some(expect));
    }

    #[test]
    fn a_daemon_set_is_rolled_out_on_all_its_nodes() {
        let daemons = |[want, updated, ready]: [i64; 3]| {
            object(
                "apps/v1",
                "DaemonSet",
                json!({"status": {
                    "observedGeneration": 2, "desiredNumberScheduled": want,
                    "updatedNumberScheduled": updated, "numberReady": ready,
                }}),
            )
        };
        check(Gate::RolledOut, daemons([3, 3, 3]), None);
        check(Gate::RolledOut, daemons([0, 0, 0]), None);
        let expect = "istiod 1/3 updated pods ready in istio-lab";
        check(Gate::RolledOut, daemons([3, 2, 2]), Some(expect));
    }

    #[test]
    fn every_webhook_needs_a_ca_bundle() {
        let webhooks = |bundle: &str| {
            let webhooks = json!([
                {"name": "a.b.c", "clientConfig": {"caBundle": "eA=="}},
                {"name": "d.e.f", "clientConfig": {"caBundle": bundle}},
            ]);
            object(
                "admissionregistration.k8s.io/v1",
                "MutatingWebhookConfiguration",
                json!({"webhooks": webhooks}),
            )
        };
        check(Gate::CaBundle, webhooks("eA=="), None);
        check(
            Gate::CaBundle,
            webhooks(""),
            Some("webhook d.e.f of istiod has no CA bundle"),
        );
    }

    #[test]
    fn a_namespace_is_active_or_not() {
        let namespace = |phase| object("v1", "Namespace", json!({"status": {"phase": phase}}));
        check(Gate::NamespaceActive, namespace("Active"), None);
        check(
            Gate::NamespaceActive,
            namespace("Terminating"),
            Some("namespace istiod is Terminating"),
        );
    }

    #[test]
    fn a_definition_is_established_when_all_its_versions_are_served() {
        let crd = object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"spec": {"group": "example.org", "names": {"kind": "Thing"}, "versions": [
                {"name": "v1", "served": true}, {"name": "v1beta1", "served": true},
                {"name": "v1alpha1", "served": false},
            ]}}),
        );
        let mut served = Served::default();
        let mut check = |version: &str, expect: Option<&str>| {
            let kind = ServedKind {
                version: version.to_owned(),
                plural: "things".to_owned(),
                namespaced: true,
            };
            served.insert("example.org", "Thing", kind);
            let objects = [crd.clone()];
            let found = pending(
                Gate::CrdEstablished,
                &objects,
                &Observed::default(),
                &served,
            );
            assert_eq!(found.as_deref(), expect);
        };
        check("v1", Some("istiod v1beta1 not established"));
        check("v1beta1", None);
    }
}
