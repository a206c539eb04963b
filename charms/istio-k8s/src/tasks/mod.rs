//! What the charm does that is no set of objects: objects change hands, proxies are restarted, a
//! workload proves the mesh, a certificate authority is asked for.
//!
//! `of` decides (pure) from what was read; `run` does it against the API server; `answer` tells.

mod adopt;
mod authority;
mod disown;
mod migrate;
mod params;
mod purge;
mod render;
mod restart;
mod trace;
mod verify;
mod verify_objects;

use std::collections::BTreeMap;

use juju_charm::{ActionOutcome, Event, ModelView, Problem, Progress};
use kube_apply::{Engine, Result};

pub use adopt::Adopt;
pub use authority::{Forget, Issue, Request};
pub use disown::Disown;
pub use migrate::Migrate;
pub use purge::{Purge, RemoveDefinitions};
pub use render::Render;
pub use restart::Restart;
pub use trace::Trace;
pub use verify::Verify;

use self::params::Params;
use crate::observe::View;
use crate::validate::Validated;

/// The actions that are answered here.
const ACTIONS: [&str; 7] = [
    "adopt",
    "disown",
    "migrate",
    "purge",
    "render",
    "restart-proxies",
    "verify",
];

/// One piece of work.
#[derive(Debug)]
pub enum Task {
    /// Takes foreign objects over.
    Adopt(Box<Adopt>),
    /// Takes objects out of an owner's reach.
    Disown(Disown),
    /// Moves somebody else's Istio to here.
    Migrate(Box<Migrate>),
    /// Confirms that the definitions go with the application.
    Purge(Purge),
    /// Deletes the definitions.
    RemoveDefinitions(RemoveDefinitions),
    /// Writes manifests to a file.
    Render(Render),
    /// Restarts proxies that are behind.
    Restart(Restart),
    /// Proves the mesh by a workload.
    Verify(Box<Verify>),
    /// Makes a key and a request for the mesh's certificate authority.
    Issue(Issue),
    /// Deletes that key.
    Forget(Forget),
    /// Sends the trace of the hook.
    Trace(Trace),
}

/// What came of all work of a dispatch.
#[derive(Debug, Default)]
pub struct Report {
    /// What an action answers.
    pub results: BTreeMap<String, String>,
    /// Why the action fails.
    pub failure: Option<String>,
    /// What a status should say.
    pub problems: Vec<Problem>,
    /// The request for a certificate authority that was just made.
    pub request: Option<Request>,
}

impl Report {
    fn set(&mut self, key: &str, value: impl Into<String>) {
        self.results.insert(key.to_owned(), value.into());
    }

    fn failed(why: impl Into<String>) -> Self {
        Self {
            failure: Some(why.into()),
            ..Self::default()
        }
    }

    fn add(&mut self, other: Self) {
        let Self {
            results,
            failure,
            problems,
            request,
        } = other;
        self.results.extend(results);
        self.failure = self.failure.take().or(failure);
        self.problems.extend(problems);
        self.request = self.request.take().or(request);
    }
}

/// Whether the action is answered here.
pub fn answers(action: &str) -> bool {
    ACTIONS.contains(&action)
}

/// The work of this dispatch.
pub fn of(view: &ModelView, validated: &Validated, cluster: &View) -> Vec<Task> {
    let Some(call) = &view.action else {
        return of_hook(view, validated, cluster);
    };
    let params = Params(&call.params);
    let task = match call.name.as_str() {
        "adopt" => adopt::task(view, validated, cluster, params).map(|t| Task::Adopt(Box::new(t))),
        "disown" => disown::task(view, params).map(Task::Disown),
        "migrate" => Some(Task::Migrate(Box::new(migrate::task(
            view, validated, params,
        )))),
        "purge" => purge::task(view, cluster, params).map(Task::Purge),
        "render" => render::task(view, validated, cluster, params).map(Task::Render),
        "restart-proxies" => restart::task(params).map(Task::Restart),
        "verify" => verify::task(view, params).map(|t| Task::Verify(Box::new(t))),
        _ => return Vec::new(),
    };
    task.into_iter().collect()
}

fn of_hook(view: &ModelView, validated: &Validated, cluster: &View) -> Vec<Task> {
    let mut tasks = Vec::new();
    if matches!(validated, Validated::Aside(_)) {
        let migration = migrate::in_a_hook(view, cluster, validated);
        return migration
            .into_iter()
            .map(|t| Task::Migrate(Box::new(t)))
            .collect();
    }
    if view.context.event == Event::Remove {
        tasks.extend(authority::at_removal(view, validated, cluster).map(Task::Forget));
        tasks.extend(purge::at_removal(view, validated, cluster).map(Task::RemoveDefinitions));
    }
    tasks.extend(authority::task(view, validated, cluster).map(Task::Issue));
    tasks.extend(restart::in_a_hook(view, validated).map(Task::Restart));
    tasks.extend(trace::task(view).map(Task::Trace));
    tasks
}

/// Does all the work, in order. A failure ends it.
pub async fn run(engine: &Engine, tasks: Vec<Task>, progress: &dyn Progress) -> Result<Report> {
    let mut report = Report::default();
    for task in tasks {
        let part = match task {
            Task::Adopt(task) => task.run(engine, progress).await?,
            Task::Disown(task) => task.run(engine, progress).await?,
            Task::Migrate(task) => task.run(engine, progress).await?,
            Task::Purge(task) => task.run(engine).await?,
            Task::RemoveDefinitions(task) => task.run(engine, progress).await?,
            Task::Render(task) => task.run(),
            Task::Restart(task) => task.run(engine, progress).await?,
            Task::Verify(task) => task.run(engine, progress).await?,
            Task::Issue(task) => task.run(engine).await?,
            Task::Forget(task) => task.run(engine).await?,
            Task::Trace(task) => task.run().await,
        };
        report.add(part);
    }
    Ok(report)
}

/// Answers an action of this module.
pub fn answer(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    report: Option<&Report>,
    problems: &[Problem],
) -> ActionOutcome {
    let Some(call) = &view.action else {
        return ActionOutcome::failed("not running an action", BTreeMap::new());
    };
    if let Some(report) = report {
        return match &report.failure {
            Some(why) => ActionOutcome::failed(why.clone(), report.results.clone()),
            None => ActionOutcome::ok(report.results.clone()),
        };
    }
    let params = Params(&call.params);
    match call.name.as_str() {
        "render" => render::answer(view, validated, cluster, params, problems),
        "purge" => ActionOutcome::failed(purge::refusal(view, cluster, params), BTreeMap::new()),
        name => {
            let why = match problems.first() {
                Some(problem) => problem.to_string(),
                None => params.complaint(name),
            };
            ActionOutcome::failed(format!("no {name}: {why}"), BTreeMap::new())
        }
    }
}
