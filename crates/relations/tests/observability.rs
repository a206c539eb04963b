//! The databags of tracing, certificate transfer and dashboards, as the Python libraries write them.

use std::collections::BTreeMap;

use juju_hooks::Databag;
use relations::grafana_dashboard::Topology;
use relations::tracing::{Protocol, Receivers, TracingRequest};
use relations::{CertificateTransfer, Dashboards, certificate_transfer};
use serde_json::json;

fn bag(pairs: &[(&str, &str)]) -> Databag {
    let pairs = pairs.iter();
    pairs
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

#[test]
fn a_tracing_backend_is_asked_for_protocols_and_answers_with_addresses() {
    let request = TracingRequest(vec![Protocol::OtlpGrpc]);
    assert_eq!(request.encode(), bag(&[("receivers", r#"["otlp_grpc"]"#)]));
    assert_eq!(TracingRequest::decode(&request.encode()), Ok(Some(request)));
    let answer = bag(&[(
        "receivers",
        r#"[{"protocol": {"name": "otlp_http", "type": "http"}, "url": "http://tempo.lab.svc:4318"},
            {"protocol": {"name": "otlp_grpc", "type": "grpc"}, "url": "tempo.lab.svc:4317"},
            {"protocol": {"name": "carrier_pigeon", "type": "bird"}, "url": "loft"}]"#,
    )]);
    let receivers = Receivers::decode(&answer).unwrap().unwrap();
    assert_eq!(
        receivers.url(Protocol::OtlpGrpc),
        Some("tempo.lab.svc:4317")
    );
    assert_eq!(receivers.url(Protocol::Zipkin), None);
    assert_eq!(Receivers::decode(&Databag::new()), Ok(None));
    let mine = Receivers(vec![(Protocol::OtlpHttp, "http://a:4318".to_owned())]);
    assert_eq!(Receivers::decode(&mine.encode()), Ok(Some(mine)));
}

#[test]
fn certificates_to_trust_are_read_in_both_versions() {
    let (a, b) = ("-----BEGIN A", "-----BEGIN B");
    let app = bag(&[
        ("certificates", &json!([b, a, b]).to_string()),
        ("version", "1"),
    ]);
    let transfer = CertificateTransfer::decode(&app, []).unwrap().unwrap();
    assert_eq!(Vec::from_iter(&transfer.certificates), [a, b]);
    assert_eq!(
        CertificateTransfer::decode(&transfer.encode(), []),
        Ok(Some(transfer))
    );
    let unit = CertificateTransfer::encode_unit(a);
    assert_eq!(unit["ca"], json!(a).to_string());
    let transfer = CertificateTransfer::decode(&Databag::new(), [&unit])
        .unwrap()
        .unwrap();
    assert_eq!(Vec::from_iter(&transfer.certificates), [a]);
    assert_eq!(CertificateTransfer::decode(&Databag::new(), []), Ok(None));
    assert_eq!(certificate_transfer::request(), bag(&[("version", "1")]));
}

#[test]
fn a_dashboard_is_packed_by_xz_and_comes_out_as_it_went_in() {
    let dashboards = Dashboards {
        charm: "istio-k8s".to_owned(),
        topology: Topology {
            model: "lab".to_owned(),
            model_uuid: "0-1".to_owned(),
            application: "meshy".to_owned(),
            unit: "meshy/0".to_owned(),
        },
        dashboards: BTreeMap::from([("plane".to_owned(), json!({"title": "x".repeat(100_000)}))]),
    };
    let bag = dashboards.encode("1");
    let document: serde_json::Value = serde_json::from_str(&bag["dashboards"]).unwrap();
    let template = &document["templates"]["file:plane"];
    // The magic bytes of xz.
    assert!(
        template["content"]
            .as_str()
            .unwrap()
            .starts_with("/Td6WFoA")
    );
    assert_eq!(template["juju_topology"]["application"], "meshy");
    assert_eq!(Dashboards::decode(&bag), Ok(Some(dashboards.clone())));
    assert_eq!(dashboards.encode("1"), bag);
}

#[test]
fn what_is_no_packed_dashboard_is_a_problem() {
    for content in ["?", "YWJj"] {
        let document = json!({"templates": {"file:a": {
            "charm": "a", "content": content,
            "juju_topology": {"model": "", "model_uuid": "", "application": "", "unit": ""},
        }}});
        let bag = bag(&[("dashboards", &document.to_string())]);
        assert!(Dashboards::decode(&bag).is_err());
    }
    assert_eq!(Dashboards::decode(&Databag::new()), Ok(None));
}
