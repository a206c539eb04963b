//! Authorization on gateways of the Gateway API fails closed, hook by hook.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::gateway_api::*;
use common::*;
use juju_charm::Event;
use juju_sim::scenario::State;
use kube_apply::testing::FakeApi;
use mesh::auth::{DENIED_PATH, GUARD_HEADER, PROBE_PATH};
use serde_json::{Value, json};

fn related() -> State {
    leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"))
}

/// The cluster and the state after authorization was related and proven.
fn guarded() -> (FakeApi, State) {
    let api = only_a_class();
    made(&api);
    api.seed(gate_service());
    answers_at(&api, PROBE_PATH, 404, "", Some(1));
    answers_at(&api, PROBE_PATH, 200, mesh::auth::PROBE_BODY, Some(1));
    answers_at(&api, PROBE_PATH, 302, "", None);
    denies(&api);
    let after = config_changed(&api, &related());
    (api, after)
}

fn denies(api: &FakeApi) {
    answers_at(api, DENIED_PATH, 403, "RBAC: access denied", None);
}

fn position(writes: &[String], method: &str, plural: &str) -> usize {
    let mut all = writes.iter();
    all.position(|write| write.starts_with(method) && write.contains(plural))
        .unwrap_or(usize::MAX)
}

fn filter(api: &FakeApi) -> Value {
    let is = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["kind"] == "EnvoyFilter" && name.ends_with("-api")
    };
    our_objects(api).into_iter().find(is).expect("a filter")
}

#[test]
fn routes_come_after_the_policy_and_the_policy_goes_after_proof() {
    let (api, after) = guarded();
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.9, authorization in force",
    );
    let writes = api.writes();
    let policy = position(&writes, "PATCH", "authorizationpolicies");
    let probe = position(&writes, "PATCH", "httproutes/meshy-auth-probe");
    let asks = writes
        .iter()
        .position(|write| {
            write.starts_with("PATCH") && write.contains("envoyfilters") && write.ends_with("-api")
        })
        .expect("a filter");
    let routes = position(&writes, "PATCH", "httproutes/meshy-routes-1");
    let lifted = position(&writes, "DELETE", "authorizationpolicies");
    assert!(lifted < writes.len(), "{writes:#?}");
    assert!(policy < probe && probe < asks, "{writes:#?}");
    assert!(
        asks < lifted && policy < routes && routes <= lifted,
        "{writes:#?}"
    );
    // All of it is about the pods of this gateway.
    let labels = json!({"gateway.networking.k8s.io/gateway-name": "istio-gateway"});
    assert_eq!(filter(&api)["spec"]["workloadSelector"]["labels"], labels);
    assert_eq!(filter(&api)["metadata"]["namespace"], "lab");
    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[test]
fn routes_ask_for_the_guard_that_the_filter_sets() {
    let (api, _) = guarded();
    let route = api_object(&api, "HTTPRoute", "meshy-routes-1").expect("a route");
    let header = &route["spec"]["rules"][0]["matches"][0]["headers"][0];
    assert_eq!(header["name"], GUARD_HEADER);
    let value = header["value"].as_str().expect("a value");
    assert_eq!(value.len(), 32);
    assert!(filter(&api).to_string().contains(value));
}

#[test]
fn while_nothing_is_proven_new_routes_wait_and_the_policy_stands() {
    let api = only_a_class();
    made(&api);
    api.seed(gate_service());
    let after = config_changed(&api, &related());
    assert_status(
        &after,
        "waiting",
        "neither authorization nor its DENY policy is proven in force: new routes wait",
    );
    assert_eq!(api_object(&api, "HTTPRoute", "meshy-routes-1"), None);
    assert!(our_kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    assert_eq!(app_data(&after, 1, "ingress"), None);
    assert_eq!(listed(&api, &after)[0]["auth"], "unproven");
}

#[test]
fn a_gateway_that_has_no_pod_yet_gets_the_policy_and_no_routes() {
    let api = only_a_class();
    api.seed(gate_service());
    config_changed(&api, &related());
    assert_eq!(api_object(&api, "HTTPRoute", "meshy-routes-1"), None);
    assert!(our_kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
}

#[test]
fn behind_the_proven_policy_routes_stand_and_nothing_passes() {
    let api = only_a_class();
    made(&api);
    denies(&api);
    let after = config_changed(&api, &related());
    assert_status(
        &after,
        "waiting",
        "all is denied: ingress-auth of gatekeeper: Service lab/gate does not exist",
    );
    assert!(api_object(&api, "HTTPRoute", "meshy-routes-1").is_some());
    assert_eq!(listed(&api, &after)[0]["auth"], "denied");
}

#[test]
fn routes_from_before_authorization_go_at_once() {
    let api = only_a_class();
    made(&api);
    let open = config_changed(&api, &leader().relation(traefik(1, "echo")));
    assert!(api_object(&api, "HTTPRoute", "meshy-routes-1").is_some());
    api.seed(gate_service());
    api.forget_requests();
    let state = open.relation(gate(2, "gatekeeper"));
    config_changed(&api, &state);
    let writes = api.writes();
    assert_eq!(
        position(&writes, "DELETE", "httproutes/meshy-routes-1"),
        0,
        "{writes:#?}"
    );
    assert_eq!(api_object(&api, "HTTPRoute", "meshy-routes-1"), None);
}

#[test]
fn with_the_authorizer_gone_everything_is_denied_until_told_otherwise() {
    let (api, mut after) = guarded();
    after.relations.retain(|relation| relation.id.0 != 2);
    let after = config_changed(&api, &after);
    assert_status(
        &after,
        "blocked",
        "authorization is wanted but none is related: all is denied; run: juju config meshy auth=none",
    );
    assert!(our_kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    let off = after.config("auth", "none");
    config_changed(&api, &off);
    assert_eq!(our_kinds(&api), ["Gateway", "HTTPRoute"]);
}

#[test]
fn only_open_routes_are_not_asked_about_and_a_new_one_denies_nobody_meanwhile() {
    let (api, after) = guarded();
    let unasked = |api: &FakeApi| {
        let patches = filter(api)["spec"]["configPatches"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let names = patches.iter().filter_map(|patch| {
            let name = patch.pointer("/match/routeConfiguration/vhost/route/name")?;
            Some(name.as_str().expect("a name").to_owned())
        });
        names.collect::<Vec<_>>()
    };
    assert!(unasked(&api).is_empty());
    api.seed(service("lab", "status", 8080));
    let mut status = traefik(3, "status");
    status.endpoint = "ingress-unauthenticated".parse().expect("an endpoint");
    api.forget_requests();
    let after = config_changed(&api, &after.relation(status));
    assert_status(
        &after,
        "active",
        "2 routes at http://192.0.2.9, authorization in force",
    );
    let names = unasked(&api);
    assert_eq!(names.len(), 1, "{names:?}");
    let name = names[0]
        .strip_prefix("lab.")
        .and_then(|name| name.strip_suffix(".0"));
    let route = api_object(&api, "HTTPRoute", name.expect("Istio's name")).expect("the open route");
    assert_eq!(
        route["spec"]["rules"][0]["matches"][0]["path"]["value"],
        "/lab-status"
    );
    let writes = api.writes();
    assert_eq!(
        position(&writes, "PATCH", "authorizationpolicies"),
        usize::MAX,
        "{writes:#?}"
    );
}

#[test]
fn tokens_let_nobody_pass() {
    let api = only_a_class();
    made(&api);
    denies(&api);
    let rules = relations::RequestAuth {
        rules: vec![relations::request_auth::JwtRule {
            issuer: "https://issuer.example.org".to_owned(),
            ..relations::request_auth::JwtRule::default()
        }],
    };
    let holder = juju_sim::scenario::Relation::new("istio-request-auth", 2, "issuer")
        .remote_app_data(rules.encode());
    let state = leader().relation(traefik(1, "echo")).relation(holder);
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "blocked",
        "no token passes: routes of the Gateway API cannot tell those of istio-request-auth",
    );
    assert!(our_kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    assert!(!our_kinds(&api).contains(&"RequestAuthentication".to_owned()));
}

#[test]
fn a_switch_keeps_the_old_gateway_guarded_until_the_new_one_is_proven() {
    let api = cluster();
    class(&api);
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 1);
    authorizing(&api);
    denying(&api);
    let state = config_changed(&api, &related());
    assert_status(
        &state,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    let classic = || {
        let is = |object: &Value| {
            object["kind"] == "EnvoyFilter" && object["metadata"]["namespace"] == "edge-lab"
        };
        our_objects(&api).iter().any(is)
    };
    let switched = state.config("route-api", "gateway-api");
    let after = config_changed(&api, &switched);
    made(&api);
    // The new gateway's pod answers, but not yet as proof.
    let after = hook(&api, Event::UpdateStatus, &after);
    assert!(classic() && our(&api, "VirtualService", "meshy-routes").is_some());
    assert_eq!(api_object(&api, "HTTPRoute", "meshy-routes-1"), None);
    answers_at(&api, PROBE_PATH, 200, mesh::auth::PROBE_BODY, Some(1));
    answers_at(&api, PROBE_PATH, 302, "", None);
    denies(&api);
    let after = hook(&api, Event::UpdateStatus, &after);
    assert!(api_object(&api, "HTTPRoute", "meshy-routes-1").is_some());
    assert!(classic() && our(&api, "VirtualService", "meshy-routes").is_some());
    for name in ["meshy-routes-1", "meshy-auth-probe"] {
        say(&api, "HTTPRoute", name, "Accepted", "True");
    }
    let after = hook(&api, Event::UpdateStatus, &after);
    assert!(!classic());
    assert_eq!(our(&api, "VirtualService", "meshy-routes"), None);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.9, authorization in force",
    );
}
