//! How long a dispatch works on the world, and what becomes of an effect that fails.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use juju_hooks::Event;
use tokio::time::{Instant, timeout_at};

use crate::charm::EffectError;
use crate::flow::{HookError, chain};
use crate::problem::Problem;

/// How long a hook works on the world. What is not done by then waits for the next hook: a hook
/// that takes longer holds up every other one of its unit.
pub const DEADLINE: Duration = Duration::from_mins(2);

/// How long an action works on the world. A person asked for it and waits; nothing retries it.
pub const ACTION_DEADLINE: Duration = Duration::from_mins(9);

/// The deadline of a dispatch: [`ACTION_DEADLINE`] or [`DEADLINE`].
pub fn deadline(event: &Event) -> Duration {
    match event {
        Event::Action(_) => ACTION_DEADLINE,
        _ => DEADLINE,
    }
}

/// The time all effects of one dispatch share.
pub(crate) struct Budget {
    end: Instant,
    total: Duration,
    in_action: bool,
}

impl Budget {
    pub(crate) fn new(total: Duration, in_action: bool) -> Self {
        Self {
            end: Instant::now() + total,
            total,
            in_action,
        }
    }

    /// Waits for an effect. Out of time is a problem like others.
    pub(crate) async fn spend<T, E: EffectError>(
        &self,
        step: &'static str,
        effect: impl Future<Output = Result<T, E>>,
    ) -> Result<Result<T, Problem>, HookError> {
        match timeout_at(self.end, effect).await {
            Ok(answer) => settled(step, answer),
            Err(_) => Ok(Err(self.overrun(step))),
        }
    }

    fn overrun(&self, step: &str) -> Problem {
        let then = if self.in_action {
            "run the action again to go on"
        } else {
            "the next hook goes on"
        };
        Problem::waiting(format!(
            "cannot {step} within {} s; {then}",
            self.total.as_secs()
        ))
    }
}

/// Errors a status can show become problems; the others fail the hook.
pub(crate) fn settled<T, E: EffectError>(
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
                source: Box::<dyn Error>::from(error),
            }),
        },
    }
}
