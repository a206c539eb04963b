//! Every target over its kept corpus and over seeded changes of it, for a bounded number of inputs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use fuzz::{Mutator, TARGETS, Target};

/// Changed inputs per target: some seconds without optimisation.
const INPUTS: usize = 20_000;

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn smoke(name: &str, target: Target) {
    let corpus = corpus(name);
    assert!(corpus.len() >= 5, "{name} has no corpus");
    for data in &corpus {
        target(data);
    }
    let begun = Instant::now();
    let mut mutator = Mutator::new(0x5eed);
    for _ in 0..INPUTS {
        target(&mutator.next(&corpus));
    }
    let seconds = begun.elapsed().as_secs_f64();
    // A figure that cannot be shown fails no test.
    let _unshown = writeln!(
        std::io::stderr().lock(),
        "fuzz {name}: {} kept inputs, {INPUTS} changed ones in {seconds:.1} s",
        corpus.len()
    );
}

#[test]
fn no_bytes_break_a_law_of_the_readers() {
    for (name, target) in TARGETS {
        smoke(name, target);
    }
}
