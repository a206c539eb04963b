//! A small cluster with an Istio as istio-pilot makes it, whose controllers are played, and a line to
//! it that can be cut at every call.

#![allow(dead_code, reason = "each test binary uses some of these")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are test helpers"
)]

pub(crate) mod cluster;
pub(crate) mod line;
pub(crate) mod people;
pub(crate) mod play;

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_apply::testing::FakeApi;
use migration::execute::{Clock, Limits, Silent};
use migration::{Executor, Failure, Plan, Request, Snapshot, Stand, plan};
use serde_json::Value;

pub(crate) use cluster::{OLD, pilot_cluster};
#[allow(unused_imports, reason = "each test binary uses some of these")]
pub(crate) use line::{Fault, Line};

/// Namespace of the new control plane.
pub(crate) const NEW: &str = "istio-lab";

/// A clock that stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        now()
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

pub(crate) async fn snapshot(line: &Line) -> Snapshot {
    Snapshot::read(line, OLD, NEW, now()).await.expect("read")
}

pub(crate) async fn planned(fake: &FakeApi, request: &Request) -> Plan {
    let line = Line::new(fake);
    let snapshot = snapshot(&line).await;
    plan(&snapshot, request).unwrap_or_else(|refusals| panic!("{refusals:#?}"))
}

/// One attempt of somebody who finds the cluster as it is: goes on, or begins.
pub(crate) async fn attempt(
    line: &Line,
    request: &Request,
    limits: &Limits,
) -> Result<Stand, String> {
    let executor = Executor::new(line, &Noon, "tester");
    let told = |failure: Failure| format!("{failure}: {failure:?}");
    let journal = executor.journal().await.map_err(told)?;
    if journal.is_none() {
        let snapshot = Snapshot::read(line, OLD, NEW, now())
            .await
            .map_err(|error| error.to_string())?;
        let plan = plan(&snapshot, request).map_err(|refusals| format!("{refusals:?}"))?;
        executor.begin(&plan, &snapshot).await.map_err(told)?;
    }
    executor.run(limits, &Silent).await.map_err(told)
}

/// Goes on, with people who do what they are asked for, until a limit or the end.
pub(crate) async fn with_people(
    line: &Line,
    request: &Request,
    limits: &Limits,
) -> Result<Stand, String> {
    let mut asked = 0;
    loop {
        let stand = attempt(line, request, limits).await?;
        match stand {
            Stand::Waiting { commands, .. } if asked < 20 => {
                for command in &commands {
                    people::act(line.fake(), command);
                    line.look();
                }
                asked += 1;
            }
            stand => return Ok(stand),
        }
    }
}

/// Goes on until it is done.
pub(crate) async fn finish(fake: &FakeApi, request: &Request) -> Vec<String> {
    let line = Line::new(fake);
    for _ in 0..5 {
        match with_people(&line, request, &Limits::default()).await {
            Ok(Stand::Done) => return line.violations(),
            Ok(other) => panic!("stands at {other:?}"),
            Err(error) => drop(error),
        }
    }
    panic!("does not end")
}

/// What a person would see of a cluster: all objects but those of the record, without what the server
/// and controllers count.
pub(crate) fn listing(fake: &FakeApi) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for mut value in fake.objects() {
        let kind = value["kind"].as_str().unwrap_or_default().to_owned();
        let namespace = value["metadata"]["namespace"]
            .as_str()
            .unwrap_or("-")
            .to_owned();
        let name = value["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if namespace == migration::execute::NAMESPACE || name == migration::execute::NAMESPACE {
            continue;
        }
        for server in [
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            value["metadata"]
                .as_object_mut()
                .expect("metadata")
                .remove(server);
        }
        value.as_object_mut().expect("an object").remove("status");
        prune(&mut value);
        found.insert(format!("{kind} {namespace}/{name}"), value);
    }
    found
}

/// Empty maps say nothing, and a patch leaves them.
fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, field| !field.is_null() && field != &serde_json::json!({}));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

/// The names in which two listings differ.
pub(crate) fn differences(a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .filter(|key| a.get(*key) != b.get(*key))
        .map(|key| match (a.get(key), b.get(key)) {
            (Some(_), None) => format!("- {key}"),
            (None, Some(_)) => format!("+ {key}"),
            _ => format!("~ {key}"),
        })
        .collect()
}
