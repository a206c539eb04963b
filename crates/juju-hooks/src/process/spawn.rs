//! Starting a hook tool and reading its answer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write as _};
use std::process::{Child, Command, Output, Stdio};

use serde::de::DeserializeOwned;

use super::ProcessTools;
use crate::answers::read;
use crate::error::{Result, ToolError};
use crate::limits::MAX_ARGUMENT_BYTES;

/// How many tools run at the same time. They wait for one agent, which answers one after the
/// other; what is gained is the start of their processes.
const AT_ONCE: usize = 4;

/// A call without input.
pub(super) struct Call {
    pub(super) tool: &'static str,
    pub(super) args: Vec<String>,
}

impl Call {
    pub(super) fn new<S: ToString>(tool: &'static str, args: &[S]) -> Self {
        Self {
            tool,
            args: args.iter().map(ToString::to_string).collect(),
        }
    }
}

impl ProcessTools {
    /// Runs `tool` and gives its standard output.
    pub(super) fn run<S: AsRef<str>>(
        &self,
        tool: &'static str,
        args: &[S],
        input: Option<&str>,
    ) -> Result<String> {
        let mut child = self.start(tool, args, input.is_some())?;
        let stdin = child.stdin.take();
        let (fed, output) = std::thread::scope(|scope| {
            let feeder = stdin
                .zip(input)
                .map(|(mut stdin, input)| scope.spawn(move || stdin.write_all(input.as_bytes())));
            let output = child.wait_with_output();
            (feeder.and_then(|feeder| feeder.join().ok()), output)
        });
        let answer = judge(tool, output)?;
        // A tool that fails may well close its input early; one that succeeds has read all of it.
        match fed {
            Some(Err(error)) if error.kind() != ErrorKind::BrokenPipe => {
                Err(lost(tool, "cannot write to the hook tool", error))
            }
            _ => Ok(answer),
        }
    }

    /// Runs several calls, some of them at the same time; the standard outputs in their order.
    pub(super) fn run_many(&self, calls: &[Call]) -> Vec<Result<String>> {
        let mut running = VecDeque::new();
        let mut answers = Vec::with_capacity(calls.len());
        for call in calls {
            if running.len() == AT_ONCE {
                answers.extend(running.pop_front().map(end));
            }
            let started = self.start(call.tool, &call.args, false);
            running.push_back((call.tool, started));
        }
        answers.extend(running.into_iter().map(end));
        answers
    }

    fn start<S: AsRef<str>>(&self, tool: &'static str, args: &[S], fed: bool) -> Result<Child> {
        if let Some(long) = args
            .iter()
            .map(|a| a.as_ref().len())
            .find(|n| *n > MAX_ARGUMENT_BYTES)
        {
            return Err(ToolError::TooLarge { tool, bytes: long });
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes"
        )]
        let mut command = Command::new(tool);
        command.args(args.iter().map(AsRef::as_ref));
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.stdin(if fed { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
            .spawn()
            .map_err(|e| lost(tool, "cannot start the hook tool", e))
    }

    /// Runs `tool` and reads its answer as JSON; no answer at all counts as `null`.
    pub(super) fn json<T: DeserializeOwned>(&self, tool: &'static str, args: &[&str]) -> Result<T> {
        read(tool, &self.run(tool, args, None)?)
    }

    /// As [`Self::json`], for tools that list texts or say `null`.
    pub(super) fn json_list(&self, tool: &'static str, args: &[&str]) -> Result<Vec<String>> {
        Ok(self
            .json::<Option<Vec<String>>>(tool, args)?
            .unwrap_or_default())
    }
}

fn lost(tool: &'static str, detail: &str, source: io::Error) -> ToolError {
    ToolError::Transport {
        tool,
        detail: detail.to_owned(),
        source: Some(source),
    }
}

fn end((tool, started): (&'static str, Result<Child>)) -> Result<String> {
    judge(tool, started?.wait_with_output())
}

/// The standard output of a tool that did what it was asked.
fn judge(tool: &'static str, output: io::Result<Output>) -> Result<String> {
    let output = output.map_err(|e| lost(tool, "cannot wait for the hook tool", e))?;
    match output.status.code() {
        Some(0) => {}
        Some(code) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(ToolError::classify(tool, code, &stderr));
        }
        None => {
            let detail = format!("ended by a signal ({})", output.status);
            return Err(ToolError::Transport {
                tool,
                detail,
                source: None,
            });
        }
    }
    String::from_utf8(output.stdout).map_err(|error| ToolError::Answer {
        tool,
        source: serde::de::Error::custom(error),
    })
}
