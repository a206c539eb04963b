//! The gateway's certificate, granted or asked for.

#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use juju_sim::scenario::{Relation, State, databag};
use serde_json::{Value, json};

/// A certificate for tests, valid until 2036; nothing trusts it.
const CERTIFICATE: &str = include_str!("common/certificate.pem");

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

fn issued(state: &State, id: u32, csr: &str) -> State {
    let answer = json!([{"certificate_signing_request": csr, "certificate": CERTIFICATE,
        "ca": CERTIFICATE, "chain": [CERTIFICATE]}]);
    let mut state = state.clone();
    let relation = state
        .relations
        .iter_mut()
        .find(|relation| relation.id.0 == id)
        .expect("it");
    relation.remote_app_data = databag([("certificates", answer.to_string())]);
    state
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

    let after = config_changed(&api, &issued(&after, 2, &asked));
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
    let after = config_changed(&api, &issued(&after, 2, &csr(&after, 2)));
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
    let after = config_changed(&api, &issued(&after, 2, &csr(&after, 2)));
    assert_status(
        &after,
        "blocked",
        "gateway edge-lab/edge has no Service port for HTTPS: plain HTTP only",
    );
}
