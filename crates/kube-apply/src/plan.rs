//! What an apply would do; pure.

use std::fmt;

use istio_api::ObjectRef;
use serde::Serialize;

use crate::set::Conflict;

/// What an apply would do.
///
/// `Display` is for people, `Serialize` for programs. Values of Secrets are `[redacted]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Objects that do not exist.
    pub create: Vec<ObjectRef>,
    /// Objects that differ.
    pub change: Vec<Change>,
    /// Objects that are as desired.
    pub keep: Vec<ObjectRef>,
    /// Objects of the inventory that are no longer desired, in the order they would be deleted.
    pub prune: Vec<ObjectRef>,
    /// Objects that somebody else holds.
    pub conflict: Vec<Conflict>,
}

/// An object that differs from the desired one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The object.
    pub object: ObjectRef,
    /// The fields that differ. Empty when only the recorded hash does: a field that was desired
    /// before no longer is.
    pub fields: Vec<FieldDiff>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDiff {
    /// As in `spec.template.spec.containers[discovery].image`.
    pub path: String,
    /// The live value as JSON, shortened; `None` when there is none.
    pub live: Option<String>,
    /// The desired value as JSON, shortened.
    pub desired: String,
}

impl Plan {
    /// Whether an apply would write or delete anything.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.change.is_empty() && self.prune.is_empty()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in &self.create {
            writeln!(f, "create {object}")?;
        }
        for Change { object, fields } in &self.change {
            writeln!(f, "change {object}")?;
            for FieldDiff {
                path,
                live,
                desired,
            } in fields
            {
                writeln!(
                    f,
                    "  {path}: {} -> {desired}",
                    live.as_deref().unwrap_or("(absent)")
                )?;
            }
        }
        for object in &self.prune {
            writeln!(f, "prune {object}")?;
        }
        for conflict in &self.conflict {
            writeln!(f, "conflict {conflict}")?;
        }
        write!(f, "{} unchanged", self.keep.len())
    }
}
