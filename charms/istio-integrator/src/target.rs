//! Where to route: the gateway that is meant, or what keeps it from being clear. Pure.

use std::collections::BTreeSet;

use juju_charm::{ModelView, Problem};
use mesh::discovery::{
    ControlPlane, GatewayPod, GatewayService, GatewayWorkload, Selected, ServiceKind,
};
use relations::TraefikReply;

use crate::config::Settings;
use crate::gateway_api::ApiChoice;
use crate::observe::{self, View};

/// Where to route.
#[derive(Clone, Debug)]
pub struct Target {
    /// The options.
    pub settings: Settings,
    /// The control plane.
    pub plane: ControlPlane,
    /// The gateway.
    pub gateway: GatewayWorkload,
    /// The port of its Service for plain HTTP.
    pub port: u16,
    /// The port of its Service for TLS, where it has one.
    pub tls_port: Option<u16>,
    /// The namespaces where a `Gateway` with its labels has pods.
    pub namespaces: BTreeSet<String>,
    /// Scheme, host and port of URLs, perhaps with a path; `None` while the gateway has no address.
    pub base_url: Option<String>,
    /// Whether a pod of the gateway is ready.
    pub ready: bool,
    /// Addresses of its ready pods.
    pub addresses: BTreeSet<String>,
    /// What is special about the gateway, if it is one of the Gateway API.
    pub api: Option<ApiChoice>,
}

impl Target {
    /// Host and perhaps port of its URLs.
    pub fn host(&self) -> Option<&str> {
        let (_, rest) = self.base_url.as_deref()?.split_once("://")?;
        rest.split('/').next()
    }
}

/// The gateway that is meant.
///
/// # Errors
/// What keeps it from being clear.
pub fn target(
    view: &ModelView,
    cluster: &View,
    settings: Settings,
    tls: bool,
) -> Result<Target, Problem> {
    let app = view.context.app.as_str();
    if cluster.networking.is_empty() {
        return Err(Problem::blocked(
            "no Istio found: the cluster does not serve virtualservices.networking.istio.io",
        ));
    }
    let plane = match &cluster.plane {
        Selected::One(plane) => plane.clone(),
        Selected::None { looked_for } => {
            let text = format!("no Istio found: looked for {looked_for}");
            // The related charm says where its Istio will be.
            let awaited = observe::root_namespace(view).is_some();
            return Err(if awaited {
                Problem::waiting(text)
            } else {
                Problem::blocked(text)
            });
        }
        Selected::Several { candidates } => {
            let namespaces: BTreeSet<&str> = candidates
                .iter()
                .filter_map(|name| Some(name.split_once('/')?.0))
                .collect();
            let option = if namespaces.len() > 1 {
                "istio-namespace"
            } else {
                "revision"
            };
            return Err(several("control planes", candidates, app, option));
        }
    };
    let gateway = match &cluster.gateway {
        Some(Selected::One(gateway)) => gateway.clone(),
        Some(Selected::None { looked_for }) => {
            return Err(Problem::blocked(format!(
                "no gateway found: looked for {looked_for}"
            )));
        }
        Some(Selected::Several { candidates }) => {
            return Err(several("gateways", candidates, app, "gateway"));
        }
        None => return Err(Problem::blocked("no gateway found")),
    };
    if let Some(choice) = &cluster.api {
        served(choice)?;
    }
    let Some(port) = observe::http_port(&gateway).map(|port| port.port) else {
        return Err(Problem::blocked(format!(
            "gateway {} has no Service with a port for HTTP",
            gateway.reference()
        )));
    };
    let tls_port = gateway
        .service
        .as_ref()
        .and_then(GatewayService::https_port)
        .map(|port| port.port);
    let foreign = cluster.api.as_ref().is_some_and(|choice| !choice.own);
    let served = if tls || foreign {
        tls_port.map(|port| ("https", port))
    } else {
        None
    };
    let base_url = upstream(view).or_else(|| {
        base_url(
            &settings,
            gateway.service.as_ref(),
            served.unwrap_or(("http", port)),
        )
    });
    let ready = |pod: &&GatewayPod| pod.ready && pod.namespace == gateway.namespace;
    Ok(Target {
        base_url,
        ready: cluster.pods.iter().any(|pod| ready(&pod)),
        addresses: cluster
            .pods
            .iter()
            .filter(ready)
            .filter_map(|pod| pod.ip.clone())
            .collect(),
        // A gateway of the Gateway API has pods in its own namespace only.
        namespaces: match &cluster.api {
            Some(_) => BTreeSet::from([gateway.namespace.clone()]),
            None => namespaces(cluster, &gateway),
        },
        api: cluster.api.clone(),
        settings,
        plane,
        port,
        tls_port,
        gateway,
    })
}

/// What keeps routes from being written for a gateway of the Gateway API.
fn served(choice: &ApiChoice) -> Result<(), Problem> {
    let workload = &choice.gateway.workload;
    let missing = [
        ("httproutes", choice.served.http),
        ("gateways", choice.served.gateway),
    ];
    for (plural, version) in missing {
        if version.is_none() {
            return Err(Problem::blocked(format!(
                "the cluster does not serve {plural}.gateway.networking.k8s.io in a known version"
            )));
        }
    }
    if observe::http_port(workload).is_none() {
        return Err(Problem::blocked(format!(
            "Gateway {}/{} has no listener for HTTP that takes routes of the model's namespace",
            workload.namespace, choice.gateway.name
        )));
    }
    Ok(())
}

/// The namespaces where a `Gateway` with the gateway's labels has, or may have, pods.
fn namespaces(cluster: &View, gateway: &GatewayWorkload) -> BTreeSet<String> {
    let mut namespaces: BTreeSet<String> = cluster
        .pods
        .iter()
        .map(|pod| pod.namespace.clone())
        .collect();
    namespaces.insert(gateway.namespace.clone());
    // Workloads that are scaled to nothing may come back.
    let shares = |other: &&GatewayWorkload| {
        let mut labels = gateway.labels.iter();
        labels.all(|(key, value)| other.labels.get(key) == Some(value))
    };
    let others = cluster.gateways.iter().filter(shares);
    namespaces.extend(others.map(|other| other.namespace.clone()));
    // Nothing can be written there, and its pods go.
    namespaces.retain(|ns| *ns == gateway.namespace || !cluster.terminating.contains(ns));
    namespaces
}

fn several(what: &str, candidates: &[String], app: &str, option: &str) -> Problem {
    Problem::blocked(format!("several {what}: {}", candidates.join(", ")))
        .with_hint(format!("juju config {app} {option}=…"))
}

/// The URL that an ingress in front of this one gave.
fn upstream(view: &ModelView) -> Option<String> {
    let mut upstreams = view.relations_of("upstream-ingress");
    let reply = upstreams.find_map(|relation| {
        TraefikReply::decode(&relation.remote_app_data)
            .ok()
            .flatten()
    })?;
    let url = reply.url.trim_end_matches('/');
    let known = url.starts_with("http://") || url.starts_with("https://");
    (known && url.len() < 2048).then(|| url.to_owned())
}

fn base_url(
    settings: &Settings,
    service: Option<&GatewayService>,
    (scheme, port): (&str, u16),
) -> Option<String> {
    let host = match &settings.external_hostname {
        Some(host) => host.as_str(),
        None => service?.host()?,
    };
    // IPv6 addresses stand in brackets in URLs.
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    Some(match (scheme, port) {
        ("http", 80) | ("https", 443) => format!("{scheme}://{host}"),
        _ => format!("{scheme}://{host}:{port}"),
    })
}

/// What keeps the gateway from being reached.
pub fn target_problems(target: &Target) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !target.ready {
        let name = target.gateway.reference();
        problems.push(Problem::waiting(format!("gateway {name} has no ready pod")));
    }
    if let (None, Some(service)) = (&target.base_url, &target.gateway.service) {
        let name = format!("{}/{}", target.gateway.namespace, service.name);
        problems.push(if service.kind == ServiceKind::LoadBalancer {
            Problem::waiting(format!(
                "load balancer of Service {name} has no address yet"
            ))
        } else {
            Problem::waiting(format!("Service {name} has no address"))
        });
    }
    problems
}
