//! Authorizers by forward-auth, by the mesh config's extension providers, and tokens.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use juju_sim::scenario::{Relation, State, databag};
use kube_apply::testing::FakeApi;
use mesh::auth::{ISSUER_CLAIM, PROBE_PATH};
use serde_json::{Value, json};

fn forward(id: u32, address: &str) -> Relation {
    let bag = databag([
        ("decisions_address", address),
        ("app_names", "[]"),
        ("headers", r#"["X-User"]"#),
    ]);
    Relation::new("forward-auth", id, "sso").remote_app_data(bag)
}

fn tokens(id: u32, rules: &Value) -> Relation {
    Relation::new("istio-request-auth", id, "idp")
        .remote_app_data(databag([("jwt_rules", rules.to_string())]))
}

fn good_rules() -> Value {
    json!([{"issuer": "https://id.example.org", "jwks_uri": "https://id.example.org/keys",
        "claim_to_headers": [{"header": "x-sub", "claim": "sub"}]}])
}

fn proving() -> FakeApi {
    let api = cluster();
    api.seed(service("back-lab", "sso", 4180));
    api.seed(gate_service());
    answers(&api, PROBE_PATH, 404, "", Some(1));
    open(&api, 1);
    authorizing(&api);
    denying(&api);
    api
}

#[test]
fn forward_auth_of_another_namespace_is_asked() {
    let api = proving();
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(forward(2, "http://sso.back-lab.svc.cluster.local:4180/"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    assert_eq!(
        app_data(&after, 2, "ingress_app_names"),
        Some(r#"["echo"]"#)
    );
    let filter = api
        .objects()
        .into_iter()
        .find(|o| o["kind"] == "EnvoyFilter")
        .expect("it")
        .to_string();
    assert!(
        filter.contains("outbound|4180||sso.back-lab.svc.cluster.local"),
        "{filter}"
    );
    assert!(filter.contains(r#"{"remove":"x-user"}"#));
}

#[test]
fn an_address_that_cannot_be_asked_means_denied() {
    let check = |address: &str, status: &str, why: &str| {
        let api = cluster();
        denying(&api);
        let state = leader()
            .relation(traefik(1, "echo"))
            .relation(forward(2, address));
        let after = config_changed(&api, &state);
        assert_status(
            &after,
            status,
            &format!("all is denied: forward-auth of sso: {why}"),
        );
        assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
    };
    check(
        "https://sso.lab.svc/",
        "blocked",
        "decisions address must be plain HTTP",
    );
    check(
        "http://sso.lab.svc:80/verify",
        "blocked",
        "decisions address must have no path",
    );
    check(
        "http://sso.example.org:80/",
        "blocked",
        "decisions address must be a Service's, as in http://gate.lab.svc:8080",
    );
    check(
        "http://sso.lab.svc:80/",
        "waiting",
        "Service lab/sso does not exist",
    );
    check("", "waiting", "no data yet");
}

/// A mesh config with a provider that asks the authorizer at this port.
fn provider(port: u16, further: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": "istio-lab"},
        "data": {"mesh": format!("extensionProviders:\n- name: told\n  envoyExtAuthzHttp: \
            {{service: gate.lab.svc.cluster.local, port: {port}, {further}}}\n")},
    })
}

/// A route and an authorizer, for which the control plane's charm named a provider.
fn named_provider() -> State {
    let config = Relation::new("istio-ingress-config", 3, "istio")
        .remote_app_data(databag([("ext_authz_provider_name", "told")]));
    leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"))
        .relation(config)
}

fn custom(api: &FakeApi) -> Option<Value> {
    let mut objects = api.objects().into_iter();
    objects.find(|object| object["spec"]["action"] == "CUSTOM")
}

#[test]
fn an_extension_provider_that_lets_more_pass_than_a_filter_is_not_used() {
    let check = |further: &str, why: &str| {
        let api = proving();
        api.seed(provider(8080, further));
        let after = config_changed(&api, &named_provider());
        let message = format!("extension provider told is not used: {why}");
        assert_status(&after, "blocked", &message);
        assert_eq!(custom(&api), None);
        let filter = api
            .objects()
            .into_iter()
            .find(|o| o["kind"] == "EnvoyFilter");
        assert!(filter.expect("it").to_string().contains("ext_authz"));
        assert_eq!(routed(&api).len(), 2);
    };
    check(
        "failOpen: true",
        "it lets everything pass while the authorizer is away",
    );
    check(
        "headersToUpstreamOnAllow: [x-user, x-groups]",
        "it hands on header x-groups, which is not the authorizer's",
    );
    check(
        "headersToUpstreamOnAllow: ['x-*']",
        "it hands on header x-*, which is not the authorizer's",
    );
}

#[test]
fn an_extension_provider_is_not_used_where_tokens_pass() {
    let api = proving();
    api.seed(provider(8080, ""));
    let state = named_provider().relation(tokens(4, &good_rules()));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    assert_eq!(custom(&api), None);
    let told = action(&api, "discover", &json!({}), &after);
    assert!(told["extension-provider"].contains("no: tokens pass beside the authorizer"));
}

#[test]
fn an_extension_provider_that_asks_just_this_authorizer_is_used() {
    let api = proving();
    api.seed(provider(9, ""));
    let state = named_provider();
    let after = config_changed(&api, &state);
    assert_eq!(
        app_data(&after, 3, "ext_authz_service_name"),
        Some("gate.lab.svc.cluster.local")
    );
    assert_eq!(app_data(&after, 3, "ext_authz_port"), Some("8080"));
    assert_eq!(custom(&api), None, "another port is another authorizer");

    let api = proving();
    api.seed(provider(8080, "headersToUpstreamOnAllow: [X-User]"));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    let policy = custom(&api).expect("a policy");
    assert_eq!(policy["spec"]["provider"], json!({"name": "told"}));
    assert_eq!(policy["metadata"]["namespace"], "edge-lab");
    let filter = api
        .objects()
        .into_iter()
        .find(|o| o["kind"] == "EnvoyFilter")
        .expect("it");
    assert!(
        !filter.to_string().contains("ext_authz"),
        "nobody is asked twice"
    );
    assert!(guard(&api).ends_with('p'));
    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[test]
fn token_holders_pass_beside_the_authorizer() {
    let api = proving();
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(gate(2, "gatekeeper"))
        .relation(tokens(3, &good_rules()));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    let verify = api
        .objects()
        .into_iter()
        .find(|o| o["kind"] == "RequestAuthentication")
        .expect("it");
    assert_eq!(verify["metadata"]["namespace"], "edge-lab");
    assert_eq!(
        verify["spec"]["jwtRules"][0]["issuer"],
        "https://id.example.org"
    );
    let issuers: Vec<Value> = rules(&api)
        .iter()
        .map(|rule| rule["match"][0]["headers"][ISSUER_CLAIM]["exact"].clone())
        .collect();
    assert_eq!(issuers.iter().filter(|issuer| issuer.is_null()).count(), 2);
    assert_eq!(
        issuers
            .iter()
            .filter(|issuer| *issuer == "https://id.example.org")
            .count(),
        2
    );
}

#[test]
fn tokens_alone_let_nobody_else_pass_and_need_no_proof() {
    let api = cluster();
    let state = leader()
        .relation(traefik(1, "echo"))
        .relation(tokens(3, &good_rules()));
    let after = config_changed(&api, &state);
    assert_status(
        &after,
        "active",
        "1 route at http://192.0.2.7, authorization in force",
    );
    for rule in rules(&api) {
        let holder = rule["match"][0]["headers"][ISSUER_CLAIM].is_object();
        assert_eq!(rule.get("route").is_some(), holder, "{rule}");
        assert_eq!(rule["directResponse"]["status"] == 401, !holder);
    }
    let told = action(&api, "list-routes", &json!({"format": "json"}), &after);
    let rows: Value = serde_json::from_str(&told["routes"]).expect("JSON");
    assert_eq!(rows[0]["auth"], "in force");
    for path in ["/lab-echo", "/lab-echo/check-auth"] {
        answers(&api, path, 401, "", None);
    }
    action(&api, "check-auth", &json!({}), &after);
}

#[test]
fn tokens_that_say_nothing_or_nonsense_let_nobody_pass() {
    let check = |relation: Relation, status: &str, why: &str| {
        let api = cluster();
        denying(&api);
        let after = config_changed(
            &api,
            &leader().relation(traefik(1, "echo")).relation(relation),
        );
        assert_status(
            &after,
            status,
            &format!("no token passes: istio-request-auth of idp: {why}"),
        );
        assert!(kinds(&api).contains(&"AuthorizationPolicy".to_owned()));
        assert!(!kinds(&api).contains(&"RequestAuthentication".to_owned()));
    };
    check(
        empty_relation("istio-request-auth", 3, "idp"),
        "waiting",
        "no data yet",
    );
    check(tokens(3, &json!([])), "blocked", "it accepts no issuer");
    check(
        tokens(3, &json!([{}])),
        "blocked",
        "databag key jwt_rules: missing field `issuer`",
    );
    check(
        tokens(
            3,
            &json!([{"issuer": "a", "jwks_uri": "file:///etc/passwd"}]),
        ),
        "blocked",
        "the address of the keys of issuer \"a\" cannot be used",
    );
}
