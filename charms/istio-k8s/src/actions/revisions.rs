//! The actions that upgrade, promote, roll back and remove revisions. Each is what a hook would do,
//! with another wish; asked again, it finds its work done.

use juju_charm::{ActionCall, ActionOutcome, Charm as _, ModelView, Problem};
use kube_apply::Plan;
use mesh::Revision;

use super::{changes, failed, results};
use crate::IstioK8s;
use crate::observe::View;
use crate::upgrade::flow::unfinished;
use crate::validate::Validated;
use crate::work::{Done, Work};

/// Whether the action is one of these.
pub(super) fn is_one(action: &str) -> bool {
    matches!(
        action,
        "upgrade" | "promote" | "rollback" | "remove-revision"
    )
}

/// Whether it is only to say what it would do.
pub(super) fn is_dry_run(call: &ActionCall) -> bool {
    call.params
        .get("dry-run")
        .and_then(serde_json::Value::as_bool)
        == Some(true)
}

/// The work, unless it is a dry run or may not be done.
pub(super) fn work(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Work> {
    let call = view.action.as_ref()?;
    let may = view.leader && matches!(validated, Validated::Run(_));
    if !is_one(&call.name) || is_dry_run(call) || !may {
        return None;
    }
    // Everything that a hook would bring about: what is left out would be pruned.
    let objects = IstioK8s::desired(view, validated, cluster)?;
    Some(Work::Reconcile(Box::new(objects)))
}

/// Answers one of these actions.
pub(super) fn answer(
    view: &ModelView,
    call: &ActionCall,
    validated: &Validated,
    cluster: &View,
    plan: Option<&Plan>,
    done: Option<&Done>,
    problems: &[Problem],
) -> ActionOutcome {
    let Validated::Run(installation) = validated else {
        let why = problems
            .first()
            .map_or_else(String::new, ToString::to_string);
        return failed(format!("{} is refused: {why}", call.name));
    };
    let label = |revision: Option<&Revision>| {
        revision.map_or_else(|| "none".to_owned(), ToString::to_string)
    };
    let target = cluster.target.as_ref();
    let mut all = vec![
        ("revision", installation.settings.revision.to_string()),
        ("version", installation.version.clone()),
        ("default", label(target.and_then(|t| t.holder.as_ref()))),
    ];
    if let Some(goal) = &installation.on_the_way {
        all.push(("on-the-way-to", goal.clone()));
    }
    if is_dry_run(call) {
        let Some(plan) = plan else {
            return failed("nothing can be planned");
        };
        all.push(("plan", plan.to_string()));
        all.push(("changes", changes(plan).to_string()));
        return results(all);
    }
    if !view.leader {
        return failed("only the leader writes: run it on the unit that leads");
    }
    let Some(Done::Reconciled(applied)) = done else {
        return failed(format!("{} did nothing", call.name));
    };
    all.push(("written", applied.written.len().to_string()));
    all.push(("deleted", applied.pruned.len().to_string()));
    match unfinished(applied) {
        Some(why) => ActionOutcome::failed(
            format!("{} is not finished: {why}; run it again", call.name),
            results(all).results,
        ),
        None => results(all),
    }
}
