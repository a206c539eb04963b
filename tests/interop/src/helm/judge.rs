//! Helm's own code for many questions: one process answers a batch, so that a question costs a render and no start.
//!
//! The process reads the questions from a file and answers into a pipe. It is therefore ahead of its reader by what a pipe
//! holds and no more.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::Artifact;

use super::{Answer, Case, GARBAGE, canonical, command, documents::Documents, place};

/// Both ways to Helm: the command, and its code in a process for many questions.
#[derive(Debug, Clone)]
pub struct Judge {
    helm: PathBuf,
    batch: PathBuf,
}

/// What one run of Helm said.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Its standard output.
    pub output: String,
    /// Its complaint: the lines from `Error:` on; empty where it succeeded.
    pub error: String,
    /// Whether it failed.
    pub failed: bool,
}

impl Judge {
    /// Builds both programs where they are missing.
    pub fn build() -> Result<Self> {
        let built = testbed::build::need(&[Artifact::Helm, Artifact::HelmJudge], &mut |_| {})?;
        Ok(Self {
            helm: built.path(Artifact::Helm)?.to_owned(),
            batch: built.path(Artifact::HelmJudge)?.to_owned(),
        })
    }

    /// Asks about cases of one chart, in order. Files of the questions lie in `scratch`, which one batch at a time may use.
    pub fn ask<'c>(
        &self,
        chart_dir: &Path,
        release: &str,
        cases: &'c [Case],
        scratch: &Path,
    ) -> Result<Batch<'c>> {
        let lines = scratch.join("questions");
        let mut questions = File::create(&lines)?;
        let mut arguments = Vec::new();
        for (number, case) in cases.iter().enumerate() {
            let values = scratch.join(format!("{number}.json"));
            fs::write(&values, serde_json::to_vec(&case.values)?)?;
            let question = case.arguments(chart_dir, release, &values)?;
            writeln!(questions, "{}", json!({"arguments": question}))?;
            arguments.push(question);
        }
        let mut process = command(&self.batch)
            .env(GARBAGE.0, GARBAGE.1)
            .stdin(File::open(&lines)?)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", self.batch.display()))?;
        let answers = process.stdout.take().context("no pipe")?;
        Ok(Batch {
            process: Running(process),
            answers: BufReader::new(answers),
            cases,
            arguments,
            next: 0,
        })
    }

    /// The same question to the command itself.
    pub fn command(&self, arguments: &[String]) -> Result<Reply> {
        let output = command(&self.helm)
            .args(arguments)
            .output()
            .context("running helm")?;
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        let from = complaints.find("Error: ").unwrap_or(complaints.len());
        Ok(Reply {
            output: String::from_utf8(output.stdout).context("helm wrote no utf-8")?,
            error: complaints[from..].to_owned(),
            failed: !output.status.success(),
        })
    }
}

/// The answers to a batch, as they come.
#[derive(Debug)]
pub struct Batch<'c> {
    process: Running,
    answers: BufReader<ChildStdout>,
    cases: &'c [Case],
    arguments: Vec<Vec<String>>,
    next: usize,
}

/// One question with its answer.
#[derive(Debug)]
pub struct Answered<'c> {
    /// What was asked.
    pub case: &'c Case,
    /// The same as arguments of the command.
    pub arguments: Vec<String>,
    /// What came back.
    pub reply: Reply,
}

impl<'c> Batch<'c> {
    /// The next answer; none after the last, when the process must have ended well.
    pub fn next_answer(&mut self) -> Result<Option<Answered<'c>>> {
        let Some(case) = self.cases.get(self.next) else {
            let status = self.process.0.wait()?;
            ensure!(status.success(), "helm's process ended with {status}");
            return Ok(None);
        };
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)
            .with_context(|| format!("helm's process gave {line:?} for {}", case.name))?;
        let mut text = |key: &str| match answer[key].take() {
            Value::String(text) => text,
            _ => String::new(),
        };
        let reply = Reply {
            output: text("output"),
            error: text("error"),
            failed: answer["failed"] == true,
        };
        let arguments = std::mem::take(&mut self.arguments[self.next]);
        self.next += 1;
        Ok(Some(Answered {
            case,
            arguments,
            reply,
        }))
    }
}

impl Reply {
    /// Whether both say the same. Helm lists what a schema forbids in no certain order, so a complaint is compared as the
    /// words it is made of.
    pub fn is_as(&self, other: &Self) -> bool {
        let Self {
            output,
            error: _,
            failed,
        } = self;
        *output == other.output && *failed == other.failed && self.words() == other.words()
    }

    /// What kind of complaint it is: the place in a template, or the first line of words.
    pub fn kind(&self) -> String {
        let first = || self.error.lines().next().unwrap_or_default().to_owned();
        place(&self.error).unwrap_or_else(first)
    }

    /// The words of the complaint, sorted.
    fn words(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self
            .error
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|word| !word.is_empty())
            .collect();
        words.sort_unstable();
        words
    }

    /// The objects in it, or why there are none.
    pub fn answer(self, documents: &mut Documents) -> Result<Answer> {
        if self.failed {
            return Ok(Err(self.error.trim().to_owned()));
        }
        let objects = documents
            .parse(&self.output)
            .context("reading helm's output")?;
        Ok(Ok(canonical(objects)))
    }
}

impl Case {
    /// The arguments that ask Helm about it.
    fn arguments(&self, chart_dir: &Path, release: &str, values: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path of utf-8");
        let mut arguments = vec![
            "template".to_owned(),
            release.to_owned(),
            text(chart_dir)?,
            "--namespace".to_owned(),
            self.namespace.clone(),
            "--kube-version".to_owned(),
            self.kube_version.clone(),
            "--values".to_owned(),
            text(values)?,
        ];
        if let Some(file) = &self.file {
            arguments.extend(["--values".to_owned(), text(&file.path)?]);
        }
        if self.skip_schema {
            arguments.push("--skip-schema-validation".to_owned());
        }
        if self.is_upgrade {
            arguments.push("--is-upgrade".to_owned());
        }
        Ok(arguments)
    }
}

/// A process that ends with its owner.
#[derive(Debug)]
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(error: &str) -> Reply {
        Reply {
            output: String::new(),
            error: error.to_owned(),
            failed: true,
        }
    }

    #[test]
    fn complaints_are_the_same_in_any_order_of_their_words() {
        let one = complaint("Error: additional properties 'b', 'a' not allowed\n");
        assert!(one.is_as(&complaint(
            "Error: additional properties 'a', 'b' not allowed"
        )));
        assert!(!one.is_as(&complaint(
            "Error: additional properties 'a', 'c' not allowed"
        )));
        assert!(!one.is_as(&Reply {
            failed: false,
            ..one.clone()
        }));
    }
}
