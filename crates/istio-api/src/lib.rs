//! Typed Istio objects and the table of kinds.
//!
//! The structs are narrow: they hold the fields our charms own and read, nothing else. That is what
//! server-side apply wants (an apply is the full intent of one writer), and it keeps a struct a
//! page long. They are never used for read-modify-write: fields they do not name would be lost.
//!
//! Invariants: no client, no clock, no environment. Field paths are those of Istio's CRDs; a kind
//! that any crate of the workspace writes is in [`kinds::TABLE`].

pub mod gateway_api;
pub mod kinds;
mod meta;
pub mod networking;
pub mod security;

pub use kinds::{Kind, ObjectRef, Scope};
pub use meta::{CustomObject, ObjectMeta, api_version, split_api_version};
