//! Gateway workloads: pods that run Istio's proxy as a router, the Service in front of them and the
//! addresses it has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Live;
use super::workload::{Labels, Workload, runs_router};

/// What a gateway is for, as far as its labels tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Traffic into the mesh, or not told.
    Ingress,
    /// Traffic out of the mesh.
    Egress,
    /// Traffic between clusters.
    EastWest,
}

/// Type of a Service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServiceKind {
    /// Waits for an address from outside the cluster.
    LoadBalancer,
    /// Reachable through every node.
    NodePort,
    /// Reachable inside the cluster, or through `externalIPs`.
    ClusterIp,
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIp => "ClusterIP",
        })
    }
}

/// Where a Service port leads to in the pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TargetPort {
    /// A number.
    Number(u16),
    /// The name of a container port.
    Name(String),
}

/// A port of a gateway's Service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayPort {
    /// Its name; may be empty.
    pub name: String,
    /// The Service's port.
    pub port: u16,
    /// The pod's port.
    pub target: TargetPort,
}

/// The Service in front of a gateway.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayService {
    /// Its name, in the gateway's namespace.
    pub name: String,
    /// Its type.
    pub kind: ServiceKind,
    /// Its cluster IP, unless headless.
    pub cluster_ip: Option<String>,
    /// Addresses from outside: host names and IPs of the load balancer, then `externalIPs`.
    pub addresses: Vec<String>,
    /// Its TCP ports.
    pub ports: Vec<GatewayPort>,
}

impl GatewayService {
    /// The host under which it is reached: an address from outside, else, unless one is still to
    /// come, the cluster IP.
    pub fn host(&self) -> Option<&str> {
        let outside = self.addresses.first().map(String::as_str);
        match self.kind {
            ServiceKind::LoadBalancer => outside,
            ServiceKind::NodePort | ServiceKind::ClusterIp => {
                outside.or(self.cluster_ip.as_deref())
            }
        }
    }

    /// The port for plain HTTP: the one named `http2` or `http…`, else number 80.
    pub fn http_port(&self) -> Option<&GatewayPort> {
        let named = |name: &str| self.ports.iter().find(|port| port.name == name);
        named("http2")
            .or_else(|| named("http"))
            .or_else(|| self.ports.iter().find(|port| port.port == 80))
            .or_else(|| {
                self.ports
                    .iter()
                    .find(|port| port.name.starts_with("http-"))
            })
    }
}

impl GatewayService {
    /// The port for TLS: the one named `https`, else number 443, else one named `https-…`.
    pub fn https_port(&self) -> Option<&GatewayPort> {
        let first = |holds: fn(&GatewayPort) -> bool| self.ports.iter().find(|port| holds(port));
        first(|port| port.name == "https")
            .or_else(|| first(|port| port.port == 443))
            .or_else(|| first(|port| port.name.starts_with("https-")))
    }
}

/// One gateway workload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayWorkload {
    /// Its namespace.
    pub namespace: String,
    /// Name of the Deployment or `DaemonSet`.
    pub name: String,
    /// `Deployment` or `DaemonSet`.
    pub kind: String,
    /// Labels that select its pods.
    pub labels: BTreeMap<String, String>,
    /// The revision or tag its pods ask for; `None` if the namespace decides.
    pub revision: Option<String>,
    /// What it is for.
    pub role: Role,
    /// Whether a pod is ready.
    pub ready: bool,
    /// The Service in front of it.
    pub service: Option<GatewayService>,
    /// The account that its pods run as.
    pub service_account: String,
}

impl GatewayWorkload {
    /// `namespace/name`, as candidates are named to the user.
    pub fn reference(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

pub(super) fn discover(live: &Live) -> Vec<GatewayWorkload> {
    let deployments = live.deployments.iter().filter_map(Workload::of_deployment);
    let daemon_sets = live.daemon_sets.iter().filter_map(Workload::of_daemon_set);
    let mut found: Vec<GatewayWorkload> = deployments
        .chain(daemon_sets)
        .filter_map(|w| of_workload(&w, &live.services))
        .collect();
    found.sort_by(|a, b| (&a.namespace, &a.name, &a.kind).cmp(&(&b.namespace, &b.name, &b.kind)));
    found.dedup_by(|a, b| a.reference() == b.reference() && a.kind == b.kind);
    found
}

fn of_workload(workload: &Workload<'_>, services: &[Service]) -> Option<GatewayWorkload> {
    // Pods of Gateway API gateways and waypoints belong to istiod's own controller.
    let api = [
        "gateway.networking.k8s.io/gateway-name",
        "gateway.istio.io/managed",
    ];
    if api.iter().any(|key| {
        workload
            .pod_label(key)
            .or_else(|| workload.label(key))
            .is_some()
    }) {
        return None;
    }
    let injected = workload
        .pod_annotation("inject.istio.io/templates")
        .is_some_and(|templates| templates.split(',').any(|name| name.trim() == "gateway"));
    if !injected && !workload.pod_spec().is_some_and(runs_router) {
        return None;
    }
    let pod_labels = workload.pod_labels();
    Some(GatewayWorkload {
        namespace: workload.namespace().to_owned(),
        name: workload.name().to_owned(),
        kind: workload.kind.to_owned(),
        labels: workload.match_labels(),
        revision: workload.pod_label("istio.io/rev").map(str::to_owned),
        role: role(&pod_labels),
        ready: workload.pods.1 > 0,
        service: service_of(workload.namespace(), &pod_labels, services),
        service_account: workload
            .pod_spec()
            .and_then(|spec| spec.service_account_name.clone())
            .unwrap_or_else(|| "default".to_owned()),
    })
}

fn role(labels: &Labels) -> Role {
    let told = ["istio", "app"].map(|key| labels.get(key).map_or("", String::as_str));
    if told.iter().any(|text| text.contains("eastwest")) {
        Role::EastWest
    } else if told.iter().any(|text| text.contains("egress")) {
        Role::Egress
    } else {
        Role::Ingress
    }
}

/// The Service that selects these pods; of several the one that is best reached from outside.
pub(super) fn service_of(
    namespace: &str,
    pod_labels: &Labels,
    services: &[Service],
) -> Option<GatewayService> {
    let selects = |service: &&Service| {
        let selector = service
            .spec
            .as_ref()
            .and_then(|spec| spec.selector.as_ref());
        service.metadata.namespace.as_deref() == Some(namespace)
            && selector.is_some_and(|selector| {
                !selector.is_empty() && selector.iter().all(|(k, v)| pod_labels.get(k) == Some(v))
            })
    };
    let rank = |service: &GatewayService| {
        let kind = match service.kind {
            ServiceKind::LoadBalancer => 0,
            ServiceKind::NodePort => 1,
            ServiceKind::ClusterIp => 2,
        };
        (service.http_port().is_none(), kind, service.name.clone())
    };
    services
        .iter()
        .filter(selects)
        .filter_map(read_service)
        .min_by_key(rank)
}

fn read_service(service: &Service) -> Option<GatewayService> {
    let spec = service.spec.as_ref()?;
    let kind = match spec.type_.as_deref() {
        Some("LoadBalancer") => ServiceKind::LoadBalancer,
        Some("NodePort") => ServiceKind::NodePort,
        None | Some("ClusterIP") => ServiceKind::ClusterIp,
        Some(_) => return None,
    };
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer
        .and_then(|b| b.ingress.as_deref())
        .unwrap_or_default();
    let given = ingress
        .iter()
        .filter_map(|i| i.hostname.clone().or_else(|| i.ip.clone()));
    let external = spec.external_ips.iter().flatten().cloned();
    Some(GatewayService {
        name: service.metadata.name.clone()?,
        kind,
        cluster_ip: spec
            .cluster_ip
            .clone()
            .filter(|ip| !ip.is_empty() && ip != "None"),
        addresses: given.chain(external).collect(),
        ports: spec.ports.iter().flatten().filter_map(read_port).collect(),
    })
}

fn read_port(port: &ServicePort) -> Option<GatewayPort> {
    if port.protocol.as_deref().unwrap_or("TCP") != "TCP" {
        return None;
    }
    let number = u16::try_from(port.port).ok()?;
    let target = match &port.target_port {
        None => TargetPort::Number(number),
        Some(IntOrString::Int(target)) => {
            let target = u16::try_from(*target).ok()?;
            TargetPort::Number(if target == 0 { number } else { target })
        }
        Some(IntOrString::String(name)) => TargetPort::Name(name.clone()),
    };
    Some(GatewayPort {
        name: port.name.clone().unwrap_or_default(),
        port: number,
        target,
    })
}

/// A pod that a `Gateway` with the workload's labels applies to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct GatewayPod {
    /// Its namespace: Istio looks for the labels in all of them.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it is ready (and not about to go).
    pub ready: bool,
    /// The pod's port for plain HTTP, where it has one.
    pub http_port: Option<u16>,
    /// Its address.
    pub ip: Option<String>,
}

/// The gateway pods among `pods`, which must already be those with the workload's labels. Pods that
/// do not run Istio's proxy as a router are left out: no `Gateway` applies to them.
pub fn gateway_pods(pods: &[Pod], http: Option<&GatewayPort>) -> BTreeSet<GatewayPod> {
    pods.iter().filter_map(|pod| read_pod(pod, http)).collect()
}

fn read_pod(pod: &Pod, http: Option<&GatewayPort>) -> Option<GatewayPod> {
    let spec = pod.spec.as_ref().filter(|spec| runs_router(spec))?;
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let ready = conditions
        .unwrap_or_default()
        .iter()
        .any(|c| c.type_ == "Ready" && c.status == "True");
    let http_port = http.and_then(|port| match &port.target {
        TargetPort::Number(number) => Some(*number),
        TargetPort::Name(name) => {
            let mut ports = spec
                .containers
                .iter()
                .flat_map(|c| c.ports.iter().flatten());
            let found = ports.find(|p| p.name.as_deref() == Some(name.as_str()))?;
            u16::try_from(found.container_port).ok()
        }
    });
    Some(GatewayPod {
        namespace: pod.metadata.namespace.clone()?,
        name: pod.metadata.name.clone()?,
        ready: ready && pod.metadata.deletion_timestamp.is_none(),
        http_port,
        ip: pod.status.as_ref().and_then(|status| status.pod_ip.clone()),
    })
}
