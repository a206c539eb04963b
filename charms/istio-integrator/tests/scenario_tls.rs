//! The gateway's certificate, granted or asked for.

#![allow(clippy::expect_used, clippy::unwrap_in_result, reason = "test support")]

mod common;

use common::*;
use std::time::{Duration, SystemTime};

use juju_charm::Event;
use juju_sim::scenario::{Relation, State, databag};
use k8s_openapi::ByteString;
use kube_apply::testing::FakeApi;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

/// From 1970 to the first of 2036, when the certificates of these tests end.
const END: Duration = Duration::from_hours(24_106 * 24);

fn certificates(id: u32) -> Relation {
    empty_relation("certificates", id, "authority")
}

fn csr(state: &State, id: u32) -> String {
    let requests: Value = serde_json::from_str(
        app_data(state, id, "certificate_signing_requests").expect("a request"),
    )
    .expect("JSON");
    requests[0]["certificate_signing_request"]
        .as_str()
        .expect("a request")
        .to_owned()
}

/// The authority answers the request with a certificate for the key that the charm keeps.
fn issued(api: &FakeApi, state: &State, id: u32) -> State {
    let kept = our(api, "Secret", "meshy-tls-request").expect("a key");
    let certificate = certificate(&text(&kept, "tls.key"), 2036);
    answered(state, id, &certificate)
}

fn answered(state: &State, id: u32, certificate: &str) -> State {
    let answer = json!([{"certificate_signing_request": csr(state, id), "certificate": certificate,
        "ca": certificate, "chain": [certificate]}]);
    let mut state = state.clone();
    let relation = state
        .relations
        .iter_mut()
        .find(|relation| relation.id.0 == id)
        .expect("it");
    relation.remote_app_data = databag([("certificates", answer.to_string())]);
    state
}

fn certificate(key: &str, until: i32) -> String {
    let mut params = CertificateParams::new(vec!["apps.example.org".to_owned()]).expect("names");
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = KeyPair::from_pem(key).expect("a key");
    params.self_signed(&key).expect("a certificate").pem()
}

fn text(secret: &Value, key: &str) -> String {
    let bytes: ByteString = serde_json::from_value(secret["data"][key].clone()).expect("bytes");
    String::from_utf8(bytes.0).expect("text")
}

/// The certificate that the gateway shows, if it has a server for HTTPS and sends everybody there.
fn shown(api: &FakeApi) -> Option<String> {
    let gateway = our(api, "Gateway", "istio-gateway").expect("it");
    let name = gateway["spec"]["servers"][1]["tls"]["credentialName"].as_str()?;
    let redirect = rules(api).last().expect("one")["redirect"].clone();
    assert_eq!(redirect, json!({"scheme": "https", "redirectCode": 301}));
    for rule in rules(api).iter().filter(|rule| rule.get("route").is_some()) {
        assert_eq!(rule["match"][0]["port"], 443);
    }
    Some(text(
        &our(api, "Secret", name).expect("beside its pods"),
        "tls.crt",
    ))
}

/// With a certificate in use.
fn with_https() -> (FakeApi, State) {
    let api = cluster();
    with_tls(&api);
    let after = config_changed(&api, &secure());
    let after = config_changed(&api, &issued(&api, &after, 2));
    assert_status(&after, "active", "1 route at https://apps.example.org");
    (api, after)
}

fn secure() -> State {
    leader()
        .config("external-hostname", "apps.example.org")
        .relation(traefik(1, "echo"))
        .relation(certificates(2))
}

#[test]
fn a_certificate_is_asked_for_with_one_key_and_used_once_issued() {
    let api = cluster();
    with_tls(&api);
    let after = config_changed(&api, &secure());
    assert_status(
        &after,
        "waiting",
        "the certificate is not issued yet: plain HTTP only",
    );
    let asked = csr(&after, 2);
    assert!(
        asked.starts_with("-----BEGIN CERTIFICATE REQUEST-----"),
        "{asked}"
    );
    assert!(
        !format!("{:?}", after.relations).contains("PRIVATE"),
        "no key in a databag"
    );

    let after = config_changed(&api, &issued(&api, &after, 2));
    assert_status(&after, "active", "1 route at https://apps.example.org");
    assert_eq!(csr(&after, 2), asked, "key and request are kept");
    let url = r#"{"url":"https://apps.example.org/lab-echo"}"#;
    assert_eq!(app_data(&after, 1, "ingress"), Some(url));
    let gateway = our(&api, "Gateway", "istio-gateway").expect("it");
    let tls = &gateway["spec"]["servers"][1];
    assert_eq!(tls["hosts"], json!(["apps.example.org"]));
    let credential = tls["tls"]["credentialName"].as_str().expect("a name");
    let secret = our(&api, "Secret", credential).expect("beside the gateway's pods");
    assert_eq!(secret["metadata"]["namespace"], "edge-lab");
    assert_eq!(secret["type"], "kubernetes.io/tls");
    let rules = our(&api, "VirtualService", "meshy-routes").expect("it")["spec"]["http"].clone();
    let redirect = rules.as_array().expect("rules").last().expect("one")["redirect"].clone();
    assert_eq!(redirect, json!({"scheme": "https", "redirectCode": 301}));

    api.forget_requests();
    hook(&api, Event::UpdateStatus, &after);
    assert_eq!(api.writes(), Vec::<String>::new());
}

#[test]
fn a_renewed_certificate_takes_over_only_once_it_is_issued() {
    let (api, mut state) = with_https();
    let (asked, first) = (csr(&state, 2), shown(&api).expect("one"));
    state.now = SystemTime::UNIX_EPOCH + END - Duration::from_hours(24);
    let after = hook(&api, Event::UpdateStatus, &state);
    assert_status(
        &after,
        "waiting",
        "the certificate is not issued yet; the last one stays",
    );
    assert_ne!(csr(&after, 2), asked);
    assert_eq!(shown(&api).as_ref(), Some(&first));
    // Authorities forget the request that is not asked any more.
    let mut gone = after.clone();
    let relation = gone.relations.iter_mut().find(|r| r.id.0 == 2).expect("it");
    relation.remote_app_data.clear();
    hook(&api, Event::UpdateStatus, &gone);
    assert_eq!(shown(&api).as_ref(), Some(&first));

    let kept = our(&api, "Secret", "meshy-tls-request").expect("a key");
    let renewed = certificate(&text(&kept, "tls.key"), 2037);
    let after = config_changed(&api, &answered(&gone, 2, &renewed));
    assert_status(&after, "active", "1 route at https://apps.example.org");
    assert_ne!(shown(&api).expect("one"), first);
}

#[test]
fn nothing_that_others_do_turns_https_off() {
    let check = |change: &dyn Fn(&FakeApi, &State) -> State, message: &str| {
        let (api, state) = with_https();
        let first = shown(&api);
        let after = config_changed(&api, &change(&api, &state));
        assert_status(&after, status(&after).0.as_str(), message);
        assert_eq!(shown(&api), first, "{message}");
    };
    let refused = |_: &FakeApi, state: &State| {
        let error =
            json!([{"csr": csr(state, 2), "error": {"code": 201, "name": "x", "message": "no"}}]);
        let mut state = state.clone();
        state.relations[1].remote_app_data = databag([("request_errors", error.to_string())]);
        state
    };
    check(
        &refused,
        "the certificate is refused: no; the last one stays",
    );
    check(
        &|_, state| answered(state, 2, "-----BEGIN NOTHING-----"),
        "the certificate or its key is no PEM; the last one stays",
    );
    let another = KeyPair::generate().expect("a key").serialize_pem();
    check(
        &|_, state| answered(state, 2, &certificate(&another, 2036)),
        "the certificate is not for its key; the last one stays",
    );
    let id = "secret:9m4e2mr0ui3e8a215n4g";
    check(
        &|_, state| state.clone().config("tls-secret-id", id),
        "secret of option tls-secret-id cannot be read; the last one stays",
    );
    check(
        &|_, state| {
            state
                .clone()
                .relation(hosts(3, "books", "books.example.org"))
        },
        "the certificate is not issued yet; the last one stays",
    );
}

/// Routes of a host.
fn hosts(id: u32, app: &str, host: &str) -> Relation {
    let config = json!({"model": "lab", "http_routes": [{
        "name": "a", "listener": {"port": 80, "protocol": "HTTP"}, "hostnames": [host],
        "backends": [{"service": app, "port": 80}]}]});
    routes("istio-ingress-route", id, app, &config)
}

#[test]
fn a_certificate_is_asked_for_the_hosts_of_accepted_routes_only() {
    let check = |relation: Relation, expect: &str| {
        let api = cluster();
        with_tls(&api);
        config_changed(&api, &secure().relation(relation));
        let kept = our(&api, "Secret", "meshy-tls-request").expect("it");
        assert_eq!(text(&kept, "hosts"), expect);
    };
    check(
        hosts(3, "books", "books.example.org"),
        "apps.example.org books.example.org",
    );
    check(hosts(3, "books", "-"), "apps.example.org");
    let mut refused = hosts(3, "books", "books.example.org");
    let config = json!({"model": "back-lab", "http_routes": [{
        "name": "a", "listener": {"port": 80, "protocol": "HTTP"},
        "hostnames": ["books.example.org"], "backends": []}]});
    refused.remote_app_data = databag([("config", config.to_string())]);
    check(refused, "apps.example.org");
}

#[test]
fn while_secrets_cannot_be_read_tls_stays_as_it_is() {
    let (api, state) = with_https();
    let first = shown(&api);
    api.forbid("list", "secrets");
    api.forget_requests();
    let after = config_changed(&api, &state);
    assert_eq!(status(&after).0, "blocked");
    assert_eq!(api.writes(), Vec::<String>::new());
    assert_eq!(shown(&api), first);
}

#[test]
fn another_host_is_another_request_for_the_same_key() {
    let api = cluster();
    with_tls(&api);
    let after = config_changed(&api, &secure());
    let first = csr(&after, 2);
    let key = our(&api, "Secret", "meshy-tls-request").expect("it")["data"]["tls.key"].clone();
    let after = config_changed(
        &api,
        &after.config("external-hostname", "books.example.org"),
    );
    assert_ne!(csr(&after, 2), first);
    let kept = our(&api, "Secret", "meshy-tls-request").expect("it")["data"]["tls.key"].clone();
    assert_eq!(kept, key);
}

#[test]
fn with_the_relation_gone_nothing_is_left_of_tls() {
    let api = cluster();
    with_tls(&api);
    let after = config_changed(&api, &secure());
    let after = config_changed(&api, &issued(&api, &after, 2));
    let mut after = after;
    after.relations.retain(|relation| relation.id.0 != 2);
    let after = config_changed(&api, &after);
    assert_status(&after, "active", "1 route at http://apps.example.org");
    assert_eq!(kinds(&api), ["Gateway", "VirtualService"]);
}

#[test]
fn what_keeps_a_certificate_from_being_used_is_told() {
    let check = |state: State, tls: bool, status: &str, message: &str| {
        let api = cluster();
        if tls {
            with_tls(&api);
        }
        let after = config_changed(&api, &state);
        assert_status(&after, status, message);
        assert_eq!(routed(&api).len(), 2, "plain HTTP goes on");
    };
    check(
        leader()
            .relation(traefik(1, "echo"))
            .relation(certificates(2)),
        true,
        "blocked",
        "a certificate needs a host name; run: juju config meshy external-hostname=…",
    );
    let api = cluster();
    let after = config_changed(&api, &secure());
    let mut refused = after.clone();
    let error = json!([{"csr": csr(&after, 2), "error": {"code": 201, "name": "x", "message": "not for you"}}]);
    refused
        .relations
        .iter_mut()
        .find(|r| r.id.0 == 2)
        .expect("it")
        .remote_app_data = databag([("request_errors", error.to_string())]);
    let refused = config_changed(&api, &refused);
    assert_status(
        &refused,
        "blocked",
        "the certificate is refused: not for you",
    );
    let after = config_changed(&api, &issued(&api, &after, 2));
    assert_status(
        &after,
        "blocked",
        "gateway edge-lab/edge has no Service port for HTTPS: plain HTTP only",
    );
}
