//! Files of tests side by side: those of the real parts wait more than they compute.
//!
//! Invariant: a file that measures, or looks at the whole machine, runs beside no other.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result};

use super::{Outcome, Share, Tier};
use crate::workspace::Workspace;

/// As many as the machine has places for nodes.
const LANES: usize = 2;
/// How long each file took last time, in seconds, under `target/`.
const TIMES: &str = "target/test-times.json";

type Times = BTreeMap<String, u64>;

/// Runs the shares on two lanes, then those that run alone. The outcome is in the given order.
pub(super) fn run(
    workspace: &Workspace,
    shares: &[Share],
    run: impl Fn(&Share) -> Result<Outcome> + Sync,
) -> Result<Outcome> {
    let path = workspace.path(TIMES);
    let mut times = fs::read(&path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Times>(&bytes).ok())
        .unwrap_or_default();
    let names: Vec<String> = shares.iter().map(|share| share.binary.name()).collect();
    let (alone, beside): (Vec<usize>, Vec<usize>) =
        (0..shares.len()).partition(|&at| Tier::is_alone(&shares[at].binary.target));
    let queue = Mutex::new(VecDeque::from(longest_first(beside, &names, &times)));
    let done = Mutex::new(BTreeMap::new());
    let one = |at: usize| {
        let begun = Instant::now();
        let outcome = run(&shares[at]);
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        done.insert(at, (outcome, begun.elapsed()));
    };
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(at) = next() {
                    one(at);
                }
            });
        }
    });
    alone.into_iter().for_each(one);

    let mut sum = Outcome::default();
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (at, (outcome, took)) in done {
        times.insert(names[at].clone(), took.as_secs());
        sum.add(outcome?);
    }
    let text = serde_json::to_vec_pretty(&times)?;
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(sum)
}

/// The longest first, so that none is left to run by itself at the end; one that never ran may be
/// long.
fn longest_first(mut shares: Vec<usize>, names: &[String], times: &Times) -> Vec<usize> {
    shares.sort_by_key(|&at| {
        let time = times.get(&names[at]).copied().unwrap_or(u64::MAX);
        std::cmp::Reverse(time)
    });
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_last_time_begins_and_what_never_ran_before_it() {
        let names = ["short", "long", "new"].map(str::to_owned);
        let times = Times::from([("short".to_owned(), 1), ("long".to_owned(), 9)]);
        assert_eq!(longest_first(vec![0, 1, 2], &names, &times), [2, 1, 0]);
    }
}
