//! The application and a migration do not work against each other.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests are tests"
)]

mod common;

use common::Lab;
use kube_apply::ObjectRef;
use migration::execute::{Clock as _, Limits, Silent, SystemClock};
use migration::plan::{Action, Phase, Place, Step, Strategy};
use migration::{Executor, Plan, Snapshot};
use serde_json::{Value, json};

/// A migration as far as the application sees it.
fn journal(lab: &Lab, journal: &Value) {
    lab.api.seed_namespace("istio-migration");
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "journal", "namespace": "istio-migration"},
        "data": {"journal.json": journal.to_string()},
    }));
}

#[test]
fn nothing_is_installed_while_another_istio_awaits_its_migration() {
    let lab = Lab::new();
    lab.config("migrate-from", "kubeflow-lab").config_changed();
    lab.assert_says(
        "blocked",
        &["waits for the migration of the Istio in kubeflow-lab"],
    );
    lab.assert_untouched();
}

#[test]
fn a_running_migration_holds_the_application_back() {
    let lab = Lab::installed();
    journal(
        &lab,
        &json!({"plan": "ab12", "steps": {"guard": "done"}, "back": false, "ended": false}),
    );
    lab.api.forget_requests();
    lab.config("replicas", 3).config_changed();
    lab.assert_says("waiting", &["migration ab12 is under way"]);
    lab.assert_untouched();
}

#[test]
fn after_its_end_the_application_goes_on() {
    let lab = Lab::installed();
    journal(
        &lab,
        &json!({"plan": "ab12", "steps": {}, "back": false, "ended": true}),
    );
    lab.config("migrate-from", "kubeflow-lab").config_changed();
    assert_eq!(lab.status().0, "active");
}

#[test]
fn a_migration_that_was_taken_back_is_awaited_again() {
    let lab = Lab::new();
    journal(
        &lab,
        &json!({"plan": "ab12", "steps": {}, "back": true, "ended": true}),
    );
    lab.config("migrate-from", "kubeflow-lab").config_changed();
    assert_eq!(lab.status().0, "blocked");
    lab.assert_untouched();
}

#[test]
fn the_action_says_why_it_does_not_begin() {
    let lab = Lab::new();
    let answer = lab.action(
        "migrate",
        json!({"from-namespace": "kubeflow-lab", "dry-run": true}),
    );
    let why = answer.failure.unwrap();
    assert!(why.contains("no istiod in namespace kubeflow-lab"), "{why}");
    lab.assert_untouched();
}

#[test]
fn a_record_that_nobody_can_read_is_no_licence_to_go_on() {
    let lab = Lab::installed();
    lab.api.seed_namespace("istio-migration");
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "journal", "namespace": "istio-migration"}, "data": {"some": "thing"},
    }));
    lab.api.forget_requests();
    lab.config("replicas", 3).config_changed();
    lab.assert_says("blocked", &["ConfigMap istio-migration/journal"]);
    lab.assert_untouched();
    let answer = lab.action("migrate", json!({"from-namespace": "kubeflow-lab"}));
    let why = answer.failure.unwrap();
    assert!(why.contains("ConfigMap istio-migration/journal"), "{why}");
    lab.assert_untouched();
}

fn step(name: &str) -> Step {
    Step {
        id: name.to_owned(),
        title: String::new(),
        why: String::new(),
        phase: Phase::Prepare,
        before: Vec::new(),
        effect: vec![Action::Delete {
            object: ObjectRef::namespaced("v1", "ConfigMap", "istio-lab", name),
        }],
        after: Vec::new(),
        undo: Vec::new(),
        before_undo: Vec::new(),
        undone: Vec::new(),
        reverse: Vec::new(),
        commands: Vec::new(),
        forward_only: false,
    }
}

/// A migration of two steps, the first of which is done.
fn half_way(lab: &Lab) {
    let plan = Plan {
        id: "ab12".to_owned(),
        strategy: Strategy::ZeroDowntime,
        from: Place {
            namespace: "kubeflow-lab".to_owned(),
            revision: "default".to_owned(),
            version: None,
        },
        to: None,
        manager: "meshy".to_owned(),
        root: None,
        injected: Vec::new(),
        steps: vec![step("one"), step("two")],
        notes: Vec::new(),
        by_hand: Vec::new(),
        backup: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let engine = lab.api.engine();
        let now = SystemClock.now();
        let snapshot = Snapshot::read(&engine, "kubeflow-lab", "istio-lab", now).await;
        let executor = Executor::new(&engine, &SystemClock, "tester");
        executor.begin(&plan, &snapshot.unwrap()).await.unwrap();
        let limits = Limits {
            until: Some("one".to_owned()),
            ..Limits::default()
        };
        executor.run(&limits, &Silent).await.unwrap();
    });
    lab.api.forget_requests();
}

#[test]
fn a_dry_run_of_the_way_back_says_what_it_would_take_back_and_takes_nothing_back() {
    let lab = Lab::new();
    half_way(&lab);
    let answer = lab.action("migrate", json!({"rollback": true, "dry-run": true}));
    assert_eq!(answer.failure, None);
    assert_eq!(answer.results["would-take-back"], "one");
    lab.assert_untouched();
}

#[test]
fn a_step_that_is_not_the_next_or_none_is_refused_before_anything_is_done() {
    let lab = Lab::new();
    half_way(&lab);
    for (params, expect) in [
        (json!({"until": "fly"}), "the plan has no step fly"),
        (json!({"step": "fly"}), "the plan has no step fly"),
        (json!({"step": "one"}), "the next step is two, not one"),
    ] {
        let answer = lab.action("migrate", params);
        assert_eq!(answer.failure.as_deref(), Some(expect));
    }
    lab.assert_untouched();
    let answer = lab.action("migrate", json!({"step": "two"}));
    assert_eq!(answer.failure, None);
    assert_eq!(answer.results["stand"], "done");
}
