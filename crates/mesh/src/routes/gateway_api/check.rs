//! What the Gateway API cannot say, and where it decides otherwise than Istio's own API.

use istio_api::networking::StringMatch;

use super::super::Edge;
use super::super::model::{Action, Path, Route, RouteProblem};
use super::MAX_ITEMS;

/// Most rules that nobody is asked about: each of them has its place in one object.
pub const MAX_OPEN_RULES: usize = 500;
/// The redirects that every version of the API knows.
const REDIRECTS: &[u16] = &[301, 302];

/// Why a route cannot be served by a Gateway API gateway; `None` if it can.
pub fn refusal(route: &Route) -> Option<RouteProblem> {
    let backends = route.backends().len();
    if backends > MAX_ITEMS {
        return Some(field("backends", &backends.to_string(), "are more than 16"));
    }
    for matched in &route.matches {
        // One place is the guard's.
        let headers = matched.headers.len();
        if headers >= MAX_ITEMS {
            return Some(field("headers", &headers.to_string(), "are more than 15"));
        }
        for value in matched.headers.values() {
            if let StringMatch::Prefix(text) = value {
                return Some(field("header value", text, "cannot be a beginning"));
            }
        }
    }
    let host = match &route.action {
        Action::Forward { host, .. } => host,
        Action::Redirect { host, code, .. } => {
            if !REDIRECTS.contains(code) {
                let why = "must be 301 or 302 on the Gateway API";
                return Some(field("statusCode", &code.to_string(), why));
            }
            host
        }
    };
    host.as_ref()
        .filter(|host| host.contains('*'))
        .map(|host| field("hostname", host, "must have no wildcard here"))
}

/// The prefix that Istio asks before an expression of `route`, as the API has it; the more special
/// one comes first in Istio's own API only.
pub fn preferred<'a>(edge: &Edge, route: &Route, routes: &'a [Route]) -> Option<&'a Route> {
    let hosts = |route: &'a Route| -> Vec<&'a String> {
        if route.hosts.is_empty() {
            Vec::new()
        } else {
            route.hosts.iter().collect()
        }
    };
    let same_hosts = |other: &'a Route| {
        let named = hosts(other);
        if route.hosts.is_empty() {
            return named.is_empty() || edge.hosts.iter().any(|host| named.contains(&host));
        }
        named.iter().any(|host| route.hosts.contains(*host))
            || (named.is_empty() && edge.hosts.iter().any(|host| route.hosts.contains(host)))
    };
    let expressions: Vec<&str> = route
        .matches
        .iter()
        .filter(|matched| matches!(matched.path, Path::Regex(_)))
        .map(|matched| matched.path.beginning())
        .collect();
    if expressions.is_empty() {
        return None;
    }
    let covers = |other: &&Route| {
        other.matches.iter().any(|matched| match &matched.path {
            Path::Prefix(prefix) => {
                let prefix = prefix.as_str().trim_end_matches('/');
                let plain = matched.method.is_none() && matched.headers.is_empty();
                plain && expressions.iter().any(|text| text.starts_with(prefix))
            }
            Path::Exact(_) | Path::Regex(_) => false,
        })
    };
    routes.iter().filter(|other| same_hosts(other)).find(covers)
}

fn field(what: &'static str, value: &str, why: &'static str) -> RouteProblem {
    RouteProblem::Field {
        what,
        value: value.to_owned(),
        why,
    }
}
