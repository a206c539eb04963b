//! Who injects whom: evaluates the selectors of injector webhooks over every way a namespace and a
//! pod can be labelled, to find two active injectors for the same pod.
//!
//! Two injectors on one pod inject it twice; the last in name order wins. So an installation that
//! would overlap with a foreign one stops before it writes anything.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhook, MutatingWebhookConfiguration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// Labels by key.
type Labels = BTreeMap<&'static str, String>;

const REV: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
const INJECT: &str = "sidecar.istio.io/inject";

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
    config.webhooks.iter().flatten().any(is_injector_webhook)
}

fn is_injector_webhook(webhook: &MutatingWebhook) -> bool {
    webhook.name.ends_with("sidecar-injector.istio.io")
}

/// The first labelling under which `ours` and one of `others` both inject, for each of `others`.
pub fn overlaps(
    ours: &[MutatingWebhookConfiguration],
    others: &[MutatingWebhookConfiguration],
) -> Vec<Overlap> {
    let mut found = Vec::new();
    for other in others {
        let name = other.metadata.name.clone().unwrap_or_default();
        let revisions = mentioned_revisions(ours.iter().chain([other]));
        let hit = permutations(&revisions)
            .into_iter()
            .find(|(namespace, pod)| {
                injects(other, namespace, pod) && ours.iter().any(|c| injects(c, namespace, pod))
            });
        if let Some((namespace, pod)) = hit {
            found.push(Overlap {
                other: name,
                example: describe(&namespace, &pod),
            });
        }
    }
    found
}

fn injects(config: &MutatingWebhookConfiguration, namespace: &Labels, pod: &Labels) -> bool {
    config
        .webhooks
        .iter()
        .flatten()
        .filter(|w| is_injector_webhook(w))
        .any(|webhook| {
            selects(webhook.namespace_selector.as_ref(), namespace)
                && selects(webhook.object_selector.as_ref(), pod)
        })
}

fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector else {
        return true;
    };
    let by_labels = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key.as_str()) == Some(value));
    by_labels
        && selector
            .match_expressions
            .iter()
            .flatten()
            .all(|r| satisfied(r, labels))
}

fn satisfied(requirement: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let value = labels.get(requirement.key.as_str());
    let listed = |v: &String| requirement.values.iter().flatten().any(|x| x == v);
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// Every revision that a selector of the configurations names.
fn mentioned_revisions<'a>(
    configs: impl Iterator<Item = &'a MutatingWebhookConfiguration>,
) -> BTreeSet<String> {
    configs
        .flat_map(|c| c.webhooks.iter().flatten())
        .flat_map(|w| [w.namespace_selector.as_ref(), w.object_selector.as_ref()])
        .flatten()
        .flat_map(|s| s.match_expressions.iter().flatten())
        .filter(|r| r.key == REV)
        .flat_map(|r| r.values.iter().flatten().cloned())
        .collect()
}

/// All ways a namespace and a pod can be labelled, as far as injection cares.
fn permutations(revisions: &BTreeSet<String>) -> Vec<(Labels, Labels)> {
    let rev: Vec<Option<String>> = std::iter::once(None)
        .chain(revisions.iter().cloned().map(Some))
        .collect();
    let options = |values: &[&str]| -> Vec<Option<String>> {
        std::iter::once(None)
            .chain(values.iter().map(|v| Some((*v).to_owned())))
            .collect()
    };
    let mut all = Vec::new();
    for namespace_rev in &rev {
        for injection in options(&["enabled", "disabled"]) {
            let namespace = labels([(REV, namespace_rev.clone()), (INJECTION, injection)]);
            for pod_rev in &rev {
                for inject in options(&["true", "false"]) {
                    let pod = labels([(REV, pod_rev.clone()), (INJECT, inject)]);
                    all.push((namespace.clone(), pod));
                }
            }
        }
    }
    all
}

fn labels<const N: usize>(pairs: [(&'static str, Option<String>); N]) -> Labels {
    pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn describe(namespace: &Labels, pod: &Labels) -> String {
    let side = |what: &str, labels: &Labels| {
        let text: Vec<_> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if text.is_empty() {
            format!("unlabelled {what}")
        } else {
            format!("{what} {}", text.join(","))
        }
    };
    format!("{}, {}", side("namespace", namespace), side("pod", pod))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(
        name: &str,
        namespaces: serde_json::Value,
        pods: serde_json::Value,
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
            json!({"matchExpressions": [{"key": REV, "operator": "In", "values": [rev]}]}),
            json!({}),
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
            json!({"matchLabels": {"istio.io/deactivated": "never-match"}}),
            json!({"matchLabels": {"istio.io/deactivated": "never-match"}}),
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
}
