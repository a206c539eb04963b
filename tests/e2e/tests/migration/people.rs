//! People, who type what a step asks for, and the charms, which act as theirs do: what the old charm
//! writes and deletes, and what an integrator writes, are played here with their objects.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::pilot::{GATEWAY, Lab, OLD, custom, filter, route};

/// Applications behind the old charm's ingress.
pub(crate) const APPS: [&str; 2] = ["dash-a", "dash-b"];
/// The application that decides on requests.
pub(crate) const GATE: &str = "authsvc";
const INTEGRATOR: &str = "istio-integrator";

/// Does what a step asks for.
pub(crate) fn act(lab: &Lab, commands: &[String]) -> Result<()> {
    for command in commands {
        println!("        $ {command}");
        let words: Vec<&str> = command.split_whitespace().collect();
        type_in(lab, &words).with_context(|| command.clone())?;
    }
    Ok(())
}

fn type_in(lab: &Lab, words: &[&str]) -> Result<()> {
    match words {
        ["juju", "deploy", INTEGRATOR, ..] => lab.apply([charm_pods(INTEGRATOR), integrated()]),
        ["juju", "remove-relation", "istio-pilot:ingress", app] => lab.delete(&route_path(app)),
        ["juju", "remove-relation", "istio-pilot:ingress-auth", _] => lab.delete(&filter_path()),
        ["juju", "integrate", "istio-integrator:ingress", app] => {
            let app = app.split(':').next().unwrap_or_default();
            let host = format!("{app}-web.{OLD}.svc.cluster.local");
            let gateway = "integrated";
            let name = format!("{app}-integrated");
            lab.apply([route((OLD, &name), &json!({}), gateway, app, &host)])
        }
        ["juju", "integrate", "istio-integrator:ingress-auth", _] => {
            lab.apply([filter("integrated", "istio-integrator.ext_authz")])
        }
        ["juju", "remove-application", "istio-pilot", ..] => {
            // Its remove hook: everything of its relations once more, then the purge.
            lab.pilot_writes()?;
            let purged = lab.purge()?;
            println!("purge: {purged}");
            ensure!(!purged.contains("Removed"), "the purge found something");
            lab.delete(&pods_path("istio-pilot"))
        }
        ["juju", "remove-application", "istio-ingressgateway", ..] => {
            // Its remove hook deletes by name, and fails at the first that it may not.
            for path in [
                format!("/apis/apps/v1/namespaces/{OLD}/deployments/{GATEWAY}"),
                format!("/api/v1/namespaces/{OLD}/services/{GATEWAY}"),
            ] {
                let refused = lab.api.call(&Method::DELETE, &path, None);
                ensure!(refused.is_err(), "{path} was deleted");
            }
            lab.delete(&pods_path("istio-ingressgateway"))
        }
        // The daemon comes after the move; nothing else is a command.
        _ => Ok(()),
    }
}

fn pods_path(application: &str) -> String {
    format!("/apis/apps/v1/namespaces/{OLD}/statefulsets/{application}")
}

fn filter_path() -> String {
    let group = "/apis/networking.istio.io/v1alpha3";
    format!("{group}/namespaces/{OLD}/envoyfilters/istio-pilot-authn-filter")
}

fn route_path(endpoint: &str) -> String {
    let app = endpoint.split(':').next().unwrap_or_default();
    format!("/apis/networking.istio.io/v1/namespaces/{OLD}/virtualservices/{app}-web")
}

/// The integrator's own Gateway.
fn integrated() -> Value {
    let networking = "networking.istio.io/v1";
    let spec = json!({
        "selector": {"istio": "ingressgateway"},
        "servers": [{"hosts": ["*"], "port": {"name": "http", "number": 8080, "protocol": "HTTP"}}],
    });
    custom(networking, "Gateway", OLD, "integrated", &json!({}), &spec)
}

/// The pods of a charm, as far as anybody looks: their `StatefulSet`.
pub(crate) fn charm_pods(application: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": application, "namespace": OLD},
        "spec": {
            "replicas": 0, "serviceName": application,
            "selector": {"matchLabels": {"app.kubernetes.io/name": application}},
            "template": {
                "metadata": {"labels": {"app.kubernetes.io/name": application}},
                "spec": {"containers": [{"name": "charm", "image": "charm"}]},
            },
        },
    })
}
