//! An API server in the test process, for the fast tests of charms and of this crate.
//!
//! [`FakeApi`] stores objects and answers discovery, reads, lists (label selectors, pages, metadata
//! only), server-side apply with field managers and conflicts, creates, replaces, patches, deletes,
//! evictions and access reviews. It does
//! not validate objects and does not default fields: what depends on that is tested against a real
//! API server. A few controllers are played at once after each write (see [`Controllers`]).

mod fake;
mod http;
mod inject;
mod mutate;
mod selector;
mod ssa;
mod store;

pub use fake::{Controllers, FakeApi, Recorded};
