//! The actions tell and change nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod common;

use common::{Lab, Release};
use istio_k8s::observe::{Proxies, Query, View};
use istio_k8s::work::{Done, Objects, Work};
use juju_charm::{Effects, Event, Progress};
use kube_apply::{Applied, Plan};
use mesh::proxy_status;
use serde_json::{Value, json};

#[test]
fn a_plan_of_a_fresh_cluster_creates_everything_and_writes_nothing() {
    let lab = Lab::new();
    let answer = lab.action("plan", json!({"format": "text"}));
    assert_eq!(answer.failure, None);
    let plan = &answer.results["plan"];
    let creates: Vec<&str> = plan
        .lines()
        .filter(|line| line.starts_with("create "))
        .collect();
    assert_eq!(creates.len(), 17, "{plan}");
    assert!(
        creates.contains(&"create Deployment istio-lab/istiod"),
        "{plan}"
    );
    assert!(plan.ends_with("0 unchanged"), "{plan}");
    assert_eq!(answer.results["changes"], "17");
    lab.assert_untouched();
}

#[test]
fn a_plan_of_what_runs_changes_nothing_and_one_of_another_release_names_the_fields() {
    let lab = Lab::installed();
    let answer = lab.action("plan", json!({}));
    assert_eq!(answer.results["changes"], "0");
    assert_eq!(answer.results["plan"], "17 unchanged");
    lab.attach(&Release::of("1.31.1")).config("gateways", "");
    let answer = lab.action("plan", json!({"format": "json"}));
    let plan: Value = serde_json::from_str(&answer.results["plan"]).unwrap();
    let change = plan["change"].as_array().unwrap();
    let istiod = change
        .iter()
        .find(|c| c["object"]["kind"] == "Deployment")
        .unwrap();
    let images = istiod["fields"].as_array().unwrap();
    assert!(images.iter().any(|field| field["path"]
        == "spec.template.spec.containers[discovery].image"
        && field["desired"] == "\"registry.example/pilot:1.31.1\""));
    assert_eq!(plan["prune"].as_array().unwrap().len(), 3);
    lab.assert_untouched();
}

#[test]
fn a_plan_that_cannot_be_made_fails_with_the_reason() {
    let lab = Lab::installed();
    lab.config("profile", "nosuch");
    let failure = lab.action("plan", json!({})).failure.unwrap();
    assert!(
        failure.starts_with("no plan: option profile: \"nosuch\""),
        "{failure}"
    );
    lab.config("profile", "default")
        .api
        .forbid("list", "deployments.apps");
    let failure = lab.action("plan", json!({})).failure.unwrap();
    assert!(
        failure.contains("juju trust meshy --scope=cluster"),
        "{failure}"
    );
    lab.assert_untouched();
}

#[test]
fn an_action_leaves_status_and_version_as_they_are() {
    let lab = Lab::installed();
    lab.config("profile", "nosuch").action("plan", json!({}));
    lab.assert_status("active", "Istio 1.31.0 in istio-lab");
    assert_eq!(lab.state().workload_version, "1.31.0");
}

#[test]
fn a_unit_that_does_not_lead_answers_too() {
    let lab = Lab::installed();
    lab.change(|mut state| {
        state.leader = false;
        state
    });
    assert_eq!(lab.action("plan", json!({})).results["changes"], "0");
}

#[test]
fn what_needs_the_release_says_on_another_unit_that_it_is_the_leaders() {
    let lab = Lab::installed();
    lab.change(|mut state| {
        state.leader = false;
        state
    });
    for (action, params) in [
        ("render", json!({"file": "", "crds": false})),
        ("adopt", json!({"owner": "Helm release lab/istiod"})),
    ] {
        let failure = lab.action(action, params).failure.unwrap();
        assert!(failure.contains("only the leader"), "{failure}");
    }
}

/// Two istiods of two revisions and their proxies, in place of a cluster.
struct TwoIstiods;

impl Effects for TwoIstiods {
    type Applied = Applied;
    type Error = istio_k8s::cluster::ClusterError;
    type Objects = Objects;
    type Plan = Plan;
    type Work = Work;
    type Done = Done;
    type Query = Query;
    type View = View;

    async fn observe(&self, query: Query) -> Result<View, Self::Error> {
        assert!(query.proxies, "the action asks for the proxies");
        let entry = |proxy: &str, kind: &str, acked: &str| {
            json!({"proxy": proxy, "proxy_type": kind, "istio_version": "1.31.0",
                   "cluster_sent": "a", "cluster_acked": acked})
        };
        let syncz = |istiod: &str, revision: &str, entries: Value| {
            proxy_status::parse(istiod, revision, &entries.to_string()).unwrap()
        };
        let mut proxies = syncz(
            "istiod-a.istio-lab",
            "default",
            json!([
                entry("edge-0.edge-lab", "router", "a"),
                entry("web-0.web-lab", "sidecar", "old"),
            ]),
        );
        proxies.extend(syncz(
            "istiod-b.back-lab",
            "canary",
            json!([entry("api-0.web-lab", "sidecar", "a")]),
        ));
        let failures = vec!["istiod istiod-c.lost-lab cannot be asked: gone".to_owned()];
        Ok(View {
            proxies: Some(Proxies { proxies, failures }),
            ..View::default()
        })
    }

    async fn apply(&self, _: Objects) -> Result<Applied, Self::Error> {
        unreachable!("an action applies nothing")
    }

    async fn plan(&self, _: Objects) -> Result<Plan, Self::Error> {
        unreachable!("proxy-status needs no plan")
    }

    async fn work(&self, _: Work, _: &dyn Progress) -> Result<Done, Self::Error> {
        unreachable!("proxy-status has no work")
    }
}

/// The names of the proxies that are told for these parameters.
fn told(params: Value) -> Vec<String> {
    let mut params = params;
    params["format"] = "json".into();
    let answer = Lab::new().action_on("proxy-status", params, || TwoIstiods);
    assert_eq!(answer.failure, None);
    let proxies: Vec<Value> = serde_json::from_str(&answer.results["proxies"]).unwrap();
    assert_eq!(answer.results["count"], proxies.len().to_string());
    proxies
        .iter()
        .map(|proxy| proxy["proxy"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn proxies_are_told_by_namespace_and_by_revision() {
    let (edge, web, api) = ("edge-0.edge-lab", "web-0.web-lab", "api-0.web-lab");
    assert_eq!(told(json!({})), [edge, web, api]);
    assert_eq!(told(json!({"namespace": "web-lab"})), [web, api]);
    assert_eq!(told(json!({"namespace": "lab"})), Vec::<String>::new());
    assert_eq!(told(json!({"revision": "canary"})), [api]);
    assert_eq!(
        told(json!({"namespace": "web-lab", "revision": "default"})),
        [web]
    );
}

#[test]
fn the_table_has_a_line_per_proxy_and_an_istiod_that_is_silent_is_named() {
    let answer = Lab::new().action_on("proxy-status", json!({"format": "text"}), || TwoIstiods);
    let lines: Vec<&str> = answer.results["proxies"].lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("PROXY "), "{}", lines[0]);
    let web = lines
        .iter()
        .find(|line| line.starts_with("web-0.web-lab"))
        .unwrap();
    let cells: Vec<&str> = web.split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "web-0.web-lab",
            "sidecar",
            "1.31.0",
            "default",
            "STALE",
            "UNSENT",
            "UNSENT",
            "UNSENT",
            "istiod-a.istio-lab"
        ]
    );
    assert_eq!(
        answer.results["not-asked"],
        "istiod istiod-c.lost-lab cannot be asked: gone"
    );
}

#[test]
fn an_istiod_that_cannot_be_asked_costs_only_its_line() {
    let lab = Lab::new();
    lab.api.seed_namespace("istio-lab");
    lab.api.seed(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "istiod-0", "namespace": "istio-lab", "labels": {"app": "istiod"}},
    }));
    let answer = lab.action("proxy-status", json!({}));
    assert_eq!(answer.failure, None);
    assert_eq!(answer.results["count"], "0");
    let silent = &answer.results["not-asked"];
    assert!(silent.starts_with("istiod istiod-0.istio-lab "), "{silent}");
}

#[test]
fn proxy_status_needs_neither_release_nor_sound_options() {
    let lab = Lab::new();
    lab.attach_bytes(b"")
        .config("namespace", "-")
        .hook(Event::ConfigChanged);
    let answer = lab.action("proxy-status", json!({}));
    assert_eq!(
        (answer.failure, answer.results["count"].as_str()),
        (None, "0")
    );
}
