//! A move of the control plane in a played cluster: there, back from everywhere, and what remains.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::time::Duration;

use common::cluster::{REVISION, SECRET, request};
use common::{
    Line, NEW, Noon, OLD, attempt, differences, finish, listing, pilot_cluster, planned, play,
};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use migration::execute::{Limits, Silent};
use migration::plan::Strategy;
use migration::{Executor, Request, Stand, report};
use serde_json::json;

fn window() -> Request {
    Request {
        strategy: Strategy::Window,
        ..request()
    }
}

/// What a move changes besides pods and what is in the new namespace: `-` gone, `+` new, `~` changed.
const EXPECTED: &[&str] = &[
    "- AuthorizationPolicy OLD/apps",
    "- AuthorizationPolicy OLD/blocked",
    "- ClusterRole -/istiod-clusterrole-OLD",
    "- ClusterRoleBinding -/istiod-clusterrole-OLD",
    "- ConfigMap OLD/istio",
    "- ConfigMap OLD/istio-leader",
    "- ConfigMap OLD/istio-sidecar-injector",
    "~ CustomResourceDefinition -/authorizationpolicies.security.istio.io",
    "~ CustomResourceDefinition -/virtualservices.networking.istio.io",
    "~ Deployment appa/cli",
    "~ Deployment appa/srv",
    "~ Deployment appb/srv",
    "~ Deployment appc/pick",
    "~ Deployment OLD/istio-ingressgateway-workload",
    "- Deployment OLD/istiod",
    "- EnvoyFilter OLD/tracer",
    "- HorizontalPodAutoscaler OLD/istiod",
    "+ MutatingWebhookConfiguration -/istio-revision-tag-default-istio-lab",
    "- MutatingWebhookConfiguration -/istio-revision-tag-default-OLD",
    "- MutatingWebhookConfiguration -/istio-sidecar-injector-OLD",
    "+ MutatingWebhookConfiguration -/istio-sidecar-injector-m1-istio-lab",
    "+ Namespace -/istio-lab",
    "- PeerAuthentication OLD/default",
    "- PodDisruptionBudget OLD/istiod",
    "~ Service OLD/istio-ingressgateway-workload",
    "- Service OLD/istiod",
    "- Service OLD/istiod-revision-tag-default",
    "~ ServiceAccount OLD/istio-ingressgateway-workload-service-account",
    "- ServiceAccount OLD/istio-reader-service-account",
    "- ServiceAccount OLD/istiod",
    "~ StatefulSet appb/db",
    "- ValidatingWebhookConfiguration -/istio-validator-OLD",
    "+ ValidatingWebhookConfiguration -/istio-validator-m1-istio-lab",
    "~ ValidatingWebhookConfiguration -/istiod-default-validator",
    "~ VirtualService appb/labelled",
];

#[tokio::test(start_paused = true)]
async fn nothing_differs_afterwards_but_what_has_to() {
    let fake = pilot_cluster();
    let before = listing(&fake);
    let violations = finish(&fake, &request()).await;
    assert_eq!(violations, Vec::<String>::new());
    let after = listing(&fake);
    let differing: Vec<String> = differences(&before, &after)
        .into_iter()
        .filter(|line| !line.contains(" Pod ") && !line.contains(&format!(" {NEW}/")))
        .collect();
    let expect: Vec<String> = EXPECTED
        .iter()
        .map(|line| line.replace("OLD", OLD))
        .collect();
    assert_eq!(differing, expect);
    for (namespace, label) in [("appa", "istio-injection"), ("appb", "istio.io/rev")] {
        let id = ObjectRef::cluster("v1", "Namespace", namespace);
        let live = fake.get(&id).expect("there");
        assert!(live["metadata"]["labels"][label].is_string(), "{live}");
    }
    let proxies = play::proxies(&fake);
    assert!(
        proxies.iter().all(|p| p.revision == REVISION),
        "{proxies:#?}"
    );
    assert_eq!(proxies.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_new_control_plane_has_the_old_root_and_the_old_policies() {
    let fake = pilot_cluster();
    finish(&fake, &request()).await;
    let secret = |namespace| {
        let id = ObjectRef::namespaced("v1", "Secret", namespace, "istio-ca-secret");
        fake.get(&id).expect("there")["data"].clone()
    };
    assert_eq!(secret(OLD), secret(NEW));
    for (kind, name) in [
        ("AuthorizationPolicy", "blocked"),
        ("PeerAuthentication", "default"),
    ] {
        let id = ObjectRef::namespaced("security.istio.io/v1", kind, NEW, name);
        assert!(fake.get(&id).is_some(), "{id}");
    }
    // The one that selects the gateway alone holds where it is.
    let edge = ObjectRef::namespaced("security.istio.io/v1", "AuthorizationPolicy", OLD, "edge");
    assert!(fake.get(&edge).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_second_run_does_nothing() {
    let fake = pilot_cluster();
    finish(&fake, &request()).await;
    let after = listing(&fake);
    finish(&fake, &request()).await;
    assert_eq!(differences(&after, &listing(&fake)), Vec::<String>::new());
}

async fn to(fake: &FakeApi, request: &Request, step: &str) {
    let line = Line::new(fake);
    let limits = Limits {
        until: Some(step.to_owned()),
        ..Limits::default()
    };
    let stand = attempt(&line, request, &limits).await.expect("goes");
    assert!(matches!(stand, Stand::Paused { .. }), "{step}: {stand:?}");
}

async fn there_and_back(request: Request) {
    let steps = planned(&pilot_cluster(), &request).await.steps;
    let mut tried = 0;
    for step in steps.iter().take_while(|step| !step.forward_only) {
        let fake = pilot_cluster();
        let before = listing(&fake);
        to(&fake, &request, &step.id).await;
        let line = Line::new(&fake);
        let executor = Executor::new(&line, &Noon, "tester");
        let stand = executor.rollback(&Limits::default(), &Silent).await;
        assert_eq!(stand.expect("back"), Stand::RolledBack, "{}", step.id);
        assert_eq!(line.violations(), Vec::<String>::new(), "{}", step.id);
        let mut left = differences(&before, &listing(&fake));
        // Namespaces are never deleted, and controllers put things into them.
        left.retain(|line| {
            !line.contains(&format!("Namespace -/{NEW}")) && !line.contains("istio-ca-root-cert")
        });
        assert_eq!(left, Vec::<String>::new(), "{}", step.id);
        tried += 1;
    }
    println!("rolled back from {tried} of {} steps", steps.len());
    assert!(tried > 10);
}

#[tokio::test(start_paused = true)]
async fn every_step_before_the_point_of_no_return_can_be_taken_back() {
    there_and_back(request()).await;
}

#[tokio::test(start_paused = true)]
async fn a_window_can_be_taken_back_as_well() {
    there_and_back(window()).await;
}

#[tokio::test(start_paused = true)]
async fn a_window_ends_with_all_proxies_on_the_new_control_plane() {
    let fake = pilot_cluster();
    finish(&fake, &window()).await;
    let proxies = play::proxies(&fake);
    assert!(
        proxies.iter().all(|p| p.revision == REVISION),
        "{proxies:#?}"
    );
    assert_eq!(proxies.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn after_the_point_of_no_return_there_is_no_way_back() {
    let fake = pilot_cluster();
    to(&fake, &request(), "remove-old").await;
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let failure = executor.rollback(&Limits::default(), &Silent).await;
    let told = failure.expect_err("refused").to_string();
    assert_eq!(told, "no way back: step remove-old was begun");
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_is_kept() {
    let fake = pilot_cluster();
    let line = Line::new(&fake);
    let limits = Limits {
        budget: Duration::ZERO,
        ..Limits::default()
    };
    let stand = attempt(&line, &request(), &limits).await.expect("answers");
    let Stand::Paused { step, why } = stand else {
        panic!("{stand:?}")
    };
    assert_eq!(
        (step.as_str(), why.as_str()),
        ("guard", "the time of this call is used up")
    );
}

#[tokio::test(start_paused = true)]
async fn two_do_not_work_on_one_migration() {
    let fake = pilot_cluster();
    to(&fake, &request(), "guard").await;
    let lease = ObjectRef::namespaced(
        "coordination.k8s.io/v1",
        "Lease",
        "istio-migration",
        "istio-migrate",
    );
    fake.edit("other", &lease, |value| {
        value["spec"]["holderIdentity"] = "somebody else".into();
        value["spec"]["renewTime"] = "2026-06-01T11:59:30.000000Z".into();
    });
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let failure = executor
        .run(&Limits::default(), &Silent)
        .await
        .expect_err("busy");
    assert_eq!(failure.to_string(), "somebody else works on this migration");
    fake.edit("other", &lease, |value| {
        value["spec"]["renewTime"] = "2026-06-01T11:58:30.000000Z".into();
    });
    let stand = executor
        .run(&Limits::default(), &Silent)
        .await
        .expect("goes");
    assert_eq!(stand, Stand::Done);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_holds_a_restart_back() {
    let fake = pilot_cluster();
    fake.seed(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "appb"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": 0},
    }));
    let line = Line::new(&fake);
    let stand = attempt(&line, &request(), &Limits::default())
        .await
        .expect("answers");
    let Stand::Paused { step, why } = stand else {
        panic!("{stand:?}")
    };
    assert_eq!(step, "refresh-appb");
    assert!(why.contains("allows no disruption"), "{why}");
    let budget = ObjectRef::namespaced("policy/v1", "PodDisruptionBudget", "appb", "db");
    fake.edit("controller", &budget, |value| {
        value["status"]["disruptionsAllowed"] = 1.into();
    });
    finish(&fake, &request()).await;
}

#[tokio::test(start_paused = true)]
async fn the_key_of_the_mesh_is_shown_nowhere() {
    let fake = pilot_cluster();
    let plan = planned(&fake, &request()).await;
    let hidden = common::cluster::base64(SECRET.as_bytes());
    let shown = [
        serde_json::to_string(&plan).expect("json"),
        report::text(&plan, None),
        report::html(&plan, None),
    ];
    finish(&fake, &request()).await;
    let recorded = fake
        .objects()
        .into_iter()
        .filter(|object| object["kind"] != "Secret");
    let recorded: Vec<String> = recorded.map(|object| object.to_string()).collect();
    for text in shown.iter().chain(&recorded) {
        assert!(!text.contains(SECRET) && !text.contains(&hidden));
    }
}

#[tokio::test(start_paused = true)]
async fn custom_objects_that_were_lost_are_restored_from_the_backup() {
    let fake = pilot_cluster();
    to(&fake, &request(), "guard").await;
    let lost = ObjectRef::namespaced("networking.istio.io/v1", "VirtualService", OLD, "notebooks");
    let before = fake.get(&lost).expect("there")["spec"].clone();
    fake.remove(&lost);
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let made = executor.restore(&Silent).await.expect("restored");
    assert_eq!(made, [lost.to_string()]);
    assert_eq!(fake.get(&lost).expect("back")["spec"], before);
}

#[tokio::test(start_paused = true)]
async fn another_revision_in_the_same_namespace_takes_nothing_of_its_own_away() {
    let request = Request {
        target: Some(common::cluster::target_in(OLD)),
        ..request()
    };
    let fake = pilot_cluster();
    let before = listing(&fake);
    to(&fake, &request, "drain").await;
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let stand = executor.rollback(&Limits::default(), &Silent).await;
    assert_eq!(stand.expect("back"), Stand::RolledBack);
    assert_eq!(line.violations(), Vec::<String>::new());
    assert_eq!(
        differences(&before, &listing(&fake)),
        Vec::<String>::new(),
        "after the way back"
    );
    let fake = pilot_cluster();
    let violations = finish(&fake, &request).await;
    assert_eq!(violations, Vec::<String>::new());
    let proxies = play::proxies(&fake);
    assert!(
        proxies.iter().all(|p| p.revision == REVISION),
        "{proxies:#?}"
    );
    for (kind, name) in [
        ("Service", "istiod-revision-tag-default"),
        ("ServiceAccount", "istio-reader-service-account"),
        ("ConfigMap", "istio-leader"),
    ] {
        let id = ObjectRef::namespaced("v1", kind, OLD, name);
        assert!(fake.get(&id).is_some(), "{id}");
    }
    let gone = ObjectRef::namespaced("apps/v1", "Deployment", OLD, "istiod");
    assert_eq!(fake.get(&gone), None);
}
