//! Admission webhooks that would hurt an upgrade: injectors that overlap, and webhooks that nobody
//! answers.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use serde_json::Value;

use super::finding::{Code, Finding};
use crate::injection::{is_injector, overlaps};

/// Pairs of injectors in the cluster that take the same pods. `ours` tells which the application
/// may change: two foreign ones are only told.
pub fn overlapping(live: &[Value], ours: impl Fn(&str) -> bool) -> Vec<Finding> {
    let injectors: Vec<MutatingWebhookConfiguration> = live
        .iter()
        .filter_map(|config| serde_json::from_value(config.clone()).ok())
        .filter(is_injector)
        .collect();
    let name =
        |config: &MutatingWebhookConfiguration| config.metadata.name.clone().unwrap_or_default();
    let mut out = Vec::new();
    for (at, one) in injectors.iter().enumerate() {
        let found = overlaps(std::slice::from_ref(one), &injectors[at + 1..]);
        for overlap in found {
            let one = name(one);
            let both_ours = ours(&one) && ours(&overlap.other);
            let any_ours = ours(&one) || ours(&overlap.other);
            let object = format!("MutatingWebhookConfiguration {one}");
            let why = format!(
                "it and {} inject the same pods: {}",
                overlap.other, overlap.example
            );
            let finding = if any_ours && !both_ours {
                Finding::error(Code::InjectorOverlap, object, why)
            } else {
                Finding::warning(Code::InjectorOverlap, object, why)
            };
            let mend = if ours(&one) { &overlap.other } else { &one };
            out.push(finding.mended_by(format!(
                "kubectl get mutatingwebhookconfiguration {mend} -o yaml, and remove the one that is \
                 left over"
            )));
        }
    }
    out
}

/// A Service behind a webhook, as `(namespace, name)`.
pub type Service = (String, String);

/// The Services that the webhook configurations name, each once.
pub fn services(live: &[Value]) -> BTreeSet<Service> {
    live.iter().flat_map(webhooks).filter_map(service).collect()
}

/// Webhooks whose Service has no ready endpoint: those in `answered` have one. One that must answer
/// and takes every pod keeps the new istiod from starting.
pub fn dead(live: &[Value], answered: &BTreeSet<Service>) -> Vec<Finding> {
    let mut out = Vec::new();
    for config in live {
        for webhook in webhooks(config) {
            let Some(service) = service(webhook).filter(|service| !answered.contains(service))
            else {
                continue;
            };
            let kind = config["kind"].as_str().unwrap_or_default();
            let name = config["metadata"]["name"].as_str().unwrap_or_default();
            let object = format!("{kind} {name}");
            let (namespace, service) = service;
            let closed = webhook["failurePolicy"] != "Ignore";
            let finding = if closed && takes_every_pod(webhook) {
                let why =
                    format!("no pod can be created: nothing answers for {namespace}/{service}");
                Finding::error(Code::DeadWebhook, object, why)
            } else if closed {
                let why =
                    format!("what it judges is refused: nothing answers for {namespace}/{service}");
                Finding::warning(Code::DeadWebhook, object, why)
            } else {
                let why = format!("nothing answers for {namespace}/{service}");
                Finding::info(Code::DeadWebhook, object, why)
            };
            out.push(finding.mended_by(format!("kubectl delete {} {name}", kind.to_lowercase())));
        }
    }
    out
}

fn webhooks(config: &Value) -> impl Iterator<Item = &Value> {
    config["webhooks"].as_array().into_iter().flatten()
}

fn service(webhook: &Value) -> Option<Service> {
    let service = &webhook["clientConfig"]["service"];
    let text = |key: &str| service[key].as_str().map(str::to_owned);
    Some((text("namespace")?, text("name")?))
}

fn takes_every_pod(webhook: &Value) -> bool {
    let any = |selector: &Value| {
        ["matchLabels", "matchExpressions"].iter().all(|key| {
            let part = &selector[*key];
            part.is_null()
                || part.as_object().is_some_and(serde_json::Map::is_empty)
                || part.as_array().is_some_and(Vec::is_empty)
        })
    };
    let lists = |rule: &Value, key: &str, wanted: &[&str]| {
        let list = rule[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str)
            .any(|item| wanted.contains(&item))
    };
    let takes_pods = webhook["rules"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|rule| {
            lists(rule, "operations", &["CREATE", "*"])
                && lists(rule, "apiGroups", &["", "*"])
                && lists(rule, "resources", &["pods", "*", "*/*", "pods/*"])
        });
    takes_pods && any(&webhook["namespaceSelector"]) && any(&webhook["objectSelector"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn injector(name: &str, rev: &str) -> Value {
        json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": name}, "webhooks": [{
            "name": "rev.sidecar-injector.istio.io", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "clientConfig": {},
            "namespaceSelector": {"matchLabels": {"istio.io/rev": rev}}}]})
    }

    #[test]
    fn an_overlap_with_a_foreign_injector_blocks_and_one_among_foreign_ones_is_told() {
        let list = [injector("a", "x"), injector("b", "x"), injector("c", "y")];
        let check = |ours: &[&str], expect: &[bool]| {
            let found = overlapping(&list, |name| ours.contains(&name));
            let blocks: Vec<bool> = found.iter().map(Finding::blocks).collect();
            assert_eq!(blocks, expect, "{ours:?}");
        };
        check(&["a"], &[true]);
        check(&["b"], &[true]);
        check(&["c"], &[false]);
        check(&["a", "b"], &[false]);
    }

    fn webhook(policy: &str, selector: &Value) -> Value {
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "judge"}, "webhooks": [{
            "name": "judge.example.com", "failurePolicy": policy, "namespaceSelector": selector,
            "clientConfig": {"service": {"namespace": "judge-lab", "name": "judge"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "resources": ["pods"]}]}]})
    }

    #[test]
    fn a_webhook_that_nobody_answers_blocks_where_it_takes_every_pod() {
        let some = json!({"matchLabels": {"a": "b"}});
        let check = |config: Value, answered: bool, expect: Option<bool>| {
            let services = services(std::slice::from_ref(&config));
            let answered = if answered { services } else { BTreeSet::new() };
            let found = dead(&[config], &answered);
            assert_eq!(found.first().map(Finding::blocks), expect);
        };
        check(webhook("Fail", &json!({})), false, Some(true));
        check(webhook("Fail", &some), false, Some(false));
        check(webhook("Ignore", &json!({})), false, Some(false));
        check(webhook("Fail", &json!({})), true, None);
        // By URL: nobody in the cluster can tell.
        let mut by_url = webhook("Fail", &json!({}));
        by_url["webhooks"][0]["clientConfig"] = json!({"url": "https://judge.example.com"});
        check(by_url, false, None);
    }
}
