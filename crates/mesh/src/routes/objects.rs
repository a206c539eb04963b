//! The objects that routes become.
//!
//! All routes of a gateway stand in one `VirtualService`, because the order between several depends
//! on when they were created. Beyond [`MAX_ROUTES_PER_OBJECT`] they are spread over several by first
//! path segment, which keeps routes that could shadow each other together; the root prefix needs no
//! company, since Istio moves catch-alls behind everything else.

use std::collections::BTreeMap;

use istio_api::networking::{
    Destination, Gateway, GatewaySpec, HeaderOperations, Headers, HttpMatch, HttpRewrite,
    HttpRoute, Port, PortSelector, RouteDestination, Server, StringMatch, VirtualService,
    VirtualServiceSpec,
};
use sha2::{Digest as _, Sha256};

use super::{Prefix, Route};
use crate::auth::GUARD_HEADER;

/// Most routes in one `VirtualService`: about 600 bytes each, and etcd takes 1.5 MiB.
pub const MAX_ROUTES_PER_OBJECT: usize = 500;

/// Where routes are attached.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edge {
    /// Namespace of the `Gateway` and the `VirtualService`s.
    pub namespace: String,
    /// Name of the `Gateway`.
    pub gateway: String,
    /// Name of the `VirtualService`; further ones get a number behind it.
    pub name: String,
    /// Hosts that are routed; `*` for any.
    pub hosts: Vec<String>,
    /// The value that [`GUARD_HEADER`] must have for a request to be routed; `None`: any request is.
    pub guard: Option<String>,
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

/// The `Gateway`: plain HTTP for every host on `port` of the workload's Service.
pub fn gateway(edge: &Edge, selector: &BTreeMap<String, String>, port: u16) -> Gateway {
    let server = Server {
        port: Port {
            number: port,
            protocol: "HTTP".to_owned(),
            name: "http".to_owned(),
        },
        hosts: vec!["*".to_owned()],
        tls: None,
        name: None,
    };
    let spec = GatewaySpec {
        selector: selector.clone(),
        servers: vec![server],
    };
    Gateway::new(&edge.namespace, &edge.gateway, spec)
}

/// The rules of one route: the prefix itself and everything below it. With a `guard`, only for
/// requests that carry it; the workload does not see it.
pub fn rules(route: &Route, guard: Option<&str>) -> Vec<HttpRoute> {
    let required = guard.map(|guard| {
        (
            GUARD_HEADER.to_owned(),
            StringMatch::Exact(guard.to_owned()),
        )
    });
    let matches = |uri: StringMatch| HttpMatch {
        uri: Some(uri),
        headers: required.clone().into_iter().collect(),
        ..HttpMatch::default()
    };
    let headers = guard.map(|_| Headers {
        request: Some(HeaderOperations {
            remove: vec![GUARD_HEADER.to_owned()],
            ..HeaderOperations::default()
        }),
        response: None,
    });
    let exact = || matches(StringMatch::Exact(route.prefix.as_str().to_owned()));
    let below = || matches(StringMatch::Prefix(route.prefix.with_slash()));
    let rule = |matches: Vec<HttpMatch>, rewrite: Option<&str>| HttpRoute {
        matches,
        rewrite: rewrite.map(|uri| HttpRewrite {
            uri: Some(uri.to_owned()),
            ..HttpRewrite::default()
        }),
        route: vec![destination(route)],
        headers: headers.clone(),
        ..HttpRoute::default()
    };
    if route.rewrite == route.prefix {
        return if route.prefix.is_root() {
            vec![rule(vec![below()], None)]
        } else {
            vec![rule(vec![exact(), below()], None)]
        };
    }
    let slashed = route.rewrite.with_slash();
    if route.prefix.is_root() {
        return vec![rule(vec![below()], Some(&slashed))];
    }
    // Envoy replaces the matched text: the two matches differ by the slash at the end, so must the
    // replacements, or `/app/x` would arrive as `//x`.
    vec![
        rule(vec![exact()], Some(route.rewrite.as_str())),
        rule(vec![below()], Some(&slashed)),
    ]
}

fn destination(route: &Route) -> RouteDestination {
    RouteDestination {
        destination: Destination {
            host: route.backend.host(),
            port: Some(PortSelector {
                number: route.backend.port,
            }),
            subset: None,
        },
        ..RouteDestination::default()
    }
}

/// The `VirtualService`s for `routes`, which are longest prefix first. No routes, no object.
pub fn virtual_services(edge: &Edge, routes: &[Route]) -> Vec<VirtualService> {
    let shards = routes
        .len()
        .div_ceil(MAX_ROUTES_PER_OBJECT)
        .next_power_of_two()
        .max(1);
    let mut groups: BTreeMap<usize, Vec<HttpRoute>> = BTreeMap::new();
    for route in routes {
        groups
            .entry(shard(&route.prefix, shards))
            .or_default()
            .extend(rules(route, edge.guard.as_deref()));
    }
    let name = |index: usize| match index {
        0 => edge.name.clone(),
        index => format!("{}-{index}", edge.name),
    };
    groups
        .into_iter()
        .map(|(index, http)| {
            let spec = VirtualServiceSpec {
                hosts: edge.hosts.clone(),
                gateways: vec![format!("{}/{}", edge.namespace, edge.gateway)],
                http,
                ..VirtualServiceSpec::default()
            };
            VirtualService::new(&edge.namespace, &name(index), spec)
        })
        .collect()
}

/// Which of `shards` a prefix belongs to: the same for all prefixes with the same first segment.
fn shard(prefix: &Prefix, shards: usize) -> usize {
    let digest = Sha256::digest(prefix.first_segment().as_bytes());
    digest.first().map_or(0, |byte| usize::from(*byte)) % shards
}

/// Those of `routes` whose every rule already stands in one of the `live` objects.
pub fn established(routes: &[Route], guard: Option<&str>, live: &[VirtualService]) -> Vec<Route> {
    let stands = |rule: &HttpRoute| live.iter().any(|service| service.spec.http.contains(rule));
    routes
        .iter()
        .filter(|route| rules(route, guard).iter().all(stands))
        .cloned()
        .collect()
}
