//! Which revision answers for the default: for namespaces that name no revision, and for objects
//! that no revision's validator sees.
//!
//! What is live says it, and nothing else is remembered: the injector of the tag `default`, if
//! there is one, names its revision; else it is the default revision, while its injector is active.
//! So a promotion that was cut off is either not begun or finished by the next hook.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::Revision;
use crate::control_plane::webhooks::{injector_name, tag_name};

/// The annotation with which the tag's injector names the revision that answered before.
pub const PREVIOUS: &str = "charms.istio-operators.dev/previous-default";

/// The label by which a parked injector selects nothing; istioctl uses the same.
const PARKED: &str = "istio.io/deactivated";

/// Who answers for the default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Holder {
    /// The revision, none if nobody does.
    pub revision: Option<Revision>,
    /// The one that answered before, where a promotion has noted it.
    pub previous: Option<Revision>,
    /// Whether it is the tag that makes it so.
    pub by_tag: bool,
}

/// Who answers for the default in `namespace`, by the application's own injectors.
pub fn holder(ours: &[Value], namespace: &str) -> Holder {
    let named = |name: &str| {
        ours.iter()
            .find(|config| config["metadata"]["name"] == name)
    };
    if let Some(tag) = named(&tag_name("default", namespace)) {
        let revision = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let metadata = &tag["metadata"];
        return Holder {
            revision: revision(&metadata["labels"]["istio.io/rev"]),
            previous: revision(&metadata["annotations"][PREVIOUS]),
            by_tag: true,
        };
    }
    let own = named(&injector_name(&Revision::Default, namespace));
    Holder {
        revision: own.filter(|own| !is_parked(own)).map(|_| Revision::Default),
        previous: None,
        by_tag: false,
    }
}

/// The same injector, selecting nothing. Its CA bundle stays, so that it can be back at once.
#[must_use]
pub fn parked(mut config: Value) -> Value {
    let never = serde_json::json!({"matchLabels": {PARKED: "never-match"}});
    for webhook in config["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["namespaceSelector"] = never.clone();
        webhook["objectSelector"] = never.clone();
    }
    config
}

/// Whether no webhook of the injector selects anything.
pub fn is_parked(config: &Value) -> bool {
    let typed: Option<MutatingWebhookConfiguration> = serde_json::from_value(config.clone()).ok();
    let Some(webhooks) = typed.and_then(|config| config.webhooks) else {
        return false;
    };
    let never = |selector: Option<&LabelSelector>| {
        let labels: Option<&BTreeMap<String, String>> =
            selector.and_then(|selector| selector.match_labels.as_ref());
        labels.is_some_and(|labels| labels.contains_key(PARKED))
    };
    webhooks
        .iter()
        .all(|webhook| never(webhook.namespace_selector.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn injector(name: &str, rev: &str) -> Value {
        json!({"kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name, "labels": {"istio.io/rev": rev}}, "webhooks": [{
                "name": "x.sidecar-injector.istio.io", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "clientConfig": {"caBundle": "Y2E="},
                "namespaceSelector": {"matchLabels": {"istio-injection": "enabled"}}}]})
    }

    #[test]
    fn the_tag_answers_for_the_default_else_the_default_revision() {
        let own = || injector("istio-sidecar-injector-istio-lab", "default");
        let mut tag = injector("istio-revision-tag-default-istio-lab", "1-31");
        tag["metadata"]["annotations"][PREVIOUS] = "default".into();
        let check = |ours: &[Value], expect: (Option<&str>, Option<&str>)| {
            let found = holder(ours, "istio-lab");
            let label = |revision: &Option<Revision>| {
                revision
                    .as_ref()
                    .map(|revision| revision.label().to_owned())
            };
            assert_eq!(
                (
                    label(&found.revision).as_deref(),
                    label(&found.previous).as_deref()
                ),
                expect
            );
        };
        check(&[], (None, None));
        check(&[own()], (Some("default"), None));
        check(&[own(), tag.clone()], (Some("1-31"), Some("default")));
        check(&[parked(own()), tag], (Some("1-31"), Some("default")));
        check(&[parked(own())], (None, None));
        check(
            &[injector("istio-sidecar-injector-1-31-istio-lab", "1-31")],
            (None, None),
        );
    }

    #[test]
    fn a_parked_injector_keeps_its_ca_bundle_and_selects_nothing() {
        let active = injector("a", "default");
        assert!(!is_parked(&active));
        let parked = parked(active);
        assert!(is_parked(&parked));
        assert_eq!(parked["webhooks"][0]["clientConfig"]["caBundle"], "Y2E=");
    }
}
