//! Ties the steps together.

use std::collections::BTreeMap;

use juju_charm::{ActionOutcome, Charm, ModelView, Outcome, Problem};
use kube_apply::{Applied, Plan};

use crate::cluster::Cluster;
use crate::observe::{self, Query, View};
use crate::validate::{self, Validated};
use crate::work::{Done, Objects, Work};
use crate::{actions, desired, status};

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

    fn desired(view: &ModelView, validated: &Validated, _cluster: &View) -> Option<Objects> {
        desired::desired(view, validated).map(|set| Objects { set })
    }

    fn work(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Work> {
        actions::work(view, validated, cluster)
    }

    fn outcome(
        view: &ModelView,
        validated: &Validated,
        _cluster: &View,
        applied: Option<&Applied>,
        _done: Option<&Done>,
        problems: &[Problem],
    ) -> Outcome {
        status::outcome(view, validated, applied, problems)
    }

    fn wants_plan(action: &str) -> bool {
        actions::wants_plan(action)
    }

    fn action(
        view: &ModelView,
        _validated: &Validated,
        cluster: &View,
        plan: Option<&Plan>,
        done: Option<&Done>,
        problems: &[Problem],
    ) -> ActionOutcome {
        match &view.action {
            Some(call) => actions::action(call, cluster, plan, done, problems),
            None => ActionOutcome::failed("not running an action", BTreeMap::new()),
        }
    }
}
