//! Proxies are restarted with care, and a workload proves the mesh.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, Release};
use kube_apply::ObjectRef;
use serde_json::{Value, json};

const STATUS: &str = "sidecar.istio.io/status";

fn pod(name: &str, image: &str, owner: (&str, &str)) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "web-lab", "labels": {"app": "web"},
            "annotations": {STATUS: "{\"revision\":\"default\"}"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner.0, "name": owner.1,
                                 "uid": "u", "controller": true}],
        },
        "spec": {"containers": [{"name": "istio-proxy", "image": image}]},
        "status": {"phase": "Running"},
    })
}

fn workload(kind: &str, name: &str, ready: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "web-lab", "generation": 1},
        "spec": {"replicas": 1, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": []},
        }},
        "status": {"observedGeneration": 1, "replicas": ready, "updatedReplicas": ready,
                   "availableReplicas": ready, "readyReplicas": ready},
    })
}

/// A lab with a Deployment and a `StatefulSet` on an old proxy; the injector gives `new`.
fn lab(new: Option<&str>) -> Lab {
    let lab = Lab::new();
    lab.api.seed_namespace("web-lab");
    lab.api.seed(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "web-lab", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": true},
        ]},
    }));
    lab.api
        .seed(pod("web-1-a", "proxyv2:1.30.3", ("ReplicaSet", "web-1")));
    lab.api
        .seed(pod("db-0", "proxyv2:1.30.3", ("StatefulSet", "db")));
    lab.api.seed(workload("Deployment", "web", 1));
    lab.api.seed(workload("StatefulSet", "db", 1));
    let mut injected = pod("istio-restart-probe", new.unwrap_or("x"), ("x", "x"));
    if new.is_none() {
        injected["spec"]["containers"] = json!([]);
    }
    let body = injected.to_string();
    lab.api
        .script("POST", "/api/v1/namespaces/web-lab/pods$", 201, &body, None);
    lab
}

fn restart(lab: &Lab, dry_run: bool) -> std::collections::BTreeMap<String, String> {
    let params = json!({"namespace": "", "revision": "", "batch": 3, "dry-run": dry_run});
    let answer = lab.action("restart-proxies", params);
    assert_eq!(answer.failure, None, "{:?}", answer.results);
    answer.results
}

#[test]
fn a_deployment_rolls_and_a_stateful_sets_pod_is_evicted() {
    let lab = lab(Some("proxyv2:1.31.0"));
    let shown = restart(&lab, true);
    assert_eq!(
        shown["behind"],
        "Deployment web-lab/web: 1 pods to proxyv2:1.31.0 of default\n\
         StatefulSet web-lab/db: 1 pods to proxyv2:1.31.0 of default"
    );
    lab.assert_untouched();
    let done = restart(&lab, false);
    assert_eq!(
        (done["restarted"].as_str(), done["remaining"].as_str()),
        ("2", "0")
    );
    let id = ObjectRef::namespaced("apps/v1", "Deployment", "web-lab", "web");
    let annotations =
        lab.api.get(&id).unwrap()["spec"]["template"]["metadata"]["annotations"].clone();
    assert!(annotations.to_string().contains("proxyv2:1.31.0"));
    assert!(
        lab.api
            .get(&ObjectRef::namespaced("v1", "Pod", "web-lab", "db-0"))
            .is_none()
    );
    assert!(
        lab.exists("Pod web-lab/web-1-a"),
        "the Deployment's own business"
    );
}

#[test]
fn proxies_that_are_what_the_injector_gives_are_left_alone() {
    let lab = lab(Some("proxyv2:1.30.3"));
    let done = restart(&lab, false);
    assert_eq!(
        (done["behind"].as_str(), done["restarted"].as_str()),
        ("", "0")
    );
    lab.assert_untouched();
}

#[test]
fn a_restart_that_would_take_a_sidecar_away_is_left_to_a_person() {
    let lab = lab(None);
    let done = restart(&lab, false);
    assert!(
        done["needs-a-person"].contains("Deployment web-lab/web: a restart would take its sidecar")
    );
    lab.assert_untouched();
}

#[test]
fn a_budget_without_room_is_honoured() {
    let lab = lab(Some("proxyv2:1.31.0"));
    lab.api.seed(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "web-lab"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }));
    let done = restart(&lab, false);
    assert_eq!(done["restarted"], "0");
    assert!(done["needs-a-person"].contains("PodDisruptionBudget keep allows no disruption"));
    lab.assert_untouched();
}

#[test]
fn a_workload_that_is_not_whole_and_a_pod_of_nobody_are_left_to_a_person() {
    let lab = lab(Some("proxyv2:1.31.0"));
    lab.controllers(false, true, true)
        .api
        .seed(workload("StatefulSet", "db", 0));
    let web = ObjectRef::namespaced("v1", "Pod", "web-lab", "web-1-a");
    lab.api.remove(&web);
    let mut bare = pod("alone", "proxyv2:1.30.3", ("x", "x"));
    bare["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("ownerReferences");
    lab.api.seed(bare);
    let done = restart(&lab, false);
    assert!(done["needs-a-person"].contains("StatefulSet web-lab/db: it is not whole"));
    assert!(done["needs-a-person"].contains("Pod web-lab/alone: nobody would make the pod again"));
    assert!(lab.exists("Pod web-lab/db-0"));
}

#[test]
fn a_run_that_was_cut_off_is_resumed_by_the_next() {
    let lab = lab(Some("proxyv2:1.31.0"));
    lab.api.die_after_writes(1);
    let params = json!({"namespace": "", "revision": "", "batch": 1, "dry-run": false});
    assert!(lab.action("restart-proxies", params).failure.is_some());
    lab.api.revive();
    let done = restart(&lab, false);
    assert_eq!(done["remaining"], "0");
    assert!(!lab.exists("Pod web-lab/db-0"));
}

#[test]
fn with_the_option_each_hook_restarts_a_few_and_without_it_none() {
    for (option, gone) in [("manual", false), ("rolling", true)] {
        let lab = lab(Some("proxyv2:1.31.0"));
        lab.config("restart-proxies", option).config_changed();
        lab.assert_status("active", "Istio 1.31.0 in istio-lab");
        assert_eq!(!lab.exists("Pod web-lab/db-0"), gone, "{option}");
    }
}

#[test]
fn a_hook_tries_no_workload_whose_proxy_is_the_usual_one() {
    let config = "manifests/charts/istio-control/istio-discovery/templates/config.yaml";
    let values = "data:\n  values: '{\"global\": {\"hub\": \"registry.example\", \"tag\": \"1.31.0\", \
                  \"proxy\": {\"image\": \"proxyv2\"}}}'\n  config:";
    let release = Release::of("1.31.0").edit(config, "data:\n  config:", values);
    for (proxy, tried) in [("proxyv2:1.31.0", 0), ("proxyv2:1.30.3", 2)] {
        let proxy = format!("registry.example/{proxy}");
        let lab = lab(Some("registry.example/proxyv2:1.31.0"));
        lab.api
            .seed(pod("web-1-a", &proxy, ("ReplicaSet", "web-1")));
        lab.api.seed(pod("db-0", &proxy, ("StatefulSet", "db")));
        lab.attach(&release)
            .config("restart-proxies", "rolling")
            .config_changed();
        let requests = lab.api.requests();
        let probes = requests.iter().filter(|r| {
            r.method == "POST" && r.path.starts_with("/api/v1/namespaces/web-lab/pods?")
        });
        assert_eq!(probes.count(), tried, "{proxy}");
    }
}

/// A lab in which a client without a sidecar and one with another identity end as `refused` says.
fn provable(refused: i64) -> Lab {
    let lab = Lab::new();
    for (group, kind, plural) in [
        (
            "security.istio.io",
            "PeerAuthentication",
            "peerauthentications",
        ),
        (
            "security.istio.io",
            "AuthorizationPolicy",
            "authorizationpolicies",
        ),
        ("networking.istio.io", "VirtualService", "virtualservices"),
    ] {
        lab.api.serve(group, "v1beta1", kind, plural, true);
    }
    let pods = "/api/v1/namespaces/meshy-verify/pods";
    let mut server = pod("server", "proxyv2:1.31.0", ("x", "x"));
    server["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    lab.api.script(
        "GET",
        &format!("{pods}/server"),
        200,
        &server.to_string(),
        None,
    );
    let ended = |code: i64| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"},
            "status": {"containerStatuses": [
                {"name": "client", "state": {"terminated": {"exitCode": code}}},
            ]},
        })
    };
    for (check, code) in [
        ("mtls", 0),
        ("routing", 0),
        ("no-plaintext", refused),
        ("denial", refused),
    ] {
        let path = format!("{pods}/{check}-");
        lab.api
            .script("GET", &path, 200, &ended(code).to_string(), None);
    }
    lab
}

fn verify(lab: &Lab) -> juju_sim::scenario::ActionRecord {
    lab.action(
        "verify",
        json!({"revision": "", "server-image": "a", "server-args": "", "client-image": "b",
               "client-command": "get"}),
    )
}

#[test]
fn a_mesh_is_proven_and_the_scratch_namespace_is_gone() {
    let lab = provable(22);
    let answer = verify(&lab);
    assert_eq!(answer.failure, None, "{:?}", answer.results);
    for check in ["injection", "mtls", "routing", "no-plaintext", "denial"] {
        assert_eq!(answer.results[check], "passed");
    }
    assert!(!lab.exists("Namespace meshy-verify"));
}

#[test]
fn a_mesh_that_refuses_nobody_is_not_proven_and_the_scratch_namespace_is_gone() {
    let lab = provable(0);
    let answer = verify(&lab);
    let failure = answer.failure.unwrap();
    assert!(failure.contains("no-plaintext: not so"), "{failure}");
    assert_eq!(answer.results["mtls"], "passed");
    assert!(!lab.exists("Namespace meshy-verify"));
}

#[test]
fn a_namespace_of_the_scratch_name_that_is_somebody_elses_is_not_touched() {
    let lab = provable(22);
    lab.api.seed_namespace("meshy-verify");
    let failure = verify(&lab).failure.unwrap();
    assert!(failure.contains("somebody else's"), "{failure}");
    lab.assert_untouched();
}

#[test]
fn what_a_killed_proof_left_behind_goes_first() {
    let lab = provable(22);
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "meshy-verify", "labels": {"charms.istio-operators.dev/verify": "true"}},
    }));
    assert_eq!(verify(&lab).failure, None);
    let writes = lab.api.writes();
    assert_eq!(writes[0], "DELETE /api/v1/namespaces/meshy-verify");
}
