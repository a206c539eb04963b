//! One gateway of the `gateways` option, and the chart values it stands for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a gateway is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayKind {
    /// Traffic into the mesh.
    #[default]
    Ingress,
    /// Traffic out of the mesh: reached from within the cluster only, unless `service-type` says
    /// otherwise, and told apart by the suffix `-egress` of its pods' label `istio`.
    Egress,
}

/// Bounds of a gateway's autoscaler.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Autoscaling {
    /// At least so many pods.
    pub min: u16,
    /// At most so many.
    pub max: u16,
    /// Use of the requested CPU that it aims at, in percent; the chart's 80 if left out.
    pub cpu: Option<u16>,
}

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
    /// Name of its Deployment and Service; pods carry the label `istio: <name without istio->`, unless
    /// `values` name another.
    pub name: String,
    /// Its namespace, created if absent; istiod's if left out.
    pub namespace: Option<String>,
    /// What it is for.
    #[serde(default)]
    pub kind: GatewayKind,
    /// Revision or tag of the control plane that serves it; the application's own if left out.
    pub revision: Option<String>,
    /// Type of its Service; the chart's `LoadBalancer` if left out here and in `values`.
    pub service_type: Option<ServiceType>,
    /// Ports of its Service; the chart's 15021, 80 and 443 if left out.
    pub ports: Option<Vec<GatewayPort>>,
    /// Annotations of its Service, as load balancers want them.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    /// A fixed number of replicas instead of the chart's autoscaler.
    pub replicas: Option<u16>,
    /// Bounds of its autoscaler.
    pub autoscaling: Option<Autoscaling>,
    /// Whether requests are admitted, with the option hardened-mode, that no policy allows.
    #[serde(default = "yes")]
    pub open: bool,
    /// Further values of upstream's gateway chart, under everything above.
    #[serde(default)]
    pub values: Map<String, Value>,
}

/// The default of a field that is on unless switched off.
const fn yes() -> bool {
    true
}

impl GatewaySettings {
    /// The value of its pods' label `istio`, by which policies and `Gateway` objects pick it.
    pub fn istio_label(&self) -> String {
        // As the chart has it: what is set here, what the values name, the short name.
        let named = self.values.get("labels").map(|labels| &labels["istio"]);
        match named {
            Some(Value::String(label)) if !self.is_told_apart() => label.clone(),
            Some(label @ (Value::Number(_) | Value::Bool(_))) if !self.is_told_apart() => {
                label.to_string()
            }
            _ => self.own_label(),
        }
    }

    /// The value of that label as name and kind give it.
    pub fn own_label(&self) -> String {
        let short = self.short_name();
        if self.is_told_apart() {
            format!("{short}-egress")
        } else {
            short.to_owned()
        }
    }

    /// Whether its label differs from its name, to tell it from a gateway into the mesh.
    fn is_told_apart(&self) -> bool {
        self.kind == GatewayKind::Egress && !self.short_name().contains("egress")
    }

    fn short_name(&self) -> &str {
        self.name.strip_prefix("istio-").unwrap_or(&self.name)
    }

    /// The revision or tag that it is bound to; `own` is the application's. Empty for the default.
    pub fn bound_to<'a>(&'a self, own: &'a str) -> &'a str {
        match self.revision.as_deref() {
            None => own,
            Some("default") => "",
            Some(revision) => revision,
        }
    }

    /// The gateway chart's values. `revision` is the application's own, empty for the default one.
    pub fn chart_values(&self, revision: &str) -> Value {
        let revision = self.bound_to(revision);
        let mut service = json!({});
        let named = self.values.get("service").map(|service| &service["type"]);
        if self.kind == GatewayKind::Egress && named.is_none_or(Value::is_null) {
            service["type"] = json!(ServiceType::ClusterIP.as_str());
        }
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
        if let Some(Autoscaling { min, max, cpu }) = self.autoscaling {
            own["autoscaling"] = json!({"enabled": true, "minReplicas": min, "maxReplicas": max});
            if let Some(cpu) = cpu {
                own["autoscaling"]["targetCPUUtilizationPercentage"] = json!(cpu);
            }
        }
        if self.is_told_apart() {
            own["labels"] = json!({"istio": self.own_label()});
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

    #[test]
    fn an_egress_gateway_is_reached_from_within_and_told_apart_by_its_label() {
        let check = |name: &str, label: &str, labels: Value| {
            let gateways = parse(&format!("- {{name: {name}, kind: egress}}\n")).unwrap();
            let values = gateways[0].chart_values("");
            assert_eq!(gateways[0].istio_label(), label);
            assert_eq!(values["service"]["type"], "ClusterIP");
            assert_eq!(values["labels"], labels);
        };
        check("istio-egressgateway", "egressgateway", Value::Null);
        check(
            "way-out",
            "way-out-egress",
            json!({"istio": "way-out-egress"}),
        );
        check("pay-egress", "pay-egress", Value::Null);
    }

    #[test]
    fn an_egress_gateway_stays_within_whatever_else_the_values_say_of_its_service() {
        let check = |values: &str, expect: &str| {
            let gateways = parse(&format!("[{{name: out, kind: egress, values: {values}}}]"));
            let values = gateways.unwrap()[0].chart_values("");
            assert_eq!(values["service"]["type"], expect, "{values}");
        };
        check("{service: {annotations: {a: b}}}", "ClusterIP");
        check("{service: {type: null}}", "ClusterIP");
        check("{service: {type: NodePort}}", "NodePort");
    }

    #[test]
    fn the_label_of_the_pods_is_what_the_chart_makes_of_the_values() {
        let check = |gateway: &str, expect: &str| {
            let gateways = parse(&format!("[{gateway}]")).unwrap();
            assert_eq!(gateways[0].istio_label(), expect, "{gateway}");
            let label = gateways[0].chart_values("")["labels"]["istio"].clone();
            let label = label
                .as_str()
                .map_or_else(|| label.to_string(), str::to_owned);
            let short = gateways[0].name.trim_start_matches("istio-").to_owned();
            let rendered = if label == "null" { short } else { label };
            assert_eq!(rendered, expect, "{gateway}");
        };
        check("{name: istio-edge}", "edge");
        check("{name: istio-edge, values: {labels: {app: a}}}", "edge");
        check("{name: edge, values: {labels: {istio: front}}}", "front");
        check("{name: edge, values: {labels: {istio: 7}}}", "7");
        check(
            "{name: pay-egress, kind: egress, values: {labels: {istio: pay}}}",
            "pay",
        );
        check(
            "{name: out, kind: egress, values: {labels: {istio: front}}}",
            "out-egress",
        );
    }

    #[test]
    fn a_gateway_may_follow_another_revision_than_the_applications() {
        let gateways =
            parse("[{name: a}, {name: b, revision: prod}, {name: c, revision: default}]");
        let gateways = gateways.unwrap();
        let bound = gateways
            .iter()
            .map(|g| g.chart_values("canary")["revision"].clone());
        assert_eq!(
            bound.collect::<Vec<_>>(),
            [json!("canary"), json!("prod"), Value::Null]
        );
    }

    #[test]
    fn bounds_of_an_autoscaler_reach_the_chart() {
        let gateways = parse("- {name: a, autoscaling: {min: 2, max: 9, cpu: 70}}").unwrap();
        assert_eq!(
            gateways[0].chart_values("")["autoscaling"],
            json!({"enabled": true, "minReplicas": 2, "maxReplicas": 9,
                   "targetCPUUtilizationPercentage": 70})
        );
    }
}
