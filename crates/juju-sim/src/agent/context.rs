//! One hook run as the hook tools see it: the model under an overlay of writes not yet committed.
//!
//! Writes to databags, charm state, ports and secrets stay in [`Pending`] until the hook exits 0;
//! [`HookRun::flush`] then checks leadership and quotas again and applies all of them or none.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::Map;
use serde_json::Value;

use crate::Model;
use crate::hook::Hook;
use crate::model::Level;
use crate::record::ToolCall;
use crate::state::Bag;
use crate::state::Databag;
use crate::state::Secret;
use crate::state::State;
use crate::state::TaskKind;
use crate::state::split_unit;

/// Greatest total size of what one unit keeps with `state-set`, in bytes.
const MAX_CHARM_STATE: usize = 2 << 20;

/// Writes that wait for the end of the hook.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Keys to set by relation and by application or unit; an empty value deletes.
    pub(crate) bags: BTreeMap<(u32, String), Databag>,
    /// The whole charm state, once touched.
    pub(crate) charm_state: Option<BTreeMap<String, String>>,
    /// All opened ports, once touched.
    pub(crate) ports: Option<BTreeMap<String, BTreeSet<String>>>,
    /// All secrets, once touched.
    pub(crate) secrets: Option<BTreeMap<String, Secret>>,
    /// Whether one of the application's was written to.
    pub(crate) app_secrets: bool,
}

/// What an action has said so far.
#[derive(Debug, Default)]
pub(crate) struct ActionSaid {
    /// Results.
    pub(crate) results: Map<String, Value>,
    /// Message of `action-fail`.
    pub(crate) failed: Option<String>,
    /// Lines of `action-log`.
    pub(crate) log: Vec<String>,
}

/// A hook or task that is running.
pub(crate) struct HookRun<'m> {
    /// The model.
    pub(crate) model: &'m mut Model,
    /// Unit name.
    pub(crate) unit: String,
    /// Application name.
    pub(crate) app: String,
    /// What runs.
    pub(crate) hook: Hook,
    /// Parameters if it is an action.
    pub(crate) params: Option<Map<String, Value>>,
    /// `JUJU_CONTEXT_ID` of this run.
    pub(crate) context_id: String,
    /// Writes that wait.
    pub(crate) pending: Pending,
    /// What the action said.
    pub(crate) said: ActionSaid,
    /// Tool calls so far.
    pub(crate) calls: Vec<ToolCall>,
}

impl HookRun<'_> {
    /// The model's state, without pending writes.
    pub(crate) fn state(&self) -> &State {
        &self.model.state
    }

    /// Whether the unit leads.
    pub(crate) fn is_leader(&self) -> bool {
        self.state().is_leader(&self.unit)
    }

    /// Name of the hook or action for loggers.
    pub(crate) fn label(&self) -> String {
        match &self.hook {
            Hook::Task(id) => match self.state().tasks.get(id).map(|t| &t.kind) {
                Some(TaskKind::Action { name, .. }) => name.clone(),
                _ => "juju-exec".into(),
            },
            hook => hook.name(),
        }
    }

    /// A databag of an application or unit, with this hook's own writes.
    pub(crate) fn bag(&self, relation: u32, owner: &str) -> Option<Databag> {
        let relation_state = self.state().relations.get(&relation)?;
        let stored = if owner.contains('/') {
            relation_state.unit_bags.get(owner)
        } else {
            relation_state.app_bags.get(owner)
        };
        let pending = self.pending.bags.get(&(relation, owner.to_owned()));
        if stored.is_none() && pending.is_none() && owner.contains('/') {
            return None;
        }
        let mut data = stored.map(|bag| bag.data.clone()).unwrap_or_default();
        overlay(&mut data, pending.into_iter().flatten());
        Some(data)
    }

    /// All secrets, with this hook's own writes.
    pub(crate) fn secrets(&self) -> &BTreeMap<String, Secret> {
        self.pending
            .secrets
            .as_ref()
            .unwrap_or_else(|| &self.state().secrets)
    }

    /// All secrets, to write to.
    pub(crate) fn secrets_mut(&mut self) -> &mut BTreeMap<String, Secret> {
        let stored = &self.model.state.secrets;
        self.pending.secrets.get_or_insert_with(|| stored.clone())
    }

    /// Appends a line to the debug log under the hook's logger.
    pub(crate) fn log_output(&mut self, level: Level, text: &str) {
        let logger = format!("unit.{}.{}", self.unit, self.label());
        self.model.log(&self.unit.clone(), level, &logger, text);
    }

    /// Applies the pending writes, or none of them.
    ///
    /// # Errors
    /// The text Juju logs; the hook then counts as failed.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        let writes_app = self
            .pending
            .bags
            .keys()
            .any(|(_, owner)| !owner.contains('/'));
        if writes_app && !self.is_leader() {
            return Err("cannot write relation settings: the unit is not the leader".into());
        }
        if self.pending.app_secrets && !self.is_leader() {
            return Err("this unit is not the leader".into());
        }
        if let Some(kept) = &self.pending.charm_state {
            let size: usize = kept.iter().map(|(k, v)| k.len() + v.len()).sum();
            if size > MAX_CHARM_STATE {
                return Err(format!(
                    "max allowed size ({MAX_CHARM_STATE}) exceeded {size} (quota limit exceeded)"
                ));
            }
        }
        let pending = std::mem::take(&mut self.pending);
        let (unit, app) = (self.unit.clone(), self.app.clone());
        let state = &mut self.model.state;
        for ((id, owner), changes) in pending.bags {
            // The relation may be gone by now; Juju ignores such writes as well.
            let Some(relation) = state.relations.get_mut(&id) else {
                continue;
            };
            let peer = relation.is_peer();
            let bags = if owner.contains('/') {
                &mut relation.unit_bags
            } else {
                &mut relation.app_bags
            };
            let bag: &mut Bag = bags.entry(owner.clone()).or_default();
            let mut data = bag.data.clone();
            overlay(&mut data, changes.iter());
            if data == bag.data {
                continue;
            }
            bag.data = data;
            bag.version += 1;
            let version = bag.version;
            // A writer is not told of its own write; its peers are.
            if peer
                && owner == app
                && let Some(u) = state.unit_mut(&unit)
                && let Some(seen) = u.uniter.relations.get_mut(&id)
            {
                seen.app_version = version;
            }
        }
        if let Some(secrets) = pending.secrets {
            state.secrets = secrets;
        }
        if let Some(u) = state.unit_mut(&unit) {
            if let Some(kept) = pending.charm_state {
                u.charm_state = kept;
            }
            if let Some(ports) = pending.ports {
                u.ports = ports;
            }
        }
        Ok(())
    }

    /// Resolves a unit or application name to itself if it takes part in a relation.
    pub(crate) fn takes_part(&self, relation: u32, owner: &str) -> bool {
        let app = split_unit(owner).map_or(owner, |(app, _)| app);
        self.state()
            .relations
            .get(&relation)
            .is_some_and(|r| r.side(app).is_some())
    }
}

/// Lays changes over a databag; an empty value deletes.
fn overlay<'a>(data: &mut Databag, changes: impl Iterator<Item = (&'a String, &'a String)>) {
    for (key, value) in changes {
        if value.is_empty() {
            data.remove(key);
        } else {
            data.insert(key.clone(), value.clone());
        }
    }
}
