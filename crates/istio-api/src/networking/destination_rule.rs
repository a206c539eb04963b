//! `DestinationRule`: how a client talks to a host it was routed to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::{api_enum, custom_object};

custom_object! {
    /// `destinationrules.networking.istio.io`.
    DestinationRule, "networking.istio.io", DestinationRuleSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DestinationRuleSpec {
    /// `spec.host`.
    #[serde(default)]
    pub host: String,
    /// `spec.trafficPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<TrafficPolicy>,
    /// `spec.subsets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subsets: Vec<Subset>,
    /// `spec.exportTo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub export_to: Vec<String>,
}

/// `spec.trafficPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficPolicy {
    /// `tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// `connectionPool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_pool: Option<ConnectionPool>,
}

/// `spec.trafficPolicy.connectionPool`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPool {
    /// `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<ConnectionPoolHttp>,
}

/// `spec.trafficPolicy.connectionPool.http`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionPoolHttp {
    /// `useClientProtocol`: HTTP/2 stays HTTP/2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_client_protocol: Option<bool>,
}

/// `spec.trafficPolicy.tls`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTls {
    /// `mode`.
    pub mode: ClientTlsMode,
    /// `credentialName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_name: Option<String>,
    /// `sni`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
    /// `subjectAltNames`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subject_alt_names: Vec<String>,
    /// `insecureSkipVerify`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,
}

api_enum! {
    /// `spec.trafficPolicy.tls.mode`.
    ClientTlsMode {
        /// Plain text.
        Disable,
        /// TLS; the server shows a certificate.
        Simple,
        /// Both sides show certificates given here.
        Mutual,
        /// Both sides show the mesh's certificates.
        IstioMutual,
    }
}

/// `spec.subsets[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// `name`.
    pub name: String,
    /// `labels` of the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `trafficPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<TrafficPolicy>,
}
