//! Which of the attached payloads has its turn: the release, or a stage on the way to it.

use std::path::PathBuf;

use mesh::upgrade::skew;
use mesh::upgrade::{Minor, Way};

use super::target::{Fleet, Target};
use crate::observe::{Goal, Query, Release, ReleaseTrouble, View};
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
    let opened = release::open(
        query.release.as_ref(),
        query.sha256.as_deref(),
        &query.cache,
    );
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
    let Target { follows, way, .. } = Target::choose(&query.wish, fleet, &release.version);
    let Some(follows) = follows.filter(|from| is_far(from, &release.version, way)) else {
        return (release, None);
    };
    let stages: Vec<(String, &PathBuf)> = query
        .stages
        .iter()
        .filter_map(|path| {
            let opened = release::open(Ok(path), None, &query.cache).ok()?;
            Some((opened.version, path))
        })
        .collect();
    let versions: Vec<String> = stages.iter().map(|(version, _)| version.clone()).collect();
    let goal = Goal {
        version: release.version.clone(),
        path: skew::path(&follows, &release.version, &versions, way),
    };
    // With a minor missing nothing is begun: half of the way is no place to stay.
    let first = goal.path.as_ref().ok().and_then(|path| path.first());
    let chosen = first
        .and_then(|first| stages.iter().find(|(version, _)| version == first))
        .and_then(|(_, path)| release::open(Ok(path), None, &query.cache).ok());
    (chosen.unwrap_or(release), Some(goal))
}

/// Whether the release is too many minors ahead for one step.
fn is_far(from: &str, to: &str, way: Way) -> bool {
    let (Some(a), Some(b)) = (Minor::of(from), Minor::of(to)) else {
        return false;
    };
    a < b && skew::step(from, to, way, "").is_some_and(|finding| finding.blocks())
}

/// Whether another version is to come than the one that runs.
pub fn is_due(view: &View) -> bool {
    let (Some(Ok(release)), Some(target)) = (&view.release, &view.target) else {
        return false;
    };
    let there = view.fleet.records.get(target.revision.label());
    target.follows.is_some() && there.is_none_or(|record| record.version != release.version)
}
