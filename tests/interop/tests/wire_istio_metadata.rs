//! `istio_metadata`: the databag of the library itself, read by ours, and ours read by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::venv::Venv;
use juju_hooks::Databag;
use relations::IstioMetadata;
use serde_json::{Value, json};

fn run(ask: &Value) -> Value {
    Venv::ready()
        .unwrap()
        .run("istio_metadata.py", ask)
        .unwrap()
}

#[test]
fn the_root_namespace_is_read_both_ways() {
    let ours = IstioMetadata {
        root_namespace: "istio-lab".into(),
    };
    let said = run(&json!({"role": "provider", "root_namespace": "istio-lab"}));
    let bag: Databag = serde_json::from_value(said["app"].clone()).unwrap();
    assert_eq!(IstioMetadata::decode(&bag), Ok(Some(ours.clone())));

    let said = run(&json!({"role": "requirer", "remote_app": ours.encode()}));
    assert_eq!(said["root_namespace"], "istio-lab");
}

#[test]
fn a_provider_that_has_said_nothing_is_no_error_on_either_side() {
    let said = run(&json!({"role": "requirer", "remote_app": {}}));
    assert_eq!(said["root_namespace"], Value::Null);
    assert_eq!(IstioMetadata::decode(&Databag::new()), Ok(None));
}
