//! `GRPCRoute`s.

use std::collections::BTreeSet;

use istio_api::gateway_api::{GRPCRoute, GrpcMatch, GrpcMethod, GrpcRouteRule, GrpcRouteSpec};

use super::super::Edge;
use super::super::model::{Action, Match, Path, Route};
use super::http::{backends, headers, without_guard};
use super::{MAX_ITEMS, Parent, hostnames, object_name};

/// Most conditions of one rule in every version of the API.
const MAX_MATCHES: usize = 8;

/// The objects of a route that is about calls.
pub(super) fn objects(edge: &Edge, parent: &Parent, route: &Route) -> Vec<GRPCRoute> {
    let rule = |matches: &[Match]| GrpcRouteRule {
        matches: matches.iter().filter_map(|m| call(edge, m)).collect(),
        filters: without_guard(edge).into_iter().collect(),
        backend_refs: backends(route.backends()),
    };
    let rules: Vec<GrpcRouteRule> = route.matches.chunks(MAX_MATCHES).map(rule).collect();
    let mut specs = Vec::new();
    for hostnames in hostnames(edge, route) {
        for rules in rules.chunks(MAX_ITEMS) {
            specs.push(GrpcRouteSpec {
                parent_refs: vec![parent.of_routes(edge)],
                hostnames: hostnames.clone(),
                rules: rules.to_vec(),
            });
        }
    }
    let named = |(part, spec)| {
        let name = object_name(edge, route, part);
        GRPCRoute::new(&edge.namespace, &name, spec)
    };
    specs.into_iter().enumerate().map(named).collect()
}

/// The routes that are about calls, and share no requests with others of their hosts.
pub(super) fn alone(edge: &Edge, routes: &[Route]) -> BTreeSet<usize> {
    let is_call = |route: &Route| {
        let plain = matches!(
            &route.action,
            Action::Forward {
                rewrite: None,
                host: None,
                ..
            }
        );
        plain && route.client_protocol && route.matches.iter().all(|m| call(edge, m).is_some())
    };
    let calls: Vec<bool> = routes.iter().map(is_call).collect();
    let mut alone = BTreeSet::new();
    for (index, route) in routes.iter().enumerate() {
        let others = || routes.iter().zip(&calls).filter(|(_, is_call)| !**is_call);
        if calls[index] && !others().any(|(other, _)| share(edge, route, other)) {
            alone.insert(index);
        }
    }
    alone
}

/// Whether two routes may be about the same request.
fn share(edge: &Edge, a: &Route, b: &Route) -> bool {
    let same_host = match (a.hosts.is_empty(), b.hosts.is_empty()) {
        (true, true) => true,
        (true, false) => edge.hosts.iter().any(|host| b.hosts.contains(host)),
        (false, true) => edge.hosts.iter().any(|host| a.hosts.contains(host)),
        (false, false) => !a.hosts.is_disjoint(&b.hosts),
    };
    let overlap = |a: &Match, b: &Match| {
        let (a, b) = (a.path.beginning(), b.path.beginning());
        a.starts_with(b) || b.starts_with(a)
    };
    same_host
        && a.matches
            .iter()
            .any(|a| b.matches.iter().any(|b| overlap(a, b)))
}

/// The condition as one on a call; `None` if it is none.
fn call(edge: &Edge, matched: &Match) -> Option<GrpcMatch> {
    if matched.method.is_some() {
        return None;
    }
    let method = match &matched.path {
        Path::Prefix(prefix) if prefix.is_root() => None,
        Path::Prefix(prefix) => {
            let service = prefix.as_str().strip_prefix('/')?;
            is_service(service)
                .then(|| GrpcMethod::exact(service, None))
                .map(Some)?
        }
        Path::Exact(path) => {
            let (service, method) = path.strip_prefix('/')?.split_once('/')?;
            let both = is_service(service) && is_word(method);
            both.then(|| GrpcMethod::exact(service, Some(method)))
                .map(Some)?
        }
        Path::Regex(_) => return None,
    };
    let headers = headers(edge, matched);
    Some(GrpcMatch { method, headers })
}

/// Words with dots between them.
fn is_service(text: &str) -> bool {
    text.split('.').all(is_word)
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
