//! Gates other than a filter that asks.

use std::collections::BTreeMap;

use istio_api::CustomObject as _;
use serde_json::{Value, json};

use super::*;
use crate::routes::{Backend, PathRequest, Route, RouteRequest, routes};

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

fn rules(routes: &[Route]) -> Value {
    let policy = custom_policy("auth", "edge-lab", &labels(), "sso", routes).to_object();
    assert_eq!(policy["spec"]["action"], "CUSTOM");
    assert_eq!(policy["spec"]["provider"], json!({"name": "sso"}));
    policy["spec"]["rules"].clone()
}

#[test]
fn without_open_routes_the_provider_is_asked_about_everything() {
    assert_eq!(rules(&served(&[route(1, "/app", false)])), json!([{}]));
}

#[test]
fn what_is_guarded_under_an_open_path_is_asked_about() {
    let mut method = route(4, "/status", true);
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
    assert!(!is_open_by_path(&routes[3]));
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
