//! What Istio is in the cluster: control planes and gateway workloads, found by signal and not by
//! name, whoever installed them.
//!
//! Pure: the caller lists the objects ([`Live`]), this module reads them. An object that lacks what
//! a signal needs is passed over, never an error: the cluster belongs to others.

mod control_plane;
mod gateway;
mod gateway_api;
mod select;
mod workload;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Service};

pub use control_plane::{AskedByMesh, ControlPlane, Owner, mesh_config_name};
pub use gateway::{
    GatewayPod, GatewayPort, GatewayService, GatewayWorkload, Role, ServiceKind, TargetPort,
    gateway_pods,
};
pub use gateway_api::{ApiGateway, GATEWAY_NAME, api_gateway, api_gateways, istio_classes};
pub use select::{Choice, Selected, select_control_plane, select_gateway};

/// The live objects to read. Lists may hold more than is needed; what carries no signal is ignored.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Deployments: istiod's (label `app=istiod`) and gateways.
    pub deployments: Vec<Deployment>,
    /// `DaemonSet`s: gateways may run as one.
    pub daemon_sets: Vec<DaemonSet>,
    /// All mutating webhook configurations.
    pub webhooks: Vec<MutatingWebhookConfiguration>,
    /// `ConfigMap`s `istio` and `istio-<revision>` of istiod's namespaces.
    pub config_maps: Vec<ConfigMap>,
    /// Services of the gateways' namespaces.
    pub services: Vec<Service>,
}

/// The control planes, ordered by namespace and revision.
pub fn control_planes(live: &Live) -> Vec<ControlPlane> {
    control_plane::discover(live)
}

/// The gateway workloads, ordered by namespace and name.
pub fn gateways(live: &Live) -> Vec<GatewayWorkload> {
    gateway::discover(live)
}

#[cfg(test)]
mod tests;
