//! The mesh's certificate authority, signed by a related provider.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use std::collections::BTreeMap;

use common::{Lab, related, told};
use juju_charm::Databag;
use k8s_openapi::ByteString;
use kube_apply::ObjectRef;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use relations::{CertificateRequests, Certificates, IssuedCertificate};
use serde_json::{Value, json};

const FINE: (&str, &str) = ("active", "Istio 1.31.0 in istio-lab");

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
