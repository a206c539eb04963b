//! Gateways of the Gateway API that Istio runs: istiod makes a workload of each, with pods that carry
//! the gateway's name, and a Service.

use std::collections::BTreeMap;

use istio_api::gateway_api::{Gateway, Listener};
use serde_json::Value;

use super::Live;
use super::gateway::{
    GatewayPort, GatewayService, GatewayWorkload, Role, ServiceKind, TargetPort, service_of,
};
use super::workload::Workload;

/// The label that istiod puts on a gateway's workload, Service and pods.
pub const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";
/// The controller of classes whose gateways istiod runs.
const CONTROLLER: &str = "istio.io/gateway-controller";
/// The class that istiod makes by itself.
const CLASS: &str = "istio";

/// A gateway, and what runs it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiGateway {
    /// Its name, in the workload's namespace.
    pub name: String,
    /// Its class.
    pub class: String,
    /// The host of the listener for plain HTTP, unless it has any.
    pub hostname: Option<String>,
    /// What runs it, or will: ports of the Service are named `http` and `https` by what is spoken
    /// there.
    pub workload: GatewayWorkload,
}

/// The classes of gateways that istiod runs, Istio's default one first.
pub fn istio_classes(classes: &[Value]) -> Vec<String> {
    let ours = classes
        .iter()
        .filter(|class| class["spec"]["controllerName"] == CONTROLLER);
    let mut names: Vec<String> = ours
        .filter_map(|class| class["metadata"]["name"].as_str())
        .map(str::to_owned)
        .collect();
    names.sort_by_key(|name| (name != CLASS, name.clone()));
    names
}

/// The gateways of these classes that take routes of the namespace `routes`, ordered by namespace and
/// name.
pub fn api_gateways(
    gateways: &[Gateway],
    classes: &[String],
    routes: &str,
    live: &Live,
) -> Vec<ApiGateway> {
    let ours = gateways
        .iter()
        .filter(|gateway| classes.contains(&gateway.spec.gateway_class_name));
    let mut found: Vec<ApiGateway> = ours
        .filter_map(|gateway| api_gateway(gateway, routes, live))
        .collect();
    found.sort_by(|a, b| (&a.workload.namespace, &a.name).cmp(&(&b.workload.namespace, &b.name)));
    found
}

/// One gateway, which need not be there yet. `None` without a name.
pub fn api_gateway(gateway: &Gateway, routes: &str, live: &Live) -> Option<ApiGateway> {
    let name = gateway.metadata.name.as_deref()?;
    let namespace = gateway.metadata.namespace.as_deref()?;
    let class = &gateway.spec.gateway_class_name;
    let takes = |listener: &&Listener| {
        let allowed = listener.allowed_routes.as_ref();
        let from = allowed.and_then(|allowed| allowed.namespaces.as_ref()?.from.as_deref());
        match from.unwrap_or("Same") {
            "Same" => namespace == routes,
            "None" => false,
            _ => true,
        }
    };
    let of = |protocol: &str| {
        let mut listeners = gateway.spec.listeners.iter().filter(takes);
        listeners.find(|listener| listener.protocol == protocol)
    };
    let named = [(of("HTTP"), "http"), (of("HTTPS"), "https")];
    let labels = BTreeMap::from([(GATEWAY_NAME.to_owned(), name.to_owned())]);
    let workload = live
        .deployments
        .iter()
        .filter_map(Workload::of_deployment)
        .find(|w| w.namespace() == namespace && w.pod_label(GATEWAY_NAME) == Some(name));
    let service = service_of(namespace, &labels, &live.services);
    let made_name = format!("{name}-{class}");
    let port = |(listener, name): &(Option<&Listener>, &str)| {
        let number = (*listener)?.port;
        let known = service.as_ref().and_then(|service| {
            let mut ports = service.ports.iter();
            ports.find(|port| port.port == number)
        });
        Some(GatewayPort {
            name: (*name).to_owned(),
            port: number,
            target: known.map_or(TargetPort::Number(number), |port| port.target.clone()),
        })
    };
    let ports: Vec<GatewayPort> = named.iter().filter_map(port).collect();
    let service = match service {
        Some(service) => GatewayService { ports, ..service },
        // istiod will make it.
        None => GatewayService {
            name: made_name.clone(),
            kind: ServiceKind::LoadBalancer,
            cluster_ip: None,
            addresses: Vec::new(),
            ports,
        },
    };
    let account = workload
        .as_ref()
        .and_then(|w| w.pod_spec()?.service_account_name.clone());
    Some(ApiGateway {
        name: name.to_owned(),
        class: class.clone(),
        hostname: of("HTTP").and_then(|listener| listener.hostname.clone()),
        workload: GatewayWorkload {
            namespace: namespace.to_owned(),
            name: workload
                .as_ref()
                .map_or_else(|| made_name.clone(), |w| w.name().to_owned()),
            kind: "Gateway".to_owned(),
            labels,
            revision: gateway
                .metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.get("istio.io/rev").cloned()),
            role: Role::Ingress,
            ready: workload.as_ref().is_some_and(|w| w.pods.1 > 0),
            service: Some(service),
            service_account: account.unwrap_or(made_name),
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gateway(namespace: &str, class: &str, listeners: &Value) -> Gateway {
        serde_json::from_value(json!({
            "metadata": {"name": "front", "namespace": namespace},
            "spec": {"gatewayClassName": class, "listeners": listeners},
        }))
        .unwrap()
    }

    fn listeners(from: &str) -> Value {
        let allowed = json!({"namespaces": {"from": from}});
        json!([
            {"name": "tls", "port": 8443, "protocol": "HTTPS", "allowedRoutes": allowed},
            {"name": "web", "port": 8080, "protocol": "HTTP", "allowedRoutes": allowed},
        ])
    }

    #[test]
    fn classes_are_those_whose_gateways_istiod_runs_its_default_first() {
        let class = |name: &str, controller: &str| json!({"metadata": {"name": name}, "spec": {"controllerName": controller}});
        let classes = [
            class("istio-remote", "istio.io/unmanaged-gateway"),
            class("fast", "istio.io/gateway-controller"),
            class("istio", "istio.io/gateway-controller"),
            class("other", "example.org/controller"),
        ];
        assert_eq!(istio_classes(&classes), ["istio", "fast"]);
    }

    #[test]
    fn what_runs_a_gateway_is_found_by_its_label() {
        let live = Live {
            deployments: vec![
                serde_json::from_value(json!({
                    "metadata": {"name": "front-istio", "namespace": "edge-lab"},
                    "spec": {
                        "selector": {"matchLabels": {GATEWAY_NAME: "front"}},
                        "template": {
                            "metadata": {"labels": {GATEWAY_NAME: "front"}},
                            "spec": {"containers": [], "serviceAccountName": "front-account"},
                        },
                    },
                    "status": {"readyReplicas": 1},
                }))
                .unwrap(),
            ],
            services: vec![
                serde_json::from_value(json!({
                    "metadata": {"name": "front-istio", "namespace": "edge-lab"},
                    "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.9",
                        "selector": {GATEWAY_NAME: "front"},
                        "ports": [{"name": "web", "port": 8080, "targetPort": 18080}]},
                }))
                .unwrap(),
            ],
            ..Live::default()
        };
        let classes = ["istio".to_owned()];
        let gateways = [
            gateway("edge-lab", "istio", &listeners("All")),
            gateway("twin-lab", "other", &listeners("All")),
        ];
        let found = api_gateways(&gateways, &classes, "lab", &live);
        assert_eq!(found.len(), 1);
        let workload = &found[0].workload;
        assert_eq!(workload.reference(), "edge-lab/front-istio");
        assert_eq!(workload.service_account, "front-account");
        assert!(workload.ready);
        let service = workload.service.as_ref().unwrap();
        let http = service.http_port().unwrap();
        assert_eq!(
            (http.port, &http.target),
            (8080, &TargetPort::Number(18080))
        );
        assert_eq!(service.https_port().unwrap().port, 8443);
        assert_eq!(service.host(), Some("10.96.0.9"));
    }

    #[test]
    fn a_gateway_that_is_still_to_be_made_waits_for_its_address() {
        let found = api_gateway(
            &gateway("lab", "istio", &listeners("Same")),
            "lab",
            &Live::default(),
        )
        .unwrap();
        let workload = found.workload;
        assert_eq!(workload.service_account, "front-istio");
        assert!(!workload.ready);
        let service = workload.service.unwrap();
        assert_eq!(
            (service.host(), service.name.as_str()),
            (None, "front-istio")
        );
    }

    #[test]
    fn a_listener_that_takes_no_routes_from_here_is_no_port() {
        let ports = |from: &str, routes: &str| {
            let gateway = gateway("edge-lab", "istio", &listeners(from));
            let found = api_gateway(&gateway, routes, &Live::default()).unwrap();
            found.workload.service.unwrap().ports.len()
        };
        assert_eq!(ports("All", "lab"), 2);
        assert_eq!(ports("Selector", "lab"), 2);
        assert_eq!(ports("Same", "lab"), 0);
        assert_eq!(ports("Same", "edge-lab"), 2);
        assert_eq!(ports("None", "edge-lab"), 0);
    }
}
