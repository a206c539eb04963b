//! Child processes: the one place of this crate that makes them.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command that reads nothing from the terminal.
#[expect(
    clippy::disallowed_methods,
    reason = "the testbed is made of other programs"
)]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end and returns what it printed.
///
/// # Errors
/// A failing command is an error that carries the end of its standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let args: Vec<_> = command.get_args().map(OsStr::to_string_lossy).collect();
        bail!(
            "{program} {}: {}\n{}",
            args.join(" "),
            output.status,
            tail(&stderr, 4000)
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed no UTF-8"))
}

/// Whether the shell would find this program.
pub(crate) fn on_path(program: &str) -> bool {
    command("sh")
        .args(["-c", "command -v \"$1\"", "sh", program])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The last `limit` bytes of a text, from a whole line on.
pub(crate) fn tail(text: &str, limit: usize) -> &str {
    let text = text.trim_end();
    if text.len() <= limit {
        return text;
    }
    let from = text.len() - limit;
    let line = text.as_bytes()[from..]
        .iter()
        .position(|byte| *byte == b'\n');
    line.and_then(|at| text.get(from + at + 1..)).unwrap_or("")
}
