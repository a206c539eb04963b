//! End-to-end tests on the testbed, and the demo.
//!
//! A [`Lab`] is a cluster, a Juju model on it and the packed charms. Everything goes the way a user
//! goes: the `juju` command as a process, charms deployed from their files, requests sent to the
//! gateway. Only the cluster is looked at directly.

pub mod attacks;
pub mod demo;
pub mod helm;
pub mod http;
pub mod juju;
pub mod lab;
pub mod listing;
pub mod loops;
pub mod story;
pub mod wait;

pub use http::{Response, get};
pub use juju::Juju;
pub use lab::Lab;
