//! The hook tools, one method each. Implemented over processes by
//! [`ProcessTools`](crate::ProcessTools) and over a value by simulators.
//!
//! Writes marked *at exit* are kept by Juju until the hook exits 0 and dropped otherwise; those
//! marked *at once* stay whatever happens later.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::databag::Databag;
use crate::error::Result;
use crate::ids::{AppName, EndpointName, ModelUuid, RelationId, RelationKey, SecretId, UnitName};
use crate::network::NetworkInfo;
use crate::port::Port;
use crate::redacted::Redacted;
use crate::secret::{
    NewSecret, SecretContent, SecretGrantee, SecretInfo, SecretRef, SecretRevision,
};
use crate::status::{ReportedStatus, StatusMessage};
use crate::storage::{StorageId, StorageInfo};

/// Whose data or status: the application's (the leader's business) or this unit's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The application's.
    App,
    /// This unit's.
    Unit,
}

/// A databag to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bag {
    /// An application's.
    App(AppName),
    /// A unit's.
    Unit(UnitName),
}

impl fmt::Display for Bag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(app) => app.fmt(f),
            Self::Unit(unit) => unit.fmt(f),
        }
    }
}

/// Levels of `juju-log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// Shown only when asked for.
    Trace,
    /// For developers.
    Debug,
    /// For operators.
    Info,
    /// Something is off.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// The word hook tools use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// The answer of `goal-state`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GoalState {
    /// This application's units.
    #[serde(deserialize_with = "null_as_empty")]
    pub units: BTreeMap<UnitName, GoalUnit>,
    /// By endpoint, the applications and units there are to be.
    #[serde(deserialize_with = "null_as_empty")]
    pub relations: BTreeMap<EndpointName, BTreeMap<String, GoalUnit>>,
}

fn null_as_empty<'de, D, K, V>(deserializer: D) -> std::result::Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Ord + Deserialize<'de>,
    V: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl GoalState {
    /// How many units the application is to have: those on their way out do not count.
    pub fn planned_units(&self) -> u32 {
        let staying = self
            .units
            .values()
            .filter(|unit| unit.status != "dying")
            .count();
        u32::try_from(staying).unwrap_or(u32::MAX)
    }
}

/// A unit or application in `goal-state`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GoalUnit {
    /// Its status, or `dying`.
    pub status: String,
}

/// The first questions of a dispatch, each with its own answer.
#[derive(Debug)]
pub struct Opening {
    /// [`HookTools::config_get`].
    pub config: Result<Map<String, Value>>,
    /// [`HookTools::is_leader`].
    pub leader: Result<bool>,
    /// [`HookTools::goal_state`], if it was wanted.
    pub goal: Option<Result<GoalState>>,
    /// [`HookTools::relation_ids`] of each endpoint, in their order.
    pub relations: Vec<Result<Vec<RelationId>>>,
}

/// What Juju shows at once at the end of a dispatch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown<'a> {
    /// [`HookTools::application_version_set`].
    pub version: Option<&'a str>,
    /// [`HookTools::status_set`] for the application.
    pub app: Option<&'a StatusMessage>,
    /// [`HookTools::status_set`] for the unit.
    pub unit: Option<&'a StatusMessage>,
}

/// How each part of [`Shown`] went; `Ok` for what was not wanted.
#[derive(Debug)]
pub struct ShownResult {
    /// The version.
    pub version: Result<()>,
    /// The application's status.
    pub app: Result<()>,
    /// The unit's status.
    pub unit: Result<()>,
}

/// The hook tools of one dispatch. No answer is cached: each call asks Juju.
///
/// The methods that take several questions ask each of them exactly once. An implementation may
/// ask them at the same time, so that they cost the time of a few.
pub trait HookTools {
    /// The questions every dispatch begins with.
    fn opening(&self, endpoints: &[&EndpointName], goal: bool) -> Opening {
        Opening {
            config: self.config_get(),
            leader: self.is_leader(),
            goal: goal.then(|| self.goal_state()),
            relations: endpoints
                .iter()
                .map(|name| self.relation_ids(name))
                .collect(),
        }
    }
    /// [`Self::relation_list`] of several relations, in their order.
    fn relation_lists(&self, relations: &[&RelationKey]) -> Vec<Result<Vec<UnitName>>> {
        relations
            .iter()
            .map(|key| self.relation_list(key))
            .collect()
    }
    /// [`Self::relation_get`] of several databags, in their order.
    fn relation_gets(&self, bags: &[(&RelationKey, Bag)]) -> Vec<Result<Databag>> {
        bags.iter()
            .map(|(key, bag)| self.relation_get(key, bag))
            .collect()
    }
    /// Shows version and statuses. None waits for another's success.
    fn show(&self, shown: &Shown<'_>) -> ShownResult {
        let set = |scope, status: Option<&StatusMessage>| {
            status.map_or(Ok(()), |status| self.status_set(scope, status))
        };
        ShownResult {
            version: shown
                .version
                .map_or(Ok(()), |version| self.application_version_set(version)),
            app: set(Scope::App, shown.app),
            unit: set(Scope::Unit, shown.unit),
        }
    }
    /// Relations on `endpoint`, ascending. Some agents leave out the one being broken.
    fn relation_ids(&self, endpoint: &EndpointName) -> Result<Vec<RelationId>>;
    /// Remote units, ascending; in `-departed` the departing one is already gone.
    fn relation_list(&self, relation: &RelationKey) -> Result<Vec<UnitName>>;
    /// The remote application.
    fn relation_app(&self, relation: &RelationKey) -> Result<Option<AppName>>;
    /// A whole databag. Own application data: leader only, except on peer endpoints.
    fn relation_get(&self, relation: &RelationKey, bag: &Bag) -> Result<Databag>;
    /// Sets the named keys of an own databag, at exit; an empty value deletes its key. `App`:
    /// leader only.
    fn relation_set(&self, relation: &RelationKey, scope: Scope, data: &Databag) -> Result<()>;
    /// The remote application's model (Juju 3.6.2).
    fn relation_model(&self, relation: &RelationKey) -> Result<Option<ModelUuid>>;
    /// Every option that has a value, defaults included. One snapshot per hook.
    fn config_get(&self) -> Result<Map<String, Value>>;
    /// Whether this unit leads; a `true` holds for about 30 s.
    fn is_leader(&self) -> Result<bool>;
    /// Sets a status, at once. `App`: leader only.
    fn status_set(&self, scope: Scope, status: &StatusMessage) -> Result<()>;
    /// The status Juju has. `App`: leader only.
    fn status_get(&self, scope: Scope) -> Result<ReportedStatus>;
    /// Shows `version` as the workload's, at once.
    fn application_version_set(&self, version: &str) -> Result<()>;
    /// The action's parameters, defaults filled in.
    fn action_get(&self) -> Result<Map<String, Value>>;
    /// Adds results; keys as [`check_results`](crate::check_results) wants them. Kept even if the
    /// action fails.
    fn action_set(&self, results: &BTreeMap<String, String>) -> Result<()>;
    /// Marks the action failed; other writes of the dispatch stay.
    fn action_fail(&self, message: &str) -> Result<()>;
    /// Shows a line of progress, at once.
    fn action_log(&self, message: &str) -> Result<()>;
    /// A secret's content.
    fn secret_get(&self, secret: &SecretRef, revision: SecretRevision) -> Result<SecretContent>;
    /// Creates a secret, at exit.
    fn secret_add(&self, secret: &NewSecret) -> Result<SecretId>;
    /// Changes an own secret, at exit.
    fn secret_set(&self, id: &SecretId, secret: &NewSecret) -> Result<()>;
    /// Which one an own secret is, and what Juju knows about it.
    fn secret_info(&self, secret: &SecretRef) -> Result<(SecretId, SecretInfo)>;
    /// Own secrets.
    fn secret_ids(&self) -> Result<Vec<SecretId>>;
    /// Lets the remote side of a relation, or one unit of it, read an own secret, at exit.
    /// Granting again is fine; granting the application after a unit of it is refused.
    fn secret_grant(
        &self,
        id: &SecretId,
        relation: &RelationKey,
        unit: Option<&UnitName>,
    ) -> Result<()>;
    /// Takes that back, at exit.
    fn secret_revoke(&self, id: &SecretId, grantee: &SecretGrantee) -> Result<()>;
    /// Removes an own secret, or one revision of it, at exit.
    fn secret_remove(&self, id: &SecretId, revision: Option<u32>) -> Result<()>;
    /// Addresses of a binding, seen from a relation if one is named.
    fn network_get(&self, binding: &str, relation: Option<&RelationKey>) -> Result<NetworkInfo>;
    /// Opens a port, at exit; on all endpoints if none is named.
    fn open_port(&self, port: Port, endpoints: &[EndpointName]) -> Result<()>;
    /// Closes a port, at exit; on all endpoints if none is named.
    fn close_port(&self, port: Port, endpoints: &[EndpointName]) -> Result<()>;
    /// Ports this unit has open; whether changes of this hook show depends on the agent. What is
    /// no single port (ranges, icmp) is left out.
    fn opened_ports(&self) -> Result<Vec<Port>>;
    /// Fetches a resource and tells where it lies.
    fn resource_get(&self, name: &str) -> Result<PathBuf>;
    /// What the model is to look like.
    fn goal_state(&self) -> Result<GoalState>;
    /// The cloud's credentials as Juju has them, for trusted applications (on Kubernetes from
    /// Juju 3.6.10).
    fn credential_get(&self) -> Result<Redacted<Map<String, Value>>>;
    /// Attached instances, ascending; of one declared storage if named.
    fn storage_list(&self, name: Option<&str>) -> Result<Vec<StorageId>>;
    /// Form and place of one instance.
    fn storage_get(&self, id: &StorageId) -> Result<StorageInfo>;
    /// Asks for `count` more instances of a declared storage, at exit; their
    /// `-storage-attached` hooks come later.
    fn storage_add(&self, name: &str, count: u32) -> Result<()>;
    /// Reboots the machine: after this hook, or `now`, which ends this process and runs the hook
    /// again. Not in actions.
    fn juju_reboot(&self, now: bool) -> Result<()>;
    /// The charm's own kept state; empty if there is none.
    fn state_get(&self) -> Result<BTreeMap<String, String>>;
    /// Sets keys of that state, at exit.
    fn state_set(&self, state: &BTreeMap<String, String>) -> Result<()>;
    /// Deletes a key of that state, at exit; an absent one is fine.
    fn state_delete(&self, key: &str) -> Result<()>;
    /// Writes to the model's log, at once; a message of any length.
    fn juju_log(&self, level: LogLevel, message: &str) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_on_their_way_out_are_not_planned() {
        let check = |json: &str, expect: u32| {
            let goal: GoalState = serde_json::from_str(json).unwrap();
            assert_eq!(goal.planned_units(), expect, "{json}");
        };
        check(
            r#"{"units":{"meshy/0":{"status":"active","since":"x"},"meshy/1":{"status":"dying"}}}"#,
            1,
        );
        check(r#"{"units":null,"relations":null}"#, 0);
        check("{}", 0);
        check(
            r#"{"units":{"meshy/0":{}},"relations":{"ingress":{"app":{"status":"joined"},"app/0":{}}}}"#,
            1,
        );
    }
}
