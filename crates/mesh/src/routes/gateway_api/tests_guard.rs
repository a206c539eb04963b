//! Authorization on Gateway API gateways.

use std::collections::BTreeMap;

use istio_api::CustomObject as _;
use serde_json::json;

use super::tests::{edge, own, request, served};
use super::*;
use crate::auth::{Authorizer, GUARD_HEADER, Gate, PROBE_BODY, envoy_filter, open_route_name};
use crate::routes::Tls;

const GUARD: &str = "00112233445566778899aabbccddeeff";

fn guarded() -> Edge {
    Edge {
        guard: Some(GUARD.to_owned()),
        ..edge()
    }
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([(
        "gateway.networking.k8s.io/gateway-name".to_owned(),
        "front".to_owned(),
    )])
}

fn filter() -> istio_api::networking::EnvoyFilter {
    let gate = Gate::asking(Authorizer::new("gate", "lab", 8080, &[], &[]).unwrap());
    envoy_filter("meshy-auth", "lab", &labels(), &gate, GUARD)
}

fn open(relation: u32, prefix: &str) -> crate::routes::RouteRequest {
    let mut request = request(relation, prefix, None);
    request.open = true;
    request
}

#[test]
fn guarded_rules_ask_for_the_guard_and_take_it_off() {
    let objects = objects(
        &guarded(),
        &own(),
        &served(&[request(1, "/app", None)]),
        true,
    );
    let rule = &objects.http[0].to_object()["spec"]["rules"][0];
    assert_eq!(
        rule["matches"][0]["headers"],
        json!([{"type": "Exact", "name": GUARD_HEADER, "value": GUARD}])
    );
    assert_eq!(
        rule["filters"],
        json!([{"type": "RequestHeaderModifier",
            "requestHeaderModifier": {"remove": [GUARD_HEADER]}}])
    );
}

#[test]
fn calls_are_guarded_like_other_requests() {
    let mut call = request(1, "/lab.Echo", None);
    call.client_protocol = true;
    let objects = objects(&guarded(), &own(), &served(&[call]), true);
    let rule = &objects.grpc[0].to_object()["spec"]["rules"][0];
    assert_eq!(rule["matches"][0]["headers"][0]["value"], GUARD);
    let live = LiveRoutes {
        grpc: objects.grpc,
        ..LiveRoutes::default()
    };
    assert_eq!(guard_of_routes(&live), Some(GUARD));
    assert!(routes_unguarded(&live).0.is_empty());
}

#[test]
fn open_rules_are_known_by_names_that_nobody_guesses() {
    let edge = guarded();
    let routes = served(&[open(1, "/open"), request(2, "/app", None)]);
    let objects = objects(&edge, &own(), &routes, true);
    let names = open_rules(&edge, &objects);
    let secret = open_route_name(GUARD);
    assert_eq!(
        names.iter().collect::<Vec<_>>(),
        [&format!("lab.{secret}-1.0")]
    );
    let filter = filter_with_names(filter(), &names).to_object();
    let patches = filter["spec"]["configPatches"].as_array().unwrap();
    let unasked: Vec<&str> = patches
        .iter()
        .filter_map(|patch| {
            patch
                .pointer("/match/routeConfiguration/vhost/route/name")?
                .as_str()
        })
        .collect();
    assert_eq!(unasked, [format!("lab.{secret}-1.0")]);
    // Open rules are reached through the filter, too.
    let rule = &objects.http[0].to_object()["spec"]["rules"][0];
    assert_eq!(rule["matches"][0]["headers"][0]["value"], GUARD);
}

#[test]
fn the_redirect_to_tls_is_open() {
    let edge = Edge {
        tls: Some(Tls {
            port: 443,
            credential: "front-tls".to_owned(),
            redirect: true,
        }),
        ..guarded()
    };
    let objects = objects(&edge, &own(), &[], true);
    assert_eq!(open_rules(&edge, &objects).len(), 1);
    // It leads to no workload.
    let live = LiveRoutes {
        http: objects.http,
        ..LiveRoutes::default()
    };
    assert!(routes_unguarded(&live).0.is_empty());
}

#[test]
fn without_open_rules_everybody_is_asked_and_with_too_many_the_rest_is() {
    let edge = guarded();
    let none = filter_with_names(filter(), &BTreeSet::new());
    assert_eq!(
        none.spec.config_patches.len() + 1,
        filter().spec.config_patches.len()
    );
    let many: Vec<_> = (0..600).map(|n| open(n, &format!("/p{n}"))).collect();
    let objects = objects(&edge, &own(), &served(&many), true);
    assert_eq!(open_rules(&edge, &objects).len(), MAX_OPEN_RULES);
}

#[test]
fn filters_that_differ_in_open_rules_only_may_take_each_others_place() {
    let names = |name: &str| BTreeSet::from([name.to_owned()]);
    let (a, b) = (
        filter_with_names(filter(), &names("lab.a.0")),
        filter_with_names(filter(), &names("lab.b.0")),
    );
    assert!(same_but_names(&a.spec, &b.spec));
    let gate = Gate::asking(Authorizer::new("other", "lab", 8080, &[], &[]).unwrap());
    let other = envoy_filter("meshy-auth", "lab", &labels(), &gate, GUARD);
    assert!(!same_but_names(&a.spec, &other.spec));
}

#[test]
fn the_charms_own_paths_are_answered_before_all_others_on_every_host() {
    let filter = probe_filter("meshy-auth-probe", "lab", &labels()).to_object();
    assert_eq!(
        filter["spec"]["workloadSelector"]["labels"],
        json!({"gateway.networking.k8s.io/gateway-name": "front"})
    );
    let patches = filter["spec"]["configPatches"].as_array().unwrap();
    for patch in patches {
        assert_eq!(patch["applyTo"], "HTTP_ROUTE");
        assert_eq!(patch["patch"]["operation"], "INSERT_FIRST");
        assert_eq!(
            patch["match"],
            json!({"context": "GATEWAY", "proxy": {"metadata": {"NAMESPACE": "lab"}}})
        );
    }
    assert_eq!(
        patches[1]["patch"]["value"],
        json!({"match": {"path": "/.well-known/istio-integrator/probe"},
            "direct_response": {"status": 200, "body": {"inline_string": PROBE_BODY}}})
    );
    let route = probe_route(&edge(), &own(), "meshy-auth-probe").to_object();
    assert_eq!(route["spec"].get("hostnames"), None);
    assert_eq!(route["spec"]["rules"][0].get("backendRefs"), None);
}

#[test]
fn a_live_route_without_the_guard_is_told_from_those_with_it() {
    let routes = served(&[request(1, "/app", None), request(2, "/books", None)]);
    let (plain, asking) = (
        objects(&edge(), &own(), &routes[..1], true).http,
        objects(&guarded(), &own(), &routes[1..], true).http,
    );
    let live = LiveRoutes {
        http: [plain.clone(), asking.clone()].concat(),
        grpc: Vec::new(),
    };
    let (open, kept) = routes_unguarded(&live);
    assert_eq!((open.http, kept.http), (plain.clone(), asking));
    assert!(shows_authorization(&live));
    let off = LiveRoutes {
        http: plain,
        ..LiveRoutes::default()
    };
    assert!(!shows_authorization(&off));
    let probe = LiveRoutes {
        http: vec![probe_route(&edge(), &own(), "probe")],
        ..LiveRoutes::default()
    };
    assert!(shows_authorization(&probe));
    assert_eq!(guard_of_routes(&probe), None);
}

#[test]
fn only_routes_whose_every_object_is_live_are_established() {
    let edge = guarded();
    let mut call = request(3, "/lab.Echo", None);
    call.client_protocol = true;
    let routes = served(&[request(1, "/app", None), open(2, "/open"), call]);
    let all = objects(&edge, &own(), &routes, true);
    let mut live = LiveRoutes {
        http: all.http,
        grpc: all.grpc,
    };
    let relations = |edge: &Edge, live: &LiveRoutes| {
        let standing = established(edge, &own(), &routes, true, live);
        standing
            .iter()
            .map(|route| route.relation)
            .collect::<Vec<_>>()
    };
    assert_eq!(relations(&edge, &live), [1, 2, 3]);
    // Those of another guard are other routes.
    let other = Edge {
        guard: Some("ff".repeat(16)),
        ..edge.clone()
    };
    assert!(relations(&other, &live).is_empty());
    live.http
        .retain(|route| route.metadata.name.as_deref() != Some("meshy-routes-1"));
    assert_eq!(relations(&edge, &live), [2, 3]);
}
