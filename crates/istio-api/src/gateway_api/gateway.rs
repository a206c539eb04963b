//! `Gateway`: which ports and hosts are listened on, and by what kind of gateway.

use serde::{Deserialize, Serialize};

use crate::meta::custom_object;

custom_object! {
    /// `gateways.gateway.networking.k8s.io` (not Istio's kind of the same name).
    Gateway, "gateway.networking.k8s.io", GatewaySpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// `spec.gatewayClassName`.
    #[serde(default)]
    pub gateway_class_name: String,
    /// `spec.listeners`.
    #[serde(default)]
    pub listeners: Vec<Listener>,
}

/// `spec.listeners[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// `name`, unique in the `Gateway`.
    pub name: String,
    /// `hostname`; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `port`.
    pub port: u16,
    /// `protocol`: `HTTP`, `HTTPS`, `TLS`, `TCP`, `UDP`, or an implementation's own.
    pub protocol: String,
    /// `tls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// `allowedRoutes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_routes: Option<AllowedRoutes>,
}

/// `spec.listeners[].tls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerTls {
    /// `mode`: `Terminate` or `Passthrough`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `certificateRefs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<CertificateRef>,
}

/// `spec.listeners[].tls.certificateRefs[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRef {
    /// `group`.
    #[serde(default)]
    pub group: String,
    /// `kind`.
    #[serde(default)]
    pub kind: String,
    /// `name`.
    pub name: String,
}

impl CertificateRef {
    /// A Secret of type `kubernetes.io/tls` in the `Gateway`'s namespace.
    pub fn secret(name: &str) -> Self {
        Self {
            group: String::new(),
            kind: "Secret".to_owned(),
            name: name.to_owned(),
        }
    }
}

/// `spec.listeners[].allowedRoutes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedRoutes {
    /// `namespaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<RouteNamespaces>,
}

/// `spec.listeners[].allowedRoutes.namespaces`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteNamespaces {
    /// `from`: `Same`, `All`, `Selector` or `None`; absent is `Same`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl AllowedRoutes {
    /// Routes of the `Gateway`'s own namespace.
    pub fn same() -> Self {
        Self {
            namespaces: Some(RouteNamespaces {
                from: Some("Same".to_owned()),
            }),
        }
    }
}
