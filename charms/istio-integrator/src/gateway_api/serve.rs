//! What shall exist for a gateway of the Gateway API.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::CustomObject as _;
use istio_api::gateway_api::{Gateway, HTTPRoute};
use istio_api::networking::EnvoyFilter;
use istio_api::security::AuthorizationPolicy;
use mesh::auth::{deny_policy, envoy_filter};
use mesh::routes::gateway_api::{
    LiveRoutes, Objects, OwnGateway, Parent, filter_with_names, gateway, objects, open_rules,
    probe_filter, probe_route,
};
use mesh::routes::{Edge, Route};
use serde_json::Value;

use super::choice::{ApiChoice, Served};
use super::live::Acceptance;
use super::wishes::parent;
use crate::auth::Auth;
use crate::observe::Names;

/// What shall exist for a gateway of the Gateway API, besides the routes.
#[derive(Clone, Debug)]
pub struct ServeApi {
    /// What routes are attached to.
    pub parent: Parent,
    /// It, if it is ours.
    pub gateway: Option<Gateway>,
    /// What is served.
    pub served: Served,
    /// The filter that asks the authorizer, about open routes too; `None` if it is not clear who
    /// decides.
    pub filter: Option<EnvoyFilter>,
    /// The policy that denies everything.
    pub policy: AuthorizationPolicy,
    /// The filter that answers at the charm's own paths, and the route that makes room for it.
    pub probe: (EnvoyFilter, HTTPRoute),
    /// What the gateway said of our routes before this hook.
    pub said: BTreeMap<(String, String), Acceptance>,
    /// Whether one of its pods is ready.
    pub ready: bool,
}

/// What shall exist for the gateway `choice`.
pub fn serve(
    choice: &ApiChoice,
    edge: &Edge,
    auth: &Auth,
    names: &Names,
    said: &BTreeMap<(String, String), Acceptance>,
    ready: bool,
) -> ServeApi {
    let parent = parent(choice);
    let labels = &choice.gateway.workload.labels;
    let home = &parent.namespace;
    let guard = auth.guard.as_deref().unwrap_or_default();
    let own = OwnGateway {
        class: choice.gateway.class.clone(),
        revision: choice.revision.clone(),
    };
    let filter = |gate| envoy_filter(&names.api(), home, labels, gate, guard);
    ServeApi {
        gateway: choice.own.then(|| gateway(edge, &parent, &own)),
        served: choice.served,
        filter: auth.gate.as_ref().map(filter),
        policy: deny_policy(&names.api(), home, labels),
        probe: (
            probe_filter(&names.api_probe(), home, labels),
            probe_route(edge, &parent, &format!("{}-auth-probe", names.app)),
        ),
        said: said.clone(),
        ready,
        parent,
    }
}

impl ServeApi {
    /// The objects of routes.
    pub(super) fn objects(&self, edge: &Edge, routes: &[Route]) -> Objects {
        objects(edge, &self.parent, routes, self.served.grpc.is_some())
    }

    /// The filter for when these are live.
    pub(super) fn filter_for(&self, edge: &Edge, objects: &Objects) -> Option<EnvoyFilter> {
        let filter = self.filter.clone()?;
        Some(filter_with_names(filter, &open_rules(edge, objects)))
    }

    /// What routes are attached to, if it is ours, and what answers probes, as the cluster takes it.
    pub(super) fn values(&self, wanted: bool) -> Vec<Value> {
        let gateway = self.gateway.iter();
        let mut values: Vec<Value> = gateway
            .map(|gateway| gateway.to_object_as(self.served.gateway.unwrap_or("v1")))
            .collect();
        let (filter, route) = &self.probe;
        if wanted {
            values.push(filter.to_object());
            values.push(route.to_object_as(self.served.http.unwrap_or("v1")));
        }
        values
    }

    /// The routes, likewise.
    pub(super) fn route_values(&self, objects: &Objects) -> Vec<Value> {
        let http = objects.http.iter();
        let http = http.map(|route| route.to_object_as(self.served.http.unwrap_or("v1")));
        let grpc = objects.grpc.iter();
        let grpc = grpc.map(|route| route.to_object_as(self.served.grpc.unwrap_or("v1")));
        http.chain(grpc).collect()
    }

    /// What lets routes lead into other namespaces.
    pub(super) fn grants(&self, objects: &Objects) -> Vec<Value> {
        let version = self.served.grant.unwrap_or("v1beta1");
        let grants = objects.grants.iter();
        grants.map(|grant| grant.to_object_as(version)).collect()
    }

    /// Whether all of `objects` were live before this hook, and the gateway takes them.
    pub(super) fn is_there(&self, objects: &Objects, live: &super::LiveApi) -> bool {
        let LiveRoutes { http, grpc } = &live.routes;
        let taken = |kind: &str, name: &Option<String>| {
            let key = (kind.to_owned(), name.clone().unwrap_or_default());
            self.said.get(&key).and_then(|said| said.accepted) == Some(true)
        };
        let http = objects.http.iter().all(|object| {
            let name = &object.metadata.name;
            let mut same = http.iter();
            same.any(|live| live.metadata.name == *name && live.spec == object.spec)
                && taken("HTTPRoute", name)
        });
        let grpc = objects.grpc.iter().all(|object| {
            let name = &object.metadata.name;
            let mut same = grpc.iter();
            same.any(|live| live.metadata.name == *name && live.spec == object.spec)
                && taken("GRPCRoute", name)
        });
        let known: BTreeSet<_> = live.gateways.iter().map(|g| &g.metadata.name).collect();
        let gateway = self.gateway.as_ref();
        self.ready && http && grpc && gateway.is_none_or(|g| known.contains(&g.metadata.name))
    }
}
