//! Running a test binary and reading what the standard test harness prints.
//!
//! Invariant: a selected test without a result counts as failed, so a binary that dies half way
//! cannot pass.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::build::Binary;
use crate::process::{self, Stderr};

/// What came of some tests.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: usize,
    pub(crate) ignored: usize,
    /// Names of the failed ones.
    pub(crate) failed: Vec<String>,
    /// What the failed ones said.
    pub(crate) report: String,
}

impl Outcome {
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.ignored += other.ignored;
        self.failed.extend(other.failed);
        self.report.push_str(&other.report);
    }

    /// Whether no test ran, be it well or not.
    pub(crate) fn ran_nothing(&self) -> bool {
        self.passed == 0 && self.failed.is_empty()
    }

    /// Adds a line to what is reported.
    pub(crate) fn say(&mut self, line: &str) {
        self.report.push_str(line);
        self.report.push('\n');
    }
}

/// How to run a binary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// One test after the other.
    pub(crate) serial: bool,
    /// Results and standard error are shown as they come.
    pub(crate) shown: bool,
}

/// Runs the named tests of a binary; `total` is how many it has.
pub(crate) fn run(
    binary: &Binary,
    tests: &[String],
    total: usize,
    manner: Manner,
) -> Result<Outcome> {
    let mut command = binary.command();
    command.args(["--color", "never"]);
    if manner.serial {
        command.args(["--test-threads", "1"]);
    }
    if tests.len() < total {
        command.arg("--exact").args(tests);
    }
    let mut reader = Reader::default();
    let mut last = Instant::now();
    let stderr = if manner.shown {
        Stderr::Shown
    } else {
        Stderr::Kept
    };
    let finished = process::run(&mut command, stderr, &mut |line| {
        if let Some((test, result)) = reader.read(line)
            && manner.shown
        {
            println!(
                "  {} {test} {result} ({:.1} s)",
                binary.name(),
                last.elapsed().as_secs_f64()
            );
            last = Instant::now();
        }
    })?;
    let died = (!finished.status.success()).then(|| finished.cause());
    Ok(reader.outcome(binary, tests, died.as_deref(), &finished.stderr))
}

#[derive(Debug, Default)]
struct Reader {
    passed: Vec<String>,
    ignored: Vec<String>,
    failed: Vec<String>,
    /// The counts of the closing line: passed, failed, ignored.
    summary: Option<(usize, usize, usize)>,
    failures: String,
    in_failures: bool,
    /// Lines that are no result, kept for a binary that dies.
    other: Vec<String>,
}

impl Reader {
    /// Takes a line; a test's name and result if it is one.
    fn read<'l>(&mut self, line: &'l str) -> Option<(&'l str, &'static str)> {
        if let Some(summary) = summary(line) {
            self.summary = Some(summary);
            self.in_failures = false;
            return None;
        }
        if line == "failures:" {
            // The second such heading starts the bare list of names.
            self.in_failures = self.failures.is_empty();
        }
        if self.in_failures {
            self.failures.push_str(line);
            self.failures.push('\n');
            return None;
        }
        let Some((name, result)) = result(line) else {
            self.other.push(line.to_owned());
            return None;
        };
        match result {
            "ok" => &mut self.passed,
            "ignored" => &mut self.ignored,
            _ => &mut self.failed,
        }
        .push(name.to_owned());
        Some((name, result))
    }

    fn outcome(
        mut self,
        binary: &Binary,
        tests: &[String],
        died: Option<&str>,
        stderr: &str,
    ) -> Outcome {
        let name = binary.name();
        let mut report = String::new();
        let mut passed = self.passed.len();
        if let Some((summed, _, ignored)) = self.summary {
            // Output of a child that tests started can tear a result line apart; the sums cannot be torn.
            passed = summed;
            self.ignored.resize(ignored, String::new());
        } else {
            let done = [self.passed.as_slice(), &self.failed, &self.ignored].concat();
            let lost = tests.iter().filter(|test| !done.contains(test)).cloned();
            self.failed.extend(lost.collect::<Vec<_>>());
            report = format!(
                "---- {name} ended early: {}\n",
                died.unwrap_or("no closing line")
            );
            report.push_str(&tail(&self.other.join("\n"), 60));
        }
        if let Some((_, failed, _)) = self.summary
            && failed > self.failed.len()
        {
            self.failed
                .resize(failed, "(name lost in other output)".to_owned());
        }
        if died.is_some() && self.failed.is_empty() {
            self.failed
                .push(format!("(the binary: {})", died.unwrap_or_default()));
        }
        if !self.failed.is_empty() {
            report.push_str(self.failures.trim_start_matches("failures:\n"));
            if !stderr.is_empty() {
                report.extend([
                    "---- ",
                    &name,
                    " on standard error:
",
                    &tail(stderr, 60),
                ]);
            }
        }
        Outcome {
            passed,
            ignored: self.ignored.len(),
            failed: self
                .failed
                .iter()
                .map(|test| format!("{name} {test}"))
                .collect(),
            report,
        }
    }
}

/// `test NAME ... ok`, also `- should panic` after the name and a reason after `ignored`.
fn result(line: &str) -> Option<(&str, &'static str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let word = ["ok", "FAILED", "ignored"].into_iter().find(|word| {
        result == *word
            || result
                .strip_prefix(word)
                .is_some_and(|rest| rest.starts_with([',', ' ']))
    })?;
    Some((name, word))
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; …`: passed, failed, ignored.
pub(crate) fn summary(line: &str) -> Option<(usize, usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| -> Option<usize> {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(word)?.trim().parse().ok())
    };
    Some((count("passed")?, count("failed")?, count("ignored")?))
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    let mut kept = all[all.len().saturating_sub(lines)..].join("\n");
    kept.push('\n');
    kept
}

/// Seconds for the output.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn outcome(lines: &[&str], tests: &[&str], died: Option<&str>, stderr: &str) -> Outcome {
        let binary = Binary {
            package: "meshy".to_owned(),
            target: "flow".to_owned(),
            integration: true,
            path: "/nowhere".into(),
            folder: "/".into(),
            programs: BTreeMap::new(),
        };
        let mut reader = Reader::default();
        for line in lines {
            reader.read(line);
        }
        let tests: Vec<String> = tests.iter().map(|&test| test.to_owned()).collect();
        reader.outcome(&binary, &tests, died, stderr)
    }

    #[test]
    fn results_are_read_from_their_lines() {
        let check = |line, expect| assert_eq!(result(line), expect, "{line}");
        check("test a::b ... ok", Some(("a::b", "ok")));
        check("test a::b ... FAILED", Some(("a::b", "FAILED")));
        check("test a - should panic ... ok", Some(("a", "ok")));
        check("test a ... ignored, needs a moon", Some(("a", "ignored")));
        check("test a ... okay", None);
        check("running 3 tests", None);
    }

    #[test]
    fn passing_tests_are_counted() {
        let lines = [
            "running 2 tests",
            "test a ... ok",
            "test b ... ignored",
            "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ];
        let expect = Outcome {
            passed: 1,
            ignored: 1,
            ..Outcome::default()
        };
        assert_eq!(outcome(&lines, &["a", "b"], None, "noise"), expect);
    }

    #[test]
    fn a_failure_is_named_with_what_it_said() {
        let lines = [
            "test a ... ok",
            "test b ... FAILED",
            "",
            "failures:",
            "",
            "---- b stdout ----",
            "left is not right",
            "",
            "failures:",
            "    b",
            "",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ];
        let found = outcome(&lines, &["a", "b"], Some("exit code 101"), "a warning\n");
        assert_eq!(
            (found.passed, found.failed),
            (1, vec!["meshy/flow b".to_owned()])
        );
        assert!(
            found.report.contains("left is not right"),
            "{}",
            found.report
        );
        assert!(found.report.contains("a warning"), "{}", found.report);
        assert_eq!(found.report.matches("    b").count(), 0, "{}", found.report);
    }

    #[test]
    fn tests_that_a_dying_binary_never_reached_have_failed() {
        let found = outcome(
            &["test a ... ok", "test b ... "],
            &["a", "b", "c"],
            Some("signal 6"),
            "",
        );
        assert_eq!(found.passed, 1);
        assert_eq!(found.failed, ["meshy/flow b", "meshy/flow c"]);
        assert!(found.report.contains("signal 6"));
    }

    #[test]
    fn a_torn_result_line_is_made_good_by_the_sums() {
        let lines = [
            "test a ... noise of a child",
            "ok",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ];
        assert_eq!(
            outcome(&lines, &["a"], None, ""),
            Outcome {
                passed: 1,
                ..Outcome::default()
            }
        );
    }
}
