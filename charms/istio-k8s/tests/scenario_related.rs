//! What related applications add to Istio, and what they are told.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, related, told};
use juju_charm::Databag;
use relations::tracing::{Protocol, Receivers};
use relations::{CertificateTransfer, Dashboards, ExtAuthzProvider, IngressConfig, ScrapeJobs};
use serde_json::{Value, json};

const FINE: (&str, &str) = ("active", "Istio 1.31.0 in istio-lab");

fn mesh(lab: &Lab) -> Value {
    let config = lab.get("v1", "ConfigMap", "istio");
    yaml::parse(config["data"]["mesh"].as_str().unwrap()).unwrap()
}

fn authorizer(service: &str) -> IngressConfig {
    IngressConfig {
        service: service.to_owned(),
        port: 4180,
        include_headers_in_check: vec!["cookie".to_owned()],
        ..IngressConfig::default()
    }
}

#[test]
fn each_ingress_gets_an_extension_provider_of_its_own_and_is_told_its_name() {
    let lab = Lab::new();
    related(
        &lab,
        "istio-ingress-config",
        1,
        "inner",
        authorizer("a.lab.svc").encode(),
    );
    // One ingress without an authorizer does not cost the others theirs.
    related(
        &lab,
        "istio-ingress-config",
        2,
        "nobody",
        IngressConfig::nobody(),
    );
    related(
        &lab,
        "istio-ingress-config",
        3,
        "inner",
        authorizer("b.lab.svc").encode(),
    );
    let grpc = IngressConfig {
        grpc: true,
        ..authorizer("c.lab.svc")
    };
    related(&lab, "istio-ingress-config", 4, "outer", grpc.encode());
    lab.config(
        "mesh-config",
        "extensionProviders: [{name: mine, prometheus: {}}]",
    );
    lab.config_changed().assert_status(FINE.0, FINE.1);
    let providers = mesh(&lab)["extensionProviders"].clone();
    let names: Vec<&str> = providers
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "mine",
            "ext_authz-inner",
            "ext_authz-inner-3",
            "ext_authz-outer"
        ]
    );
    assert_eq!(
        providers[1]["envoyExtAuthzHttp"]["includeRequestHeadersInCheck"],
        json!(["cookie"])
    );
    assert_eq!(providers[3]["envoyExtAuthzGrpc"]["service"], "c.lab.svc");
    let name = |id| {
        ExtAuthzProvider::decode(&told(&lab, id))
            .unwrap()
            .map(|p| p.name)
    };
    assert_eq!(name(1).as_deref(), Some("ext_authz-inner"));
    assert_eq!(name(2), None);
    assert_eq!(name(3).as_deref(), Some("ext_authz-inner-3"));
}

#[test]
fn an_ingress_is_told_no_name_before_the_mesh_config_has_it() {
    let lab = Lab::new();
    related(
        &lab,
        "istio-ingress-config",
        1,
        "inner",
        authorizer("a.lab.svc").encode(),
    );
    lab.controllers(false, true, true).config_changed();
    assert_eq!(lab.status().0, "waiting");
    assert_eq!(told(&lab, 1), Databag::new());
}

#[test]
fn a_databag_that_cannot_be_read_costs_its_relation_and_nothing_else() {
    let lab = Lab::new();
    let mut bad = authorizer("a.lab.svc").encode();
    bad.insert("ext_authz_port".to_owned(), "http".to_owned());
    related(&lab, "istio-ingress-config", 1, "inner", bad);
    related(
        &lab,
        "istio-ingress-config",
        2,
        "outer",
        authorizer("b.lab.svc").encode(),
    );
    lab.config_changed()
        .assert_says("blocked", &["istio-ingress-config:1", "ext_authz_port"]);
    let providers = mesh(&lab)["extensionProviders"].clone();
    assert_eq!(providers[0]["name"], "ext_authz-outer");
    assert_eq!(providers.as_array().unwrap().len(), 1);
}

#[test]
fn proxies_send_their_traces_to_the_related_backend_unless_the_mesh_config_says_otherwise() {
    let receivers = Receivers(vec![(Protocol::OtlpGrpc, "tempo.lab.svc:4317".to_owned())]);
    let lab = Lab::new();
    related(&lab, "workload-tracing", 1, "tempo", receivers.encode());
    lab.config_changed().assert_status(FINE.0, FINE.1);
    assert_eq!(told(&lab, 1)["receivers"], r#"["otlp_grpc"]"#);
    let config = mesh(&lab);
    assert_eq!(
        config["extensionProviders"],
        json!([{"name": "otel-tracing", "opentelemetry": {"service": "tempo.lab.svc", "port": 4317}}])
    );
    assert_eq!(config["enableTracing"], true);
    assert_eq!(
        config["defaultProviders"]["tracing"],
        json!(["otel-tracing"])
    );
    lab.config("mesh-config", "enableTracing: false")
        .config_changed();
    assert_eq!(mesh(&lab)["enableTracing"], false);
}

#[test]
fn what_is_asked_of_others_does_not_wait_for_istio() {
    let lab = Lab::new();
    for (id, endpoint) in [
        "workload-tracing",
        "charm-tracing",
        "jwks-ca-cert",
        "grafana-dashboard",
    ]
    .into_iter()
    .enumerate()
    {
        let id = u32::try_from(id).unwrap();
        related(&lab, endpoint, id, "other", Databag::new());
    }
    lab.config("namespace", "-").config_changed();
    assert_eq!(lab.status().0, "blocked");
    assert_eq!(told(&lab, 0)["receivers"], r#"["otlp_grpc"]"#);
    assert_eq!(told(&lab, 1)["receivers"], r#"["otlp_http"]"#);
    assert_eq!(told(&lab, 2)["version"], "1");
    let dashboards = Dashboards::decode(&told(&lab, 3)).unwrap().unwrap();
    let names: Vec<&String> = dashboards.dashboards.keys().collect();
    assert_eq!(names, ["certificates", "control-plane", "data-plane"]);
    assert_eq!(dashboards.topology.application, "meshy");
}

#[test]
fn istiod_trusts_the_related_authority_when_it_fetches_token_keys() {
    let lab = Lab::new();
    let certificates = ["-----BEGIN B", "-----BEGIN A"].map(str::to_owned).into();
    related(
        &lab,
        "jwks-ca-cert",
        1,
        "ca",
        CertificateTransfer { certificates }.encode(),
    );
    lab.config_changed().assert_status(FINE.0, FINE.1);
    let config = lab.get("v1", "ConfigMap", "istio");
    assert_eq!(config["data"]["extra"], "-----BEGIN A\n-----BEGIN B\n");
}

#[test]
fn prometheus_is_told_where_istiod_is_and_what_to_alert_on() {
    let lab = Lab::new();
    related(&lab, "metrics-endpoint", 1, "prometheus", Databag::new());
    lab.config("revision", "canary").config_changed();
    let jobs = ScrapeJobs::decode(&told(&lab, 1)).unwrap().unwrap();
    assert_eq!(
        jobs.jobs[0].static_configs[0].targets,
        ["istiod-canary.istio-lab.svc:15014"]
    );
    assert_eq!(jobs.metadata.application, "meshy");
    let rules = jobs.alert_rules["groups"][0]["rules"].as_array().unwrap();
    assert!(
        rules
            .iter()
            .any(|rule| rule["alert"] == "IstioRootCertificateEnds")
    );
    assert!(
        rules
            .iter()
            .all(|rule| rule["labels"]["juju_application"] == "meshy")
    );
}
