//! What is read from the cluster: the query, made from the Juju side, and the view it gives. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use istio_api::CustomObject;
use istio_api::networking::{EnvoyFilter, Gateway, VirtualService};
use istio_api::security::AuthorizationPolicy;
use juju_charm::ModelView;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube_apply::{Inventory, Object, ObjectRef, Owner};
use mesh::auth::{
    AuthMode, Evidence, guard_of_filter, guard_of_routes, routes_unguarded, shows_authorization,
    unmarked,
};
use mesh::discovery::{
    ApiGateway, Choice, ControlPlane, GatewayPod, GatewayPort, GatewayWorkload, Selected,
    select_control_plane, select_gateway,
};
use mesh::name::check_label;
use mesh::routes::short_hash;
use relations::{Certificates, IstioMetadata};

use crate::auth;
use crate::config::{self, Settings};
use crate::gateway_api::{Acceptance, ApiChoice, LiveApi};
use crate::tls::{self, KeyRequest, Pair};

/// Name of the charm, and of its inventory's owner.
pub const CHARM: &str = "istio-integrator";

/// The label by which Juju marks an application's pods.
pub const APP_LABEL: &str = "app.kubernetes.io/name";

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
    /// Services of authorizers in other namespaces than the model's: namespace and name.
    pub authorizers: BTreeSet<(String, String)>,
    /// Whether an application offers authorization.
    pub auth_related: bool,
    /// The model, where a certificate is to be asked for: for whom depends on the cluster, too.
    pub certificate_for: Option<Box<ModelView>>,
    /// The certificate that was issued to the live request, as PEM.
    pub issued: Vec<(String, String)>,
    /// What our objects are called.
    pub names: Names,
    /// The time.
    pub now: SystemTime,
}

/// What our objects are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Beginning of names in the model's namespace.
    pub app: String,
    /// The guarding objects, and beginning of all names in others' namespaces.
    pub guard: String,
}

impl Names {
    /// The names of an application's objects. Those that live among others' objects carry model and
    /// application, and a hash, as both may have dashes.
    pub fn new(model: &str, model_uuid: &str, app: &str) -> Self {
        let hash = short_hash(&format!("{model_uuid}/{app}"));
        Self {
            app: dns_name(app),
            guard: format!("{}-{}-auth-{hash}", dns_name(model), dns_name(app)),
        }
    }

    /// The policy by which an extension provider is asked.
    pub fn custom(&self) -> String {
        format!("{}-ask", self.guard)
    }

    /// What guards a gateway of the Gateway API.
    pub fn api(&self) -> String {
        format!("{}-api", self.guard)
    }

    /// What answers at the charm's own paths there.
    pub fn api_probe(&self) -> String {
        format!("{}-api-probe", self.guard)
    }

    /// The object that makes the gateway verify tokens.
    pub fn tokens(&self) -> String {
        format!("{}-tokens", self.guard)
    }

    /// The Secret that the gateway's pods show.
    pub fn credential(&self) -> String {
        format!("{}-tls", self.guard)
    }

    /// The Secret that keeps key and request.
    pub fn request(&self) -> String {
        format!("{}-tls-request", self.app)
    }
}

/// Juju's names as parts of Kubernetes names.
fn dns_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
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
    let app = view.context.app.as_str();
    let model = view.context.model_name.as_str();
    let settings = config::read(app, &view.config).ok();
    // Names are another's word, and nothing else is the name of a Service.
    let is_name = |(namespace, service): &(String, String)| {
        check_label(namespace).is_ok() && check_label(service).is_ok()
    };
    let offers = auth::offers(view).filter_map(|relation| auth::offer(relation, model).ok());
    let answers = view
        .relations_of("certificates")
        .filter_map(|relation| Certificates::decode(&relation.remote_app_data).ok());
    Query {
        inventory: inventory(view),
        namespace: model.to_owned(),
        root_namespace: root_namespace(view).unwrap_or_default(),
        auth_related: auth::offers(view).next().is_some()
            || view.relations_of(auth::TOKENS).next().is_some(),
        authorizers: offers
            .map(|offer| (offer.namespace, offer.service))
            .filter(|(namespace, _)| namespace != model)
            .filter(is_name)
            .collect(),
        certificate_for: settings
            .as_ref()
            .filter(|settings| tls::is_asked_for(view, settings))
            .map(|_| Box::new(view.clone())),
        issued: answers
            .flat_map(|answers| answers.issued)
            .map(|issued| (issued.csr, issued.certificate))
            .collect(),
        names: Names::new(model, view.context.model_uuid.as_str(), app),
        settings,
        now: view.now,
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
    /// Our `AuthorizationPolicy`s that deny everything.
    pub policies: Vec<AuthorizationPolicy>,
    /// Our `AuthorizationPolicy`s by which an extension provider is asked.
    pub customs: Vec<AuthorizationPolicy>,
    /// What else is ours and guards nothing.
    pub others: BTreeSet<ObjectRef>,
    /// Those for a gateway of the Gateway API.
    pub api: LiveApi,
}

impl Live {
    /// Whether authorization was wanted when these were written: by any trace of it, since any one
    /// of the objects may have been deleted by somebody.
    pub fn guarded(&self) -> bool {
        let traces = || self.virtual_services.iter().any(shows_authorization);
        let asking = !self.filters.is_empty() || !self.customs.is_empty();
        asking || !self.policies.is_empty() || traces() || self.api.guarded()
    }

    /// What routes ask for, as it was chosen when these were written; see [`mesh::auth::GUARD_HEADER`].
    /// What somebody made of it that is too short to be unknown does not count.
    pub fn guard(&self) -> Option<&str> {
        let filters = self.filters.iter().filter_map(guard_of_filter);
        let routes = self.virtual_services.iter().filter_map(guard_of_routes);
        let known = filters.chain(routes).chain(self.api.guards());
        known.map(unmarked).find(|guard| {
            guard.len() == 2 * GUARD_BYTES && guard.bytes().all(|b| b.is_ascii_hexdigit())
        })
    }

    /// The routes that need no authorization to be reached.
    pub fn unguarded(&self) -> impl Iterator<Item = &VirtualService> {
        self.virtual_services
            .iter()
            .filter(|service| routes_unguarded(service))
    }

    /// Whether any route, of either kind, needs no authorization to be reached.
    pub fn is_open(&self) -> bool {
        self.unguarded().next().is_some() || self.api.is_open()
    }

    /// Whether there is anything for a gateway of Istio's own API.
    pub fn has_classic(&self) -> bool {
        let routes = !self.gateways.is_empty() || !self.virtual_services.is_empty();
        let asks = !self.filters.is_empty() || !self.customs.is_empty();
        routes || asks || !self.policies.is_empty()
    }

    /// The names of all of them.
    ///
    /// # Errors
    /// Never, but for an object without a name.
    pub fn ids(&self) -> Result<Vec<ObjectRef>, kube_apply::Error> {
        let gateways = self.gateways.iter().map(CustomObject::to_object);
        let services = self.virtual_services.iter().map(CustomObject::to_object);
        let filters = self.filters.iter().map(CustomObject::to_object);
        let policies = self.policies.iter().chain(&self.customs);
        let all = gateways
            .chain(services)
            .chain(filters)
            .chain(policies.map(CustomObject::to_object));
        let mut ids = self.api.ids()?;
        for value in all {
            ids.push(Object::new(value)?.id());
        }
        ids.extend(self.others.iter().cloned());
        Ok(ids)
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
    /// What is special about it, if it is one of the Gateway API.
    pub api: Option<ApiChoice>,
    /// All gateways of the Gateway API that Istio runs.
    pub api_gateways: Vec<ApiGateway>,
    /// What they say of our routes, by kind and name.
    pub acceptances: BTreeMap<(String, String), Acceptance>,
    /// The pods that a `Gateway` with that gateway's labels applies to.
    pub pods: BTreeSet<GatewayPod>,
    /// Namespaces on their way out, where nothing new can be written.
    pub terminating: BTreeSet<String>,
    /// What the ready ones answered; empty if authorization is not wanted.
    pub evidence: Evidence,
    /// Whether a filter of somebody else asks an authorizer on the gateway.
    pub others_guard: bool,
    /// The Services of the model, and those of authorizers elsewhere, by namespace and name.
    pub services: BTreeMap<(String, String), ServiceInfo>,
    /// Key and request for a certificate, kept or new; `None` if none is to be asked for.
    pub request: Option<KeyRequest>,
    /// The certificate that clients are shown now, and its key.
    pub live_pair: Option<Pair>,
    /// Others' `Gateway`s.
    pub other_gateways: Vec<Gateway>,
    /// API groups that the cluster serves.
    pub groups: BTreeSet<String>,
    /// Our objects.
    pub live: Live,
    /// What routes ask for while authorization is wanted: the live value, else a new random one.
    pub guard: String,
    /// What we may not read, e.g. `list pods`.
    pub forbidden: Vec<String>,
}

/// Whether an `EnvoyFilter` asks an authorizer on the pods with these labels of its namespace.
pub fn guards(filter: &Object, namespace: &str, pods: &BTreeMap<String, String>) -> bool {
    let spec = &filter.value()["spec"];
    let selected = spec["workloadSelector"]["labels"].as_object();
    let mut labels = selected.into_iter().flatten();
    let asks = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz\"";
    filter.namespace() == Some(namespace)
        && labels.all(|(key, value)| pods.get(key).is_some_and(|of| value == of.as_str()))
        && spec["configPatches"].to_string().contains(asks)
}

impl View {
    /// Whether one of these resources may not be listed, as `pods` or `deployments.apps`: then that
    /// nothing was seen says nothing.
    pub fn is_blind_to(&self, resources: &[&str]) -> bool {
        let lists = |resource: &&str| self.forbidden.contains(&format!("list {resource}"));
        resources.iter().any(lists)
    }
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

/// What matters of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceInfo {
    /// Its TCP ports.
    pub ports: Vec<ServicePort>,
    /// Labels of the pods behind it; may be empty.
    pub selector: BTreeMap<String, String>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; may be empty.
    pub name: String,
    /// Its number.
    pub number: u16,
    /// The protocol that it says to be of; may be empty.
    pub protocol: String,
    /// The pods' port, where it is a number.
    pub target: Option<u16>,
}

/// Namespace, name and what matters of a Service.
pub fn service_info(service: &Service) -> Option<((String, String), ServiceInfo)> {
    let spec = service.spec.as_ref()?;
    let read = |port: &k8s_openapi::api::core::v1::ServicePort| {
        let target = match &port.target_port {
            Some(IntOrString::Int(target)) => u16::try_from(*target).ok(),
            Some(IntOrString::String(_)) | None => None,
        };
        Some(ServicePort {
            name: port.name.clone().unwrap_or_default(),
            number: u16::try_from(port.port).ok()?,
            protocol: port.app_protocol.clone().unwrap_or_default(),
            target,
        })
    };
    let metadata = &service.metadata;
    let key = (metadata.namespace.clone()?, metadata.name.clone()?);
    let info = ServiceInfo {
        ports: spec.ports.iter().flatten().filter_map(read).collect(),
        selector: spec.selector.clone().unwrap_or_default(),
    };
    Some((key, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_of_two_models_share_no_name_in_a_namespace_of_others() {
        let names = |model: &str, uuid: &str, app: &str| Names::new(model, uuid, app).guard;
        let one = names("a-b", "u-1", "c");
        assert_ne!(one, names("a", "u-2", "b-c"));
        assert_ne!(one, names("a-b", "u-3", "c"));
        assert_eq!(one, names("a-b", "u-1", "c"));
    }
}
