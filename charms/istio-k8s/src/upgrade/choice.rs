//! Which of the attached payloads has its turn: the release, or a stage on the way to it.

use std::collections::BTreeSet;

use mesh::upgrade::skew;
use mesh::upgrade::{Minor, Way};

use super::record;
use super::target::{Fleet, Intent, Target};
use crate::observe::{Goal, Query, Release, ReleaseTrouble, STAGES, View};
use crate::release::{self, Opened};

/// What was chosen.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The payload, rendered for where it goes; none if the options are not in order.
    pub release: Option<Result<Release, ReleaseTrouble>>,
    /// Where it goes.
    pub target: Option<Target>,
    /// The attached release, if it is more than one step away.
    pub goal: Option<Goal>,
}

/// Reads the payloads, as few as are needed, and renders the one whose turn it is.
pub fn choose(query: &Query, fleet: &Fleet) -> Chosen {
    let Some(settings) = &query.settings else {
        return Chosen::default();
    };
    let opened = match &query.release {
        Ok(path) => release::open(path, &query.sha256, &query.cache),
        Err(_) => Err(ReleaseTrouble::Missing),
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(trouble) => {
            return Chosen {
                release: Some(Err(trouble)),
                ..Chosen::default()
            };
        }
    };
    let (opened, goal) = stage(query, fleet, opened);
    let target = Target::choose(&query.wish, fleet, &opened.version);
    let release = opened.render(target.settings(settings.clone()));
    Chosen {
        release: Some(release),
        target: Some(target),
        goal,
    }
}

/// The payload to take, and the goal if it is another one than the release.
fn stage(query: &Query, fleet: &Fleet, release: Opened) -> (Opened, Option<Goal>) {
    // A stage that has come up beside is what is promoted, not the release after it: whose turn it is
    // goes by who answers for the default before.
    let mut wish = query.wish.clone();
    if wish.intent == Intent::Promote {
        wish.intent = Intent::Keep;
    }
    let Target { follows, way, .. } = Target::choose(&wish, fleet, &release.version);
    let Some(follows) = follows.filter(|from| is_far(from, &release.version, way)) else {
        return (release, None);
    };
    let mut stages = Vec::new();
    let mut taken = BTreeSet::new();
    let mut unusable = Vec::new();
    for (resource, path) in &query.stages {
        match release::open(path, &query.sha256, &query.cache) {
            Ok(opened) => {
                taken.insert(*resource);
                stages.push(opened);
            }
            // A store that must have a file for each resource has an empty one.
            Err(ReleaseTrouble::Missing) => {}
            Err(trouble) => unusable.push((*resource, trouble.why())),
        }
    }
    let versions: Vec<String> = stages.iter().map(|stage| stage.version.clone()).collect();
    let goal = Goal {
        path: skew::path(&follows, &release.version, &versions, way),
        version: release.version.clone(),
        unusable,
        free: STAGES.into_iter().find(|name| !taken.contains(name)),
    };
    // With a minor missing nothing is begun: half of the way is no place to stay.
    let first = goal.path.as_ref().ok().and_then(|path| path.first());
    let chosen = first.and_then(|first| stages.into_iter().find(|stage| stage.version == *first));
    (chosen.unwrap_or(release), Some(goal))
}

/// Whether the release is too many minors ahead for one step.
fn is_far(from: &str, to: &str, way: Way) -> bool {
    let (Some(a), Some(b)) = (Minor::of(from), Minor::of(to)) else {
        return false;
    };
    a < b && skew::step(from, to, way, "").is_some_and(|finding| finding.blocks())
}

/// Whether another version is to come than the one that runs. What failed does not come by itself,
/// and who asks for it again reads everything anyway.
pub fn is_due(view: &View) -> bool {
    let (Some(Ok(release)), Some(target)) = (&view.release, &view.target) else {
        return false;
    };
    let there = view.fleet.records.get(target.revision.label());
    let failed = there.and_then(|record| record.failed.as_ref());
    let comes = failed.is_none_or(|failed| {
        failed.digest != record::digest(&release.control_plane, &release.version)
    });
    let another = there.is_none_or(|record| record.version != release.version);
    target.follows.is_some() && another && comes
}
