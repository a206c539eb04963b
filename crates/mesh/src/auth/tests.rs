//! The objects as Istio is given them, and what answers prove.

use std::collections::BTreeMap;

use istio_api::CustomObject as _;
use serde_json::{Value, json};

use super::*;
use crate::routes::Edge;

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("istio".to_owned(), "edge".to_owned())])
}

fn filter(request: &[&str], identity: &[&str]) -> Value {
    let authorizer =
        Authorizer::new("gatekeeper", "lab", 8080, &texts(request), &texts(identity)).unwrap();
    envoy_filter(
        "auth",
        "edge-lab",
        &labels(),
        &Gate::asking(authorizer),
        "token",
    )
    .to_object()
}

#[test]
fn the_filter_asks_on_every_listener_of_exactly_the_gateways_pods_and_fails_closed() {
    let object = filter(&["Cookie", "X-Token"], &["x-user"]);
    assert_eq!(object["apiVersion"], "networking.istio.io/v1alpha3");
    assert_eq!(
        object["metadata"],
        json!({"name": "auth", "namespace": "edge-lab"})
    );
    assert_eq!(
        object["spec"]["workloadSelector"],
        json!({"labels": {"istio": "edge"}})
    );
    let patches = object["spec"]["configPatches"].as_array().unwrap();
    for patch in patches {
        assert_eq!(patch["match"]["context"], "GATEWAY");
        assert_eq!(
            patch["match"]["proxy"],
            json!({"metadata": {"NAMESPACE": "edge-lab"}})
        );
        assert!(patch["match"]["listener"].get("portNumber").is_none());
    }
    let ask = &patches[1];
    assert_eq!(ask["applyTo"], "HTTP_FILTER");
    assert_eq!(ask["patch"]["operation"], "INSERT_BEFORE");
    assert_eq!(
        ask["match"]["listener"]["filterChain"]["filter"]["subFilter"]["name"],
        "envoy.filters.http.router"
    );
    let exact = |name: &str| json!({"exact": name, "ignore_case": true});
    assert_eq!(
        ask["patch"]["value"]["typed_config"],
        json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
            "transport_api_version": "V3",
            "failure_mode_allow": false,
            "status_on_error": {"code": "Forbidden"},
            "http_service": {
                "server_uri": {
                    "uri": "http://gatekeeper.lab.svc.cluster.local:8080",
                    "cluster": "outbound|8080||gatekeeper.lab.svc.cluster.local",
                    "timeout": "10s",
                },
                "authorization_request":
                    {"allowed_headers": {"patterns": [exact("cookie"), exact("x-token")]}},
                "authorization_response": {
                    "allowed_upstream_headers": {"patterns": [exact("x-user")]},
                    "allowed_client_headers_on_success": {"patterns": [exact("set-cookie")]},
                },
            },
        })
    );
}

#[test]
fn identity_headers_are_stripped_in_every_spelling_a_workload_may_read() {
    let stripped = |identity: &[&str]| -> Vec<String> {
        let object = filter(&[], identity);
        let mutations = object.pointer(
            "/spec/configPatches/0/patch/value/typed_config/early_header_mutation_extensions/0\
             /typed_config/mutations",
        );
        mutations
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|mutation| Some(mutation["remove"].as_str()?.to_owned()))
            .collect()
    };
    assert_eq!(stripped(&["X-User"]), ["x-user", "x_user"]);
    assert_eq!(stripped(&["x-a-b"]), ["x-a-b", "x-a_b", "x_a-b", "x_a_b"]);
    assert_eq!(stripped(&["user"]), ["user"]);
    assert_eq!(stripped(&["x_user"]), ["x-user", "x_user"]);
    let long = "a-b-c-d-e-f-g-h";
    assert_eq!(stripped(&[long]), [long.to_owned(), long.replace('-', "_")]);
    assert!(stripped(&[]).is_empty());
}

#[test]
fn the_guards_header_is_set_whatever_the_client_sent() {
    for identity in [&["x-user"][..], &[]] {
        let object = filter(&[], identity);
        let mutations = object.pointer(
            "/spec/configPatches/0/patch/value/typed_config/early_header_mutation_extensions/0\
             /typed_config/mutations",
        );
        let last = mutations.and_then(Value::as_array).unwrap().last().unwrap();
        assert_eq!(
            *last,
            json!({"append": {
                "header": {"key": GUARD_HEADER, "value": "token"},
                "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
            }})
        );
    }
    // An authorizer cannot take the header for its own.
    assert!(Authorizer::new("gate", "lab", 80, &[], &texts(&[GUARD_HEADER])).is_err());
}

#[test]
fn an_authorizer_that_cannot_be_written_is_refused() {
    let check = |service: &str, header: &str, expect: &str| {
        let headers = texts(&[header]);
        let got = Authorizer::new(service, "lab", 80, &headers, &[]);
        assert_eq!(got.unwrap_err().to_string(), expect);
    };
    check(
        "Gate",
        "cookie",
        "service \"Gate\" has 'G', only a-z, 0-9 and - are allowed",
    );
    check("gate", "", "\"\" cannot be used as a header name");
    check("gate", ":path", "\":path\" cannot be used as a header name");
    check("gate", "Host", "\"Host\" cannot be used as a header name");
    check("gate", "a b", "\"a b\" cannot be used as a header name");
}

#[test]
fn a_header_that_the_gateway_needs_itself_tells_no_identity() {
    let accepted = |name: &str, identity: bool| {
        let names = texts(&[name]);
        let (request, identity) = if identity {
            (&[][..], &names[..])
        } else {
            (&names[..], &[][..])
        };
        Authorizer::new("gate", "lab", 80, request, identity).is_ok()
    };
    for name in [
        "Content-Length",
        "content_length",
        "transfer-encoding",
        "Connection",
        "te",
        "upgrade",
        "host",
        ":authority",
        GUARD_HEADER,
    ] {
        assert!(!accepted(name, true) && !accepted(name, false), "{name}");
    }
    for name in [
        "X-Envoy-Original-Path",
        "x-forwarded-for",
        "X_Forwarded_Proto",
    ] {
        assert!(!accepted(name, true), "{name}");
        assert!(accepted(name, false), "an authorizer may look at {name}");
    }
    assert!(accepted("kubeflow-userid", true) && accepted("authorization", true));
}

#[test]
fn a_header_that_is_stripped_before_the_authorizer_is_shown_it_is_named() {
    let check = |request: &[&str], identity: &[&str], expect: &[&str]| {
        let authorizer =
            Authorizer::new("gate", "lab", 80, &texts(request), &texts(identity)).unwrap();
        assert_eq!(authorizer.unseen().into_iter().collect::<Vec<_>>(), expect);
    };
    check(&["cookie"], &["x-user"], &[]);
    check(&["Cookie", "X-User"], &["x-user"], &["x-user"]);
    check(&["x_user"], &["x-user"], &["x_user"]);
}

#[test]
fn the_policy_denies_all_but_the_probe_which_leads_nowhere() {
    let policy = deny_policy("auth", "edge-lab", &labels()).to_object_as("v1beta1");
    assert_eq!(policy["apiVersion"], "security.istio.io/v1beta1");
    assert_eq!(
        policy["spec"],
        json!({
            "action": "DENY",
            "selector": {"matchLabels": {"istio": "edge"}},
            "rules": [{"to": [{"operation": {"notPaths": [PROBE_PATH]}}]}],
        })
    );
    let edge = Edge {
        namespace: "lab".to_owned(),
        gateway: "front".to_owned(),
        name: "meshy-routes".to_owned(),
        hosts: texts(&["books.example.org"]),
        guard: Some("token".to_owned()),
        ..Edge::default()
    };
    assert_eq!(
        probe_virtual_service(&edge, &[], "meshy-auth-probe").to_object_as("v1")["spec"],
        json!({
            "hosts": ["books.example.org", "*"],
            "gateways": ["lab/front"],
            "http": [{
                "match": [{"uri": {"exact": PROBE_PATH}}],
                "directResponse": {"status": 200, "body": {"string": PROBE_BODY}},
            }],
        })
    );
}

#[test]
fn answers_tell_who_gave_them() {
    let check = |status: u16, body: &str, expect: Answer| {
        assert_eq!(read_answer(status, body), expect, "{status} {body:?}");
    };
    let refused = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":403}"#;
    check(403, refused, Answer::Nobody);
    check(503, "no healthy upstream", Answer::Nobody);
    check(404, "", Answer::NoRoute);
    check(200, PROBE_BODY, Answer::Open);
    check(403, "RBAC: access denied", Answer::Denied);
    check(403, "", Answer::Authorizer);
    check(302, "", Answer::Authorizer);
    check(401, "log in first", Answer::Authorizer);
    check(200, "an application's page", Answer::Nobody);
    check(301, "", Answer::Nobody);
}
