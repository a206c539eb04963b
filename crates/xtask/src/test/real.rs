//! The runner on a real crate: cargo and the standard harness as they are, not as we think.

use std::{collections::BTreeMap, fs, path::Path};

use super::{Outcome, Selection, Tier, build, run_tier, shares};
use crate::workspace::Workspace;

const MANIFEST: &str = r#"[package]
name = "meshy"
version = "0.1.0"
edition = "2024"
[workspace]
"#;

const LOCK: &str = r#"version = 4

[[package]]
name = "meshy"
version = "0.1.0"
"#;

const SOURCE: &str = r#"//! A crate with one test of each kind.
#[cfg(test)]
mod tests {
    #[test]
    fn passes() {}
    #[test]
    fn fails() {
        println!("what it said");
        assert_eq!(1, 2);
    }
    #[test]
    #[ignore = "not today"]
    fn waits() {}
    #[test]
    #[should_panic]
    fn panics() {
        panic!("as it should");
    }
}
#[cfg(test)]
mod property {
    #[test]
    fn holds() {}
}
"#;

const DIES: &str = r"//! A binary that does not reach its end.
#[test]
fn a_first_one_passes() {}
#[test]
fn b_then_the_process_ends() {
    std::process::exit(3);
}
#[test]
fn c_is_never_reached() {}
";

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// What each tier says about the crate, by tier.
fn run_all(root: &Path) -> BTreeMap<Tier, Outcome> {
    let workspace = Workspace::at(root);
    // A filter that all names have keeps documentation, which git would have to list, out.
    let selection = Selection {
        filters: vec!["_".to_owned(), "s".to_owned()],
        ..Selection::default()
    };
    let binaries = build::build(&workspace, &selection)
        .unwrap()
        .expect("the crate builds");
    let mut sorted: BTreeMap<Tier, Vec<_>> = BTreeMap::new();
    for binary in &binaries {
        for share in shares(binary, &build::list(binary).unwrap(), &selection) {
            sorted.entry(share.tier).or_default().push(share);
        }
    }
    sorted
        .into_iter()
        .map(|(tier, mine)| (tier, run_tier(&workspace, &selection, tier, &mine).unwrap()))
        .collect()
}

#[test]
fn every_test_of_a_real_crate_is_counted_in_its_tier() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("Cargo.toml", MANIFEST),
            ("Cargo.lock", LOCK),
            ("src/lib.rs", SOURCE),
            ("tests/e2e_dies.rs", DIES),
        ],
    );
    let tiers = run_all(root.path());

    let unit = &tiers[&Tier::Unit];
    assert_eq!((unit.passed, unit.ignored), (2, 1));
    assert_eq!(unit.failed, ["meshy tests::fails"]);
    assert!(unit.report.contains("what it said"), "{}", unit.report);

    let property = Outcome {
        passed: 1,
        ..Outcome::default()
    };
    assert_eq!(tiers[&Tier::Property], property);

    let dead = &tiers[&Tier::E2e];
    assert_eq!(dead.passed, 1);
    let lost = ["b_then_the_process_ends", "c_is_never_reached"]
        .map(|test| format!("meshy/e2e_dies {test}"));
    assert_eq!(dead.failed, lost);
    assert!(dead.report.contains("exit code 3"), "{}", dead.report);
    assert_eq!(tiers.len(), 3);
}

#[test]
fn a_crate_that_does_not_build_gives_no_binaries() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            ("Cargo.toml", MANIFEST),
            ("Cargo.lock", LOCK),
            ("src/lib.rs", "fn broken("),
        ],
    );
    let built = build::build(&Workspace::at(root.path()), &Selection::default()).unwrap();
    assert_eq!(built, None);
}
