//! The `juju` command.
//!
//! Agents are of the version that `add-model --juju` says, else of `$JUJU_SIM_VERSION` (default 3.6.9),
//! and differ as Juju's do.
//! Models live under `$JUJU_DATA/models/NAME` (default `~/.local/share/juju-sim`). Every command
//! opens its model, lets the agents run until they are idle, and then answers, so polling
//! `juju status` makes time pass. Exit codes: 0, 1 for a refusal or a failed task, 2 for a wrong
//! command line.

mod act;
mod change;
mod inspect;
mod models;
mod offers;
mod table;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::Value;

use crate::Model;
use crate::ModelError;
use crate::Options;
use crate::cli::table::COMMANDS;
use crate::cli::table::Command;
use crate::clock::SystemClock;
use crate::cloud::Cloud;
use crate::flags;
use crate::flags::Parsed;
use crate::jujuc;

/// How a command fails.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong command line: exit code 2.
    Usage(String),
    /// Refused or failed: exit code 1, with what is still printed on standard output.
    Run { text: String, stdout: String },
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Run {
            text: error.chain(),
            stdout: String::new(),
        }
    }
}

type Answer = Result<String, Failure>;

/// Where and how commands run.
pub(crate) struct Session {
    /// Directory of all models and the name of the current one.
    pub(crate) data: PathBuf,
    /// Model named by the environment.
    pub(crate) model: Option<String>,
    /// The cluster.
    pub(crate) cloud: Arc<dyn Cloud>,
    /// Options of every model.
    pub(crate) options: Options,
}

/// Runs a `juju` command line (`args[0]` is the program) over `cloud`. Under the name of a hook
/// tool the program is that tool, so a binary built on this needs no `jujuc` beside it.
pub fn main(args: impl IntoIterator<Item = String>, cloud: Arc<dyn Cloud>) -> ExitCode {
    let args: Vec<String> = args.into_iter().collect();
    if args.first().is_some_and(|program| jujuc::is_tool(program)) {
        return jujuc::main(&args);
    }
    let session = Session::from_environment(cloud);
    let (code, stdout, stderr) =
        match session.and_then(|s| execute(&s, args.get(1..).unwrap_or_default())) {
            Ok(stdout) => (0, stdout, String::new()),
            Err(Failure::Usage(text)) => (2, String::new(), format!("ERROR {text}\n")),
            Err(Failure::Run { text, stdout }) => (1, stdout, format!("ERROR {text}\n")),
        };
    let printed = io::stdout()
        .write_all(stdout.as_bytes())
        .and_then(|()| io::stdout().flush())
        .and_then(|()| io::stderr().write_all(stderr.as_bytes()));
    ExitCode::from(if printed.is_ok() { code } else { 1 })
}

fn execute(session: &Session, args: &[String]) -> Answer {
    let Some((name, rest)) = args.split_first() else {
        return Ok(help());
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        return Ok(match rest.first().and_then(|n| find(n)) {
            Some(command) => format!("Usage: juju {}\n", command.usage),
            None => help(),
        });
    }
    let Some(command) = find(name) else {
        let names = COMMANDS
            .iter()
            .flat_map(|c| std::iter::once(c.name).chain(c.also.iter().copied()));
        let hint = match flags::nearest(name, names) {
            Some(near) => format!("did you mean \"juju {near}\"?"),
            None => "see \"juju help\" for the commands this simulator knows".to_owned(),
        };
        return usage(format!("unknown command \"{name}\"; {hint}"));
    };
    if rest
        .iter()
        .take_while(|a| *a != "--")
        .any(|a| a == "--help" || a == "-h")
    {
        return Ok(format!("Usage: juju {}\n", command.usage));
    }
    let line = flags::parse(rest, command.flags).map_err(|text| {
        Failure::Usage(
            match text.strip_prefix("option provided but not defined: ") {
                Some(flag) => format!("{text}; {}", flag_hint(command, flag)),
                None => text,
            },
        )
    })?;
    (command.run)(session, &line)
}

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS
        .iter()
        .find(|c| c.name == name || c.also.contains(&name))
}

fn flag_hint(command: &Command, flag: &str) -> String {
    let known = || command.flags.iter().flat_map(|f| f.names.iter().copied());
    match flags::nearest(
        flag.trim_start_matches('-'),
        known().filter(|n| n.len() > 1),
    ) {
        Some(near) => format!("did you mean --{near}?"),
        None => format!("usage: juju {}", command.usage),
    }
}

fn help() -> String {
    let mut text =
        "A Juju model simulator that runs real charm processes.\n\nCommands:\n".to_owned();
    for command in COMMANDS {
        let _ = writeln!(text, "  juju {}", command.usage);
    }
    text
}

impl Session {
    #[expect(
        clippy::disallowed_methods,
        reason = "the command finds its models in the environment"
    )]
    fn from_environment(cloud: Arc<dyn Cloud>) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let data = match (variable("JUJU_DATA"), variable("HOME")) {
            (Some(data), _) => PathBuf::from(data),
            (None, Some(home)) => PathBuf::from(home).join(".local/share/juju-sim"),
            (None, None) => return usage("set JUJU_DATA to a directory for the models"),
        };
        let mut options = Options::default();
        if let Some(version) = variable("JUJU_SIM_VERSION") {
            options.juju_version = version;
        }
        // A program built on this library serves as the hook tools itself.
        let exe = std::env::current_exe().ok();
        let beside = exe
            .as_ref()
            .and_then(|e| e.parent())
            .map(|d| d.join("jujuc"));
        options.jujuc = beside.filter(|p| p.exists()).or(exe);
        Ok(Self {
            data,
            model: variable("JUJU_MODEL"),
            cloud,
            options,
        })
    }

    /// Opens the model a command is about and lets its agents run.
    fn open(&self, line: &Parsed) -> Result<Model, Failure> {
        let name = self.named(line)?;
        self.open_named(&name)
    }

    /// Opens a model and lets its agents run; and before, in turn with it, those of the models it has
    /// relations with, until none has anything to do.
    fn open_named(&self, name: &str) -> Result<Model, Failure> {
        /// Rounds after which charms that keep answering each other are left for the next command.
        const ROUNDS: usize = 20;
        let mut rounds = 0;
        loop {
            let mut model = self.open_as_is(name)?;
            model.advance()?;
            let linked = model.linked();
            if linked.is_empty() || rounds == ROUNDS {
                return Ok(model);
            }
            // One lock at a time, so that two commands never wait for each other.
            drop(model);
            let mut busy = false;
            let mut turn = |name: &str| -> Result<Model, Failure> {
                let mut model = self.open_as_is(name)?;
                let (taken, news) = model.go_on()?;
                busy |= taken > 0 || news;
                Ok(model)
            };
            for other in linked {
                if self.model_dir(&other)?.join("state.json").exists() {
                    drop(turn(&other)?);
                }
            }
            let model = turn(name)?;
            if !busy {
                return Ok(model);
            }
            rounds += 1;
        }
    }

    /// The name of the model a command is about.
    fn named(&self, line: &Parsed) -> Result<String, Failure> {
        let current = || std::fs::read_to_string(self.data.join("current-model")).ok();
        let named = line
            .get("m")
            .map(ToOwned::to_owned)
            .or_else(|| self.model.clone());
        let Some(name) = named.or_else(current) else {
            return fail("no model selected; make one with \"juju add-model NAME\"");
        };
        let name = name.trim().rsplit([':', '/']).next();
        Ok(name.unwrap_or_default().to_owned())
    }

    /// Opens a model.
    fn open_as_is(&self, name: &str) -> Result<Model, Failure> {
        let dir = self.model_dir(name)?;
        if !dir.join("state.json").exists() {
            return fail(format!(
                "model {name:?} not found; make it with \"juju add-model {name}\""
            ));
        }
        Ok(Model::open(
            &dir,
            Arc::clone(&self.cloud),
            Arc::new(SystemClock),
            self.options.clone(),
        )?)
    }

    /// The directory of a model.
    fn model_dir(&self, name: &str) -> Result<PathBuf, Failure> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(plain) || name.starts_with('-') {
            return usage(format!(
                "{name:?} is not a valid model name: use lower-case letters, digits and hyphens"
            ));
        }
        Ok(self.data.join("models").join(name))
    }
}

fn usage<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Usage(text.into()))
}

fn fail<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Run {
        text: text.into(),
        stdout: String::new(),
    })
}

/// Exactly `N` arguments, or the usage line.
fn arguments<'a, const N: usize>(
    line: &'a Parsed,
    shape: &str,
) -> Result<&'a [String; N], Failure> {
    line.args
        .as_slice()
        .try_into()
        .or_else(|_| usage(format!("usage: juju {shape}")))
}

/// Prints a document as JSON or, without a format, as YAML.
fn document(line: &Parsed, value: &Value) -> Answer {
    match line.get("format") {
        Some("json") => Ok(crate::gojson::json(value) + "\n"),
        None | Some("yaml" | "tabular" | "smart") => Ok(crate::gojson::yaml(value)),
        Some(other) => usage(format!("unknown format {other:?}; use json or yaml")),
    }
}

/// `key=value` arguments by key.
fn pairs<'a>(args: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>, Failure> {
    args.map(|arg| match arg.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => usage(format!("expected \"key=value\", got {arg:?}")),
    })
    .collect()
}
