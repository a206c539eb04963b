//! `HTTPRoute`: what becomes of HTTP requests to a gateway.

use serde::{Deserialize, Serialize};

use super::{BackendRef, Filter, HeaderMatch, ParentRef};
use crate::meta::custom_object;

custom_object! {
    /// `httproutes.gateway.networking.k8s.io`.
    HTTPRoute, "gateway.networking.k8s.io", HttpRouteSpec
}

/// `spec`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteSpec {
    /// `spec.parentRefs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<ParentRef>,
    /// `spec.hostnames`, at most 16; none: those of the listeners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hostnames: Vec<String>,
    /// `spec.rules`, at most 16. Their order means nothing: the more special condition wins, also
    /// between routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<HttpRouteRule>,
}

/// `spec.rules[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteRule {
    /// `matches`: any of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<HttpMatch>,
    /// `filters`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<Filter>,
    /// `backendRefs`, at most 16. Without any, and without a redirect, the answer is 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backend_refs: Vec<BackendRef>,
}

/// `spec.rules[].matches[]`: all of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpMatch {
    /// `path`.
    pub path: HttpPathMatch,
    /// `method`; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// `headers`, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderMatch>,
}

/// `spec.rules[].matches[].path`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpPathMatch {
    /// `type`.
    #[serde(rename = "type")]
    pub kind: PathMatchType,
    /// `value`.
    pub value: String,
}

/// How a path is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathMatchType {
    /// Equal.
    Exact,
    /// Equal, or below it at a segment border.
    PathPrefix,
    /// Expression over the whole path. Istio asks these behind all others.
    RegularExpression,
}

/// A new path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum PathModifier {
    /// Of the whole.
    ReplaceFullPath {
        /// `replaceFullPath`.
        #[serde(rename = "replaceFullPath")]
        path: String,
    },
    /// Of the prefix that matched. The rule must have just one match, by prefix.
    ReplacePrefixMatch {
        /// `replacePrefixMatch`.
        #[serde(rename = "replacePrefixMatch")]
        path: String,
    },
}

/// `urlRewrite` of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlRewrite {
    /// `hostname`: no wildcard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathModifier>,
}

/// `requestRedirect` of a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRedirect {
    /// `scheme`: `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// `hostname`: no wildcard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathModifier>,
    /// `port`; absent: that of the scheme, if one is given, else the listener's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// `statusCode`: 301 or 302 in every version of the API.
    pub status_code: u16,
}
