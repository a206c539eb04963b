//! Who gets what: of two wishes for the same requests the one of the lower relation id keeps them.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::StringMatch;

use super::check::checked;
use super::model::{Match, Path, Route, RouteProblem, RouteRequest};

/// A wish: relation id and name of the route inside it.
pub type RouteKey = (u32, String);

/// What the routes of one relation may come to in bytes of objects: they stand beside all others', and
/// the API server takes 1.5 MiB.
const RELATION_BYTES: usize = 256 << 10;

/// What a gateway is called.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct OwnHosts {
    /// The host of routes that name none; `*` for any.
    pub default: Option<String>,
    /// Other names by which it is reached: who names one of them means the default.
    pub names: BTreeSet<String>,
}

/// [`routes_at`] a gateway of which no name is known.
pub fn routes(requests: &[RouteRequest]) -> (Vec<Route>, BTreeMap<RouteKey, RouteProblem>) {
    routes_at(&OwnHosts::default(), requests)
}

/// The routes that can be served, in the order of relations, and what is wrong with the others.
///
/// A host and a path belong to one relation, whatever it asks of method and headers: with a further
/// condition, or with the path alone for what was it and all below, another one would be asked first
/// and get the requests. What is below a path, or is another host, is another claim. Inside a relation
/// the conditions are part of the claim, and the more special one is asked first.
pub fn routes_at(
    own: &OwnHosts,
    requests: &[RouteRequest],
) -> (Vec<Route>, BTreeMap<RouteKey, RouteProblem>) {
    let mut by_claim: Vec<&RouteRequest> = requests.iter().collect();
    by_claim.sort_by_key(|request| (request.relation, request.name.clone()));
    let mut held: BTreeMap<Place, (u32, String)> = BTreeMap::new();
    let mut claimed: BTreeSet<(u32, Claim)> = BTreeSet::new();
    let mut sizes: BTreeMap<u32, usize> = BTreeMap::new();
    let mut problems = BTreeMap::new();
    let mut routes = Vec::new();
    for request in by_claim {
        let key = (request.relation, request.name.clone());
        let route = match checked(request).and_then(|route| at(own, route)) {
            Ok(route) => route,
            Err(problem) => {
                problems.insert(key, problem);
                continue;
            }
        };
        let size = sizes.entry(route.relation).or_default();
        if *size + bytes(&route) > RELATION_BYTES {
            let value = route.name;
            let (what, why) = (
                "route",
                "is more than one relation's share: its routes are too many",
            );
            problems.insert(key, RouteProblem::Field { what, value, why });
            continue;
        }
        let claims = claims(own, &route);
        let taken = claims.iter().find_map(|claim| {
            let (relation, holder) = held.get(&claim.place())?;
            let again = claimed.contains(&(*relation, claim.clone()));
            (*relation != route.relation || again).then_some((claim, holder))
        });
        if let Some((claim, holder)) = taken {
            let what = match &claim.host {
                Some(host) => format!("{} of {host}", claim.matched.path),
                None => claim.matched.path.to_string(),
            };
            let holder = holder.clone();
            problems.insert(key, RouteProblem::Taken { what, holder });
            continue;
        }
        *size += bytes(&route);
        for claim in claims {
            held.entry(claim.place())
                .or_insert_with(|| (route.relation, route.app.clone()));
            claimed.insert((route.relation, claim));
        }
        routes.push(route);
    }
    (routes, problems)
}

/// About what a route comes to: each condition is written for each host, with all backends.
fn bytes(route: &Route) -> usize {
    let matched = |matched: &Match| {
        let headers = matched.headers.iter().map(|(name, value)| {
            let (StringMatch::Exact(text) | StringMatch::Prefix(text) | StringMatch::Regex(text)) =
                value;
            32 + name.len() + text.len()
        });
        // A prefix is written twice, with and without its slash.
        256 + 2 * (matched.path.to_string().len() + headers.sum::<usize>())
    };
    let each: usize = route.matches.iter().map(matched).sum();
    let backends = 128 * route.backends().len() * route.matches.len();
    (each + backends) * route.hosts.len().max(1)
}

/// A route with the gateway's own names as its default host: of one that names no other, none is left.
fn at(own: &OwnHosts, mut route: Route) -> Result<Route, RouteProblem> {
    let default = own.default.as_ref();
    let covers = |host: &&String| {
        let suffix = host.strip_prefix('*');
        let covered = |name: &String| suffix.is_some_and(|suffix| name.ends_with(suffix));
        own.names.iter().any(covered)
    };
    if let Some(wide) = route.hosts.iter().find(covers) {
        return Err(RouteProblem::Field {
            what: "hostname",
            value: wide.clone(),
            why: "covers a name of the gateway",
        });
    }
    let named = |host: String| match default {
        Some(default) if own.names.contains(&host) => default.clone(),
        _ => host,
    };
    route.hosts = route.hosts.into_iter().map(named).collect();
    if route.hosts.len() == 1 && route.hosts.first() == default {
        route.hosts.clear();
    }
    Ok(route)
}

#[derive(Clone, Eq, Ord, PartialEq, PartialOrd)]
struct Claim {
    host: Option<String>,
    matched: Match,
}

/// A host and what all paths of a claim begin with.
type Place = (Option<String>, String);

impl Claim {
    fn place(&self) -> Place {
        let beginning = self.matched.path.beginning().trim_end_matches('/');
        (self.host.clone(), beginning.to_owned())
    }
}

fn claims(own: &OwnHosts, route: &Route) -> Vec<Claim> {
    let host = |host: &String| Some(host.clone()).filter(|host| Some(host) != own.default.as_ref());
    let hosts: Vec<Option<String>> = if route.hosts.is_empty() {
        vec![None]
    } else {
        route.hosts.iter().map(host).collect()
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
