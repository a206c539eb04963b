//! `VirtualService`: how requests for hosts are routed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::custom_object;

custom_object! {
    /// `virtualservices.networking.istio.io`.
    VirtualService, "networking.istio.io", VirtualServiceSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualServiceSpec {
    /// `spec.hosts`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// `spec.gateways`: `namespace/name`, or `mesh` for sidecars. Empty means `mesh`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// `spec.http`: the first match wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRoute>,
    /// `spec.tls`: routed by SNI, not terminated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<TlsRoute>,
    /// `spec.tcp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpRoute>,
    /// `spec.exportTo`: namespaces that see this object; empty means the mesh default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub export_to: Vec<String>,
}

/// `spec.http[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRoute {
    /// `name`: for people and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `match`: any of these; empty matches everything.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// `route`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<RouteDestination>,
    /// `redirect`: instead of `route`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<HttpRedirect>,
    /// `directResponse`: instead of `route`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct_response: Option<DirectResponse>,
    /// `rewrite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<HttpRewrite>,
    /// `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// `retries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<HttpRetry>,
    /// `corsPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<CorsPolicy>,
    /// `headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
}

/// `spec.http[].match[]`: all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpMatch {
    /// `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `uri`. A `prefix` matches by characters: `/a` matches `/ab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// `method`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// `authority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<StringMatch>,
    /// `scheme`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<StringMatch>,
    /// `headers`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
    /// `queryParams`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
    /// `port` at the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `ignoreUriCase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_uri_case: Option<bool>,
}

/// A condition on a string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StringMatch {
    /// Equal.
    Exact(String),
    /// Begins with.
    Prefix(String),
    /// RE2 regular expression over the whole string.
    Regex(String),
}

/// `route[]`: a destination and its share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteDestination {
    /// `destination`.
    pub destination: Destination,
    /// `weight`, relative to its siblings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// `headers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
}

/// `destination`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// Service name; write it fully (`name.namespace.svc.cluster.local`), short names are resolved in
    /// the namespace of the `VirtualService`.
    pub host: String,
    /// `port`; needed when the service has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortSelector>,
    /// `subset` of a `DestinationRule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subset: Option<String>,
}

/// `destination.port`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSelector {
    /// Service port (not the pod's).
    pub number: u16,
}

/// `rewrite`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRewrite {
    /// Replaces the matched prefix, or the whole path after an exact match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Replaces the Host header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// `uriRegexRewrite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri_regex_rewrite: Option<UriRegexRewrite>,
}

/// `rewrite.uriRegexRewrite`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UriRegexRewrite {
    /// RE2 expression for the part of the path to replace.
    #[serde(rename = "match")]
    pub pattern: String,
    /// Replacement, `\1` for groups.
    pub rewrite: String,
}

/// `redirect`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRedirect {
    /// New path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// New host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// New scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// New port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// 301 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_code: Option<u16>,
}

/// `directResponse`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectResponse {
    /// HTTP status.
    pub status: u16,
    /// `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<HttpBody>,
}

/// `directResponse.body`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpBody {
    /// Text of the answer.
    pub string: String,
}

/// `retries`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRetry {
    /// How often; 0 turns Istio's default of 2 off.
    pub attempts: u32,
    /// `perTryTimeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_try_timeout: Option<String>,
    /// `retryOn`, as in Envoy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<String>,
}

/// `corsPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// `allowOrigins`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_origins: Vec<StringMatch>,
    /// `allowMethods`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_methods: Vec<String>,
    /// `allowHeaders`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_headers: Vec<String>,
    /// `allowCredentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
    /// `maxAge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
}

/// `headers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<HeaderOperations>,
    /// `response`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<HeaderOperations>,
}

/// `headers.request`, `headers.response`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderOperations {
    /// Overwritten.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Appended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// `spec.tls[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsRoute {
    /// `match`.
    #[serde(default, rename = "match")]
    pub matches: Vec<TlsMatch>,
    /// `route`.
    #[serde(default)]
    pub route: Vec<RouteDestination>,
}

/// `spec.tls[].match[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TlsMatch {
    /// `sniHosts`: must be among the object's hosts.
    #[serde(default)]
    pub sni_hosts: Vec<String>,
    /// `port` at the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// `spec.tcp[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpRoute {
    /// `match`.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<L4Match>,
    /// `route`.
    #[serde(default)]
    pub route: Vec<RouteDestination>,
}

/// `spec.tcp[].match[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct L4Match {
    /// `port` at the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CustomObject as _;

    #[test]
    fn a_prefix_route_is_written_in_the_version_the_cluster_serves() {
        let service = VirtualService::new(
            "lab",
            "meshy",
            VirtualServiceSpec {
                hosts: vec!["*".to_owned()],
                gateways: vec!["istio-lab/edge".to_owned()],
                http: vec![HttpRoute {
                    matches: vec![HttpMatch {
                        uri: Some(StringMatch::Prefix("/meshy/".to_owned())),
                        ..HttpMatch::default()
                    }],
                    rewrite: Some(HttpRewrite {
                        uri: Some("/".to_owned()),
                        ..HttpRewrite::default()
                    }),
                    route: vec![RouteDestination {
                        destination: Destination {
                            host: "meshy.lab.svc.cluster.local".to_owned(),
                            port: Some(PortSelector { number: 8080 }),
                            subset: None,
                        },
                        ..RouteDestination::default()
                    }],
                    ..HttpRoute::default()
                }],
                ..VirtualServiceSpec::default()
            },
        );
        let expect = json!({
            "apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService",
            "metadata": {"name": "meshy", "namespace": "lab"},
            "spec": {
                "hosts": ["*"], "gateways": ["istio-lab/edge"],
                "http": [{
                    "match": [{"uri": {"prefix": "/meshy/"}}],
                    "rewrite": {"uri": "/"},
                    "route": [{"destination": {
                        "host": "meshy.lab.svc.cluster.local", "port": {"number": 8080},
                    }}],
                }],
            },
        });
        assert_eq!(service.to_object_as("v1beta1"), expect);
        let read: VirtualService = serde_json::from_value(expect).expect("readable");
        assert_eq!(read, service);
    }
}
