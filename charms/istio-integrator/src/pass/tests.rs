//! Any sequence of hooks, changes and late pushes: nothing is ever open.

use std::collections::BTreeMap;

use istio_api::networking::{EnvoyFilter, HttpRoute, VirtualService};
use istio_api::security::AuthorizationPolicy;
use kube_apply::{Inventory, Owner};
use mesh::auth::{
    Answer, Authorizer, Gate, PodEvidence, deny_policy, envoy_filter, guard_of_filter,
    guard_of_routes, probe_virtual_service,
};
use mesh::routes::{Backend, Edge, RouteRequest, gateway, routes};
use proptest::prelude::*;

use super::*;
use crate::desired::Asked;

const NAMESPACE: &str = "edge-lab";
/// Another namespace with pods that the gateway selects, sorted before it.
const TWIN: &str = "back-lab";

/// The model side of a run.
#[derive(Clone, Debug, Default)]
struct Wishes {
    authorizer: Option<u16>,
    /// Whether an extension provider asks it.
    provider: bool,
    relations: BTreeSet<u32>,
    /// Whether there are pods in [`TWIN`].
    twin: bool,
    /// Whether others' filter is live; the proxy has it as soon and as long.
    others: bool,
}

impl Wishes {
    fn namespaces(&self) -> Vec<&'static str> {
        let twin = self.twin.then_some(TWIN);
        twin.into_iter().chain([NAMESPACE]).collect()
    }
}

/// What the gate of these wishes makes of the guard's value.
fn guard(provider: bool) -> &'static str {
    if provider { "tokenp" } else { "token" }
}

fn edge(auth_wanted: bool, provider: bool) -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["*".to_owned()],
        guard: auth_wanted.then(|| guard(provider).to_owned()),
        http: 80,
        ..Edge::default()
    }
}

fn serve(wishes: &Wishes, auth_wanted: bool) -> Serve {
    let labels = BTreeMap::from([("istio".to_owned(), "edge".to_owned())]);
    let provider = wishes.provider && wishes.authorizer.is_some();
    let filter = |port: u16| {
        let headers = ["x-user".to_owned()];
        let authorizer = Authorizer::new("gate", "lab", port, &[], &headers).unwrap();
        let gate = Gate {
            provider: provider.then(|| "sso".to_owned()),
            ..Gate::asking(authorizer)
        };
        let filter = |ns: &str| envoy_filter("guard", ns, &labels, &gate, guard(provider));
        wishes.namespaces().into_iter().map(filter).collect()
    };
    let request = |relation: &u32| {
        let backend = Backend {
            service: "svc".to_owned(),
            namespace: "lab".to_owned(),
            port: 80,
        };
        let app = format!("app-{relation}");
        RouteRequest::prefix(*relation, &app, &format!("/{app}"), None, backend)
    };
    let requests: Vec<RouteRequest> = wishes.relations.iter().map(request).collect();
    let owner = Owner {
        charm: "meshy".to_owned(),
        model_uuid: "u".to_owned(),
        app: "meshy".to_owned(),
    };
    Serve {
        inventory: Inventory {
            owner,
            name: "ingress".to_owned(),
        },
        gateway: gateway(&edge(auth_wanted, provider), &labels, &[]),
        routes: routes(&requests).0,
        auth_wanted,
        home: NAMESPACE.to_owned(),
        filters: wishes.authorizer.map(filter),
        asked: provider.then(|| Asked {
            provider: "sso".to_owned(),
            name: "ask".to_owned(),
            namespaces: wishes.namespaces().into_iter().map(str::to_owned).collect(),
            labels: labels.clone(),
        }),
        self_proving: false,
        policies: wishes
            .namespaces()
            .into_iter()
            .map(|ns| deny_policy("guard", ns, &labels))
            .collect(),
        probe: probe_virtual_service(&edge(auth_wanted, provider), &[], "meshy-auth-probe"),
        port: None,
        networking: "v1",
        security: "v1",
        others: Vec::new(),
        asked_by: BTreeMap::new(),
        live: Live::default(),
        evidence: Evidence::default(),
        others_guard: wishes.others,
        edge: edge(auth_wanted, provider),
        labels,
        ready: true,
        api: None,
    }
}

/// What the gateway's proxy runs on: each kind of object reaches it on its own and late.
#[derive(Clone, Debug, Default)]
struct Proxy {
    virtual_services: Vec<VirtualService>,
    filters: Vec<EnvoyFilter>,
    policies: Vec<AuthorizationPolicy>,
    customs: Vec<AuthorizationPolicy>,
    /// Whether authorization of others stands in front of everything.
    others: bool,
}

impl Proxy {
    fn asks(&self) -> bool {
        self.others || self.asks_ours()
    }

    fn asks_ours(&self) -> bool {
        let home = |namespace: &Option<String>| namespace.as_deref() == Some(NAMESPACE);
        let own = |filter: &EnvoyFilter| {
            home(&filter.metadata.namespace) && filter.spec.config_patches.len() > 1
        };
        let custom = |policy: &AuthorizationPolicy| home(&policy.metadata.namespace);
        self.filters.iter().any(own) || self.customs.iter().any(custom)
    }

    /// Whether a rule is found by who knows all that routes ever asked for. A filter sets its own.
    fn finds(&self, service: &VirtualService) -> bool {
        let home = |filter: &&EnvoyFilter| filter.metadata.namespace.as_deref() == Some(NAMESPACE);
        match self.filters.iter().find(home).and_then(guard_of_filter) {
            Some(set) => guard_of_routes(service) == Some(set),
            None => true,
        }
    }

    fn denies(&self) -> bool {
        let home =
            |policy: &AuthorizationPolicy| policy.metadata.namespace.as_deref() == Some(NAMESPACE);
        self.policies.iter().any(home)
    }

    fn probe(&self) -> Answer {
        let routed = self.virtual_services.iter().any(|vs| {
            vs.spec
                .http
                .iter()
                .any(|rule| rule.direct_response.is_some())
        });
        match (routed, self.asks()) {
            (false, _) => Answer::NoRoute,
            (true, false) => Answer::Open,
            (true, true) => Answer::Authorizer,
        }
    }

    fn evidence(&self) -> Evidence {
        // Istio asks a provider before it looks at DENY policies, where there is a route.
        let denied = if self.denies() {
            Answer::Denied
        } else {
            Answer::NoRoute
        };
        Evidence {
            pods: vec![PodEvidence {
                probe: self.probe(),
                denied,
            }],
        }
    }

    /// Whether a route written since authorization was wanted would be open to who knows the guard's
    /// value: the filter and the policy have to do without it.
    fn open(&self) -> bool {
        let routed = self.virtual_services.iter().any(|vs| {
            let leads = |rule: &HttpRoute| !rule.route.is_empty();
            !routes_unguarded(vs) && self.finds(vs) && vs.spec.http.iter().any(leads)
        });
        routed && !self.asks() && !self.denies()
    }
}

/// A pass, whose objects and what it says will be live must be the same.
fn checked(serve: &Serve, live: &Live, evidence: &Evidence) -> Pass {
    let next = pass(serve, live, evidence).unwrap();
    let wanted = next
        .set
        .stages
        .iter()
        .flat_map(|stage| &stage.objects)
        .map(Object::id);
    let wanted: BTreeSet<ObjectRef> = wanted.chain(next.set.retain.iter().cloned()).collect();
    let Live {
        gateways,
        virtual_services,
        filters,
        policies,
        customs,
        others,
        api,
    } = &next.live;
    let object = |value| Object::new(value).unwrap().id();
    let mut said: BTreeSet<ObjectRef> = gateways.iter().map(|g| object(g.to_object())).collect();
    said.extend(virtual_services.iter().map(|v| object(v.to_object())));
    said.extend(filters.iter().map(|f| object(f.to_object())));
    said.extend(policies.iter().map(|p| object(p.to_object())));
    said.extend(customs.iter().map(|c| object(c.to_object())));
    said.extend(others.iter().cloned());
    said.extend(api.ids().unwrap());
    assert_eq!(wanted, said);
    if serve.auth_wanted {
        assert_eq!(next.live.unguarded().count(), 0);
        let seen = !evidence.in_force() && !evidence.no_route();
        if seen || !serve.others_guard || !leads_nowhere(&next.live) {
            assert_all_guarded(serve, &next.live);
        }
    }
    next
}

/// While there are routes, each namespace with pods has its filter or its policy.
fn assert_all_guarded(serve: &Serve, live: &Live) {
    if live.gateways.is_empty() || live.virtual_services.is_empty() {
        return;
    }
    let mut guarded: BTreeSet<&Option<String>> = BTreeSet::new();
    guarded.extend(live.filters.iter().map(|f| &f.metadata.namespace));
    guarded.extend(live.policies.iter().map(|p| &p.metadata.namespace));
    guarded.extend(live.customs.iter().map(|c| &c.metadata.namespace));
    for policy in &serve.policies {
        let namespace = &policy.metadata.namespace;
        assert!(guarded.contains(namespace), "{namespace:?}");
    }
}

#[derive(Clone, Debug)]
enum Event {
    Authorizer(Option<u16>),
    /// The mesh config gets, or loses, an extension provider that asks it.
    Provider(bool),
    Relate(u32),
    Break(u32),
    /// Pods come to another namespace, or go.
    Twin(bool),
    /// Others guard the gateway, or leave it, which they do once our filter is in the proxy.
    Others(bool),
    /// One pass of a hook; the hook may end (or be killed) after any of them.
    Pass,
    /// A pass that sees no pod.
    BlindPass,
    PushRoutes,
    PushFilters,
    PushPolicies,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        1 => prop_oneof![Just(None), Just(Some(80)), Just(Some(81))].prop_map(Event::Authorizer),
        1 => any::<bool>().prop_map(Event::Provider),
        1 => (0u32..3).prop_map(Event::Relate),
        1 => (0u32..3).prop_map(Event::Break),
        1 => any::<bool>().prop_map(Event::Twin),
        1 => any::<bool>().prop_map(Event::Others),
        4 => Just(Event::Pass),
        1 => Just(Event::BlindPass),
        2 => Just(Event::PushRoutes),
        2 => Just(Event::PushFilters),
        2 => Just(Event::PushPolicies),
    ]
}

/// What is live and pushed after relation 1 was served without authorization.
fn open_before() -> (Wishes, Live, Proxy) {
    let wishes = Wishes {
        relations: BTreeSet::from([1]),
        ..Wishes::default()
    };
    let serve = serve(&wishes, false);
    let live = checked(&serve, &Live::default(), &Evidence::default()).live;
    let proxy = Proxy {
        virtual_services: live.virtual_services.clone(),
        ..Proxy::default()
    };
    (wishes, live, proxy)
}

/// What is live and pushed once relation 1 is served behind proven authorization.
fn in_force() -> (Wishes, Live, Proxy) {
    let wishes = Wishes {
        authorizer: Some(80),
        relations: BTreeSet::from([1]),
        ..Wishes::default()
    };
    let (mut live, mut proxy) = (Live::default(), Proxy::default());
    settle(&wishes, &mut live, &mut proxy);
    (wishes, live, proxy)
}

fn run(before: (Wishes, Live, Proxy), events: &[Event]) -> (Live, Proxy) {
    let (mut wishes, mut live, mut proxy) = before;
    for event in events {
        match event {
            Event::Authorizer(port) => wishes.authorizer = *port,
            Event::Relate(id) => drop(wishes.relations.insert(*id)),
            Event::Break(id) => drop(wishes.relations.remove(id)),
            Event::Twin(there) => wishes.twin = *there,
            Event::Pass => {
                live = checked(&serve(&wishes, true), &live, &proxy.evidence()).live;
            }
            Event::BlindPass => {
                live = checked(&serve(&wishes, true), &live, &Evidence::default()).live;
            }
            Event::PushRoutes => proxy.virtual_services.clone_from(&live.virtual_services),
            Event::PushFilters => proxy.filters.clone_from(&live.filters),
            Event::PushPolicies => {
                proxy.policies.clone_from(&live.policies);
                proxy.customs.clone_from(&live.customs);
            }
            Event::Provider(asks) => wishes.provider = *asks,
            Event::Others(guard) => {
                proxy.others = *guard || (proxy.others && !proxy.asks_ours());
                wishes.others = proxy.others;
            }
        }
        assert!(!proxy.open(), "open after {event:?}");
    }
    (live, proxy)
}

/// Passes and pushes until nothing moves.
fn settle(wishes: &Wishes, live: &mut Live, proxy: &mut Proxy) -> Pass {
    let mut last = None;
    for _ in 0..10 {
        let next = checked(&serve(wishes, true), live, &proxy.evidence());
        live.clone_from(&next.live);
        proxy.virtual_services.clone_from(&live.virtual_services);
        proxy.filters.clone_from(&live.filters);
        proxy.policies.clone_from(&live.policies);
        proxy.customs.clone_from(&live.customs);
        assert!(!proxy.open());
        last = Some(next);
    }
    last.unwrap()
}

proptest! {
    #[test]
    fn no_order_of_events_opens_a_route(events in proptest::collection::vec(event(), 0..40)) {
        run((Wishes::default(), Live::default(), Proxy::default()), &events);
        run(open_before(), &events);
        run(in_force(), &events);
    }

    #[test]
    fn the_end_depends_on_the_last_wishes_only(events in proptest::collection::vec(event(), 0..20)) {
        let (mut live, mut proxy) = run(open_before(), &events);
        proxy.others = false;
        let relations = BTreeSet::from([1, 2]);
        let wishes = Wishes { authorizer: Some(80), relations, twin: true, ..Wishes::default() };
        let end = settle(&wishes, &mut live, &mut proxy);
        prop_assert_eq!(end.state, AuthState::InForce);
        prop_assert_eq!(end.served, BTreeSet::from([1, 2]));
        prop_assert!(live.policies.is_empty() && live.filters.len() == 2);
        prop_assert!(live.customs.is_empty());

        // A provider takes over, and gives back.
        for provider in [true, false] {
            let wishes = Wishes { provider, ..wishes.clone() };
            let end = settle(&wishes, &mut live, &mut proxy);
            prop_assert_eq!((end.state, end.served.len()), (AuthState::InForce, 2));
            prop_assert_eq!(live.customs.len(), if provider { 2 } else { 0 });
        }

        // Without an authorizer everything is denied, and the routes stand behind the policy.
        let wishes = Wishes { authorizer: None, ..wishes };
        let end = settle(&wishes, &mut live, &mut proxy);
        prop_assert!(live.policies.len() == 2 && end.served.len() == 2);
    }
}

#[test]
fn a_route_waits_for_proof_and_the_filter_for_the_probe() {
    let wishes = Wishes {
        authorizer: Some(80),
        relations: BTreeSet::from([1]),
        ..Wishes::default()
    };
    let (mut live, mut proxy) = (Live::default(), Proxy::default());
    let mut told = Vec::new();
    for _ in 0..4 {
        let next = checked(&serve(&wishes, true), &live, &proxy.evidence());
        live = next.live;
        proxy = Proxy {
            virtual_services: live.virtual_services.clone(),
            filters: live.filters.clone(),
            policies: live.policies.clone(),
            customs: live.customs.clone(),
            others: false,
        };
        told.push((
            next.state,
            next.served.len(),
            live.filters.len(),
            live.policies.len(),
        ));
    }
    assert_eq!(
        told,
        [
            (AuthState::Unproven, 0, 0, 1),
            (AuthState::Denied, 1, 1, 1),
            (AuthState::InForce, 1, 1, 0),
            (AuthState::InForce, 1, 1, 0),
        ]
    );
}

#[test]
fn where_others_guard_the_gateway_nothing_of_theirs_is_denied_until_our_filter_stands() {
    let mut wishes = Wishes {
        authorizer: Some(80),
        others: true,
        ..Wishes::default()
    };
    let mut live = Live::default();
    let mut proxy = Proxy {
        others: true,
        ..Proxy::default()
    };
    for _ in 0..3 {
        live = checked(&serve(&wishes, true), &live, &proxy.evidence()).live;
        assert_eq!(live.policies, []);
        proxy.virtual_services.clone_from(&live.virtual_services);
        proxy.filters.clone_from(&live.filters);
    }
    assert!(proxy.asks_ours());

    wishes.relations.insert(1);
    let routed = settle(&wishes, &mut live, &mut proxy);
    (proxy.others, wishes.others) = (false, false);
    let alone = settle(&wishes, &mut live, &mut proxy);
    for end in [routed, alone] {
        assert_eq!(end.state, AuthState::InForce);
        assert_eq!((end.served.len(), end.live.policies.len()), (1, 0));
    }
}

#[test]
fn pods_that_come_to_another_namespace_get_their_filter_and_cost_nobody_theirs() {
    let (mut wishes, live, proxy) = in_force();
    wishes.twin = true;
    let next = checked(&serve(&wishes, true), &live, &proxy.evidence());
    assert_eq!(
        (next.state, next.live.filters.len()),
        (AuthState::InForce, 2)
    );

    // The gateway's own is deleted: the other's stays until the new one is written.
    let mut live = next.live;
    live.filters
        .retain(|filter| filter.metadata.namespace.as_deref() == Some(TWIN));
    let next = checked(&serve(&wishes, true), &live, &Evidence::default());
    assert_eq!(next.live.filters, live.filters);
    assert_eq!(next.live.policies.len(), 2);
}

#[test]
fn open_routes_go_before_anything_else_is_written() {
    let (wishes, live, proxy) = open_before();
    let next = checked(&serve(&wishes, true), &live, &proxy.evidence());
    assert!(next.set.stages.is_empty() && next.more);
    assert_eq!(next.live.gateways, live.gateways);
    assert!(next.live.virtual_services.is_empty());
}

#[test]
fn routes_leave_the_old_gateway_before_the_new_one_is_selected() {
    let wishes = Wishes {
        authorizer: Some(80),
        relations: BTreeSet::from([1]),
        ..Wishes::default()
    };
    let (mut live, mut proxy) = (Live::default(), Proxy::default());
    settle(&wishes, &mut live, &mut proxy);
    let mut moved = serve(&wishes, true);
    moved.gateway.spec.selector = BTreeMap::from([("istio".to_owned(), "other".to_owned())]);
    let next = checked(&moved, &live, &Evidence::default());
    assert!(next.live.gateways.is_empty() && next.live.virtual_services.is_empty());
    assert!(next.more && !next.live.policies.is_empty());
    let kinds: Vec<String> = next
        .set
        .stages
        .iter()
        .flat_map(|stage| &stage.objects)
        .map(|o| o.id().kind)
        .collect();
    assert_eq!(kinds, ["AuthorizationPolicy"]);
    assert_eq!(
        next.set.retain.len(),
        1,
        "the old filter stays until nothing is routed"
    );
}

#[test]
fn an_open_path_under_a_guarded_one_is_asked_about_until_its_route_stands() {
    let (wishes, live, proxy) = in_force();
    let wishes = Wishes {
        provider: true,
        ..wishes
    };
    let (mut live, mut proxy) = (live, proxy);
    settle(&wishes, &mut live, &mut proxy);
    let mut serve = serve(&wishes, true);
    let mut open = serve.routes[0].clone();
    open.relation = 9;
    open.open = true;
    open.matches[0].path = mesh::routes::Path::Prefix("/app-1/x".parse().unwrap());
    serve.routes.push(open);
    let exempts = |next: &Pass| {
        let rules = &next.live.customs[0].spec.rules;
        rules
            .iter()
            .any(|rule| rule.to.iter().any(|to| !to.operation.not_paths.is_empty()))
    };
    let first = checked(&serve, &live, &proxy.evidence());
    assert_eq!((first.state, first.served.len()), (AuthState::InForce, 2));
    assert!(!exempts(&first) && first.more);
    let second = checked(&serve, &first.live, &proxy.evidence());
    assert!(exempts(&second) && !second.more);
    // The policy is written before the routes: it closes first what is not to be open any more.
    serve.routes.pop();
    let third = checked(&serve, &second.live, &proxy.evidence());
    assert!(!exempts(&third));
}

#[test]
fn without_authorization_all_routes_are_written_at_once() {
    let wishes = Wishes {
        authorizer: None,
        relations: BTreeSet::from([1, 2]),
        ..Wishes::default()
    };
    let next = pass(
        &serve(&wishes, false),
        &Live::default(),
        &Evidence::default(),
    )
    .unwrap();
    assert_eq!(
        (next.state, next.served.len(), next.more),
        (AuthState::Off, 2, false)
    );
    assert!(next.live.filters.is_empty() && next.live.policies.is_empty());
}
