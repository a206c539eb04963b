//! Killed after every call in turn, and every call failing once: the end is the same.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod common;

use std::collections::BTreeMap;

use common::cluster::{request, split};
use common::{
    Fault, Line, Noon, attempt, differences, listing, pilot_cluster, planned, with_people,
};
use kube_apply::testing::FakeApi;
use migration::execute::{Journal, Limits, Silent};
use migration::plan::{GatewayChoice, Strategy};
use migration::{Executor, Request, Stand};
use serde_json::Value;

/// What counts of a state: the objects, and how far the steps are.
async fn state(fake: &FakeApi) -> (BTreeMap<String, Value>, Journal) {
    let line = Line::new(fake);
    let executor = Executor::new(&line, &Noon, "tester");
    let journal = executor.journal().await.expect("read");
    (listing(fake), journal.unwrap_or_default())
}

/// Cuts every call of every step in every one of the ways, and goes on: after the step, the cluster
/// and the journal are as after an undisturbed one. So is the end, for the next step begins there.
/// Returns the number of calls, and of runs that were cut.
async fn every_call(request: &Request, faults: &[Fault]) -> (usize, usize) {
    let mut here = pilot_cluster();
    let steps = planned(&here, request).await.steps;
    let (mut calls, mut tried) = (0, 0);
    for step in &steps {
        let limits = Limits {
            until: Some(step.id.clone()),
            ..Limits::default()
        };
        let after = here.fork();
        let line = Line::new(&after);
        with_people(&line, request, &limits)
            .await
            .expect("undisturbed");
        let expect = state(&after).await;
        for call in 0..line.calls() {
            calls += 1;
            for fault in faults {
                let fake = here.fork();
                let cut = Line::with_fault(&fake, call, *fault);
                let mut wrong = Vec::new();
                if with_people(&cut, request, &limits).await.is_err() {
                    let next = Line::new(&fake);
                    with_people(&next, request, &limits).await.expect("goes on");
                    wrong.extend(next.violations());
                }
                wrong.extend(cut.violations());
                assert_eq!(
                    wrong,
                    Vec::<String>::new(),
                    "{fault:?} at call {call} of {}",
                    step.id
                );
                let found = state(&fake).await;
                let left = differences(&expect.0, &found.0);
                assert_eq!(
                    left,
                    Vec::<String>::new(),
                    "{fault:?} at call {call} of {}",
                    step.id
                );
                assert_eq!(expect.1, found.1, "{fault:?} at call {call} of {}", step.id);
                tried += 1;
            }
        }
        here = after;
    }
    assert!(state(&here).await.1.has_ended());
    (calls, tried)
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_it_ends_in_the_same_state() {
    let (calls, tried) = every_call(&request(), &[Fault::Kill]).await;
    println!(
        "zero-downtime: killed after each of {calls} calls, {tried} runs resumed to the same end"
    );
    assert!(tried > 100);
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_of_a_window_it_ends_in_the_same_state() {
    let window = Request {
        strategy: Strategy::Window,
        ..request()
    };
    let (calls, tried) = every_call(&window, &[Fault::Kill]).await;
    println!("window: killed after each of {calls} calls, {tried} runs resumed to the same end");
    assert!(tried > 100);
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_of_a_hand_over_it_ends_in_the_same_state() {
    let (calls, tried) = every_call(&split(GatewayChoice::KeepAddress), &[Fault::Kill]).await;
    println!("hand-over: killed after each of {calls} calls, {tried} runs resumed to the same end");
    assert!(tried > 100);
}

#[tokio::test(start_paused = true)]
async fn with_any_call_failing_once_it_ends_in_the_same_state() {
    let faults = [Fault::Server, Fault::Conflict, Fault::Timeout, Fault::Reset];
    let (calls, tried) = every_call(&request(), &faults).await;
    println!(
        "each of {calls} calls failed once in {} ways: {tried} runs, the same end",
        faults.len()
    );
    assert!(tried > 400);
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_call_of_a_rollback_it_ends_where_it_began() {
    let start = pilot_cluster();
    let before = listing(&start);
    let there = start.fork();
    let limits = Limits {
        until: Some("drain".to_owned()),
        ..Limits::default()
    };
    let line = Line::new(&there);
    let stand = attempt(&line, &request(), &limits).await;
    assert!(matches!(stand, Ok(Stand::Paused { .. })), "{stand:?}");
    let back = async |line: &Line| {
        let executor = Executor::new(line, &Noon, "tester");
        executor.rollback(&Limits::default(), &Silent).await
    };
    let fake = there.fork();
    let line = Line::new(&fake);
    assert_eq!(back(&line).await.expect("back"), Stand::RolledBack);
    let calls = line.calls();
    for call in 0..calls {
        let fake = there.fork();
        let line = Line::with_fault(&fake, call, Fault::Kill);
        if back(&line).await.is_err() {
            assert_eq!(
                back(&Line::new(&fake)).await.expect("back"),
                Stand::RolledBack,
                "call {call}"
            );
        }
        let mut left = differences(&before, &listing(&fake));
        left.retain(|line| {
            !line.contains("Namespace -/istio-lab") && !line.contains("istio-ca-root-cert")
        });
        assert_eq!(left, Vec::<String>::new(), "call {call}");
    }
    println!(
        "rollback from the last step: killed after each of {calls} calls, back to the start each time"
    );
}
