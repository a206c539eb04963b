//! The rules of a `VirtualService` that a route becomes.

use std::collections::BTreeMap;

use istio_api::networking::{
    Destination, DirectResponse, HeaderOperations, Headers, HttpMatch, HttpRedirect, HttpRewrite,
    HttpRoute, PortSelector, RouteDestination, StringMatch, UriRegexRewrite,
};

use super::model::{Action, Match, Path, Rewrite, Route, Weighted};
use super::{Edge, Prefix};
use crate::auth::{GUARD_HEADER, issuer_conditions, open_route_name};

/// The rules of one condition of a route: the prefix itself and everything below it. With a guard,
/// only for requests that carry it; the workload does not see it. With tokens, first the same rules
/// for those who have one, about whom nobody is asked.
pub fn rules(route: &Route, matched: &Match, edge: &Edge) -> Vec<HttpRoute> {
    let plain = plain_rules(route, matched, edge);
    let Some(tokens) = edge.tokens.as_ref().filter(|_| !route.open) else {
        return plain;
    };
    let with_token = |rule: &HttpRoute| {
        let mut rule = rule.clone();
        let conditions = rule.matches.iter().flat_map(|matched| {
            issuer_conditions(&tokens.issuers)
                .into_iter()
                .map(|(name, value)| {
                    let mut matched = matched.clone();
                    matched.headers.insert(name, value);
                    matched
                })
        });
        rule.matches = conditions.collect();
        rule.name = edge.guard.as_deref().map(open_route_name);
        rule
    };
    let mut rules: Vec<HttpRoute> = plain.iter().map(with_token).collect();
    if tokens.only {
        rules.extend(plain.into_iter().map(refused));
    } else {
        rules.extend(plain);
    }
    rules
}

/// Answers by itself that somebody has to say who they are.
fn refused(rule: HttpRoute) -> HttpRoute {
    HttpRoute {
        matches: rule.matches,
        direct_response: Some(DirectResponse {
            status: 401,
            body: None,
        }),
        ..HttpRoute::default()
    }
}

fn plain_rules(route: &Route, matched: &Match, edge: &Edge) -> Vec<HttpRoute> {
    let guard = edge.guard.as_deref();
    let condition = |uri: StringMatch| {
        let mut headers: BTreeMap<String, StringMatch> = matched.headers.clone();
        if let Some(guard) = guard {
            headers.insert(
                GUARD_HEADER.to_owned(),
                StringMatch::Exact(guard.to_owned()),
            );
        }
        HttpMatch {
            uri: Some(uri),
            method: matched.method.clone().map(StringMatch::Exact),
            headers,
            port: edge
                .tls
                .as_ref()
                .filter(|tls| tls.redirect)
                .map(|tls| tls.port),
            ..HttpMatch::default()
        }
    };
    let rule = |uris: Vec<StringMatch>, rewrite: Option<HttpRewrite>| {
        let mut rule = HttpRoute {
            name: guard.filter(|_| route.open).map(open_route_name),
            matches: uris.into_iter().map(condition).collect(),
            ..HttpRoute::default()
        };
        match &route.action {
            Action::Forward { backends, host, .. } => {
                rule.route = destinations(backends);
                rule.rewrite = with_host(rewrite, host.as_deref());
                rule.headers = guard.map(|_| without_guard());
            }
            Action::Redirect {
                scheme,
                host,
                path,
                port,
                code,
            } => {
                rule.redirect = Some(HttpRedirect {
                    uri: path.clone(),
                    authority: host.clone(),
                    scheme: scheme.clone(),
                    port: *port,
                    redirect_code: Some(*code),
                });
            }
        }
        rule
    };
    let rewrite = match &route.action {
        Action::Forward { rewrite, .. } => rewrite.as_ref(),
        Action::Redirect { .. } => None,
    };
    let whole = || match rewrite {
        Some(Rewrite::Whole(path)) => Some(replace_all(path)),
        Some(Rewrite::Prefix(_)) | None => None,
    };
    let prefix = match &matched.path {
        Path::Exact(path) => return vec![rule(vec![StringMatch::Exact(path.clone())], whole())],
        Path::Regex(pattern) => {
            return vec![rule(
                vec![StringMatch::Regex(pattern.as_str().to_owned())],
                whole(),
            )];
        }
        Path::Prefix(prefix) => prefix,
    };
    let exact = || StringMatch::Exact(prefix.as_str().to_owned());
    let below = || StringMatch::Prefix(prefix.with_slash());
    let both = || {
        if prefix.is_root() {
            vec![below()]
        } else {
            vec![exact(), below()]
        }
    };
    match rewrite {
        Some(Rewrite::Prefix(to)) if to != prefix => {
            let slashed = replace(&to.with_slash());
            if prefix.is_root() {
                return vec![rule(vec![below()], Some(slashed))];
            }
            // Envoy replaces the matched text: the two matches differ by the slash at the end, so must
            // the replacements, or `/app/x` would arrive as `//x`.
            vec![
                rule(vec![exact()], Some(replace(to.as_str()))),
                rule(vec![below()], Some(slashed)),
            ]
        }
        _ => vec![rule(both(), whole())],
    }
}

/// Sends everything on the plain port to the TLS port of the same host.
pub(super) fn to_https(edge: &Edge, http: u16, https: u16) -> HttpRoute {
    HttpRoute {
        name: edge.guard.as_deref().map(open_route_name),
        matches: vec![HttpMatch {
            uri: Some(StringMatch::Prefix("/".to_owned())),
            port: Some(http),
            ..HttpMatch::default()
        }],
        redirect: Some(HttpRedirect {
            scheme: Some("https".to_owned()),
            port: (https != 443).then_some(https),
            redirect_code: Some(301),
            ..HttpRedirect::default()
        }),
        ..HttpRoute::default()
    }
}

/// The first segment of the paths of a condition; none where it may be any.
pub(super) fn first_segment(matched: &Match) -> Option<&str> {
    match &matched.path {
        Path::Prefix(prefix) if prefix.is_root() => None,
        Path::Prefix(prefix) => Some(Prefix::first_segment(prefix)),
        Path::Exact(path) => Some(path.split('/').nth(1).unwrap_or_default()),
        Path::Regex(pattern) => match pattern.literal().splitn(3, '/').collect::<Vec<_>>()[..] {
            [_, first, _] => Some(first),
            _ => None,
        },
    }
}

fn replace(path: &str) -> HttpRewrite {
    HttpRewrite {
        uri: Some(path.to_owned()),
        ..HttpRewrite::default()
    }
}

fn replace_all(path: &str) -> HttpRewrite {
    HttpRewrite {
        uri_regex_rewrite: Some(UriRegexRewrite {
            pattern: "/.*".to_owned(),
            rewrite: path.to_owned(),
        }),
        ..HttpRewrite::default()
    }
}

fn with_host(rewrite: Option<HttpRewrite>, host: Option<&str>) -> Option<HttpRewrite> {
    let Some(host) = host else { return rewrite };
    Some(HttpRewrite {
        authority: Some(host.to_owned()),
        ..rewrite.unwrap_or_default()
    })
}

fn without_guard() -> Headers {
    Headers {
        request: Some(HeaderOperations {
            remove: vec![GUARD_HEADER.to_owned()],
            ..HeaderOperations::default()
        }),
        response: None,
    }
}

/// Shares are left out where there is nothing to share.
fn destinations(backends: &[Weighted]) -> Vec<RouteDestination> {
    let destination = |weighted: &Weighted| RouteDestination {
        destination: Destination {
            host: weighted.backend.host(),
            port: Some(PortSelector {
                number: weighted.backend.port,
            }),
            subset: None,
        },
        weight: (backends.len() > 1).then_some(weighted.weight),
        ..RouteDestination::default()
    };
    backends.iter().map(destination).collect()
}
