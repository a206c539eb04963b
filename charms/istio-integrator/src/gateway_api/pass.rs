//! One pass of applying for a gateway of the Gateway API; see [`crate::pass`], whose invariant is
//! this one's, too.
//!
//! Where the API that routes are written in changes, the objects of the other one stay, guarded by what
//! guards them, until those of the new one are live, taken by the gateway, and behind proven
//! authorization if that is wanted.

use std::collections::BTreeSet;

use istio_api::CustomObject as _;
use istio_api::networking::EnvoyFilter;
use kube_apply::{Error, Object, ObjectRef, Stage};
use mesh::auth::{AuthState, Ease, Evidence, FilterStep, LiveFilter, Scope, Situation, step};
use mesh::routes::gateway_api::{LiveRoutes, established, routes_unguarded, same_but_names};

use super::live::LiveApi;
use super::serve::ServeApi;
use crate::desired::Serve;
use crate::observe::Live;
use crate::pass::{ELSEWHERE, Pass, close, served, set};

/// The pass to make now.
///
/// # Errors
/// Never, but for an object without a name.
pub(crate) fn pass(
    serve: &Serve,
    api: &ServeApi,
    live: &Live,
    evidence: &Evidence,
) -> Result<Pass, Error> {
    let (edge, ours) = (&serve.edge, &live.api);
    if serve.auth_wanted && live.is_open() {
        return close(&serve.inventory, live);
    }
    if serve.auth_wanted && moved(api, ours) {
        return leave(serve, api, live);
    }
    let all = api.objects(edge, &serve.routes);
    let wanted_filter = api.filter_for(edge, &all);
    let step = step(&Situation {
        wanted: serve.auth_wanted,
        filter_ready: wanted_filter.is_some(),
        live: live_filter(wanted_filter.as_ref(), ours),
        evidence: evidence.clone(),
        ease: ease(wanted_filter.as_ref(), ours, evidence),
    });
    let routes = match step.routes {
        Scope::All => serve.routes.clone(),
        Scope::Established => {
            let grpc = api.served.grpc.is_some();
            established(edge, &api.parent, &serve.routes, grpc, &ours.routes)
        }
    };
    let objects = api.objects(edge, &routes);
    let filters = match step.filter {
        FilterStep::Write => wanted_filter.into_iter().collect(),
        FilterStep::Keep => ours.filters.clone(),
        FilterStep::Remove => Vec::new(),
    };
    let policies = if step.deny {
        vec![api.policy.clone()]
    } else {
        Vec::new()
    };
    let mut deny = Vec::new();
    for policy in &policies {
        deny.push(Object::new(policy.to_object_as(serve.security))?);
    }
    let (mut guards, mut retain) = (Vec::new(), Vec::new());
    for filter in &filters {
        let object = Object::new(filter.to_object())?;
        if step.filter == FilterStep::Write {
            guards.push(object);
        } else {
            retain.push(object.id());
        }
    }
    let (mut others, mut elsewhere) = (Vec::new(), Vec::new());
    let grants = api.grants(&objects);
    for value in serve.others.iter().chain(&grants) {
        let object = Object::new(value.clone())?;
        if serve.is_optional(&object) {
            elsewhere.push(object);
        } else {
            others.push(object);
        }
    }
    let granted: BTreeSet<ObjectRef> = elsewhere
        .iter()
        .chain(&others)
        .map(Object::id)
        .filter(|id| id.kind == "ReferenceGrant")
        .collect();
    let other_ids = others.iter().chain(&elsewhere).map(Object::id);
    let other_ids = other_ids.filter(|id| !granted.contains(id)).collect();
    let mut routing = Vec::new();
    for value in api.values(serve.auth_wanted) {
        routing.push(Object::new(value)?);
    }
    // One that is refused costs no other.
    for value in api.route_values(&objects) {
        elsewhere.push(Object::new(value)?);
    }
    let mut http = objects.http.clone();
    let mut probes = Vec::new();
    if serve.auth_wanted {
        http.push(api.probe.1.clone());
        probes.push(api.probe.0.clone());
    }
    let mut next = Live {
        others: other_ids,
        api: LiveApi {
            gateways: api.gateway.iter().cloned().collect(),
            routes: LiveRoutes {
                http,
                grpc: objects.grpc.clone(),
            },
            grants: granted,
            filters,
            probes,
            policies,
        },
        ..Live::default()
    };
    let there = api.is_there(&all, &serve.live.api) && is_proven(serve, step.state);
    let classic = Live {
        api: LiveApi::default(),
        ..live.clone()
    };
    if classic.has_classic() && !there {
        retain.extend(classic.ids()?);
        next = Live {
            api: next.api,
            others: next.others.union(&live.others).cloned().collect(),
            ..classic
        };
    }
    Ok(Pass {
        set: set(
            &serve.inventory,
            vec![
                Stage::new("deny", deny),
                Stage::new("authorize", guards),
                Stage::new(ELSEWHERE, elsewhere),
                Stage::new("others", others),
                Stage::new("routes", routing),
            ],
            retain,
        ),
        live: next,
        served: served(&serve.routes, &routes),
        state: step.state,
        more: step.more,
    })
}

fn is_proven(serve: &Serve, state: AuthState) -> bool {
    !serve.auth_wanted || matches!(state, AuthState::InForce | AuthState::Denied)
}

/// What else is kept of a pass for a gateway of Istio's own API: everything for one of the Gateway
/// API, until what is written now was live before this hook.
///
/// # Errors
/// Never, but for an object without a name.
pub(crate) fn keep(serve: &Serve, live: &Live, there: bool, pass: &mut Pass) -> Result<(), Error> {
    if live.api.is_empty() || (there && is_proven(serve, pass.state)) {
        return Ok(());
    }
    pass.set.retain.extend(live.api.ids()?);
    pass.set.retain.extend(live.others.iter().cloned());
    pass.live.api = live.api.clone();
    let others = pass.live.others.union(&live.others).cloned().collect();
    pass.live.others = others;
    Ok(())
}

/// Takes out the routes that lead to workloads without authorization.
pub(crate) fn close_routes(live: &LiveApi) -> LiveApi {
    LiveApi {
        routes: routes_unguarded(&live.routes).1,
        ..live.clone()
    }
}

/// The gateway in use becomes another one: routes leave the old one, still guarded, before they come
/// to the new one, which nothing guards yet.
fn leave(serve: &Serve, api: &ServeApi, live: &Live) -> Result<Pass, Error> {
    let policy = Object::new(api.policy.to_object_as(serve.security))?;
    let kept = Live {
        api: LiveApi {
            gateways: Vec::new(),
            routes: LiveRoutes::default(),
            ..live.api.clone()
        },
        ..live.clone()
    };
    let retain = kept.ids()?;
    let mut next = kept;
    let others = next.api.policies.iter().filter(|old| {
        (&old.metadata.namespace, &old.metadata.name)
            != (&api.policy.metadata.namespace, &api.policy.metadata.name)
    });
    next.api.policies = others.cloned().chain([api.policy.clone()]).collect();
    Ok(Pass {
        set: set(
            &serve.inventory,
            vec![Stage::new("deny", vec![policy])],
            retain,
        ),
        live: next,
        served: BTreeSet::new(),
        state: AuthState::Unproven,
        more: true,
    })
}

fn moved(api: &ServeApi, live: &LiveApi) -> bool {
    let parent = (
        Some(api.parent.namespace.as_str()),
        api.parent.name.as_str(),
    );
    let gateway = live.gateways.iter().any(|gateway| {
        let metadata = &gateway.metadata;
        (
            metadata.namespace.as_deref(),
            metadata.name.as_deref().unwrap_or_default(),
        ) != parent
    });
    let http = live
        .routes
        .http
        .iter()
        .flat_map(|route| &route.spec.parent_refs);
    let grpc = live
        .routes
        .grpc
        .iter()
        .flat_map(|route| &route.spec.parent_refs);
    let mut all = http.chain(grpc);
    gateway || all.any(|of| (of.namespace.as_deref(), of.name.as_str()) != parent)
}

fn ease(wanted: Option<&EnvoyFilter>, live: &LiveApi, evidence: &Evidence) -> Ease {
    let in_place = |wanted: &EnvoyFilter| {
        let mut filters = live.filters.iter();
        filters.any(|live| same_place(live, wanted) && same_but_names(&live.spec, &wanted.spec))
    };
    if live.routes.is_empty() && evidence.no_route() {
        Ease::NothingRouted
    } else if wanted.is_some_and(in_place) {
        // Those it does not ask about are known by names that only open rules have.
        Ease::InPlace
    } else {
        Ease::None
    }
}

fn live_filter(wanted: Option<&EnvoyFilter>, live: &LiveApi) -> LiveFilter {
    let Some(wanted) = wanted else {
        return LiveFilter::Current;
    };
    match live.filters.iter().find(|live| same_place(live, wanted)) {
        None => LiveFilter::Absent,
        Some(live) if live.spec == wanted.spec => LiveFilter::Current,
        Some(_) => LiveFilter::Outdated,
    }
}

fn same_place(a: &EnvoyFilter, b: &EnvoyFilter) -> bool {
    (&a.metadata.namespace, &a.metadata.name) == (&b.metadata.namespace, &b.metadata.name)
}
