//! One pass of applying, decided from what is live and proven. Pure; [`crate::cluster`] repeats it.
//!
//! Invariant: at no point of any sequence of passes, also one that is cut short, does a route exist
//! in front of which neither authorization nor the DENY policy is proven, while authorization is
//! wanted (see [`mesh::auth`]).

use std::collections::BTreeSet;
use std::time::Duration;

use istio_api::networking::{EnvoyFilter, VirtualService};
use istio_api::security::AuthorizationPolicy;
use istio_api::{CustomObject, ObjectMeta};
use juju_charm::Problem;
use kube_apply::{Applied, Error, Inventory, Object, ObjectRef, ObjectsSet, Stage};
use mesh::auth::{
    AuthState, Ease, Evidence, FilterStep, LiveFilter, Scope, Situation, Unasked, routes_unguarded,
    step,
};
use mesh::routes::{Route, established, virtual_services};

use crate::desired::Serve;
use crate::gateway_api::{self, LiveApi};
use crate::observe::Live;

/// The stage of what may be refused without keeping the rest from being written: what is another's
/// word, and what goes to namespaces other than the gateway's and the model's.
pub const ELSEWHERE: &str = "elsewhere";

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
    /// What other namespaces refused.
    pub refused: Vec<Problem>,
}

/// The pass to make now.
///
/// # Errors
/// Never, but for an object without a name.
pub fn pass(serve: &Serve, live: &Live, evidence: &Evidence) -> Result<Pass, Error> {
    if let Some(api) = &serve.api {
        return gateway_api::pass(serve, api, live, evidence);
    }
    let mut pass = classic(serve, live, evidence)?;
    gateway_api::keep(serve, live, is_there(serve), &mut pass)?;
    Ok(pass)
}

/// Whether everything that is to be was live before this hook, on a gateway with a ready pod.
fn is_there(serve: &Serve) -> bool {
    let live = &serve.live;
    let established = established(&serve.routes, &serve.edge, &live.virtual_services);
    let mut gateways = live.gateways.iter();
    serve.ready
        && established.len() == serve.routes.len()
        && gateways.any(|gateway| gateway.spec == serve.gateway.spec)
}

/// The pass for a gateway of Istio's own API.
fn classic(serve: &Serve, live: &Live, evidence: &Evidence) -> Result<Pass, Error> {
    if serve.auth_wanted && live.is_open() {
        return close(&serve.inventory, live);
    }
    if serve.auth_wanted && (moved(serve, live) || loses_its_provider(serve, live, evidence)) {
        return leave_old_gateway(serve, live);
    }
    let all = virtual_services(&serve.edge, &serve.routes);
    let filter = live_filter(serve, &customs_for(serve, &all, live), live);
    let step = step(&Situation {
        wanted: serve.auth_wanted,
        filter_ready: serve.filters.is_some(),
        live: filter,
        evidence: evidence.clone(),
        ease: ease(serve, live, filter, evidence),
    });
    let (routes, services) = match step.routes {
        Scope::All => (serve.routes.clone(), all),
        Scope::Established => {
            let routes = established(&serve.routes, &serve.edge, &live.virtual_services);
            let services = virtual_services(&serve.edge, &routes);
            (routes, services)
        }
    };
    let (mut filters, mut customs) = match step.filter {
        FilterStep::Write => (
            serve.filters.clone().unwrap_or_default(),
            customs_for(serve, &services, live),
        ),
        FilterStep::Keep | FilterStep::Remove => (live.filters.clone(), live.customs.clone()),
    };
    if step.filter == FilterStep::Remove {
        // What guards other namespaces' pods stays while authorization is wanted.
        let stays = |metadata: &ObjectMeta| {
            serve.auth_wanted && metadata.namespace.as_ref() != Some(&serve.home)
        };
        filters.retain(|filter| stays(&filter.metadata));
        customs.retain(|custom| stays(&custom.metadata));
    }
    let policies = if step.deny {
        serve.policies.clone()
    } else {
        Vec::new()
    };

    // What other namespaces refuse must not keep the gateway's own from being guarded.
    let (mut deny, mut guards, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    let mut retain = Vec::new();
    for policy in &policies {
        let object = Object::new(policy.to_object_as(serve.security))?;
        if object.namespace() == Some(&serve.home) {
            deny.push(object);
        } else {
            elsewhere.push(object);
        }
    }
    // EnvoyFilter has one version only.
    let filter_values = filters.iter().map(CustomObject::to_object);
    let custom_values = customs
        .iter()
        .map(|custom| custom.to_object_as(serve.security));
    for value in filter_values.chain(custom_values) {
        let object = Object::new(value)?;
        if step.filter != FilterStep::Write {
            retain.push(object.id());
        } else if object.namespace() == Some(&serve.home) {
            guards.push(object);
        } else {
            elsewhere.push(object);
        }
    }
    let guarding: BTreeSet<ObjectRef> = elsewhere.iter().map(Object::id).collect();
    let mut others = Vec::new();
    for value in &serve.others {
        let object = Object::new(value.clone())?;
        if serve.is_optional(&object) {
            elsewhere.push(object);
        } else {
            others.push(object);
        }
    }
    let other_ids = others.iter().chain(&elsewhere).map(Object::id);
    let other_ids: BTreeSet<ObjectRef> = other_ids.filter(|id| !guarding.contains(id)).collect();
    let mut edge = vec![Object::new(serve.networking(&serve.gateway))?];
    let mut all_services = services;
    if serve.auth_wanted {
        all_services.push(serve.probe.clone());
    }
    for service in &all_services {
        edge.push(Object::new(serve.networking(service))?);
    }
    let next = Live {
        gateways: vec![serve.gateway.clone()],
        virtual_services: all_services,
        filters,
        policies,
        customs,
        others: other_ids,
        api: LiveApi::default(),
    };
    // What is open is left out of the policy once its rule stands.
    let widens = step.filter == FilterStep::Write
        && customs_for(serve, &next.virtual_services, &next) != next.customs;
    Ok(Pass {
        set: set(
            &serve.inventory,
            vec![
                Stage::new("deny", deny),
                Stage::new("authorize", guards),
                Stage::new(ELSEWHERE, elsewhere),
                Stage::new("others", others),
                Stage::new("routes", edge),
            ],
            retain,
        ),
        live: next,
        served: served(&serve.routes, &routes),
        state: step.state,
        more: step.more || widens,
    })
}

/// Routes from the time before authorization was wanted go at once and on their own: whatever
/// keeps the rest from being written, it does not keep them open.
///
/// # Errors
/// Never, but for an object without a name.
pub fn close(inventory: &Inventory, live: &Live) -> Result<Pass, Error> {
    let mut kept = live.clone();
    kept.virtual_services
        .retain(|service| !routes_unguarded(service));
    kept.api = gateway_api::close_routes(&live.api);
    let retain = kept.ids()?;
    Ok(Pass {
        set: set(inventory, Vec::new(), retain),
        live: kept,
        served: BTreeSet::new(),
        state: AuthState::Unproven,
        more: true,
    })
}

/// The gateway in use becomes another one: routes leave the old one, still guarded, before the
/// `Gateway` selects pods of the new one, which nothing guards yet.
fn leave_old_gateway(serve: &Serve, live: &Live) -> Result<Pass, Error> {
    let (mut guards, mut elsewhere) = (Vec::new(), Vec::new());
    for policy in &serve.policies {
        let object = Object::new(policy.to_object_as(serve.security))?;
        if object.namespace() == Some(&serve.home) {
            guards.push(object);
        } else {
            elsewhere.push(object);
        }
    }
    let mut retain: Vec<ObjectRef> = Vec::new();
    for filter in &live.filters {
        retain.push(Object::new(filter.to_object())?.id());
    }
    for policy in &live.policies {
        retain.push(Object::new(policy.to_object_as(serve.security))?.id());
    }
    for custom in &live.customs {
        retain.push(Object::new(custom.to_object_as(serve.security))?.id());
    }
    retain.extend(live.others.iter().cloned());
    let mut policies = live.policies.clone();
    policies.extend(serve.policies.iter().cloned());
    Ok(Pass {
        set: set(
            &serve.inventory,
            vec![Stage::new("deny", guards), Stage::new(ELSEWHERE, elsewhere)],
            retain,
        ),
        live: Live {
            gateways: Vec::new(),
            virtual_services: Vec::new(),
            filters: live.filters.clone(),
            policies,
            customs: live.customs.clone(),
            others: live.others.clone(),
            api: LiveApi::default(),
        },
        served: BTreeSet::new(),
        state: AuthState::Unproven,
        more: true,
    })
}

/// The policies by which an extension provider is asked while the gateway goes from the live rules to
/// those of `coming`.
fn customs_for(serve: &Serve, coming: &[VirtualService], live: &Live) -> Vec<AuthorizationPolicy> {
    let asked = serve.asked.as_ref();
    let unasked = || Unasked::new(&serve.edge, coming, &live.virtual_services);
    asked.map_or_else(Vec::new, |asked| asked.policies(&unasked()))
}

pub(crate) fn set(inventory: &Inventory, stages: Vec<Stage>, retain: Vec<ObjectRef>) -> ObjectsSet {
    // Nothing here has a rollout of its own: there are no gates to wait for.
    ObjectsSet {
        inventory: inventory.clone(),
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

/// Whether a provider that is asked now is not to be asked any more, by something else that needs
/// proof: Istio asks it before it looks at the DENY policy, so that could not be proven meanwhile.
/// All routes leave first, the probe's too, whose absence shows at the pods.
fn loses_its_provider(serve: &Serve, live: &Live, evidence: &Evidence) -> bool {
    let clear = serve.filters.is_some() && !serve.self_proving;
    let home =
        |custom: &AuthorizationPolicy| custom.metadata.namespace.as_ref() == Some(&serve.home);
    let loses = clear && serve.asked.is_none() && live.customs.iter().any(home);
    loses && !is_nothing_routed(live, evidence)
}

fn is_nothing_routed(live: &Live, evidence: &Evidence) -> bool {
    live.virtual_services.is_empty() && evidence.no_route()
}

fn ease(serve: &Serve, live: &Live, filter: LiveFilter, evidence: &Evidence) -> Ease {
    let behind_others = serve.others_guard && live.customs.is_empty() && leads_nowhere(live);
    if serve.self_proving {
        Ease::SelfProving
    } else if behind_others && live.filters.is_empty() && evidence.no_route() {
        Ease::Unseen
    } else if behind_others && filter != LiveFilter::Outdated && evidence.in_force() {
        Ease::OthersGuard
    } else if is_nothing_routed(live, evidence) {
        Ease::NothingRouted
    } else if serve.asked.is_some() && !live.customs.is_empty() {
        Ease::InPlace
    } else {
        Ease::None
    }
}

/// Whether no route of ours, of either kind, leads to a workload; the probe's answers by itself.
fn leads_nowhere(live: &Live) -> bool {
    let mut rules = live
        .virtual_services
        .iter()
        .flat_map(|service| &service.spec.http);
    rules.all(|rule| rule.route.is_empty()) && live.api.routes.is_empty()
}

/// What guards the gateway's namespace compared with what is desired.
fn live_filter(serve: &Serve, customs: &[AuthorizationPolicy], live: &Live) -> LiveFilter {
    let Some(filters) = &serve.filters else {
        return LiveFilter::Current;
    };
    let home = |metadata: &ObjectMeta| metadata.namespace.as_ref() == Some(&serve.home);
    let Some(desired) = filters.iter().find(|filter| home(&filter.metadata)) else {
        return LiveFilter::Absent;
    };
    let custom = customs.iter().find(|custom| home(&custom.metadata));
    let live_custom = live.customs.iter().find(|custom| home(&custom.metadata));
    let same_custom = custom.map(|custom| &custom.spec) == live_custom.map(|custom| &custom.spec);
    let named = |filter: &&EnvoyFilter| {
        home(&filter.metadata) && filter.metadata.name == desired.metadata.name
    };
    match live.filters.iter().find(named) {
        None if live_custom.is_none() => LiveFilter::Absent,
        Some(live) if live.spec == desired.spec && same_custom => LiveFilter::Current,
        // A policy that somebody deleted is written anew beside its filter, which asks nobody.
        Some(live) if live.spec == desired.spec && live_custom.is_none() => LiveFilter::Absent,
        _ => LiveFilter::Outdated,
    }
}

/// The relations all of whose `wanted` routes are in place.
pub fn served(wanted: &[Route], placed: &[Route]) -> BTreeSet<u32> {
    let key = |route: &Route| (route.relation, route.name.clone());
    let placed: BTreeSet<(u32, String)> = placed.iter().map(key).collect();
    let missing: BTreeSet<u32> = wanted
        .iter()
        .filter(|route| !placed.contains(&key(route)))
        .map(|route| route.relation)
        .collect();
    let all = wanted.iter().map(|route| route.relation);
    all.filter(|relation| !missing.contains(relation)).collect()
}

#[cfg(test)]
mod tests;
