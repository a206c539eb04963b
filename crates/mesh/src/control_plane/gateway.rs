//! One gateway of the `gateways` option, and the chart values it stands for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Type of the gateway's Service.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum ServiceType {
    /// Reached through the cluster's load balancer.
    LoadBalancer,
    /// Reached through a port of every node.
    NodePort,
    /// Reached from within the cluster.
    #[allow(clippy::enum_variant_names, reason = "Kubernetes' own name")]
    ClusterIP,
}

impl ServiceType {
    fn as_str(self) -> &'static str {
        match self {
            Self::LoadBalancer => "LoadBalancer",
            Self::NodePort => "NodePort",
            Self::ClusterIP => "ClusterIP",
        }
    }
}

/// One port of the gateway's Service.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GatewayPort {
    /// Name, with Istio's protocol prefix: `http2`, `https`, `tcp-db`.
    pub name: String,
    /// The Service's port.
    pub port: u16,
    /// The gateway pod's port; the same as `port` if left out.
    pub target_port: Option<u16>,
    /// The node's port, for a `NodePort` or `LoadBalancer` Service.
    pub node_port: Option<u16>,
}

/// One gateway, as the `gateways` option describes it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GatewaySettings {
    /// Name of its Deployment and Service; pods carry the label `istio: <name without istio->`.
    pub name: String,
    /// Its namespace, created if absent; istiod's if left out.
    pub namespace: Option<String>,
    /// Type of its Service; the chart's `LoadBalancer` if left out here and in `values`.
    pub service_type: Option<ServiceType>,
    /// Ports of its Service; the chart's 15021, 80 and 443 if left out.
    pub ports: Option<Vec<GatewayPort>>,
    /// Annotations of its Service, as load balancers want them.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// A fixed number of replicas instead of the chart's autoscaler.
    pub replicas: Option<u16>,
    /// Further values of upstream's gateway chart, under everything above.
    #[serde(default)]
    pub values: Map<String, Value>,
}

impl GatewaySettings {
    /// The gateway chart's values. `revision` is empty for the default revision.
    pub fn chart_values(&self, revision: &str) -> Value {
        let mut service = json!({});
        if let Some(service_type) = self.service_type {
            service["type"] = json!(service_type.as_str());
        }
        if !self.annotations.is_empty() {
            service["annotations"] = json!(self.annotations);
        }
        if let Some(ports) = &self.ports {
            service["ports"] = ports.iter().map(service_port).collect();
        }
        let mut own = json!({"name": self.name});
        if service != json!({}) {
            own["service"] = service;
        }
        if !revision.is_empty() {
            own["revision"] = json!(revision);
        }
        if let Some(replicas) = self.replicas {
            own["replicaCount"] = json!(replicas);
            own["autoscaling"] = json!({"enabled": false});
        }
        let mut values = Value::Object(self.values.clone());
        helm_chart::values::layer(&mut values, own);
        values
    }
}

fn service_port(port: &GatewayPort) -> Value {
    let mut out = json!({
        "name": port.name,
        "port": port.port,
        "protocol": "TCP",
        "targetPort": port.target_port.unwrap_or(port.port),
    });
    if let Some(node_port) = port.node_port {
        out["nodePort"] = json!(node_port);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<GatewaySettings>, yaml::Error> {
        yaml::parse_as(text)
    }

    #[test]
    fn a_name_is_enough() {
        let gateways = parse("- name: istio-ingressgateway\n").unwrap();
        assert_eq!(
            gateways[0].chart_values(""),
            json!({"name": "istio-ingressgateway"})
        );
    }

    #[test]
    fn every_field_reaches_the_chart() {
        let gateways = parse(
            "- name: edge\n  namespace: edge-lab\n  service-type: NodePort\n  replicas: 2\n  \
             annotations: {a: b}\n  ports: [{name: http2, port: 80, node-port: 30080}]\n  \
             values: {resources: {limits: {cpu: 1}}}\n",
        )
        .unwrap();
        assert_eq!(
            gateways[0].chart_values("canary"),
            json!({
                "name": "edge", "revision": "canary",
                "replicaCount": 2, "autoscaling": {"enabled": false},
                "resources": {"limits": {"cpu": 1}},
                "service": {
                    "type": "NodePort", "annotations": {"a": "b"},
                    "ports": [{"name": "http2", "port": 80, "targetPort": 80, "protocol": "TCP",
                               "nodePort": 30080}],
                },
            })
        );
    }

    #[test]
    fn a_misspelt_field_is_an_error_that_names_it() {
        let error = parse("- name: edge\n  servicetype: NodePort\n").unwrap_err();
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.contains("servicetype"), "{error}");
    }
}
