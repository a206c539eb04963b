//! Step 1 and the exit code: a dispatch as a process.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use juju_hooks::{Context, Event, LogLevel, ProcessTools};

use crate::budget::deadline;
use crate::charm::{Charm, ErrorOf};
use crate::clock::SystemClock;
use crate::flow::{Host, chain, hook};
use crate::log::LogBuffer;
use crate::metadata::Metadata;

/// A charm's `main`: runs the dispatch this process was started for.
///
/// Exit code 0 if Juju was told everything, 1 if the hook failed and is to be tried again. Errors
/// and panics are logged at level `ERROR`; in an action also written to standard error, which Juju
/// shows to whoever ran it.
pub fn run<C: Charm>(connect: impl FnOnce(&Context) -> Result<C::Fx, ErrorOf<C>>) -> ExitCode {
    let context = match Context::from_env() {
        Ok(context) => context,
        Err(error) => {
            tell(&chain(&error));
            return ExitCode::FAILURE;
        }
    };
    let tools = ProcessTools::new();
    let log = LogBuffer::default();
    let in_action = matches!(context.event, Event::Action(_));
    let event = context.event.name();
    keep_panics(&log);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let metadata = Metadata::parse(C::METADATA).map_err(|error| chain(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
        let host = Host {
            tools: &tools,
            clock: &SystemClock,
            deadline: deadline(&context.event),
            log: &log,
        };
        runtime
            .block_on(hook::<C, C::Fx>(&metadata, context, host, connect))
            .map_err(|error| chain(&error))
    }));
    let failure = match ended {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => "the charm panicked, see the log".to_owned(),
    };
    log.push(LogLevel::Error, format!("{event} failed: {failure}"));
    log.flush(&tools);
    if in_action {
        tell(&failure);
    }
    ExitCode::FAILURE
}

/// Panics become log lines with their place.
fn keep_panics(log: &LogBuffer) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic
            .location()
            .map(|at| format!(" at {}:{}", at.file(), at.line()));
        let message = panic.payload_as_str().unwrap_or("no message");
        let place = place.unwrap_or_default();
        log.push(
            LogLevel::Error,
            format!("panic in charm code{place}: {message}"),
        );
    }));
}

fn tell(line: &str) {
    // If standard error is gone, there is nobody left to tell.
    drop(writeln!(std::io::stderr(), "{line}"));
}
