//! What related applications add to Istio, and what they are told.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::collections::BTreeMap;

use common::Lab;
use juju_charm::Databag;
use juju_sim::scenario::Relation;
use k8s_openapi::ByteString;
use kube_apply::ObjectRef;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use relations::tracing::{Protocol, Receivers};
use relations::{
    CertificateRequests, CertificateTransfer, Certificates, Dashboards, ExtAuthzProvider,
    IngressConfig, IssuedCertificate, ScrapeJobs,
};
use serde_json::{Value, json};

const FINE: (&str, &str) = ("active", "Istio 1.31.0 in istio-lab");

fn mesh(lab: &Lab) -> Value {
    let config = lab.get("v1", "ConfigMap", "istio");
    yaml::parse(config["data"]["mesh"].as_str().unwrap()).unwrap()
}

fn related(lab: &Lab, endpoint: &str, id: u32, app: &str, data: Databag) {
    let relation = Relation::new(endpoint, id, app).remote_app_data(data);
    lab.change(|state| state.relation(relation));
}

fn told(lab: &Lab, id: u32) -> Databag {
    lab.state().get(id).unwrap().local_app_data.clone()
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

/// An authority that signs authorities.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    fn answer(&self, csr: &str, is_ca: bool) -> Databag {
        let mut params = CertificateParams::default();
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let issued = vec![IssuedCertificate {
            csr: csr.to_owned(),
            chain: vec![certificate.clone(), self.pem.clone()],
            ca: self.pem.clone(),
            certificate,
            revoked: false,
        }];
        Certificates {
            issued,
            refused: Vec::new(),
        }
        .encode()
    }
}

fn answered(lab: &Lab, id: u32, data: Databag) {
    lab.change(|mut state| {
        state.get_mut(id).unwrap().remote_app_data = data;
        state
    });
}

fn request(lab: &Lab, id: u32) -> String {
    let requests = CertificateRequests::decode(&told(lab, id))
        .unwrap()
        .unwrap();
    assert!(requests.0[0].ca, "an authority is asked for");
    requests.0[0].csr.clone()
}

#[test]
fn a_fresh_mesh_waits_for_its_authority_and_starts_with_it() {
    let lab = Lab::new();
    related(&lab, "certificates", 1, "vault", Databag::new());
    related(&lab, "istio-metadata", 2, "beacon", Databag::new());
    lab.config_changed()
        .assert_says("waiting", &["relation certificates"]);
    assert!(!lab.exists("Deployment istio-lab/istiod"));
    assert_eq!(told(&lab, 2), Databag::new(), "nothing runs yet");
    let csr = request(&lab, 1);
    lab.update_status();
    assert_eq!(request(&lab, 1), csr, "the key is made once");

    let authority = Authority::new();
    answered(&lab, 1, authority.answer(&csr, true));
    lab.update_status().assert_status(FINE.0, FINE.1);
    let secret = lab.get("v1", "Secret", "cacerts");
    let text = |key: &str| {
        let ByteString(bytes) = serde_json::from_value(secret["data"][key].clone()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(text("root-cert.pem").trim(), authority.pem.trim());
    assert!(text("ca-key.pem").contains("PRIVATE KEY"));
    assert!(text("cert-chain.pem").matches("BEGIN CERTIFICATE").count() == 2);
    let istiod = lab.get("apps/v1", "Deployment", "istiod");
    let annotations = &istiod["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations["charms.istio-operators.dev/certificate-authority"].is_string());

    // No later hook and no loss of the relation takes the authority away.
    lab.api.forget_requests();
    lab.update_status().assert_untouched();
    lab.change(|mut state| {
        state
            .relations
            .retain(|relation| relation.endpoint.as_str() != "certificates");
        state
    });
    lab.update_status().assert_status(FINE.0, FINE.1);
    assert!(lab.exists("Secret istio-lab/cacerts"));
}

#[test]
fn while_an_authority_is_awaited_nothing_is_deleted() {
    let lab = Lab::installed();
    let istiod = ObjectRef::namespaced("apps/v1", "Deployment", "istio-lab", "istiod");
    lab.api.remove(&istiod);
    let before = lab.ours();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed()
        .assert_says("waiting", &["relation certificates"]);
    let plan = lab.action("plan", json!({"format": "json"})).results;
    assert_eq!(plan["changes"], "0", "{}", plan["plan"]);
    let left = lab.ours();
    assert!(
        before.iter().all(|object| left.contains(object)),
        "{before:#?} {left:#?}"
    );
}

#[test]
fn gateways_without_an_istiod_wait_for_no_authority() {
    let lab = Lab::new();
    lab.api.seed(common::foreign_injector("theirs", "prod"));
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config("components", "none")
        .config(
            "gateways",
            "[{name: edge, namespace: edge-lab, revision: prod}]",
        )
        .config_changed();
    assert!(lab.exists("Deployment edge-lab/edge"));
}

#[test]
fn the_key_of_the_authority_is_in_no_databag_log_or_manifest() {
    let lab = Lab::new();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed();
    let authority = Authority::new();
    answered(&lab, 1, authority.answer(&request(&lab, 1), true));
    lab.update_status().assert_status(FINE.0, FINE.1);
    let manifests = lab
        .action("render", json!({"crds": false, "file": ""}))
        .results;
    let plan = lab.action("plan", json!({"format": "json"})).results;
    let state = format!("{:?}{manifests:?}{plan:?}", lab.state());
    assert!(!state.contains("PRIVATE"));
    let secret = lab.get("v1", "Secret", "cacerts");
    let encoded = secret["data"]["ca-key.pem"].as_str().unwrap();
    assert!(!state.contains(&encoded[..40]));
}

#[test]
fn a_certificate_that_may_not_sign_is_refused() {
    let lab = Lab::new();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed();
    answered(&lab, 1, Authority::new().answer(&request(&lab, 1), false));
    lab.update_status()
        .assert_says("blocked", &["relation certificates", "no authority"]);
    assert!(!lab.exists("Deployment istio-lab/istiod"));
}

#[test]
fn the_root_of_a_mesh_that_runs_is_not_exchanged() {
    let lab = Lab::installed();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed();
    answered(&lab, 1, Authority::new().answer(&request(&lab, 1), true));
    lab.api.forget_requests();
    lab.update_status()
        .assert_says("blocked", &["another root, which is not exchanged"])
        .assert_untouched();

    let lab = Lab::new();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed();
    let csr = request(&lab, 1);
    let first = Authority::new();
    answered(&lab, 1, first.answer(&csr, true));
    lab.update_status().assert_status(FINE.0, FINE.1);
    let before = lab.get("v1", "Secret", "cacerts")["data"]["ca-cert.pem"].clone();
    answered(&lab, 1, Authority::new().answer(&csr, true));
    lab.update_status()
        .assert_says("blocked", &["another root"]);
    assert_eq!(
        lab.get("v1", "Secret", "cacerts")["data"]["ca-cert.pem"],
        before
    );
    // A renewal under the same root is taken.
    answered(&lab, 1, first.answer(&csr, true));
    lab.update_status().assert_status(FINE.0, FINE.1);
    let renewed = lab.get("v1", "Secret", "cacerts")["data"]["ca-cert.pem"].clone();
    assert_ne!(renewed, before);
}

#[test]
fn the_authority_goes_with_the_application() {
    let lab = Lab::new();
    related(&lab, "certificates", 1, "vault", Databag::new());
    lab.config_changed();
    answered(&lab, 1, Authority::new().answer(&request(&lab, 1), true));
    lab.update_status().assert_status(FINE.0, FINE.1);
    lab.change(|state| state.planned_units(0))
        .hook(juju_charm::Event::Remove);
    let secrets: BTreeMap<String, Value> = lab
        .api
        .objects()
        .into_iter()
        .filter(|object| object["kind"] == "Secret")
        .map(|object| (common::name(&object), object))
        .collect();
    assert_eq!(secrets.keys().collect::<Vec<_>>(), Vec::<&String>::new());
    let id = ObjectRef::namespaced("v1", "Secret", "istio-lab", "cacerts");
    assert!(lab.api.get(&id).is_none());
}
