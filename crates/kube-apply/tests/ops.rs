//! Plain operations against the fake API server.

#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod common;

use common::{config_map, crd, deployment, lantern, object};
use kube_apply::testing::FakeApi;
use kube_apply::{Access, Delete, Error, Evicted, Object, ObjectRef};
use serde_json::{Value, json};

fn lab() -> FakeApi {
    let fake = FakeApi::new();
    fake.seed_namespace("istio-lab");
    fake
}

fn id(name: &str) -> ObjectRef {
    config_map(name, "").id()
}

fn value_of(object: &Object) -> Option<&str> {
    object.pointer("/data/key").and_then(Value::as_str)
}

#[tokio::test]
async fn an_object_is_created_once_and_read_back() {
    let fake = lab();
    let engine = fake.engine();
    assert_eq!(engine.get(&id("a")).await.expect("read"), None);
    let made = engine.create(&config_map("a", "1"), "mover", false).await;
    assert_eq!(value_of(&made.expect("created")), Some("1"));
    let again = engine.create(&config_map("a", "2"), "mover", false).await;
    assert!(matches!(again, Err(Error::Raced { .. })), "{again:?}");
    let live = engine.get(&id("a")).await.expect("read").expect("there");
    assert_eq!(value_of(&live), Some("1"));
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let fake = lab();
    let engine = fake.engine();
    engine
        .create(&config_map("a", "1"), "mover", true)
        .await
        .expect("tried");
    engine
        .apply_as(&config_map("b", "1"), "mover", true, true)
        .await
        .expect("tried");
    assert!(fake.writes().is_empty());
    assert_eq!(fake.get(&id("a")), None);
    assert_eq!(fake.get(&id("b")), None);
}

#[tokio::test]
async fn a_kind_that_is_not_served_has_no_objects() {
    let engine = lab().engine();
    let absent = lantern("night").id();
    assert_eq!(engine.get(&absent).await.expect("read"), None);
    let gone = engine.delete(&absent, &Delete::default()).await;
    assert!(!gone.expect("gone"));
}

#[tokio::test]
async fn one_apply_takes_fields_by_force_only() {
    let fake = lab();
    let engine = fake.engine();
    let apply = async |value, manager, force| {
        engine
            .apply_as(&config_map("a", value), manager, force, false)
            .await
    };
    apply("1", "one", false).await.expect("first");
    let refused = apply("2", "two", false).await;
    assert!(
        matches!(refused, Err(Error::Server { code: 409, .. })),
        "{refused:?}"
    );
    let taken = apply("2", "two", true).await.expect("forced");
    assert_eq!(value_of(&taken), Some("2"));
}

#[tokio::test]
async fn a_replace_and_a_patch_with_an_old_version_are_refused() {
    let fake = lab();
    let engine = fake.engine();
    let first = engine.create(&config_map("a", "1"), "mover", false).await;
    let first = first.expect("created");
    let mut changed = first.clone().into_value();
    changed["data"]["key"] = "2".into();
    let changed = object(changed);
    engine.replace(&changed, "mover").await.expect("replaced");
    let late = engine.replace(&changed, "mover").await;
    assert!(matches!(late, Err(Error::Raced { .. })), "{late:?}");
    let version = first.pointer("/metadata/resourceVersion").expect("live");
    let patch = json!({"metadata": {"resourceVersion": version}, "data": {"key": "3"}});
    let late = engine.merge_patch(&id("a"), &patch, "mover").await;
    assert!(matches!(late, Err(Error::Raced { .. })), "{late:?}");
}

#[tokio::test]
async fn patches_change_what_they_name() {
    let fake = lab();
    fake.seed(deployment("istiod", "pilot:1").into_value());
    let engine = fake.engine();
    let id = deployment("istiod", "").id();
    let patch = json!({"spec": {"replicas": 0, "selector": null}});
    let scaled = engine.merge_patch(&id, &patch, "mover").await.expect("ok");
    assert_eq!(scaled.pointer("/spec/replicas"), Some(&json!(0)));
    assert_eq!(scaled.pointer("/spec/selector"), None);
    let operations = json!([
        {"op": "test", "path": "/spec/replicas", "value": 0},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "pilot:2"},
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "c"}},
        {"op": "remove", "path": "/metadata/labels/a~1b"},
        {"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "more"}},
    ]);
    let patched = engine.json_patch(&id, &operations, "mover").await;
    let patched = patched.expect("patched");
    let image = patched.pointer("/spec/template/spec/containers/0/image");
    assert_eq!(image, Some(&json!("pilot:2")));
    assert_eq!(patched.label("a/b"), None);
    let test = json!([{"op": "test", "path": "/spec/replicas", "value": 3}]);
    let refused = engine.json_patch(&id, &test, "mover").await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_delete_says_whether_there_was_something_and_keeps_to_its_conditions() {
    let fake = lab();
    fake.seed(config_map("a", "1").into_value());
    let engine = fake.engine();
    let only = |uid: Option<&str>, version: Option<&str>| Delete {
        uid: uid.map(str::to_owned),
        resource_version: version.map(str::to_owned),
        ..Delete::default()
    };
    for other in [only(Some("another"), None), only(None, Some("0"))] {
        let refused = engine.delete(&id("a"), &other).await;
        assert!(matches!(refused, Err(Error::Raced { .. })), "{refused:?}");
    }
    let live = engine.get(&id("a")).await.expect("read").expect("there");
    let exactly = only(live.uid(), None);
    assert!(engine.delete(&id("a"), &exactly).await.expect("deleted"));
    assert!(!engine.delete(&id("a"), &exactly).await.expect("gone"));
}

#[tokio::test]
async fn a_delete_that_is_only_tried_deletes_nothing() {
    let fake = lab();
    fake.seed(config_map("a", "1").into_value());
    let tried = Delete {
        dry_run: true,
        ..Delete::default()
    };
    let deleted = fake.engine().delete(&id("a"), &tried).await;
    assert!(deleted.expect("tried"));
    assert!(fake.get(&id("a")).is_some());
    assert_eq!(fake.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_objects_of_a_definition_go_with_it() {
    let fake = lab();
    fake.seed(crd().into_value());
    fake.seed(lantern("night").into_value());
    let engine = fake.engine();
    let deleted = engine.delete(&crd().id(), &Delete::default()).await;
    assert!(deleted.expect("deleted"));
    assert_eq!(fake.get(&lantern("night").id()), None);
}

#[tokio::test]
async fn an_eviction_asks_the_budgets() {
    let fake = lab();
    for (name, app) in [("a", "web"), ("b", "other")] {
        fake.seed(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "istio-lab", "labels": {"app": app}},
        }));
    }
    fake.seed(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "istio-lab"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptionsAllowed": 0},
    }));
    let engine = fake.engine();
    let evict = async |pod, dry| engine.evict("istio-lab", pod, dry).await.expect("answered");
    assert!(matches!(evict("a", false).await, Evicted::Refused(_)));
    assert_eq!(evict("b", true).await, Evicted::Gone);
    let b = ObjectRef::namespaced("v1", "Pod", "istio-lab", "b");
    assert!(fake.get(&b).is_some());
    assert_eq!(evict("b", false).await, Evicted::Gone);
    assert_eq!(fake.get(&b), None);
    assert_eq!(evict("b", false).await, Evicted::Gone);
}

#[tokio::test]
async fn what_is_forbidden_is_known_before_it_is_tried() {
    let fake = lab();
    fake.forbid("create", "pods/eviction");
    fake.forbid("delete", "deployments.apps");
    let access = |verb: &str, group: &str, resource: &str| Access {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        ..Access::default()
    };
    let asked = [
        access("create", "", "pods/eviction"),
        access("delete", "apps", "deployments"),
        access("patch", "apps", "deployments"),
    ];
    let may = fake.engine().may(&asked).await.expect("answered");
    assert_eq!(may, [false, false, true]);
}
