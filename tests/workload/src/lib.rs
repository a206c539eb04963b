//! Sample workload charms for the demo and the tests: one charm, three flavours.
//!
//! Each runs a Deployment with a Service in its model's namespace and speaks the requirer's side of
//! one interface.

pub mod cluster;
mod flavour;
mod objects;

use std::convert::Infallible;
use std::marker::PhantomData;

use juju_charm::{ActionOutcome, Charm, Event, ModelView, Outcome, Problem, StatusMessage};
use kube_apply::{Applied, ObjectsSet, Plan};

pub use flavour::{Dashboard, Echo, Flavour, Gatekeeper};
pub use objects::{HTTP_PORT, service_name};

use crate::cluster::Cluster;

/// The sample charm in one flavour.
#[derive(Debug)]
pub struct Workload<F>(PhantomData<F>);

impl<F: Flavour> Charm for Workload<F> {
    const METADATA: &'static str = F::METADATA;

    type Fx = Cluster;
    type Validated = ();

    fn query(_view: &ModelView) {}

    fn validate(_view: &ModelView, _cluster: &()) -> ((), Vec<Problem>) {
        ((), Vec::new())
    }

    fn desired(view: &ModelView, _validated: &(), _cluster: &()) -> Option<ObjectsSet> {
        if *view.event() == Event::Remove && view.planned_units == 0 {
            return Some(objects::nothing(F::CHARM, view));
        }
        view.leader
            .then(|| objects::server(F::CHARM, F::ARGS, view))
    }

    fn outcome(
        view: &ModelView,
        _validated: &(),
        _cluster: &(),
        applied: Option<&Applied>,
        _done: Option<&Infallible>,
        problems: &[Problem],
    ) -> Outcome {
        let mut problems = problems.to_vec();
        if let Some(applied) = applied {
            let conflicts = applied.conflicts.iter();
            problems.extend(conflicts.map(|conflict| Problem::blocked(conflict.to_string())));
            problems.extend(
                applied
                    .advisory
                    .iter()
                    .map(|gate| Problem::waiting(&gate.what)),
            );
        }
        let mut outcome = if problems.is_empty() {
            Outcome::status(view, StatusMessage::active(F::message(view)))
        } else {
            Outcome::from_problems(view, "", &problems)
        };
        outcome.databags = F::databags(view);
        outcome
    }

    fn action(
        _view: &ModelView,
        _validated: &(),
        _cluster: &(),
        _plan: Option<&Plan>,
        _done: Option<&Infallible>,
        _problems: &[Problem],
    ) -> ActionOutcome {
        ActionOutcome::failed(
            "the charm has no actions",
            std::collections::BTreeMap::new(),
        )
    }
}
