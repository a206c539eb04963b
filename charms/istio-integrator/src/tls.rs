//! The gateway's certificate: from a secret that an administrator granted, or asked for over
//! `certificates` with one key for the whole application. Pure.
//!
//! Key and request stand in a Secret of the model's namespace, which every unit's hooks read, so that
//! there is one of each whoever leads; the certificate stands beside the gateway's pods, where Istio
//! looks for it. The key is in no databag.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use juju_charm::{LocalData, ModelView, Problem};
use juju_hooks::Redacted;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use relations::{CertificateRequest, CertificateRequests, Certificates, RouteConfig};
use serde_json::{Value, json};

use crate::config::Settings;
use crate::ingress::ENDPOINTS;

/// A certificate with less than this left is asked for anew.
const RENEW_BEFORE: u64 = 14 * 86_400;

/// A key and the request to sign it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRequest {
    /// The key, as PEM.
    pub key: Redacted<String>,
    /// The request, as PEM.
    pub csr: String,
    /// The hosts it is for.
    pub hosts: BTreeSet<String>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate and what signed it, as PEM.
    pub certificate: String,
    /// The key, as PEM.
    pub key: Redacted<String>,
}

/// What is known about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsState {
    /// Whether it is wanted.
    pub wanted: bool,
    /// What to show to clients.
    pub pair: Option<Pair>,
    /// What is asked of the related authority.
    pub request: Option<KeyRequest>,
}

/// The hosts that a certificate is to be asked for; empty if none is to be.
pub fn requested_hosts(view: &ModelView, settings: &Settings) -> BTreeSet<String> {
    if settings.tls_secret.is_some() || view.relations_of("certificates").next().is_none() {
        return BTreeSet::new();
    }
    let configs = ENDPOINTS
        .iter()
        .flat_map(|(endpoint, _)| view.relations_of(endpoint));
    let configs = configs.filter_map(|relation| {
        RouteConfig::decode(&relation.remote_app_data)
            .ok()
            .flatten()
    });
    let named = configs.flat_map(|config| {
        let http = config
            .http_routes
            .into_iter()
            .flat_map(|route| route.hostnames);
        let grpc = config
            .grpc_routes
            .into_iter()
            .flat_map(|route| route.hostnames);
        http.chain(grpc).collect::<Vec<_>>()
    });
    let lower = named.map(|host| host.to_ascii_lowercase());
    let valid = lower.filter(|host| mesh::routes::is_host(host));
    settings
        .external_hostname
        .iter()
        .cloned()
        .chain(valid)
        .collect()
}

/// What is known about TLS, and what is wrong with it.
pub fn tls(
    view: &ModelView,
    settings: Option<&Settings>,
    request: Option<&KeyRequest>,
    problems: &mut Vec<Problem>,
) -> TlsState {
    let app = view.context.app.as_str();
    let Some(settings) = settings else {
        return TlsState::default();
    };
    let mut state = TlsState::default();
    if let Some(id) = &settings.tls_secret {
        state.wanted = true;
        match view.secrets.get(id) {
            Some(Ok(content)) => {
                let text = |key: &str| content.expose().get(key).cloned();
                match (text("tls-crt"), text("tls-key")) {
                    (Some(certificate), Some(key)) => {
                        let key = Redacted::new(key);
                        state.pair = Some(Pair { certificate, key });
                    }
                    _ => problems.push(Problem::blocked(
                        "secret of option tls-secret-id must have keys tls-crt and tls-key",
                    )),
                }
            }
            _ => problems.push(
                Problem::blocked("secret of option tls-secret-id cannot be read")
                    .with_hint(format!("juju grant-secret {id} {app}")),
            ),
        }
        check(&mut state, view.now, problems);
        return state;
    }
    let Some(relation) = view.relations_of("certificates").next() else {
        return state;
    };
    state.wanted = true;
    if requested_hosts(view, settings).is_empty() {
        problems.push(
            Problem::blocked("a certificate needs a host name")
                .with_hint(format!("juju config {app} external-hostname=…")),
        );
        return state;
    }
    let Some(request) = request else {
        return state;
    };
    state.request = Some(request.clone());
    match Certificates::decode(&relation.remote_app_data) {
        Err(problem) => problems.push(Problem::blocked(format!("certificates: {problem}"))),
        Ok(answers) => match (answers.answer(&request.csr), answers.refusal(&request.csr)) {
            (Some(issued), _) => {
                state.pair = Some(Pair {
                    certificate: issued.bundle(),
                    key: request.key.clone(),
                });
            }
            (None, Some(refusal)) => problems.push(Problem::blocked(format!(
                "the certificate is refused: {}",
                refusal.message
            ))),
            (None, None) => problems.push(Problem::waiting(
                "the certificate is not issued yet: plain HTTP only",
            )),
        },
    }
    check(&mut state, view.now, problems);
    state
}

/// A certificate that browsers and Envoy would refuse is told; one that Envoy would refuse is not
/// used, since it would take the whole listener down.
fn check(state: &mut TlsState, now: SystemTime, problems: &mut Vec<Problem>) {
    let Some(pair) = &state.pair else { return };
    let key = pair.key.expose();
    let has_key = key.contains("-----BEGIN") && key.contains("PRIVATE KEY-----");
    match mesh::upgrade::certificate::end(&pair.certificate) {
        Some(end) if has_key => {
            if end < seconds(now) {
                problems.push(Problem::blocked("the certificate has ended"));
            }
        }
        _ => {
            problems.push(Problem::blocked("the certificate or its key is no PEM"));
            state.pair = None;
        }
    }
}

/// Whether a certificate ends so soon that another one is to be asked for.
pub fn is_due(certificate: &str, now: SystemTime) -> bool {
    let soon = seconds(now).saturating_add(i64::try_from(RENEW_BEFORE).unwrap_or(i64::MAX));
    mesh::upgrade::certificate::end(certificate).is_some_and(|end| end < soon)
}

fn seconds(time: SystemTime) -> i64 {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// What the authority is told, once the key it stands for is kept.
pub fn asked(state: &TlsState) -> Option<LocalData> {
    let request = state.request.as_ref()?;
    let requests = CertificateRequests(vec![CertificateRequest {
        csr: request.csr.clone(),
        ca: false,
    }]);
    Some(LocalData {
        app: requests.encode(),
        unit: BTreeMap::new(),
    })
}

/// The Secret that keeps key and request.
pub fn request_secret(namespace: &str, name: &str, request: &KeyRequest) -> Value {
    let hosts: Vec<&str> = request.hosts.iter().map(String::as_str).collect();
    secret(
        namespace,
        name,
        "Opaque",
        &[
            ("tls.key", request.key.expose()),
            ("request.pem", &request.csr),
            ("hosts", &hosts.join(" ")),
        ],
    )
}

/// What a Secret of [`request_secret`] keeps.
pub fn read_request(secret: &Secret) -> Option<KeyRequest> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(KeyRequest {
        key: Redacted::new(text("tls.key")?),
        csr: text("request.pem")?,
        hosts: text("hosts")?
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    })
}

/// The Secret that the gateway's pods show.
pub fn credential(namespace: &str, name: &str, pair: &Pair) -> Value {
    secret(
        namespace,
        name,
        "kubernetes.io/tls",
        &[
            ("tls.crt", &pair.certificate),
            ("tls.key", pair.key.expose()),
        ],
    )
}

fn secret(namespace: &str, name: &str, kind: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<&str, ByteString> = data
        .iter()
        .map(|(key, value)| (*key, ByteString(value.as_bytes().to_vec())))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": kind,
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    })
}
