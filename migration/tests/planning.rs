//! Plans: what is refused, what a plan says, and how long a large one takes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::time::Instant;

use common::cluster::{VERSION, move_and_split, request, root, seed_root, split, workload};
use common::{Line, OLD, pilot_cluster, planned, play, snapshot};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use migration::plan::{Class, GatewayChoice, classify};
use migration::{Request, plan, report};
use serde_json::json;

fn istiod() -> ObjectRef {
    ObjectRef::namespaced("apps/v1", "Deployment", OLD, "istiod")
}

async fn refused(fake: &FakeApi, request: &Request) -> Vec<&'static str> {
    let line = Line::new(fake);
    fake.forget_requests();
    let snapshot = snapshot(&line).await;
    let refusals = plan(&snapshot, request).err().unwrap_or_default();
    for refusal in &refusals {
        assert!(!refusal.why.is_empty() && !refusal.remedy.is_empty());
    }
    let writes = fake.writes();
    assert_eq!(writes, Vec::<String>::new());
    refusals.into_iter().map(|refusal| refusal.code).collect()
}

#[tokio::test]
async fn what_is_unsafe_is_refused_before_the_first_write() {
    let check = async |change: &dyn Fn(&FakeApi), expect: &[&str]| {
        let fake = pilot_cluster();
        change(&fake);
        assert_eq!(refused(&fake, &request()).await, expect);
    };
    check(&|_| {}, &[]).await;
    check(
        &|fake| {
            fake.edit(
                "x",
                &ObjectRef::namespaced("v1", "Pod", "appa", "srv-0"),
                |pod| {
                    for container in pod["spec"]["containers"]
                        .as_array_mut()
                        .expect("containers")
                    {
                        if container["name"] == "istio-proxy" {
                            container["image"] = "hub/proxyv2:1.32.1".into();
                        }
                    }
                },
            );
        },
        &["newer-data-plane"],
    )
    .await;
    check(
        &|fake| seed_root(fake, &root("20170101000000Z", "20270101000000Z", 7)),
        &["root-near-expiry"],
    )
    .await;
    check(
        &|fake| {
            fake.remove(&ObjectRef::namespaced(
                "v1",
                "Secret",
                OLD,
                "istio-ca-secret",
            ));
        },
        &["external-ca"],
    )
    .await;
    check(
        &|fake| {
            fake.edit("x", &istiod(), |istiod| {
                let env = &mut istiod["spec"]["template"]["spec"]["containers"][0]["env"];
                env[0]["value"] = "istio-csr".into();
            });
        },
        &["external-ca"],
    )
    .await;
    check(
        &|fake| {
            let mut other = workload("Deployment", "appc", "istiod-x", 1, json!({}));
            other["metadata"]["labels"] = json!({"app": "istiod", "istio.io/rev": "x"});
            other["spec"]["template"]["metadata"]["labels"] =
                json!({"app": "istiod", "istio.io/rev": "x"});
            fake.seed(other);
        },
        &["foreign-control-plane"],
    )
    .await;
    check(
        &|fake| fake.forbid("patch", "deployments.apps"),
        &["missing-rights"],
    )
    .await;
    check(
        &|fake| fake.forbid("list", "envoyfilters.networking.istio.io"),
        &["missing-rights"],
    )
    .await;
    check(
        &|fake| {
            fake.edit("x", &istiod(), |istiod| {
                istiod["metadata"]["labels"]
                    .as_object_mut()
                    .expect("labels")
                    .retain(|key, _| !key.starts_with("operator.istio.io"));
            });
        },
        &["unknown-owner"],
    )
    .await;
    check(&|fake| fake.remove(&istiod()), &["no-source"]).await;
}

#[tokio::test]
async fn another_minor_and_the_same_revision_are_refused() {
    let fake = pilot_cluster();
    let mut other = request();
    let target = other.target.as_mut().expect("a target");
    target.version = "1.32.0".to_owned();
    assert_eq!(refused(&fake, &other).await, ["another-minor"]);
    let mut same = request();
    same.target.as_mut().expect("a target").revision = "default".to_owned();
    assert_eq!(refused(&fake, &same).await, ["same-revision"]);
}

#[tokio::test]
async fn policies_are_classified_by_whom_they_select() {
    let fake = pilot_cluster();
    let line = Line::new(&fake);
    let classes = classify(&snapshot(&line).await, OLD);
    let classes: Vec<(String, Class)> = classes
        .into_iter()
        .map(|(id, class)| (format!("{} {}", id.kind, id.name), class))
        .collect();
    let expect = [
        ("EnvoyFilter istio-pilot-authn-filter", Class::P2),
        ("EnvoyFilter tracer", Class::P1),
        ("AuthorizationPolicy apps", Class::P3),
        ("AuthorizationPolicy blocked", Class::P1),
        ("AuthorizationPolicy edge", Class::P2),
        ("PeerAuthentication default", Class::P1),
    ];
    assert_eq!(
        classes,
        expect.map(|(name, class)| (name.to_owned(), class))
    );
}

#[tokio::test]
async fn the_same_cluster_and_request_give_the_same_plan() {
    let one = planned(&pilot_cluster(), &request()).await;
    let two = planned(&pilot_cluster(), &request()).await;
    assert_eq!(
        serde_json::to_string(&one).expect("json"),
        serde_json::to_string(&two).expect("json")
    );
}

#[tokio::test]
async fn the_steps_come_in_the_order_that_was_proven() {
    let plan = planned(&pilot_cluster(), &request()).await;
    let steps: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    let expect = [
        "guard",
        "disown",
        "relabel",
        "ca",
        "control-plane",
        "webhooks",
        "refresh-appa",
        "refresh-appb",
        "refresh-appc",
        "relabel-namespaces",
        "gateway-kubeflow-lab-istio-ingressgateway-workload",
        "policies",
        "root",
        "filters",
        "injectors",
        "tags",
        "injectors-retire",
        "validator",
        "labels",
        "validators-retire",
        "bridge",
        "drain",
        "policies-retire",
        "remove-old",
        "unreferenced",
        "settle",
        "unguard",
    ];
    assert_eq!(steps, expect);
    assert_eq!(
        plan.point_of_no_return().map(|step| step.id.as_str()),
        Some("remove-old")
    );
}

#[tokio::test]
async fn a_split_without_a_move_leaves_the_control_plane_where_it_is() {
    let plan = planned(&pilot_cluster(), &split(GatewayChoice::KeepAddress)).await;
    let steps: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    let expect = [
        "guard",
        "disown",
        "adopt",
        "bridge-routes",
        "deploy-integrator",
        "hand-over-authorization",
        "hand-over-notebooks",
        "lift-notebooks",
        "hand-over-pipelines",
        "lift-pipelines",
        "lift-authorization",
        "lift-gateway",
        "keep-gateway",
        "remove-gateway-application",
        "adopt-gateway",
        "remove-pilot",
        "sweep",
        "unguard",
    ];
    assert_eq!(steps, expect);
}

#[tokio::test]
async fn commands_for_people_come_in_order() {
    let plan = planned(&pilot_cluster(), &move_and_split(GatewayChoice::Stay)).await;
    let commands: Vec<&str> = plan
        .steps
        .iter()
        .flat_map(|s| &s.commands)
        .map(String::as_str)
        .collect();
    let expect = [
        "juju deploy istio-integrator istio-integrator --trust --config istio-namespace=istio-lab",
        "juju integrate istio-k8s:istio-metadata istio-integrator:istio-metadata",
        "juju remove-relation istio-pilot:ingress-auth AUTH:ingress-auth",
        "juju integrate istio-integrator:ingress-auth AUTH:ingress-auth",
        "juju remove-relation istio-pilot:ingress notebooks:ingress",
        "juju integrate istio-integrator:ingress notebooks:ingress",
        "juju remove-relation istio-pilot:ingress pipelines:ingress",
        "juju integrate istio-integrator:ingress pipelines:ingress",
        "juju remove-application istio-pilot --no-prompt",
    ];
    assert_eq!(commands, expect);
}

#[tokio::test]
async fn what_people_are_asked_for_is_waited_for() {
    for gateway in [
        GatewayChoice::Stay,
        GatewayChoice::KeepAddress,
        GatewayChoice::NewAddress,
    ] {
        for step in planned(&pilot_cluster(), &move_and_split(gateway))
            .await
            .steps
        {
            let waits = !step.after.is_empty() || step.commands.is_empty();
            let takes_back =
                !step.undone.is_empty() || !step.before_undo.is_empty() || step.reverse.is_empty();
            assert!(waits && takes_back, "{gateway:?}: {step:?}");
        }
    }
}

#[tokio::test]
async fn policies_name_both_gateways_when_there_are_two() {
    let plan = planned(&pilot_cluster(), &move_and_split(GatewayChoice::NewAddress)).await;
    let step = plan.step("principals").expect("the step");
    let text = serde_json::to_string(&step.effect).expect("json");
    assert!(
        text.contains("/ns/istio-lab/sa/istio-ingressgateway\""),
        "{text}"
    );
    assert!(text.contains(&format!(
        "/ns/{OLD}/sa/istio-ingressgateway-workload-service-account"
    )));
}

#[tokio::test]
async fn reports_tell_every_step() {
    let plan = planned(&pilot_cluster(), &request()).await;
    let (text, html) = (report::text(&plan, None), report::html(&plan, None));
    for step in &plan.steps {
        assert!(
            text.contains(&step.id) && html.contains(&step.id),
            "{}",
            step.id
        );
    }
    assert!(html.starts_with("<!doctype html>") && html.contains("<svg"));
    assert!(!html.contains("http://") && !html.contains("https://"));
}

#[tokio::test]
async fn a_large_cluster_is_planned_in_seconds() {
    let fake = pilot_cluster();
    for number in 0..500 {
        let name = format!("user-{number:03}");
        fake.seed(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"istio-injection": "enabled"}},
        }));
        for workload_name in ["one", "two"] {
            fake.seed(workload("Deployment", &name, workload_name, 5, json!({})));
            for pod in 0..5 {
                fake.seed(json!({
                    "apiVersion": "v1", "kind": "Pod",
                    "metadata": {
                        "name": format!("{workload_name}-{pod}"), "namespace": name,
                        "labels": {"app": workload_name, "pod-template-hash": "h"},
                        "annotations": {"sidecar.istio.io/status": "{\"revision\":\"default\"}"},
                        "ownerReferences": [{"kind": "ReplicaSet", "name": format!("{workload_name}-h"), "controller": true}],
                    },
                    "spec": {"containers": [{"name": "istio-proxy", "image": format!("hub/proxyv2:{VERSION}")}]},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                }));
            }
        }
    }
    let _ = play::injected(&fake);
    let line = Line::new(&fake);
    let reading = Instant::now();
    let snapshot = snapshot(&line).await;
    let read = reading.elapsed();
    let planning = Instant::now();
    let plan = plan(&snapshot, &request()).expect("a plan");
    let planned = planning.elapsed();
    let size = serde_json::to_vec(&plan).expect("json").len();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap_or("VmHWM: ?");
    println!(
        "500 namespaces, {} pods with proxies: read in {read:.1?}, planned in {planned:.1?}; {} steps, \
         {} KiB; {peak} with the whole played cluster",
        snapshot.pods.len(),
        plan.steps.len(),
        size / 1024
    );
    assert!(plan.steps.len() > 500);
    assert!(snapshot.pods.len() >= 5000);
}
