//! Starting a hook tool and reading its answer.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

use super::ProcessTools;
use crate::error::{Result, ToolError};
use crate::limits::MAX_ARGUMENT_BYTES;

impl ProcessTools {
    /// Runs `tool` and gives its standard output.
    pub(super) fn run<S: AsRef<str>>(
        &self,
        tool: &'static str,
        args: &[S],
        input: Option<&str>,
    ) -> Result<String> {
        if let Some(long) = args
            .iter()
            .map(|a| a.as_ref().len())
            .find(|n| *n > MAX_ARGUMENT_BYTES)
        {
            return Err(ToolError::TooLarge { tool, bytes: long });
        }
        let lost = |detail: &str, source| ToolError::Transport {
            tool,
            detail: detail.to_owned(),
            source: Some(source),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes"
        )]
        let mut command = Command::new(tool);
        command.args(args.iter().map(AsRef::as_ref));
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| lost("cannot start the hook tool", e))?;
        let stdin = child.stdin.take();
        let (fed, output) = std::thread::scope(|scope| {
            let feeder = stdin
                .zip(input)
                .map(|(mut stdin, input)| scope.spawn(move || stdin.write_all(input.as_bytes())));
            let output = child.wait_with_output();
            (feeder.and_then(|feeder| feeder.join().ok()), output)
        });
        let output = output.map_err(|e| lost("cannot wait for the hook tool", e))?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(code) => return Err(ToolError::classify(tool, code, &stderr)),
            None => {
                let detail = format!("ended by a signal ({})", output.status);
                return Err(ToolError::Transport {
                    tool,
                    detail,
                    source: None,
                });
            }
        }
        // A tool that fails may well close its input early; one that succeeds has read all of it.
        if let Some(Err(error)) = fed
            && error.kind() != ErrorKind::BrokenPipe
        {
            return Err(lost("cannot write to the hook tool", error));
        }
        String::from_utf8(output.stdout).map_err(|error| ToolError::Answer {
            tool,
            source: serde::de::Error::custom(error),
        })
    }

    /// Runs `tool` and reads its answer as JSON; no answer at all counts as `null`.
    pub(super) fn json<T: DeserializeOwned>(&self, tool: &'static str, args: &[&str]) -> Result<T> {
        let text = self.run(tool, args, None)?;
        let text = if text.trim().is_empty() {
            "null"
        } else {
            &text
        };
        serde_json::from_str(text).map_err(|source| ToolError::Answer { tool, source })
    }

    /// As [`Self::json`], for tools that list texts or say `null`.
    pub(super) fn json_list(&self, tool: &'static str, args: &[&str]) -> Result<Vec<String>> {
        Ok(self
            .json::<Option<Vec<String>>>(tool, args)?
            .unwrap_or_default())
    }
}
