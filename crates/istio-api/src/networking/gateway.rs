//! `Gateway`: which ports and hosts a gateway workload accepts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::{api_enum, custom_object};

custom_object! {
    /// `gateways.networking.istio.io` (not Gateway API's kind of the same name).
    Gateway, "networking.istio.io", GatewaySpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// `spec.selector`: labels of the gateway pods. Looked up in all namespaces unless istiod runs
    /// with `PILOT_SCOPE_GATEWAY_TO_NAMESPACE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// `spec.servers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Server>,
}

/// `spec.servers[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// `port`.
    pub port: Port,
    /// `hosts`: names, `*` or `namespace/name`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// `tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
    /// `name`: for people and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `spec.servers[].port`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Port number at the gateway.
    pub number: u16,
    /// `HTTP`, `HTTPS`, `HTTP2`, `GRPC`, `TLS`, `TCP`, `MONGO`.
    pub protocol: String,
    /// Unique inside the gateway.
    pub name: String,
}

/// `spec.servers[].tls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTls {
    /// `mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ServerTlsMode>,
    /// `credentialName`: a Secret beside the gateway pods (its namespace, not this object's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_name: Option<String>,
    /// `httpsRedirect`: answer plain HTTP with a 301.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_redirect: Option<bool>,
    /// `minProtocolVersion`: `TLSV1_2`, `TLSV1_3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_protocol_version: Option<String>,
}

api_enum! {
    /// `spec.servers[].tls.mode`.
    ServerTlsMode {
        /// Routed by SNI, not terminated.
        Passthrough,
        /// Terminated here.
        Simple,
        /// Terminated here; clients show a certificate.
        Mutual,
        /// SNI routing without a `VirtualService`.
        AutoPassthrough,
        /// Mutual with the mesh's own certificates.
        IstioMutual,
        /// Clients may show a certificate.
        OptionalMutual,
    }
}
