//! What live routes tell.

use std::collections::BTreeMap;

use istio_api::ObjectMeta;
use istio_api::gateway_api::{
    GRPCRoute, GrpcMatch, GrpcRouteSpec, HTTPRoute, HeaderMatch, HeaderMatchType, HttpMatch,
    HttpRouteSpec, PathMatchType,
};

use super::super::Edge;
use super::super::model::Route;
use super::{Objects, Parent, of_routes};
use crate::auth::{GUARD_HEADER, PROBE_PATH};

/// Our routes as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveRoutes {
    /// For HTTP.
    pub http: Vec<HTTPRoute>,
    /// For gRPC.
    pub grpc: Vec<GRPCRoute>,
}

impl LiveRoutes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.grpc.is_empty()
    }
}

/// Those of `routes` whose every object is live as it would be written.
pub fn established(
    edge: &Edge,
    parent: &Parent,
    routes: &[Route],
    grpc: bool,
    live: &LiveRoutes,
) -> Vec<Route> {
    let http: BTreeMap<&str, &HttpRouteSpec> = live
        .http
        .iter()
        .filter_map(|route| Some((route.metadata.name.as_deref()?, &route.spec)))
        .collect();
    let calls: BTreeMap<&str, &GrpcRouteSpec> = live
        .grpc
        .iter()
        .filter_map(|route| Some((route.metadata.name.as_deref()?, &route.spec)))
        .collect();
    // Which kind a route becomes depends on the others; either is as good.
    let stands = |route: &Route| {
        [grpc, false].iter().any(|grpc| {
            let Objects {
                http: wanted_http,
                grpc: wanted_calls,
                grants: _,
            } = of_routes(edge, parent, std::slice::from_ref(route), *grpc);
            let name = |metadata: &ObjectMeta| metadata.name.clone().unwrap_or_default();
            let http = wanted_http
                .iter()
                .all(|object| http.get(name(&object.metadata).as_str()) == Some(&&object.spec));
            let calls = wanted_calls
                .iter()
                .all(|object| calls.get(name(&object.metadata).as_str()) == Some(&&object.spec));
            http && calls
        })
    };
    routes
        .iter()
        .filter(|route| stands(route))
        .cloned()
        .collect()
}

fn guard_in(headers: &[HeaderMatch]) -> Option<&str> {
    let guard = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(GUARD_HEADER))?;
    (guard.kind == HeaderMatchType::Exact).then_some(guard.value.as_str())
}

/// The value of [`GUARD_HEADER`] that routes ask for.
pub fn guard_of_routes(live: &LiveRoutes) -> Option<&str> {
    let http = live.http.iter().flat_map(|route| &route.spec.rules);
    let mut http = http.flat_map(|rule| &rule.matches);
    let grpc = live.grpc.iter().flat_map(|route| &route.spec.rules);
    let mut grpc = grpc.flat_map(|rule| &rule.matches);
    http.find_map(|matched| guard_in(&matched.headers))
        .or_else(|| grpc.find_map(|matched| guard_in(&matched.headers)))
}

/// Whether they were written while authorization was wanted.
pub fn shows_authorization(live: &LiveRoutes) -> bool {
    let matches = live.http.iter().flat_map(|route| &route.spec.rules);
    let mut matches = matches.flat_map(|rule| &rule.matches);
    guard_of_routes(live).is_some()
        || matches.any(|matched| {
            matched.path.kind == PathMatchType::Exact && matched.path.value == PROBE_PATH
        })
}

/// The routes that lead to a workload without asking for [`GUARD_HEADER`], apart from the others.
pub fn routes_unguarded(live: &LiveRoutes) -> (LiveRoutes, LiveRoutes) {
    let http_open = |route: &HTTPRoute| {
        route.spec.rules.iter().any(|rule| {
            let asks = |m: &HttpMatch| guard_in(&m.headers).is_some();
            let all = !rule.matches.is_empty() && rule.matches.iter().all(asks);
            !rule.backend_refs.is_empty() && !all
        })
    };
    let grpc_open = |route: &GRPCRoute| {
        route.spec.rules.iter().any(|rule| {
            let asks = |m: &GrpcMatch| guard_in(&m.headers).is_some();
            let all = !rule.matches.is_empty() && rule.matches.iter().all(asks);
            !rule.backend_refs.is_empty() && !all
        })
    };
    let (http, kept_http) = live.http.iter().cloned().partition(http_open);
    let (grpc, kept_grpc) = live.grpc.iter().cloned().partition(grpc_open);
    (
        LiveRoutes { http, grpc },
        LiveRoutes {
            http: kept_http,
            grpc: kept_grpc,
        },
    )
}
