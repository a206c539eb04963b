//! The seven steps, run in process against a simulated model.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod actions;
mod hooks;
mod meshy;
mod secrets;
mod work;
