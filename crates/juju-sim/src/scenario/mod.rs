//! A charm's hook as a function: `State -> State`, in this process, in microseconds.
//!
//! [`Scenario::run`] takes the charm through its real seven steps against [`State`], with the
//! permission rules Juju has, and gives back the state Juju would be in afterwards. The caller
//! brings the effects. A state or event Juju could not produce is refused before anything runs.
//!
//! Invariants: the state given is never changed; what Juju keeps until exit is lost if the hook
//! fails; one run knows nothing of another.

mod consistency;
mod state;
mod tools;

use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;

use juju_charm::{
    Charm, Context, EffectsFor, FixedClock, HookError, Host, LogBuffer, Metadata, MetadataError,
    chain, hook,
};
use juju_hooks::{ActionCall, ContextError, Event};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};

pub use self::state::{ActionRecord, Quirks, Reboot, Record, Relation, Secret, State, databag};
use self::tools::SimTools;

/// Why a scenario gives no state.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Juju could not be in this state, or not send this event in it. All reasons.
    #[error("inconsistent scenario: {}", .0.join("; "))]
    Inconsistent(Vec<String>),
    /// The environment made for the event was not understood.
    #[error("the event has no environment")]
    Context(#[from] ContextError),
    /// The hook failed; exit code 1.
    #[error("the hook failed: {}", chain(source))]
    Hook {
        /// Why.
        source: HookError,
        /// What Juju is left with: only what it was told at once.
        state: Box<State>,
    },
    /// The hook ended well, but Juju could not keep what it wrote.
    #[error("the flush after the hook failed: {detail}")]
    Flush {
        /// Why.
        detail: &'static str,
        /// What Juju is left with: only what it was told at once.
        state: Box<State>,
    },
    /// No runtime for asynchronous effects.
    #[error("cannot start a runtime")]
    Runtime(#[source] std::io::Error),
}

impl ScenarioError {
    /// What Juju is left with, if the hook was run at all.
    pub fn state(&self) -> Option<&State> {
        match self {
            Self::Hook { state, .. } | Self::Flush { state, .. } => Some(state),
            Self::Inconsistent(_) | Self::Context(_) | Self::Runtime(_) => None,
        }
    }
}

/// One charm's scenarios.
pub struct Scenario<C> {
    metadata: Metadata,
    runtime: OnceCell<Runtime>,
    charm: PhantomData<fn() -> C>,
}

impl<C> fmt::Debug for Scenario<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario")
            .field("charm", &self.metadata.name)
            .finish_non_exhaustive()
    }
}

impl<C: Charm> Scenario<C> {
    /// Scenarios of charm `C`.
    pub fn new() -> Result<Self, MetadataError> {
        let metadata = Metadata::parse(C::METADATA)?;
        Ok(Self {
            metadata,
            runtime: OnceCell::new(),
            charm: PhantomData,
        })
    }

    /// What the charm declares.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The state Juju is in when `unit` was just added: nothing set, no relation but the charm's
    /// own peer relations.
    pub fn state(&self, unit: &str) -> State {
        State::new(unit).with_peers(&self.metadata)
    }

    /// Runs one hook, or an action without parameters, and gives the state after it.
    ///
    /// Not to be called from asynchronous code: see [`Self::run_async`].
    pub fn run<F>(&self, event: Event, state: &State, fx: F) -> Result<State, ScenarioError>
    where
        F: EffectsFor<C>,
    {
        self.runtime()?
            .block_on(self.run_async(event, Map::new(), state, fx))
    }

    /// Runs an action with parameters (a JSON object) and gives the state after it; its answer is
    /// in [`Record::action`].
    pub fn run_action<F>(
        &self,
        action: &str,
        params: &Value,
        state: &State,
        fx: F,
    ) -> Result<State, ScenarioError>
    where
        F: EffectsFor<C>,
    {
        let event = Event::Action(ActionCall {
            name: action.to_owned(),
            id: "1".to_owned(),
        });
        let params = params.as_object().cloned().unwrap_or_default();
        self.runtime()?
            .block_on(self.run_async(event, params, state, fx))
    }

    /// As [`Self::run`] and [`Self::run_action`], inside a runtime of the caller's.
    pub async fn run_async<F>(
        &self,
        event: Event,
        params: Map<String, Value>,
        state: &State,
        fx: F,
    ) -> Result<State, ScenarioError>
    where
        F: EffectsFor<C>,
    {
        let mistakes = consistency::mistakes(&self.metadata, state, &event, &params);
        if !mistakes.is_empty() {
            return Err(ScenarioError::Inconsistent(mistakes));
        }
        let sent = Context::from_vars(state.context(event).to_vars())?;
        let tools = SimTools::new(&self.metadata, state, &sent, params);
        let log = LogBuffer::default();
        let clock = FixedClock(state.now);
        let host = Host {
            tools: &tools,
            clock: &clock,
            deadline: juju_charm::deadline(&sent.event),
            log: &log,
        };
        let ended = hook::<C, F>(&self.metadata, sent, host, |_| Ok(fx)).await;
        let (after, flush) = tools.end(ended.is_ok());
        match (ended, flush) {
            (Ok(()), None) => Ok(after),
            (Ok(()), Some(detail)) => Err(ScenarioError::Flush {
                detail,
                state: Box::new(after),
            }),
            (Err(source), _) => Err(ScenarioError::Hook {
                source,
                state: Box::new(after),
            }),
        }
    }

    fn runtime(&self) -> Result<&Runtime, ScenarioError> {
        if self.runtime.get().is_none() {
            let runtime = Builder::new_current_thread().enable_all().build();
            drop(self.runtime.set(runtime.map_err(ScenarioError::Runtime)?));
        }
        let missing = || ScenarioError::Runtime(std::io::Error::other("no runtime"));
        self.runtime.get().ok_or_else(missing)
    }
}
