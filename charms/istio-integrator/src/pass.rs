//! One pass of applying, decided from what is live and proven. Pure; [`crate::cluster`] repeats it.
//!
//! Invariant: at no point of any sequence of passes, also one that is cut short, does a route exist
//! in front of which neither authorization nor the DENY policy is proven, while authorization is
//! wanted (see [`mesh::auth`]).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use istio_api::CustomObject;
use istio_api::networking::EnvoyFilter;
use kube_apply::{Applied, Error, Object, ObjectRef, ObjectsSet, Stage};
use mesh::auth::{AuthState, Evidence, FilterStep, LiveFilter, Scope, Situation, step};
use mesh::routes::{Route, established, virtual_services};

use crate::desired::Serve;
use crate::observe::Live;

/// One pass.
#[derive(Clone, Debug)]
pub struct Pass {
    /// What to apply.
    pub set: ObjectsSet,
    /// Our objects once that is done.
    pub live: Live,
    /// The relations whose routes are then in place.
    pub served: BTreeSet<u32>,
    /// How far authorization is.
    pub state: AuthState,
    /// Whether another pass, with fresh evidence, could lead further.
    pub more: bool,
}

/// What all passes of a hook did.
#[derive(Clone, Debug)]
pub struct Done {
    /// What was written, pruned and left to others.
    pub applied: Applied,
    /// The relations whose routes are in place.
    pub served: BTreeSet<u32>,
    /// How far authorization is.
    pub state: AuthState,
}

/// The pass to make now.
///
/// # Errors
/// Never, but for an object without a name.
pub fn pass(serve: &Serve, live: &Live, evidence: &Evidence) -> Result<Pass, Error> {
    if serve.auth_wanted && moved(serve, live) {
        return leave_old_gateway(serve, live);
    }
    let step = step(&Situation {
        wanted: serve.auth_wanted,
        filter_ready: serve.filters.is_some(),
        live: live_filter(serve, live),
        evidence: evidence.clone(),
    });
    let routes = match step.routes {
        Scope::All => serve.routes.clone(),
        Scope::Established => established(
            &serve.routes,
            serve.edge.guard.as_deref(),
            &live.virtual_services,
        ),
    };
    let services = virtual_services(&serve.edge, &routes);
    let filters = match step.filter {
        FilterStep::Write => serve.filters.clone().unwrap_or_default(),
        FilterStep::Keep => live.filters.clone(),
        FilterStep::Remove => Vec::new(),
    };
    let policies = if step.deny {
        serve.policies.clone()
    } else {
        Vec::new()
    };

    let mut deny = Vec::new();
    for policy in &policies {
        deny.push(Object::new(policy.to_object_as(serve.security))?);
    }
    let mut guards = Vec::new();
    let mut retain = Vec::new();
    for filter in &filters {
        // EnvoyFilter has one version only.
        let object = Object::new(filter.to_object())?;
        if step.filter == FilterStep::Keep {
            retain.push(object.id());
        } else {
            guards.push(object);
        }
    }
    let mut edge = vec![Object::new(serve.networking(&serve.gateway))?];
    let mut all_services = services;
    if serve.auth_wanted {
        all_services.push(serve.probe.clone());
    }
    for service in &all_services {
        edge.push(Object::new(serve.networking(service))?);
    }
    Ok(Pass {
        set: set(
            serve,
            vec![
                Stage::new("deny", deny),
                Stage::new("authorize", guards),
                Stage::new("routes", edge),
            ],
            retain,
        ),
        live: Live {
            gateways: vec![serve.gateway.clone()],
            virtual_services: all_services,
            filters,
            policies,
        },
        served: ids(&routes),
        state: step.state,
        more: step.more,
    })
}

/// The gateway in use becomes another one: routes leave the old one, still guarded, before the
/// `Gateway` selects pods of the new one, which nothing guards yet.
fn leave_old_gateway(serve: &Serve, live: &Live) -> Result<Pass, Error> {
    let mut guards = Vec::new();
    for policy in &serve.policies {
        guards.push(Object::new(policy.to_object_as(serve.security))?);
    }
    let mut retain: Vec<ObjectRef> = Vec::new();
    for filter in &live.filters {
        retain.push(Object::new(filter.to_object())?.id());
    }
    for policy in &live.policies {
        retain.push(Object::new(policy.to_object_as(serve.security))?.id());
    }
    let mut policies = live.policies.clone();
    policies.extend(serve.policies.iter().cloned());
    Ok(Pass {
        set: set(serve, vec![Stage::new("deny", guards)], retain),
        live: Live {
            gateways: Vec::new(),
            virtual_services: Vec::new(),
            filters: live.filters.clone(),
            policies,
        },
        served: BTreeSet::new(),
        state: AuthState::Unproven,
        more: true,
    })
}

fn set(serve: &Serve, stages: Vec<Stage>, retain: Vec<ObjectRef>) -> ObjectsSet {
    // Nothing here has a rollout of its own: there are no gates to wait for.
    ObjectsSet {
        inventory: serve.inventory.clone(),
        stages,
        retain,
        wait: Duration::ZERO,
        whole: false,
    }
}

fn moved(serve: &Serve, live: &Live) -> bool {
    live.gateways.iter().any(|gateway| {
        gateway.spec.selector != serve.gateway.spec.selector
            || gateway.metadata.name != serve.gateway.metadata.name
    })
}

/// The live filters compared with the desired ones, by namespace and name.
fn live_filter(serve: &Serve, live: &Live) -> LiveFilter {
    let Some(desired) = &serve.filters else {
        return LiveFilter::Current;
    };
    let key = |filter: &EnvoyFilter| {
        (
            filter.metadata.namespace.clone(),
            filter.metadata.name.clone(),
        )
    };
    let by_key: BTreeMap<_, _> = live
        .filters
        .iter()
        .map(|filter| (key(filter), filter))
        .collect();
    let mut absent = false;
    for filter in desired {
        match by_key.get(&key(filter)) {
            None => absent = true,
            Some(live) if live.spec != filter.spec => return LiveFilter::Outdated,
            Some(_) => {}
        }
    }
    if absent {
        LiveFilter::Absent
    } else {
        LiveFilter::Current
    }
}

fn ids(routes: &[Route]) -> BTreeSet<u32> {
    routes.iter().map(|route| route.relation).collect()
}

#[cfg(test)]
mod tests;
