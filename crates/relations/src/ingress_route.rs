//! Interface `istio_ingress_route`: routes with everything an HTTP gateway can do. One JSON document
//! in the requirer's application databag; the provider answers with plain texts.
//!
//! Field names and shapes are mostly Gateway API's, as its Python library writes them: where a list
//! that matches anything is absent, `null` means the same. Headers are not Gateway API's: a document
//! of names and values, each of which must be equal.

use std::collections::BTreeMap;

use juju_hooks::Databag;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{DecodeProblem, Result, json};

const CONFIG: &str = "config";
const HOST: &str = "external_host";
const TLS: &str = "tls_enabled";

/// A requirer's routes.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RouteConfig {
    /// The requirer's model: namespace of its Services.
    pub model: String,
    /// The listeners that routes name.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// Routes for HTTP.
    #[serde(default)]
    pub http_routes: Vec<HttpRoute>,
    /// Routes for gRPC.
    #[serde(default)]
    pub grpc_routes: Vec<GrpcRoute>,
}

/// A port of the gateway.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Listener {
    /// Its number, 1 to 65535.
    #[serde(deserialize_with = "json::port_number")]
    pub port: u16,
    /// What is spoken there.
    pub protocol: Protocol,
}

/// What a listener speaks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
}

/// A Service of the requirer's model.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RouteBackend {
    /// Its name.
    pub service: String,
    /// Its port, 1 to 65535.
    #[serde(deserialize_with = "json::port_number")]
    pub port: u16,
    /// Its share, 1 to 100, relative to its siblings'; absent is 1.
    #[serde(default, deserialize_with = "share")]
    pub weight: Option<u32>,
}

/// A route for HTTP.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct HttpRoute {
    /// Unique among the requirer's routes.
    pub name: String,
    /// Where it listens.
    pub listener: Listener,
    /// Where it leads; empty for a redirect.
    pub backends: Vec<RouteBackend>,
    /// For which hosts; none: those of the gateway.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hostnames: Vec<String>,
    /// For which requests, any of these; none: all.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub matches: Vec<HttpMatch>,
    /// What becomes of the request.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<HttpFilter>,
}

/// A condition on a request: everything given must hold.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct HttpMatch {
    /// On the path; absent: any.
    #[serde(default)]
    pub path: Option<PathMatch>,
    /// On the method; absent: any.
    #[serde(default, deserialize_with = "method")]
    pub method: Option<String>,
    /// On headers: each there with that value.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub headers: BTreeMap<String, String>,
}

/// A condition on the path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct PathMatch {
    /// How `value` is compared.
    #[serde(rename = "type", default)]
    pub kind: PathKind,
    /// The path, its beginning, or the expression.
    pub value: String,
}

/// How a path is compared.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub enum PathKind {
    /// Equal.
    Exact,
    /// Equal, or below it at a segment border.
    #[default]
    PathPrefix,
    /// RE2 expression over the whole path.
    RegularExpression,
}

/// What becomes of a request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum HttpFilter {
    /// It arrives with another path or host.
    #[serde(rename = "URLRewrite")]
    UrlRewrite {
        /// The change.
        #[serde(rename = "urlRewrite")]
        rewrite: UrlRewrite,
    },
    /// The client is sent elsewhere.
    RequestRedirect {
        /// Where to.
        #[serde(rename = "requestRedirect")]
        redirect: RequestRedirect,
    },
}

/// Changes of path and host.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct UrlRewrite {
    /// The new host.
    #[serde(default)]
    pub hostname: Option<String>,
    /// The new path.
    #[serde(default)]
    pub path: Option<PathModifier>,
}

/// A new path.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum PathModifier {
    /// Of the whole.
    ReplaceFullPath {
        /// The path.
        #[serde(rename = "replaceFullPath", alias = "value")]
        value: String,
    },
    /// Of the part that a prefix match matched.
    ReplacePrefixMatch {
        /// The path.
        #[serde(rename = "replacePrefixMatch", alias = "value")]
        value: String,
    },
}

/// Where a client is sent.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RequestRedirect {
    /// `http` or `https`; absent: as it came.
    #[serde(default)]
    pub scheme: Option<String>,
    /// Absent: as it came.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Absent: as it came.
    #[serde(default)]
    pub path: Option<PathModifier>,
    /// Absent: the scheme's.
    #[serde(default, deserialize_with = "json::some_port_number")]
    pub port: Option<u16>,
    /// 301 unless given.
    #[serde(rename = "statusCode", default)]
    pub status_code: Option<u16>,
}

/// A route for gRPC.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct GrpcRoute {
    /// Unique among the requirer's routes.
    pub name: String,
    /// Where it listens.
    pub listener: Listener,
    /// Where it leads; empty for a redirect.
    pub backends: Vec<RouteBackend>,
    /// For which hosts; none: those of the gateway.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hostnames: Vec<String>,
    /// For which calls, any of these; none: all.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub matches: Vec<GrpcMatch>,
    /// What becomes of the call.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub filters: Vec<GrpcFilter>,
}

/// What becomes of a call.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum GrpcFilter {
    /// The client is sent elsewhere.
    RequestRedirect {
        /// Where to.
        #[serde(rename = "requestRedirect")]
        redirect: RequestRedirect,
    },
}

/// A condition on a call.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct GrpcMatch {
    /// On the method called; absent: any.
    #[serde(default)]
    pub method: Option<GrpcMethod>,
    /// On headers: each there with that value.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub headers: BTreeMap<String, String>,
}

/// A method of a service.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct GrpcMethod {
    /// The service, with its package.
    pub service: String,
    /// The method; absent: all of the service's.
    #[serde(default)]
    pub method: Option<String>,
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    json::method(Option::deserialize(deserializer)?)
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let share = Option::deserialize(deserializer)?;
    if share.is_some_and(|share| !(1..=100).contains(&share)) {
        return Err(D::Error::custom("weight must be 1 to 100"));
    }
    Ok(share)
}

impl RouteConfig {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(CONFIG.to_owned(), json::encoded(self))])
    }

    /// Reads the requirer's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        json::document(bag, CONFIG)
    }
}

/// The provider's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RouteReply {
    /// Host under which the gateway is reached.
    pub external_host: String,
    /// Whether it speaks TLS.
    pub tls_enabled: bool,
}

impl RouteReply {
    /// The keys of the answer, empty: what was said before is taken back.
    pub fn withdrawn() -> Databag {
        Databag::from([
            (HOST.to_owned(), String::new()),
            (TLS.to_owned(), String::new()),
        ])
    }

    /// The provider's application databag. The flag is spelt as Python does.
    pub fn encode(&self) -> Databag {
        let tls = if self.tls_enabled { "True" } else { "False" };
        Databag::from([
            (HOST.to_owned(), self.external_host.clone()),
            (TLS.to_owned(), tls.to_owned()),
        ])
    }

    /// Reads the provider's application databag; `None` until there is an answer.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(host) = bag.get(HOST).filter(|host| !host.is_empty()) else {
            return Ok(None);
        };
        let tls_enabled = match bag.get(TLS).map(String::as_str) {
            None | Some("") => false,
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            Some(_) => return Err(DecodeProblem::new(TLS, "must be True or False")),
        };
        Ok(Some(Self {
            external_host: host.clone(),
            tls_enabled,
        }))
    }
}
