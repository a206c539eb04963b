//! The real node: it runs pods, is reached from the host, and leaves nothing behind.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::build::{Artifact, program};
use testbed::{Node, image, node, run};

const LIMIT: Duration = Duration::from_mins(2);

fn deployment() -> Value {
    let labels = json!({"app": "echo"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "echo", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "main",
                    "image": image::TESTAPP,
                    "imagePullPolicy": "Always",
                    "readinessProbe": {
                        "httpGet": {"path": "/healthz", "port": 8080},
                        "periodSeconds": 1,
                    },
                }]},
            },
        },
    })
}

fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "echo", "namespace": "default"},
        "spec": {
            "type": "NodePort",
            "selector": {"app": "echo"},
            "ports": [{"port": 80, "targetPort": 8080, "nodePort": 30080}],
        },
    })
}

/// Answers of a URL, asked for until they come: kube-proxy is a moment behind the API server.
fn fetch(url: &str) -> Value {
    let start = Instant::now();
    loop {
        let mut curl = run::command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "5", url]);
        match run::output(&mut curl) {
            Ok(text) => return serde_json::from_str(&text).unwrap(),
            Err(error) => assert!(start.elapsed() < LIMIT, "{error:#}"),
        }
        thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_pod_is_served_from_the_host_and_by_name_inside_whatever_becomes_of_another_node() {
    let up = || Node::up(&node::Options::default(), &mut |step| println!("{step}")).unwrap();
    let (other, node) = (up(), up());
    assert_ne!(other.address(), node.address());
    let api = node.api().unwrap();
    api.apply(
        "/apis/apps/v1/namespaces/default/deployments/echo",
        &deployment(),
    )
    .unwrap();
    let service = api
        .apply("/api/v1/namespaces/default/services/echo", &service())
        .unwrap();
    api.wait_deployment("default", "echo", LIMIT).unwrap();
    let elsewhere = other.api().unwrap();
    let echo = elsewhere.find("/apis/apps/v1/namespaces/default/deployments/echo");
    assert!(echo.unwrap().is_none());
    other.down().unwrap();

    let address = service["spec"]["clusterIP"].as_str().unwrap();
    let answer = fetch(&format!("http://{address}/hello?a=b"));
    assert_eq!(answer["path"], "/hello");
    assert_eq!(answer["query"], "a=b");
    let answer = fetch(&format!("http://{}:30080/", node.address()));
    assert!(
        answer["pod"].as_str().unwrap().starts_with("echo-"),
        "{answer}"
    );

    let kubeconfig = node.kubeconfig();
    let mut inside = run::command(program(Artifact::Kubectl).unwrap());
    inside
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(["exec", "deploy/echo", "--"]);
    inside.args([
        "testapp",
        "get",
        "http://echo.default.svc.cluster.local/by-name",
    ]);
    assert!(run::output(&mut inside).unwrap().contains("/by-name"));

    node.down().unwrap();
    assert_vacated();
}

#[test]
fn a_node_whose_owner_is_killed_leaves_nothing() {
    let mut owner = run::command(env!("CARGO_BIN_EXE_testbed"))
        .args(["up", "--foreground", "--istio="])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(Path::new(line.trim()).is_file(), "{line}");
    assert!(!leftovers().is_empty());

    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_vacated();
}

/// Nothing is left of a node once it has ended. Other tests' nodes are kept away meanwhile.
fn assert_vacated() {
    let _vacancy = node::vacant(&mut |step| println!("{step}")).unwrap();
    assert_eq!(leftovers(), Vec::<String>::new());
}

/// Everything a node could leave on the machine.
fn leftovers() -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, text: &str, marks: &[&str]| {
        for line in text
            .lines()
            .filter(|line| marks.iter().any(|mark| line.contains(mark)))
        {
            found.push(format!("{what}: {line}"));
        }
    };
    let list =
        |program: &str, args: &[&str]| run::output(run::command(program).args(args)).unwrap();
    note(
        "link",
        &list("ip", &["-brief", "link"]),
        &["testbed0", "testbed1"],
    );
    note(
        "route",
        &list("ip", &["route"]),
        &["10.244.", "10.96.", "10.200."],
    );
    note(
        "process",
        &list("ps", &["-eo", "args"]),
        &["run/node", "testbed-node-supervisor"],
    );
    note(
        "mount",
        &std::fs::read_to_string("/proc/mounts").unwrap(),
        &["run/node", "kubelet"],
    );
    let groups = ["/sys/fs/cgroup", "-maxdepth", "2", "-name", "testbed-node*"];
    note("cgroup", &list("find", &groups), &["testbed-node"]);
    let runs = testbed::root().join("run");
    note("files", &list("ls", &[runs.to_str().unwrap()]), &["node"]);
    note("files", &list("ls", &["/var/lib"]), &["kubelet"]);
    found
}
