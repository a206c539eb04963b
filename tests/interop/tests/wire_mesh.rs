//! Who may call whom: `service_mesh`, `cross_model_mesh` and `gateway_metadata`, as their libraries
//! write and read them, and as we do.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::service_mesh::{MeshEndpoint, TargetType};
use relations::{CrossModelApp, GatewayMetadata, MeshLabels, MeshPolicies, MeshPolicy};
use serde_json::{Value, json};

fn side(side: &str, remote: &Databag, send: &Value) -> Value {
    json!({"side": side, "remote_app": remote, "send": send})
}

fn one(library: &str, question: Value) -> Heard {
    ask(library, &[question]).unwrap().remove(0)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// A policy that lets `shelves` call the peer, which is `meshy` in the model `lab`.
fn shelves(kind: TargetType, endpoints: Vec<MeshEndpoint>) -> MeshPolicy {
    MeshPolicy {
        source_namespace: "lab".into(),
        source_app_name: "shelves".into(),
        target_namespace: "lab".into(),
        target_app_name: Some("meshy".into()),
        target_type: kind,
        endpoints,
        ..MeshPolicy::default()
    }
}

#[test]
fn policies_that_a_charm_of_the_library_declares_are_read_with_their_values() {
    let declared = json!([
        {"kind": "app", "relation": "api", "service": "books", "endpoints": [
            {"hosts": ["books.example"], "ports": [80, 65535], "methods": ["GET", "CONNECT"],
             "paths": ["/a*", "/\"b\" \u{fc}"]},
            {"ports": [1]},
        ]},
        {"kind": "app", "relation": "api", "endpoints": []},
        {"kind": "unit", "relation": "api", "ports": [9090]},
        {"kind": "unit", "relation": "api"},
    ]);
    let heard = one("service_mesh", side("requirer", &Databag::new(), &declared));
    let whole = MeshEndpoint {
        hosts: texts(&["books.example"]),
        ports: vec![80, 65535],
        methods: texts(&["GET", "CONNECT"]),
        paths: texts(&["/a*", "/\"b\" \u{fc}"]),
    };
    let ports = |ports: &[u16]| MeshEndpoint {
        ports: ports.to_vec(),
        ..MeshEndpoint::default()
    };
    let expect = MeshPolicies(vec![
        MeshPolicy {
            target_service: Some("books".into()),
            ..shelves(TargetType::App, vec![whole, ports(&[1])])
        },
        shelves(TargetType::App, vec![]),
        shelves(TargetType::Unit, vec![ports(&[9090])]),
        shelves(TargetType::Unit, vec![]),
    ]);
    assert_eq!(MeshPolicies::decode(&heard.app), Ok(expect));
}

#[test]
fn policies_are_read_both_ways_with_labels_of_pods_and_names_of_other_models() {
    let ours = MeshPolicies(vec![
        MeshPolicy {
            source_namespace: "elsewhere".into(),
            target_app_name: None,
            target_selector_labels: Some(labels(&[("app", "books"), ("a/b", "1e3")])),
            ..shelves(TargetType::Unit, vec![])
        },
        MeshPolicy {
            target_app_name: None,
            target_service: Some("books".into()),
            ..shelves(TargetType::App, vec![])
        },
    ]);
    let written = one("service_mesh", side("provider", &ours.encode(), &json!({})));
    assert_eq!(written.error, None);
    let mut declared = written.read.clone();
    for policy in declared.as_array_mut().unwrap() {
        policy["kind"] = json!("mesh");
    }
    let theirs = one("service_mesh", side("requirer", &Databag::new(), &declared));
    assert_eq!(MeshPolicies::decode(&theirs.app), Ok(ours));
    // The library makes the same of ours as of its own.
    let again = one("service_mesh", side("provider", &theirs.app, &json!({})));
    assert_eq!(again.read, written.read);
}

#[test]
fn a_charm_that_asks_for_nothing_is_no_error_on_either_side() {
    let silent = one(
        "service_mesh",
        side("requirer", &Databag::new(), &json!([])),
    )
    .app;
    for bag in [silent, Databag::new(), MeshPolicies::default().encode()] {
        let heard = one("service_mesh", side("provider", &bag, &json!({})));
        assert_eq!((heard.read, heard.error), (json!([]), None));
        assert_eq!(MeshPolicies::decode(&bag), Ok(MeshPolicies::default()));
    }
}

#[test]
fn labels_of_the_mesh_are_read_both_ways() {
    for labels in [
        labels(&[
            ("istio.io/dataplane-mode", "ambient"),
            ("istio.io/rev", "1-31-0"),
            ("odd", "true"),
        ]),
        labels(&[]),
    ] {
        let ours = MeshLabels {
            labels: labels.clone(),
        };
        let heard = one(
            "service_mesh",
            side("requirer", &ours.encode(), &Value::Null),
        );
        assert_eq!(heard.read, json!({"labels": labels, "mesh_type": "istio"}));
        let heard = one(
            "service_mesh",
            side("provider", &Databag::new(), &json!(labels)),
        );
        assert_eq!(MeshLabels::decode(&heard.app), Ok(Some(ours)));
    }
    let heard = one(
        "service_mesh",
        side("requirer", &Databag::new(), &Value::Null),
    );
    assert_eq!(heard.read, json!({"labels": {}, "mesh_type": null}));
}

#[test]
fn policies_that_the_library_refuses_we_refuse_too() {
    let whole = json!({
        "source_namespace": "lab", "source_app_name": "shelves", "target_namespace": "lab",
        "target_app_name": "books", "endpoints": [{"ports": [80]}],
    });
    let mut documents: Vec<Value> = [
        ("source_namespace", Value::Null),
        ("source_app_name", json!(7)),
        ("target_namespace", json!([])),
        ("target_app_name", Value::Null),
        ("target_app_name", json!("")),
        ("target_type", json!("pod")),
        ("target_type", json!("App")),
        ("target_selector_labels", json!({"a": "b"})),
        ("target_selector_labels", json!(["a"])),
        ("endpoints", Value::Null),
        ("endpoints", json!({"ports": [80]})),
        ("endpoints", json!([{"ports": 80}])),
        ("endpoints", json!([{"ports": ["http"]}])),
        ("endpoints", json!([{"methods": ["get"]}])),
        ("endpoints", json!([{"methods": ["FETCH"]}])),
        ("endpoints", json!([{"paths": "/"}])),
        ("endpoints", json!([{"hosts": [null]}])),
    ]
    .into_iter()
    .map(|(key, value)| {
        let mut policy = whole.clone();
        policy[key] = value;
        json!([policy])
    })
    .collect();
    let mut unit = whole.clone();
    unit["target_type"] = json!("unit");
    for (key, value) in [
        ("target_selector_labels", json!({"a": "b"})),
        ("target_service", json!("books")),
    ] {
        let mut policy = unit.clone();
        policy[key] = value;
        documents.push(json!([whole, policy]));
    }
    documents.push(json!([{"source_namespace": "lab"}]));
    documents.push(json!({}));
    documents.push(json!("all"));
    for document in documents {
        let bag = Databag::from([("policies".to_owned(), document.to_string())]);
        let heard = one("service_mesh", side("provider", &bag, &json!({})));
        // The library takes an empty object for an empty list.
        let lax = document == json!({});
        assert_eq!(heard.error.is_none(), lax, "{document}: {heard:?}");
        assert!(MeshPolicies::decode(&bag).is_err(), "{document}");
    }
}

#[test]
fn an_application_of_another_model_is_read_both_ways() {
    let ours = CrossModelApp {
        app_name: "meshy".into(),
        juju_model_name: "lab".into(),
    };
    let heard = one("cross_model_mesh", json!({"side": "requirer"}));
    assert_eq!(CrossModelApp::decode(&heard.app), Ok(Some(ours.clone())));
    let heard = one(
        "cross_model_mesh",
        side("provider", &ours.encode(), &Value::Null),
    );
    assert_eq!(
        heard.read,
        json!({"app_name": "meshy", "juju_model_name": "lab"})
    );

    let heard = one(
        "cross_model_mesh",
        side("provider", &Databag::new(), &Value::Null),
    );
    assert_eq!((heard.read, heard.error), (Value::Null, None));
    assert_eq!(CrossModelApp::decode(&Databag::new()), Ok(None));
    for data in [
        "{",
        "{}",
        r#"{"app_name": "a"}"#,
        r#"{"app_name": 1, "juju_model_name": "b"}"#,
    ] {
        let bag = Databag::from([("cmr_data".to_owned(), data.to_owned())]);
        let heard = one("cross_model_mesh", side("provider", &bag, &Value::Null));
        assert!(heard.error.is_some(), "{data}: {heard:?}");
        assert!(CrossModelApp::decode(&bag).is_err(), "{data}");
    }
}

#[test]
fn the_gateways_identity_is_read_both_ways() {
    for account in ["istio-gateway", "1e3", "a \"b\" \u{fc}"] {
        let ours = GatewayMetadata {
            namespace: "istio-lab".into(),
            gateway_name: "lab-gateway".into(),
            deployment_name: "istio-ingressgateway".into(),
            service_account: account.into(),
        };
        let theirs = json!({
            "namespace": "istio-lab", "gateway_name": "lab-gateway",
            "deployment_name": "istio-ingressgateway", "service_account": account,
        });
        let heard = one(
            "gateway_metadata",
            side("provider", &Databag::new(), &theirs),
        );
        assert_eq!(GatewayMetadata::decode(&heard.app), Ok(Some(ours.clone())));
        let heard = one(
            "gateway_metadata",
            side("requirer", &ours.encode(), &Value::Null),
        );
        assert_eq!((heard.read, heard.error), (theirs, None));
    }
    for metadata in [
        "{",
        "{}",
        "[]",
        r#"{"namespace": "a", "gateway_name": "b"}"#,
    ] {
        let bag = Databag::from([("metadata".to_owned(), metadata.to_owned())]);
        let heard = one("gateway_metadata", side("requirer", &bag, &Value::Null));
        assert!(heard.error.is_some(), "{metadata}: {heard:?}");
        assert!(GatewayMetadata::decode(&bag).is_err(), "{metadata}");
    }
}
