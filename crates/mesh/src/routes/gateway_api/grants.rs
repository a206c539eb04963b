//! `ReferenceGrant`s: the namespaces of backends let the routes in.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::gateway_api::{GROUP, GrantFrom, GrantTo, ReferenceGrant, ReferenceGrantSpec};

use super::super::model::Route;
use super::super::{Edge, short_hash};
use super::MAX_ITEMS;

/// The grants for just the Services in other namespaces that `routes` lead to.
pub fn reference_grants(edge: &Edge, routes: &[Route]) -> Vec<ReferenceGrant> {
    let mut services: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for weighted in routes.iter().flat_map(Route::backends) {
        let backend = &weighted.backend;
        if backend.namespace != edge.namespace {
            services
                .entry(&backend.namespace)
                .or_default()
                .insert(&backend.service);
        }
    }
    let from: Vec<GrantFrom> = ["GRPCRoute", "HTTPRoute"]
        .iter()
        .map(|kind| GrantFrom {
            group: GROUP.to_owned(),
            kind: (*kind).to_owned(),
            namespace: edge.namespace.clone(),
        })
        .collect();
    let to = |name: &&str| GrantTo {
        group: String::new(),
        kind: "Service".to_owned(),
        name: Some((*name).to_owned()),
    };
    let mut grants = Vec::new();
    for (namespace, names) in services {
        let names: Vec<&str> = names.into_iter().collect();
        for (part, names) in names.chunks(MAX_ITEMS).enumerate() {
            let part = if part > 0 {
                format!("-{part}")
            } else {
                String::new()
            };
            let name = format!("{}-{}{part}", edge.name, short_hash(&edge.namespace));
            let spec = ReferenceGrantSpec {
                from: from.clone(),
                to: names.iter().map(to).collect(),
            };
            grants.push(ReferenceGrant::new(namespace, &name, spec));
        }
    }
    grants
}
