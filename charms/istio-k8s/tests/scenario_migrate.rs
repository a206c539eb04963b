//! The application and a migration do not work against each other.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::Lab;
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
