//! People, and the charms that act when people do what a step asks for.

use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use serde_json::{Value, json};

use super::OLD;
use super::cluster::{FILTER, GUARD, custom, pilot_objects, workload};
use super::play;

const PURGED: &str = "operator.istio.io/component";

/// Does what one line says; a line that no command is says something to people only.
pub(crate) fn act(fake: &FakeApi, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["juju", "remove-relation", one, other] => relation(fake, one, other, false),
        ["juju", "integrate", one, other] => relation(fake, one, other, true),
        ["juju", "deploy", _, application, ..] => {
            let pods = workload("StatefulSet", OLD, application, 0, json!({}));
            put(fake, &pods, true);
        }
        ["juju", "remove-application", application, ..] => remove(fake, application),
        _ => {}
    }
    assert_eq!(play::settle(fake), Vec::<String>::new(), "{command}");
}

fn relation(fake: &FakeApi, one: &str, other: &str, there: bool) {
    let (Some((charm, endpoint)), Some((application, _))) =
        (one.split_once(':'), other.split_once(':'))
    else {
        return;
    };
    let objects = match (charm, endpoint) {
        ("istio-pilot", "ingress") => of_pilot("VirtualService", application),
        ("istio-pilot", "ingress-auth") => of_pilot("EnvoyFilter", FILTER),
        ("istio-integrator", "ingress") => vec![integrated(application)],
        ("istio-integrator", "ingress-auth") => vec![guard(OLD)],
        _ => Vec::new(),
    };
    for object in objects {
        put(fake, &object, there);
    }
}

fn put(fake: &FakeApi, object: &Value, there: bool) {
    let id = id(object);
    match (fake.get(&id).is_some(), there) {
        (false, true) => fake.seed(object.clone()),
        (true, false) => fake.remove(&id),
        _ => {}
    }
}

fn id(object: &Value) -> ObjectRef {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    ObjectRef::new(
        text("/apiVersion").unwrap_or_default(),
        text("/kind").unwrap_or_default(),
        text("/metadata/namespace"),
        text("/metadata/name").unwrap_or_default(),
    )
}

fn of_pilot(kind: &str, name: &str) -> Vec<Value> {
    let mut all = pilot_objects();
    all.retain(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    all
}

/// The integrator's route for an application, on a Gateway of its own.
fn integrated(application: &str) -> Value {
    let mut route = of_pilot("VirtualService", application).remove(0);
    route["metadata"] = json!({"name": format!("{application}-integrated"), "namespace": OLD});
    route["spec"]["gateways"] = json!([format!("{OLD}/integrated")]);
    route
}

/// The integrator's filter: it selects by all labels that tell the gateway's pods from others.
pub(crate) fn guard(namespace: &str) -> Value {
    let kind = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz";
    custom(
        "networking.istio.io/v1alpha3",
        "EnvoyFilter",
        namespace,
        "integrated",
        json!({}),
        json!({
            "workloadSelector": {"labels": {"app": "istio-ingressgateway", "istio": "ingressgateway"}},
            "configPatches": [{"patch": {"value": {"name": GUARD, "typed_config": {"@type": kind}}}}],
        }),
    )
}

fn remove(fake: &FakeApi, application: &str) {
    match application {
        "istio-ingressgateway" => {
            // Its hook deletes by name.
            let base = "istio-ingressgateway-workload";
            for (version, kind) in [("v1", "Service"), ("apps/v1", "Deployment")] {
                let id = ObjectRef::namespaced(version, kind, OLD, base);
                if fake.get(&id).is_some() && !play::is_guarded(fake, &id) {
                    fake.remove(&id);
                }
            }
        }
        "istio-pilot" => {
            for object in pilot_objects() {
                put(fake, &object, true);
            }
            for object in fake.objects() {
                let id = id(&object);
                if object["metadata"]["labels"][PURGED].is_string() && !play::is_guarded(fake, &id)
                {
                    fake.remove(&id);
                }
            }
        }
        _ => {}
    }
    let pods = ObjectRef::namespaced("apps/v1", "StatefulSet", OLD, application);
    if fake.get(&pods).is_some() {
        fake.remove(&pods);
    }
}
