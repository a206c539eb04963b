//! What of the Gateway API was seen in the cluster.

use std::collections::BTreeSet;

use istio_api::gateway_api::{GROUP, Gateway};
use istio_api::networking::EnvoyFilter;
use istio_api::security::AuthorizationPolicy;
use kube_apply::{Object, Observed, Query as Read};
use mesh::discovery::{self, GATEWAY_NAME, api_gateways, istio_classes};
use mesh::routes::gateway_api::{LiveRoutes, version};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::choice::{Facts, Served};
use super::live::LiveApi;
use crate::observe::Query;

/// What is read; `ours` selects our objects.
pub(crate) fn reads(ours: &str) -> Vec<Read> {
    vec![
        Read::list(GROUP, "GatewayClass"),
        Read::list(GROUP, "Gateway"),
        Read::list(GROUP, "HTTPRoute").with_labels(ours),
        Read::list(GROUP, "GRPCRoute").with_labels(ours),
        Read::list(GROUP, "ReferenceGrant").with_labels(ours),
        Read::list("apps", "Deployment").with_labels(GATEWAY_NAME),
    ]
}

/// The namespaces of gateways that Istio runs, whose Services are worth a look.
pub(crate) fn namespaces(observed: &Observed) -> BTreeSet<String> {
    let classes = classes(observed);
    let gateways = typed::<Gateway>(observed, "Gateway");
    let ours = gateways
        .into_iter()
        .filter(|gateway| classes.contains(&gateway.spec.gateway_class_name));
    ours.filter_map(|gateway| gateway.metadata.namespace)
        .collect()
}

/// What there is, with the workloads in `live`.
pub(crate) fn facts(query: &Query, observed: &Observed, live: &discovery::Live) -> Facts {
    let classes = classes(observed);
    let served = |kind: &str| {
        let versions = observed.served().versions(GROUP, kind);
        let versions: Vec<String> = versions.iter().map(|v| v.version.clone()).collect();
        version(&versions)
    };
    let own = |object: &&Object| query.inventory.owns(object);
    let name = |object: &Object| {
        let namespace = object.namespace().unwrap_or_default();
        (namespace.to_owned(), object.name().to_owned())
    };
    let gateways = typed::<Gateway>(observed, "Gateway");
    Facts {
        gateways: api_gateways(&gateways, &classes, &query.namespace, live),
        ours: observed
            .list(GROUP, "Gateway")
            .filter(own)
            .map(name)
            .collect(),
        served: Served {
            gateway: served("Gateway"),
            http: served("HTTPRoute"),
            grpc: served("GRPCRoute"),
            grant: served("ReferenceGrant"),
        },
        classes,
    }
}

/// Our objects, those of `filters` and `policies` that are for a gateway of the Gateway API among
/// them: they are taken out.
pub(crate) fn live(
    query: &Query,
    observed: &Observed,
    filters: &mut Vec<EnvoyFilter>,
    policies: &mut Vec<AuthorizationPolicy>,
) -> LiveApi {
    let (api, probe) = (query.names.api(), query.names.api_probe());
    let named = |name: &Option<String>, wanted: &str| name.as_deref() == Some(wanted);
    let take = |filters: &mut Vec<EnvoyFilter>, wanted: &str| {
        let (taken, rest) = filters
            .drain(..)
            .partition(|filter| named(&filter.metadata.name, wanted));
        *filters = rest;
        taken
    };
    let own = |object: &&Object| query.inventory.owns(object);
    let gateways = observed.list(GROUP, "Gateway").filter(own);
    let gateways = gateways.filter_map(|object| object.typed().ok());
    let (taken, rest) = policies
        .drain(..)
        .partition(|policy| named(&policy.metadata.name, &api));
    *policies = rest;
    LiveApi {
        gateways: gateways.collect(),
        routes: LiveRoutes {
            http: typed(observed, "HTTPRoute"),
            grpc: typed(observed, "GRPCRoute"),
        },
        grants: observed
            .list(GROUP, "ReferenceGrant")
            .map(Object::id)
            .collect(),
        filters: take(filters, &api),
        probes: take(filters, &probe),
        policies: taken,
    }
}

/// Our routes, with what is said of them.
pub(crate) fn routes(observed: &Observed) -> impl Iterator<Item = &Object> {
    observed
        .list(GROUP, "HTTPRoute")
        .chain(observed.list(GROUP, "GRPCRoute"))
}

fn classes(observed: &Observed) -> Vec<String> {
    let classes = observed.list(GROUP, "GatewayClass");
    let classes: Vec<Value> = classes.map(|object| object.value().clone()).collect();
    istio_classes(&classes)
}

/// The objects of a kind that have its shape.
fn typed<T: DeserializeOwned>(observed: &Observed, kind: &str) -> Vec<T> {
    let read = |object: &Object| match object.typed() {
        Ok(typed) => Some(typed),
        Err(error) => {
            tracing::warn!("{error}, left out");
            None
        }
    };
    observed.list(GROUP, kind).filter_map(read).collect()
}
