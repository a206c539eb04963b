//! The engine and a real istiod on a real node: gates, the fields that istiod takes, and the two
//! ways into its pod.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::namespace;
use kube_apply::{Connect, Engine, Gate, Object, ObjectsSet, Query, Stage};
use testbed::build::{Artifact, program};
use testbed::{Node, V1_31, node, run};

const NAMESPACE: &str = "istio-lab";

#[test]
fn a_real_istiod_passes_the_gates_keeps_its_fields_and_answers_both_ways() {
    let files = tempfile::tempdir().expect("a directory");
    let wanted = control_plane(files.path());
    let options = node::Options {
        istio: vec![V1_31],
        ..node::Options::default()
    };
    let node = Node::up(&options, &mut |step| println!("{step}")).expect("a node");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let engine = Engine::connect(&Connect::Kubeconfig(node.kubeconfig())).expect("an engine");
        let applied = engine.apply(&wanted).await.expect("applied");
        assert!(applied.is_complete(), "{applied:?}");
        keeps_its_fields(&engine, &wanted).await;
        answers_both_ways(&engine).await;
    });
}

/// istiod sets `failurePolicy` of its validator once it validates. That is the only contested field,
/// and a second apply writes nothing.
async fn keeps_its_fields(engine: &Engine, wanted: &ObjectsSet) {
    let validator = format!("istio-validator-{NAMESPACE}");
    let query = Query::get(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        None,
        &validator,
    );
    loop {
        let observed = engine
            .observe(std::slice::from_ref(&query))
            .await
            .expect("read");
        let live = observed.objects().next().expect("a validator");
        if live
            .pointer("/webhooks/0/failurePolicy")
            .is_some_and(|policy| policy == "Fail")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let again = engine.apply(wanted).await.expect("applied");
    assert_eq!(again.written, []);
    let [conflict] = again.conflicts.as_slice() else {
        panic!("{:?}", again.conflicts)
    };
    assert_eq!(
        (conflict.object.name.as_str(), conflict.owner.as_str()),
        (&*validator, "pilot-discovery")
    );
    let expect = [".webhooks[name=\"rev.validation.istio.io\"].failurePolicy"];
    assert_eq!(conflict.fields, expect);
}

/// The pod proxy reaches what is open to all; the debug endpoints are for localhost, which a port
/// forward is.
async fn answers_both_ways(engine: &Engine) {
    let pods = Query::list("", "Pod")
        .in_namespace(NAMESPACE)
        .with_labels("app=istiod");
    let observed = engine.observe(&[pods]).await.expect("read");
    let pod = observed
        .objects()
        .next()
        .map(Object::name)
        .expect("a pod")
        .to_owned();
    let proxied = async |port, path| {
        engine
            .pod_proxy_get(NAMESPACE, &pod, port, path)
            .await
            .expect("an answer")
    };
    let forwarded = async |port, path| {
        engine
            .forwarded_get(NAMESPACE, &pod, port, path)
            .await
            .expect("an answer")
    };
    assert_eq!(proxied(8080, "/ready").await.0, 200);
    let (status, metrics) = proxied(15014, "/metrics").await;
    assert!(status == 200 && metrics.contains("istio_build"), "{status}");
    assert_eq!(proxied(8080, "/debug/syncz").await.0, 401);
    for port in [8080, 15014] {
        let (status, syncz) = forwarded(port, "/debug/syncz").await;
        assert_eq!(status, 200, "{syncz}");
        serde_json::from_str::<serde_json::Value>(&syncz).expect("JSON");
    }
    let (status, mesh) = forwarded(8080, "/debug/mesh").await;
    assert!(status == 200 && mesh.contains("rootNamespace"), "{mesh}");
    let nothing = engine
        .forwarded_get(NAMESPACE, &pod, 9, "/")
        .await
        .expect_err("no listener");
    assert!(nothing.is_transient(), "{nothing}");
    let absent = engine
        .forwarded_get(NAMESPACE, "absent", 8080, "/")
        .await
        .expect_err("no pod");
    assert_eq!(
        absent.to_string(),
        format!("Pod {NAMESPACE}/absent not found")
    );
}

/// Istio's base and istiod charts, rendered by Helm, in the order that never breaks injection.
fn control_plane(files: &Path) -> ObjectsSet {
    let payload = V1_31.payload().expect("a payload");
    run::output(
        run::command("tar")
            .arg("xzf")
            .arg(&payload)
            .arg("-C")
            .arg(files),
    )
    .expect("unpacked");
    let charts = files.join(format!("istio-{}/manifests/charts", V1_31.version));
    let values = files.join("values.yaml");
    std::fs::write(&values, testbed::pilot_values()).expect("written");
    let render = |chart: &str| -> Vec<Object> {
        let mut helm = run::command(program(Artifact::Helm).expect("Helm"));
        helm.arg("template")
            .arg("meshy")
            .arg(charts.join(chart))
            .args(["-n", NAMESPACE, "-f"]);
        helm.arg(&values).arg("--set").arg(format!(
            "global.istioNamespace={NAMESPACE},global.hub=registry.istio.io/testing,global.tag={}",
            V1_31.version
        ));
        let text = run::output(&mut helm).expect("rendered");
        Object::all(yaml::parse_all(&text).expect("YAML")).expect("objects")
    };
    let (definitions, accounts): (Vec<Object>, Vec<Object>) = render("base")
        .into_iter()
        .partition(|object| object.kind() == "CustomResourceDefinition");
    // The default validator is cluster-wide and judged by what this test does not install.
    let accounts = accounts
        .into_iter()
        .filter(|object| object.kind() == "ServiceAccount");
    let daemon = render("istio-control/istio-discovery")
        .into_iter()
        .chain(accounts)
        .collect();
    let definitions = definitions
        .into_iter()
        .chain([namespace(NAMESPACE)])
        .collect();
    ObjectsSet {
        wait: Duration::from_mins(3),
        whole: false,
        ..common::set(vec![
            Stage::new("definitions", definitions)
                .gate(Gate::NamespaceActive)
                .gate(Gate::CrdEstablished),
            Stage::new("daemon", daemon)
                .gate(Gate::RolledOut)
                .gate(Gate::CaBundle),
        ])
    }
}
