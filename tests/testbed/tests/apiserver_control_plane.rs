//! A real API server without a node: what it serves, what its audit log tells, how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};
use testbed::audit::writes;
use testbed::{Beside, ControlPlane, run};

fn up(beside: Beside) -> ControlPlane {
    ControlPlane::up(beside, &mut |step| println!("{step}")).unwrap()
}

fn deployment() -> Value {
    let labels = json!({"app": "meshy"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "meshy", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "none/none:v1"}]},
            },
        },
    })
}

#[test]
fn an_api_server_alone_applies_objects_and_logs_who_wrote_what() {
    let cluster = up(Beside::Nothing);
    let api = cluster.api().unwrap();
    let mark = cluster.audit().mark(&api).unwrap();
    let path = "/api/v1/namespaces/default/configmaps/meshy";
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "meshy", "namespace": "default"},
        "data": {"a": "b"},
    });
    api.apply(path, &object).unwrap();
    assert_eq!(api.get(path).unwrap()["data"]["a"], "b");
    cluster.audit().mark(&api).unwrap();
    let entries = cluster.audit().since(mark).unwrap();
    // The API server writes objects of its own at any time.
    let written: Vec<_> = writes(&entries)
        .iter()
        .filter(|entry| entry.user.username == "admin")
        .map(|entry| {
            (
                entry.verb.as_str(),
                entry.object.resource.as_str(),
                entry.response.code,
            )
        })
        .collect();
    assert_eq!(written, [("patch", "configmaps", 201)]);
}

#[test]
fn played_pods_become_ready_and_namespaces_end() {
    let cluster = up(Beside::Pods);
    let api = cluster.api().unwrap();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.call(&Method::POST, deployments, Some(&deployment()))
        .unwrap();
    api.wait_deployment("default", "meshy", Duration::from_mins(1))
        .unwrap();

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}});
    api.apply("/api/v1/namespaces/lab", &namespace).unwrap();
    api.delete("/api/v1/namespaces/lab").unwrap();
    let start = Instant::now();
    while api.find("/api/v1/namespaces/lab").unwrap().is_some() {
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "the namespace does not end"
        );
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn an_api_server_that_was_away_knows_what_it_knew() {
    let mut cluster = up(Beside::Nothing);
    let api = cluster.api().unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}});
    api.apply("/api/v1/namespaces/lab", &namespace).unwrap();
    cluster.stop_api_server();
    api.get("/api/v1/namespaces/lab").unwrap_err();
    cluster.start_api_server().unwrap();
    assert_eq!(
        api.get("/api/v1/namespaces/lab").unwrap()["metadata"]["name"],
        "lab"
    );
}

#[test]
fn nothing_is_left_of_a_control_plane_that_was_dropped() {
    let cluster = up(Beside::Nothing);
    let dir = cluster
        .kubeconfig()
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    assert!(!processes_naming(&dir).is_empty());
    drop(cluster);
    assert_eq!(processes_naming(&dir), Vec::<String>::new());
    assert!(!dir.exists());
}

/// Command lines of the processes that name a directory.
fn processes_naming(dir: &Path) -> Vec<String> {
    let all = run::output(run::command("ps").args(["-eo", "args"])).unwrap();
    let dir = dir.to_str().unwrap();
    all.lines()
        .filter(|line| line.contains(dir))
        .map(str::to_owned)
        .collect()
}
