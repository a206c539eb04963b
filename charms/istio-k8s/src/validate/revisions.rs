//! What an action asks of a revision. Pure.

use juju_charm::{ModelView, Problem};
use mesh::Revision;
use mesh::upgrade::finding;

use crate::actions;
use crate::observe::{Proxies, View};
use crate::upgrade::target::{Intent, Target};

/// What an action asks of a revision is about one of ours, and one that may go.
pub(super) fn asked_revisions(
    view: &ModelView,
    cluster: &View,
    target: &Target,
) -> Result<(), Problem> {
    let app = &view.context.app;
    let fleet = &cluster.fleet;
    let known = |revision: &str| {
        fleet.running.contains_key(revision) || fleet.records.contains_key(revision)
    };
    let intent = view
        .action
        .as_ref()
        .map_or(Ok(Intent::Keep), actions::intent);
    match intent.map_err(Problem::blocked)? {
        Intent::Rollback(Some(revision)) if !known(revision.label()) => {
            return Err(Problem::blocked(format!(
                "parameter revision: {revision} is no revision of {app}"
            )));
        }
        Intent::Remove(revision) => removable(view, cluster, target, &revision)?,
        Intent::Promote if !fleet.records.contains_key(target.revision.label()) => {
            let revision = &target.revision;
            let why = format!("revision {revision} has not come up, so it is not promoted");
            return Err(Problem::waiting(why));
        }
        Intent::Keep | Intent::Promote | Intent::Rollback(_) => {}
    }
    // What is not recorded cannot be kept: it would be pruned under its proxies.
    let unknown = target
        .others
        .iter()
        .find(|other| !fleet.records.contains_key(*other));
    match unknown {
        Some(other) => Err(Problem::blocked(format!(
            "revision {other} has not come up, so it cannot be kept beside {}",
            target.revision
        ))
        .with_hint(format!(
            "juju run {app}/leader remove-revision revision={other}"
        ))),
        None => Ok(()),
    }
}

/// A revision goes when nothing depends on it.
fn removable(
    view: &ModelView,
    cluster: &View,
    target: &Target,
    revision: &Revision,
) -> Result<(), Problem> {
    let app = &view.context.app;
    if *revision == target.revision {
        let why = format!("revision {revision} is what the attached release runs as");
        return Err(Problem::blocked(why));
    }
    if target.holder.as_ref() == Some(revision) {
        let why = format!("revision {revision} answers for the default");
        return Err(Problem::blocked(why).with_hint(format!("juju run {app}/leader promote")));
    }
    let Some(Proxies { proxies, failures }) = &cluster.proxies else {
        return Err(Problem::waiting("the proxies were not read"));
    };
    let left: Vec<String> = proxies
        .iter()
        .filter(|proxy| proxy.revision == revision.label())
        .map(|proxy| proxy.proxy.clone())
        .collect();
    if !left.is_empty() {
        let why = format!("revision {revision} still serves {}", finding::few(&left));
        let hint = format!("juju run {app}/leader proxy-status revision={revision}");
        return Err(Problem::blocked(why).with_hint(hint));
    }
    if let Some(failure) = failures.first() {
        return Err(Problem::blocked(format!(
            "which proxies are left is not known: {failure}"
        )));
    }
    Ok(())
}
