//! The objects of gateway authorization.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::{
    ApplyTo, DirectResponse, EnvoyConfigPatch, EnvoyFilter, EnvoyFilterSpec, EnvoyPatch, HttpBody,
    HttpMatch, HttpRoute, PatchContext, PatchOperation, StringMatch, VirtualService,
    VirtualServiceSpec, WorkloadSelector,
};
use istio_api::security::{
    Action, AuthorizationPolicy, AuthorizationPolicySpec, Operation, Rule, Selector, To,
};
use serde_json::{Value, json};

use super::gate::Gate;
use super::probe::{DENIED_PATH, PROBE_BODY, PROBE_PATH};
use crate::name::{InvalidName, check_label};
use crate::routes::{Edge, Route, short_hash};

const CONNECTION_MANAGER: &str = "envoy.filters.network.http_connection_manager";
const ROUTER: &str = "envoy.filters.http.router";
/// A name of our own: per-route settings, which could switch the filter off, go by name.
const FILTER_NAME: &str = "istio-integrator.ext_authz";
/// The request header that routes ask for while authorization is wanted, in lower case.
pub const GUARD_HEADER: &str = "x-istio-integrator-guard";
/// Headers that say where a message ends and what becomes of its connection: they are the proxies'
/// own (RFC 9110 section 7.6.1, RFC 9112 section 6). Without them a request is another request.
const FRAMING_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Beginnings of headers that the gateway itself sets and acts upon: they tell nobody's identity.
pub(super) const PROXY_HEADERS: &[&str] = &["x-envoy-", "x-forwarded-"];
/// How long the authorizer may take.
const TIMEOUT: &str = "10s";
/// Names with more dashes than this get only their all-underscore spelling stripped.
const MAX_DASHES: u32 = 6;

/// The service that decides, checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Authorizer {
    /// Name of the Service.
    pub service: String,
    /// Its namespace.
    pub namespace: String,
    /// Its port.
    pub port: u16,
    /// Request headers it is shown, lower case, sorted.
    pub request_headers: BTreeSet<String>,
    /// Headers of its answer that tell the workload who the user is, lower case, sorted.
    pub identity_headers: BTreeSet<String>,
}

/// Why a description is not an [`Authorizer`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidAuthorizer {
    /// The service's name is none.
    #[error("service {0:?} {1}")]
    Service(String, InvalidName),
    /// A header's name is none, or one that Envoy needs itself.
    #[error("{0:?} cannot be used as a header name")]
    Header(String),
}

impl Authorizer {
    /// Checks the description of an authorizer.
    pub fn new(
        service: &str,
        namespace: &str,
        port: u16,
        request_headers: &[String],
        identity_headers: &[String],
    ) -> Result<Self, InvalidAuthorizer> {
        check_label(service).map_err(|why| InvalidAuthorizer::Service(service.to_owned(), why))?;
        Ok(Self {
            service: service.to_owned(),
            namespace: namespace.to_owned(),
            port,
            request_headers: headers(request_headers, &[])?,
            identity_headers: headers(identity_headers, PROXY_HEADERS)?,
        })
    }

    /// The full name of its Service.
    pub fn host(&self) -> String {
        format!("{}.{}.svc.cluster.local", self.service, self.namespace)
    }

    /// Headers it is shown and sets as well: it never sees what a client sends in them, since they are
    /// stripped.
    pub fn unseen(&self) -> BTreeSet<&str> {
        let stripped = self.stripped();
        let shown = self.request_headers.iter();
        shown
            .filter(|name| stripped.contains(*name))
            .map(String::as_str)
            .collect()
    }

    /// Every spelling of the identity headers that a workload might read as one of them: many
    /// frameworks take `_` in a header's name for `-`.
    pub(super) fn stripped(&self) -> BTreeSet<String> {
        self.identity_headers
            .iter()
            .flat_map(|name| spellings(name))
            .collect()
    }
}

pub(super) fn headers(
    names: &[String],
    refused: &[&str],
) -> Result<BTreeSet<String>, InvalidAuthorizer> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    names
        .iter()
        .map(|name| {
            let lower = name.to_ascii_lowercase();
            // Every spelling of an identity header is stripped.
            let dashed = lower.replace('_', "-");
            if lower.is_empty()
                || !lower.chars().all(token)
                || FRAMING_HEADERS.contains(&dashed.as_str())
                || dashed == GUARD_HEADER
                || refused.iter().any(|prefix| dashed.starts_with(prefix))
            {
                return Err(InvalidAuthorizer::Header(name.clone()));
            }
            Ok(lower)
        })
        .collect()
}

pub(super) fn spellings(name: &str) -> Vec<String> {
    let dashes: Vec<usize> = name
        .bytes()
        .enumerate()
        .filter(|(_, b)| matches!(b, b'-' | b'_'))
        .map(|(i, _)| i)
        .collect();
    let count = u32::try_from(dashes.len()).unwrap_or(u32::MAX);
    if count > MAX_DASHES {
        return vec![
            name.to_owned(),
            name.replace('_', "-"),
            name.replace('-', "_"),
        ];
    }
    (0..1u32 << count)
        .map(|mask| {
            let mut bytes: Vec<char> = name.chars().collect();
            for (bit, index) in dashes.iter().enumerate() {
                bytes[*index] = if mask >> bit & 1 == 1 { '_' } else { '-' };
            }
            bytes.into_iter().collect()
        })
        .collect()
}

/// The filter for every listener of the gateway pods with `labels` in `namespace`, and for nothing
/// else: it strips the identity headers from what comes in, sets [`GUARD_HEADER`] to `guard`, and asks
/// the gate's authorizer unless something else does.
///
/// It fails closed: an authorizer that is away, slow or broken means 403.
pub fn envoy_filter(
    name: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    gate: &Gate,
    guard: &str,
) -> EnvoyFilter {
    let mut patches = vec![patch(
        namespace,
        ApplyTo::NetworkFilter,
        &json!({"name": CONNECTION_MANAGER}),
        PatchOperation::Merge,
        mutate(&gate.stripped(), guard),
    )];
    if let Some(authorizer) = gate.asked() {
        patches.push(patch(
            namespace,
            ApplyTo::HttpFilter,
            &json!({"name": CONNECTION_MANAGER, "subFilter": {"name": ROUTER}}),
            PatchOperation::InsertBefore,
            ask(authorizer),
        ));
        patches.push(do_not_ask(namespace, guard));
    }
    let spec = EnvoyFilterSpec {
        workload_selector: Some(WorkloadSelector {
            labels: labels.clone(),
        }),
        config_patches: patches,
        priority: None,
    };
    EnvoyFilter::new(namespace, name, spec)
}

/// The name of rules whose requests nobody is asked about. It is not to be guessed: other routes of
/// that name on the same gateway would not be asked about either.
pub fn open_route_name(guard: &str) -> String {
    format!(
        "istio-integrator-open-{}",
        short_hash(&format!("open {guard}"))
    )
}

/// Switches the question off on the routes of that name and on no other: it is Envoy's own choice of
/// a route that decides, so no spelling of a path can be open here and guarded there.
fn do_not_ask(namespace: &str, guard: &str) -> EnvoyConfigPatch {
    let matches = json!({
        "routeConfiguration": {"vhost": {"route": {"name": open_route_name(guard)}}},
        "proxy": {"metadata": {"NAMESPACE": namespace}},
    });
    let value = json!({"typed_per_filter_config": {FILTER_NAME: {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute",
        "disabled": true,
    }}});
    EnvoyConfigPatch {
        apply_to: ApplyTo::HttpRoute,
        matches: Some(matches),
        patch: EnvoyPatch {
            operation: PatchOperation::Merge,
            value: Some(value),
        },
    }
    .with_context(PatchContext::Gateway)
}

fn patch(
    namespace: &str,
    apply_to: ApplyTo,
    filter: &Value,
    operation: PatchOperation,
    value: Value,
) -> EnvoyConfigPatch {
    // In the root namespace a selector reaches into all namespaces; the proxy's own namespace is in
    // its node metadata. No port: every listener is covered.
    let matches = json!({
        "listener": {"filterChain": {"filter": filter}},
        "proxy": {"metadata": {"NAMESPACE": namespace}},
    });
    EnvoyConfigPatch {
        apply_to,
        matches: Some(matches),
        patch: EnvoyPatch {
            operation,
            value: Some(value),
        },
    }
    .with_context(PatchContext::Gateway)
}

/// Removes headers, and sets the guard's, before any filter and any route sees them.
fn mutate(headers: &BTreeSet<String>, guard: &str) -> Value {
    let mut mutations: Vec<Value> = headers.iter().map(|name| json!({"remove": name})).collect();
    mutations.push(json!({"append": {
        "header": {"key": GUARD_HEADER, "value": guard},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }}));
    json!({
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.network\
                      .http_connection_manager.v3.HttpConnectionManager",
            "early_header_mutation_extensions": [{
                "name": "istio-integrator.request_headers",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.http\
                              .early_header_mutation.header_mutation.v3.HeaderMutation",
                    "mutations": mutations,
                },
            }],
        },
    })
}

fn ask(authorizer: &Authorizer) -> Value {
    let patterns = |names: &BTreeSet<String>| -> Vec<Value> {
        names
            .iter()
            .map(|name| json!({"exact": name, "ignore_case": true}))
            .collect()
    };
    let (host, port) = (authorizer.host(), authorizer.port);
    let mut service = json!({
        "server_uri": {
            "uri": format!("http://{host}:{port}"),
            "cluster": format!("outbound|{port}||{host}"),
            "timeout": TIMEOUT,
        },
    });
    if !authorizer.request_headers.is_empty() {
        service["authorization_request"] =
            json!({"allowed_headers": {"patterns": patterns(&authorizer.request_headers)}});
    }
    // Authorizers renew their session cookie now and then.
    let cookie = BTreeSet::from(["set-cookie".to_owned()]);
    service["authorization_response"] =
        json!({"allowed_client_headers_on_success": {"patterns": patterns(&cookie)}});
    if !authorizer.identity_headers.is_empty() {
        service["authorization_response"]["allowed_upstream_headers"] =
            json!({"patterns": patterns(&authorizer.identity_headers)});
    }
    json!({
        "name": FILTER_NAME,
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
            "transport_api_version": "V3",
            "failure_mode_allow": false,
            "status_on_error": {"code": "Forbidden"},
            "http_service": service,
        },
    })
}

/// The policy that refuses everything but [`PROBE_PATH`] at the pods with `labels`.
pub fn deny_policy(
    name: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
) -> AuthorizationPolicy {
    let operation = Operation {
        not_paths: vec![PROBE_PATH.to_owned()],
        ..Operation::default()
    };
    let spec = AuthorizationPolicySpec {
        selector: Some(Selector {
            match_labels: labels.clone(),
        }),
        action: Some(Action::Deny),
        rules: vec![Rule {
            to: vec![To { operation }],
            ..Rule::default()
        }],
        ..AuthorizationPolicySpec::default()
    };
    AuthorizationPolicy::new(namespace, name, spec)
}

/// The value of [`GUARD_HEADER`] that a filter sets.
pub fn guard_of_filter(filter: &EnvoyFilter) -> Option<&str> {
    let extensions = "/typed_config/early_header_mutation_extensions/0/typed_config/mutations";
    let mutations = filter.spec.config_patches.iter().filter_map(|patch| {
        let value = patch.patch.value.as_ref()?;
        value.pointer(extensions)?.as_array()
    });
    mutations.flatten().find_map(|mutation| {
        let header = mutation.pointer("/append/header")?;
        (header["key"] == GUARD_HEADER).then_some(())?;
        header["value"].as_str()
    })
}

/// The value of [`GUARD_HEADER`] that routes ask for.
pub fn guard_of_routes(service: &VirtualService) -> Option<&str> {
    let matches = service.spec.http.iter().flat_map(|rule| &rule.matches);
    matches
        .filter_map(|matched| matched.headers.get(GUARD_HEADER))
        .find_map(|value| match value {
            StringMatch::Exact(value) => Some(value.as_str()),
            _ => None,
        })
}

/// Whether a `VirtualService` was written while authorization was wanted: it answers at
/// [`PROBE_PATH`] or asks for [`GUARD_HEADER`].
pub fn shows_authorization(service: &VirtualService) -> bool {
    service.spec.http.iter().any(|rule| {
        rule.matches.iter().any(|matched| {
            let probe = StringMatch::Exact(PROBE_PATH.to_owned());
            matched.headers.contains_key(GUARD_HEADER)
                || (rule.direct_response.is_some() && matched.uri.as_ref() == Some(&probe))
        })
    })
}

/// Whether a `VirtualService` leads to a workload without asking for [`GUARD_HEADER`].
pub fn routes_unguarded(service: &VirtualService) -> bool {
    service.spec.http.iter().any(|rule| {
        let asks = |matched: &HttpMatch| {
            matches!(
                matched.headers.get(GUARD_HEADER),
                Some(StringMatch::Exact(_))
            )
        };
        !rule.route.is_empty() && (rule.matches.is_empty() || !rule.matches.iter().all(asks))
    })
}

/// The route that answers at [`PROBE_PATH`] by itself, on every host routed and on any other, so
/// that the path the DENY policy leaves open leads nowhere.
pub fn probe_virtual_service(edge: &Edge, routes: &[Route], name: &str) -> VirtualService {
    let named = routes.iter().flat_map(|route| route.hosts.iter().cloned());
    let all: BTreeSet<String> = edge.hosts.iter().cloned().chain(named).collect();
    let mut hosts: Vec<String> = all.into_iter().collect();
    if !hosts.iter().any(|host| host == "*") {
        hosts.push("*".to_owned());
    }
    let spec = VirtualServiceSpec {
        hosts,
        gateways: vec![format!("{}/{}", edge.namespace, edge.gateway)],
        http: vec![probe_rule()],
        ..VirtualServiceSpec::default()
    };
    VirtualService::new(&edge.namespace, name, spec)
}

/// The rules that stand before all others of a host: nobody else answers at [`PROBE_PATH`] and
/// [`DENIED_PATH`], whatever is routed.
pub(crate) fn own_rules() -> [HttpRoute; 2] {
    [probe_rule(), answer(DENIED_PATH, 404, None)]
}

fn probe_rule() -> HttpRoute {
    let string = PROBE_BODY.to_owned();
    answer(PROBE_PATH, 200, Some(HttpBody { string }))
}

fn answer(path: &str, status: u16, body: Option<HttpBody>) -> HttpRoute {
    HttpRoute {
        matches: vec![HttpMatch {
            uri: Some(StringMatch::Exact(path.to_owned())),
            ..HttpMatch::default()
        }],
        direct_response: Some(DirectResponse { status, body }),
        ..HttpRoute::default()
    }
}
