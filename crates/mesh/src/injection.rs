//! Who injects whom: whether two active injectors would take the same pod.
//!
//! Two injectors on one pod inject it twice; the last in name order wins. So an installation that
//! would overlap with a foreign one stops before it writes anything.
//!
//! The answer is exact. A webhook takes a pod if two selectors hold, one over the labels of its
//! namespace and one over its own, and each is a conjunction of requirements of one key each. So two
//! webhooks share a pod if and only if, on either side, every key has a value (or an absence) that
//! satisfies all requirements of that key; and of the values, only those that a requirement names and
//! a single other one need to be tried.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// By this key istioctl parks an injector that is to match nothing.
const PARKED: &str = "istio.io/deactivated";

/// The label that the API server puts on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// A pod that two configurations would both inject.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Overlap {
    /// Name of the other configuration.
    pub other: String,
    /// The labels that lead to both, as a person would write them.
    pub example: String,
}

/// Whether any webhook of `config` is a sidecar injector.
pub fn is_injector(config: &MutatingWebhookConfiguration) -> bool {
    injectors(config).next().is_some()
}

fn injectors(config: &MutatingWebhookConfiguration) -> impl Iterator<Item = &MutatingWebhook> {
    let webhooks = config.webhooks.iter().flatten();
    webhooks.filter(|webhook| webhook.name.ends_with("sidecar-injector.istio.io"))
}

/// For each of `others` that would inject a pod that one of `ours` injects: that it would.
pub fn overlaps(
    ours: &[MutatingWebhookConfiguration],
    others: &[MutatingWebhookConfiguration],
) -> Vec<Overlap> {
    let overlap = |other: &MutatingWebhookConfiguration| {
        let pairs = ours
            .iter()
            .flat_map(injectors)
            .flat_map(|a| injectors(other).map(move |b| (a, b)));
        let example = pairs.into_iter().find_map(|(a, b)| shared_pod(a, b))?;
        Some(Overlap {
            other: other.metadata.name.clone().unwrap_or_default(),
            example,
        })
    };
    others.iter().filter_map(overlap).collect()
}

/// Labels of a namespace and a pod that both webhooks take.
fn shared_pod(a: &MutatingWebhook, b: &MutatingWebhook) -> Option<String> {
    let namespaces = [a.namespace_selector.as_ref(), b.namespace_selector.as_ref()];
    let pods = [a.object_selector.as_ref(), b.object_selector.as_ref()];
    let (namespace, pod) = (shared_labels(namespaces)?, shared_labels(pods)?);
    Some(format!(
        "{}, {}",
        describe("namespace", &namespace),
        describe("pod", &pod)
    ))
}

/// What a selector demands of one key.
struct Demand<'a> {
    operator: &'a str,
    values: Vec<&'a str>,
}

impl Demand<'_> {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.contains(&value));
        match self.operator {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

/// Whether the selector takes an object with these labels.
pub(crate) fn selects<'a>(
    selector: &LabelSelector,
    label: impl Fn(&str) -> Option<&'a str>,
) -> bool {
    let demands = demands([Some(selector)]);
    let mut demands = demands.into_iter();
    demands.all(|(key, demands)| demands.iter().all(|demand| demand.holds(label(key))))
}

/// What selectors demand, by key.
fn demands<const N: usize>(
    selectors: [Option<&LabelSelector>; N],
) -> BTreeMap<&str, Vec<Demand<'_>>> {
    let mut demands: BTreeMap<&str, Vec<Demand<'_>>> = BTreeMap::new();
    for selector in selectors.into_iter().flatten() {
        for (key, value) in selector.match_labels.iter().flatten() {
            demands.entry(key).or_default().push(Demand {
                operator: "In",
                values: vec![value],
            });
        }
        for requirement in selector.match_expressions.iter().flatten() {
            let values = requirement.values.iter().flatten();
            demands.entry(&requirement.key).or_default().push(Demand {
                operator: &requirement.operator,
                values: values.map(String::as_str).collect(),
            });
        }
    }
    demands
}

/// Labels that satisfy both selectors, if any do.
fn shared_labels(selectors: [Option<&LabelSelector>; 2]) -> Option<BTreeMap<&str, &str>> {
    let mut labels = BTreeMap::new();
    for (key, demands) in demands(selectors) {
        let satisfying = candidates(key, &demands)
            .into_iter()
            .find(|value| demands.iter().all(|demand| demand.holds(*value)))?;
        if let Some(value) = satisfying {
            labels.insert(key, value);
        }
    }
    Some(labels)
}

/// The absence of `key`, and the values of it that can make a difference.
fn candidates<'a>(key: &str, demands: &[Demand<'a>]) -> Vec<Option<&'a str>> {
    if key == PARKED {
        return vec![None];
    }
    let named = demands.iter().flat_map(|demand| &demand.values).copied();
    let values: BTreeSet<&str> = named.chain([OTHER]).collect();
    let absence = (key != NAMESPACE_NAME).then_some(None);
    absence
        .into_iter()
        .chain(values.into_iter().map(Some))
        .collect()
}

/// Stands for every value that no requirement names; as a label value it would be refused.
const OTHER: &str = "(any other)";

fn describe(what: &str, labels: &BTreeMap<&str, &str>) -> String {
    if labels.is_empty() {
        return format!("unlabelled {what}");
    }
    let text: Vec<_> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!("{what} {}", text.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REV: &str = "istio.io/rev";

    fn config(
        name: &str,
        namespaces: &serde_json::Value,
        pods: &serde_json::Value,
    ) -> MutatingWebhookConfiguration {
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "webhooks": [{
                "name": "x.sidecar-injector.istio.io",
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "clientConfig": {},
                "namespaceSelector": namespaces, "objectSelector": pods,
            }],
        }))
        .unwrap()
    }

    fn by_rev(name: &str, rev: &str) -> MutatingWebhookConfiguration {
        config(
            name,
            &json!({"matchExpressions": [{"key": REV, "operator": "In", "values": [rev]}]}),
            &json!({}),
        )
    }

    #[test]
    fn two_revisions_do_not_overlap() {
        assert_eq!(
            overlaps(&[by_rev("ours", "a")], &[by_rev("theirs", "b")]),
            []
        );
    }

    #[test]
    fn the_same_revision_twice_overlaps() {
        let found = overlaps(&[by_rev("ours", "a")], &[by_rev("theirs", "a")]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].other, "theirs");
        assert!(
            found[0].example.starts_with("namespace istio.io/rev=a"),
            "{}",
            found[0].example
        );
    }

    #[test]
    fn a_parked_injector_overlaps_with_nothing() {
        let parked = config(
            "parked",
            &json!({"matchLabels": {"istio.io/deactivated": "never-match"}}),
            &json!({"matchLabels": {"istio.io/deactivated": "never-match"}}),
        );
        assert_eq!(overlaps(&[by_rev("ours", "a")], &[parked]), []);
    }

    #[test]
    fn a_webhook_of_another_kind_is_not_an_injector() {
        let mut other = by_rev("other", "a");
        other.webhooks.as_mut().unwrap()[0].name = "x.example.com".to_owned();
        assert!(!is_injector(&other));
        assert_eq!(overlaps(&[by_rev("ours", "a")], &[other]), []);
    }

    #[test]
    fn any_label_may_tell_injectors_apart_or_bring_them_together() {
        let by_team = |name: &str, operator: &str, teams: &[&str]| {
            let team = json!({"key": "team", "operator": operator, "values": teams});
            config(name, &json!({"matchExpressions": [team]}), &json!({}))
        };
        let meet = |a, b| !overlaps(&[a], &[b]).is_empty();
        assert!(meet(
            by_team("a", "In", &["x", "y"]),
            by_team("b", "In", &["y", "z"])
        ));
        assert!(!meet(
            by_team("a", "In", &["x"]),
            by_team("b", "In", &["z"])
        ));
        assert!(!meet(
            by_team("a", "In", &["x"]),
            by_team("b", "NotIn", &["x"])
        ));
        assert!(meet(by_team("a", "In", &["x"]), by_rev("b", "canary")));
        // Some team that neither names.
        assert!(meet(
            by_team("a", "NotIn", &["x"]),
            by_team("b", "Exists", &[])
        ));
    }

    #[test]
    fn every_namespace_has_a_name() {
        let by_name = |operator: &str, values: &[&str]| {
            let name = json!({"key": NAMESPACE_NAME, "operator": operator, "values": values});
            config("a", &json!({"matchExpressions": [name]}), &json!({}))
        };
        let meet = |a, b| !overlaps(&[a], &[b]).is_empty();
        assert!(!meet(by_name("DoesNotExist", &[]), by_rev("b", "x")));
        assert!(meet(by_name("NotIn", &["kube-system"]), by_rev("b", "x")));
    }
}
