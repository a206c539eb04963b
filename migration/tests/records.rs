//! What is recorded of a migration, who works on it, and what comes back.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests"
)]

mod common;

use std::cell::Cell;
use std::time::Duration;

use common::cluster::{custom, request};
use common::{
    Line, NEW, Noon, OLD, attempt, finish, listing, pilot_cluster, planned, snapshot, with_people,
};
use jiff::{SignedDuration, Timestamp};
use kube_apply::ObjectRef;
use kube_apply::testing::FakeApi;
use migration::execute::{Clock, Limits, Silent, read_journal};
use migration::{Executor, Failure, Stand};
use serde_json::{Value, json};

fn record(name: &str) -> ObjectRef {
    ObjectRef::namespaced("v1", "ConfigMap", "istio-migration", name)
}

fn lease() -> ObjectRef {
    let api = "coordination.k8s.io/v1";
    ObjectRef::namespaced(api, "Lease", "istio-migration", "istio-migrate")
}

fn policy(name: &str) -> ObjectRef {
    ObjectRef::namespaced("security.istio.io/v1", "AuthorizationPolicy", OLD, name)
}

async fn to(fake: &FakeApi, step: &str) {
    let line = Line::new(fake);
    let limits = Limits {
        until: Some(step.to_owned()),
        ..Limits::default()
    };
    let stand = attempt(&line, &request(), &limits).await.expect("goes");
    assert!(matches!(stand, Stand::Paused { .. }), "{step}: {stand:?}");
}

async fn run(fake: &FakeApi) -> Result<Stand, Failure> {
    let line = Line::new(fake);
    let executor = Executor::new(&line, &Noon, "tester");
    executor.run(&Limits::default(), &Silent).await
}

async fn back(fake: &FakeApi, limits: &Limits) -> Stand {
    let line = Line::new(fake);
    let executor = Executor::new(&line, &Noon, "tester");
    executor.rollback(limits, &Silent).await.expect("goes back")
}

/// An error with what it came from.
fn told(failure: &Failure) -> String {
    format!("{failure}: {failure:?}")
}

#[tokio::test(start_paused = true)]
async fn a_migration_that_has_ended_stays_as_it_is() {
    let fake = pilot_cluster();
    finish(&fake, &request()).await;
    let after = listing(&fake);
    assert_eq!(run(&fake).await.expect("answers"), Stand::Done);
    assert_eq!(after, listing(&fake));

    let fake = pilot_cluster();
    to(&fake, "webhooks").await;
    assert_eq!(back(&fake, &Limits::default()).await, Stand::RolledBack);
    let after = listing(&fake);
    assert_eq!(run(&fake).await.expect("answers"), Stand::RolledBack);
    assert_eq!(after, listing(&fake));
}

#[tokio::test(start_paused = true)]
async fn a_way_back_that_was_cut_short_can_be_turned_round() {
    let fake = pilot_cluster();
    to(&fake, "webhooks").await;
    let now = Limits {
        budget: Duration::ZERO,
        ..Limits::default()
    };
    assert!(matches!(back(&fake, &now).await, Stand::Paused { .. }));
    let line = Line::new(&fake);
    let journal = async || read_journal(&line).await.expect("read").expect("there");
    assert!(journal().await.back);
    to(&fake, "refresh-appa").await;
    assert!(!journal().await.back);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_nobody_can_read_is_told_by_its_name() {
    let fake = pilot_cluster();
    to(&fake, "guard").await;
    let plan = planned(&fake, &request()).await;
    let part = format!("plan-{}-0", plan.id);
    fake.edit("x", &record(&part), |map| {
        map["binaryData"]["part"] = "AAAA".into();
    });
    let failure = run(&fake).await.expect_err("unreadable");
    let expect = format!("ConfigMap istio-migration/{part} of the migration cannot be read");
    assert_eq!(failure.to_string(), expect);

    fake.edit("x", &record("journal"), |map| {
        map["data"] = json!({"other": "thing"});
    });
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let expect = "ConfigMap istio-migration/journal of the migration cannot be read";
    let failure = run(&fake).await.expect_err("unreadable");
    assert_eq!(failure.to_string(), expect);
    let snapshot = snapshot(&line).await;
    let failure = executor.begin(&plan, &snapshot).await;
    assert_eq!(failure.expect_err("unreadable").to_string(), expect);
    // To whoever only wants to know whether to stand aside, it is one that is under way.
    let journal = read_journal(&line).await.expect("read").expect("there");
    assert!(journal.is_unreadable() && !journal.has_ended());
}

#[tokio::test(start_paused = true)]
async fn records_of_an_earlier_migration_stay() {
    let fake = pilot_cluster();
    to(&fake, "webhooks").await;
    let first = planned(&pilot_cluster(), &request()).await.id;
    back(&fake, &Limits::default()).await;
    let line = Line::new(&fake);
    let mut snapshot = snapshot(&line).await;
    snapshot.at = "2026-06-02T12:00:00Z".parse().expect("a time");
    let second = migration::plan(&snapshot, &request()).expect("a plan");
    assert_ne!(first, second.id);
    let executor = Executor::new(&line, &Noon, "tester");
    executor.begin(&second, &snapshot).await.expect("begun");
    for plan in [&first, &second.id] {
        for part in ["plan", "backup"] {
            let id = record(&format!("{part}-{plan}-0"));
            assert!(fake.get(&id).is_some(), "{id}");
        }
    }
    assert_eq!(executor.plan().await.expect("read"), second);
}

#[tokio::test(start_paused = true)]
async fn the_backup_is_what_the_plan_was_made_from() {
    let fake = pilot_cluster();
    let line = Line::new(&fake);
    let before = fake.get(&policy("edge")).expect("there")["spec"].clone();
    let snapshot = snapshot(&line).await;
    let plan = migration::plan(&snapshot, &request()).expect("a plan");
    fake.edit("x", &policy("edge"), |live| live["spec"] = json!({}));
    let executor = Executor::new(&line, &Noon, "tester");
    executor.begin(&plan, &snapshot).await.expect("begun");
    fake.remove(&policy("edge"));
    executor.restore(&Silent).await.expect("restored");
    assert_eq!(fake.get(&policy("edge")).expect("back")["spec"], before);
}

/// Everybody looks at the clock ten seconds later than the one before.
#[derive(Debug)]
struct Ticking<F: Fn(i64)> {
    looks: Cell<i64>,
    each: F,
}

impl<F: Fn(i64)> Clock for Ticking<F> {
    fn now(&self) -> Timestamp {
        let looks = self.looks.get() + 1;
        self.looks.set(looks);
        (self.each)(looks);
        Noon.now() + SignedDuration::from_secs(10 * looks)
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_begins_while_somebody_else_works() {
    let fake = pilot_cluster();
    to(&fake, "guard").await;
    back(&fake, &Limits::default()).await;
    fake.edit("other", &lease(), |value| {
        value["spec"]["holderIdentity"] = "somebody else".into();
    });
    let line = Line::new(&fake);
    let snapshot = snapshot(&line).await;
    let plan = migration::plan(&snapshot, &request()).expect("a plan");
    let executor = Executor::new(&line, &Noon, "tester");
    let failure = executor.begin(&plan, &snapshot).await.expect_err("busy");
    assert_eq!(failure.to_string(), "somebody else works on this migration");
}

#[tokio::test(start_paused = true)]
async fn a_failure_gives_the_lease_back() {
    let fake = pilot_cluster();
    to(&fake, "guard").await;
    fake.forbid("patch", "virtualservices.networking.istio.io");
    run(&fake).await.expect_err("forbidden");
    let held = fake.get(&lease()).expect("there");
    assert_eq!(held["spec"]["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_in_a_long_step_keeps_the_lease() {
    let fake = pilot_cluster();
    to(&fake, "webhooks").await;
    fake.seed(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "db", "namespace": "appb"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": 0},
    }));
    let oldest = Cell::new(0);
    let clock = Ticking {
        looks: Cell::new(0),
        each: |looks| {
            let live = fake.get(&lease()).unwrap_or_default();
            let renewed = live["spec"]["renewTime"].as_str().unwrap_or_default();
            let held = live["spec"]["holderIdentity"] == "tester";
            if let (true, Ok(renewed)) = (held, renewed.parse::<Timestamp>()) {
                let now = Noon.now() + SignedDuration::from_secs(10 * looks);
                oldest.set(oldest.get().max(now.duration_since(renewed).as_secs()));
            }
        },
    };
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &clock, "tester");
    let stand = executor.run(&Limits::default(), &Silent).await;
    assert!(matches!(stand, Ok(Stand::Paused { .. })), "{stand:?}");
    assert!(clock.looks.get() > 100, "{}", clock.looks.get());
    assert!((10..60).contains(&oldest.get()), "{} s", oldest.get());
}

#[tokio::test(start_paused = true)]
async fn whoever_loses_the_lease_stops_and_leaves_it_to_the_other() {
    let fake = pilot_cluster();
    to(&fake, "guard").await;
    let clock = Ticking {
        looks: Cell::new(0),
        each: |looks| {
            if looks == 5 {
                fake.edit("other", &lease(), |value| {
                    value["spec"]["holderIdentity"] = "somebody else".into();
                });
            }
        },
    };
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &clock, "tester");
    let failure = executor.run(&Limits::default(), &Silent).await;
    let failure = failure.expect_err("stopped");
    assert!(told(&failure).contains("Raced"), "{}", told(&failure));
    let held = fake.get(&lease()).expect("there");
    assert_eq!(held["spec"]["holderIdentity"], "somebody else");
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_is_as_the_migration_would_have_left_it() {
    let fake = pilot_cluster();
    let labelled = ObjectRef::namespaced(
        "networking.istio.io/v1",
        "VirtualService",
        "appb",
        "labelled",
    );
    to(&fake, "relabel").await;
    fake.remove(&labelled);
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let made = executor.restore(&Silent).await.expect("restored");
    assert_eq!(made, [labelled.to_string()]);
    let route = fake.get(&labelled).expect("back");
    assert_eq!(route["metadata"]["labels"]["istio.io/rev"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn what_a_step_took_away_does_not_come_back() {
    let fake = pilot_cluster();
    to(&fake, "policies-retire").await;
    let line = Line::new(&fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let made = executor.restore(&Silent).await.expect("restored");
    assert_eq!(made, Vec::<String>::new());
    assert!(fake.get(&policy("blocked")).is_none());
}

fn deny(namespace: &str, name: &str, selector: Option<Value>) -> Value {
    let rules = json!([{"to": [{"operation": {"paths": ["/late"]}}]}]);
    let mut spec = json!({"action": "DENY", "rules": rules});
    if let Some(labels) = selector {
        spec["selector"] = json!({"matchLabels": labels});
    }
    let security = "security.istio.io/v1";
    custom(
        security,
        "AuthorizationPolicy",
        namespace,
        name,
        json!({}),
        spec,
    )
}

#[tokio::test(start_paused = true)]
async fn a_policy_written_after_the_beginning_holds_the_switch_of_the_root_back() {
    let fake = pilot_cluster();
    to(&fake, "webhooks").await;
    // This one holds where it is, and is no obstacle.
    fake.seed(deny(
        OLD,
        "edge-late",
        Some(json!({"istio": "ingressgateway"})),
    ));
    fake.seed(deny(OLD, "late", None));
    let stand = run(&fake).await.expect("answers");
    let Stand::Paused { step, why } = stand else {
        panic!("{stand:?}")
    };
    assert_eq!(step, "policies");
    assert!(
        why.contains("AuthorizationPolicy kubeflow-lab/late"),
        "{why}"
    );
    assert!(why.ends_with("make the same one in istio-lab"), "{why}");
    fake.seed(deny(NEW, "late", None));
    assert_eq!(run(&fake).await.expect("goes"), Stand::Done);
}

#[tokio::test(start_paused = true)]
async fn a_policy_changed_after_it_was_copied_holds_as_changed() {
    let fake = pilot_cluster();
    to(&fake, "policies").await;
    fake.edit("somebody", &policy("blocked"), |live| {
        live["spec"] = deny(OLD, "x", None)["spec"].clone();
    });
    fake.remove(&policy("apps"));
    to(&fake, "root").await;
    let copy = |name: &str| {
        let security = "security.istio.io/v1";
        let id = ObjectRef::namespaced(security, "AuthorizationPolicy", NEW, name);
        fake.get(&id)
    };
    let expect = deny(OLD, "x", None)["spec"].clone();
    assert_eq!(copy("blocked").expect("copied")["spec"], expect);
    assert_eq!(copy("apps"), None);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_our_copy_any_more_stays() {
    let secret = ObjectRef::namespaced("v1", "Secret", NEW, "istio-ca-secret");
    let check = async |change: bool| {
        let fake = pilot_cluster();
        to(&fake, "ca").await;
        if change {
            fake.edit("somebody", &secret, |live| {
                live["data"]["ca-key.pem"] = "b3RoZXI=".into();
            });
        }
        assert_eq!(back(&fake, &Limits::default()).await, Stand::RolledBack);
        assert_eq!(fake.get(&secret).is_some(), change);
    };
    check(false).await;
    check(true).await;
}

#[tokio::test(start_paused = true)]
async fn an_istiod_behind_a_load_balancer_is_behind_one_again() {
    let fake = pilot_cluster();
    let service = ObjectRef::namespaced("v1", "Service", OLD, "istiod");
    fake.edit("x", &service, |live| {
        live["spec"]["type"] = "LoadBalancer".into();
    });
    to(&fake, "bridge").await;
    let kind = || fake.get(&service).expect("there")["spec"]["type"].clone();
    assert_eq!(kind(), "ExternalName");
    assert_eq!(back(&fake, &Limits::default()).await, Stand::RolledBack);
    assert_eq!(kind(), "LoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn hooks_go_on_by_themselves_only_as_long_as_the_last_call_said_so() {
    let fake = pilot_cluster();
    let line = Line::new(&fake);
    let auto = async |auto: Option<bool>| {
        let limits = Limits {
            auto,
            until: Some("guard".to_owned()),
            ..Limits::default()
        };
        with_people(&line, &request(), &limits).await.expect("goes");
        let journal = read_journal(&line).await.expect("read");
        journal.expect("there").auto
    };
    assert!(auto(Some(true)).await);
    assert!(auto(None).await);
    assert!(!auto(Some(false)).await);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_no_plan_has_is_refused() {
    let plan = planned(&pilot_cluster(), &request()).await;
    let limits = Limits {
        until: Some("fly".to_owned()),
        ..Limits::default()
    };
    let failure = limits.fit(&plan).expect_err("refused");
    assert_eq!(failure.to_string(), "the plan has no step fly");
}
