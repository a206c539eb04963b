//! The objects that routes become on a gateway of Istio's own API.
//!
//! All routes of a host stand in one `VirtualService`, because the order between several depends
//! on when they were created. Beyond [`OBJECT_BYTES`] they are spread over several by first path
//! segment, which keeps routes that could shadow each other together. Where one is about any first
//! segment they stay together: with a condition on a header it is no catch-all to Istio, which would
//! move it behind the others.
//!
//! While authorization is wanted, the charm's own paths are the first of each of them: whichever is
//! the oldest, no route answers probes.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::{
    ClientTls, ConnectionPool, ConnectionPoolHttp, DestinationRule, DestinationRuleSpec, Gateway,
    GatewaySpec, HttpRoute, Port, Server, ServerTls, ServerTlsMode, StringMatch, TrafficPolicy,
    VirtualService, VirtualServiceSpec,
};
use sha2::{Digest as _, Sha256};

use super::claims::precedence;
use super::model::{Backend, Match, Route};
use super::rules::{first_segment, rules, to_https};
use crate::auth::own_rules;

/// What one `VirtualService` is meant to hold, in bytes of JSON: etcd takes 1.5 MiB, and a hash
/// spreads unevenly.
pub(super) const OBJECT_BYTES: usize = 512 << 10;

/// Where routes are attached.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Edge {
    /// Namespace of the `Gateway` and the `VirtualService`s.
    pub namespace: String,
    /// Name of the `Gateway`.
    pub gateway: String,
    /// Name of the `VirtualService`; further ones get something behind it.
    pub name: String,
    /// Hosts of routes that name none; `*` for any.
    pub hosts: Vec<String>,
    /// The value that [`GUARD_HEADER`](crate::auth::GUARD_HEADER) must have for a request to be
    /// routed; `None`: any request is.
    pub guard: Option<String>,
    /// The port for plain HTTP.
    pub http: u16,
    /// The port for TLS, if there is a certificate.
    pub tls: Option<Tls>,
    /// Tokens that let requests pass.
    pub tokens: Option<Tokens>,
}

/// Tokens that let requests pass without anybody being asked.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tokens {
    /// Who issues them; never empty.
    pub issuers: BTreeSet<String>,
    /// Whether nothing else lets requests pass.
    pub only: bool,
}

/// How the gateway ends TLS.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tls {
    /// The port.
    pub port: u16,
    /// Name of the Secret with key and certificate, in the namespace of the gateway's pods.
    pub credential: String,
    /// Whether plain HTTP is answered with a redirect; else it is served, too.
    pub redirect: bool,
}

/// The newest of the served API versions that this code writes, newest first in `ours`.
fn newest_served<'a>(served: &[String], ours: &[&'a str], fallback: &'a str) -> &'a str {
    ours.iter()
        .copied()
        .find(|version| served.iter().any(|s| s == version))
        .unwrap_or(fallback)
}

/// The version of `networking.istio.io` to write, out of those the cluster serves: `v1` from Istio
/// 1.22 on, else `v1beta1`.
pub fn networking_version(served: &[String]) -> &'static str {
    newest_served(served, &["v1", "v1beta1", "v1alpha3"], "v1beta1")
}

/// The version of `security.istio.io` to write, out of those the cluster serves.
pub fn security_version(served: &[String]) -> &'static str {
    newest_served(served, &["v1", "v1beta1"], "v1beta1")
}

/// All hosts that are routed, sorted; `*` alone if it is one of them.
pub fn hosts(edge: &Edge, routes: &[Route]) -> Vec<String> {
    let named = routes.iter().flat_map(|route| &route.hosts);
    let hosts: BTreeSet<&String> = edge.hosts.iter().chain(named).collect();
    if hosts.iter().any(|host| *host == "*") {
        return vec!["*".to_owned()];
    }
    hosts.into_iter().cloned().collect()
}

/// The `Gateway`: plain HTTP for every host, and TLS for those that are routed. One server and one
/// certificate for all of them: connections that browsers share between hosts of a certificate then
/// find every host (with several, they would find 404).
pub fn gateway(edge: &Edge, selector: &BTreeMap<String, String>, routes: &[Route]) -> Gateway {
    let server = |number: u16, protocol: &str, name: &str| Server {
        port: Port {
            number,
            protocol: protocol.to_owned(),
            name: name.to_owned(),
        },
        hosts: vec!["*".to_owned()],
        tls: None,
        name: None,
    };
    let mut servers = vec![server(edge.http, "HTTP", "http")];
    if let Some(tls) = &edge.tls {
        servers.push(Server {
            hosts: hosts(edge, routes),
            tls: Some(ServerTls {
                mode: Some(ServerTlsMode::Simple),
                credential_name: Some(tls.credential.clone()),
                https_redirect: None,
                min_protocol_version: Some("TLSV1_2".to_owned()),
            }),
            ..server(tls.port, "HTTPS", "https")
        });
    }
    let spec = GatewaySpec {
        selector: selector.clone(),
        servers,
    };
    Gateway::new(&edge.namespace, &edge.gateway, spec)
}

/// The `VirtualService`s for `routes`: the more special conditions first. No routes, no object.
pub fn virtual_services(edge: &Edge, routes: &[Route]) -> Vec<VirtualService> {
    let mut by_host: BTreeMap<Option<&str>, Vec<(&Route, &Match)>> = BTreeMap::new();
    for route in routes {
        for host in group_hosts(edge, route) {
            let entries = by_host.entry(host).or_default();
            entries.extend(route.matches.iter().map(|matched| (route, matched)));
        }
    }
    let mut services = Vec::new();
    for (host, mut entries) in by_host {
        entries.sort_by_cached_key(|(_, matched)| precedence(matched));
        let (name, hosts) = match host {
            None => (edge.name.clone(), edge.hosts.clone()),
            Some(host) => (
                format!("{}-{}", edge.name, short_hash(host)),
                vec![host.to_owned()],
            ),
        };
        services.extend(of_host(edge, &name, &hosts, &entries));
    }
    services
}

/// The hosts of a route, `None` for those that are the gateway's.
fn group_hosts<'a>(edge: &Edge, route: &'a Route) -> BTreeSet<Option<&'a str>> {
    if route.hosts.is_empty() {
        return BTreeSet::from([None]);
    }
    let group = |host: &'a String| {
        let default = edge.hosts.len() == 1 && edge.hosts.contains(host);
        (!default).then_some(host.as_str())
    };
    route.hosts.iter().map(group).collect()
}

fn of_host(
    edge: &Edge,
    name: &str,
    hosts: &[String],
    entries: &[(&Route, &Match)],
) -> Vec<VirtualService> {
    let parts: Vec<(Option<&str>, Vec<HttpRoute>)> = entries
        .iter()
        .map(|(route, matched)| (first_segment(matched), rules(route, matched, edge)))
        .collect();
    let shards = if parts.iter().any(|(segment, _)| segment.is_none()) {
        1
    } else {
        let size: usize = parts.iter().map(|(_, rules)| bytes(rules)).sum();
        size.div_ceil(OBJECT_BYTES).next_power_of_two()
    };
    let mut groups: BTreeMap<usize, Vec<HttpRoute>> = BTreeMap::new();
    for (segment, rules) in parts {
        let http = groups
            .entry(shard(segment.unwrap_or_default(), shards))
            .or_insert_with(|| edge.guard.iter().flat_map(|_| own_rules()).collect());
        http.extend(rules);
    }
    if let (Some(tls), Some(first)) = (&edge.tls, groups.values_mut().next())
        && tls.redirect
    {
        first.push(to_https(edge, edge.http, tls.port));
    }
    let name = |index: usize| match index {
        0 => name.to_owned(),
        index => format!("{name}-{index}"),
    };
    let service = |(index, http): (usize, Vec<HttpRoute>)| {
        let spec = VirtualServiceSpec {
            hosts: hosts.to_vec(),
            gateways: vec![format!("{}/{}", edge.namespace, edge.gateway)],
            http,
            ..VirtualServiceSpec::default()
        };
        VirtualService::new(&edge.namespace, &name(index), spec)
    };
    groups.into_iter().map(service).collect()
}

/// The size of rules as they are written.
fn bytes(rules: &[HttpRoute]) -> usize {
    serde_json::to_string(rules).map_or(0, |text| text.len())
}

/// Which of `shards` a first segment belongs to.
fn shard(segment: &str, shards: usize) -> usize {
    let digest = Sha256::digest(segment.as_bytes());
    digest.first().map_or(0, |byte| usize::from(*byte)) % shards
}

/// Eight hexadecimal digits of a text's hash.
pub fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex: Vec<String> = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex.concat()
}

/// Those of `routes` whose every rule already stands in a `live` object of its host.
pub fn established(routes: &[Route], edge: &Edge, live: &[VirtualService]) -> Vec<Route> {
    let mut index: BTreeMap<(&str, &StringMatch), Vec<&HttpRoute>> = BTreeMap::new();
    for service in live {
        for host in &service.spec.hosts {
            for rule in &service.spec.http {
                let uri = rule
                    .matches
                    .first()
                    .and_then(|matched| matched.uri.as_ref());
                if let Some(uri) = uri {
                    index.entry((host, uri)).or_default().push(rule);
                }
            }
        }
    }
    let stands = |host: &str, rule: &HttpRoute| {
        let uri = rule
            .matches
            .first()
            .and_then(|matched| matched.uri.as_ref());
        uri.and_then(|uri| index.get(&(host, uri)))
            .is_some_and(|rules| rules.contains(&rule))
    };
    let holds = |route: &&Route| {
        let named = route.hosts.iter();
        let hosts: Vec<&String> = if route.hosts.is_empty() {
            edge.hosts.iter().collect()
        } else {
            named.collect()
        };
        route.matches.iter().all(|matched| {
            let rules = rules(route, matched, edge);
            hosts
                .iter()
                .all(|host| rules.iter().all(|rule| stands(host, rule)))
        })
    };
    routes.iter().filter(holds).cloned().collect()
}

/// How the gateway speaks to backends that want their client's protocol: without it, HTTP/2 and gRPC
/// would arrive as HTTP/1.1. In the backends' namespaces, where every gateway finds it.
pub fn client_protocol_rules(edge: &Edge, routes: &[Route]) -> Vec<DestinationRule> {
    let wanting = routes.iter().filter(|route| route.client_protocol);
    let backends: BTreeSet<(&str, &str)> = wanting
        .flat_map(Route::backends)
        .map(|weighted| {
            (
                weighted.backend.namespace.as_str(),
                weighted.backend.service.as_str(),
            )
        })
        .collect();
    let rule = |(namespace, service): (&str, &str)| {
        let backend = Backend {
            service: service.to_owned(),
            namespace: namespace.to_owned(),
            port: 0,
        };
        let name = format!(
            "{}-{}",
            edge.name,
            short_hash(&format!("{}/{service}", edge.namespace))
        );
        let spec = DestinationRuleSpec {
            host: backend.host(),
            traffic_policy: Some(TrafficPolicy {
                tls: None::<ClientTls>,
                connection_pool: Some(ConnectionPool {
                    http: Some(ConnectionPoolHttp {
                        use_client_protocol: Some(true),
                    }),
                }),
            }),
            ..DestinationRuleSpec::default()
        };
        DestinationRule::new(namespace, &name, spec)
    };
    backends.into_iter().map(rule).collect()
}
