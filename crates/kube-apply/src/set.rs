//! What is wanted: stages of objects, and the gates between them.

use std::fmt;
use std::time::Duration;

use istio_api::ObjectRef;
use serde::Serialize;

use crate::object::Object;
use crate::owner::Inventory;

/// Everything one inventory wants to exist.
#[derive(Clone, Debug)]
pub struct ObjectsSet {
    /// Whose, and under which name.
    pub inventory: Inventory,
    /// Applied in order. An empty list means: nothing is wanted, prune all of the inventory.
    pub stages: Vec<Stage>,
    /// Objects of the inventory that are kept though no stage names them.
    pub retain: Vec<ObjectRef>,
    /// Budget for all gates together.
    pub wait: Duration,
    /// Write nothing while somebody else holds any of the objects: for objects that are of no use
    /// without each other.
    pub whole: bool,
}

/// Objects that are applied together, by rank of their kinds.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// As in `definitions`; shown when a gate is pending.
    pub name: String,
    /// The objects.
    pub objects: Vec<Object>,
    /// What must hold before the next stage starts (and before anything is pruned).
    pub gate: Vec<Gate>,
    /// What is reported but holds nothing back: waited for at the end, with what is left of the budget.
    pub advisory: Vec<Gate>,
}

impl Stage {
    /// A stage without gates.
    pub fn new(name: &str, objects: Vec<Object>) -> Self {
        Self {
            name: name.to_owned(),
            objects,
            ..Self::default()
        }
    }

    /// Adds a gate that must hold.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate.push(gate);
        self
    }

    /// Adds a gate that is only reported.
    #[must_use]
    pub fn advisory(mut self, gate: Gate) -> Self {
        self.advisory.push(gate);
        self
    }
}

/// A condition over the objects of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Gate {
    /// The API server serves every version that the stage's CRDs declare as served. (It does so
    /// only once a CRD is `Established`.)
    CrdEstablished,
    /// Every Deployment, `StatefulSet` and `DaemonSet` of the stage runs its newest generation on all
    /// its pods, all of them ready, and no pod of an older generation is left.
    RolledOut,
    /// Every webhook of the stage's webhook configurations has a `caBundle`.
    CaBundle,
    /// The stage's namespaces exist and are not being deleted.
    NamespaceActive,
}

/// A gate that did not hold within the budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PendingGate {
    /// Name of the stage.
    pub stage: String,
    /// Which gate.
    pub gate: Gate,
    /// For people, as in `istiod 0/1 updated pods ready in istio-lab`.
    pub what: String,
}

impl fmt::Display for PendingGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// An object that was not written because somebody else holds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Conflict {
    /// The object.
    pub object: ObjectRef,
    /// Who: an owner (`Helm release mesh/base`) or a field manager (`pilot-discovery`).
    pub owner: String,
    /// The contested fields; empty when the whole object is somebody else's.
    pub fields: Vec<String>,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fields.is_empty() {
            write!(f, "{} belongs to {}", self.object, self.owner)
        } else {
            write!(
                f,
                "{} {} of {}",
                self.owner,
                self.fields.join(", "),
                self.object
            )
        }
    }
}

/// What an apply did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Objects that were written.
    pub written: Vec<ObjectRef>,
    /// How many objects were as desired already.
    pub unchanged: usize,
    /// Objects that were deleted.
    pub pruned: Vec<ObjectRef>,
    /// Objects that were left to others. While there are any, nothing is pruned.
    pub conflicts: Vec<Conflict>,
    /// The gate that stopped the run. Later stages were not applied and nothing was pruned.
    pub pending: Option<PendingGate>,
    /// Advisory gates that do not hold.
    pub advisory: Vec<PendingGate>,
    /// Kinds (`deployments.apps`) that could not be listed or pruned for lack of permission.
    pub not_permitted: Vec<String>,
}

impl Applied {
    /// Whether everything desired is in place and in effect.
    pub fn is_complete(&self) -> bool {
        self.conflicts.is_empty() && self.pending.is_none()
    }
}
