//! The application goes and takes what is its own, and only then.

mod common;

use common::Lab;
use juju_charm::Event;
use juju_sim::scenario::State;
use serde_json::json;

fn planned(units: u32) -> impl FnOnce(State) -> State {
    move |state| state.planned_units(units)
}

#[test]
fn the_last_units_removal_deletes_what_is_ours_and_no_definition_and_no_namespace() {
    let lab = Lab::installed();
    lab.api.seed(json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "theirs", "namespace": "edge-lab"},
    }));
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "theirs", "namespace": "istio-lab"},
    }));
    lab.change(planned(0)).hook(Event::Remove);
    assert_eq!(
        lab.ours(),
        ["CustomResourceDefinition virtualservices.networking.istio.io"]
    );
    for kept in [
        "Namespace istio-lab",
        "Namespace edge-lab",
        "VirtualService edge-lab/theirs",
        "ConfigMap istio-lab/theirs",
    ] {
        assert!(lab.exists(kept), "{kept} is gone");
    }
    let writes = lab.api.writes();
    assert!(
        writes.iter().all(|write| write.starts_with("DELETE ")),
        "{writes:#?}"
    );
    // Admission goes first: a webhook without a server behind it would refuse pods.
    assert!(
        writes[..3]
            .iter()
            .all(|write| write.contains("webhookconfigurations")),
        "{writes:#?}"
    );
    lab.assert_says("maintenance", &["removed", "CRDs and namespaces are kept"]);
}

#[test]
fn a_unit_that_goes_while_others_stay_deletes_nothing() {
    for leads in [true, false] {
        let lab = Lab::installed();
        lab.change(planned(1)).change(|mut state| {
            state.leader = leads;
            state
        });
        lab.hook(Event::Stop).hook(Event::Remove).assert_untouched();
    }
}

#[test]
fn the_last_unit_removes_also_when_it_does_not_lead_and_when_its_options_are_broken() {
    let lab = Lab::installed();
    lab.change(planned(0))
        .config("namespace", "-")
        .attach_bytes(b"")
        .change(|mut state| {
            state.leader = false;
            state
        });
    lab.hook(Event::Remove);
    assert_eq!(
        lab.ours(),
        ["CustomResourceDefinition virtualservices.networking.istio.io"]
    );
}

#[test]
fn stopping_deletes_nothing() {
    let lab = Lab::installed();
    lab.change(planned(0)).hook(Event::Stop).assert_untouched();
}

#[test]
fn a_removal_that_was_cut_off_fails_so_that_juju_tries_again() {
    let lab = Lab::installed();
    lab.change(planned(0));
    lab.api.die_after_writes(4);
    let error = lab.failing_hook(Event::Remove);
    assert!(
        error.contains("Kubernetes API server not reachable"),
        "{error}"
    );
    lab.api.revive();
    lab.hook(Event::Remove);
    assert_eq!(
        lab.ours(),
        ["CustomResourceDefinition virtualservices.networking.istio.io"]
    );
}

#[test]
fn another_application_of_the_charm_keeps_what_is_its_own() {
    let lab = Lab::installed();
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "theirs", "namespace": "istio-lab", "labels": {
            "app.kubernetes.io/managed-by": "istio-k8s",
            "charms.istio-operators.dev/app": "other",
            "charms.istio-operators.dev/inventory": "control-plane",
            "charms.istio-operators.dev/model": common::MODEL_UUID,
        }},
    });
    lab.api.seed(theirs);
    lab.update_status().change(planned(0)).hook(Event::Remove);
    assert!(lab.exists("Service istio-lab/theirs"));
}
