//! The cluster-scoped webhooks of one control plane, typed.
//!
//! Every disaster in the field comes from these objects, so they are built here and not by a
//! template: the injector, one injector per revision tag, the revision's validator and the default
//! validator. A test compares them with what the charts of five Istio versions render.
//!
//! `caBundle` is never set unless the values carry one: istiod writes it. `failurePolicy` of a
//! validator is `Ignore` at creation, for istiod turns it to `Fail` once it answers; a validator
//! that is there already keeps what it has, so that an upgrade never opens or closes it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};
use serde_json::Value;

use super::chart_labels::ChartLabels;
use crate::Revision;

/// Namespaces that are never injected, even where injection is on by default.
const NEVER_INJECTED: [&str; 4] = [
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "local-path-storage",
];

const REV: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
const INJECT: &str = "sidecar.istio.io/inject";

/// What the webhooks of one control plane are made from.
#[derive(Clone, Debug)]
pub struct WebhookInput<'a> {
    /// Namespace of istiod.
    pub namespace: &'a str,
    /// The control plane's revision.
    pub revision: &'a Revision,
    /// The istiod chart's values as its templates see them, profile merged in.
    pub values: &'a Value,
    /// Labels that the chart puts on all its objects.
    pub labels: &'a ChartLabels,
    /// `failurePolicy` of each `ValidatingWebhookConfiguration` that exists already, by name.
    pub live_failure_policies: &'a BTreeMap<String, String>,
}

/// Name of the injector configuration of `revision` in `namespace`.
///
/// Only istio-system is left out of the name; see `istio-revision-tag-*` alike.
pub fn injector_name(revision: &Revision, namespace: &str) -> String {
    outside_istio_system(revision.suffixed("istio-sidecar-injector"), namespace)
}

/// Name of the injector configuration of the revision tag `tag` for an istiod in `namespace`.
pub fn tag_name(tag: &str, namespace: &str) -> String {
    outside_istio_system(format!("istio-revision-tag-{tag}"), namespace)
}

/// Name of the validator configuration of `revision` in `namespace`.
pub fn validator_name(revision: &Revision, namespace: &str) -> String {
    format!("{}-{namespace}", revision.suffixed("istio-validator"))
}

/// Name of the cluster's one default validator.
pub const DEFAULT_VALIDATOR: &str = "istiod-default-validator";

fn outside_istio_system(name: String, namespace: &str) -> String {
    if namespace == "istio-system" {
        name
    } else {
        format!("{name}-{namespace}")
    }
}

/// The injector of the revision.
pub fn injector(input: &WebhookInput<'_>) -> MutatingWebhookConfiguration {
    let rev = input.revision.label();
    let mut webhooks = revision_entries(input, rev);
    if input.revision.is_default() {
        webhooks.extend(default_entries(input));
    }
    MutatingWebhookConfiguration {
        metadata: injector_metadata(input, injector_name(input.revision, input.namespace), None),
        webhooks: Some(webhooks),
    }
}

/// The injector of the revision tag `tag`; the tag `default` also takes what no revision claims.
pub fn tag_injector(input: &WebhookInput<'_>, tag: &str) -> MutatingWebhookConfiguration {
    let mut webhooks = revision_entries(input, tag);
    if tag == "default" {
        webhooks.extend(default_entries(input));
    }
    MutatingWebhookConfiguration {
        metadata: injector_metadata(input, tag_name(tag, input.namespace), Some(tag)),
        webhooks: Some(webhooks),
    }
}

/// The validator that sees the objects labelled with the revision.
pub fn validator(input: &WebhookInput<'_>) -> ValidatingWebhookConfiguration {
    let name = validator_name(input.revision, istiod_namespace(input));
    let selector = LabelSelector {
        match_expressions: Some(vec![is_in(REV, &[input.revision.label()])]),
        match_labels: None,
    };
    validating(
        input,
        name,
        "rev.validation.istio.io",
        input.revision.label(),
        &input.revision.suffixed("istiod"),
        Some(selector),
    )
}

/// The cluster's default validator, answered by `default_revision` (`default` or a name).
pub fn default_validator(
    input: &WebhookInput<'_>,
    default_revision: &str,
) -> ValidatingWebhookConfiguration {
    let service = if default_revision == "default" {
        "istiod".to_owned()
    } else {
        format!("istiod-{default_revision}")
    };
    validating(
        input,
        DEFAULT_VALIDATOR.to_owned(),
        "validation.istio.io",
        default_revision,
        &service,
        None,
    )
}

fn validating(
    input: &WebhookInput<'_>,
    name: String,
    webhook: &str,
    rev: &str,
    service: &str,
    object_selector: Option<LabelSelector>,
) -> ValidatingWebhookConfiguration {
    let base = &input.values["base"];
    let ca_bundle = text(&base["validationCABundle"]);
    let failure_policy = if ca_bundle.is_some() {
        "Fail".to_owned()
    } else if let Some(wanted) = text(&base["validationFailurePolicy"]) {
        wanted.to_owned()
    } else {
        input
            .live_failure_policies
            .get(&name)
            .cloned()
            .unwrap_or_else(|| "Ignore".to_owned())
    };
    let client_config = match text(&base["validationURL"]) {
        Some(url) => WebhookClientConfig {
            url: Some(url.to_owned()),
            ..Default::default()
        },
        None => WebhookClientConfig {
            service: Some(ServiceReference {
                name: service.to_owned(),
                namespace: istiod_namespace(input).to_owned(),
                path: Some("/validate".to_owned()),
                port: None,
            }),
            ..Default::default()
        },
    };
    let mut labels = input.labels.common();
    labels.extend(
        [
            ("app", "istiod"),
            ("release", input.labels.release.as_str()),
            ("istio", "istiod"),
            (REV, rev),
            ("app.kubernetes.io/name", "istiod"),
        ]
        .map(owned),
    );
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some(labels),
            ..Default::default()
        },
        webhooks: Some(vec![ValidatingWebhook {
            name: webhook.to_owned(),
            client_config: WebhookClientConfig {
                ca_bundle: ca_bundle.map(base64_text),
                ..client_config
            },
            rules: Some(vec![RuleWithOperations {
                operations: Some(strings(&["CREATE", "UPDATE"])),
                api_groups: Some(strings(&[
                    "security.istio.io",
                    "networking.istio.io",
                    "telemetry.istio.io",
                    "extensions.istio.io",
                ])),
                api_versions: Some(strings(&["*"])),
                resources: Some(strings(&["*"])),
                scope: None,
            }]),
            failure_policy: Some(failure_policy),
            side_effects: "None".to_owned(),
            admission_review_versions: vec!["v1".to_owned()],
            object_selector,
            ..Default::default()
        }]),
    }
}

fn injector_metadata(input: &WebhookInput<'_>, name: String, tag: Option<&str>) -> ObjectMeta {
    let mut labels = input.labels.common();
    labels.extend(
        [
            (REV, input.revision.label()),
            (
                "install.operator.istio.io/owning-resource",
                text(&input.values["ownerName"]).unwrap_or("unknown"),
            ),
            ("operator.istio.io/component", "Pilot"),
            ("app", "sidecar-injector"),
            ("release", input.labels.release.as_str()),
            ("app.kubernetes.io/name", "istiod"),
        ]
        .map(owned),
    );
    if let Some(tag) = tag {
        labels.insert("istio.io/tag".to_owned(), tag.to_owned());
    }
    let annotations: Option<BTreeMap<String, String>> =
        input.values["sidecarInjectorWebhookAnnotations"]
            .as_object()
            .filter(|m| !m.is_empty())
            .map(|map| {
                map.iter()
                    .map(|(key, value)| (key.clone(), text(value).unwrap_or_default().to_owned()))
                    .collect()
            });
    ObjectMeta {
        name: Some(name),
        labels: Some(labels),
        annotations,
        ..Default::default()
    }
}

/// The two entries every injector has: by the namespace's revision, and by the pod's.
fn revision_entries(input: &WebhookInput<'_>, rev: &str) -> Vec<MutatingWebhook> {
    vec![
        entry(
            input,
            "rev.namespace.",
            vec![is_in(REV, &[rev]), absent(INJECTION)],
            vec![is_not_in(INJECT, &["false"])],
        ),
        entry(
            input,
            "rev.object.",
            vec![absent(REV), absent(INJECTION)],
            vec![is_not_in(INJECT, &["false"]), is_in(REV, &[rev])],
        ),
    ]
}

/// What the default revision (or the default tag) takes besides.
fn default_entries(input: &WebhookInput<'_>) -> Vec<MutatingWebhook> {
    let mut entries = vec![
        entry(
            input,
            "namespace.",
            vec![is_in(INJECTION, &["enabled"])],
            vec![is_not_in(INJECT, &["false"])],
        ),
        entry(
            input,
            "object.",
            vec![absent(INJECTION), absent(REV)],
            vec![is_in(INJECT, &["true"]), absent(REV)],
        ),
    ];
    let everywhere = &input.values["sidecarInjectorWebhook"]["enableNamespacesByDefault"];
    if everywhere.as_bool() == Some(true) {
        entries.push(entry(
            input,
            "auto.",
            vec![
                absent(INJECTION),
                absent(REV),
                is_not_in("kubernetes.io/metadata.name", &NEVER_INJECTED),
            ],
            vec![absent(INJECT), absent(REV)],
        ));
    }
    entries
}

fn entry(
    input: &WebhookInput<'_>,
    prefix: &str,
    namespaces: Vec<LabelSelectorRequirement>,
    objects: Vec<LabelSelectorRequirement>,
) -> MutatingWebhook {
    let remote = &input.values["istiodRemote"];
    let client_config = match text(&remote["injectionURL"]) {
        Some(url) => WebhookClientConfig {
            url: Some(url.to_owned()),
            ..Default::default()
        },
        None => WebhookClientConfig {
            service: Some(ServiceReference {
                name: input.revision.suffixed("istiod"),
                namespace: input.namespace.to_owned(),
                path: Some(
                    text(&remote["injectionPath"])
                        .unwrap_or("/inject")
                        .to_owned(),
                ),
                port: Some(443),
            }),
            ..Default::default()
        },
    };
    MutatingWebhook {
        name: format!("{prefix}sidecar-injector.istio.io"),
        client_config: WebhookClientConfig {
            ca_bundle: text(&remote["injectionCABundle"]).map(base64_text),
            ..client_config
        },
        side_effects: "None".to_owned(),
        rules: Some(vec![RuleWithOperations {
            operations: Some(strings(&["CREATE"])),
            api_groups: Some(strings(&[""])),
            api_versions: Some(strings(&["v1"])),
            resources: Some(strings(&["pods"])),
            scope: None,
        }]),
        failure_policy: Some("Fail".to_owned()),
        reinvocation_policy: Some(
            text(&input.values["sidecarInjectorWebhook"]["reinvocationPolicy"])
                .unwrap_or("Never")
                .to_owned(),
        ),
        admission_review_versions: vec!["v1".to_owned()],
        namespace_selector: Some(selector(namespaces)),
        object_selector: Some(selector(objects)),
        ..Default::default()
    }
}

fn selector(expressions: Vec<LabelSelectorRequirement>) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(expressions),
        match_labels: None,
    }
}

fn is_in(key: &str, values: &[&str]) -> LabelSelectorRequirement {
    requirement(key, "In", Some(values))
}

fn is_not_in(key: &str, values: &[&str]) -> LabelSelectorRequirement {
    requirement(key, "NotIn", Some(values))
}

fn absent(key: &str) -> LabelSelectorRequirement {
    requirement(key, "DoesNotExist", None)
}

fn requirement(key: &str, operator: &str, values: Option<&[&str]>) -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.map(|v| v.iter().map(|s| (*s).to_owned()).collect()),
    }
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|s| (*s).to_owned()).collect()
}

fn owned((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// The namespace that the values name for istiod. It differs from the release's namespace only
/// where somebody renders a chart by hand; the charm sets both alike.
fn istiod_namespace<'a>(input: &WebhookInput<'a>) -> &'a str {
    text(&input.values["global"]["istioNamespace"]).unwrap_or(input.namespace)
}

/// A non-empty string value; charts write "not set" as `""`.
fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|s| !s.is_empty())
}

/// The chart takes a caBundle already in base64; the typed field encodes once more, so decode.
fn base64_text(encoded: &str) -> ByteString {
    serde_json::from_value(Value::String(encoded.trim().to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(config: &MutatingWebhookConfiguration) -> Vec<&str> {
        config
            .webhooks
            .iter()
            .flatten()
            .map(|w| w.name.split("sidecar").next().unwrap())
            .collect()
    }

    fn with_input(revision: &str, values: &Value, check: impl FnOnce(&WebhookInput<'_>)) {
        let labels = ChartLabels::new("istiod", "istiod", "1.31.0", "1.31.0");
        let live = BTreeMap::from([("istio-validator-istio-lab".to_owned(), "Fail".to_owned())]);
        check(&WebhookInput {
            namespace: "istio-lab",
            revision: &revision.parse().unwrap(),
            values,
            labels: &labels,
            live_failure_policies: &live,
        });
    }

    #[test]
    fn the_default_revision_takes_what_no_revision_claims() {
        with_input("", &json!({}), |input| {
            let config = injector(input);
            assert_eq!(
                names(&config),
                ["rev.namespace.", "rev.object.", "namespace.", "object."]
            );
            assert_eq!(
                config.metadata.name.as_deref(),
                Some("istio-sidecar-injector-istio-lab")
            );
        });
    }

    #[test]
    fn a_named_revision_takes_only_what_names_it() {
        with_input("canary", &json!({}), |input| {
            assert_eq!(names(&injector(input)), ["rev.namespace.", "rev.object."]);
            assert_eq!(
                names(&tag_injector(input, "prod")),
                ["rev.namespace.", "rev.object."]
            );
            assert_eq!(names(&tag_injector(input, "default")).len(), 4);
        });
    }

    #[test]
    fn injection_everywhere_spares_the_systems_namespaces() {
        let values = json!({"sidecarInjectorWebhook": {"enableNamespacesByDefault": true}});
        with_input("", &values, |input| {
            let config = injector(input);
            let auto = config.webhooks.unwrap().pop().unwrap();
            let json = serde_json::to_string(&auto.namespace_selector).unwrap();
            assert!(json.contains("kube-system"), "{json}");
        });
    }

    #[test]
    fn a_validator_starts_open_and_keeps_what_istiod_made_of_it() {
        with_input("", &json!({}), |input| {
            let policy = |c: ValidatingWebhookConfiguration| {
                c.webhooks.unwrap().remove(0).failure_policy.unwrap()
            };
            assert_eq!(policy(validator(input)), "Fail");
            assert_eq!(policy(default_validator(input, "default")), "Ignore");
        });
    }

    #[test]
    fn only_istio_system_is_left_out_of_the_names() {
        assert_eq!(
            injector_name(&Revision::Default, "istio-system"),
            "istio-sidecar-injector"
        );
        assert_eq!(
            tag_name("default", "istio-lab"),
            "istio-revision-tag-default-istio-lab"
        );
        assert_eq!(
            validator_name(&Revision::Default, "istio-system"),
            "istio-validator-istio-system"
        );
    }
}
