//! `gateway.networking.k8s.io`: Gateway API's `Gateway`, `HTTPRoute`, `GRPCRoute`, `ReferenceGrant`.
//!
//! The API server fills in defaults where a field is left out. What is compared with live objects is
//! therefore written with its defaults spelt out; the constructors here do so.

mod gateway;
mod grpc_route;
mod http_route;
mod reference_grant;

use serde::{Deserialize, Serialize};

pub use gateway::{
    AllowedRoutes, CertificateRef, Gateway, GatewaySpec, Listener, ListenerTls, RouteNamespaces,
};
pub use grpc_route::{GRPCRoute, GrpcMatch, GrpcMethod, GrpcRouteRule, GrpcRouteSpec};
pub use http_route::{
    HTTPRoute, HttpMatch, HttpPathMatch, HttpRouteRule, HttpRouteSpec, PathMatchType, PathModifier,
    RequestRedirect, UrlRewrite,
};
pub use reference_grant::{GrantFrom, GrantTo, ReferenceGrant, ReferenceGrantSpec};

/// The API group of all of these.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// `spec.parentRefs[]`: what a route is attached to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// `group`.
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `namespace`; absent: the route's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `name`.
    pub name: String,
    /// `sectionName`: the listener; absent: all that take the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

impl ParentRef {
    /// A `Gateway`, or one of its listeners.
    pub fn gateway(namespace: &str, name: &str, listener: Option<&str>) -> Self {
        Self {
            group: GROUP.to_owned(),
            kind: "Gateway".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            section_name: listener.map(str::to_owned),
        }
    }
}

/// `backendRefs[]` of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendRef {
    /// `group`.
    pub group: String,
    /// `kind`.
    pub kind: String,
    /// `namespace`; another than the route's needs a `ReferenceGrant` there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `name`.
    pub name: String,
    /// `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `weight`: its share, relative to its siblings'.
    pub weight: u32,
}

impl BackendRef {
    /// A port of a Service.
    pub fn service(namespace: &str, name: &str, port: u16, weight: u32) -> Self {
        Self {
            group: String::new(),
            kind: "Service".to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
            port: Some(port),
            weight,
        }
    }
}

/// How the value of a header is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HeaderMatchType {
    /// Equal.
    Exact,
    /// Expression over the whole value.
    RegularExpression,
}

/// `matches[].headers[]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderMatch {
    /// `type`.
    #[serde(rename = "type")]
    pub kind: HeaderMatchType,
    /// `name`.
    pub name: String,
    /// `value`.
    pub value: String,
}

/// `requestHeaderModifier` of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderModifier {
    /// `remove`: names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// `filters[]` of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Filter {
    /// Changes request headers.
    RequestHeaderModifier {
        /// `requestHeaderModifier`.
        #[serde(rename = "requestHeaderModifier")]
        modifier: HeaderModifier,
    },
    /// Sends the client elsewhere.
    RequestRedirect {
        /// `requestRedirect`.
        #[serde(rename = "requestRedirect")]
        redirect: RequestRedirect,
    },
    /// Changes path or host on the way to the backend.
    #[serde(rename = "URLRewrite")]
    UrlRewrite {
        /// `urlRewrite`.
        #[serde(rename = "urlRewrite")]
        rewrite: UrlRewrite,
    },
}
