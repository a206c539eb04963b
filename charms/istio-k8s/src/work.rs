//! What the charm writes: the objects of a reconcile, and the work of actions.

use kube_apply::{Applied, ObjectsSet};

use crate::tasks::{Report, Task};
use crate::upgrade::flow::Replacement;

/// What one reconcile brings about.
#[derive(Debug)]
pub struct Objects {
    /// The objects, in the order in which they may come.
    pub set: ObjectsSet,
    /// Where another istiod comes in: what is proven first and judged afterwards.
    pub replacement: Option<Replacement>,
    /// The set is only a part of what is wanted: nothing is deleted for not being in it.
    pub partial: bool,
    /// Nothing is touched: a migration is at work. There is a set only so that the hook goes on.
    pub aside: bool,
}

/// The work of an action.
#[derive(Debug)]
pub enum Work {
    /// Makes the cluster so, as a hook would.
    Reconcile(Box<Objects>),
    /// Everything else, in order.
    Tasks(Vec<Task>),
}

/// What came of it.
#[derive(Debug)]
pub enum Done {
    /// What was written.
    Reconciled(Box<Applied>),
    /// What else came of it.
    Report(Box<Report>),
}
