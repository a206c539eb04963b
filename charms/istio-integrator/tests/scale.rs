//! Thousands of relations: what a hook costs, printed, and what it must not depend on.

#![allow(clippy::print_stdout, reason = "the figures are the point")]
#![allow(clippy::expect_used, reason = "test support")]

mod common;

use common::*;
use juju_charm::Event;
use juju_sim::scenario::State;
use std::time::Instant;

fn related(count: u32) -> State {
    let mut state = leader();
    for id in 1..=count {
        state = state.relation(kubeflow(
            id,
            &format!("app-{id}"),
            &format!("/team-{}/app-{id}", id % 97),
        ));
    }
    state
}

/// Most memory this process ever had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

/// Reads, writes of the first hook, and reads and writes of one in which nothing changed.
fn cost(count: u32) -> (usize, usize, usize, usize) {
    let api = cluster();
    let state = related(count);
    api.forget_requests();
    let start = Instant::now();
    let after = config_changed(&api, &state);
    let first = (
        api.requests().len() - api.writes().len(),
        api.writes().len(),
        start.elapsed(),
    );
    assert_status(
        &after,
        "active",
        &format!("{count} routes at http://192.0.2.7"),
    );
    api.forget_requests();
    let start = Instant::now();
    let again = hook(&api, Event::UpdateStatus, &after);
    let second = (api.requests().len(), api.writes().len(), start.elapsed());
    assert_eq!(again.record.count("relation-set"), 0);
    println!(
        "{count} relations: first hook {} reads, {} writes, {:?}; nothing changed: {} reads, {} writes, \
         {:?}; peak {} MiB (simulated API server included)",
        first.0,
        first.1,
        first.2,
        second.0,
        second.1,
        second.2,
        peak()
    );
    (first.0, first.1, second.0, second.1)
}

#[test]
fn the_cost_of_a_hook_grows_with_what_is_written_only() {
    let few = cost(10);
    let thousand = cost(1000);
    let five_thousand = cost(5000);
    for (_, _, reads, writes) in [few, thousand, five_thousand] {
        assert_eq!(writes, 0);
        assert_eq!(reads, few.2, "reads do not depend on the relations");
    }
    // Objects are meant to hold 512 KiB; routes are spread by path, so not evenly.
    assert!(
        thousand.1 <= 8 && five_thousand.1 <= 40,
        "{thousand:?} {five_thousand:?}"
    );
}
