//! Status and databags, from what was applied and what is wrong. Pure.

use std::fmt::Write as _;

use juju_charm::{Databag, LocalData, ModelView, Outcome, Problem, StatusMessage};
use kube_apply::Applied;
use relations::IstioMetadata;

use crate::cluster::not_permitted;
use crate::upgrade::flow::unfinished;
use crate::upgrade::record::Failed;
use crate::validate::{Installation, Validated};

/// What this hook tells Juju.
pub fn outcome(
    view: &ModelView,
    validated: &Validated,
    applied: Option<&Applied>,
    problems: &[Problem],
) -> Outcome {
    let mut problems: Vec<Problem> = failure(view, validated, applied)
        .into_iter()
        .chain(problems.iter().cloned())
        .collect();
    problems.extend(
        applied
            .into_iter()
            .flat_map(|applied| problems_of(view, applied)),
    );
    match (validated, applied) {
        // A gateway that is not up yet keeps nobody from using the control plane.
        (Validated::Run(installation), Some(applied)) if applied.is_complete() => {
            let outcome = running(view, installation);
            if problems.is_empty() {
                return outcome;
            }
            let Outcome {
                unit_status,
                app_status,
                ..
            } = Outcome::from_problems(view, "", &problems);
            Outcome {
                unit_status,
                app_status,
                ..outcome
            }
        }
        _ if !problems.is_empty() => Outcome::from_problems(view, "", &problems),
        (Validated::Leave, _) => Outcome::status(
            view,
            StatusMessage::maintenance("removed; CRDs and namespaces are kept"),
        ),
        _ => Outcome::status(view, StatusMessage::active("standby: the leader acts")),
    }
}

/// That an upgrade failed, and whether what ran before runs again.
pub fn failure(
    view: &ModelView,
    validated: &Validated,
    applied: Option<&Applied>,
) -> Option<Problem> {
    let Validated::Run(installation) = validated else {
        return None;
    };
    let Failed { version, why, .. } = installation.failed.as_ref()?;
    let before = &installation.version;
    let failed = format!("Istio {version} failed ({why}), {before}");
    if let Some(what) = applied.and_then(unfinished) {
        return Some(Problem::waiting(format!("{failed} comes back: {what}")));
    }
    let app = &view.context.app;
    let hint = format!("juju run {app}/leader upgrade");
    Some(Problem::blocked(format!("{failed} serves")).with_hint(hint))
}

/// What keeps the applied objects from being in force.
fn problems_of(view: &ModelView, applied: &Applied) -> Vec<Problem> {
    let conflicts = applied
        .conflicts
        .iter()
        .map(|c| Problem::blocked(format!("{c}, left as it is")));
    let pending = applied.pending.iter().chain(&applied.advisory);
    let pending = pending.map(|p| Problem::waiting(&p.what));
    let app = &view.context.app;
    let denied = applied
        .not_permitted
        .iter()
        .map(|kind| not_permitted(app, "list", kind));
    conflicts.chain(pending).chain(denied).collect()
}

fn running(view: &ModelView, installation: &Installation) -> Outcome {
    let Installation {
        settings,
        version,
        on_the_way,
        answers,
        ..
    } = installation;
    let mut message = if settings.revision.is_default() {
        format!("Istio {version} in {}", settings.namespace)
    } else {
        format!(
            "Istio {version} in {}, revision {}",
            settings.namespace, settings.revision
        )
    };
    if let Some(revision) = answers {
        let _ = write!(message, "; default is revision {revision}");
    }
    if let Some(goal) = on_the_way {
        // Beside another, a stage goes no further before it answers for the default.
        let how = if answers.is_some() {
            "promote to go on"
        } else {
            "on the way"
        };
        let _ = write!(message, ", {how} to {goal}");
    }
    let mut outcome = Outcome::status(view, StatusMessage::active(message));
    outcome.workload_version = Some(version.clone());
    let metadata = IstioMetadata {
        root_namespace: settings.root_namespace().to_owned(),
    };
    for relation in view.relations_of("istio-metadata") {
        outcome.databags.insert(
            relation.id,
            LocalData {
                app: metadata.encode(),
                unit: Databag::new(),
            },
        );
    }
    outcome
}
