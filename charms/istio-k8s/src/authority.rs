//! The mesh's certificate authority, signed by a related provider. Pure.
//!
//! istiod takes its authority from the Secret `cacerts` when it starts. So on a fresh installation
//! istiod waits for the certificate; and the root of a mesh that runs is never exchanged: proxies
//! that trust the old one would refuse everybody with the new one.

use std::fmt::Write as _;

use juju_charm::{ModelView, Problem};
use k8s_openapi::ByteString;
use kube_apply::{Inventory, Object};
use mesh::control_plane::Settings;
use relations::{CertificateRequest, CertificateRequests, Certificates, IssuedCertificate};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::observe::{View, inventory as control_plane};

/// Endpoint of the provider.
pub const ENDPOINT: &str = "certificates";
/// Key of the private key in the request's Secret.
pub const KEY: &str = "tls.key";
/// Key of the request in its Secret.
pub const CSR: &str = "tls.csr";
/// The Secret that istiod reads.
pub const CACERTS: &str = "cacerts";
/// Annotation of istiod's pods: with another authority, another generation.
pub const AUTHORITY: &str = "charms.istio-operators.dev/certificate-authority";

/// How far the authority is.
#[derive(Debug)]
pub enum State {
    /// istiod makes its own.
    Unrelated,
    /// There is no key and no request yet.
    Unrequested,
    /// The provider has not answered.
    Awaited,
    /// The provider's answer cannot be used: why.
    Refused(String),
    /// The mesh that runs has another root.
    OtherRoot,
    /// Here it is.
    Issued(Box<IssuedCertificate>),
}

/// What the request and its key belong to: not the control plane's, so that no reconcile prunes them.
pub fn inventory(view: &ModelView) -> Inventory {
    Inventory {
        name: "authority".to_owned(),
        ..control_plane(view)
    }
}

/// Name of the Secret with the key and the request.
pub fn secret_name(app: &str) -> String {
    format!("{app}-authority-request")
}

/// How far the authority is.
pub fn state(view: &ModelView, cluster: &View) -> State {
    let Some(relation) = view.relations_of(ENDPOINT).next() else {
        return State::Unrelated;
    };
    let Some(csr) = request(cluster) else {
        return State::Unrequested;
    };
    let answers = match Certificates::decode(&relation.remote_app_data) {
        Ok(answers) => answers,
        Err(why) => return State::Refused(why.to_string()),
    };
    if let Some(refusal) = answers.refusal(&csr) {
        return State::Refused(format!("{} {}", refusal.name, refusal.message));
    }
    let Some(issued) = answers.answer(&csr) else {
        return State::Awaited;
    };
    if !is_authority(&issued.certificate) {
        return State::Refused("the certificate is no authority's".to_owned());
    }
    let root = root(issued);
    let live = cluster.surroundings.cacerts.as_ref();
    let other = live.and_then(|live| text(live, "root-cert.pem"));
    let runs = cluster
        .istiods
        .iter()
        .any(|istiod| control_plane(view).owns(istiod));
    match other {
        Some(other) if other.trim() != root.trim() => State::OtherRoot,
        None if runs => State::OtherRoot,
        _ => State::Issued(Box::new(issued.clone())),
    }
}

/// The request that stands, as PEM.
pub fn request(cluster: &View) -> Option<String> {
    text(cluster.surroundings.request.as_ref()?, CSR)
}

/// The requirer's databag.
pub fn databag(csr: &str) -> juju_charm::Databag {
    let request = CertificateRequest {
        csr: csr.to_owned(),
        ca: true,
    };
    CertificateRequests(vec![request]).encode()
}

/// What a status says.
pub fn problem(view: &ModelView, cluster: &View) -> Option<Problem> {
    let app = &view.context.app;
    match state(view, cluster) {
        State::Unrelated | State::Issued(_) => None,
        State::Unrequested | State::Awaited => Some(Problem::waiting(
            "relation certificates: waiting for the mesh's certificate authority",
        )),
        State::Refused(why) => Some(Problem::blocked(format!("relation certificates: {why}"))),
        State::OtherRoot => Some(
            Problem::blocked(
                "relation certificates: the mesh runs with another root, which is not exchanged",
            )
            .with_hint(format!("juju remove-relation {app} PROVIDER")),
        ),
    }
}

/// Whether istiod must not start yet. Where none is wanted, nothing waits for it.
pub fn is_awaited(view: &ModelView, cluster: &View) -> bool {
    let runs = cluster
        .istiods
        .iter()
        .any(|istiod| control_plane(view).owns(istiod));
    let release = cluster.release.as_ref().and_then(|r| r.as_ref().ok());
    let wanted = release.is_none_or(|release| !release.control_plane.istiod.is_empty());
    let state = state(view, cluster);
    wanted && !runs && !matches!(state, State::Unrelated | State::Issued(_))
}

/// The Secret that istiod reads, and the annotation by which its pods follow it.
pub fn secret(view: &ModelView, cluster: &View, settings: &Settings) -> Option<(Value, Value)> {
    let State::Issued(issued) = state(view, cluster) else {
        return None;
    };
    let key = text(cluster.surroundings.request.as_ref()?, KEY)?;
    let encoded = |text: &str| ByteString(text.as_bytes().to_vec());
    let certificate = issued.certificate.trim().to_owned() + "\n";
    let root = root(&issued).trim().to_owned() + "\n";
    let chain = issued.bundle();
    let digest = Sha256::digest(format!("{certificate}{root}").as_bytes());
    let digest = digest.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": CACERTS, "namespace": settings.namespace.as_str()},
        "data": {
            "ca-cert.pem": encoded(&certificate), "ca-key.pem": encoded(&key),
            "cert-chain.pem": encoded(&chain), "root-cert.pem": encoded(&root),
        },
    });
    Some((secret, json!({AUTHORITY: digest})))
}

/// What everybody is to trust: the end of the chain, else the signer.
fn root(issued: &IssuedCertificate) -> &str {
    let leaf = issued.certificate.trim();
    let mut ends = [issued.chain.last(), issued.chain.first(), Some(&issued.ca)].into_iter();
    let end = ends.find_map(|pem| pem.filter(|pem| !pem.trim().is_empty() && pem.trim() != leaf));
    end.map_or(issued.ca.as_str(), String::as_str)
}

/// Whether a certificate may sign others: the extension `basicConstraints` (RFC 5280, 4.2.1.9) with
/// `cA` true.
fn is_authority(pem: &str) -> bool {
    const BASIC_CONSTRAINTS: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x13];
    const CA: [u8; 3] = [0x01, 0x01, 0xff];
    let body = pem.lines().filter(|line| !line.starts_with("-----"));
    let base64: String = body.map(str::trim).collect();
    let Ok(ByteString(der)) = serde_json::from_value(Value::String(base64)) else {
        return false;
    };
    let at = der
        .windows(BASIC_CONSTRAINTS.len())
        .position(|w| w == BASIC_CONSTRAINTS);
    at.is_some_and(|at| {
        let rest = der.get(at + BASIC_CONSTRAINTS.len()..).unwrap_or_default();
        // An optional critical flag comes first, then the octets with the sequence.
        let octets = if rest.starts_with(&CA) { 3 } else { 0 };
        rest.get(octets..)
            .is_some_and(|rest| rest.len() > 6 && rest[0] == 0x04 && rest[4..7] == CA)
    })
}

fn text(secret: &Object, key: &str) -> Option<String> {
    let encoded = secret.pointer("/data")?.get(key)?;
    let ByteString(bytes) = serde_json::from_value(encoded.clone()).ok()?;
    String::from_utf8(bytes).ok()
}
