//! Ties the steps together.

use std::collections::BTreeMap;

use juju_charm::{ActionCall, ActionOutcome, Charm, ModelView, Outcome, Problem};
use kube_apply::{Applied, Plan};

use crate::cluster::Cluster;
use crate::observe::{self, Query, View};
use crate::validate::{self, Validated};
use crate::work::{Done, Objects, Work};
use crate::{actions, additions, databags, desired, status, tasks};

/// The charm.
#[derive(Debug)]
pub struct IstioK8s;

impl Charm for IstioK8s {
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
        let mut objects = desired::desired(view, validated)?;
        additions::add(view, validated, cluster, &mut objects);
        Some(objects)
    }

    fn work(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Work> {
        let tasks = tasks::of(view, validated, cluster);
        if tasks.is_empty() {
            return actions::work(view, validated, cluster);
        }
        Some(Work::Tasks(tasks))
    }

    fn outcome(
        view: &ModelView,
        validated: &Validated,
        cluster: &View,
        applied: Option<&Applied>,
        done: Option<&Done>,
        problems: &[Problem],
    ) -> Outcome {
        let report = match done {
            Some(Done::Report(report)) => Some(&**report),
            _ => None,
        };
        let mut problems = problems.to_vec();
        problems.extend(report.iter().flat_map(|report| report.problems.clone()));
        let mut outcome = status::outcome(view, validated, applied, &problems);
        databags::add(view, validated, cluster, applied, report, &mut outcome);
        outcome
    }

    fn wants_plan(action: &ActionCall) -> bool {
        actions::wants_plan(action)
    }

    fn action(
        view: &ModelView,
        validated: &Validated,
        cluster: &View,
        plan: Option<&Plan>,
        done: Option<&Done>,
        problems: &[Problem],
    ) -> ActionOutcome {
        match &view.action {
            Some(call) if tasks::answers(&call.name) => {
                let report = match done {
                    Some(Done::Report(report)) => Some(&**report),
                    _ => None,
                };
                tasks::answer(view, validated, cluster, report, problems)
            }
            Some(call) => actions::action(view, call, validated, cluster, plan, done, problems),
            None => ActionOutcome::failed("not running an action", BTreeMap::new()),
        }
    }
}
