//! The engine against the fake API server: order, gates, pruning, conflicts, and doing nothing.

#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod common;

use std::time::Duration;

use common::{
    account, config_map, crd, deployment, inventory, lantern, names, namespace, object, service,
    set, webhook,
};
use kube_apply::testing::{Controllers, FakeApi};
use kube_apply::{Applied, Conflict, Engine, Error, Gate, ObjectRef, ObjectsSet, Plan, Stage};
use serde_json::json;

fn lab() -> FakeApi {
    let fake = FakeApi::new();
    fake.seed_namespace("istio-lab");
    fake
}

async fn apply(engine: &Engine, set: &ObjectsSet) -> Applied {
    engine.apply(set).await.expect("applied")
}

/// Everything a control plane is made of.
fn control_plane() -> ObjectsSet {
    set(vec![
        Stage::new("definitions", vec![namespace("istio-lab"), crd()])
            .gate(Gate::NamespaceActive)
            .gate(Gate::CrdEstablished),
        Stage::new(
            "daemon",
            vec![
                webhook("validator", "Ignore"),
                deployment("istiod", "pilot:1"),
                service("istiod"),
                config_map("istio", "mesh"),
                account("istiod"),
            ],
        )
        .gate(Gate::RolledOut)
        .gate(Gate::CaBundle),
        Stage::new("routes", vec![lantern("night")]),
    ])
}

#[tokio::test]
async fn objects_are_applied_by_stage_and_inside_a_stage_by_rank() {
    let fake = FakeApi::new();
    let applied = apply(&fake.engine(), &control_plane()).await;
    assert_eq!(
        names(&applied.written),
        [
            "Namespace istio-lab",
            "CustomResourceDefinition lanterns.lab.example.org",
            "ServiceAccount istio-lab/istiod",
            "ConfigMap istio-lab/istio",
            "Service istio-lab/istiod",
            "Deployment istio-lab/istiod",
            "ValidatingWebhookConfiguration validator",
            "Lantern istio-lab/night",
        ]
    );
    assert!(applied.is_complete());
}

#[tokio::test]
async fn a_second_apply_writes_nothing_and_its_plan_is_empty() {
    let fake = FakeApi::new();
    apply(&fake.engine(), &control_plane()).await;
    fake.forget_requests();
    let engine = fake.engine();
    let applied = apply(&engine, &control_plane()).await;
    assert_eq!(
        applied,
        Applied {
            unchanged: 8,
            ..Applied::default()
        }
    );
    let plan = engine.plan(&control_plane()).await.expect("a plan");
    assert!(plan.is_empty(), "{plan}");
    let methods: Vec<String> = fake.requests().into_iter().map(|r| r.method).collect();
    assert!(methods.iter().all(|method| method == "GET"), "{methods:?}");
}

#[tokio::test]
async fn a_hook_without_work_costs_one_list_per_kind() {
    let fake = FakeApi::new().with_istio_kinds();
    apply(&fake.engine(), &control_plane()).await;
    fake.forget_requests();
    apply(&fake.engine(), &control_plane()).await;
    let requests = fake.requests();
    let lists = requests
        .iter()
        .filter(|r| r.path.contains("labelSelector"))
        .count();
    // Besides the lists: discovery, and what carries no label or is not in the kind table.
    assert_eq!(requests.len() - lists, 3, "{requests:?}");
    assert!(lists <= 46, "{lists} lists");
}

#[tokio::test]
async fn what_is_no_longer_desired_is_pruned_and_nothing_else() {
    let fake = lab();
    let engine = fake.engine();
    apply(
        &engine,
        &set(vec![Stage::new(
            "all",
            vec![service("a"), config_map("b", "1"), crd()],
        )]),
    )
    .await;
    fake.seed(service("bystander").into_value());
    let other = ObjectsSet {
        inventory: kube_apply::Inventory {
            name: "routes".to_owned(),
            ..inventory()
        },
        ..set(vec![Stage::new("all", vec![service("other")])])
    };
    apply(&engine, &other).await;
    let applied = apply(&engine, &set(vec![])).await;
    assert_eq!(
        names(&applied.pruned),
        ["Service istio-lab/a", "ConfigMap istio-lab/b"]
    );
    for (id, expect) in [
        (service("bystander").id(), true),
        (service("other").id(), true),
        (crd().id(), true),
        (namespace("istio-lab").id(), true),
        (service("a").id(), false),
    ] {
        assert_eq!(fake.get(&id).is_some(), expect, "{id}");
    }
}

#[tokio::test]
async fn kinds_that_may_not_be_listed_or_deleted_are_skipped_and_reported() {
    let fake = lab();
    fake.forbid("list", "horizontalpodautoscalers.autoscaling");
    fake.forbid("delete", "services");
    let engine = fake.engine();
    apply(
        &engine,
        &set(vec![Stage::new(
            "all",
            vec![service("a"), config_map("b", "1")],
        )]),
    )
    .await;
    let applied = apply(&engine, &set(vec![])).await;
    assert_eq!(names(&applied.pruned), ["ConfigMap istio-lab/b"]);
    assert_eq!(
        applied.not_permitted,
        ["horizontalpodautoscalers.autoscaling", "services"]
    );
}

#[tokio::test]
async fn a_foreign_object_is_left_alone_and_keeps_everything_from_being_pruned() {
    let fake = lab();
    let engine = fake.engine();
    apply(&engine, &set(vec![Stage::new("all", vec![service("old")])])).await;
    fake.seed(config_map("istio", "theirs").into_value());
    fake.forget_requests();
    let wanted = set(vec![Stage::new("all", vec![config_map("istio", "ours")])]);
    let applied = apply(&engine, &wanted).await;
    let conflict = Conflict {
        object: config_map("istio", "").id(),
        owner: "nobody known".to_owned(),
        fields: Vec::new(),
    };
    assert_eq!(
        applied,
        Applied {
            conflicts: vec![conflict.clone()],
            ..Applied::default()
        }
    );
    assert_eq!(fake.writes(), Vec::<String>::new());
    let plan = engine.plan(&wanted).await.expect("a plan");
    assert_eq!(
        plan,
        Plan {
            conflict: vec![conflict],
            ..Plan::default()
        }
    );
}

#[tokio::test]
async fn a_controllers_field_is_not_fought_over() {
    let fake = lab();
    let engine = fake.engine();
    let wanted = set(vec![Stage::new(
        "all",
        vec![webhook("validator", "Ignore")],
    )]);
    apply(&engine, &wanted).await;
    let id = webhook("validator", "").id();
    fake.edit("pilot-discovery", &id, |live| {
        live["webhooks"][0]["failurePolicy"] = "Fail".into();
    });
    let conflict = Conflict {
        object: id.clone(),
        owner: "pilot-discovery".to_owned(),
        fields: vec![".webhooks[name=\"rev.validation.istio.io\"].failurePolicy".to_owned()],
    };
    let plan = engine.plan(&wanted).await.expect("a plan");
    assert_eq!(plan.conflict, std::slice::from_ref(&conflict));
    assert_eq!(apply(&engine, &wanted).await.conflicts, [conflict]);
    assert_eq!(
        fake.get(&id).expect("there")["webhooks"][0]["failurePolicy"],
        "Fail"
    );
}

#[tokio::test]
async fn a_persons_edit_is_overruled() {
    let fake = lab();
    let engine = fake.engine();
    let wanted = set(vec![Stage::new("all", vec![config_map("istio", "ours")])]);
    apply(&engine, &wanted).await;
    let id = config_map("istio", "").id();
    fake.edit("kubectl-edit", &id, |live| {
        live["data"]["key"] = "theirs".into();
    });
    assert_eq!(
        names(&apply(&engine, &wanted).await.written),
        ["ConfigMap istio-lab/istio"]
    );
    assert_eq!(fake.get(&id).expect("there")["data"]["key"], "ours");
}

#[tokio::test]
async fn a_field_that_is_no_longer_desired_is_removed() {
    let fake = lab();
    let engine = fake.engine();
    let mut both = config_map("istio", "1").into_value();
    both["data"]["extra"] = "2".into();
    apply(&engine, &set(vec![Stage::new("all", vec![object(both)])])).await;
    apply(
        &engine,
        &set(vec![Stage::new("all", vec![config_map("istio", "1")])]),
    )
    .await;
    let live = fake.get(&config_map("istio", "").id()).expect("there");
    assert_eq!(live["data"], json!({"key": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_does_not_hold_stops_the_run_before_the_next_stage() {
    let fake = FakeApi::new();
    fake.set_controllers(Controllers {
        roll_out: false,
        ..Controllers::default()
    });
    let engine = fake.engine();
    let mut wanted = control_plane();
    wanted.wait = Duration::from_secs(10);
    let applied = apply(&engine, &wanted).await;
    let pending = applied.pending.expect("a pending gate");
    assert_eq!(pending.what, "istiod 0/1 updated pods ready in istio-lab");
    assert_eq!(
        (pending.stage.as_str(), pending.gate),
        ("daemon", Gate::RolledOut)
    );
    assert_eq!(fake.get(&lantern("night").id()), None);

    fake.set_controllers(Controllers::default());
    let applied = apply(&engine, &wanted).await;
    assert_eq!(names(&applied.written), ["Lantern istio-lab/night"]);
    assert!(applied.is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_comes_to_hold_within_the_budget_lets_the_run_go_on() {
    let fake = FakeApi::new();
    let none = Controllers {
        roll_out: false,
        establish: false,
        ca_bundle: false,
    };
    fake.set_controllers(none);
    let engine = fake.engine();
    let wanted = control_plane();
    let controllers = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.set_controllers(Controllers {
            establish: true,
            ..none
        });
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.set_controllers(Controllers::default());
    };
    let (applied, ()) = tokio::join!(apply(&engine, &wanted), controllers);
    assert!(applied.is_complete(), "{applied:?}");
    assert_eq!(applied.written.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn an_advisory_gate_is_reported_and_holds_nothing_back() {
    let fake = lab();
    fake.set_controllers(Controllers {
        ca_bundle: false,
        ..Controllers::default()
    });
    let engine = fake.engine();
    let wanted = set(vec![
        Stage::new("webhooks", vec![webhook("validator", "Ignore")]).advisory(Gate::CaBundle),
        Stage::new("rest", vec![config_map("istio", "1")]),
    ]);
    let applied = apply(&engine, &wanted).await;
    assert_eq!(applied.pending, None);
    assert_eq!(applied.written.len(), 2);
    let expect = "webhook rev.validation.istio.io of validator has no CA bundle";
    assert_eq!(applied.advisory[0].what, expect);
}

#[tokio::test]
async fn existing_namespaces_are_left_as_they_are() {
    let fake = FakeApi::new();
    let labelled = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "istio-lab", "labels": {"team": "a"}},
    });
    let wanted = set(vec![Stage::new("all", vec![object(labelled.clone())])]);
    apply(&fake.engine(), &wanted).await;
    let made = fake.get(&namespace("istio-lab").id()).expect("made");
    assert_eq!(made["metadata"]["labels"], json!({"team": "a"}));
    fake.edit("kubectl-label", &namespace("istio-lab").id(), |live| {
        live["metadata"]["labels"] = json!({"team": "b"});
    });
    fake.forget_requests();
    apply(&fake.engine(), &wanted).await;
    apply(&fake.engine(), &set(vec![])).await;
    assert_eq!(fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_namespace_or_kind_is_named() {
    let fake = FakeApi::new();
    let engine = fake.engine();
    let check = async |stage: Vec<kube_apply::Object>, expect: &str| {
        let error = engine
            .apply(&set(vec![Stage::new("all", stage)]))
            .await
            .expect_err("refused");
        assert_eq!(error.to_string(), expect);
    };
    check(vec![service("a")], "namespace istio-lab not found").await;
    check(
        vec![lantern("a")],
        "Lantern istio-lab/a: the cluster does not serve lab.example.org/v1",
    )
    .await;
}

#[tokio::test]
async fn an_object_that_is_being_deleted_is_waited_for() {
    let fake = lab();
    let engine = fake.engine();
    let wanted = set(vec![Stage::new("all", vec![config_map("istio", "1")])]);
    apply(&engine, &wanted).await;
    let id = config_map("istio", "").id();
    fake.edit("kubectl", &id, |live| {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    let error = engine.apply(&wanted).await.expect_err("being deleted");
    assert!(error.is_transient(), "{error}");
    assert_eq!(engine.plan(&wanted).await.expect("a plan").create, [id]);
}

#[tokio::test]
async fn a_run_that_was_cut_off_is_completed_by_the_next() {
    for writes in 0..8 {
        let fake = FakeApi::new();
        fake.die_after_writes(writes);
        let error = fake
            .engine()
            .apply(&control_plane())
            .await
            .expect_err("cut off");
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        fake.revive();
        let applied = apply(&fake.engine(), &control_plane()).await;
        assert!(applied.is_complete());
        let plan = fake.engine().plan(&control_plane()).await.expect("a plan");
        assert!(plan.is_empty(), "after {writes} writes: {plan}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_a_few_times() {
    let fake = lab();
    let wanted = set(vec![Stage::new("all", vec![config_map("istio", "1")])]);
    fake.script(
        "PATCH",
        "/api/v1/namespaces/istio-lab/configmaps",
        429,
        "{}",
        Some(2),
    );
    assert_eq!(apply(&fake.engine(), &wanted).await.written.len(), 1);
    fake.script("GET", "/apis", 503, "{}", None);
    let error = fake.engine().apply(&wanted).await.expect_err("busy");
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn adopted_objects_are_ours_and_disowned_ones_are_not() {
    let fake = lab();
    let engine = fake.engine();
    let wanted = set(vec![Stage::new("all", vec![config_map("istio", "ours")])]);
    let ids = [config_map("istio", "").id()];
    fake.seed(config_map("istio", "theirs").into_value());
    fake.edit("lightkube", &ids[0], |live| {
        live["data"]["key"] = "theirs too".into();
    });
    assert_eq!(
        engine.adopt(&inventory(), &ids).await.expect("adopted"),
        ids
    );
    assert_eq!(apply(&engine, &wanted).await.written, ids);
    assert_eq!(
        engine
            .adopt(&inventory(), &ids)
            .await
            .expect("nothing to do"),
        []
    );

    assert_eq!(
        engine.disown(&inventory(), &ids).await.expect("disowned"),
        ids
    );
    assert_eq!(apply(&engine, &set(vec![])).await.pruned, []);
    assert_eq!(apply(&engine, &wanted).await.conflicts.len(), 1);
}

#[tokio::test]
async fn the_content_of_a_secret_appears_nowhere() {
    let fake = lab();
    let engine = fake.engine();
    let secret = |value: &str| {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "key", "namespace": "istio-lab"}, "stringData": {"cookie": value},
        });
        set(vec![Stage::new("all", vec![object(secret)])])
    };
    apply(&engine, &secret("hush")).await;
    let plan = engine.plan(&secret("quiet")).await.expect("a plan");
    let shown = format!("{plan}\n{plan:?}\n{:?}", secret("quiet"));
    for hidden in ["hush", "quiet", "aHVzaA==", "cXVpZXQ="] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    assert!(
        plan.to_string()
            .contains("data.cookie: [redacted] -> [redacted]"),
        "{plan}"
    );
}

#[tokio::test]
async fn answers_of_pods_come_through_the_proxy() {
    let fake = lab();
    let path = "/api/v1/namespaces/istio-lab/pods/istiod-1:15014/proxy/version";
    fake.script("GET", path, 200, "1.31.0", None);
    let engine = fake.engine();
    let answer = engine
        .pod_proxy_get("istio-lab", "istiod-1", 15014, "/version")
        .await;
    assert_eq!(answer.expect("an answer"), (200, "1.31.0".to_owned()));
    let answer = engine
        .pod_proxy_get("istio-lab", "istiod-2", 15014, "/version")
        .await;
    assert_eq!(answer.expect("an answer").0, 404);
}

#[test]
fn an_object_reference_names_what_was_applied() {
    let id = ObjectRef::namespaced("apps/v1", "Deployment", "istio-lab", "istiod");
    assert_eq!(deployment("istiod", "x").id(), id);
}
