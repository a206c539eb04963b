//! Who gets what: of two wishes for the same requests the one of the lower relation id keeps them.

use std::collections::BTreeMap;

use istio_api::networking::StringMatch;

use super::check::checked;
use super::model::{Match, Path, Route, RouteProblem, RouteRequest};

/// A wish: relation id and name of the route inside it.
pub type RouteKey = (u32, String);

/// The routes that can be served, in the order of relations, and what is wrong with the others.
///
/// A claim is a host, a path and the conditions on method and headers. What differs in one of them
/// is another claim, and the more special one is asked first.
pub fn routes(requests: &[RouteRequest]) -> (Vec<Route>, BTreeMap<RouteKey, RouteProblem>) {
    let mut by_claim: Vec<&RouteRequest> = requests.iter().collect();
    by_claim.sort_by_key(|request| (request.relation, request.name.clone()));
    let mut claimed: BTreeMap<Claim, String> = BTreeMap::new();
    let mut problems = BTreeMap::new();
    let mut routes = Vec::new();
    for request in by_claim {
        let key = (request.relation, request.name.clone());
        let route = match checked(request) {
            Ok(route) => route,
            Err(problem) => {
                problems.insert(key, problem);
                continue;
            }
        };
        let claims = claims(&route);
        let taken = claims
            .iter()
            .find_map(|claim| Some((claim, claimed.get(claim)?)));
        if let Some((claim, holder)) = taken {
            let what = match &claim.host {
                Some(host) => format!("{} of {host}", claim.matched.path),
                None => claim.matched.path.to_string(),
            };
            let holder = holder.clone();
            problems.insert(key, RouteProblem::Taken { what, holder });
            continue;
        }
        claimed.extend(claims.into_iter().map(|claim| (claim, route.app.clone())));
        routes.push(route);
    }
    (routes, problems)
}

#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Claim {
    host: Option<String>,
    matched: Match,
}

fn claims(route: &Route) -> Vec<Claim> {
    let hosts: Vec<Option<String>> = if route.hosts.is_empty() {
        vec![None]
    } else {
        route.hosts.iter().cloned().map(Some).collect()
    };
    let claim = |host: &Option<String>, matched: &Match| Claim {
        host: host.clone(),
        matched: matched.clone(),
    };
    let of_host = |host| {
        route
            .matches
            .iter()
            .map(move |matched| claim(host, matched))
    };
    hosts.iter().flat_map(of_host).collect()
}

/// The order in which conditions are asked: the smaller first. Exact paths, then the longest
/// beginning, then conditions on the method, then the most headers.
pub(super) fn precedence(matched: &Match) -> impl Ord + use<> {
    let class = match matched.path {
        Path::Exact(_) => 0,
        Path::Regex(_) | Path::Prefix(_) => 1,
    };
    let length = usize::MAX - matched.path.beginning().len();
    // Of the same beginning an expression is the more special one.
    let plain = !matches!(matched.path, Path::Regex(_));
    let exact = |value: &&StringMatch| matches!(value, StringMatch::Exact(_));
    (
        class,
        length,
        plain,
        matched.method.is_none(),
        usize::MAX - matched.headers.len(),
        usize::MAX - matched.headers.values().filter(exact).count(),
        matched.clone(),
    )
}
