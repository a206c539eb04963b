//! Running one charm process: no inherited environment, both streams line by line, a time limit.
//!
//! Peak memory is the last `VmHWM` read from `/proc/PID/status`, sampled every few milliseconds
//! while the process lives. It belongs to the program `dispatch` ended up as (each `exec` starts
//! the counter anew), leaves out children, and may miss growth in the last milliseconds; a process
//! too short to be sampled reports 0.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::WaitId;
use rustix::process::WaitIdOptions;
use rustix::process::waitid;

/// How often a running process is looked at.
const SAMPLE: Duration = Duration::from_millis(4);
/// How long output may trickle in after the process ended (a daemon may hold the pipes forever).
const DRAIN: Duration = Duration::from_millis(500);

/// A process to run.
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    /// Program and arguments.
    pub(crate) argv: Vec<String>,
    /// The whole environment.
    pub(crate) env: &'a BTreeMap<String, String>,
    /// Working directory.
    pub(crate) dir: &'a Path,
    /// Text for standard input; none for `/dev/null`.
    pub(crate) stdin: Option<String>,
    /// Time after which the process group is killed.
    pub(crate) limit: Duration,
}

/// Which stream a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It exited with this code.
    Exit(i32),
    /// A signal from outside ended it.
    Signal(i32),
    /// The time limit passed.
    TimedOut,
}

/// What is known about a process that ran.
#[derive(Debug)]
pub(crate) struct Ran {
    /// How it ended.
    pub(crate) end: End,
    /// Wall time.
    pub(crate) wall: Duration,
    /// Peak resident memory in KiB, see the module text.
    pub(crate) peak_rss_kib: u64,
    /// Processor time of its first thread in microseconds, 0 if unknown.
    pub(crate) cpu_us: u64,
}

/// Runs a process to its end; `line` gets every line of output, without line end.
pub(crate) fn run(spec: Spec<'_>, mut line: impl FnMut(Stream, &[u8])) -> std::io::Result<Ran> {
    let begun = Instant::now();
    let mut command = command(&spec);
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).unwrap_or(0);
    if let (Some(text), Some(mut pipe)) = (spec.stdin, child.stdin.take()) {
        thread::spawn(move || pipe.write_all(text.as_bytes()));
    }
    let (sender, lines) = mpsc::channel();
    if let Some(out) = child.stdout.take() {
        forward(out, Stream::Out, sender.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, Stream::Err, sender.clone());
    }
    drop(sender);

    let mut peak = 0;
    let mut cpu_us = 0;
    let mut open = true;
    let end = loop {
        if open {
            match lines.recv_timeout(SAMPLE) {
                Ok((stream, text)) => line(stream, &text),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => open = false,
            }
        } else {
            thread::sleep(SAMPLE / 4);
        }
        peak = peak_rss(pid).unwrap_or(peak);
        if has_ended(pid) {
            cpu_us = processor_time(pid).unwrap_or(0);
        }
        if let Some(status) = child.try_wait()? {
            break status.code().map_or_else(
                || End::Signal(status.signal().unwrap_or_default()),
                End::Exit,
            );
        }
        if begun.elapsed() > spec.limit {
            kill_group(pid);
            kill_child(&mut child)?;
            break End::TimedOut;
        }
    };
    let wall = begun.elapsed();
    while open {
        match lines.recv_timeout(DRAIN) {
            Ok((stream, text)) => line(stream, &text),
            Err(_) => open = false,
        }
    }
    Ok(Ran {
        end,
        wall,
        peak_rss_kib: peak,
        cpu_us,
    })
}

/// Ends the processes a killed simulator left behind: those with `variable` in their environment.
///
/// The environment tells them apart without any record made after the start, which a kill could
/// prevent, and finds what the charm started as well.
pub(crate) fn kill_leftovers(variable: &str) {
    // A process may be starting another one while it is looked at.
    for _ in 0..10 {
        let found = with_variable(variable);
        if found.is_empty() {
            return;
        }
        for pid in found {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Processes other than this one with `variable`, as `NAME=value`, in their environment.
fn with_variable(variable: &str) -> Vec<Pid> {
    let own = rustix::process::getpid();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry
                .file_name()
                .to_str()?
                .parse()
                .ok()
                .and_then(Pid::from_raw)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let found = environment
                .split(|b| *b == 0)
                .any(|v| v == variable.as_bytes());
            (found && pid != own).then_some(pid)
        })
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the unit agent's one spawn of charm processes"
)]
fn command(spec: &Spec<'_>) -> Command {
    let mut command = Command::new(&spec.argv[0]);
    command
        .args(&spec.argv[1..])
        .env_clear()
        .envs(spec.env)
        .current_dir(spec.dir)
        .stdin(if spec.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

fn kill_child(child: &mut Child) -> std::io::Result<()> {
    child.kill()?;
    child.wait().map(|_| ())
}

fn kill_group(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        // The group may have ended by itself: nothing is left to do then.
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

fn forward(
    pipe: impl Read + Send + 'static,
    stream: Stream,
    lines: mpsc::Sender<(Stream, Vec<u8>)>,
) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut text = Vec::new();
        while reader.read_until(b'\n', &mut text).is_ok_and(|n| n > 0) {
            if text.last() == Some(&b'\n') {
                text.pop();
            }
            if lines.send((stream, std::mem::take(&mut text))).is_err() {
                break;
            }
        }
    });
}

/// Whether the process has ended; it is still there to be asked.
fn has_ended(pid: i32) -> bool {
    let wanted = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let pid = Pid::from_raw(pid);
    pid.is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), wanted), Ok(Some(_))))
}

/// Processor time in microseconds of an ended process that nobody waited for yet.
fn processor_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let nanoseconds: u64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1000)
}

/// Peak resident memory in KiB so far.
fn peak_rss(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
