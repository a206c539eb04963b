//! The objects that routes become on a gateway of the Gateway API.
//!
//! Each route is an `HTTPRoute` or `GRPCRoute` of its own: what is wrong with one costs no other, and
//! the API itself says which of several is asked first (exact paths, then the longest prefix). Not
//! so for expressions, which Istio asks last; and not between the two kinds, which Istio keeps
//! apart and asks in the order of their age. So a gRPC route that shares requests with another route
//! of its host is written as an `HTTPRoute`, which means the same.
//!
//! While authorization is wanted, it is guarded as on any gateway (see [`crate::auth`]): rules match
//! only with [`GUARD_HEADER`](crate::auth::GUARD_HEADER). The API has no rules that answer by
//! themselves, so a filter puts those for the probe before all others. Rules that nobody is asked
//! about are known by the name that Istio gives them, `<namespace>.<route>.<index of the rule>`; the
//! route's own name is not to be guessed, see [`open_route_name`](crate::auth::open_route_name).

mod check;
mod gateway;
mod grants;
mod grpc;
mod guard;
mod http;
mod live;

use std::collections::BTreeSet;

use istio_api::gateway_api::{GRPCRoute, HTTPRoute, ParentRef, ReferenceGrant};

pub use check::{MAX_OPEN_RULES, preferred, refusal};
pub use gateway::{OwnGateway, gateway, version};
pub use grants::reference_grants;
pub use guard::{filter_with_names, open_rules, probe_filter, probe_route, same_but_names};
pub use live::{LiveRoutes, established, guard_of_routes, routes_unguarded, shows_authorization};

use super::Edge;
use super::model::Route;

/// Name of the listener for plain HTTP of a `Gateway` of ours.
pub const HTTP: &str = "http";
/// Name of its listener for TLS.
pub const HTTPS: &str = "https";

/// The `Gateway` that routes are attached to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Parent {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it is ours; else its owner decides about listeners and certificates.
    pub own: bool,
}

impl Parent {
    fn reference(&self, listener: Option<&str>) -> ParentRef {
        ParentRef::gateway(&self.namespace, &self.name, listener)
    }

    /// Whether plain HTTP is answered with a redirect.
    fn redirects(&self, edge: &Edge) -> bool {
        self.own && edge.tls.as_ref().is_some_and(|tls| tls.redirect)
    }

    /// Where routes are attached.
    fn of_routes(&self, edge: &Edge) -> ParentRef {
        self.reference(self.redirects(edge).then_some(HTTPS))
    }
}

/// The routes as objects, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// For HTTP.
    pub http: Vec<HTTPRoute>,
    /// For gRPC.
    pub grpc: Vec<GRPCRoute>,
    /// What lets them lead into other namespaces.
    pub grants: Vec<ReferenceGrant>,
}

/// The objects for `routes`, all of which must be free of [`refusal`]s. `grpc`: whether the cluster
/// serves `GRPCRoute`.
pub fn objects(edge: &Edge, parent: &Parent, routes: &[Route], grpc: bool) -> Objects {
    let mut objects = of_routes(edge, parent, routes, grpc);
    if parent.redirects(edge) {
        objects.http.push(http::to_https(edge, parent));
    }
    objects
        .http
        .sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    objects
        .grpc
        .sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    objects
}

fn of_routes(edge: &Edge, parent: &Parent, routes: &[Route], grpc: bool) -> Objects {
    let alone = grpc::alone(edge, routes);
    let mut objects = Objects {
        grants: reference_grants(edge, routes),
        ..Objects::default()
    };
    for (index, route) in routes.iter().enumerate() {
        if grpc && alone.contains(&index) {
            objects.grpc.extend(grpc::objects(edge, parent, route));
        } else {
            objects.http.extend(http::objects(edge, parent, route));
        }
    }
    objects
}

/// The names of the objects that a route becomes, of either kind.
pub fn object_names(edge: &Edge, route: &Route) -> Vec<String> {
    let objects = http::objects(edge, &Parent::default(), route);
    objects
        .into_iter()
        .filter_map(|object| object.metadata.name)
        .collect()
}

/// The hosts of a route, in pieces that one object takes; no host for any.
fn hostnames(edge: &Edge, route: &Route) -> Vec<Vec<String>> {
    let hosts: BTreeSet<&String> = if route.hosts.is_empty() {
        edge.hosts.iter().collect()
    } else {
        route.hosts.iter().collect()
    };
    if hosts.iter().any(|host| *host == "*") {
        return vec![Vec::new()];
    }
    let hosts: Vec<String> = hosts.into_iter().cloned().collect();
    hosts.chunks(MAX_ITEMS).map(<[String]>::to_vec).collect()
}

/// What one list of the API holds: hosts, rules, backends, headers.
const MAX_ITEMS: usize = 16;

/// The name of the object for a route. While authorization is wanted, that of an open one is not to be
/// guessed.
fn object_name(edge: &Edge, route: &Route, part: usize) -> String {
    let beginning = match &edge.guard {
        Some(guard) if route.open => crate::auth::open_route_name(guard),
        _ => edge.name.clone(),
    };
    let mut name = vec![beginning, route.relation.to_string()];
    if !route.name.is_empty() {
        name.push(super::short_hash(&route.name));
    }
    if part > 0 {
        name.push(part.to_string());
    }
    name.join("-")
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_guard;
