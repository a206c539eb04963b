//! Everything Juju says and hears, as types; hook tools behind one trait.
//!
//! Invariants: [`Context::from_env`] is the only environment read of the workspace and
//! [`ProcessTools`] the only place that starts processes; nothing is cached, so no answer can go
//! stale; values that may be large or secret never travel as process arguments where Juju offers
//! another way.

mod action;
pub mod answers;
mod context;
mod databag;
mod error;
mod event;
mod ids;
mod legacy;
mod limits;
mod network;
#[cfg(feature = "pebble")]
pub mod pebble;
mod port;
mod process;
mod redacted;
mod secret;
mod status;
mod storage;
mod tools;
mod version;

pub use crate::action::{ResultKeyError, check_results, flatten_results};
pub use crate::context::{Context, ContextError, Proxies, TraceParent};
pub use crate::databag::Databag;
pub use crate::error::{Result, ToolError};
pub use crate::event::{
    ActionCall, Event, PebbleEvent, PebbleKind, RelationEvent, RelationKind, SecretEvent,
    SecretKind, StorageEvent, StorageKind,
};
pub use crate::ids::{
    AppName, EndpointName, IdError, ModelName, ModelUuid, RelationId, RelationKey, SecretId,
    UnitName,
};
pub use crate::legacy::{LegacyTools, PayloadId, UnitAddress};
pub use crate::limits::{MAX_ARGUMENT_BYTES, split_message};
pub use crate::network::{BindAddress, InterfaceAddress, NetworkInfo};
pub use crate::port::{Port, Protocol};
pub use crate::process::ProcessTools;
pub use crate::redacted::Redacted;
pub use crate::secret::{
    NewSecret, SecretContent, SecretGrantee, SecretInfo, SecretOwner, SecretRef, SecretRevision,
    SecretRotate,
};
pub use crate::status::{ReportedStatus, Status, StatusMessage};
pub use crate::storage::{StorageForm, StorageId, StorageInfo};
pub use crate::tools::{
    Bag, GoalState, GoalUnit, HookTools, LogLevel, Opening, Scope, Shown, ShownResult,
};
pub use crate::version::{JujuVersion, VersionError};
