//! One hook run: read the model, call the charm, write the result.
//!
//! A charm implements [`Charm`] with pure functions and one [`Effects`] type; [`run`] takes it
//! through the seven steps of a dispatch: dispatch, load, observe, validate, desired, apply, commit.
//!
//! Invariants: no hook tool is called twice for one answer; nothing is written before everything
//! was decided; what Juju keeps until exit is written before what it shows at once, so that a
//! failure leaves nothing half-written; a situation a status can express never fails the hook.

mod action;
mod budget;
mod charm;
mod clock;
mod commit;
mod flow;
mod load;
mod log;
mod metadata;
mod no_world;
mod outcome;
mod problem;
mod process;
mod progress;
mod typed;
mod view;

pub use crate::action::ActionOutcome;
pub use crate::budget::{ACTION_DEADLINE, DEADLINE, deadline};
pub use crate::charm::{
    AppliedOf, Charm, DoneOf, EffectError, Effects, EffectsFor, ErrorOf, ObjectsOf, PlanOf,
    QueryOf, ViewOf, WorkOf,
};
pub use crate::clock::{Clock, FixedClock, SystemClock};
pub use crate::commit::CommitError;
pub use crate::flow::{HookError, Host, chain, hook};
pub use crate::log::LogBuffer;
pub use crate::metadata::{
    ActionSpec, ConfigOption, Endpoint, Metadata, MetadataError, OptionKind, ParamKind, ParamSpec,
    ResourceKind, Role,
};
pub use crate::no_world::{Never, NoWorld};
pub use crate::outcome::{LocalData, Outcome, OwnSecret};
pub use crate::problem::{MAX_MESSAGE_CHARS, Problem, Severity, status_line, worst};
pub use crate::process::run;
pub use crate::progress::Progress;
pub use crate::typed::{TypedError, read_databag, write_databag};
pub use crate::view::{ActionCall, Config, ModelView, RelationView};

pub use juju_hooks::{
    AppName, Context, Databag, EndpointName, Event, ModelName, ModelUuid, Port, Protocol, Redacted,
    RelationId, SecretContent, SecretId, SecretOwner, SecretRotate, Status, StatusMessage,
    UnitName,
};
