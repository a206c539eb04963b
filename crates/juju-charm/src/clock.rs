//! Where the time comes from.

use std::fmt;
use std::time::SystemTime;

/// Tells the time. One reading is taken per dispatch, so that a run is a function of its inputs.
pub trait Clock: fmt::Debug {
    /// The wall clock's time.
    fn now(&self) -> SystemTime;
}

/// The real clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one reading of the wall clock"
        )]
        SystemTime::now()
    }
}

/// A clock that stands still.
#[derive(Debug, Clone, Copy)]
pub struct FixedClock(pub SystemTime);

impl Clock for FixedClock {
    fn now(&self) -> SystemTime {
        self.0
    }
}
