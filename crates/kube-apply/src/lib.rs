//! Observe, plan, server-side apply, prune, wait: the only holder of a Kubernetes client.

mod engine;
mod error;
mod object;
mod owner;
mod plan;
mod query;
mod set;

pub use engine::Engine;
pub use error::{Error, Result};
pub use istio_api::ObjectRef;
pub use object::Object;
pub use owner::{APP, APPLIED_HASH, INVENTORY, Inventory, MANAGED_BY, MODEL, Owner};
pub use plan::{Change, FieldDiff, Plan};
pub use query::{Note, Observed, Query, Served, ServedKind};
pub use set::{Applied, Conflict, Gate, ObjectsSet, PendingGate, Stage};
