//! Time as the model sees it, injectable so that tests move it by hand.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

/// The wall clock of a model.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that only moves when told to.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// A clock standing at `seconds` after the Unix epoch.
    pub fn at(seconds: i64) -> Self {
        Self(Mutex::new(
            Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH),
        ))
    }

    /// Lets `by` pass.
    pub fn advance(&self, by: Duration) {
        if let Ok(mut now) = self.0.lock() {
            *now = now.saturating_add(by).unwrap_or(*now);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().map_or(Timestamp::UNIX_EPOCH, |now| *now)
    }
}
