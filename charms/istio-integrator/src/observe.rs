//! What is read from the cluster: the query, made from the Juju side, and the view it gives. Pure.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::networking::{EnvoyFilter, Gateway, VirtualService};
use istio_api::security::AuthorizationPolicy;
use juju_charm::ModelView;
use k8s_openapi::api::core::v1::Service;
use kube_apply::{Inventory, Owner};
use mesh::auth::{
    AuthMode, Evidence, guard_of_filter, guard_of_routes, routes_unguarded, shows_authorization,
};
use mesh::discovery::{
    Choice, ControlPlane, GatewayPod, GatewayPort, GatewayWorkload, Selected, select_control_plane,
    select_gateway,
};
use mesh::name::check_label;
use relations::{IngressAuth, IstioMetadata};

use crate::config::{self, Settings};

/// Name of the charm, and of its inventory's owner.
pub const CHARM: &str = "istio-integrator";

/// How much of the guard's value is random.
pub const GUARD_BYTES: usize = 16;

/// What to read.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose objects are ours.
    pub inventory: Inventory,
    /// Namespace of the model.
    pub namespace: String,
    /// What narrows the choice; `None` if the options are unusable, then nothing is chosen.
    pub settings: Option<Settings>,
    /// Root namespace that a related charm names; empty if none.
    pub root_namespace: String,
    /// Services of authorizers, in the model's namespace.
    pub authorizers: BTreeSet<String>,
    /// Whether an application is related to `ingress-auth`.
    pub auth_related: bool,
}

impl Query {
    /// Whether pods are to be probed, given whether our guard objects are live.
    pub fn wants_auth(&self, guarded: bool) -> bool {
        let mode = self
            .settings
            .as_ref()
            .map_or(AuthMode::Auto, |settings| settings.auth);
        mesh::auth::wanted(mode, self.auth_related, guarded)
    }
}

/// The inventory of this application.
pub fn inventory(view: &ModelView) -> Inventory {
    Inventory {
        owner: Owner {
            charm: CHARM.to_owned(),
            model_uuid: view.context.model_uuid.to_string(),
            app: view.context.app.to_string(),
        },
        name: "ingress".to_owned(),
    }
}

/// The query of this hook.
pub fn query(view: &ModelView) -> Query {
    let app = view.context.app.to_string();
    let auths: Vec<Option<IngressAuth>> = view
        .relations_of("ingress-auth")
        .map(|relation| {
            IngressAuth::decode(&relation.remote_app_data)
                .ok()
                .flatten()
        })
        .collect();
    Query {
        inventory: inventory(view),
        namespace: view.context.model_name.to_string(),
        settings: config::read(&app, &view.config).ok(),
        root_namespace: root_namespace(view).unwrap_or_default(),
        auth_related: !auths.is_empty(),
        authorizers: auths
            .into_iter()
            .flatten()
            .map(|auth| auth.service)
            // The name is another's word, and nothing else is the name of a Service.
            .filter(|service| check_label(service).is_ok())
            .collect(),
    }
}

/// The root namespace that the charm related to `istio-metadata` names.
pub fn root_namespace(view: &ModelView) -> Option<String> {
    view.relations_of("istio-metadata")
        .find_map(|relation| {
            IstioMetadata::decode(&relation.remote_app_data)
                .ok()
                .flatten()
        })
        .map(|metadata| metadata.root_namespace)
}

/// Our objects as they are in the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// Our `Gateway`s.
    pub gateways: Vec<Gateway>,
    /// Our `VirtualService`s.
    pub virtual_services: Vec<VirtualService>,
    /// Our `EnvoyFilter`s.
    pub filters: Vec<EnvoyFilter>,
    /// Our `AuthorizationPolicy`s.
    pub policies: Vec<AuthorizationPolicy>,
}

impl Live {
    /// Whether authorization was wanted when these were written: by any trace of it, since any one
    /// of the objects may have been deleted by somebody.
    pub fn guarded(&self) -> bool {
        let traces = || self.virtual_services.iter().any(shows_authorization);
        !self.filters.is_empty() || !self.policies.is_empty() || traces()
    }

    /// What routes ask for, as it was chosen when these were written; see [`mesh::auth::GUARD_HEADER`].
    /// What somebody made of it that is too short to be unknown does not count.
    pub fn guard(&self) -> Option<&str> {
        let filters = self.filters.iter().filter_map(guard_of_filter);
        let routes = self.virtual_services.iter().filter_map(guard_of_routes);
        filters.chain(routes).find(|guard| {
            guard.len() == 2 * GUARD_BYTES && guard.bytes().all(|b| b.is_ascii_hexdigit())
        })
    }

    /// The routes that need no authorization to be reached.
    pub fn unguarded(&self) -> impl Iterator<Item = &VirtualService> {
        self.virtual_services
            .iter()
            .filter(|service| routes_unguarded(service))
    }
}

/// What was read.
#[derive(Clone, Debug)]
pub struct View {
    /// All control planes.
    pub control_planes: Vec<ControlPlane>,
    /// All gateway workloads.
    pub gateways: Vec<GatewayWorkload>,
    /// Served versions of `VirtualService`; empty: Istio's CRDs are not installed.
    pub networking: Vec<String>,
    /// Served versions of `AuthorizationPolicy`.
    pub security: Vec<String>,
    /// The control plane that is meant.
    pub plane: Selected<ControlPlane>,
    /// The gateway that is meant; `None` if no control plane is.
    pub gateway: Option<Selected<GatewayWorkload>>,
    /// The pods that a `Gateway` with that gateway's labels applies to.
    pub pods: BTreeSet<GatewayPod>,
    /// Namespaces on their way out, where nothing new can be written.
    pub terminating: BTreeSet<String>,
    /// What the ready ones answered; empty if authorization is not wanted.
    pub evidence: Evidence,
    /// The Services of authorizers that exist, with their ports.
    pub authorizers: BTreeMap<String, Vec<u16>>,
    /// Our objects.
    pub live: Live,
    /// What routes ask for while authorization is wanted: the live value, else a new random one.
    pub guard: String,
    /// What we may not read, e.g. `list pods`.
    pub forbidden: Vec<String>,
}

/// The control plane and the gateway that are meant.
pub fn select(
    query: &Query,
    planes: &[ControlPlane],
    gateways: &[GatewayWorkload],
) -> (Selected<ControlPlane>, Option<Selected<GatewayWorkload>>) {
    let Some(settings) = &query.settings else {
        return (
            Selected::None {
                looked_for: "nothing".to_owned(),
            },
            None,
        );
    };
    let choice = Choice {
        namespace: &settings.istio_namespace,
        revision: &settings.revision,
        root_namespace: &query.root_namespace,
    };
    let plane = owned(select_control_plane(planes, &choice));
    let gateway = match &plane {
        Selected::One(plane) => Some(owned(select_gateway(gateways, &settings.gateway, plane))),
        Selected::None { .. } | Selected::Several { .. } => None,
    };
    (plane, gateway)
}

fn owned<T: Clone>(selected: Selected<&T>) -> Selected<T> {
    match selected {
        Selected::One(one) => Selected::One(one.clone()),
        Selected::None { looked_for } => Selected::None { looked_for },
        Selected::Several { candidates } => Selected::Several { candidates },
    }
}

/// The port for plain HTTP of a gateway's Service.
pub fn http_port(gateway: &GatewayWorkload) -> Option<&GatewayPort> {
    gateway.service.as_ref()?.http_port()
}

/// Name and TCP ports of a Service.
pub fn service_ports(service: &Service) -> Option<(String, Vec<u16>)> {
    let ports = service.spec.as_ref()?.ports.iter().flatten();
    let ports = ports
        .filter_map(|port| u16::try_from(port.port).ok())
        .collect();
    Some((service.metadata.name.clone()?, ports))
}
