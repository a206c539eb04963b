//! The Istio domain, pure: what a control plane should look like and what it looks like.
//!
//! Invariants: no clock, no environment, no client, no hook tool. Everything here is a function
//! from values to values, so each rule is a table in a test.

pub mod auth;
pub mod control_plane;
pub mod discovery;
pub mod gateway_api;
pub mod injection;
pub mod name;
pub mod ownership;
pub mod payload;
pub mod policies;
pub mod proxy_status;
pub mod restart;
pub mod revision;
pub mod routes;
pub mod upgrade;

pub use name::{InvalidName, Namespace};
pub use revision::{InvalidRevision, Revision};
