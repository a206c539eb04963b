//! What users of other Istio charms suffered from, each as the behaviour that spares them.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, name};
use juju_charm::{Databag, Event};
use juju_hooks::{RelationEvent, RelationKind};
use juju_sim::scenario::{Quirks, Relation};
use kube_apply::ObjectRef;
use relations::IngressConfig;
use serde_json::{Value, json};

const FINE: (&str, &str) = ("active", "Istio 1.31.0 in istio-lab");
const CRD: &str = "CustomResourceDefinition virtualservices.networking.istio.io";

fn webhooks(lab: &Lab) -> Vec<Value> {
    let mut all = lab.api.objects();
    all.retain(|object| {
        object["kind"]
            .as_str()
            .is_some_and(|k| k.ends_with("WebhookConfiguration"))
    });
    all
}

#[test]
fn every_webhook_leads_to_the_namespace_that_istiod_runs_in() {
    for namespace in ["istio-lab", "istio-system", "kubeflow"] {
        let lab = Lab::new();
        lab.config("namespace", namespace).config_changed();
        let all = webhooks(&lab);
        assert_eq!(all.len(), 3, "{namespace}");
        for webhook in all
            .iter()
            .flat_map(|config| config["webhooks"].as_array().unwrap())
        {
            assert_eq!(webhook["clientConfig"]["service"]["namespace"], namespace);
        }
        for object in lab.api.objects() {
            let own = &object["metadata"]["namespace"];
            assert!(
                own.is_null() || *own == namespace || *own == "edge-lab",
                "{}",
                name(&object)
            );
        }
    }
}

#[test]
fn what_istiod_writes_into_its_webhooks_is_never_written_back() {
    let lab = Lab::installed();
    let id = ObjectRef::new(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        None,
        "istio-validator-istio-lab",
    );
    lab.api.edit("pilot-discovery", &id, |config| {
        config["webhooks"][0]["failurePolicy"] = json!("Fail");
        config["webhooks"][0]["clientConfig"]["caBundle"] = json!("bmV3");
    });
    lab.config_changed();
    lab.api.forget_requests();
    lab.config_changed()
        .assert_untouched()
        .assert_status(FINE.0, FINE.1);
    lab.config("mesh-config", "accessLogFile: /dev/stdout")
        .config_changed()
        .assert_status(FINE.0, FINE.1);
    let live = lab.api.get(&id).unwrap();
    assert_eq!(live["webhooks"][0]["failurePolicy"], "Fail");
    assert_eq!(live["webhooks"][0]["clientConfig"]["caBundle"], "bmV3");
}

#[test]
fn removal_takes_the_default_validator_along_so_that_none_is_left_without_a_server() {
    let lab = Lab::installed();
    lab.change(|state| state.planned_units(0))
        .hook(Event::Remove);
    assert_eq!(webhooks(&lab), Vec::<Value>::new());
    let writes = lab.api.writes();
    let first = writes.first().unwrap();
    assert!(
        first.contains("webhookconfigurations"),
        "webhooks go first: {first}"
    );
    assert!(lab.exists(CRD));
}

#[test]
fn scaling_down_losing_the_leader_and_force_delete_nothing() {
    let unit_goes = |lab: &Lab| {
        lab.change(|state| state.planned_units(1))
            .hook(Event::Remove);
    };
    let lab = Lab::installed();
    let before = lab.api.objects();
    unit_goes(&lab);
    assert_eq!(
        lab.api.objects(),
        before,
        "a leader that goes while others stay"
    );
    lab.change(|mut state| {
        state.leader = false;
        state
    });
    unit_goes(&lab);
    for event in [Event::ConfigChanged, Event::UpdateStatus, Event::Stop] {
        lab.hook(event);
    }
    assert_eq!(lab.api.objects(), before);
    lab.assert_untouched();
}

#[test]
fn a_new_leader_goes_on_without_any_other_event() {
    let lab = Lab::new();
    lab.change(|mut state| {
        state.leader = false;
        state
    });
    lab.config_changed().assert_untouched();
    lab.change(|mut state| {
        state.leader = true;
        state
    });
    lab.hook(Event::LeaderElected).assert_status(FINE.0, FINE.1);
}

#[test]
fn removal_leaves_other_istios_and_everybodys_configuration() {
    let lab = Lab::installed();
    lab.api.seed_namespace("other-lab");
    let foreign = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "istiod", "namespace": "other-lab",
                     "labels": {"app": "istiod", "operator.istio.io/component": "Pilot"}},
    });
    let users = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "books", "namespace": "other-lab"},
    });
    lab.api.seed(foreign);
    lab.api.seed(users);
    lab.change(|state| state.planned_units(0))
        .hook(Event::Remove);
    for object in [
        CRD,
        "Deployment other-lab/istiod",
        "VirtualService other-lab/books",
    ] {
        assert!(lab.exists(object), "{object} is gone");
    }
    assert_eq!(lab.ours(), [CRD]);
    lab.hook(Event::Remove);
}

#[test]
fn a_relation_that_breaks_without_telling_who_it_was_is_no_error() {
    let lab = Lab::new();
    let data = IngressConfig {
        service: "auth.lab.svc".to_owned(),
        port: 80,
        ..IngressConfig::default()
    };
    let relation = Relation::new("istio-ingress-config", 7, "inner").remote_app_data(data.encode());
    lab.change(|state| {
        state.relation(relation).quirks(Quirks {
            lists_broken: true,
            hides_app_of_broken: true,
            denies_broken: true,
            ..Quirks::default()
        })
    });
    lab.config_changed().assert_status(FINE.0, FINE.1);
    let mesh = |lab: &Lab| lab.get("v1", "ConfigMap", "istio")["data"]["mesh"].clone();
    assert!(mesh(&lab).to_string().contains("auth.lab.svc"));
    let broken = lab
        .state()
        .get(7)
        .unwrap()
        .event(RelationKind::Broken, None);
    assert!(matches!(
        &broken,
        Event::Relation(RelationEvent {
            kind: RelationKind::Broken,
            ..
        })
    ));
    lab.hook(broken).assert_status(FINE.0, FINE.1);
    assert!(!mesh(&lab).to_string().contains("auth.lab.svc"));
}

#[test]
fn an_ingress_that_says_nobody_is_the_authorizer_costs_the_others_nothing() {
    let lab = Lab::new();
    let mut nobody = IngressConfig::nobody();
    // Across models, the keys of an earlier authorizer stay behind.
    nobody.insert(
        "include_headers_in_check".to_owned(),
        "[\"cookie\"]".to_owned(),
    );
    let relation = Relation::new("istio-ingress-config", 1, "inner").remote_app_data(nobody);
    lab.change(|state| state.relation(relation));
    lab.config_changed().assert_status(FINE.0, FINE.1);
    let told: Databag = lab.state().get(1).unwrap().local_app_data.clone();
    assert_eq!(told, Databag::new());
}

#[test]
fn pods_get_no_affinity_and_no_privileges_that_nobody_asked_for() {
    let lab = Lab::installed();
    for object in lab.api.objects() {
        let pod = &object["spec"]["template"]["spec"];
        assert!(pod["affinity"].is_null(), "{}", name(&object));
        for container in pod["containers"].as_array().into_iter().flatten() {
            assert_ne!(container["securityContext"]["privileged"], json!(true));
        }
    }
}

#[test]
fn a_refusal_says_what_to_run() {
    let check = |option: &str, value: Value, command: &str| {
        let lab = Lab::new();
        lab.config(option, value).config_changed();
        let (status, message) = lab.status();
        assert_eq!(status, "blocked");
        assert!(message.ends_with(&format!("; run: {command}")), "{message}");
    };
    check(
        "revision",
        json!("1.31"),
        "juju config meshy --reset revision",
    );
    check(
        "crd-policy",
        json!("no"),
        "juju config meshy --reset crd-policy",
    );
    check(
        "version",
        json!("1.2.3"),
        "juju config meshy --reset version",
    );
}
