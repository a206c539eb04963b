//! Observe, plan, server-side apply, prune, wait: the only holder of a Kubernetes client.
//!
//! A charm says what one *inventory* of its objects should be ([`ObjectsSet`]); the [`Engine`] makes
//! it so. The order of things, the prune list and the paths come from `istio_api::kinds::TABLE`.
//!
//! Invariants:
//! * Nothing is written, not even as a dry run, for an object that is as desired.
//! * Foreign objects and fields that controllers manage are not fought over: they are a [`Conflict`].
//! * Nothing is deleted but objects with all four labels of the inventory, by uid, after everything
//!   else succeeded. Namespaces and CRDs are never deleted, existing Namespaces never changed.
//! * A call may be cut off anywhere; the next one completes it.
//! * Contents of Secrets appear in no error, plan or `Debug` output.

mod advice;
mod apply;
mod compare;
mod connect;
mod discovery;
mod engine;
mod error;
mod gate;
mod object;
mod ops;
mod owner;
mod plan;
mod prepare;
mod probe;
mod quantity;
mod query;
mod set;
mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;
mod wait;
mod write;

pub use advice::{Advice, Remedy};
pub use connect::Connect;
pub use engine::Engine;
pub use error::{Error, Result};
pub use istio_api::ObjectRef;
pub use object::Object;
pub use ops::{Access, Delete, Evicted, Propagation};
pub use owner::{APP, APPLIED_HASH, INVENTORY, Inventory, MANAGED_BY, MODEL, Owner};
pub use plan::{Change, FieldDiff, Plan, plan};
pub use query::{Note, Observed, Query, Served, ServedKind};
pub use set::{Applied, Conflict, Gate, ObjectsSet, PendingGate, Stage};
