//! What is asked of the charm: its options, and what related applications add to them.
//!
//! Remote data that cannot be read costs its relation and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{ModelView, Problem, RelationId, RelationView};
use mesh::control_plane::Settings;
use relations::tracing::{Protocol, Receivers};
use relations::{CertificateTransfer, IngressConfig};
use serde_json::{Value, json};

use crate::config::{self, Options};

/// Endpoint of the ingresses' authorizers.
pub const INGRESS_CONFIG: &str = "istio-ingress-config";
/// Endpoint of the proxies' traces.
pub const WORKLOAD_TRACING: &str = "workload-tracing";
/// Endpoint of the charm's own traces.
pub const CHARM_TRACING: &str = "charm-tracing";
/// Endpoint of the certificates for fetching token keys.
pub const JWKS_CA: &str = "jwks-ca-cert";
/// Name of the extension provider that proxies send their traces to.
const TRACING_PROVIDER: &str = "otel-tracing";

/// What is asked.
#[derive(Debug)]
pub struct Inputs {
    /// The options with what relations add, or what is wrong with them.
    pub options: Result<Options, Vec<Problem>>,
    /// What is wrong with remote data.
    pub degraded: Vec<Problem>,
    /// Name of the extension provider of each ingress that has an authorizer.
    pub authorizers: BTreeMap<RelationId, String>,
}

/// Reads options and relations.
pub fn inputs(view: &ModelView) -> Inputs {
    let mut degraded = Vec::new();
    let options = config::options(&view.config, &view.context.app);
    let named = authorizers(view, &mut degraded);
    let tracing = tracing(view, &mut degraded);
    let jwks_ca = jwks_ca(view, &mut degraded);
    let authorizers = named.iter().map(|(id, (name, _))| (*id, name.clone()));
    let authorizers = authorizers.collect();
    let options = options.map(|mut options| {
        let settings = &mut options.settings;
        settings.jwks_ca = jwks_ca;
        let providers = named.into_values().map(|(_, provider)| provider);
        add_providers(settings, providers.chain(tracing.clone()));
        if tracing.is_some() {
            add_tracing(settings);
        }
        options
    });
    Inputs {
        options,
        degraded,
        authorizers,
    }
}

/// The extension provider of each ingress that has an authorizer, with its name.
fn authorizers(
    view: &ModelView,
    degraded: &mut Vec<Problem>,
) -> BTreeMap<RelationId, (String, Value)> {
    let mut taken = BTreeSet::new();
    let mut out = BTreeMap::new();
    for relation in view.relations_of(INGRESS_CONFIG) {
        let Some(config) = decoded(
            relation,
            degraded,
            IngressConfig::decode(&relation.remote_app_data),
        ) else {
            continue;
        };
        let Some(config) = config else { continue };
        let app = relation.remote_app.as_ref().map(ToString::to_string);
        let mut name = format!(
            "ext_authz-{}",
            app.unwrap_or_else(|| relation.id.to_string())
        );
        if !taken.insert(name.clone()) {
            // Applications of two models may have one name.
            name = format!("{name}-{}", relation.id);
        }
        out.insert(relation.id, (name.clone(), authorizer(&name, &config)));
    }
    out
}

fn authorizer(name: &str, config: &IngressConfig) -> Value {
    let IngressConfig {
        service,
        port,
        grpc,
        include_headers_in_check,
        headers_to_upstream_on_allow,
        headers_to_downstream_on_allow,
        headers_to_downstream_on_deny,
    } = config;
    if *grpc {
        return json!({
            "name": name, "envoyExtAuthzGrpc": {"service": service, "port": port},
        });
    }
    json!({"name": name, "envoyExtAuthzHttp": {
        "service": service,
        "port": port,
        "includeRequestHeadersInCheck": include_headers_in_check,
        "headersToUpstreamOnAllow": headers_to_upstream_on_allow,
        "headersToDownstreamOnAllow": headers_to_downstream_on_allow,
        "headersToDownstreamOnDeny": headers_to_downstream_on_deny,
    }})
}

/// The extension provider of the related tracing backend.
fn tracing(view: &ModelView, degraded: &mut Vec<Problem>) -> Option<Value> {
    let relation = view.relations_of(WORKLOAD_TRACING).next()?;
    let receivers = decoded(
        relation,
        degraded,
        Receivers::decode(&relation.remote_app_data),
    )??;
    let address = receivers.url(Protocol::OtlpGrpc)?;
    let Some((service, port)) = host_and_port(address) else {
        degraded.push(Problem::blocked(format!(
            "relation {}: {address:?} is no host:port",
            relation.id.on(&relation.endpoint)
        )));
        return None;
    };
    Some(json!({
        "name": TRACING_PROVIDER, "opentelemetry": {"service": service, "port": port},
    }))
}

/// `tempo.cos.svc:4317`, with or without a scheme.
fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let bare = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (host, port) = bare.trim_end_matches('/').rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!host.is_empty()).then_some((host, port))
}

/// All certificates of the related authority, as one PEM text.
fn jwks_ca(view: &ModelView, degraded: &mut Vec<Problem>) -> Option<String> {
    let relation = view.relations_of(JWKS_CA).next()?;
    let units = relation.remote_units.values();
    let transfer = CertificateTransfer::decode(&relation.remote_app_data, units);
    let CertificateTransfer { certificates } = decoded(relation, degraded, transfer)??;
    let pem: Vec<&str> = certificates.iter().map(|pem| pem.trim()).collect();
    (!pem.is_empty()).then(|| pem.join("\n") + "\n")
}

/// The extension providers of the mesh config and these, of which the former win by name.
fn add_providers(settings: &mut Settings, providers: impl Iterator<Item = Value>) {
    let own = [
        &settings.mesh_config["extensionProviders"],
        &settings.values["meshConfig"]["extensionProviders"],
    ];
    let mut all: Vec<Value> = own
        .into_iter()
        .find_map(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let before = all.len();
    for provider in providers {
        if !all.iter().any(|known| known["name"] == provider["name"]) {
            all.push(provider);
        }
    }
    if all.len() > before {
        settings.mesh_config["extensionProviders"] = Value::Array(all);
    }
}

/// Sends traces to the related backend, unless the mesh config says where they go.
fn add_tracing(settings: &mut Settings) {
    let mesh = &settings.values["meshConfig"];
    let said = |key: &str| !settings.mesh_config[key].is_null() || !mesh[key].is_null();
    let (on, providers) = (said("enableTracing"), said("defaultProviders"));
    if !on {
        settings.mesh_config["enableTracing"] = json!(true);
    }
    if !providers {
        // Laid over the default, which has metrics.
        settings.mesh_config["defaultProviders"] = json!({"tracing": [TRACING_PROVIDER]});
    }
}

fn decoded<T>(
    relation: &RelationView,
    degraded: &mut Vec<Problem>,
    result: relations::Result<T>,
) -> Option<T> {
    result
        .map_err(|why| {
            let key = relation.id.on(&relation.endpoint);
            degraded.push(Problem::blocked(format!("relation {key}: {why}")));
        })
        .ok()
}
