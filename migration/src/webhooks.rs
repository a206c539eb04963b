//! Which istiod injects which pod: every permutation of the labels that injectors look at.
//!
//! A migration may never let a permutation go from one istiod to none (pods without a sidecar) or to
//! two (double injection). Two configurations that point at the same istiod are one injector: they
//! give the same sidecar, whichever comes last.

use std::collections::{BTreeMap, BTreeSet};

use kube_apply::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

type Labels = BTreeMap<String, String>;

/// Labels of a namespace and of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Permutation {
    /// Of the namespace.
    pub namespace: Labels,
    /// Of the pod.
    pub pod: Labels,
}

/// The istiods (`namespace/service`, or a URL) that inject each permutation; those that nobody
/// injects have an empty set.
pub fn injectors<'a>(
    configurations: impl IntoIterator<Item = &'a Object>,
    more_revisions: &[&str],
) -> BTreeMap<Permutation, BTreeSet<String>> {
    let configurations: Vec<&Object> = configurations.into_iter().collect();
    let mut revisions: BTreeSet<String> = more_revisions.iter().map(|r| (*r).to_owned()).collect();
    for configuration in &configurations {
        for label in ["istio.io/rev", "istio.io/tag"] {
            revisions.extend(configuration.label(label).map(str::to_owned));
        }
    }
    let mut found = BTreeMap::new();
    for permutation in permutations(&revisions) {
        let injecting = configurations
            .iter()
            .flat_map(|configuration| entries(configuration))
            .filter(|entry| takes(entry, &permutation))
            .map(server)
            .collect();
        found.insert(permutation, injecting);
    }
    found
}

/// The istiods that inject one permutation.
pub fn injectors_of<'a>(
    configurations: impl IntoIterator<Item = &'a Object>,
    permutation: &Permutation,
) -> BTreeSet<String> {
    let entries = configurations.into_iter().flat_map(entries);
    entries
        .filter(|entry| takes(entry, permutation))
        .map(server)
        .collect()
}

/// What has become wrong between two states, in words; empty when nothing has.
pub fn regressions(
    before: &BTreeMap<Permutation, BTreeSet<String>>,
    now: &BTreeMap<Permutation, BTreeSet<String>>,
) -> Vec<String> {
    let mut found = Vec::new();
    for (permutation, injecting) in now {
        let Permutation { namespace, pod } = permutation;
        if injecting.len() > 1 {
            found.push(format!(
                "{injecting:?} inject pod {pod:?} in namespace {namespace:?}"
            ));
        }
        let injected = before.get(permutation).is_some_and(|was| !was.is_empty());
        if injected && injecting.is_empty() {
            found.push(format!(
                "nobody injects pod {pod:?} in namespace {namespace:?} any more"
            ));
        }
    }
    found
}

/// Whether a configuration injects sidecars.
pub fn is_injector(configuration: &Object) -> bool {
    entries(configuration).next().is_some()
}

/// Whether an injector can match anything: istioctl parks one by a label that nobody has.
pub fn is_active(configuration: &Object) -> bool {
    entries(configuration).any(|entry| {
        !["namespaceSelector", "objectSelector"]
            .iter()
            .any(|selector| entry[selector].to_string().contains("istio.io/deactivated"))
    })
}

fn permutations(revisions: &BTreeSet<String>) -> Vec<Permutation> {
    let of = |switch: &str| {
        let mut found = Vec::new();
        let (on, off) = if switch == "istio-injection" {
            ("enabled", "disabled")
        } else {
            ("true", "false")
        };
        for value in [None, Some(on), Some(off)] {
            for revision in std::iter::once(None).chain(revisions.iter().map(Some)) {
                let mut labels = Labels::new();
                if let Some(value) = value {
                    labels.insert(switch.to_owned(), value.to_owned());
                }
                if let Some(revision) = revision {
                    labels.insert("istio.io/rev".to_owned(), revision.clone());
                }
                found.push(labels);
            }
        }
        found
    };
    let pods = of("sidecar.istio.io/inject");
    let namespaces = of("istio-injection");
    let pairs = namespaces.iter().flat_map(|namespace| {
        pods.iter().map(|pod| Permutation {
            namespace: namespace.clone(),
            pod: pod.clone(),
        })
    });
    pairs.collect()
}

fn entries(configuration: &Object) -> impl Iterator<Item = &Value> {
    let entries = configuration.pointer("/webhooks").and_then(Value::as_array);
    entries.into_iter().flatten().filter(|entry| {
        entry["name"]
            .as_str()
            .is_some_and(|name| name.ends_with("sidecar-injector.istio.io"))
    })
}

fn takes(entry: &Value, permutation: &Permutation) -> bool {
    selects(&entry["namespaceSelector"], &permutation.namespace)
        && selects(&entry["objectSelector"], &permutation.pod)
}

fn server(entry: &Value) -> String {
    let service = &entry["clientConfig"]["service"];
    match (service["namespace"].as_str(), service["name"].as_str()) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
        _ => entry["clientConfig"]["url"]
            .as_str()
            .unwrap_or("?")
            .to_owned(),
    }
}

/// Whether a label selector selects labels; an absent one selects everything.
pub fn selects(selector: &Value, labels: &Labels) -> bool {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten();
    equal
        .into_iter()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && expressions.into_iter().all(|expression| {
            let value = labels.get(expression["key"].as_str().unwrap_or_default());
            let listed = || {
                let values = expression["values"].as_array().into_iter().flatten();
                values
                    .filter_map(Value::as_str)
                    .any(|listed| value.is_some_and(|value| value == listed))
            };
            match expression["operator"].as_str() {
                Some("In") => listed(),
                Some("NotIn") => !listed(),
                Some("Exists") => value.is_some(),
                Some("DoesNotExist") => value.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn by_rev(name: &str, revision: &str, namespace: &str) -> Object {
        Object::new(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name, "labels": {"istio.io/rev": revision}},
            "webhooks": [{
                "name": "rev.namespace.sidecar-injector.istio.io",
                "clientConfig": {"service": {"name": "istiod", "namespace": namespace}},
                "namespaceSelector": {"matchExpressions": [
                    {"key": "istio.io/rev", "operator": "In", "values": [revision]},
                    {"key": "istio-injection", "operator": "DoesNotExist"},
                ]},
                "objectSelector": {"matchExpressions": [
                    {"key": "sidecar.istio.io/inject", "operator": "NotIn", "values": ["false"]},
                ]},
            }],
        }))
        .expect("an object")
    }

    #[test]
    fn one_istiod_behind_two_configurations_is_one_injector() {
        let one = injectors([&by_rev("a", "x", "lab")], &[]);
        let same = injectors([&by_rev("a", "x", "lab"), &by_rev("b", "x", "lab")], &[]);
        let other = injectors([&by_rev("a", "x", "lab"), &by_rev("b", "x", "new")], &[]);
        assert_eq!(regressions(&one, &same), Vec::<String>::new());
        assert!(!regressions(&one, &other).is_empty());
    }

    #[test]
    fn a_permutation_that_loses_its_injector_is_told() {
        let one = injectors([&by_rev("a", "x", "lab")], &["x"]);
        let none = injectors([], &["x"]);
        let told = regressions(&one, &none);
        assert!(told[0].starts_with("nobody injects"), "{told:?}");
        assert_eq!(regressions(&none, &one), Vec::<String>::new());
    }

    #[test]
    fn a_parked_injector_is_not_active() {
        let mut parked = by_rev("a", "x", "lab").into_value();
        parked["webhooks"][0]["namespaceSelector"] =
            json!({"matchLabels": {"istio.io/deactivated": "never-match"}});
        let parked = Object::new(parked).expect("an object");
        assert!(is_injector(&parked));
        assert!(!is_active(&parked));
        assert!(is_active(&by_rev("a", "x", "lab")));
    }
}
