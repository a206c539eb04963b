//! Actions and exec, as an operator asks for them.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Model;
use super::ModelError;
use super::refuse;
use crate::charm::actions;
use crate::state::Task;
use crate::state::TaskKind;
use crate::state::split_unit;

/// How an action or exec ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    /// Task number.
    pub id: u64,
    /// The unit it ran on.
    pub unit: String,
    /// `completed`, `failed`, `cancelled`, or `pending` when the unit would not take it up.
    pub status: String,
    /// Failure text.
    pub message: String,
    /// Results with `return-code`.
    pub results: Map<String, Value>,
    /// Lines from action-log.
    pub log: Vec<String>,
}

impl TaskResult {
    /// The entry `juju run --format json` prints for it.
    pub fn json(&self) -> Value {
        let mut entry = Map::new();
        entry.insert("id".into(), json!(self.id.to_string()));
        entry.insert("status".into(), json!(self.status));
        entry.insert("results".into(), Value::Object(self.results.clone()));
        if !self.message.is_empty() {
            entry.insert("message".into(), json!(self.message));
        }
        if !self.log.is_empty() {
            entry.insert("log".into(), json!(self.log));
        }
        entry.insert("unit".into(), json!(self.unit));
        Value::Object(entry)
    }
}

impl Model {
    /// Runs an action on `app/N` or `app/leader` and returns its result. Agents are advanced
    /// before and after.
    ///
    /// # Errors
    /// Unknown unit or action, parameters against the schema. A failed action is a result.
    pub fn run(
        &mut self,
        unit: &str,
        action: &str,
        params: Map<String, Value>,
    ) -> Result<TaskResult, ModelError> {
        let unit = self.unit_name(unit)?;
        let charm = split_unit(&unit)
            .and_then(|(app, _)| self.state.applications.get(app))
            .map(|app| &app.charm);
        let Some(meta) = charm.and_then(|c| c.actions.get(action)) else {
            return refuse(format!(
                "action {action:?} not defined for unit {unit:?}. (not found)"
            ));
        };
        let strict = crate::at_least(&self.options.juju_version, 4);
        let params = actions::validated(meta, params, !strict).map_err(ModelError::Refused)?;
        self.task(
            unit,
            TaskKind::Action {
                name: action.to_owned(),
                params,
            },
        )
    }

    /// Runs shell text on a unit in a hook context.
    ///
    /// # Errors
    /// Unknown unit.
    pub fn exec(&mut self, unit: &str, script: &str) -> Result<TaskResult, ModelError> {
        let unit = self.unit_name(unit)?;
        self.task(
            unit,
            TaskKind::Exec {
                script: script.to_owned(),
            },
        )
    }

    /// Turns `app/leader` into the leader's name and checks that a unit exists.
    ///
    /// # Errors
    /// Unknown unit, no leader.
    pub fn unit_name(&self, unit: &str) -> Result<String, ModelError> {
        let name = match unit.strip_suffix("/leader") {
            Some(app) => match self.alive_app(app)?.leader {
                Some(number) => format!("{app}/{number}"),
                None => {
                    return refuse(format!("could not determine leader for {app:?}"));
                }
            },
            None => unit.to_owned(),
        };
        if self.state.unit(&name).is_none() {
            return refuse(format!("unit {name:?} not found"));
        }
        Ok(name)
    }

    fn task(&mut self, unit: String, kind: TaskKind) -> Result<TaskResult, ModelError> {
        self.advance()?;
        // The operation takes a number of its own, the task the next one.
        let id = self.state.next_task + 1;
        self.state.next_task += 2;
        let task = Task {
            unit,
            kind,
            status: "pending".into(),
            message: String::new(),
            results: Map::new(),
            log: Vec::new(),
        };
        self.state.tasks.insert(id, task);
        self.save()?;
        self.advance()?;
        match self.state.tasks.get(&id) {
            Some(task) => Ok(TaskResult {
                id,
                unit: task.unit.clone(),
                status: task.status.clone(),
                message: task.message.clone(),
                results: task.results.clone(),
                log: task.log.clone(),
            }),
            None => refuse(format!("task {id} not found")),
        }
    }
}
