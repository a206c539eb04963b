//! `tracing` events on their way to `juju-log`.
//!
//! Each call of the hook tool costs a process, so lines are kept and handed over between steps,
//! neighbours of one level together.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use juju_hooks::{HookTools, LogLevel};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Log lines not yet with Juju. Clones share their lines.
#[derive(Debug, Clone, Default)]
pub struct LogBuffer(Arc<Mutex<Vec<(LogLevel, String)>>>);

/// Libraries whose debug lines tell nothing about the charm.
const CHATTY: [&str; 8] = [
    "h2",
    "hyper",
    "hyper_util",
    "kube_client",
    "mio",
    "rustls",
    "tokio",
    "tower",
];

impl LogBuffer {
    /// Keeps one line.
    pub fn push(&self, level: LogLevel, line: impl Into<String>) {
        self.lines().push((level, line.into()));
    }

    /// A subscriber that keeps what it hears: everything from `DEBUG` up, from HTTP and TLS
    /// libraries `WARN` up.
    pub fn subscriber(&self) -> impl Subscriber + Send + Sync + use<> {
        Keep(self.clone())
    }

    /// Hands all lines to Juju. If Juju does not take them, they are dropped: there is nobody
    /// left to tell.
    pub fn flush(&self, tools: &dyn HookTools) {
        let lines = std::mem::take(&mut *self.lines());
        for batch in lines.chunk_by(|a, b| a.0 == b.0) {
            let Some((level, _)) = batch.first() else {
                continue;
            };
            let texts: Vec<&str> = batch.iter().map(|(_, line)| line.as_str()).collect();
            drop(tools.juju_log(*level, &texts.join("\n")));
        }
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<(LogLevel, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events only: a hook is one task, so that spans would tell nothing its steps do not.
struct Keep(LogBuffer);

impl Subscriber for Keep {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let library = metadata.target().split("::").next().unwrap_or_default();
        let least = if CHATTY.contains(&library) {
            Level::WARN
        } else {
            Level::DEBUG
        };
        metadata.is_event() && *metadata.level() <= least
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Info,
            Level::DEBUG => LogLevel::Debug,
            Level::TRACE => LogLevel::Trace,
        };
        self.0.push(level, line.message + &line.fields);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a String cannot fail.
        let _: fmt::Result = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_speak_only_when_something_is_off_and_traces_never() {
        let log = LogBuffer::default();
        tracing::subscriber::with_default(log.subscriber(), || {
            let _span = tracing::info_span!("step", secret = "x").entered();
            tracing::trace!("too fine");
            tracing::debug!("fine");
            tracing::info!(count = 2, name = "web", "two {}", "objects");
            tracing::debug!(target: "hyper_util::client", "chatter");
            tracing::info!(target: "rustls", "chatter");
            tracing::warn!(target: "kube_client::client", "refused");
        });
        let expect = [
            (LogLevel::Debug, "fine"),
            (LogLevel::Info, r#"two objects count=2 name="web""#),
            (LogLevel::Warning, "refused"),
        ];
        let lines = log.lines();
        let lines: Vec<_> = lines
            .iter()
            .map(|(level, line)| (*level, line.as_str()))
            .collect();
        assert_eq!(lines, expect);
    }
}
