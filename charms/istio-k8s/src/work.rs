//! What the charm writes: the objects of a reconcile, and the work of actions.

use kube_apply::{Applied, ObjectsSet};

/// What one reconcile brings about.
#[derive(Debug)]
pub struct Objects {
    /// The objects, in the order in which they may come.
    pub set: ObjectsSet,
}

/// The work of an action.
#[derive(Debug)]
pub enum Work {
    /// Makes the cluster so, as a hook would.
    Reconcile(Box<Objects>),
}

/// What came of it.
#[derive(Debug)]
pub enum Done {
    /// What was written.
    Reconciled(Box<Applied>),
}
