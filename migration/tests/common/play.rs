//! The played parts: workload controllers, injection by the live webhooks, istiods, Envoys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube_apply::testing::FakeApi;
use kube_apply::{Object, ObjectRef};
use mesh::proxy_status::{ProxyStatus, Sync};
use migration::webhooks::{self, Permutation};
use serde_json::{Value, json};

type Labels = BTreeMap<String, String>;

fn of_kind(fake: &FakeApi, kind: &str) -> Vec<Value> {
    fake.objects_of(kind)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn labels(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

/// Whether a write of this kind makes any of the played parts act.
pub(crate) fn concerns(kind: &str) -> bool {
    kind.ends_with("WebhookConfiguration")
        || matches!(
            kind,
            "Deployment" | "StatefulSet" | "Namespace" | "Service" | "Pod"
        )
}

/// Whether a write of this kind may open a gateway or take a route away.
pub(crate) fn routes(kind: &str) -> bool {
    matches!(kind, "VirtualService" | "EnvoyFilter" | "Gateway")
}

/// What is wrong with the gateway now: a route without anything that asks, and paths that nobody
/// serves.
pub(crate) fn exposed(fake: &FakeApi) -> Vec<String> {
    let mut wrong = Vec::new();
    let filters = of_kind(fake, "EnvoyFilter");
    let guarded = filters.iter().any(|filter| {
        text(filter, "/metadata/namespace") == super::OLD
            && text(filter, "/spec/workloadSelector/labels/istio") == "ingressgateway"
    });
    let served = of_kind(fake, "VirtualService");
    let served: Vec<&str> = served
        .iter()
        .filter(|route| text(route, "/metadata/namespace") == super::OLD)
        .map(|route| text(route, "/spec/http/0/match/0/uri/prefix"))
        .collect();
    if !guarded && !served.is_empty() {
        wrong.push(format!("{served:?} are open to everybody"));
    }
    for path in ["/notebooks/", "/pipelines/"] {
        if !served.contains(&path) {
            wrong.push(format!("nobody serves {path}"));
        }
    }
    wrong
}

/// What a policy of the migration refuses to delete.
pub(crate) fn is_guarded(fake: &FakeApi, id: &ObjectRef) -> bool {
    let policy = |name| {
        let kind = "ValidatingAdmissionPolicyBinding";
        let id = ObjectRef::cluster("admissionregistration.k8s.io/v1", kind, name);
        fake.get(&id).is_some()
    };
    let kept = || {
        let live = fake.get(id).unwrap_or_default();
        live["metadata"]["labels"]["istio-migrate/keep"].is_string()
    };
    (id.kind == "CustomResourceDefinition" && policy("istio-migration-guard"))
        || (policy("istio-migration-gateway") && kept())
}

/// Lets the controllers act; what is wrong with injection now.
pub(crate) fn settle(fake: &FakeApi) -> Vec<String> {
    let mut wrong = Vec::new();
    for kind in ["Deployment", "StatefulSet"] {
        for workload in of_kind(fake, kind) {
            roll_out(fake, &workload, &mut wrong);
        }
    }
    collect(fake);
    tell_root(fake);
    close_validators(fake);
    wrong.extend(several(fake));
    wrong
}

/// Pods whose owner is gone go too.
fn collect(fake: &FakeApi) {
    for pod in of_kind(fake, "Pod") {
        let owner = &pod["metadata"]["ownerReferences"][0];
        let (kind, name) = (text(owner, "/kind"), text(owner, "/name"));
        let (kind, name) = match text(&pod, "/metadata/labels/pod-template-hash") {
            "" => (kind, name),
            hash => (
                "Deployment",
                name.trim_end_matches(hash).trim_end_matches('-'),
            ),
        };
        let namespace = text(&pod, "/metadata/namespace");
        let id = ObjectRef::namespaced("apps/v1", kind, namespace, name);
        if fake.get(&id).is_none() {
            fake.remove(&pod_id(&pod));
        }
    }
}

fn pod_id(pod: &Value) -> ObjectRef {
    ObjectRef::namespaced(
        "v1",
        "Pod",
        text(pod, "/metadata/namespace"),
        text(pod, "/metadata/name"),
    )
}

fn hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    // An empty map and none are one template.
    template
        .to_string()
        .replace("\"annotations\":{},", "")
        .hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn roll_out(fake: &FakeApi, workload: &Value, wrong: &mut Vec<String>) {
    let (kind, name) = (text(workload, "/kind"), text(workload, "/metadata/name"));
    let namespace = text(workload, "/metadata/namespace");
    let template = &workload["spec"]["template"];
    let hash = hash(template);
    let wanted = workload
        .pointer("/spec/replicas")
        .and_then(Value::as_u64)
        .unwrap_or(1);
    let on_delete = text(workload, "/spec/updateStrategy/type") == "OnDelete";
    for number in 0..wanted.max(4) {
        let id = ObjectRef::namespaced("v1", "Pod", namespace, &format!("{name}-{number}"));
        let live = fake.get(&id);
        if number >= wanted {
            if live.is_some() {
                fake.remove(&id);
            }
            continue;
        }
        let current = live
            .as_ref()
            .is_some_and(|live| on_delete || text(live, "/metadata/annotations/hash") == hash);
        if current {
            continue;
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": template["metadata"], "spec": template["spec"],
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        pod["metadata"]["name"] = format!("{name}-{number}").into();
        pod["metadata"]["namespace"] = namespace.into();
        let (owner, owner_name) = if kind == "Deployment" {
            pod["metadata"]["labels"]["pod-template-hash"] = "h4sh".into();
            ("ReplicaSet", format!("{name}-h4sh"))
        } else {
            (kind, name.to_owned())
        };
        pod["metadata"]["ownerReferences"] =
            json!([{"kind": owner, "name": owner_name, "controller": true}]);
        let injected = inject(fake, &mut pod);
        // The only sidecars that may go are those that never were.
        let had = live.is_some_and(|live| {
            live.pointer("/metadata/annotations/sidecar.istio.io~1status")
                .is_some()
        });
        if had && !injected {
            wrong.push(format!(
                "pod {namespace}/{name}-{number} came without a sidecar"
            ));
        }
        pod["metadata"]["annotations"]["hash"] = hash.clone().into();
        if fake.get(&id).is_some() {
            fake.remove(&id);
        }
        fake.seed(pod);
    }
}

/// What the API server and the injector do to a new pod.
pub(crate) fn inject(fake: &FakeApi, pod: &mut Value) -> bool {
    let namespace = text(pod, "/metadata/namespace").to_owned();
    let home = fake
        .get(&ObjectRef::cluster("v1", "Namespace", &namespace))
        .unwrap_or_default();
    let permutation = Permutation {
        namespace: labels(&home["metadata"]["labels"]),
        pod: labels(&pod["metadata"]["labels"]),
    };
    let configurations: Vec<Object> = of_kind(fake, "MutatingWebhookConfiguration")
        .into_iter()
        .map(|value| Object::new(value).expect("an object"))
        .collect();
    let found = webhooks::injectors_of(&configurations, &permutation);
    let Some(istiod) = found.first() else {
        return false;
    };
    let Some((namespace, service)) = istiod.split_once('/') else {
        return false;
    };
    let Some(revision) = serving(fake, namespace, service).map(|(_, revision)| revision) else {
        return false;
    };
    pod["metadata"]["annotations"]["sidecar.istio.io/status"] =
        json!({"revision": revision}).to_string().into();
    let containers = pod["spec"]["containers"]
        .as_array_mut()
        .expect("containers");
    containers.retain(|container| container["name"] != "istio-proxy");
    containers.push(json!({
        "name": "istio-proxy", "image": "hub/proxyv2:1.31.0", "args": ["proxy", "sidecar"],
        "env": [{"name": "CA_ADDR", "value": format!("{service}.{namespace}.svc:15012")}],
    }));
    true
}

/// The running istiod behind a Service: `pod.namespace` and revision.
fn serving(fake: &FakeApi, namespace: &str, service: &str) -> Option<(String, String)> {
    let live = fake.get(&ObjectRef::namespaced("v1", "Service", namespace, service))?;
    if text(&live, "/spec/type") == "ExternalName" {
        let (service, rest) = text(&live, "/spec/externalName").split_once('.')?;
        return serving(fake, rest.split('.').next()?, service);
    }
    let revision = text(&live, "/spec/selector/istio.io~1rev");
    let wanted = if revision.is_empty() {
        "default"
    } else {
        revision
    };
    let istiod = of_kind(fake, "Deployment").into_iter().find(|deployment| {
        text(deployment, "/metadata/namespace") == namespace
            && text(deployment, "/metadata/labels/app") == "istiod"
            && text(deployment, "/metadata/labels/istio.io~1rev") == wanted
            && deployment["spec"]["replicas"] != 0
    })?;
    let name = text(&istiod, "/metadata/name");
    Some((format!("{name}-0.{namespace}"), wanted.to_owned()))
}

/// Who is connected where: each proxy to the istiod that its environment names.
pub(crate) fn proxies(fake: &FakeApi) -> Vec<ProxyStatus> {
    let mut found = Vec::new();
    for pod in of_kind(fake, "Pod") {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let Some(proxy) = containers.into_iter().find(|c| c["name"] == "istio-proxy") else {
            continue;
        };
        let env = proxy["env"].as_array().into_iter().flatten();
        let Some(address) = env.into_iter().find(|v| v["name"] == "CA_ADDR") else {
            continue;
        };
        let mut parts = text(address, "/value").split('.');
        let (Some(service), Some(namespace)) = (parts.next(), parts.next()) else {
            continue;
        };
        let Some((istiod, revision)) = serving(fake, namespace, service) else {
            continue;
        };
        found.push(ProxyStatus {
            proxy: format!(
                "{}.{}",
                text(&pod, "/metadata/name"),
                text(&pod, "/metadata/namespace")
            ),
            kind: "sidecar".to_owned(),
            version: "1.31.0".to_owned(),
            istiod,
            revision,
            cds: Sync::Synced,
            lds: Sync::Synced,
            eds: Sync::Synced,
            rds: Sync::Synced,
        });
    }
    found.sort();
    found
}

/// The root namespace that the mesh configurations of a namespace name.
pub(crate) fn mesh_roots(fake: &FakeApi, namespace: &str) -> Vec<String> {
    let maps = of_kind(fake, "ConfigMap").into_iter();
    let own = maps.filter(|map| text(map, "/metadata/namespace") == namespace);
    own.filter_map(|map| {
        let mesh = text(&map, "/data/mesh");
        let root = mesh
            .lines()
            .find_map(|line| line.strip_prefix("rootNamespace: "));
        root.map(str::to_owned)
    })
    .collect()
}

/// As much of Envoy's configuration as tells which objects it was made from.
pub(crate) fn envoy(fake: &FakeApi) -> String {
    let mut out = String::new();
    let roots = mesh_roots(fake, super::NEW);
    let root = roots.first().map_or(super::OLD, String::as_str);
    for object in fake.objects() {
        let (namespace, name) = (
            text(&object, "/metadata/namespace"),
            text(&object, "/metadata/name"),
        );
        match text(&object, "/kind") {
            "VirtualService" => {
                let _ = writeln!(out, "/namespaces/{namespace}/virtual-service/{name}");
            }
            "AuthorizationPolicy" if namespace == root => {
                let _ = writeln!(out, "ns[{namespace}]-policy[{name}]");
            }
            "EnvoyFilter" if namespace == super::OLD => {
                let filter = text(&object, "/spec/configPatches/0/patch/value/name");
                let _ = writeln!(out, "\"name\": \"{filter}\"");
            }
            _ => {}
        }
    }
    out
}

/// istiod tells every namespace its root.
fn tell_root(fake: &FakeApi) {
    let source = ObjectRef::namespaced("v1", "ConfigMap", super::OLD, "istio-ca-root-cert");
    let Some(told) = fake.get(&source) else {
        return;
    };
    for namespace in of_kind(fake, "Namespace") {
        let name = text(&namespace, "/metadata/name");
        let id = ObjectRef::namespaced("v1", "ConfigMap", name, "istio-ca-root-cert");
        if fake.get(&id).is_none() {
            fake.seed(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "istio-ca-root-cert", "namespace": name}, "data": told["data"],
            }));
        }
    }
}

/// istiod turns its validator to fail closed once it answers.
fn close_validators(fake: &FakeApi) {
    for validator in of_kind(fake, "ValidatingWebhookConfiguration") {
        let service = &validator["webhooks"][0]["clientConfig"]["service"];
        let up = serving(fake, text(service, "/namespace"), text(service, "/name")).is_some();
        if up && validator["webhooks"][0]["failurePolicy"] != "Fail" {
            let name = text(&validator, "/metadata/name");
            let api = "admissionregistration.k8s.io/v1";
            let id = ObjectRef::cluster(api, "ValidatingWebhookConfiguration", name);
            fake.edit("pilot-discovery", &id, |value| {
                value["webhooks"][0]["failurePolicy"] = "Fail".into();
            });
        }
    }
}

/// Permutations that two istiods inject.
fn several(fake: &FakeApi) -> Vec<String> {
    let configurations: Vec<Object> = of_kind(fake, "MutatingWebhookConfiguration")
        .into_iter()
        .map(|value| Object::new(value).expect("an object"))
        .collect();
    let injectors = webhooks::injectors(&configurations, &[]);
    let none: BTreeMap<Permutation, BTreeSet<String>> = BTreeMap::new();
    webhooks::regressions(&none, &injectors)
}

/// The permutations that somebody injects now.
pub(crate) fn injected(fake: &FakeApi) -> BTreeMap<Permutation, BTreeSet<String>> {
    let configurations: Vec<Object> = of_kind(fake, "MutatingWebhookConfiguration")
        .into_iter()
        .map(|value| Object::new(value).expect("an object"))
        .collect();
    let mut found = webhooks::injectors(&configurations, &[]);
    found.retain(|_, injectors| !injectors.is_empty());
    found
}
