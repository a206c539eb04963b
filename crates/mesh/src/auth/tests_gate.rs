//! Gates other than a filter that asks.

use std::collections::BTreeMap;

use istio_api::CustomObject as _;
use serde_json::{Value, json};

use super::*;
use crate::routes::{Backend, Edge, PathRequest, Route, RouteRequest, routes, virtual_services};

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("istio".to_owned(), "edge".to_owned())])
}

fn route(relation: u32, prefix: &str, open: bool) -> RouteRequest {
    let backend = Backend {
        service: "svc".to_owned(),
        namespace: "lab".to_owned(),
        port: 80,
    };
    let mut request = RouteRequest::prefix(relation, "app", prefix, None, backend);
    request.open = open;
    request
}

fn served(requests: &[RouteRequest]) -> Vec<Route> {
    let (routes, problems) = routes(requests);
    assert!(problems.is_empty(), "{problems:?}");
    routes
}

fn edge() -> Edge {
    Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: vec!["*".to_owned()],
        guard: Some("00ffp".to_owned()),
        http: 80,
        ..Edge::default()
    }
}

/// What is asked while the gateway goes from the routes of `live` to others.
fn between(live: &[Route], coming: &[Route]) -> Value {
    let services = |routes: &[Route]| virtual_services(&edge(), routes);
    let unasked = Unasked::new(&edge(), &services(coming), &services(live));
    let policy = custom_policy("auth", "edge-lab", &labels(), "sso", &unasked).to_object();
    assert_eq!(policy["spec"]["action"], "CUSTOM");
    assert_eq!(policy["spec"]["provider"], json!({"name": "sso"}));
    policy["spec"]["rules"].clone()
}

/// What is asked while the gateway has these routes.
fn rules(routes: &[Route]) -> Value {
    between(routes, routes)
}

#[test]
fn without_open_routes_the_provider_is_asked_about_everything() {
    assert_eq!(rules(&served(&[route(1, "/app", false)])), json!([{}]));
}

#[test]
fn what_is_guarded_under_an_open_path_is_asked_about() {
    let mut method = route(1, "/status", true);
    method.name = "get".to_owned();
    method.matches[0].method = Some("GET".to_owned());
    let mut other_host = route(5, "/status/x", false);
    other_host.hosts = vec!["b.example.org".to_owned()];
    let routes = served(&[
        route(1, "/status", true),
        route(2, "/status/admin", false),
        route(3, "/app", false),
        method,
        other_host,
    ]);
    assert_eq!(
        rules(&routes),
        json!([
            {"to": [{"operation": {"notPaths": ["/status", "/status/*"]}}]},
            {"to": [{"operation": {"paths": [
                "/.well-known/istio-integrator/probe", "/.well-known/istio-integrator/denied",
                "/status", "/status/*", "/status/admin", "/status/admin/*",
                "/status/x", "/status/x/*",
            ]}}]},
        ]),
        "an open route that also has a condition cannot be told from one that has none"
    );
    let method = routes.iter().find(|route| route.name == "get").unwrap();
    assert!(!is_open_by_path(method));
}

fn on_host(mut request: RouteRequest, host: &str) -> RouteRequest {
    request.hosts = vec![host.to_owned()];
    request
}

#[test]
fn a_path_that_a_guarded_route_of_another_host_covers_is_asked_about() {
    let check = |open: RouteRequest, guarded: RouteRequest, asked: bool| {
        let routes = served(&[open, guarded]);
        let got = rules(&routes);
        assert_eq!(got == json!([{}]), asked, "{got}");
        let told = covered_elsewhere(&edge(), &routes);
        assert_eq!(told.len(), usize::from(asked));
    };
    let (a, b) = ("a.example.org", "b.example.org");
    let open = || route(1, "/x", true);
    check(on_host(open(), a), route(2, "/", false), true);
    check(open(), on_host(route(2, "/", false), b), true);
    check(on_host(open(), a), on_host(route(2, "/", false), b), true);
    check(
        on_host(route(1, "/x/y", true), a),
        on_host(route(2, "/x", false), b),
        true,
    );
    let mut pattern = on_host(route(2, "/", false), b);
    pattern.matches[0].path = PathRequest::Regex("/x.*".to_owned());
    check(on_host(route(1, "/xy", true), a), pattern, true);
    // On its own host the open rule is the more special one; other paths have nothing to do with it.
    check(open(), route(2, "/", false), false);
    check(on_host(open(), a), on_host(route(2, "/", false), a), false);
    check(on_host(open(), a), route(2, "/y", false), false);
}

#[test]
fn a_path_is_asked_about_until_its_open_rule_stands_and_as_soon_as_it_is_to_go() {
    let (before, after) = (
        served(&[route(1, "/app", false)]),
        served(&[route(1, "/app", false), route(2, "/app/x", true)]),
    );
    let open = json!([
        {"to": [{"operation": {"notPaths": ["/app/x", "/app/x/*"]}}]},
        {"to": [{"operation": {"paths": [
            "/.well-known/istio-integrator/probe", "/.well-known/istio-integrator/denied",
        ]}}]},
    ]);
    assert_eq!(between(&before, &after), json!([{}]));
    assert_eq!(between(&after, &after), open);
    assert_eq!(between(&after, &before), json!([{}]));
}

#[test]
fn an_expression_under_an_open_path_is_asked_about_by_its_beginning() {
    let mut pattern = route(2, "/", false);
    pattern.matches[0].path = PathRequest::Regex("/s/v[0-9]+".to_owned());
    let got = rules(&served(&[route(1, "/", true), pattern]));
    assert_eq!(got[0]["to"][0]["operation"]["notPaths"], json!(["/*"]));
    assert_eq!(got[1]["to"][0]["operation"]["paths"][2], "/s/v*");
}

#[test]
fn each_mechanism_has_a_guard_of_its_own_and_asks_at_most_once() {
    let authorizer = Authorizer::new("gate", "lab", 80, &[], &["x-user".to_owned()]).unwrap();
    let rule = TokenRule {
        issuer: "https://id.example.org".to_owned(),
        claims: vec![("X-Sub".to_owned(), "sub".to_owned())],
        ..TokenRule::default()
    };
    let rule = rule.checked().unwrap();
    let filter = Gate::asking(authorizer.clone());
    let provider = Gate {
        provider: Some("sso".to_owned()),
        ..filter.clone()
    };
    let tokens = Gate {
        tokens: vec![rule],
        ..Gate::default()
    };
    let mut guards = Vec::new();
    for (gate, mechanism, patches) in [
        (&filter, Mechanism::Filter, 3),
        (&provider, Mechanism::Provider, 1),
        (&tokens, Mechanism::Tokens, 1),
    ] {
        assert_eq!(gate.mechanism(), Some(mechanism));
        let guard = gate.guard("00ff");
        let filter = envoy_filter("auth", "edge-lab", &labels(), gate, &guard);
        assert_eq!(filter.spec.config_patches.len(), patches);
        assert_eq!(guard_of_filter(&filter), Some(guard.as_str()));
        assert_eq!(unmarked(&guard), "00ff");
        guards.push(guard);
    }
    guards.dedup();
    assert_eq!(guards.len(), 3);
    let stripped = envoy_filter("auth", "edge-lab", &labels(), &tokens, "x")
        .to_object()
        .to_string();
    assert!(
        stripped.contains(r#"{"remove":"x-sub"}"#) && stripped.contains(r#"{"remove":"x_sub"}"#)
    );
    assert_eq!(Gate::default().mechanism(), None);
}

#[test]
fn tokens_that_cannot_be_written_are_refused() {
    let check = |change: fn(&mut TokenRule), expect: &str| {
        let mut rule = TokenRule {
            issuer: "a".to_owned(),
            ..TokenRule::default()
        };
        change(&mut rule);
        assert_eq!(rule.checked().unwrap_err().to_string(), expect);
    };
    check(
        |r| r.issuer = String::new(),
        "the name of issuer \"\" cannot be used",
    );
    check(
        |r| r.jwks_uri = Some("file:///etc/passwd".into()),
        "the address of the keys of issuer \"a\" cannot be used",
    );
    check(
        |r| r.claims = vec![("host".into(), "sub".into())],
        "\"host\" cannot be used as a header name",
    );
    check(
        |r| r.from_headers = vec![("a b".into(), None)],
        "\"a b\" cannot be used as a header name",
    );
}

#[test]
fn keys_that_an_issuer_gives_inline_need_not_be_fetched() {
    let rule = TokenRule {
        issuer: "https://id.example.org".to_owned(),
        jwks: Some(r#"{"keys":[]}"#.to_owned()),
        ..TokenRule::default()
    };
    let rules = [rule.checked().unwrap()];
    let object = request_authentication("tokens", "edge-lab", &labels(), &rules).to_object();
    let written = &object["spec"]["jwtRules"][0];
    assert_eq!(written["jwks"], r#"{"keys":[]}"#);
    assert!(written.get("jwksUri").is_none());
}
