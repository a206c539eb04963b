//! Whatever the gateway's pods answer, and in whatever order things change: no pass writes a route
//! that nothing guards, and none forgets what the other kind of gateway still has.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::CustomObject as _;
use istio_api::networking::{Gateway, GatewaySpec, VirtualService, VirtualServiceSpec};
use kube_apply::{Inventory, Object, ObjectRef, Owner};
use mesh::auth::{Answer, AuthState, Authorizer, Evidence, Gate, PodEvidence, deny_policy};
use mesh::auth::{envoy_filter, probe_virtual_service};
use mesh::discovery::{ApiGateway, GATEWAY_NAME, GatewayWorkload, Role};
use mesh::routes::{Backend, Edge, Route, RouteRequest, routes};
use proptest::prelude::*;

use super::*;
use crate::auth::Auth;
use crate::desired::Serve;
use crate::observe::{Live, Names};
use crate::pass::{Pass, pass};

const GUARD: &str = "00112233445566778899aabbccddeeff";

/// What is wished for in one hook.
#[derive(Clone, Debug)]
struct Wishes {
    relations: BTreeSet<u32>,
    open: BTreeSet<u32>,
    auth: bool,
    /// The authorizer's port; `None` if it is not known who decides.
    authorizer: Option<u16>,
    gateway: &'static str,
    own: bool,
    answers: Vec<(Answer, Answer)>,
    taken: bool,
}

fn labels(gateway: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(GATEWAY_NAME.to_owned(), gateway.to_owned())])
}

fn edge(auth: bool) -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["*".to_owned()],
        guard: auth.then(|| GUARD.to_owned()),
        http: 80,
        ..Edge::default()
    }
}

fn routes_of(wishes: &Wishes) -> Vec<Route> {
    let request = |relation: &u32| {
        let backend = Backend {
            service: "svc".to_owned(),
            namespace: "lab".to_owned(),
            port: 80,
        };
        let app = format!("app-{relation}");
        let mut request = RouteRequest::prefix(*relation, &app, &format!("/{app}"), None, backend);
        request.open = wishes.open.contains(relation);
        request
    };
    let requests: Vec<RouteRequest> = wishes.relations.iter().map(request).collect();
    routes(&requests).0
}

fn serve_of(wishes: &Wishes, live: &Live) -> Serve {
    let served = Served {
        gateway: Some("v1"),
        http: Some("v1"),
        grpc: Some("v1"),
        grant: Some("v1"),
    };
    let labels = labels(wishes.gateway);
    let choice = ApiChoice {
        gateway: ApiGateway {
            name: wishes.gateway.to_owned(),
            class: "istio".to_owned(),
            hostname: None,
            workload: GatewayWorkload {
                namespace: "lab".to_owned(),
                name: format!("{}-istio", wishes.gateway),
                kind: "Gateway".to_owned(),
                labels: labels.clone(),
                revision: None,
                role: Role::Ingress,
                ready: true,
                service: None,
                service_account: String::new(),
            },
        },
        own: wishes.own,
        revision: None,
        served,
    };
    let gate = wishes
        .authorizer
        .map(|port| Gate::asking(Authorizer::new("gate", "lab", port, &[], &[]).unwrap()));
    let auth = Auth {
        wanted: wishes.auth,
        gate,
        guard: wishes.auth.then(|| GUARD.to_owned()),
    };
    let edge = edge(wishes.auth);
    let names = Names::new("lab", "u", "meshy");
    let said = live.api.routes.http.iter().map(|route| {
        let name = route.metadata.name.clone().unwrap_or_default();
        let said = Acceptance {
            accepted: Some(wishes.taken),
            wrong: None,
        };
        (("HTTPRoute".to_owned(), name), said)
    });
    let api = serve(&choice, &edge, &auth, &names, &said.collect(), true);
    Serve {
        inventory: Inventory {
            owner: Owner {
                charm: "meshy".to_owned(),
                model_uuid: "u".to_owned(),
                app: "meshy".to_owned(),
            },
            name: "ingress".to_owned(),
        },
        gateway: Gateway::new("lab", "front", GatewaySpec::default()),
        routes: routes_of(wishes),
        auth_wanted: wishes.auth,
        home: "lab".to_owned(),
        filters: None,
        asked: None,
        self_proving: false,
        policies: Vec::new(),
        probe: probe_virtual_service(&edge, &[], "probe"),
        port: None,
        networking: "v1",
        security: "v1",
        others: Vec::new(),
        live: live.clone(),
        evidence: Evidence::default(),
        others_guard: false,
        labels,
        ready: true,
        asked_by: BTreeMap::new(),
        api: Some(api),
        edge,
    }
}

fn evidence(wishes: &Wishes) -> Evidence {
    let pods = wishes.answers.iter().map(|(probe, denied)| PodEvidence {
        probe: *probe,
        denied: *denied,
    });
    Evidence {
        pods: pods.collect(),
    }
}

/// What a gateway of Istio's own API had before, guarded.
fn classic() -> Live {
    let labels = BTreeMap::from([("istio".to_owned(), "edge".to_owned())]);
    let gate = Gate::asking(Authorizer::new("gate", "lab", 80, &[], &[]).unwrap());
    Live {
        gateways: vec![Gateway::new("lab", "front", GatewaySpec::default())],
        virtual_services: vec![VirtualService::new(
            "lab",
            "meshy-routes",
            VirtualServiceSpec::default(),
        )],
        filters: vec![envoy_filter("guard", "edge-lab", &labels, &gate, GUARD)],
        policies: vec![deny_policy("guard", "edge-lab", &labels)],
        ..Live::default()
    }
}

fn names(live: &Live) -> BTreeSet<String> {
    let http = live.api.routes.http.iter().map(|route| &route.metadata);
    let grpc = live.api.routes.grpc.iter().map(|route| &route.metadata);
    http.chain(grpc)
        .filter_map(|metadata| metadata.name.clone())
        .filter(|name| name != "meshy-auth-probe")
        .collect()
}

fn check(serve: &Serve, live: &Live, evidence: &Evidence, next: &Pass) {
    let stages = next.set.stages.iter().flat_map(|stage| &stage.objects);
    let ids = stages
        .map(Object::id)
        .chain(next.set.retain.iter().cloned());
    let ids: BTreeSet<ObjectRef> = ids.collect();
    let said: BTreeSet<ObjectRef> = next.live.ids().unwrap().into_iter().collect();
    assert_eq!(ids, said, "what is written or kept is what will be live");
    if !serve.auth_wanted {
        return;
    }
    assert!(!next.live.is_open());
    let (before, after) = (names(live), names(&next.live));
    let new = after.difference(&before).count();
    let proven = evidence.in_force() || evidence.denying();
    assert!(new == 0 || proven, "{new} new routes without proof");
    let denies = !next.live.api.policies.is_empty();
    let asks = !next.live.api.filters.is_empty();
    assert!(after.is_empty() || denies || (asks && evidence.in_force()));
    let removed = !live.api.filters.is_empty() && next.live.api.filters.is_empty();
    assert!(
        !removed || evidence.denying() || evidence.no_route(),
        "a filter goes without proof of denial"
    );
    if live.has_classic() && !next.live.has_classic() {
        assert!(matches!(next.state, AuthState::InForce | AuthState::Denied));
        assert_eq!(after, names(&serve.live), "the new kind was there before");
    }
}

fn wishes() -> impl Strategy<Value = Wishes> {
    let answer = || {
        prop_oneof![
            Just(Answer::Nobody),
            Just(Answer::NoRoute),
            Just(Answer::Open),
            Just(Answer::Denied),
            Just(Answer::Authorizer),
        ]
    };
    let few = || proptest::collection::btree_set(1..5u32, 0..4);
    (
        few(),
        few(),
        any::<bool>(),
        proptest::option::of(prop_oneof![Just(80u16), Just(81)]),
        prop_oneof![Just(("front", true)), Just(("shared", false))],
        proptest::collection::vec((answer(), answer()), 0..3),
        any::<bool>(),
    )
        .prop_map(
            |(relations, open, auth, authorizer, (gateway, own), answers, taken)| Wishes {
                relations,
                open,
                auth,
                authorizer,
                gateway,
                own,
                answers,
                taken,
            },
        )
}

proptest! {
    #[test]
    fn nothing_is_open_by_mistake(
        hooks in proptest::collection::vec(wishes(), 1..12),
        switched in any::<bool>(),
    ) {
        let mut live = if switched { classic() } else { Live::default() };
        for wishes in hooks {
            let serve = serve_of(&wishes, &live);
            let evidence = evidence(&wishes);
            let next = pass(&serve, &live, &evidence).unwrap();
            check(&serve, &live, &evidence, &next);
            live = next.live;
        }
    }
}

#[test]
fn the_way_to_authorization_in_force_is_a_pass_for_each_proof() {
    use Answer::{Authorizer, Denied, NoRoute, Open};
    let mut live = Live::default();
    let mut step = |probe: Answer, denied: Answer| {
        let wishes = Wishes {
            relations: BTreeSet::from([1, 2]),
            open: BTreeSet::from([2]),
            auth: true,
            authorizer: Some(80),
            gateway: "front",
            own: true,
            answers: vec![(probe, denied)],
            taken: true,
        };
        let serve = serve_of(&wishes, &live);
        let next = pass(&serve, &live, &evidence(&wishes)).unwrap();
        live = next.live.clone();
        let filters = live.api.filters.len();
        (
            next.state,
            filters,
            names(&live).len(),
            live.api.policies.len(),
        )
    };
    assert_eq!(step(NoRoute, NoRoute), (AuthState::Unproven, 0, 0, 1));
    assert_eq!(step(Open, Denied), (AuthState::Denied, 1, 2, 1));
    assert_eq!(step(Open, Denied), (AuthState::Denied, 1, 2, 1));
    assert_eq!(step(Authorizer, Denied), (AuthState::InForce, 1, 2, 0));
    assert_eq!(step(Authorizer, NoRoute), (AuthState::InForce, 1, 2, 0));
    // Another wish for an open route changes the filter where it is.
    let object = live.api.filters[0].to_object().to_string();
    assert!(object.contains("lab.istio-integrator-open-"));
}
