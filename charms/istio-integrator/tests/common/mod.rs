//! A cluster with an Istio in it, and the charm's hooks run against it in this process.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::unwrap_in_result,
    clippy::panic,
    reason = "test support; each test file uses its own part"
)]

pub mod gateway_api;

use std::collections::BTreeMap;

use istio_integrator::IstioIntegrator;
use istio_integrator::cluster::Cluster;
use juju_charm::Event;
use juju_sim::scenario::{Relation, Scenario, State, databag};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use mesh::auth::{DENIED_PATH, GUARD_HEADER, PROBE_BODY, PROBE_PATH};
use relations::{IngressAuth, KubeflowIngress, TraefikIngress, UnitAddress};
use serde_json::{Map, Value, json};

pub const UNIT: &str = "meshy/0";

/// Istio 1.30 in `istio-lab`, a gateway `edge` in `edge-lab` behind a load balancer, one pod.
pub fn cluster() -> FakeApi {
    let api = bare_cluster();
    api.seed(istiod("istio-lab", "default"));
    for object in edge("edge-lab", "edge") {
        api.seed(object);
    }
    api
}

/// Istio's kinds are served, nothing of it runs.
pub fn bare_cluster() -> FakeApi {
    let api = FakeApi::new().with_istio_kinds();
    for namespace in ["lab", "istio-lab", "edge-lab", "back-lab", "twin-lab"] {
        api.seed_namespace(namespace);
    }
    api
}

pub fn istiod(namespace: &str, revision: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": format!("istiod-{revision}"), "namespace": namespace,
            "labels": {"app": "istiod", "istio.io/rev": revision},
        },
        "spec": {
            "selector": {"matchLabels": {"app": "istiod"}},
            "template": {"spec": {"containers": [
                {"name": "discovery", "image": "registry.example/pilot:1.30.3"}]}},
        },
        "status": {"readyReplicas": 1},
    })
}

pub fn edge(namespace: &str, name: &str) -> Vec<Value> {
    let labels = json!({"app": name, "istio": name});
    vec![
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {
                        "labels": labels,
                        "annotations": {"inject.istio.io/templates": "gateway"},
                    },
                    "spec": {"containers": [{"name": "istio-proxy", "image": "auto"}]},
                },
            },
            "status": {"readyReplicas": 1},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "type": "LoadBalancer", "clusterIP": "10.96.0.7", "selector": {"istio": name},
                "ports": [{"name": "http2", "port": 80, "targetPort": 8080}],
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-0"), "namespace": namespace, "labels": labels},
            "spec": {"containers": [{"name": "istio-proxy", "args": ["proxy", "router"]}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }),
    ]
}

/// The authorizer's Service.
pub fn gate_service() -> Value {
    service("lab", "gate", 8080)
}

/// A Service with one port for HTTP.
pub fn service(namespace: &str, name: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": "10.96.0.8", "ports": [{"name": "http", "port": port}]},
    })
}

/// The gateway's Service has a port for TLS, too.
pub fn with_tls(api: &FakeApi) {
    let id = ObjectRef::namespaced("v1", "Service", "edge-lab", "edge");
    api.edit("kubectl", &id, |service| {
        let ports = service["spec"]["ports"].as_array_mut().expect("ports");
        ports.push(json!({"name": "https", "port": 443, "targetPort": 8443}));
    });
}

/// Routes of the application `app`.
pub fn routes(endpoint: &str, id: u32, app: &str, config: &Value) -> Relation {
    let bag = databag([("config", config.to_string())]);
    Relation::new(endpoint, id, app).remote_app_data(bag)
}

/// Our object of a kind.
pub fn our(api: &FakeApi, kind: &str, name: &str) -> Option<Value> {
    let objects = api.objects();
    let named = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(named).cloned()
}

/// What the gateway's pod answers at a path, so many times.
pub fn answers(api: &FakeApi, path: &str, code: u16, body: &str, times: Option<u32>) {
    let path = format!("/api/v1/namespaces/edge-lab/pods/edge-0:8080/proxy{path}");
    api.script("GET", &path, code, body, times);
}

/// The DENY policy is in force from now on.
pub fn denying(api: &FakeApi) {
    answers(api, DENIED_PATH, 403, "RBAC: access denied", None);
}

/// The probe's route answers so many times.
pub fn open(api: &FakeApi, times: u32) {
    answers(api, PROBE_PATH, 200, PROBE_BODY, Some(times));
}

/// The authorizer sends everybody to its login page from now on.
pub fn authorizing(api: &FakeApi) {
    answers(api, PROBE_PATH, 302, "", None);
}

pub fn kubeflow(id: u32, app: &str, prefix: &str) -> Relation {
    let ingress = KubeflowIngress {
        service: format!("{app}-ui"),
        port: 5000,
        namespace: Some("lab".to_owned()),
        prefix: prefix.to_owned(),
        rewrite: Some("/".to_owned()),
    };
    Relation::new("ingress", id, app).remote_app_data(ingress.encode())
}

pub fn traefik(id: u32, app: &str) -> Relation {
    let unit = UnitAddress {
        host: format!("{app}.lab.svc.cluster.local"),
        ip: None,
    };
    let ingress = TraefikIngress {
        model: "lab".to_owned(),
        name: app.to_owned(),
        port: 8080,
        strip_prefix: true,
        redirect_https: false,
        scheme: relations::Scheme::Http,
        units: vec![unit.clone()],
    };
    Relation::new("ingress", id, app)
        .remote_app_data(ingress.encode())
        .remote_unit(0, unit.encode())
}

pub fn gate(id: u32, app: &str) -> Relation {
    let auth = IngressAuth {
        service: "gate".to_owned(),
        port: 8080,
        allowed_request_headers: vec!["cookie".to_owned()],
        allowed_response_headers: vec!["x-user".to_owned()],
    };
    Relation::new("ingress-auth", id, app).remote_app_data(auth.encode())
}

pub fn leader() -> State {
    State::new(UNIT).leader()
}

/// Runs a hook; the clock jumps over waiting.
pub fn hook(api: &FakeApi, event: Event, state: &State) -> State {
    run(api, event, Map::new(), state)
}

pub fn config_changed(api: &FakeApi, state: &State) -> State {
    hook(api, Event::ConfigChanged, state)
}

pub fn action(
    api: &FakeApi,
    name: &str,
    params: &Value,
    state: &State,
) -> BTreeMap<String, String> {
    let after = act(api, name, params, state);
    assert_eq!(after.record.action.failure, None);
    after.record.action.results
}

/// Runs an action that may fail.
pub fn act(api: &FakeApi, name: &str, params: &Value, state: &State) -> State {
    let call = juju_hooks::ActionCall {
        name: name.to_owned(),
        id: "1".to_owned(),
    };
    let params = params.as_object().cloned().unwrap_or_default();
    run(api, Event::Action(call), params, state)
}

fn run(api: &FakeApi, event: Event, params: Map<String, Value>, state: &State) -> State {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let scenario = Scenario::<IstioIntegrator>::new().expect("metadata");
    runtime.block_on(async {
        let fx = Cluster::new(api.engine());
        Box::pin(scenario.run_async(event, params, state, &fx))
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

pub fn status(state: &State) -> (String, String) {
    (
        state.unit_status.status.clone(),
        state.unit_status.message.clone(),
    )
}

#[track_caller]
pub fn assert_status(state: &State, status: &str, message: &str) {
    assert_eq!(
        (
            state.unit_status.status.as_str(),
            state.unit_status.message.as_str()
        ),
        (status, message)
    );
}

/// Our objects, as `Kind namespace/name`.
pub fn ours(api: &FakeApi) -> Vec<String> {
    let mine = |object: &Value| {
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "istio-integrator"
    };
    let name = |object: &Value| {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or("")
        };
        let kind = text("/kind").to_owned();
        format!(
            "{kind} {}/{}",
            text("/metadata/namespace"),
            text("/metadata/name")
        )
    };
    api.objects()
        .iter()
        .filter(|object| mine(object))
        .map(name)
        .collect()
}

/// The kinds of our objects, sorted, without repetition.
pub fn kinds(api: &FakeApi) -> Vec<String> {
    let mut kinds: Vec<String> = ours(api)
        .iter()
        .map(|name| name.split(' ').next().unwrap_or("").to_owned())
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The rules of the default hosts, without the charm's own.
pub fn rules(api: &FakeApi) -> Vec<Value> {
    let Some(service) = our(api, "VirtualService", "meshy-routes") else {
        return Vec::new();
    };
    let own = |rule: &Value| {
        let path = rule["match"][0]["uri"]["exact"].as_str();
        path.is_some_and(|path| [PROBE_PATH, DENIED_PATH].contains(&path))
    };
    let rules = service["spec"]["http"].as_array();
    let rules = rules.into_iter().flatten().filter(|rule| !own(rule));
    rules.cloned().collect()
}

/// The paths routed to a backend or elsewhere, in order, with the backend.
pub fn routed(api: &FakeApi) -> Vec<(String, String)> {
    let mut routed = Vec::new();
    for rule in rules(api) {
        let host = rule["route"][0]["destination"]["host"]
            .as_str()
            .unwrap_or("")
            .to_owned();
        for uri in rule["match"].as_array().into_iter().flatten() {
            let (how, path) = uri["uri"]
                .as_object()
                .and_then(|uri| uri.iter().next())
                .expect("a uri");
            routed.push((
                format!("{how} {}", path.as_str().unwrap_or("")),
                host.clone(),
            ));
        }
    }
    routed
}

/// The value that the routes ask for.
pub fn guard(api: &FakeApi) -> String {
    let rules = rules(api);
    let guard = &rules.first().expect("a rule")["match"][0]["headers"][GUARD_HEADER]["exact"];
    guard.as_str().expect("a guard").to_owned()
}

pub fn app_data<'a>(state: &'a State, id: u32, key: &str) -> Option<&'a str> {
    let relation = state
        .relations
        .iter()
        .find(|relation| relation.id.0 == id)
        .expect("a relation");
    relation.local_app_data.get(key).map(String::as_str)
}

pub fn empty_relation(endpoint: &str, id: u32, app: &str) -> Relation {
    Relation::new(endpoint, id, app).remote_app_data(databag::<String, String>([]))
}
