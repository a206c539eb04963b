//! What istiod makes of a `Gateway` of the Gateway API, and what it says of routes.

use std::collections::BTreeSet;

use juju_sim::scenario::{State, databag};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use serde_json::{Value, json};

use super::{action, bare_cluster, istiod};

const GROUP: &str = "gateway.networking.k8s.io";
const NAME: &str = "gateway.networking.k8s.io/gateway-name";

/// Istio without a gateway, and its class of the Gateway API.
pub fn only_a_class() -> FakeApi {
    let api = bare_cluster();
    api.seed(istiod("istio-lab", "default"));
    class(&api);
    api
}

/// The class that istiod makes where the definitions are.
pub fn class(api: &FakeApi) {
    api.seed(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "GatewayClass",
        "metadata": {"name": "istio"},
        "spec": {"controllerName": "istio.io/gateway-controller"},
    }));
}

/// Somebody else's gateway, which takes routes from here.
pub fn foreign(api: &FakeApi, namespace: &str, name: &str, from: &str) {
    api.seed(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": "istio", "listeners": [
            {"name": "web", "port": 80, "protocol": "HTTP",
                "allowedRoutes": {"namespaces": {"from": from}}}]},
    }));
    run(api, namespace, name, "192.0.2.10");
}

/// istiod has made our own gateway.
pub fn made(api: &FakeApi) {
    run(api, "lab", "istio-gateway", "192.0.2.9");
}

fn run(api: &FakeApi, namespace: &str, gateway: &str, ip: &str) {
    let name = format!("{gateway}-istio");
    let labels = json!({NAME: gateway});
    api.seed(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"serviceAccountName": name, "containers": [
                    {"name": "istio-proxy", "args": ["proxy", "router"]}]},
            },
        },
        "status": {"readyReplicas": 1},
    }));
    api.seed(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "type": "LoadBalancer", "clusterIP": "10.96.0.9", "selector": labels,
            "ports": [{"name": "status-port", "port": 15021}, {"name": "http", "port": 80}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": ip}]}},
    }));
    api.seed(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{name}-0"), "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy", "router"]}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }));
}

/// What the pod of our own gateway answers at a path, so many times.
pub fn answers_at(api: &FakeApi, path: &str, code: u16, body: &str, times: Option<u32>) {
    let path = format!("/api/v1/namespaces/lab/pods/istio-gateway-istio-0:80/proxy{path}");
    api.script("GET", &path, code, body, times);
}

/// istiod says something of a route.
pub fn say(api: &FakeApi, kind: &str, name: &str, condition: &str, status: &str) {
    let id = ObjectRef::namespaced(&format!("{GROUP}/v1"), kind, "lab", name);
    api.edit("pilot-discovery", &id, |route| {
        route["status"] = json!({"parents": [{"conditions": [{
            "type": condition, "status": status,
            "reason": "NotAllowedByListeners", "message": "no listener takes it",
        }]}]});
    });
}

/// An object of the Gateway API, whoever's.
pub fn api_object(api: &FakeApi, kind: &str, name: &str) -> Option<Value> {
    let is = |object: &&Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        version.starts_with(GROUP) && object["kind"] == kind && object["metadata"]["name"] == name
    };
    api.objects().iter().find(is).cloned()
}

/// Our objects.
pub fn our_objects(api: &FakeApi) -> Vec<Value> {
    let ours = |object: &&Value| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-integrator"
    };
    api.objects().iter().filter(ours).cloned().collect()
}

/// Their kinds, sorted, without repetition.
pub fn our_kinds(api: &FakeApi) -> Vec<String> {
    let objects = our_objects(api);
    let kinds = objects.iter().filter_map(|object| object["kind"].as_str());
    let kinds: BTreeSet<&str> = kinds.collect();
    kinds.into_iter().map(str::to_owned).collect()
}

/// How many gateways of Istio's own API are ours.
pub fn classic_gateways(api: &FakeApi) -> usize {
    let is = |object: &&Value| {
        object["kind"] == "Gateway" && object["apiVersion"] == "networking.istio.io/v1"
    };
    our_objects(api).iter().filter(is).count()
}

/// The rows of `list-routes`.
pub fn listed(api: &FakeApi, state: &State) -> Vec<Value> {
    let results = action(api, "list-routes", &json!({"format": "json"}), state);
    serde_json::from_str(&results["routes"]).expect("JSON")
}

/// A granted certificate of a host, and the option that names it.
pub fn with_certificate(host: &str, state: &State) -> State {
    let made = rcgen::generate_simple_self_signed([host.to_owned()]).expect("a certificate");
    let pair = [
        ("tls-crt", made.cert.pem()),
        ("tls-key", made.signing_key.serialize_pem()),
    ];
    let id = "d0q2jf0gjc5s7f1m2abc";
    let option = format!("secret:{id}");
    let state = state.clone().granted_secret(id, databag(pair));
    state.config("tls-secret-id", option)
}
