//! The hook tools over a [`State`], with Juju's permissions.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::path::PathBuf;

use juju_charm::{Metadata, Role};
use juju_hooks::{
    AppName, Bag, Context, Databag, EndpointName, GoalState, GoalUnit, HookTools, JujuVersion,
    LogLevel, ModelUuid, NetworkInfo, NewSecret, Port, Redacted, RelationId, RelationKey,
    RelationKind, ReportedStatus, Result, Scope, SecretContent, SecretGrantee, SecretId,
    SecretInfo, SecretOwner, SecretRef, SecretRevision, StatusMessage, StorageId, StorageInfo,
    ToolError, UnitName, check_results,
};
use serde_json::{Map, Value};

use super::state::{Reboot, Relation, Secret, State};

/// One run's tools. Everything is written to one state; what must not survive a failure is taken
/// from the state before.
pub(super) struct SimTools<'a> {
    metadata: &'a Metadata,
    before: &'a State,
    context: Context,
    params: Map<String, Value>,
    state: RefCell<State>,
    asked: Cell<u32>,
    app_writes: Cell<bool>,
}

impl<'a> SimTools<'a> {
    pub(super) fn new(
        metadata: &'a Metadata,
        before: &'a State,
        context: &Context,
        params: Map<String, Value>,
    ) -> Self {
        let mut state = before.clone();
        state.record = super::Record::default();
        Self {
            metadata,
            before,
            context: context.clone(),
            params,
            state: RefCell::new(state),
            asked: Cell::new(0),
            app_writes: Cell::new(false),
        }
    }

    /// The state after the run, and why the flush failed if it did.
    pub(super) fn end(self, succeeded: bool) -> (State, Option<&'static str>) {
        let leads = self.leads() && !self.before.quirks.loses_lead_at_exit;
        let mut state = self.state.into_inner();
        state.leader = leads;
        let lost = if state.record.reboot == Some(Reboot::Now) {
            Some("the hook was killed for a reboot")
        } else {
            (self.app_writes.get() && !leads).then_some("this unit is not the leader")
        };
        if succeeded && lost.is_none() {
            return (state, None);
        }
        let State {
            relations,
            secrets,
            opened_ports,
            kept,
            ..
        } = self.before.clone();
        let dropped = State {
            relations,
            secrets,
            opened_ports,
            kept,
            ..state
        };
        (dropped, lost)
    }

    fn leads(&self) -> bool {
        let lost = self
            .before
            .quirks
            .leads_for
            .is_some_and(|answers| self.asked.get() >= answers);
        self.before.leader && !lost
    }

    fn call(&self, call: impl Into<String>) -> RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        state.record.calls.push(call.into());
        state
    }

    fn broken(&self) -> Option<RelationId> {
        let event = self.context.event.relation()?;
        (event.kind == RelationKind::Broken).then_some(event.id)
    }

    fn peers(&self, endpoint: &EndpointName) -> bool {
        self.metadata
            .endpoints
            .get(endpoint)
            .is_some_and(|e| e.role == Role::Peers)
    }

    fn in_action(&self, tool: &'static str) -> Result<()> {
        match self.context.event.action() {
            Some(_) => Ok(()),
            None => Err(failed(tool, "not running an action")),
        }
    }
}

fn find<'s>(
    tool: &'static str,
    state: &'s mut State,
    key: &RelationKey,
) -> Result<&'s mut Relation> {
    let known = state
        .relations
        .iter_mut()
        .find(|r| r.id == key.id && r.endpoint == key.endpoint);
    let value = key.to_string();
    known.ok_or_else(|| ToolError::NotFound {
        tool,
        detail: format!("invalid value {value:?} for option -r: relation not found"),
    })
}

fn failed(tool: &'static str, detail: &str) -> ToolError {
    ToolError::classify(tool, 1, &format!("ERROR {detail}"))
}

/// As Go writes numbers that crossed the API: without fraction where there is none.
fn as_juju_writes(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                serde_json::from_str(&format!("{float:.0}")).unwrap_or_else(|_| value.clone())
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

fn secret_named<'s>(
    tool: &'static str,
    state: &'s mut State,
    secret: &SecretRef,
) -> Result<(SecretId, &'s mut Secret)> {
    let wanted = |(id, known): &(&SecretId, &mut Secret)| match secret {
        SecretRef::Id(wanted) => wanted.xid() == id.xid(),
        SecretRef::Label(label) => known.label.as_ref() == Some(label),
    };
    let found = state.secrets.iter_mut().find(wanted);
    let text = match secret {
        SecretRef::Id(id) => id.as_str(),
        SecretRef::Label(label) => label,
    };
    let (id, known) = found.ok_or_else(|| failed(tool, &format!("secret {text:?} not found")))?;
    Ok((id.clone(), known))
}

impl HookTools for SimTools<'_> {
    fn relation_ids(&self, endpoint: &EndpointName) -> Result<Vec<RelationId>> {
        let state = self.call(format!("relation-ids {endpoint}"));
        let hidden = self.broken().filter(|_| !self.before.quirks.lists_broken);
        let on = state.relations.iter().filter(|r| r.endpoint == *endpoint);
        let mut ids: Vec<RelationId> = on.map(|r| r.id).filter(|id| Some(*id) != hidden).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn relation_list(&self, relation: &RelationKey) -> Result<Vec<UnitName>> {
        let mut state = self.call(format!("relation-list {relation}"));
        let relation = find("relation-list", &mut state, relation)?;
        Ok(relation.remote_units.keys().cloned().collect())
    }

    fn relation_app(&self, relation: &RelationKey) -> Result<Option<AppName>> {
        let mut state = self.call(format!("relation-list {relation} app"));
        Ok(Some(
            find("relation-list", &mut state, relation)?
                .remote_app
                .clone(),
        ))
    }

    fn relation_get(&self, relation: &RelationKey, bag: &Bag) -> Result<Databag> {
        let mut state = self.call(format!("relation-get {relation} {bag}"));
        let denied = || failed("relation-get", "permission denied (unauthorized access)");
        let known = find("relation-get", &mut state, relation)?;
        let own_app = self.before.unit.app();
        match bag {
            Bag::Unit(unit) if *unit == self.before.unit => Ok(known.local_unit_data.clone()),
            Bag::Unit(unit) => known.remote_units.get(unit).cloned().ok_or_else(denied),
            Bag::App(app) if app == own_app => {
                let readable = self.leads() || self.peers(&relation.endpoint);
                if readable {
                    Ok(known.local_app_data.clone())
                } else {
                    Err(denied())
                }
            }
            Bag::App(app) if *app == known.remote_app => {
                let refused = self.before.quirks.denies_broken && self.broken() == Some(known.id);
                if refused {
                    Err(denied())
                } else {
                    Ok(known.remote_app_data.clone())
                }
            }
            Bag::App(_) => Err(denied()),
        }
    }

    fn relation_set(&self, relation: &RelationKey, scope: Scope, data: &Databag) -> Result<()> {
        let whose = if scope == Scope::App { "app" } else { "unit" };
        let mut state = self.call(format!("relation-set {relation} {whose}"));
        let known = find("relation-set", &mut state, relation)?;
        let bag = match scope {
            Scope::Unit => &mut known.local_unit_data,
            Scope::App if self.leads() => {
                self.app_writes.set(true);
                &mut known.local_app_data
            }
            Scope::App => return Err(failed("relation-set", "cannot write relation settings")),
        };
        for (key, value) in data {
            if value.is_empty() {
                bag.remove(key);
            } else {
                bag.insert(key.clone(), value.clone());
            }
        }
        Ok(())
    }

    fn relation_model(&self, relation: &RelationKey) -> Result<Option<ModelUuid>> {
        let mut state = self.call(format!("relation-model-get {relation}"));
        let own = state.model_uuid.clone();
        let remote = find("relation-model-get", &mut state, relation)?
            .remote_model
            .clone();
        Ok(Some(remote.unwrap_or(own)))
    }

    fn config_get(&self) -> Result<Map<String, Value>> {
        let state = self.call("config-get");
        let value = |name: &String| {
            let set = state.config.get(name);
            set.or_else(|| self.metadata.options.get(name)?.default.as_ref())
        };
        let names = self.metadata.options.keys();
        let known = names.filter_map(|name| Some((name.clone(), as_juju_writes(value(name)?))));
        Ok(known.filter(|(_, value)| !value.is_null()).collect())
    }

    fn is_leader(&self) -> Result<bool> {
        let _state = self.call("is-leader");
        let leads = self.leads();
        self.asked.set(self.asked.get() + 1);
        Ok(leads)
    }

    fn status_set(&self, scope: Scope, status: &StatusMessage) -> Result<()> {
        match scope {
            Scope::Unit => self.call("status-set unit").unit_status = status.clone().into(),
            Scope::App => {
                let mut state = self.call("status-set app");
                if !self.leads() {
                    return Err(failed("status-set", "this unit is not the leader"));
                }
                state.app_status = status.clone().into();
            }
        }
        Ok(())
    }

    fn status_get(&self, scope: Scope) -> Result<ReportedStatus> {
        match scope {
            Scope::Unit => Ok(self.call("status-get unit").unit_status.clone()),
            Scope::App => {
                let state = self.call("status-get app");
                if self.leads() {
                    return Ok(state.app_status.clone());
                }
                let detail = "finding application status: this unit is not the leader";
                Err(failed("status-get", detail))
            }
        }
    }

    fn application_version_set(&self, version: &str) -> Result<()> {
        version.clone_into(&mut self.call("application-version-set").workload_version);
        Ok(())
    }

    fn action_get(&self) -> Result<Map<String, Value>> {
        let _state = self.call("action-get");
        self.in_action("action-get")?;
        let name = self
            .context
            .event
            .action()
            .map(|call| call.name.as_str())
            .unwrap_or_default();
        let spec = self.metadata.actions.get(name);
        let specs = spec.iter().flat_map(|spec| &spec.params);
        let mut params: Map<String, Value> = specs
            .filter_map(|(name, param)| {
                Some((name.clone(), as_juju_writes(param.default.as_ref()?)))
            })
            .collect();
        params.extend(
            self.params
                .iter()
                .map(|(k, v)| (k.clone(), as_juju_writes(v))),
        );
        Ok(params)
    }

    fn action_set(&self, results: &BTreeMap<String, String>) -> Result<()> {
        let mut state = self.call("action-set");
        self.in_action("action-set")?;
        check_results(results).map_err(|error| failed("action-set", &error.to_string()))?;
        state.record.action.results.extend(results.clone());
        Ok(())
    }

    fn action_fail(&self, message: &str) -> Result<()> {
        let mut state = self.call("action-fail");
        self.in_action("action-fail")?;
        state.record.action.failure = Some(message.to_owned());
        Ok(())
    }

    fn action_log(&self, message: &str) -> Result<()> {
        let mut state = self.call("action-log");
        self.in_action("action-log")?;
        state.record.action.log.push(message.to_owned());
        Ok(())
    }

    fn secret_get(&self, secret: &SecretRef, revision: SecretRevision) -> Result<SecretContent> {
        let mut state = self.call("secret-get");
        let (_, known) = secret_named("secret-get", &mut state, secret)?;
        if !known.granted && known.owner.is_none() {
            return Err(failed("secret-get", "permission denied"));
        }
        let content = match revision {
            SecretRevision::Tracked => known.tracked.as_ref().unwrap_or(&known.latest).clone(),
            SecretRevision::Peek => known.latest.clone(),
            SecretRevision::Refresh => {
                known.tracked = None;
                known.latest.clone()
            }
        };
        Ok(Redacted::new(content))
    }

    fn secret_add(&self, secret: &NewSecret) -> Result<SecretId> {
        let mut state = self.call("secret-add");
        if secret.owner == SecretOwner::Application && !self.leads() {
            return Err(failed("secret-add", "this unit is not the leader"));
        }
        let id = SecretId::new(format!("secret:{:020}", state.secrets.len() + 1));
        let id = id.map_err(|error| failed("secret-add", &error.to_string()))?;
        let added = Secret {
            latest: secret.content.expose().clone(),
            label: secret.label.clone(),
            description: secret.description.clone(),
            rotate: secret.rotate,
            expire: secret.expire.clone(),
            revision: 1,
            owner: Some(secret.owner),
            ..Secret::default()
        };
        state.secrets.insert(id.clone(), added);
        Ok(id)
    }

    fn secret_set(&self, id: &SecretId, secret: &NewSecret) -> Result<()> {
        let mut state = self.call("secret-set");
        let (_, known) = secret_named("secret-set", &mut state, &SecretRef::Id(id.clone()))?;
        self.may_manage("secret-set", known)?;
        if !secret.content.expose().is_empty() {
            let old = std::mem::replace(&mut known.latest, secret.content.expose().clone());
            known.tracked.get_or_insert(old);
            known.revision += 1;
        }
        known.label = secret.label.clone().or_else(|| known.label.take());
        let description = secret.description.clone();
        known.description = description.or_else(|| known.description.take());
        known.rotate = secret.rotate.or(known.rotate);
        known.expire = secret.expire.clone().or_else(|| known.expire.take());
        Ok(())
    }

    fn secret_info(&self, secret: &SecretRef) -> Result<(SecretId, SecretInfo)> {
        let mut state = self.call("secret-info-get");
        let (id, known) = secret_named("secret-info-get", &mut state, secret)?;
        self.may_manage("secret-info-get", known)?;
        let owner = match known.owner {
            Some(SecretOwner::Unit) => "unit",
            _ => "application",
        };
        let info = SecretInfo {
            revision: known.revision,
            label: known.label.clone(),
            owner: owner.to_owned(),
            description: known.description.clone(),
            rotation: known.rotate.map(|rotate| rotate.as_str().to_owned()),
            expiry: known.expire.clone(),
        };
        Ok((id, info))
    }

    fn secret_ids(&self) -> Result<Vec<SecretId>> {
        let state = self.call("secret-ids");
        let own = state
            .secrets
            .iter()
            .filter(|(_, secret)| secret.owner.is_some());
        Ok(own.map(|(id, _)| id.clone()).collect())
    }

    fn secret_grant(
        &self,
        id: &SecretId,
        relation: &RelationKey,
        unit: Option<&UnitName>,
    ) -> Result<()> {
        let mut state = self.call(format!("secret-grant {relation}"));
        find("secret-grant", &mut state, relation)?;
        let (_, known) = secret_named("secret-grant", &mut state, &SecretRef::Id(id.clone()))?;
        self.may_manage("secret-grant", known)?;
        match unit {
            Some(unit) => known.unit_grants.insert(unit.clone()),
            None => known.grants.insert(relation.id),
        };
        Ok(())
    }

    fn secret_revoke(&self, id: &SecretId, grantee: &SecretGrantee) -> Result<()> {
        let mut state = self.call("secret-revoke");
        let with = |app: &AppName, relations: &[Relation]| -> Vec<RelationId> {
            let related = relations.iter().filter(|r| r.remote_app == *app);
            related.map(|relation| relation.id).collect()
        };
        let (relations, unit) = match grantee {
            SecretGrantee::Relation(relation) => (vec![relation.id], None),
            SecretGrantee::App(app) => (with(app, &state.relations), None),
            SecretGrantee::Unit(unit) => (Vec::new(), Some(unit)),
        };
        let (_, known) = secret_named("secret-revoke", &mut state, &SecretRef::Id(id.clone()))?;
        self.may_manage("secret-revoke", known)?;
        known.grants.retain(|id| !relations.contains(id));
        if let Some(unit) = unit {
            known.unit_grants.remove(unit);
        }
        Ok(())
    }

    fn secret_remove(&self, id: &SecretId, revision: Option<u32>) -> Result<()> {
        let mut state = self.call("secret-remove");
        let (id, known) = secret_named("secret-remove", &mut state, &SecretRef::Id(id.clone()))?;
        self.may_manage("secret-remove", known)?;
        if revision.is_none_or(|revision| revision == known.revision) {
            state.secrets.remove(&id);
        }
        Ok(())
    }

    fn network_get(&self, binding: &str, relation: Option<&RelationKey>) -> Result<NetworkInfo> {
        let mut state = self.call(format!("network-get {binding}"));
        if let Some(relation) = relation {
            find("network-get", &mut state, relation)?;
        }
        let declared = self.metadata.extra_bindings.contains(binding)
            || self
                .metadata
                .endpoints
                .keys()
                .any(|endpoint| *endpoint == binding);
        match state.networks.get(binding) {
            Some(network) => Ok(network.clone()),
            None if declared => Ok(NetworkInfo {
                ingress_addresses: vec!["192.0.2.0".to_owned()],
                ..NetworkInfo::default()
            }),
            None => {
                let detail = format!("no network config found for binding {binding:?}");
                Err(failed("network-get", &detail))
            }
        }
    }

    fn open_port(&self, port: Port, _: &[EndpointName]) -> Result<()> {
        self.call(format!("open-port {port}"))
            .opened_ports
            .insert(port);
        Ok(())
    }

    fn close_port(&self, port: Port, _: &[EndpointName]) -> Result<()> {
        self.call(format!("close-port {port}"))
            .opened_ports
            .remove(&port);
        Ok(())
    }

    fn opened_ports(&self) -> Result<Vec<Port>> {
        Ok(self
            .call("opened-ports")
            .opened_ports
            .iter()
            .copied()
            .collect())
    }

    fn resource_get(&self, name: &str) -> Result<PathBuf> {
        let state = self.call(format!("resource-get {name}"));
        let file = state.resources.get(name).cloned();
        file.ok_or_else(|| failed("resource-get", "could not download resource: not found"))
    }

    fn goal_state(&self) -> Result<GoalState> {
        let state = self.call("goal-state");
        let app = self.before.unit.app();
        let active = GoalUnit {
            status: "active".to_owned(),
        };
        let dying = GoalUnit {
            status: "dying".to_owned(),
        };
        let planned = (0..self.before.planned_units).map(|n| UnitName::of(app.clone(), n));
        let mut units: BTreeMap<_, _> = planned.map(|unit| (unit, active.clone())).collect();
        units.entry(self.before.unit.clone()).or_insert(dying);
        let mut relations: BTreeMap<EndpointName, BTreeMap<String, GoalUnit>> = BTreeMap::new();
        for relation in &state.relations {
            let joined = GoalUnit {
                status: "joined".to_owned(),
            };
            let goals = relations.entry(relation.endpoint.clone()).or_default();
            goals.insert(relation.remote_app.to_string(), joined);
            let units = relation.remote_units.keys();
            goals.extend(units.map(|unit| (unit.to_string(), active.clone())));
        }
        Ok(GoalState { units, relations })
    }

    fn credential_get(&self) -> Result<Redacted<Map<String, Value>>> {
        let state = self.call("credential-get");
        if state.juju_version < JujuVersion::release(3, 6, 10) {
            let detail = "credential-get on a \"caas\" model not supported";
            return Err(failed("credential-get", detail));
        }
        let known = state.credential.clone().map(Redacted::new);
        known.ok_or_else(|| failed("credential-get", "permission denied"))
    }

    fn storage_list(&self, name: Option<&str>) -> Result<Vec<StorageId>> {
        let state = self.call("storage-list");
        let wanted = |id: &&StorageId| name.is_none_or(|name| id.name == name);
        Ok(state.storages.keys().filter(wanted).cloned().collect())
    }

    fn storage_get(&self, id: &StorageId) -> Result<StorageInfo> {
        let state = self.call(format!("storage-get {id}"));
        let known = state.storages.get(id).cloned();
        known.ok_or_else(|| failed("storage-get", &format!("storage {id} not found")))
    }

    fn storage_add(&self, name: &str, count: u32) -> Result<()> {
        let mut state = self.call(format!("storage-add {name}"));
        if !self.metadata.storage.contains(name) {
            let detail = format!("charm storage {name:?} not found");
            return Err(failed("storage-add", &detail));
        }
        let asked = &mut state.record.requested_storage;
        *asked.entry(name.to_owned()).or_default() += count;
        Ok(())
    }

    fn juju_reboot(&self, now: bool) -> Result<()> {
        let mut state = self.call("juju-reboot");
        if self.context.event.action().is_some() {
            return Err(failed(
                "juju-reboot",
                "juju-reboot is not supported when running an action.",
            ));
        }
        if now {
            state.record.reboot = Some(Reboot::Now);
            // No process is there to be killed; to fail is the same to all but the charm.
            return Err(failed("juju-reboot", "signal: killed"));
        }
        state.record.reboot = Some(Reboot::AfterHook);
        Ok(())
    }

    fn state_get(&self) -> Result<BTreeMap<String, String>> {
        Ok(self.call("state-get").kept.clone())
    }

    fn state_set(&self, kept: &BTreeMap<String, String>) -> Result<()> {
        self.call("state-set").kept.extend(kept.clone());
        Ok(())
    }

    fn state_delete(&self, key: &str) -> Result<()> {
        self.call("state-delete").kept.remove(key);
        Ok(())
    }

    fn juju_log(&self, level: LogLevel, message: &str) -> Result<()> {
        let mut state = self.state.borrow_mut();
        let lines = message.lines().map(|line| (level, line.to_owned()));
        state.record.log.extend(lines);
        Ok(())
    }
}

impl SimTools<'_> {
    fn may_manage(&self, tool: &'static str, secret: &Secret) -> Result<()> {
        match secret.owner {
            Some(SecretOwner::Unit) => Ok(()),
            Some(SecretOwner::Application) if self.leads() => Ok(()),
            _ => Err(failed(tool, "permission denied")),
        }
    }
}

#[cfg(test)]
mod tests {
    use juju_hooks::Event;

    use super::*;

    #[test]
    fn a_reboot_at_once_loses_what_juju_kept_and_one_afterwards_does_not() {
        let metadata = Metadata::parse("name: meshy\n").unwrap();
        let before = State::new("meshy/0");
        let context = before.context(Event::ConfigChanged);
        let check = |now: bool, kept: usize, told: bool| {
            let tools = SimTools::new(&metadata, &before, &context, Map::new());
            tools
                .state_set(&[("a".to_owned(), "1".to_owned())].into())
                .unwrap();
            assert_eq!(tools.juju_reboot(now).is_err(), now);
            let (after, lost) = tools.end(true);
            assert_eq!((after.kept.len(), lost.is_none()), (kept, told));
            let expect = if now { Reboot::Now } else { Reboot::AfterHook };
            assert_eq!(after.record.reboot, Some(expect));
        };
        check(true, 0, false);
        check(false, 1, true);
    }
}
