//! `tracing` events on their way to `juju-log`.
//!
//! Each call of the hook tool costs a process, so lines are kept and handed over between steps,
//! neighbours of one level together.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use juju_hooks::{HookTools, LogLevel};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

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
        Registry::default().with(Keep(self.clone()))
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

struct Keep(LogBuffer);

impl<S: Subscriber> Layer<S> for Keep {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        let library = metadata.target().split("::").next().unwrap_or_default();
        let least = if CHATTY.contains(&library) {
            Level::WARN
        } else {
            Level::DEBUG
        };
        *metadata.level() <= least
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
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
