//! The steps of one dispatch, in order. No environment, no process: whoever calls brings both.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use juju_hooks::{Context, Event, HookTools, Status, ToolError};
use tokio::time::{Instant, timeout_at};
use tracing::instrument::WithSubscriber as _;

use crate::action::ActionOutcome;
use crate::charm::{Charm, EffectError, EffectsFor};
use crate::clock::Clock;
use crate::commit::{CommitError, commit};
use crate::log::LogBuffer;
use crate::metadata::Metadata;
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::view::ModelView;

/// How long a hook works on the world. What is not done by then waits for the next hook: a hook
/// that takes longer holds up every other one of its unit.
pub const DEADLINE: Duration = Duration::from_mins(2);

/// What a dispatch runs on.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// The hook tools.
    pub tools: &'a dyn HookTools,
    /// The time.
    pub clock: &'a dyn Clock,
    /// How long to work on the world, [`DEADLINE`] in production.
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
        /// `connect`, `observe`, `apply` or `plan`.
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
    let budget = Budget {
        end: Instant::now() + host.deadline,
        total: host.deadline,
    };
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

    if let Some(action) = &view.action {
        let objects = if C::wants_plan(&action.name) {
            C::desired(&view, &validated, &cluster)
        } else {
            None
        };
        let plan = match objects {
            Some(objects) => match budget.spend("plan", fx.plan(objects)).await? {
                Ok(plan) => Some(plan),
                Err(problem) => {
                    problems.push(problem);
                    None
                }
            },
            None => None,
        };
        let answer = C::action(&view, &validated, &cluster, plan.as_ref(), &problems);
        return answer.commit(host.tools).map_err(HookError::Answer);
    }

    let applied = match C::desired(&view, &validated, &cluster) {
        Some(objects) => match budget.spend("apply", fx.apply(objects)).await? {
            Ok(applied) => Some(applied),
            Err(problem) => {
                problems.push(problem);
                None
            }
        },
        None => None,
    };
    host.log.flush(host.tools);
    log_problems(&problems);
    let outcome = C::outcome(&view, &validated, &cluster, applied.as_ref(), &problems);
    end(&view, &outcome, host)
}

/// The world could not be read: a status says so; an action fails with the reason.
fn unobserved<C: Charm>(
    view: &ModelView,
    problem: Problem,
    host: Host<'_>,
) -> Result<(), HookError> {
    log_problems(std::slice::from_ref(&problem));
    if view.action.is_some() {
        let answer = ActionOutcome::failed(problem.to_string(), std::collections::BTreeMap::new());
        return answer.commit(host.tools).map_err(HookError::Answer);
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

struct Budget {
    end: Instant,
    total: Duration,
}

impl Budget {
    async fn spend<T, E: EffectError>(
        &self,
        step: &'static str,
        effect: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, Problem>, HookError> {
        match timeout_at(self.end, effect).await {
            Ok(answer) => settled(step, answer),
            Err(_) => Ok(Err(Problem::waiting(format!(
                "cannot {step} within {} s; the next hook goes on",
                self.total.as_secs()
            )))),
        }
    }
}

/// Errors a status can show become problems; the others fail the hook.
fn settled<T, E: EffectError>(
    step: &'static str,
    answer: Result<T, E>,
) -> Result<Result<T, Problem>, HookError> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(error) => match error.problem() {
            Some(problem) => {
                tracing::debug!("cannot {step}: {}", chain(&error));
                Ok(Err(problem))
            }
            None => Err(HookError::Effect {
                step,
                source: Box::new(error),
            }),
        },
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
