//! The gateway's certificate: from a secret that an administrator granted, or asked for over
//! `certificates` with one key for the whole application. Pure.
//!
//! Key and request stand in a Secret of the model's namespace, which every unit's hooks read, so that
//! there is one of each whoever leads; the certificate stands beside the gateway's pods, where Istio
//! looks for it. The key is in no databag.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use juju_charm::{LocalData, ModelView, Problem, RelationView, Severity};
use juju_hooks::{Redacted, SecretId};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use relations::{CertificateRequest, CertificateRequests, Certificates};
use serde_json::{Value, json};

use crate::config::Settings;
use crate::ingress::ingresses;
use crate::keys;
use crate::observe::View;
use crate::target::target;

/// A certificate with fewer seconds than this left is asked for anew.
const RENEW_BEFORE: i64 = 14 * 86_400;

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

/// Whether a certificate is to be asked for.
pub fn is_asked_for(view: &ModelView, settings: &Settings) -> bool {
    settings.tls_secret.is_none() && view.relations_of("certificates").next().is_some()
}

/// The hosts that a certificate is to be asked for: those that are served. What is refused must not
/// cost the others theirs.
pub fn requested_hosts(view: &ModelView, settings: &Settings, cluster: &View) -> BTreeSet<String> {
    let target = target(view, cluster, settings.clone(), false).ok();
    let (routes, _) = ingresses(view, cluster, target.as_ref(), &mut Vec::new());
    let own = settings.external_hostname.iter().cloned();
    own.chain(routes.into_iter().flat_map(|route| route.hosts))
        .filter(|host| host != "*")
        .collect()
}

/// What is known about TLS, and what is wrong with it. What is shown to clients stays until there is
/// something better: nothing that others do, or fail to do, turns TLS off.
pub fn tls(
    view: &ModelView,
    settings: Option<&Settings>,
    cluster: &View,
    problems: &mut Vec<Problem>,
) -> TlsState {
    let Some(settings) = settings else {
        return TlsState::default();
    };
    let mut state = TlsState::default();
    let found = if let Some(id) = &settings.tls_secret {
        granted(view, id)
    } else if let Some(relation) = view.relations_of("certificates").next() {
        state.request.clone_from(&cluster.request);
        issued(view, relation, cluster)
    } else {
        return state;
    };
    state.wanted = true;
    let usable = found.and_then(|pair| usable(&pair).map(|()| pair));
    state.pair = match (usable, &cluster.live_pair) {
        (Ok(pair), _) => Some(pair),
        (Err(problem), live) => {
            let live = live.clone().filter(|live| self::usable(live).is_ok());
            let also = match (&live, problem.severity) {
                (Some(_), _) => "; the last one stays",
                (None, Severity::Waiting) => ": plain HTTP only",
                (None, _) => "",
            };
            let message = format!("{}{also}", problem.message);
            problems.push(Problem {
                hint: problem.hint,
                ..Problem::new(problem.severity, message)
            });
            live
        }
    };
    let end = state.pair.as_ref();
    let end = end.and_then(|pair| mesh::upgrade::certificate::end(&pair.certificate));
    if end.is_some_and(|end| end < seconds(view.now)) {
        problems.push(Problem::blocked("the certificate has ended"));
    }
    state
}

/// The pair of a secret that an administrator granted.
fn granted(view: &ModelView, id: &SecretId) -> Result<Pair, Problem> {
    let Some(Ok(content)) = view.secrets.get(id) else {
        let app = view.context.app.as_str();
        return Err(
            Problem::blocked("secret of option tls-secret-id cannot be read")
                .with_hint(format!("juju grant-secret {id} {app}")),
        );
    };
    let text = |key: &str| content.expose().get(key).cloned();
    match (text("tls-crt"), text("tls-key")) {
        (Some(certificate), Some(key)) => Ok(Pair {
            certificate,
            key: Redacted::new(key),
        }),
        _ => Err(Problem::blocked(
            "secret of option tls-secret-id must have keys tls-crt and tls-key",
        )),
    }
}

/// The pair that the related authority made.
fn issued(view: &ModelView, relation: &RelationView, cluster: &View) -> Result<Pair, Problem> {
    let app = view.context.app.as_str();
    let Some(request) = &cluster.request else {
        return Err(Problem::blocked("a certificate needs a host name")
            .with_hint(format!("juju config {app} external-hostname=…")));
    };
    let answers = Certificates::decode(&relation.remote_app_data)
        .map_err(|problem| Problem::blocked(format!("certificates: {problem}")))?;
    match (answers.answer(&request.csr), answers.refusal(&request.csr)) {
        (Some(issued), _) => Ok(Pair {
            certificate: issued.bundle(),
            key: request.key.clone(),
        }),
        (None, Some(refusal)) => Err(Problem::blocked(format!(
            "the certificate is refused: {}",
            refusal.message
        ))),
        (None, None) => Err(Problem::waiting("the certificate is not issued yet")),
    }
}

/// One that Envoy would refuse is not used, since it would take the whole listener down.
fn usable(pair: &Pair) -> Result<(), Problem> {
    let key = pair.key.expose();
    let has_key = key.contains("-----BEGIN") && key.contains("PRIVATE KEY-----");
    let Some(certificate) =
        mesh::upgrade::certificate::first(&pair.certificate).filter(|_| has_key)
    else {
        return Err(Problem::blocked("the certificate or its key is no PEM"));
    };
    match keys::public_key(key) {
        Some(public) if !contains(&certificate.der, &public) => {
            Err(Problem::blocked("the certificate is not for its key"))
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether a certificate has a public key in it: the same bytes in the one as in the other (DER).
fn contains(der: &[u8], public: &[u8]) -> bool {
    !public.is_empty() && der.windows(public.len()).any(|part| part == public)
}

/// Whether a certificate ends so soon that another one is to be asked for: less than two weeks are
/// left, or than a third of a short one's time.
pub fn is_due(certificate: &str, now: SystemTime) -> bool {
    let Some(read) = mesh::upgrade::certificate::first(certificate) else {
        return false;
    };
    let third = (read.not_after - read.not_before) / 3;
    read.not_after - seconds(now) < third.min(RENEW_BEFORE)
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

/// What a Secret of [`credential`] shows.
pub fn read_pair(secret: &Secret) -> Option<Pair> {
    Some(Pair {
        certificate: text(secret, "tls.crt")?,
        key: Redacted::new(text(secret, "tls.key")?),
    })
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let data = secret.data.as_ref()?;
    String::from_utf8(data.get(key)?.0.clone()).ok()
}

/// What a Secret of [`request_secret`] keeps.
pub fn read_request(secret: &Secret) -> Option<KeyRequest> {
    Some(KeyRequest {
        key: Redacted::new(text(secret, "tls.key")?),
        csr: text(secret, "request.pem")?,
        hosts: text(secret, "hosts")?
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
