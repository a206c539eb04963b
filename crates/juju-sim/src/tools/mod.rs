//! The hook tools: one function each, with Juju's arguments, messages and exit codes.

mod action;
mod network;
mod relation;
mod secret;
mod status;
mod table;
mod unit;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::agent::context::HookRun;
use crate::agent::server::Outcome;
use crate::flags;
use crate::flags::Parsed;
use crate::gojson;
use crate::state::Databag;
use crate::tools::table::TOOLS;

/// How a tool fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The model refuses: exit code 1.
    Run(String),
}

/// A tool's standard output, or its failure.
type Answer = Result<String, Failure>;

/// One call of a tool.
pub(crate) struct Call<'a> {
    /// Parsed command line.
    pub(crate) line: Parsed,
    /// Standard input, when it was asked for.
    pub(crate) stdin: Option<&'a str>,
    /// Working directory of the caller.
    pub(crate) dir: &'a str,
}

/// Names of all tools.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Whether a command line makes its tool read standard input.
pub(crate) fn wants_stdin(args: &[String]) -> bool {
    let own = args.split(|a| a == "--").next().unwrap_or_default();
    own.iter().any(|a| a == "--file=-")
        || own
            .windows(2)
            .any(|pair| pair[0] == "--file" && pair[1] == "-")
}

/// Carries out one call.
pub(crate) fn call(
    run: &mut HookRun<'_>,
    name: &str,
    args: &[String],
    stdin: Option<&str>,
    dir: &str,
) -> Outcome {
    let failed = |code, text: &str| Outcome {
        code,
        stdout: String::new(),
        stderr: format!("ERROR {text}\n"),
    };
    let Some(tool) = TOOLS.iter().find(|t| t.name == name) else {
        return failed(1, &format!("unknown command: {name}"));
    };
    if args
        .iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--help" || a == "-h")
    {
        let flags = tool.flags.iter().fold(String::new(), |text, f| {
            text + "  --" + &f.names.join(", -") + "\n"
        });
        let stdout = format!("Usage: {name} [options]\n\nOptions:\n{flags}");
        return Outcome {
            code: 0,
            stdout,
            stderr: String::new(),
        };
    }
    let answer = flags::parse(args, tool.flags)
        .map_err(Failure::Usage)
        .and_then(|line| (tool.run)(run, &Call { line, stdin, dir }));
    match answer {
        Ok(stdout) => Outcome {
            code: 0,
            stdout,
            stderr: String::new(),
        },
        Err(Failure::Usage(text)) => failed(2, &text),
        Err(Failure::Run(text)) => failed(1, &text),
    }
}

impl Call<'_> {
    /// Prints a value in the format asked for, to standard output or the file of `-o`.
    fn print(&self, value: &Value) -> Answer {
        let text = match self.line.get("format") {
            None | Some("smart") => gojson::smart(value),
            Some("json") => gojson::json(value) + "\n",
            Some("yaml") => gojson::yaml(value),
            Some(other) => {
                return usage(format!(
                    "invalid value \"{other}\" for option --format: unknown format \"{other}\""
                ));
            }
        };
        let Some(file) = self.line.get("o") else {
            return Ok(text);
        };
        fs::write(Path::new(self.dir).join(file), text).map_err(|e| Failure::Run(e.to_string()))?;
        Ok(String::new())
    }

    /// Settings from `--file` and `key=value` arguments; the latter win.
    fn settings(&self, pairs: &[String]) -> Result<Databag, Failure> {
        let mut settings = match self.line.get("file") {
            None => Databag::new(),
            Some("-") => from_yaml(self.stdin.unwrap_or_default())?,
            Some(path) => from_yaml(&read(self.dir, path)?)?,
        };
        let mut given = Databag::new();
        for pair in pairs.iter().filter(|p| !p.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return usage(format!("expected \"key=value\", got {pair:?}"));
            };
            let key = key.trim();
            if given
                .insert(key.to_owned(), value.trim().to_owned())
                .is_some()
            {
                return usage(format!("key {key:?} specified more than once"));
            }
        }
        settings.append(&mut given);
        Ok(settings)
    }
}

/// A map of strings from YAML; plain scalars are taken by their text.
fn from_yaml(text: &str) -> Result<Databag, Failure> {
    if text.trim().is_empty() {
        return Ok(Databag::new());
    }
    let value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => yaml::parse(text).map_err(|e| Failure::Run(e.to_string()))?,
    };
    let Value::Object(map) = value else {
        return Err(Failure::Run("expected a map of settings".into()));
    };
    map.into_iter()
        .map(|(key, value)| match value {
            Value::String(text) => Ok((key, text)),
            Value::Bool(_) | Value::Number(_) => Ok((key, gojson::json(&value))),
            Value::Null => Ok((key, String::new())),
            _ => Err(Failure::Run(format!("value of {key:?} is not a string"))),
        })
        .collect()
}

fn read(dir: &str, path: &str) -> Result<String, Failure> {
    fs::read_to_string(Path::new(dir).join(path))
        .map_err(|e| Failure::Run(format!("cannot read {path}: {e}")))
}

fn usage<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(text.into()))
}

fn refused<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Run(text.into()))
}

/// Refuses arguments a tool does not take.
fn no_more(args: &[String]) -> Result<(), Failure> {
    flags::no_more(args).map_err(Failure::Usage)
}

/// Checks the content of a secret.
pub(crate) fn secret_content(content: Databag) -> Result<Databag, String> {
    secret::validated(content)
}

/// All secrets in a listing for the operator.
pub(crate) fn secret_listing(
    secrets: &std::collections::BTreeMap<String, crate::state::Secret>,
) -> Value {
    secret::listing(secrets)
}
