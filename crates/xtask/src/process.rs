//! Running other programs so that an interruption ends them too.
//!
//! Invariant: each child runs in a process group of its own; a signal that ends this tool is handed
//! to the whole of every group first, and the groups get time to clean up.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

/// How long a child may take to clean up after a signal: a node with its pods stops in seconds.
const GRACE: Duration = Duration::from_secs(30);

static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP end the running child before they end us.
pub(crate) fn forward_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch signals")?;
    thread::spawn(move || {
        if let Some(number) = signals.forever().next() {
            INTERRUPTED.store(true, Ordering::SeqCst);
            eprintln!("interrupted: stopping what runs");
            end_running(number);
            #[expect(clippy::exit, reason = "the exit code of a signal is ours to give")]
            std::process::exit(128 + number);
        }
    });
    Ok(())
}

fn end_running(number: i32) {
    let Some(signal) = Signal::from_named_raw(number) else {
        return;
    };
    let begun = Instant::now();
    let mut alive = running().clone();
    alive.retain(|&group| kill_process_group(group, signal).is_ok());
    while !alive.is_empty() && begun.elapsed() < GRACE {
        thread::sleep(Duration::from_millis(50));
        alive.retain(|&group| test_kill_process_group(group).is_ok());
    }
    for group in alive {
        eprintln!("still running after {} s: killed", GRACE.as_secs());
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn running() -> MutexGuard<'static, Vec<Pid>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a child's standard error goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stderr {
    /// To ours, as it comes.
    Shown,
    /// Into [`Finished::stderr`].
    Kept,
}

/// What a child left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// Empty when it was shown.
    pub(crate) stderr: String,
}

impl Finished {
    /// `exit code 1` or `signal 9`.
    pub(crate) fn cause(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit code".to_owned(),
        }
    }
}

/// Runs a child to its end, handing over each line of its standard output.
pub(crate) fn run(
    command: &mut Command,
    stderr: Stderr,
    on_line: &mut dyn FnMut(&str),
) -> Result<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0);
    command.stderr(match stderr {
        Stderr::Shown => Stdio::inherit(),
        Stderr::Kept => Stdio::piped(),
    });
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let group = Pid::from_child(&child);
    running().push(group);

    let errors = child.stderr.take().map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    if let Some(pipe) = child.stdout.take() {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            on_line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
            line.clear();
        }
    }
    let status = child.wait().with_context(|| format!("lost {name}"));
    while INTERRUPTED.load(Ordering::SeqCst) {
        // The child was ended by the signal that is ending us: there is no result to speak of.
        thread::park();
    }
    running().retain(|&other| other != group);
    let stderr = errors
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    Ok(Finished {
        status: status?,
        stderr,
    })
}

/// The standard output of a child that has to succeed.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let mut text = String::new();
    let finished = run(command, Stderr::Kept, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    ensure!(
        finished.status.success(),
        "{} ended with {}: {}",
        describe(command),
        finished.cause(),
        finished.stderr.trim_end()
    );
    Ok(text)
}

/// A child's command line, for messages.
pub(crate) fn describe(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_and_errors_are_told_apart() {
        let mut lines = Vec::new();
        let finished = run(
            &mut shell("echo one; echo two >&2; echo three"),
            Stderr::Kept,
            &mut |line| {
                lines.push(line.to_owned());
            },
        )
        .unwrap();
        assert_eq!(lines, ["one", "three"]);
        assert_eq!(finished.stderr, "two\n");
        assert!(finished.status.success());
    }

    #[test]
    fn the_cause_of_an_end_is_named() {
        let cause = |script| {
            run(&mut shell(script), Stderr::Kept, &mut |_| ())
                .unwrap()
                .cause()
        };
        assert_eq!(cause("exit 3"), "exit code 3");
        assert_eq!(cause("kill -9 $$"), "signal 9");
    }

    #[test]
    fn a_failed_command_is_told_with_its_words() {
        let error = stdout_of(&mut shell("echo no such thing >&2; exit 2"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit code 2") && error.contains("no such thing"),
            "{error}"
        );
    }
}
