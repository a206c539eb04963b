//! What shall exist. Pure.

use istio_api::CustomObject;
use istio_api::networking::{EnvoyFilter, Gateway, VirtualService};
use istio_api::security::AuthorizationPolicy;
use juju_charm::{Event, ModelView};
use kube_apply::Inventory;
use mesh::auth::Evidence;
use mesh::auth::{deny_policy, envoy_filter, probe_virtual_service};
use mesh::discovery::GatewayPort;
use mesh::routes::{Edge, Route, gateway, networking_version, security_version};
use sha2::{Digest as _, Sha256};

use crate::observe::{self, Live, View};
use crate::validate::{Target, Validated};

/// What shall exist.
#[derive(Clone, Debug)]
pub enum Objects {
    /// Nothing: the application goes.
    Nothing(Inventory),
    /// Routes through a gateway.
    Serve(Box<Serve>),
    /// No gateway is clear, but authorization is wanted: routes without it go, all else stays.
    Close(Inventory, Box<Live>),
}

/// Routes through a gateway, and what guards it.
#[derive(Clone, Debug)]
pub struct Serve {
    /// Whose the objects are.
    pub inventory: Inventory,
    /// Where routes are attached.
    pub edge: Edge,
    /// The `Gateway`.
    pub gateway: Gateway,
    /// The routes.
    pub routes: Vec<Route>,
    /// Whether authorization is wanted.
    pub auth_wanted: bool,
    /// The namespace of the gateway's workload: its pods give the proof.
    pub home: String,
    /// The filters that ask the authorizer, one for each namespace with pods of the gateway; `None`
    /// if the authorizer is not clear.
    pub filters: Option<Vec<EnvoyFilter>>,
    /// The policies that deny everything, one for each such namespace.
    pub policies: Vec<AuthorizationPolicy>,
    /// The route that answers probes.
    pub probe: VirtualService,
    /// The port of the gateway that is probed.
    pub port: Option<GatewayPort>,
    /// Version of `networking.istio.io` to write.
    pub networking: &'static str,
    /// Version of `security.istio.io` to write.
    pub security: &'static str,
    /// Our objects as they are.
    pub live: Live,
    /// What the gateway's pods answered.
    pub evidence: Evidence,
}

impl Serve {
    /// An object of `networking.istio.io` as the cluster takes it.
    pub fn networking<T: CustomObject>(&self, object: &T) -> serde_json::Value {
        object.to_object_as(self.networking)
    }
}

/// What shall exist; `None` leaves everything as it is.
pub fn desired(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Objects> {
    if *view.event() == Event::Remove && view.planned_units == 0 {
        return Some(Objects::Nothing(observe::inventory(view)));
    }
    if !view.leader {
        return None;
    }
    match &validated.target {
        Some(target) => Some(Objects::Serve(Box::new(serve(
            view, validated, target, cluster,
        )))),
        None if validated.auth.wanted && cluster.live.unguarded().next().is_some() => Some(
            Objects::Close(observe::inventory(view), Box::new(cluster.live.clone())),
        ),
        None => None,
    }
}

fn serve(view: &ModelView, validated: &Validated, target: &Target, cluster: &View) -> Serve {
    let app = dns_name(view.context.app.as_str());
    let edge = Edge {
        namespace: view.context.model_name.to_string(),
        gateway: target.settings.gateway_name.clone(),
        name: format!("{app}-routes"),
        hosts: vec![
            target
                .settings
                .external_hostname
                .clone()
                .unwrap_or_else(|| "*".to_owned()),
        ],
        guard: validated.auth.guard.clone(),
    };
    let labels = &target.gateway.labels;
    let name = guard_name(view);
    let guard = validated.auth.guard.as_deref().unwrap_or_default();
    let filters = validated.auth.authorizer.as_ref().map(|authorizer| {
        let filter = |namespace: &String| envoy_filter(&name, namespace, labels, authorizer, guard);
        target.namespaces.iter().map(filter).collect()
    });
    Serve {
        inventory: observe::inventory(view),
        gateway: gateway(&edge, labels, target.port),
        routes: validated.routes.clone(),
        auth_wanted: validated.auth.wanted,
        home: target.gateway.namespace.clone(),
        filters,
        policies: target
            .namespaces
            .iter()
            .map(|ns| deny_policy(&name, ns, labels))
            .collect(),
        probe: probe_virtual_service(&edge, &format!("{app}-auth-probe")),
        port: observe::http_port(&target.gateway).cloned(),
        networking: networking_version(&cluster.networking),
        security: security_version(&cluster.security),
        live: cluster.live.clone(),
        evidence: cluster.evidence.clone(),
        edge,
    }
}

/// The name of the guarding objects: they live among others' in the gateway's namespace, so it
/// carries model and application, and a hash, as both may have dashes.
fn guard_name(view: &ModelView) -> String {
    let (model, app) = (view.context.model_name.as_str(), view.context.app.as_str());
    let digest = Sha256::digest(format!("{}/{app}", view.context.model_uuid).as_bytes());
    let hash: Vec<String> = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "{}-{}-auth-{}",
        dns_name(model),
        dns_name(app),
        hash.concat()
    )
}

/// Juju's names as parts of Kubernetes names.
fn dns_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}
