//! The CUSTOM policy by which an extension provider is asked, and about what it is not.
//!
//! The policy knows paths only, while the gateway chooses a rule by host, path and more. So a path is
//! left out only where an open rule is sure to get its requests: the rule stands already, has no
//! condition but its path, and no guarded rule of a host that lacks it covers the path. What is under
//! an open path and guarded is asked about by a rule of its own. In doubt, somebody is asked.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::{HttpMatch, HttpRoute, StringMatch, VirtualService};
use istio_api::security::{
    Action, AuthorizationPolicy, AuthorizationPolicySpec, Operation, Provider, Rule, Selector, To,
};

use super::objects::{GUARD_HEADER, open_route_name};
use super::probe::{DENIED_PATH, PROBE_PATH};
use crate::routes::{Edge, Path, Pattern, Route, virtual_services};

/// Whether nobody can be asked about a route's requests in a CUSTOM policy, which knows paths only.
pub fn is_open_by_path(route: &Route) -> bool {
    route.matches.iter().all(|matched| {
        matched.method.is_none()
            && matched.headers.is_empty()
            && !matches!(matched.path, Path::Regex(_))
    })
}

/// The routes that are open under no condition but their path, and asked about nevertheless: a
/// guarded route of a host that they are not on covers it.
pub fn covered_elsewhere<'a>(edge: &Edge, routes: &'a [Route]) -> Vec<&'a Route> {
    let all = virtual_services(edge, routes);
    let unasked = Unasked::new(edge, &all, &all);
    let of_route = |route: &Route| virtual_services(edge, std::slice::from_ref(route));
    let closed = |route: &&Route| {
        let own = Ways::of(edge, &of_route(route));
        !own.open.keys().all(|uri| unasked.open.contains(uri))
    };
    let open = routes.iter().filter(|r| r.open && is_open_by_path(r));
    open.filter(closed).collect()
}

/// What a policy does not ask about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Unasked {
    open: BTreeSet<StringMatch>,
    /// What is guarded, and asked about though it is under one of them.
    nested: BTreeSet<String>,
}

impl Unasked {
    /// What need not be asked about while the gateway has the rules of `coming`, those of `live`, or
    /// some of both.
    pub fn new(edge: &Edge, coming: &[VirtualService], live: &[VirtualService]) -> Self {
        let (coming, live) = (Ways::of(edge, coming), Ways::of(edge, live));
        let guarded: BTreeSet<(String, StringMatch)> =
            coming.guarded.union(&live.guarded).cloned().collect();
        let mut open = BTreeSet::new();
        for (uri, hosts) in &coming.open {
            let standing: BTreeSet<&String> = live
                .open
                .get(uri)
                .map(|standing| hosts.intersection(standing).collect())
                .unwrap_or_default();
            let covered = |(host, by): &(String, StringMatch)| {
                !standing.contains(host) && !is_under(by, uri) && covers(by, uri)
            };
            if !standing.is_empty() && !guarded.iter().any(covered) {
                open.insert(uri.clone());
            }
        }
        let nested = guarded
            .iter()
            .filter(|(_, path)| open.iter().any(|open| is_under(path, open)))
            .map(|(_, path)| pattern(path))
            .collect();
        Self { open, nested }
    }

    fn rules(&self) -> Vec<Rule> {
        let rule = |operation: Operation| Rule {
            to: vec![To { operation }],
            ..Rule::default()
        };
        if self.open.is_empty() {
            // A rule without conditions is about every request.
            return vec![Rule::default()];
        }
        let own = [PROBE_PATH, DENIED_PATH].map(str::to_owned);
        let not_paths: BTreeSet<String> = self.open.iter().map(pattern).collect();
        vec![
            rule(Operation {
                not_paths: not_paths.into_iter().collect(),
                ..Operation::default()
            }),
            rule(Operation {
                paths: own.into_iter().chain(self.nested.clone()).collect(),
                ..Operation::default()
            }),
        ]
    }
}

/// The policy that asks `provider` about everything else.
pub fn custom_policy(
    name: &str,
    namespace: &str,
    labels: &BTreeMap<String, String>,
    provider: &str,
    unasked: &Unasked,
) -> AuthorizationPolicy {
    let spec = AuthorizationPolicySpec {
        selector: Some(Selector {
            match_labels: labels.clone(),
        }),
        action: Some(Action::Custom),
        rules: unasked.rules(),
        provider: Some(Provider {
            name: provider.to_owned(),
        }),
        ..AuthorizationPolicySpec::default()
    };
    AuthorizationPolicy::new(namespace, name, spec)
}

/// The paths on which the gateway's rules lead somewhere.
#[derive(Debug, Default)]
struct Ways {
    /// Those of open rules without further conditions, with their hosts.
    open: BTreeMap<StringMatch, BTreeSet<String>>,
    /// All others: host and path.
    guarded: BTreeSet<(String, StringMatch)>,
}

impl Ways {
    fn of(edge: &Edge, services: &[VirtualService]) -> Self {
        let open_name = edge.guard.as_deref().map(open_route_name);
        let mut ways = Self::default();
        for service in services {
            for rule in &service.spec.http {
                if rule.direct_response.is_some() {
                    continue;
                }
                let anything = [HttpMatch::default()];
                let matches = if rule.matches.is_empty() {
                    &anything[..]
                } else {
                    &rule.matches
                };
                for matched in matches.iter().filter(|m| !is_to_https(edge, rule, m)) {
                    let root = || StringMatch::Prefix("/".to_owned());
                    let uri = matched.uri.clone().unwrap_or_else(root);
                    let named = open_name.is_some() && rule.name == open_name;
                    let open = named && is_by_path(matched, &uri);
                    for host in &service.spec.hosts {
                        if open {
                            let hosts = ways.open.entry(uri.clone()).or_default();
                            hosts.insert(host.clone());
                        } else {
                            ways.guarded.insert((host.clone(), uri.clone()));
                        }
                    }
                }
            }
        }
        ways
    }
}

/// Whether this is the rule that sends plain HTTP to TLS, whatever the path.
fn is_to_https(edge: &Edge, rule: &HttpRoute, matched: &HttpMatch) -> bool {
    rule.redirect.is_some() && matched.port == Some(edge.http)
}

/// Whether nothing but the path, and the guard that all carry, is asked for.
fn is_by_path(matched: &HttpMatch, uri: &StringMatch) -> bool {
    let mut plain = HttpMatch {
        uri: Some(uri.clone()),
        port: matched.port,
        ..HttpMatch::default()
    };
    if let Some(guard) = matched.headers.get(GUARD_HEADER) {
        plain.headers.insert(GUARD_HEADER.to_owned(), guard.clone());
    }
    *matched == plain && !matches!(uri, StringMatch::Regex(_))
}

/// What every path that fits begins with, as far as it is known, without a slash at the end.
fn beginning(uri: &StringMatch) -> String {
    let text = match uri {
        StringMatch::Exact(text) | StringMatch::Prefix(text) => text.clone(),
        StringMatch::Regex(text) => text
            .parse::<Pattern>()
            .map(|pattern| pattern.literal().to_owned())
            .unwrap_or_default(),
    };
    text.trim_end_matches('/').to_owned()
}

/// Whether a path may be below another one, or be the same.
fn is_under(path: &StringMatch, other: &StringMatch) -> bool {
    beginning(path).starts_with(&beginning(other))
}

/// Whether what fits `path` may fit `by`, which is none below it.
fn covers(by: &StringMatch, path: &StringMatch) -> bool {
    match by {
        StringMatch::Exact(_) => false,
        StringMatch::Prefix(prefix) => format!("{}/", beginning(path)).starts_with(prefix),
        StringMatch::Regex(_) => beginning(path).starts_with(&beginning(by)),
    }
}

/// A path as policies spell it.
fn pattern(uri: &StringMatch) -> String {
    match uri {
        StringMatch::Exact(path) => path.clone(),
        StringMatch::Prefix(prefix) => format!("{prefix}*"),
        StringMatch::Regex(_) => match beginning(uri) {
            known if known.is_empty() => "/*".to_owned(),
            known => format!("{known}*"),
        },
    }
}
