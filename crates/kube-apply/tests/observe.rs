//! Reads against the fake API server.

mod common;

use common::{config_map, service};
use kube_apply::testing::FakeApi;
use kube_apply::{Note, Object, Query};

#[tokio::test]
async fn queries_are_answered_together() {
    let fake = FakeApi::new();
    fake.seed_namespace("istio-lab");
    fake.seed(service("a").into_value());
    fake.seed(config_map("b", "1").into_value());
    let mut labelled = config_map("c", "1");
    labelled.set_label("istio.io/rev", "default");
    fake.seed(labelled.into_value());
    let queries = [
        Query::get("", "Service", Some("istio-lab"), "a"),
        Query::get("", "Service", Some("istio-lab"), "absent"),
        Query::list("", "ConfigMap")
            .in_namespace("istio-lab")
            .with_labels("istio.io/rev"),
        Query::list("", "Namespace").metadata_only(),
    ];
    let observed = fake.engine().observe(&queries).await.expect("read");
    let names: Vec<String> = observed
        .objects()
        .map(|object| object.id().to_string())
        .collect();
    let expect = [
        "ConfigMap istio-lab/c",
        "Namespace default",
        "Namespace istio-lab",
        "Namespace kube-system",
        "Service istio-lab/a",
    ];
    assert_eq!(names, expect);
    let namespace = observed
        .get("", "Namespace", None, "default")
        .expect("read");
    assert_eq!(namespace.pointer("/status"), None);
    assert_eq!(observed.notes().count(), 0);
}

#[tokio::test]
async fn what_is_not_installed_or_not_allowed_is_a_note() {
    let fake = FakeApi::new();
    fake.forbid("list", "secrets");
    let queries = [
        Query::list("networking.istio.io", "Gateway"),
        Query::list("", "Secret"),
    ];
    let observed = fake.engine().observe(&queries).await.expect("read");
    let notes: Vec<Note> = observed.notes().cloned().collect();
    let expect = [
        Note::NotInstalled {
            group: "networking.istio.io".to_owned(),
            kind: "Gateway".to_owned(),
        },
        Note::Forbidden {
            verb: "list".to_owned(),
            resource: "secrets".to_owned(),
        },
    ];
    assert_eq!(notes, expect);
}

#[tokio::test]
async fn long_lists_are_read_in_pages() {
    let fake = FakeApi::new();
    for index in 0..1201 {
        fake.seed(config_map(&format!("c{index}"), "1").into_value());
    }
    let observed = fake
        .engine()
        .observe(&[Query::list("", "ConfigMap")])
        .await
        .expect("read");
    assert_eq!(observed.list("", "ConfigMap").count(), 1201);
    let pages = fake
        .requests()
        .iter()
        .filter(|r| r.path.contains("/configmaps"))
        .count();
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn an_older_cluster_is_read_in_the_version_it_serves() {
    let fake = FakeApi::new();
    fake.serve(
        "networking.istio.io",
        "v1beta1",
        "Gateway",
        "gateways",
        true,
    );
    let gateway = serde_json::json!({
        "apiVersion": "networking.istio.io/v1beta1", "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": "istio-lab"},
    });
    fake.seed(gateway);
    let query = Query::list("networking.istio.io", "Gateway");
    let observed = fake.engine().observe(&[query]).await.expect("read");
    let versions: Vec<String> = observed
        .objects()
        .map(Object::id)
        .map(|id| id.api_version())
        .collect();
    assert_eq!(versions, ["networking.istio.io/v1beta1"]);
    assert!(
        observed
            .served()
            .serves("networking.istio.io", "v1beta1", "Gateway")
    );
}

#[tokio::test]
async fn the_version_of_the_server_is_read() {
    let version = FakeApi::new().engine().server_version().await;
    assert_eq!(version.expect("a version"), "v1.33.0");
}
