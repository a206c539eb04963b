//! `HTTPRoute`s.

use istio_api::gateway_api::{
    BackendRef, Filter, HTTPRoute, HeaderMatch, HeaderMatchType, HeaderModifier, HttpMatch,
    HttpPathMatch, HttpRouteRule, HttpRouteSpec, PathMatchType, PathModifier, RequestRedirect,
    UrlRewrite,
};
use istio_api::networking::StringMatch;

use super::super::Edge;
use super::super::model::{Action, Match, Path, Rewrite, Route, Weighted};
use super::{HTTP, MAX_ITEMS, Parent, hostnames, object_name};
use crate::auth::{GUARD_HEADER, open_route_name};

/// Most conditions of one rule in every version of the API.
const MAX_MATCHES: usize = 8;

/// The objects of one route: one, unless it has more hosts or rules than one takes.
pub(super) fn objects(edge: &Edge, parent: &Parent, route: &Route) -> Vec<HTTPRoute> {
    let rules = rules(edge, route);
    let mut specs = Vec::new();
    for hostnames in hostnames(edge, route) {
        for rules in rules.chunks(MAX_ITEMS) {
            specs.push(HttpRouteSpec {
                parent_refs: vec![parent.of_routes(edge)],
                hostnames: hostnames.clone(),
                rules: rules.to_vec(),
            });
        }
    }
    let named = |(part, spec)| {
        let name = object_name(edge, route, part);
        HTTPRoute::new(&edge.namespace, &name, spec)
    };
    specs.into_iter().enumerate().map(named).collect()
}

/// Sends everything on the plain port to the TLS port of the same host.
pub(super) fn to_https(edge: &Edge, parent: &Parent) -> HTTPRoute {
    let port = edge.tls.as_ref().map(|tls| tls.port);
    let redirect = RequestRedirect {
        scheme: Some("https".to_owned()),
        port: port.filter(|port| *port != 443),
        status_code: 301,
        ..RequestRedirect::default()
    };
    let rule = HttpRouteRule {
        matches: vec![HttpMatch {
            path: path_match(PathMatchType::PathPrefix, "/"),
            method: None,
            headers: Vec::new(),
        }],
        filters: vec![Filter::RequestRedirect { redirect }],
        backend_refs: Vec::new(),
    };
    let spec = HttpRouteSpec {
        parent_refs: vec![parent.reference(Some(HTTP))],
        hostnames: Vec::new(),
        rules: vec![rule],
    };
    // Nobody is asked before the client is on TLS.
    let beginning = match &edge.guard {
        Some(guard) => open_route_name(guard),
        None => edge.name.clone(),
    };
    HTTPRoute::new(&edge.namespace, &format!("{beginning}-https"), spec)
}

fn rules(edge: &Edge, route: &Route) -> Vec<HttpRouteRule> {
    let replaced = |matched: &Match| match (&route.action, &matched.path) {
        (
            Action::Forward {
                rewrite: Some(Rewrite::Prefix(to)),
                ..
            },
            Path::Prefix(from),
        ) => Some(to).filter(|to| *to != from),
        _ => None,
    };
    let (alone, together): (Vec<&Match>, Vec<&Match>) = route
        .matches
        .iter()
        .partition(|matched| replaced(matched).is_some());
    // A prefix is replaced in rules of one condition only.
    let alone = alone.into_iter().map(|matched| vec![matched]);
    let together = together.chunks(MAX_MATCHES).map(<[&Match]>::to_vec);
    alone
        .chain(together)
        .map(|matches| {
            let to = matches.first().and_then(|matched| replaced(matched));
            let path = match &route.action {
                Action::Forward {
                    rewrite: Some(Rewrite::Whole(path)),
                    ..
                } => Some(PathModifier::ReplaceFullPath { path: path.clone() }),
                _ => to.map(|prefix| PathModifier::ReplacePrefixMatch {
                    path: prefix.as_str().to_owned(),
                }),
            };
            HttpRouteRule {
                matches: matches.into_iter().map(|m| condition(edge, m)).collect(),
                filters: filters(edge, &route.action, path),
                backend_refs: backends(route.backends()),
            }
        })
        .collect()
}

fn filters(edge: &Edge, action: &Action, path: Option<PathModifier>) -> Vec<Filter> {
    match action {
        Action::Forward { host, .. } => {
            let mut filters: Vec<Filter> = without_guard(edge).into_iter().collect();
            if path.is_some() || host.is_some() {
                let hostname = host.clone();
                let rewrite = UrlRewrite { hostname, path };
                filters.push(Filter::UrlRewrite { rewrite });
            }
            filters
        }
        Action::Redirect {
            scheme,
            host,
            path,
            port,
            code,
        } => {
            let whole = |path: &String| PathModifier::ReplaceFullPath { path: path.clone() };
            let redirect = RequestRedirect {
                scheme: scheme.clone(),
                hostname: host.clone(),
                path: path.as_ref().map(whole),
                port: *port,
                status_code: *code,
            };
            vec![Filter::RequestRedirect { redirect }]
        }
    }
}

/// Workloads do not see the guard.
pub(super) fn without_guard(edge: &Edge) -> Option<Filter> {
    edge.guard.as_ref().map(|_| Filter::RequestHeaderModifier {
        modifier: HeaderModifier {
            remove: vec![GUARD_HEADER.to_owned()],
        },
    })
}

fn condition(edge: &Edge, matched: &Match) -> HttpMatch {
    let path = match &matched.path {
        Path::Exact(path) => path_match(PathMatchType::Exact, path),
        Path::Prefix(prefix) => path_match(PathMatchType::PathPrefix, prefix.as_str()),
        Path::Regex(pattern) => path_match(PathMatchType::RegularExpression, pattern.as_str()),
    };
    HttpMatch {
        path,
        method: matched.method.clone(),
        headers: headers(edge, matched),
    }
}

pub(super) fn path_match(kind: PathMatchType, value: &str) -> HttpPathMatch {
    HttpPathMatch {
        kind,
        value: value.to_owned(),
    }
}

/// The conditions on headers, that on the guard among them.
pub(super) fn headers(edge: &Edge, matched: &Match) -> Vec<HeaderMatch> {
    let guard = edge.guard.iter().map(|guard| HeaderMatch {
        kind: HeaderMatchType::Exact,
        name: GUARD_HEADER.to_owned(),
        value: guard.clone(),
    });
    let wished = matched.headers.iter().map(|(name, value)| {
        // Beginnings are refused, see `check`.
        let (kind, value) = match value {
            StringMatch::Exact(text) | StringMatch::Prefix(text) => (HeaderMatchType::Exact, text),
            StringMatch::Regex(text) => (HeaderMatchType::RegularExpression, text),
        };
        HeaderMatch {
            kind,
            name: name.clone(),
            value: value.clone(),
        }
    });
    guard.chain(wished).collect()
}

pub(super) fn backends(backends: &[Weighted]) -> Vec<BackendRef> {
    let read = |weighted: &Weighted| {
        let backend = &weighted.backend;
        // A share of one backend says nothing; that of Kubernetes' default is 1.
        let weight = if backends.len() > 1 {
            weighted.weight
        } else {
            1
        };
        BackendRef::service(&backend.namespace, &backend.service, backend.port, weight)
    };
    backends.iter().map(read).collect()
}
