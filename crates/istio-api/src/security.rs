//! `security.istio.io`: `AuthorizationPolicy`, `RequestAuthentication`, `PeerAuthentication`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::{api_enum, custom_object};

custom_object! {
    /// `authorizationpolicies.security.istio.io`.
    AuthorizationPolicy, "security.istio.io", AuthorizationPolicySpec
}

custom_object! {
    /// `requestauthentications.security.istio.io`.
    RequestAuthentication, "security.istio.io", RequestAuthenticationSpec
}

custom_object! {
    /// `peerauthentications.security.istio.io`.
    PeerAuthentication, "security.istio.io", PeerAuthenticationSpec
}

/// `spec.selector`: pods of the object's namespace, or of all namespaces in the root namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// `matchLabels`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// `spec.targetRefs[]`: for waypoints and Gateway API gateways, instead of a selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRef {
    /// API group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name, in the object's namespace.
    pub name: String,
}

/// `spec` of an `AuthorizationPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizationPolicySpec {
    /// `spec.selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// `spec.targetRefs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_refs: Vec<TargetRef>,
    /// `spec.action`; `ALLOW` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// `spec.rules`: any of these. An `ALLOW` policy without rules denies everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// `spec.provider`, for `CUSTOM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
}

api_enum! {
    /// `spec.action`.
    Action {
        /// Let matching requests pass; with at least one such policy all others are denied.
        Allow,
        /// Deny matching requests.
        Deny,
        /// Only log.
        Audit,
        /// Ask the provider.
        Custom,
    }
}

/// `spec.provider`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provider {
    /// Name of an extension provider of the mesh config.
    pub name: String,
}

/// `spec.rules[]`: `from` and `to` and `when` must all match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// `from`: any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<From>,
    /// `to`: any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<To>,
    /// `when`: all of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
}

/// `spec.rules[].from[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct From {
    /// `source`.
    pub source: Source,
}

/// `spec.rules[].from[].source`: all given lists must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `principals`: `trust-domain/ns/NAMESPACE/sa/ACCOUNT`; needs mutual TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub principals: Vec<String>,
    /// `notPrincipals`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_principals: Vec<String>,
    /// `requestPrincipals`: `issuer/subject` of a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_principals: Vec<String>,
    /// `notRequestPrincipals`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_request_principals: Vec<String>,
    /// `namespaces`; needs mutual TLS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// `ipBlocks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_blocks: Vec<String>,
}

/// `spec.rules[].to[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct To {
    /// `operation`.
    pub operation: Operation,
}

/// `spec.rules[].to[].operation`: all given lists must match. Entries may begin or end with `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// `hosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// `notHosts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_hosts: Vec<String>,
    /// `ports` of the workload, as strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    /// `notPorts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_ports: Vec<String>,
    /// `methods`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// `notMethods`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_methods: Vec<String>,
    /// `paths`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// `notPaths`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_paths: Vec<String>,
}

/// `spec.rules[].when[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Attribute, as in `request.headers[x]`.
    pub key: String,
    /// `values`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// `notValues`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_values: Vec<String>,
}

/// `spec` of a `RequestAuthentication`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestAuthenticationSpec {
    /// `spec.selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// `spec.targetRefs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_refs: Vec<TargetRef>,
    /// `spec.jwtRules`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jwt_rules: Vec<JwtRule>,
}

/// `spec.jwtRules[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JwtRule {
    /// `issuer`: equal to the token's `iss`.
    pub issuer: String,
    /// `audiences`: any of these; empty means the service's own name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audiences: Vec<String>,
    /// `jwksUri`: fetched by istiod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// `jwks`: the public keys themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks: Option<String>,
    /// `fromHeaders`; `Authorization: Bearer` unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from_headers: Vec<JwtHeader>,
    /// `forwardOriginalToken`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_original_token: Option<bool>,
    /// `outputPayloadToHeader`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_payload_to_header: Option<String>,
    /// `outputClaimToHeaders`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_claim_to_headers: Vec<ClaimToHeader>,
}

/// `spec.jwtRules[].fromHeaders[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JwtHeader {
    /// Header name.
    pub name: String,
    /// Text before the token, as in `"Bearer "`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// `spec.jwtRules[].outputClaimToHeaders[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimToHeader {
    /// Header name.
    pub header: String,
    /// Claim name; nested claims with dots.
    pub claim: String,
}

/// `spec` of a `PeerAuthentication`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerAuthenticationSpec {
    /// `spec.selector`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// `spec.mtls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<MutualTls>,
}

/// `spec.mtls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutualTls {
    /// `mode`.
    pub mode: MutualTlsMode,
}

api_enum! {
    /// `spec.mtls.mode`.
    MutualTlsMode {
        /// As the level above says.
        Unset,
        /// Plain text only.
        Disable,
        /// Both.
        Permissive,
        /// Mutual TLS only.
        Strict,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CustomObject as _;

    #[test]
    fn only_named_fields_are_written() {
        let policy = AuthorizationPolicy::new(
            "lab",
            "meshy",
            AuthorizationPolicySpec {
                action: Some(Action::Custom),
                provider: Some(Provider {
                    name: "sso".to_owned(),
                }),
                rules: vec![Rule {
                    to: vec![To {
                        operation: Operation {
                            not_paths: vec!["/login*".to_owned()],
                            ..Operation::default()
                        },
                    }],
                    ..Rule::default()
                }],
                ..AuthorizationPolicySpec::default()
            },
        );
        assert_eq!(
            policy.to_object(),
            json!({
                "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
                "metadata": {"name": "meshy", "namespace": "lab"},
                "spec": {
                    "action": "CUSTOM", "provider": {"name": "sso"},
                    "rules": [{"to": [{"operation": {"notPaths": ["/login*"]}}]}],
                },
            })
        );
    }

    #[test]
    fn live_objects_with_unknown_fields_and_values_are_read() {
        let live = json!({
            "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
            "metadata": {"name": "meshy", "generation": 3},
            "spec": {"action": "BLESS", "novel": {"field": 1}},
            "status": {},
        });
        let read: AuthorizationPolicy = serde_json::from_value(live).expect("readable");
        assert_eq!(read.spec.action, Some(Action::Unknown));
    }
}
