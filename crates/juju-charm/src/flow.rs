//! The steps of one dispatch, in order. No environment, no process: whoever calls brings both.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use juju_hooks::{Context, Event, HookTools, Status, ToolError};
use tracing::instrument::WithSubscriber as _;

use crate::action::ActionOutcome;
use crate::budget::{Budget, settled};
use crate::charm::{Charm, EffectsFor, ViewOf};
use crate::clock::Clock;
use crate::commit::{CommitError, commit};
use crate::log::LogBuffer;
use crate::metadata::Metadata;
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::progress::Told;
use crate::view::ModelView;

/// What a dispatch runs on.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The hook tools.
    pub tools: &'a dyn HookTools,
    /// The time.
    pub clock: &'a dyn Clock,
    /// How long to work on the world, [`deadline`](crate::deadline) of the event in production.
    pub deadline: Duration,
    /// Where log lines go before they go to Juju.
    pub log: &'a LogBuffer,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Why a hook fails: exit code 1, Juju drops what it kept and tries again.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The model could not be read.
    #[error("cannot read the model")]
    Load(#[source] ToolError),
    /// An effect failed in a way no status can express.
    #[error("cannot {step}")]
    Effect {
        /// `connect`, `observe`, `apply`, `plan` or `work`.
        step: &'static str,
        /// The error.
        #[source]
        source: Box<dyn Error>,
    },
    /// The outcome could not be written.
    #[error("cannot commit")]
    Commit(#[from] CommitError),
    /// The action's answer could not be given.
    #[error("cannot answer the action")]
    Answer(#[source] ToolError),
    /// The application's last hook has to wait for something. No later hook would go on, so it is
    /// run again.
    #[error("the last hook is not finished: {0}")]
    Unfinished(String),
}

/// Runs one dispatch. Hooks the charm has no use for (unknown, restricted) end well at once.
///
/// Log lines written meanwhile reach Juju between steps and at the end, whatever the end.
pub async fn hook<C: Charm, F: EffectsFor<C>>(
    metadata: &Metadata,
    context: Context,
    host: Host<'_>,
    connect: impl FnOnce(&Context) -> Result<F, F::Error>,
) -> Result<(), HookError> {
    let steps = steps::<C, F>(metadata, context, host, connect);
    let ended = steps.with_subscriber(host.log.subscriber()).await;
    host.log.flush(host.tools);
    ended
}

async fn steps<C: Charm, F: EffectsFor<C>>(
    metadata: &Metadata,
    context: Context,
    host: Host<'_>,
    connect: impl FnOnce(&Context) -> Result<F, F::Error>,
) -> Result<(), HookError> {
    if context.event.is_restricted() || matches!(context.event, Event::Unknown(_)) {
        tracing::debug!("nothing to do in hook {}", context.event);
        return Ok(());
    }
    let in_action = matches!(context.event, Event::Action(_));
    let budget = Budget::new(host.deadline, in_action);
    let mut view =
        ModelView::load(context, metadata, host.tools, host.clock).map_err(HookError::Load)?;
    view.load_secrets(C::secrets(&view), host.tools);

    let fx = match settled("connect", connect(&view.context))? {
        Ok(fx) => fx,
        Err(problem) => return unobserved::<C>(&view, problem, host),
    };
    let cluster = match budget.spend("observe", fx.observe(C::query(&view))).await? {
        Ok(cluster) => cluster,
        Err(problem) => return unobserved::<C>(&view, problem, host),
    };
    let (validated, mut problems) = C::validate(&view, &cluster);
    host.log.flush(host.tools);

    let told = Told { host, in_action };
    if in_action {
        let known = Known {
            view,
            cluster,
            validated,
            problems,
        };
        return act::<C, F>(known, &fx, &budget, &told).await;
    }
    let mut applied = None;
    if let Some(objects) = C::desired(&view, &validated, &cluster) {
        match budget.spend("apply", fx.apply(objects)).await? {
            Ok(proof) => applied = Some(proof),
            Err(problem) => problems.push(problem),
        }
    }
    let work = applied
        .as_ref()
        .and_then(|_| C::work(&view, &validated, &cluster));
    let mut done = None;
    if let Some(work) = work {
        match budget.spend("work", fx.work(work, &told)).await? {
            Ok(result) => done = Some(result),
            Err(problem) => problems.push(problem),
        }
    }
    host.log.flush(host.tools);
    log_problems(&problems);
    let (applied, done) = (applied.as_ref(), done.as_ref());
    let outcome = C::outcome(&view, &validated, &cluster, applied, done, &problems);
    end(&view, &outcome, host)
}

/// What is known once the inputs were checked.
struct Known<C: Charm> {
    view: ModelView,
    cluster: ViewOf<C>,
    validated: C::Validated,
    problems: Vec<Problem>,
}

/// The rest of an action: plan and work if wanted, then the answer.
async fn act<C: Charm, F: EffectsFor<C>>(
    known: Known<C>,
    fx: &F,
    budget: &Budget,
    told: &Told<'_>,
) -> Result<(), HookError> {
    let Known {
        view,
        cluster,
        validated,
        mut problems,
    } = known;
    let host = told.host;
    let wants_plan = view.action.as_ref().is_some_and(C::wants_plan);
    let mut plan = None;
    let mut may_work = true;
    if wants_plan && let Some(objects) = C::desired(&view, &validated, &cluster) {
        match budget.spend("plan", fx.plan(objects)).await? {
            Ok(result) => plan = Some(result),
            Err(problem) => {
                may_work = false;
                problems.push(problem);
            }
        }
    }
    let mut done = None;
    if may_work && let Some(work) = C::work(&view, &validated, &cluster) {
        match budget.spend("work", fx.work(work, told)).await? {
            Ok(result) => done = Some(result),
            Err(problem) => return failed(&problem, host),
        }
    }
    let (plan, done) = (plan.as_ref(), done.as_ref());
    let answer = C::action(&view, &validated, &cluster, plan, done, &problems);
    answer.commit(host.tools).map_err(HookError::Answer)
}

/// An action that could not be done, with the reason and the command that mends it.
fn failed(problem: &Problem, host: Host<'_>) -> Result<(), HookError> {
    let answer = ActionOutcome::failed(problem.to_string(), BTreeMap::new());
    answer.commit(host.tools).map_err(HookError::Answer)
}

/// The world could not be read: a status says so; an action fails with the reason.
fn unobserved<C: Charm>(
    view: &ModelView,
    problem: Problem,
    host: Host<'_>,
) -> Result<(), HookError> {
    log_problems(std::slice::from_ref(&problem));
    if view.action.is_some() {
        return failed(&problem, host);
    }
    end(view, &C::unobserved(view, problem), host)
}

fn end(view: &ModelView, outcome: &Outcome, host: Host<'_>) -> Result<(), HookError> {
    let status = &outcome.unit_status;
    let last = view.context.event == Event::Remove && view.planned_units == 0;
    if last && status.status == Status::Waiting {
        return Err(HookError::Unfinished(status.message.clone()));
    }
    commit(view, outcome, host.tools)?;
    tracing::info!("{} done: {status}", view.context.event);
    Ok(())
}

fn log_problems(problems: &[Problem]) {
    for problem in problems {
        tracing::warn!("{}: {problem}", problem.severity.status());
    }
}

/// An error with its causes, on one line. A cause already told by its effect is not repeated.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
