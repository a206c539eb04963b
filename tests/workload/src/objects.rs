//! The server's objects.

use std::time::Duration;

use juju_charm::ModelView;
use kube_apply::{Gate, Inventory, Object, ObjectsSet, Owner, Stage};
use serde_json::{Value, json};

/// Port of the Service.
pub const HTTP_PORT: u16 = 8080;

/// Juju's label of an application's pods: a Service that selects by it is the application's own.
const OWN: &str = "app.kubernetes.io/name";

/// How long a hook waits for the server to run.
const ROLLOUT: Duration = Duration::from_mins(1);

/// Name of the Service: Juju itself has one with the application's name.
pub fn service_name(view: &ModelView) -> String {
    format!("{}-web", view.context.app)
}

/// The Service's name in the whole cluster.
pub(crate) fn service_host(view: &ModelView) -> String {
    format!(
        "{}.{}.svc.cluster.local",
        service_name(view),
        view.context.model_name
    )
}

/// No objects.
pub(crate) fn nothing(charm: &str, view: &ModelView) -> ObjectsSet {
    set(charm, view, Vec::new())
}

/// The server, started with `args`.
pub(crate) fn server(charm: &str, args: &[&str], view: &ModelView) -> ObjectsSet {
    let objects = [deployment(args, view), service(view)];
    // Both have the names that `Object` asks for.
    let objects = objects
        .into_iter()
        .filter_map(|value| Object::new(value).ok())
        .collect();
    set(
        charm,
        view,
        vec![Stage::new("server", objects).advisory(Gate::RolledOut)],
    )
}

fn set(charm: &str, view: &ModelView, stages: Vec<Stage>) -> ObjectsSet {
    let owner = Owner {
        charm: charm.to_owned(),
        model_uuid: view.context.model_uuid.to_string(),
        app: view.context.app.to_string(),
    };
    let inventory = Inventory {
        owner,
        name: "server".to_owned(),
    };
    ObjectsSet {
        inventory,
        stages,
        retain: Vec::new(),
        wait: ROLLOUT,
        whole: false,
    }
}

fn deployment(args: &[&str], view: &ModelView) -> Value {
    let app = view.context.app.as_str();
    let inject = view.config.bool("inject").unwrap_or(false);
    let labels = json!({
        "app": app,
        OWN: app,
        "sidecar.istio.io/inject": inject.to_string(),
    });
    let mut container = json!({
        "name": "server",
        "image": view.config.str("image").unwrap_or_default(),
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "PORT", "value": HTTP_PORT.to_string()}],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": "http"},
            "periodSeconds": 1,
        },
    });
    if !args.is_empty() {
        container["args"] = json!(args);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": app,
            "namespace": view.context.model_name.as_str(),
            "labels": {"app": app},
        },
        "spec": {
            "replicas": view.config.int("replicas").unwrap_or(1),
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 10, "containers": [container]},
            },
        },
    })
}

fn service(view: &ModelView) -> Value {
    let app = view.context.app.as_str();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": service_name(view),
            "namespace": view.context.model_name.as_str(),
            "labels": {"app": app},
        },
        "spec": {
            "selector": {"app": app, OWN: app},
            "ports": [{"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}
