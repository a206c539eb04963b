//! Hook tools as processes, found through `PATH`.
//!
//! Invariants: relation and state data go through standard input as JSON texts, secret content
//! through files only this user can read; no argument is longer than Linux allows; answers are
//! asked for as JSON.

mod legacy;
mod many;
mod scratch;
mod spawn;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value};

use self::scratch::Scratch;
use crate::answers::{self, parse};
use crate::databag::{Databag, json_texts};
use crate::error::{Result, ToolError};
use crate::ids::{AppName, EndpointName, ModelUuid, RelationId, RelationKey, SecretId, UnitName};
use crate::limits::{MAX_ARGUMENT_BYTES, MAX_ARGUMENTS_TOTAL_BYTES, split_message};
use crate::network::NetworkInfo;
use crate::port::Port;
use crate::redacted::Redacted;
use crate::secret::{
    NewSecret, SecretContent, SecretGrantee, SecretInfo, SecretOwner, SecretRef, SecretRevision,
    is_secret_key,
};
use crate::status::{ReportedStatus, StatusMessage};
use crate::storage::{StorageId, StorageInfo};
use crate::tools::{Bag, GoalState, HookTools, LogLevel, Opening, Scope, Shown, ShownResult};

/// Runs the real hook tools.
#[derive(Debug, Clone)]
pub struct ProcessTools {
    path: Option<OsString>,
    scratch: PathBuf,
}

impl Default for ProcessTools {
    fn default() -> Self {
        Self::new()
    }
}

impl ProcessTools {
    /// The tools on this process's `PATH`, where the agent put them.
    pub fn new() -> Self {
        Self {
            path: None,
            scratch: PathBuf::from("/tmp"),
        }
    }

    /// The tools on another `PATH`; the rest of the environment is this process's.
    pub fn on_path(path: impl Into<OsString>) -> Self {
        Self {
            path: Some(path.into()),
            ..Self::new()
        }
    }

    /// Puts the short-lived files with secret content below `dir` instead of `/tmp`.
    #[must_use]
    pub fn scratch_in(self, dir: impl Into<PathBuf>) -> Self {
        Self {
            scratch: dir.into(),
            ..self
        }
    }

    fn secret_args(
        &self,
        tool: &'static str,
        secret: &NewSecret,
        scratch: &mut Option<Scratch>,
    ) -> Result<Vec<String>> {
        let mut args = Vec::new();
        let rotate = secret.rotate.map(|rotate| rotate.as_str().to_owned());
        let flags = [
            ("--label", &secret.label),
            ("--description", &secret.description),
            ("--expire", &secret.expire),
            ("--rotate", &rotate),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                args.extend([flag.to_owned(), value.clone()]);
            }
        }
        let owner = match secret.owner {
            SecretOwner::Application => "application",
            SecretOwner::Unit => "unit",
        };
        args.extend(["--owner".to_owned(), owner.to_owned()]);
        let content = secret.content.expose();
        if !content.is_empty() {
            let io = |source| ToolError::Transport {
                tool,
                detail: "cannot keep secret content in a file".to_owned(),
                source: Some(source),
            };
            let dir = scratch.insert(Scratch::new(&self.scratch).map_err(io)?);
            if let Some(key) = content.keys().find(|key| !is_secret_key(key)) {
                let detail = format!("invalid secret key {key:?}");
                return Err(ToolError::Invalid { tool, detail });
            }
            for (key, value) in content {
                let file = dir.write(key, value).map_err(io)?;
                args.push(format!("{key}#file={}", file.display()));
            }
        }
        Ok(args)
    }
}

fn secret_ref<'a>(args: &mut Vec<&'a str>, secret: &'a SecretRef) {
    match secret {
        SecretRef::Id(id) => args.push(id.as_str()),
        SecretRef::Label(label) => args.extend(["--label", label.as_str()]),
    }
}

impl HookTools for ProcessTools {
    fn opening(&self, endpoints: &[&EndpointName], goal: bool) -> Opening {
        self.ask_opening(endpoints, goal)
    }

    fn relation_lists(&self, relations: &[&RelationKey]) -> Vec<Result<Vec<UnitName>>> {
        self.ask_lists(relations)
    }

    fn relation_gets(&self, bags: &[(&RelationKey, Bag)]) -> Vec<Result<Databag>> {
        self.ask_bags(bags)
    }

    fn show(&self, shown: &Shown<'_>) -> ShownResult {
        self.show_all(shown)
    }

    fn relation_ids(&self, endpoint: &EndpointName) -> Result<Vec<RelationId>> {
        answers::relation_ids(&self.run("relation-ids", &many::ids_args(endpoint), None)?)
    }

    fn relation_list(&self, relation: &RelationKey) -> Result<Vec<UnitName>> {
        answers::units(&self.run("relation-list", &many::list_args(relation), None)?)
    }

    fn relation_app(&self, relation: &RelationKey) -> Result<Option<AppName>> {
        let args = ["--format=json", "--app", "-r", &relation.to_string()];
        let name: Option<String> = self.json("relation-list", &args)?;
        let name = name.filter(|name| !name.is_empty());
        name.map(|name| parse("relation-list", &name)).transpose()
    }

    fn relation_get(&self, relation: &RelationKey, bag: &Bag) -> Result<Databag> {
        answers::databag(&self.run("relation-get", &many::get_args(relation, bag), None)?)
    }

    fn relation_set(&self, relation: &RelationKey, scope: Scope, data: &Databag) -> Result<()> {
        let relation = relation.to_string();
        let mut args = vec!["-r", &relation];
        if scope == Scope::App {
            args.push("--app");
        }
        args.extend(["--file", "-"]);
        self.run("relation-set", &args, Some(&json_texts(data)))
            .map(drop)
    }

    fn relation_model(&self, relation: &RelationKey) -> Result<Option<ModelUuid>> {
        let args = ["--format=json", "-r", &relation.to_string()];
        let answer: Option<BTreeMap<String, String>> = self.json("relation-model-get", &args)?;
        let uuid = answer
            .and_then(|mut answer| answer.remove("uuid"))
            .filter(|u| !u.is_empty());
        uuid.map(|uuid| parse("relation-model-get", &uuid))
            .transpose()
    }

    fn config_get(&self) -> Result<Map<String, Value>> {
        answers::config(&self.run("config-get", &[many::JSON], None)?)
    }

    fn is_leader(&self) -> Result<bool> {
        self.json("is-leader", &["--format=json"])
    }

    fn status_set(&self, scope: Scope, status: &StatusMessage) -> Result<()> {
        self.run("status-set", &many::status_args(scope, status), None)
            .map(drop)
    }

    fn status_get(&self, scope: Scope) -> Result<ReportedStatus> {
        match scope {
            Scope::Unit => self.json(
                "status-get",
                &["--include-data", "--format=json", "--application=false"],
            ),
            Scope::App => {
                let args = ["--include-data", "--format=json", "--application=true"];
                let mut answer: BTreeMap<String, Value> = self.json("status-get", &args)?;
                let status = answer.remove("application-status").unwrap_or_default();
                serde_json::from_value(status).map_err(|source| ToolError::Answer {
                    tool: "status-get",
                    source,
                })
            }
        }
    }

    fn application_version_set(&self, version: &str) -> Result<()> {
        self.run(
            "application-version-set",
            &["--", &argument_text(version)],
            None,
        )
        .map(drop)
    }

    fn action_get(&self) -> Result<Map<String, Value>> {
        let params: Option<Map<String, Value>> = self.json("action-get", &["--format=json"])?;
        Ok(params.unwrap_or_default())
    }

    fn action_set(&self, results: &BTreeMap<String, String>) -> Result<()> {
        crate::action::check_results(results).map_err(|e| ToolError::Invalid {
            tool: "action-set",
            detail: e.to_string(),
        })?;
        let (mut batch, mut size) = (Vec::new(), 0);
        for (key, value) in results {
            let pair = format!("{key}={}", argument_text(value));
            if pair.len() > MAX_ARGUMENT_BYTES {
                return Err(ToolError::TooLarge {
                    tool: "action-set",
                    bytes: pair.len(),
                });
            }
            if size + pair.len() > MAX_ARGUMENTS_TOTAL_BYTES {
                self.run("action-set", &std::mem::take(&mut batch), None)?;
                size = 0;
            }
            size += pair.len();
            batch.push(pair);
        }
        if batch.is_empty() {
            Ok(())
        } else {
            self.run("action-set", &batch, None).map(drop)
        }
    }

    fn action_fail(&self, message: &str) -> Result<()> {
        let message = argument_text(message);
        let message = &message[..message.floor_char_boundary(MAX_ARGUMENT_BYTES)];
        self.run("action-fail", &["--", message], None).map(drop)
    }

    fn action_log(&self, message: &str) -> Result<()> {
        for piece in split_message(&argument_text(message), MAX_ARGUMENT_BYTES) {
            self.run("action-log", &["--", piece], None)?;
        }
        Ok(())
    }

    fn secret_get(&self, secret: &SecretRef, revision: SecretRevision) -> Result<SecretContent> {
        let mut args = vec!["--format=json"];
        secret_ref(&mut args, secret);
        match revision {
            SecretRevision::Tracked => {}
            SecretRevision::Refresh => args.push("--refresh"),
            SecretRevision::Peek => args.push("--peek"),
        }
        let content: BTreeMap<String, String> = self.json("secret-get", &args)?;
        Ok(Redacted::new(content))
    }

    fn secret_add(&self, secret: &NewSecret) -> Result<SecretId> {
        let mut scratch = None;
        let args = self.secret_args("secret-add", secret, &mut scratch)?;
        let id = self.run("secret-add", &args, None)?;
        parse("secret-add", id.trim())
    }

    fn secret_set(&self, id: &SecretId, secret: &NewSecret) -> Result<()> {
        let mut scratch = None;
        let mut args = vec![id.to_string()];
        args.extend(self.secret_args("secret-set", secret, &mut scratch)?);
        self.run("secret-set", &args, None).map(drop)
    }

    fn secret_info(&self, secret: &SecretRef) -> Result<(SecretId, SecretInfo)> {
        let mut args = vec!["--format=json"];
        secret_ref(&mut args, secret);
        let answer: BTreeMap<String, SecretInfo> = self.json("secret-info-get", &args)?;
        let (id, info) = answer
            .into_iter()
            .next()
            .ok_or_else(|| ToolError::NotFound {
                tool: "secret-info-get",
                detail: format!("{secret:?}"),
            })?;
        Ok((parse("secret-info-get", &id)?, info))
    }

    fn secret_ids(&self) -> Result<Vec<SecretId>> {
        let mut ids = Vec::new();
        for text in self.json_list("secret-ids", &["--format=json"])? {
            ids.push(parse("secret-ids", &text)?);
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn secret_grant(
        &self,
        id: &SecretId,
        relation: &RelationKey,
        unit: Option<&UnitName>,
    ) -> Result<()> {
        let mut args = vec!["--relation".to_owned(), relation.to_string()];
        if let Some(unit) = unit {
            args.extend(["--unit".to_owned(), unit.to_string()]);
        }
        args.push(id.to_string());
        self.run("secret-grant", &args, None).map(drop)
    }

    fn secret_revoke(&self, id: &SecretId, grantee: &SecretGrantee) -> Result<()> {
        let (flag, name) = match grantee {
            SecretGrantee::Relation(relation) => ("--relation", relation.to_string()),
            SecretGrantee::App(app) => ("--app", app.to_string()),
            SecretGrantee::Unit(unit) => ("--unit", unit.to_string()),
        };
        self.run("secret-revoke", &[flag, &name, id.as_str()], None)
            .map(drop)
    }

    fn secret_remove(&self, id: &SecretId, revision: Option<u32>) -> Result<()> {
        let revision = revision.map(|revision| revision.to_string());
        let mut args = vec![id.as_str()];
        if let Some(revision) = &revision {
            args.extend(["--revision", revision]);
        }
        self.run("secret-remove", &args, None).map(drop)
    }

    fn network_get(&self, binding: &str, relation: Option<&RelationKey>) -> Result<NetworkInfo> {
        let relation = relation.map(ToString::to_string);
        let mut args = vec!["--format=json"];
        if let Some(relation) = &relation {
            args.extend(["-r", relation]);
        }
        args.push(binding);
        self.json("network-get", &args)
    }

    fn open_port(&self, port: Port, endpoints: &[EndpointName]) -> Result<()> {
        self.run("open-port", &port_args(port, endpoints), None)
            .map(drop)
    }

    fn close_port(&self, port: Port, endpoints: &[EndpointName]) -> Result<()> {
        self.run("close-port", &port_args(port, endpoints), None)
            .map(drop)
    }

    fn opened_ports(&self) -> Result<Vec<Port>> {
        let listed = self.json_list("opened-ports", &["--format=json"])?;
        let mut ports: Vec<Port> = listed.iter().filter_map(|text| text.parse().ok()).collect();
        ports.sort_unstable();
        Ok(ports)
    }

    fn resource_get(&self, name: &str) -> Result<PathBuf> {
        Ok(PathBuf::from(
            self.run("resource-get", &[name], None)?
                .trim_end_matches('\n'),
        ))
    }

    fn goal_state(&self) -> Result<GoalState> {
        answers::goal(&self.run("goal-state", &[many::JSON], None)?)
    }

    fn credential_get(&self) -> Result<Redacted<Map<String, Value>>> {
        let spec: Option<_> = self.json("credential-get", &["--format=json"])?;
        Ok(Redacted::new(spec.unwrap_or_default()))
    }

    fn storage_list(&self, name: Option<&str>) -> Result<Vec<StorageId>> {
        let mut args = vec!["--format=json"];
        args.extend(name);
        let mut ids = Vec::new();
        for text in self.json_list("storage-list", &args)? {
            ids.push(parse("storage-list", &text)?);
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn storage_get(&self, id: &StorageId) -> Result<StorageInfo> {
        self.json("storage-get", &["--format=json", "-s", &id.to_string()])
    }

    fn storage_add(&self, name: &str, count: u32) -> Result<()> {
        self.run("storage-add", &[format!("{name}={count}")], None)
            .map(drop)
    }

    fn juju_reboot(&self, now: bool) -> Result<()> {
        let args: &[&str] = if now { &["--now"] } else { &[] };
        self.run("juju-reboot", args, None).map(drop)
    }

    fn state_get(&self) -> Result<BTreeMap<String, String>> {
        let state: Option<BTreeMap<String, String>> = self.json("state-get", &["--format=json"])?;
        Ok(state.unwrap_or_default())
    }

    fn state_set(&self, state: &BTreeMap<String, String>) -> Result<()> {
        self.run("state-set", &["--file", "-"], Some(&json_texts(state)))
            .map(drop)
    }

    fn state_delete(&self, key: &str) -> Result<()> {
        self.run("state-delete", &[key], None).map(drop)
    }

    fn juju_log(&self, level: LogLevel, message: &str) -> Result<()> {
        for piece in split_message(&argument_text(message), MAX_ARGUMENT_BYTES) {
            self.run(
                "juju-log",
                &["--log-level", level.as_str(), "--", piece],
                None,
            )?;
        }
        Ok(())
    }
}

fn port_args(port: Port, endpoints: &[EndpointName]) -> Vec<String> {
    let mut args = Vec::new();
    if !endpoints.is_empty() {
        let names: Vec<&str> = endpoints.iter().map(EndpointName::as_str).collect();
        args.extend(["--endpoints".to_owned(), names.join(",")]);
    }
    args.push(port.to_string());
    args
}

/// A process argument cannot hold NUL.
fn argument_text(text: &str) -> String {
    text.replace('\0', " ")
}
