//! `GRPCRoute`: what becomes of gRPC calls to a gateway.

use serde::{Deserialize, Serialize};

use super::{BackendRef, Filter, HeaderMatch, ParentRef};
use crate::meta::custom_object;

custom_object! {
    /// `grpcroutes.gateway.networking.k8s.io`.
    GRPCRoute, "gateway.networking.k8s.io", GrpcRouteSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrpcRouteSpec {
    /// `spec.parentRefs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<ParentRef>,
    /// `spec.hostnames`, at most 16; none: those of the listeners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// `spec.rules`, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<GrpcRouteRule>,
}

/// `spec.rules[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrpcRouteRule {
    /// `matches`: any of these; none: all calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<GrpcMatch>,
    /// `filters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// `backendRefs`, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<BackendRef>,
}

/// `spec.rules[].matches[]`: all of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrpcMatch {
    /// `method`; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<GrpcMethod>,
    /// `headers`, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderMatch>,
}

/// `spec.rules[].matches[].method`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrpcMethod {
    /// `type`: `Exact`, or an expression, which is never written here.
    #[serde(rename = "type")]
    pub kind: String,
    /// `service`, with its package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// `method`; absent: all of the service's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

impl GrpcMethod {
    /// A service, or one method of it.
    pub fn exact(service: &str, method: Option<&str>) -> Self {
        Self {
            kind: "Exact".to_owned(),
            service: Some(service.to_owned()),
            method: method.map(str::to_owned),
        }
    }
}
