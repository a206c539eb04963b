//! The real charm libraries, asked many questions by one process.
//!
//! Invariants: there is one process of Python for each of ours, started by the first question and
//! ended with us; a question leaves nothing behind for the next one.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::venv::{Venv, command, scripts};

static PEERS: Mutex<Option<Peers>> = Mutex::new(None);

/// What one side of a relation did in a hook, and what it made of the other side.
#[derive(Debug, Deserialize)]
pub struct Heard {
    /// The application's databag, as the library leaves it.
    pub app: BTreeMap<String, String>,
    /// The unit's.
    pub unit: BTreeMap<String, String>,
    /// What it reads from the other side.
    pub read: Value,
    /// Why it refuses the other side's.
    pub error: Option<String>,
}

/// Asks a module of `python/wire`; the answers are in the order of the questions.
///
/// # Errors
/// The module fails, which is not the same as a library that refuses something: that is an answer.
pub fn ask<T: DeserializeOwned>(library: &str, questions: &[Value]) -> Result<Vec<T>> {
    let mut peers = PEERS.lock().unwrap_or_else(PoisonError::into_inner);
    let ready = match peers.take() {
        Some(ready) => ready,
        None => Peers::start()?,
    };
    // A process that failed half way is not asked again.
    let answers = peers.insert(ready).ask(library, questions);
    if answers.is_err() {
        *peers = None;
    }
    let answers = answers.with_context(|| format!("library {library}"))?;
    serde_json::from_value(answers.clone())
        .with_context(|| format!("library {library} answered {answers}"))
}

/// The process.
struct Peers {
    /// Ends when its input does.
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Answers(Value),
    Error(String),
}

impl Peers {
    fn start() -> Result<Self> {
        let mut process = command(Venv::ready()?.python())
            .args(["-W", "ignore"])
            .arg(scripts().join("peers.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().context("no input")?;
        let output = process.stdout.take().context("no output")?;
        Ok(Self {
            _process: process,
            input,
            output: BufReader::new(output),
        })
    }

    fn ask(&mut self, library: &str, questions: &[Value]) -> Result<Value> {
        let question = json!({"library": library, "questions": questions});
        writeln!(self.input, "{question}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        match serde_json::from_str(&line).with_context(|| format!("not an answer: {line:?}"))? {
            Said::Answers(answers) => Ok(answers),
            Said::Error(error) => bail!(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_fails_is_an_error_and_the_next_question_is_answered() {
        let none: Result<Vec<Value>> = ask("no_such_library", &[]);
        let text = format!("{:#}", none.unwrap_err());
        assert!(text.contains("no_such_library"), "{text}");
        let question = json!({"side": "requirer", "remote_app": {"root_namespace": "istio-lab"}});
        let answers: Vec<Value> = ask("istio_metadata", &[question]).unwrap();
        assert_eq!(answers[0]["read"], "istio-lab");
    }
}
