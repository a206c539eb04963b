//! Overlapping injectors: the answer against a search through every labelling.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

use std::collections::BTreeMap;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use mesh::Revision;
use mesh::control_plane::chart_labels::ChartLabels;
use mesh::control_plane::webhooks::{WebhookInput, injector, tag_injector};
use mesh::injection::overlaps;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

const KEYS: [&str; 3] = ["istio.io/rev", "istio-injection", "team"];
/// The values that selectors name. Labels may have one more.
const NAMED: [&str; 2] = ["a", "b"];

type Labels = BTreeMap<&'static str, &'static str>;

fn requirement() -> impl Strategy<Value = LabelSelectorRequirement> {
    let listing = (select(vec!["In", "NotIn"]), vec(select(&NAMED[..]), 1..3))
        .prop_map(|(operator, values)| (operator, Some(values)));
    let bare = select(vec!["Exists", "DoesNotExist"]).prop_map(|operator| (operator, None));
    (select(&KEYS[..]), prop_oneof![listing, bare]).prop_map(|(key, (operator, values))| {
        LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.map(|values| values.into_iter().map(str::to_owned).collect()),
        }
    })
}

fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
    let labels = option::weighted(0.3, btree_map(select(&KEYS[..]), select(&NAMED[..]), 0..2));
    let expressions = option::weighted(0.9, vec(requirement(), 0..4));
    let some = (labels, expressions).prop_map(|(labels, match_expressions)| LabelSelector {
        match_expressions,
        match_labels: labels.map(|labels| {
            labels
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect()
        }),
    });
    option::weighted(0.9, some)
}

fn config(name: &'static str) -> impl Strategy<Value = MutatingWebhookConfiguration> {
    let webhook =
        (any::<bool>(), selector(), selector()).prop_map(|(sidecars, namespaces, pods)| {
            let kind = if sidecars {
                "sidecar-injector.istio.io"
            } else {
                "example.org"
            };
            MutatingWebhook {
                name: format!("x.{kind}"),
                namespace_selector: namespaces,
                object_selector: pods,
                client_config: WebhookClientConfig::default(),
                ..MutatingWebhook::default()
            }
        });
    vec(webhook, 0..3).prop_map(move |webhooks| MutatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        webhooks: Some(webhooks),
    })
}

/// Every way to label with the keys, absence and an unnamed value included.
fn labellings() -> Vec<Labels> {
    let mut all = vec![Labels::new()];
    for key in KEYS {
        let mut more = Vec::new();
        for labels in &all {
            more.push(labels.clone());
            for value in ["a", "b", "unnamed"] {
                let mut labels = labels.clone();
                labels.insert(key, value);
                more.push(labels);
            }
        }
        all = more;
    }
    all
}

/// As the documentation of label selectors has it.
fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(LabelSelector {
        match_expressions,
        match_labels,
    }) = selector
    else {
        return true;
    };
    let of = |key: &String| labels.get(key.as_str()).copied();
    match_labels
        .iter()
        .flatten()
        .all(|(key, value)| of(key) == Some(value))
        && match_expressions.iter().flatten().all(|r| {
            let values: Vec<&str> = r.values.iter().flatten().map(String::as_str).collect();
            match (r.operator.as_str(), of(&r.key)) {
                ("In", Some(value)) => values.contains(&value),
                ("In" | "Exists", None) | ("DoesNotExist", Some(_)) => false,
                ("NotIn", Some(value)) => !values.contains(&value),
                ("NotIn" | "DoesNotExist", None) | ("Exists", Some(_)) => true,
                (other, _) => panic!("operator {other}"),
            }
        })
}

fn injects(config: &MutatingWebhookConfiguration, namespace: &Labels, pod: &Labels) -> bool {
    let webhooks = config.webhooks.iter().flatten();
    webhooks
        .filter(|w| w.name.ends_with("sidecar-injector.istio.io"))
        .any(|w| {
            selects(w.namespace_selector.as_ref(), namespace)
                && selects(w.object_selector.as_ref(), pod)
        })
}

fn named(revision: &str) -> Revision {
    revision.parse().unwrap()
}

fn with_input<T>(revision: &Revision, make: impl FnOnce(&WebhookInput<'_>) -> T) -> T {
    make(&WebhookInput {
        namespace: "istio-lab",
        revision,
        values: &json!({}),
        labels: &ChartLabels::new("istiod", "istiod", "1.31.0", "1.31.0"),
        live_failure_policies: &BTreeMap::new(),
    })
}

proptest! {
    #[test]
    fn an_overlap_is_found_exactly_where_some_pod_is_injected_twice(
        ours in config("ours"), theirs in config("theirs"),
    ) {
        let labellings = labellings();
        let twice = labellings.iter().any(|namespace| {
            labellings
                .iter()
                .any(|pod| injects(&ours, namespace, pod) && injects(&theirs, namespace, pod))
        });
        let found = overlaps(std::slice::from_ref(&ours), std::slice::from_ref(&theirs));
        prop_assert_eq!(!found.is_empty(), twice, "{:?}", found);
    }

    #[test]
    fn an_overlap_is_the_same_from_both_sides(ours in config("ours"), theirs in config("theirs")) {
        let (ours, theirs) = (&[ours][..], &[theirs][..]);
        prop_assert_eq!(overlaps(ours, theirs).is_empty(), overlaps(theirs, ours).is_empty());
    }

    #[test]
    fn control_planes_overlap_exactly_if_their_revisions_are_the_same(
        a in "(default|[a-c])", b in "(default|[a-c])",
    ) {
        let (a, b) = (named(&a), named(&b));
        let (ours, theirs) = (with_input(&a, injector), with_input(&b, injector));
        prop_assert_eq!(!overlaps(&[ours], &[theirs]).is_empty(), a == b);
    }

    #[test]
    fn a_tag_takes_the_pods_of_the_revision_it_is_named_like(
        tag in "(default|[a-c])", other in "(default|[a-c])",
    ) {
        let revision = named(&other);
        let ours = with_input(&named("canary"), |input| tag_injector(input, &tag));
        let theirs = with_input(&revision, injector);
        prop_assert_eq!(!overlaps(&[ours], &[theirs]).is_empty(), tag == revision.label());
    }
}
