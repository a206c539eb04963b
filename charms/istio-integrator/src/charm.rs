//! Ties the steps together.

use juju_charm::{ActionCall, ActionOutcome, Charm, ModelView, Outcome, Problem};
use kube_apply::Plan;

use crate::check::{self, Answered, Check};
use crate::cluster::Cluster;
use crate::desired::Objects;
use crate::observe::{self, Query, View};
use crate::pass::Done;
use crate::validate::{self, Validated};
use crate::{actions, desired, status};

/// The charm.
#[derive(Debug)]
pub struct IstioIntegrator;

impl Charm for IstioIntegrator {
    const METADATA: &'static str = include_str!("../charmcraft.yaml");

    type Fx = Cluster;
    type Validated = Validated;

    fn query(view: &ModelView) -> Query {
        observe::query(view)
    }

    fn validate(view: &ModelView, cluster: &View) -> (Validated, Vec<Problem>) {
        validate::validate(view, cluster)
    }

    fn desired(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Objects> {
        desired::desired(view, validated, cluster)
    }

    fn work(view: &ModelView, validated: &Validated, _cluster: &View) -> Option<Check> {
        let checking = view
            .action
            .as_ref()
            .is_some_and(|call| call.name == "check-auth");
        checking.then(|| check::check(validated)).flatten()
    }

    fn wants_plan(action: &ActionCall) -> bool {
        action.name == "dry-run"
    }

    fn outcome(
        view: &ModelView,
        validated: &Validated,
        _cluster: &View,
        applied: Option<&Done>,
        _done: Option<&Vec<Answered>>,
        problems: &[Problem],
    ) -> Outcome {
        status::outcome(view, validated, applied, problems)
    }

    fn action(
        view: &ModelView,
        validated: &Validated,
        cluster: &View,
        plan: Option<&Plan>,
        done: Option<&Vec<Answered>>,
        problems: &[Problem],
    ) -> ActionOutcome {
        actions::action(view, validated, cluster, plan, done, problems)
    }

    fn unobserved(view: &ModelView, problem: Problem) -> Outcome {
        status::unobserved(view, problem)
    }
}
