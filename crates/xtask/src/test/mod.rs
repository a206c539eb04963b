//! `cargo xtask test`: every tier in its order, each with its count and time.
//!
//! Invariants: the last line is `N passed, N failed` and nothing follows it; an empty tier has
//! failed, unless a filter emptied it; the exit code is zero only if nothing failed.

mod build;
mod lanes;
mod libtest;
#[cfg(test)]
mod real;
mod tier;

use std::{collections::BTreeMap, process::ExitCode, time::Instant};

use anyhow::Result;

use self::{build::Binary, libtest::Manner};
pub(crate) use self::{libtest::Outcome, tier::Tier};
use crate::{
    pack,
    preflight::{self, Need},
    process::{self, Stderr},
    tidy,
    workspace::Workspace,
};

/// What to run.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// One tier; all when absent.
    pub(crate) tier: Option<Tier>,
    /// Only these packages; all when empty.
    pub(crate) packages: Vec<String>,
    /// Only tests whose name, or whose file's name, contains one of these; all when empty.
    pub(crate) filters: Vec<String>,
}

impl Selection {
    /// Whether a package takes part.
    pub(crate) fn takes(&self, package: &str) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|name| name == package)
    }

    fn tiers(&self) -> Vec<Tier> {
        match self.tier {
            Some(tier) => vec![tier],
            // A filter is about tests; checks have no names to match.
            None if !self.filters.is_empty() => Tier::ALL
                .into_iter()
                .filter(|tier| tier.has_tests())
                .collect(),
            None => Tier::ALL.to_vec(),
        }
    }

    fn wants(&self, binary: &Binary, test: &str) -> bool {
        let named = |filter: &String| {
            (binary.integration && binary.target.contains(filter)) || test.contains(filter)
        };
        self.filters.is_empty() || self.filters.iter().any(named)
    }

    /// An empty tier is a mistake, but not where a part of the tests was asked for.
    fn may_be_empty(&self) -> bool {
        !self.filters.is_empty() || !self.packages.is_empty()
    }
}

/// Runs the selection and says how it went.
pub(crate) fn run(workspace: &Workspace, selection: &Selection) -> Result<ExitCode> {
    let tiers = selection.tiers();
    preflight::ensure(&needs(&tiers))?;
    let mut sum = Outcome::default();
    let (checks, tests): (Vec<Tier>, Vec<Tier>) = tiers.iter().partition(|tier| !tier.has_tests());
    for tier in checks {
        let begun = Instant::now();
        eprintln!("{tier} …");
        let outcome = check(workspace, selection, tier);
        finish(tier.name(), begun, outcome, &mut sum);
    }
    if !tests.is_empty() {
        let begun = Instant::now();
        if let Err(error) = run_tests(workspace, selection, &tests, &mut sum) {
            finish("build", begun, Err(error), &mut sum);
        }
    }
    if sum.ran_nothing() && !selection.filters.is_empty() {
        let filters = selection.filters.join(", ");
        let words = format!("no test and no file of tests is named like {filters}");
        finish(
            "selection",
            Instant::now(),
            Ok(failure("selection", &words)),
            &mut sum,
        );
    }
    for failed in &sum.failed {
        println!("failed: {failed}");
    }
    println!("{} passed, {} failed", sum.passed, sum.failed.len());
    Ok(if sum.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn needs(tiers: &[Tier]) -> Vec<Need> {
    let mut needs = vec![Need::Build];
    if tiers.iter().any(|tier| tier.is_slow()) {
        needs.push(Need::Go);
    }
    if tiers.iter().any(|tier| tier.is_serial()) {
        needs.extend([Need::Node, Need::Python]);
    }
    needs
}

/// Prints the line of a tier, then what failed, and adds it up.
fn finish(name: &str, begun: Instant, outcome: Result<Outcome>, sum: &mut Outcome) {
    let outcome = outcome.unwrap_or_else(|error| failure(name, &format!("{error:#}")));
    println!(
        "{}",
        tier_line(name, &outcome, &libtest::seconds(begun.elapsed()))
    );
    if !outcome.report.is_empty() {
        println!("{}", outcome.report.trim_end());
    }
    sum.add(Outcome {
        report: String::new(),
        ..outcome
    });
}

fn tier_line(name: &str, outcome: &Outcome, time: &str) -> String {
    let ignored = match outcome.ignored {
        0 => String::new(),
        count => format!(", {count} ignored"),
    };
    let (passed, failed) = (outcome.passed, outcome.failed.len());
    format!("{name:<10} {passed:>5} passed, {failed} failed{ignored}   ({time})")
}

fn failure(name: &str, words: &str) -> Outcome {
    Outcome {
        failed: vec![name.to_owned()],
        report: format!("{words}\n"),
        ..Outcome::default()
    }
}

/// A tier that is not made of cargo's tests.
fn check(workspace: &Workspace, selection: &Selection, tier: Tier) -> Result<Outcome> {
    let scope = |all: &'static str| -> Vec<String> {
        if selection.packages.is_empty() {
            return vec![all.to_owned()];
        }
        let packages = selection.packages.iter();
        packages
            .flat_map(|package| ["--package".to_owned(), package.clone()])
            .collect()
    };
    let mut command = workspace.cargo();
    match tier {
        Tier::Fmt => command
            .arg("fmt")
            .args(scope("--all"))
            .args(["--", "--check"]),
        Tier::Clippy => command.arg("clippy").args(scope("--workspace")).args([
            "--all-targets",
            "--locked",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
        _ => return tidy::check(workspace),
    };
    let mut report = String::new();
    let finished = process::run(&mut command, Stderr::Kept, &mut |line| {
        report.push_str(line);
        report.push('\n');
    })?;
    if finished.status.success() {
        return Ok(Outcome {
            passed: 1,
            ..Outcome::default()
        });
    }
    Ok(failure(
        tier.name(),
        &format!("{report}{}", finished.stderr),
    ))
}

fn run_tests(
    workspace: &Workspace,
    selection: &Selection,
    tiers: &[Tier],
    sum: &mut Outcome,
) -> Result<()> {
    let begun = Instant::now();
    let Some(binaries) = build::build(workspace, selection)? else {
        let outcome = failure("build", "the tests do not build; no test tier was run");
        finish("build", begun, Ok(outcome), sum);
        return Ok(());
    };
    let mut sorted: BTreeMap<Tier, Vec<Share>> = BTreeMap::new();
    for binary in binaries {
        for share in shares(&binary, &build::list(&binary)?, selection) {
            sorted.entry(share.tier).or_default().push(share);
        }
    }
    eprintln!("tests built in {}", libtest::seconds(begun.elapsed()));

    let mut packed = false;
    for &tier in tiers {
        let mine = sorted.remove(&tier).unwrap_or_default();
        eprintln!("{tier} …");
        let begun = Instant::now();
        if tier.is_serial() && !mine.is_empty() && !packed {
            // What these tiers deploy are the packed charms.
            if let Err(error) = pack::pack(workspace, None) {
                let outcome = failure(tier.name(), &format!("cannot pack the charms: {error:#}"));
                finish(tier.name(), begun, Ok(outcome), sum);
                continue;
            }
            packed = true;
        }
        finish(
            tier.name(),
            begun,
            run_tier(workspace, selection, tier, &mine),
            sum,
        );
    }
    Ok(())
}

/// The tests of one binary that belong to one tier.
#[derive(Debug)]
struct Share {
    tier: Tier,
    binary: Binary,
    tests: Vec<String>,
    /// How many tests the binary has.
    total: usize,
}

fn shares(binary: &Binary, tests: &[String], selection: &Selection) -> Vec<Share> {
    let mut sorted: BTreeMap<Tier, Vec<String>> = BTreeMap::new();
    for test in tests {
        let tier = Tier::of(&binary.package, &binary.target, binary.integration, test);
        if selection.takes(&binary.package) && selection.wants(binary, test) {
            sorted.entry(tier).or_default().push(test.clone());
        }
    }
    let share = |(tier, mine)| Share {
        tier,
        binary: binary.clone(),
        tests: mine,
        total: tests.len(),
    };
    sorted.into_iter().map(share).collect()
}

fn run_tier(
    workspace: &Workspace,
    selection: &Selection,
    tier: Tier,
    shares: &[Share],
) -> Result<Outcome> {
    let manner = Manner {
        serial: tier.is_serial(),
        shown: tier.is_slow(),
    };
    let run = |share: &Share| libtest::run(&share.binary, &share.tests, share.total, manner);
    let mut outcome = if tier.is_serial() {
        lanes::run(workspace, shares, run)?
    } else {
        shares
            .iter()
            .try_fold(Outcome::default(), |mut sum, share| {
                sum.add(run(share)?);
                anyhow::Ok(sum)
            })?
    };
    if tier == Tier::Unit && selection.filters.is_empty() && tidy::has_examples(workspace)? {
        outcome.add(examples(workspace, selection)?);
    }
    if outcome.ran_nothing() && !selection.may_be_empty() {
        return Ok(failure(tier.name(), "no test in this tier"));
    }
    Ok(outcome)
}

/// Documentation examples, which only cargo can run.
fn examples(workspace: &Workspace, selection: &Selection) -> Result<Outcome> {
    let mut command = workspace.cargo();
    command.args(["test", "--doc", "--locked", "--quiet"]);
    if selection.packages.is_empty() {
        command.arg("--workspace");
    }
    let packages = libraries(workspace, selection)?;
    if packages.is_empty() && !selection.packages.is_empty() {
        return Ok(Outcome::default());
    }
    for package in packages {
        command.args(["--package", &package]);
    }
    let (mut outcome, mut said) = (Outcome::default(), String::new());
    let finished = process::run(&mut command, Stderr::Kept, &mut |line| {
        if let Some((passed, _, ignored)) = libtest::summary(line) {
            outcome.passed += passed;
            outcome.ignored += ignored;
        }
        said.push_str(line);
        said.push('\n');
    })?;
    if !finished.status.success() {
        outcome.add(failure(
            "documentation examples",
            &format!("{said}{}", finished.stderr),
        ));
    }
    Ok(outcome)
}

/// The asked-for packages that have a library; none when all packages were asked for.
fn libraries(workspace: &Workspace, selection: &Selection) -> Result<Vec<String>> {
    if selection.packages.is_empty() {
        return Ok(Vec::new());
    }
    let metadata = workspace.metadata()?;
    let has_library = |name: &&String| {
        let mut members = metadata.members();
        members.any(|package| {
            package.name == **name && package.targets.values().flatten().any(|kind| kind == "lib")
        })
    };
    Ok(selection
        .packages
        .iter()
        .filter(has_library)
        .cloned()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_line_has_name_count_and_time() {
        let outcome = Outcome {
            passed: 12,
            ..Outcome::default()
        };
        assert_eq!(
            tier_line("unit", &outcome, "0.3 s"),
            "unit          12 passed, 0 failed   (0.3 s)"
        );
        let outcome = Outcome {
            ignored: 1,
            failed: vec!["a".to_owned()],
            ..outcome
        };
        assert_eq!(
            tier_line("apiserver", &outcome, "9.0 s"),
            "apiserver     12 passed, 1 failed, 1 ignored   (9.0 s)"
        );
    }

    #[test]
    fn each_test_of_a_binary_goes_to_one_tier() {
        let binary = Binary {
            package: "meshy".to_owned(),
            target: "meshy".to_owned(),
            integration: false,
            path: "/nowhere".into(),
            folder: "/".into(),
            programs: BTreeMap::new(),
        };
        let tests = ["a::tests::one", "a::property::two", "a::tests::three"].map(str::to_owned);
        let names = |selection: &Selection| -> Vec<(Tier, Vec<String>)> {
            let shares = shares(&binary, &tests, selection);
            shares
                .into_iter()
                .map(|share| (share.tier, share.tests))
                .collect()
        };
        let all = names(&Selection::default());
        assert_eq!(
            all,
            [
                (Tier::Unit, vec![tests[0].clone(), tests[2].clone()]),
                (Tier::Property, vec![tests[1].clone()]),
            ]
        );
        let some = names(&Selection {
            filters: vec!["three".to_owned()],
            ..Selection::default()
        });
        assert_eq!(some, [(Tier::Unit, vec![tests[2].clone()])]);
        let none = names(&Selection {
            filters: vec![binary.target.clone()],
            ..Selection::default()
        });
        assert_eq!(none, [], "a library's name is no name of a test");
        let file = Binary {
            target: "charmed".to_owned(),
            integration: true,
            ..binary.clone()
        };
        let of_the_file = Selection {
            filters: vec!["charmed".to_owned()],
            ..Selection::default()
        };
        let whole = shares(&file, &tests, &of_the_file);
        assert_eq!(whole.iter().map(|s| s.tests.len()).sum::<usize>(), 3);
    }

    #[test]
    fn a_filter_alone_runs_no_checks() {
        let selection = Selection {
            filters: vec!["x".to_owned()],
            ..Selection::default()
        };
        assert_eq!(selection.tiers().first(), Some(&Tier::Unit));
        assert_eq!(Selection::default().tiers(), Tier::ALL);
    }

    #[test]
    fn real_parts_are_asked_for_only_by_tiers_that_use_them() {
        assert_eq!(needs(&[Tier::Fmt, Tier::Unit]), [Need::Build]);
        assert_eq!(needs(&[Tier::Apiserver]), [Need::Build, Need::Go]);
        assert_eq!(
            needs(&[Tier::E2e]),
            [Need::Build, Need::Go, Need::Node, Need::Python]
        );
    }
}
