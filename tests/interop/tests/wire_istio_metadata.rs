//! `istio_metadata`: the databag of the library itself, read by ours, and ours read by it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use interop::peers::{Heard, ask};
use juju_hooks::Databag;
use relations::IstioMetadata;
use serde_json::{Value, json};

fn heard(question: Value) -> Heard {
    ask("istio_metadata", &[question]).unwrap().remove(0)
}

#[test]
fn the_root_namespace_is_read_both_ways() {
    for namespace in ["istio-lab", "1e3", "true", "null"] {
        let ours = IstioMetadata {
            root_namespace: namespace.into(),
        };
        let theirs = heard(json!({"side": "provider", "send": namespace})).app;
        assert_eq!(IstioMetadata::decode(&theirs), Ok(Some(ours.clone())));

        let read = heard(json!({"side": "requirer", "remote_app": ours.encode()})).read;
        assert_eq!(read, namespace);
    }
}

#[test]
fn a_provider_that_has_said_nothing_is_no_error_on_either_side() {
    let read = heard(json!({"side": "requirer", "remote_app": {}}));
    assert_eq!((read.read, read.error), (Value::Null, None));
    assert_eq!(IstioMetadata::decode(&Databag::new()), Ok(None));
}
