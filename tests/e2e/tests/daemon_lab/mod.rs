//! A cluster on which one control plane lives, with workloads behind its gateway.

#![allow(unreachable_pub, reason = "test support")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::lab::{Gateway, HUB};
use e2e::loops::{Loops, injected_by};
use e2e::wait::until;
use e2e::{Juju, Lab};
use http::Method;
use serde_json::{Value, json};
use testbed::{Api, V1_30, V1_31, image};

const MODEL: &str = "daemon-lab";
/// The application.
pub const APP: &str = "mesh";
/// Namespace of istiod.
pub const NAMESPACE: &str = "mesh-lab";
const EDGE: &str = "edge-lab";
const HOST: &str = "apps.example.com";
const LIMIT: Duration = Duration::from_mins(4);

/// The lab.
#[derive(Debug)]
pub struct Life {
    lab: Lab,
    gateway: Gateway,
}

impl Life {
    /// A fresh 1.30 in a namespace of its own, with a gateway and a workload `web` behind it.
    pub fn begin() -> Result<Self> {
        let lab = Lab::up(MODEL, &[V1_30, V1_31])?;
        let gateways = format!(
            "- name: edge\n  namespace: {EDGE}\n  service-type: ClusterIP\n  replicas: 1\n  \
             values: {{resources: {{requests: {{cpu: 10m, memory: 40Mi}}}}}}\n"
        );
        let options = json!({APP: {
            "namespace": NAMESPACE, "hub": HUB, "values": testbed::pilot_values(),
            "gateways": gateways,
        }});
        let options = lab.write("mesh.yaml", options.to_string())?;
        let release = format!("istio-release={}", V1_30.payload()?.display());
        lab.juju.run(&[
            "deploy",
            &Lab::charm("istio-k8s"),
            APP,
            "--trust",
            "--config",
            &options,
            "--resource",
            &release,
        ])?;
        lab.juju
            .wait_status(APP, "active: Istio 1.30.3 in mesh-lab")?;
        let address = lab.service(EDGE, "edge", 80)?;
        let host = HOST.to_owned();
        let life = Self {
            lab,
            gateway: Gateway { address, host },
        };
        let object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway",
            "metadata": {"name": "edge", "namespace": EDGE},
            "spec": {"selector": {"istio": "edge"}, "servers": [
                {"port": {"number": 80, "name": "http", "protocol": "HTTP"}, "hosts": [HOST]}]},
        });
        let path = format!("/apis/networking.istio.io/v1/namespaces/{EDGE}/gateways/edge");
        life.api().apply(&path, &object)?;
        life.workload("web", "web-lab", "istio-injection=enabled")?;
        life.gateway.expect("/web", &[], 200)?;
        Ok(life)
    }

    pub fn api(&self) -> &Api {
        &self.lab.api
    }

    pub fn juju(&self) -> &Juju {
        &self.lab.juju
    }

    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Requests to `web` and pods tried beside it.
    pub fn loops(&self) -> Result<Loops> {
        let kubeconfig = self.lab.kubeconfig();
        Loops::start(kubeconfig, self.gateway.address, HOST, "/web", "web-lab")
    }

    /// Waits for a status that starts so, and gives it.
    pub fn told(&self, status: &str) -> Result<String> {
        self.juju().wait_status(APP, status)
    }

    pub fn config(&self, option: &str) -> Result<()> {
        self.juju().run(&["config", APP, option]).map(drop)
    }

    /// Attaches a release and waits for a status that starts so.
    pub fn attach(&self, payload: &Path, status: &str) -> Result<String> {
        let release = format!("istio-release={}", payload.display());
        self.juju().run(&["attach-resource", APP, &release])?;
        self.told(status)
    }

    pub fn action(&self, name: &str, params: &[&str]) -> Result<Value> {
        self.juju().action(&format!("{APP}/leader"), name, params)
    }

    /// The option `values` under which istiod runs, and one under which it ends at once.
    pub fn values() -> String {
        format!("values={}", testbed::pilot_values())
    }

    pub fn crashing_values() -> String {
        let bad = "pilot:\n  extraContainerArgs: ['--tls-cipher-suites=none']\n";
        format!(
            "values={}",
            testbed::pilot_values().replacen("pilot:\n", bad, 1)
        )
    }

    /// What istiod's Deployment says: its image, and how often it was changed.
    pub fn istiod(&self, name: &str) -> Result<Value> {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}");
        let istiod = self.api().get(&path)?;
        Ok(json!({
            "image": istiod["spec"]["template"]["spec"]["containers"][0]["image"],
            "generation": istiod["metadata"]["generation"],
        }))
    }

    /// The Service that answers for the default validator.
    pub fn validator(&self) -> Result<String> {
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/\
                    istiod-default-validator";
        let config = self.api().get(path)?;
        let name = &config["webhooks"][0]["clientConfig"]["service"]["name"];
        name.as_str().map(str::to_owned).context("no service")
    }

    /// The default validator judges: what makes no sense is refused, by a dry run.
    pub fn refuses_nonsense(&self) -> Result<()> {
        let route = |port: i64| {
            json!({
                "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
                "metadata": {"name": "tried", "namespace": EDGE},
                "spec": {"hosts": [HOST], "http": [{"route": [
                    {"destination": {"host": "web", "port": {"number": 80}}, "weight": port}]}]},
            })
        };
        let path =
            format!("/apis/networking.istio.io/v1/namespaces/{EDGE}/virtualservices?dryRun=All");
        until("a judging validator", LIMIT, || {
            self.api().call(&Method::POST, &path, Some(&route(1)))?;
            let refused = self.api().call(&Method::POST, &path, Some(&route(-1)));
            Ok(refused.is_err().then_some(()))
        })
    }

    /// A workload `name` in a namespace with this label, routed to by `/name`.
    pub fn workload(&self, name: &str, namespace: &str, label: &str) -> Result<()> {
        let (key, value) = label.split_once('=').context("a label")?;
        let api = self.api();
        api.apply(
            &format!("/api/v1/namespaces/{namespace}"),
            &json!({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": namespace, "labels": {key: value}}}),
        )?;
        let metadata = json!({"name": name, "namespace": namespace});
        api.apply(
            &format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
            &json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                "spec": {
                    "selector": {"matchLabels": {"app": name}},
                    "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                    "template": {"metadata": {"labels": {"app": name}}, "spec": {
                        "containers": [{"name": "app", "image": image::TESTAPP,
                            "readinessProbe": {"periodSeconds": 1,
                                               "httpGet": {"path": "/healthz", "port": 8080}},
                            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}]}}},
            }),
        )?;
        api.apply(
            &format!("/api/v1/namespaces/{namespace}/services/{name}"),
            &json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
                "selector": {"app": name},
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}),
        )?;
        if name != "late" {
            let host = format!("{name}.{namespace}.svc.cluster.local");
            api.apply(
                &format!("/apis/networking.istio.io/v1/namespaces/{EDGE}/virtualservices/{name}"),
                &json!({
                    "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
                    "metadata": {"name": name, "namespace": EDGE},
                    "spec": {"hosts": [HOST], "gateways": ["edge"], "http": [{
                        "match": [{"uri": {"prefix": format!("/{name}")}}],
                        "route": [{"destination": {"host": host, "port": {"number": 80}}}]}]},
                }),
            )?;
        }
        api.wait_deployment(namespace, name, LIMIT)
    }

    /// Rolls a workload's pods over, as `kubectl rollout restart` does.
    pub fn restart(&self, namespace: &str, name: &str) -> Result<()> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let mut deployment = self.api().get(&path)?;
        let template = &mut deployment["spec"]["template"]["metadata"];
        template["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now".into();
        self.api().call(&Method::PUT, &path, Some(&deployment))?;
        self.api().wait_deployment(namespace, name, LIMIT)?;
        until("end of the old pods", LIMIT, || {
            let pods = self
                .api()
                .get(&format!("/api/v1/namespaces/{namespace}/pods"))?;
            Ok((pods["items"].as_array().map_or(0, Vec::len) == 1).then_some(()))
        })
    }

    /// All pods of the namespace have proxies of this version.
    pub fn serves(&self, namespace: &str, version: &str) -> Result<()> {
        let pods = self
            .api()
            .get(&format!("/api/v1/namespaces/{namespace}/pods"))?;
        let pods = pods["items"].as_array().context("pods")?;
        ensure!(!pods.is_empty(), "no pods in {namespace}");
        for pod in pods {
            let by = injected_by(pod).context("no proxy")?;
            ensure!(
                by.ends_with(version),
                "{by} instead of {version} in {namespace}"
            );
        }
        Ok(())
    }

    /// Revision and proxy version that a new pod of the namespace would get.
    pub fn injects(&self, namespace: &str) -> Result<String> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asked", "namespace": namespace},
            "spec": {"containers": [{"name": "app", "image": image::TESTAPP}]},
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
        let pod = self.api().call(&Method::POST, &path, Some(&pod))?;
        injected_by(&pod).context("no proxy")
    }
}
