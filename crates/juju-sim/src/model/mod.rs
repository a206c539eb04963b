//! The model: what operators do to it, and letting its agents run.

mod applications;
mod config;
mod containers;
mod lifecycle;
mod links;
mod offers;
mod relations;
mod secrets;
mod tasks;
pub(crate) mod timers;
mod told;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;

use jiff::Timestamp;
use juju_hooks::JujuVersion;
use serde_json::Value;

use crate::CharmError;
use crate::Databag;
use crate::Options;
use crate::StoreError;
use crate::agent;
use crate::agent::resolver;
use crate::agent::resolver::Step;
use crate::clock::Clock;
use crate::cloud::Cloud;
use crate::cloud::CloudError;
use crate::cloud::Credentials;
use crate::record::HookRecord;
use crate::report;
use crate::state::ModelConfig;
use crate::state::State;
use crate::state::StatusInfo;
use crate::state::split_unit;
use crate::store::FORMAT;
use crate::store::Store;
use crate::store::access;

pub(crate) use links::REMOTE_OWNER;
pub(crate) use offers::consumed as consumed_json;
pub(crate) use offers::json as offers_json;

pub use applications::DeployRequest;
pub use applications::RefreshRequest;
pub use tasks::TaskResult;

/// File names in the model directory.
pub(crate) const DEBUG_LOG: &str = "debug.log";
const HOOK_LOG: &str = "hooks.jsonl";

/// Why an operation on a model failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Juju would refuse it, in these words.
    #[error("{0}")]
    Refused(String),
    /// The charm cannot be used.
    #[error("cannot use the charm")]
    Charm(#[from] CharmError),
    /// The model directory cannot be used.
    #[error("cannot use the model directory")]
    Store(#[from] StoreError),
    /// The cluster failed.
    #[error("cannot use the cluster")]
    Cloud(#[from] CloudError),
    /// The `jujuc` program is missing.
    #[error("hook tools not found: no program {}", .0.display())]
    NoTools(PathBuf),
}

impl ModelError {
    /// The error with its causes, in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}

/// Refuses in Juju's words.
pub(crate) fn refuse<T>(text: impl Into<String>) -> Result<T, ModelError> {
    Err(ModelError::Refused(text.into()))
}

/// A trouble to strike once, at the named hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Leadership moves away while the hook runs.
    LoseLeadership(String),
    /// The controller refuses the hook's writes.
    FailFlush(String),
}

/// Levels of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Trace,
    Debug,
    Info,
    Warning,
    Error,
}

impl Level {
    /// Reads a level in any case; `WARN` and `CRITICAL` are understood.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Some(match word.to_ascii_uppercase().as_str() {
            "TRACE" => Self::Trace,
            "DEBUG" => Self::Debug,
            "INFO" => Self::Info,
            "WARNING" | "WARN" => Self::Warning,
            "ERROR" | "CRITICAL" => Self::Error,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// An open model. Holds the model's lock until dropped.
pub struct Model {
    pub(crate) store: Store,
    pub(crate) state: State,
    pub(crate) cloud: Arc<dyn Cloud>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Options,
    pub(crate) credentials: BTreeMap<String, Credentials>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) namespaces: Option<bool>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.state.name)
            .field("dir", &self.store.dir())
            .finish_non_exhaustive()
    }
}

impl Model {
    /// Opens the model in `dir`, making it if the directory holds none, and cleans up behind a
    /// simulator that was killed: an interrupted hook is queued again, an interrupted action has
    /// failed. Waits while another process has the model open.
    ///
    /// # Errors
    /// An unusable directory or a damaged state.
    pub fn open(
        dir: &Path,
        cloud: Arc<dyn Cloud>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Self, ModelError> {
        let store = Store::open(dir)?;
        let state = match store.load()? {
            Some(state) => state,
            None => fresh(&options, clock.now()),
        };
        let mut options = options;
        if let Some(version) = &state.juju_version {
            options.juju_version.clone_from(version);
        }
        let mut model = Self {
            store,
            state,
            cloud,
            clock,
            options,
            credentials: BTreeMap::new(),
            faults: Vec::new(),
            namespaces: None,
        };
        model.recover();
        model.save()?;
        Ok(model)
    }

    /// Runs every hook, retry, action and update-status that is due, until all agents are idle.
    /// Returns how many steps were taken.
    ///
    /// # Errors
    /// Only trouble of the simulator itself; a failing hook is the unit's error status.
    pub fn advance(&mut self) -> Result<usize, ModelError> {
        Ok(self.go_on()?.0)
    }

    /// [`Model::advance`], and whether other models said or were told anything new.
    pub(crate) fn go_on(&mut self) -> Result<(usize, bool), ModelError> {
        let heard = self.hear()?;
        let mut taken = 0;
        while taken < self.options.max_hooks {
            self.elect();
            let now = self.clock.now();
            let mut ready: Vec<(String, Vec<Step>)> = Vec::new();
            for unit in self.state.unit_names() {
                let steps = resolver::steps(&self.state, &unit, now, self.options.teardown);
                if !steps.is_empty() {
                    ready.push((unit, steps));
                }
            }
            if ready.is_empty() {
                break;
            }
            let drawn = if ready.len() > 1 {
                self.state.random(ready.len())
            } else {
                0
            };
            let (unit, mut steps) = ready.swap_remove(drawn);
            let drawn = if steps.len() > 1 {
                self.state.random(steps.len())
            } else {
                0
            };
            agent::runner::take(self, &unit, steps.swap_remove(drawn))?;
            taken += 1;
        }
        if taken == self.options.max_hooks {
            let text = format!("agents are still busy after {taken} steps; going on next time");
            self.log("controller-0", Level::Warning, "juju.worker.uniter", &text);
        }
        self.settle()?;
        let told = self.tell()?;
        Ok((taken, heard || told))
    }

    /// Marks agents idle and starts their update-status timers.
    fn settle(&mut self) -> Result<(), ModelError> {
        let now = self.clock.now();
        let mut changed = false;
        for app in self.state.applications.values_mut() {
            for unit in app.units.values_mut() {
                if unit.agent.status == "executing" {
                    unit.agent = status("idle", "", now);
                    changed = true;
                }
                if unit.uniter.started && unit.uniter.last_update_status.is_none() {
                    unit.uniter.last_update_status = Some(now);
                    changed = true;
                }
            }
        }
        if changed { self.save() } else { Ok(()) }
    }

    /// Makes an update-status hook due on every unit of an application.
    ///
    /// # Errors
    /// Unknown application.
    pub fn fire_update_status(&mut self, app: &str) -> Result<(), ModelError> {
        for unit in self.app_mut(app)?.units.values_mut() {
            unit.uniter.update_status_due = true;
        }
        self.save()
    }

    /// Lets a trouble strike the next hook of that name.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// The status document, as `juju status --format json` prints it.
    pub fn status(&self) -> Value {
        report::status::json(&self.state, &self.options, self.clock.now())
    }

    /// The status table, as `juju status` prints it; with relations on demand.
    pub fn status_text(&self, relations: bool) -> String {
        report::table::text(&self.state, &self.options, self.clock.now(), relations)
    }

    /// The document of `juju show-unit`.
    ///
    /// # Errors
    /// Unknown unit.
    pub fn show_unit(&self, unit: &str) -> Result<Value, ModelError> {
        report::unit::json(&self.state, unit)
            .map_or_else(|| refuse(format!("unit {unit:?} not found")), Ok)
    }

    /// Everything that ran in this model, oldest first.
    ///
    /// # Errors
    /// Unreadable record file.
    pub fn hook_log(&self) -> Result<Vec<HookRecord>, ModelError> {
        let path = self.store.dir().join(HOOK_LOG);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(access(&path)(e).into()),
        };
        // A last line cut short by a kill is left out.
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    /// The debug log, oldest line first.
    ///
    /// # Errors
    /// Unreadable log file.
    pub fn debug_log(&self) -> Result<String, ModelError> {
        let path = self.store.dir().join(DEBUG_LOG);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(access(&path)(e).into()),
        }
    }

    /// A databag as stored: of an application, or of a unit when `owner` contains a slash.
    pub fn databag(&self, relation: u32, owner: &str) -> Option<Databag> {
        let relation = self.state.relations.get(&relation)?;
        let bags = if owner.contains('/') {
            &relation.unit_bags
        } else {
            &relation.app_bags
        };
        bags.get(owner).map(|bag| bag.data.clone())
    }

    /// Model name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Gives the model agents of a version of their own, `3.6`, `4.0` or a whole one; without, they
    /// are of [`Options::juju_version`].
    ///
    /// # Errors
    /// Text that is no version.
    pub fn set_juju_version(&mut self, version: &str) -> Result<(), ModelError> {
        let whole = whole_version(version)?;
        self.options.juju_version.clone_from(&whole);
        self.state.juju_version = Some(whole);
        self.save()
    }

    /// Model UUID.
    pub fn uuid(&self) -> &str {
        &self.state.uuid
    }

    /// The model directory.
    pub fn dir(&self) -> &Path {
        self.store.dir()
    }

    /// Names of the applications, sorted.
    pub fn application_names(&self) -> Vec<String> {
        self.state.applications.keys().cloned().collect()
    }

    /// Names of the units whose last hook failed, sorted.
    pub fn failed_units(&self) -> Vec<String> {
        let failed = |u: &String| self.state.unit(u).is_some_and(|u| u.uniter.error.is_some());
        self.state.unit_names().into_iter().filter(failed).collect()
    }

    /// Charm directory of a unit.
    pub fn charm_dir(&self, unit: &str) -> PathBuf {
        self.agent_dir(unit).join("charm")
    }

    /// Removes the cluster's namespace and the model directory.
    ///
    /// # Errors
    /// Cluster trouble leaves the model in place.
    pub fn destroy(self) -> Result<(), ModelError> {
        self.cloud.destroy_model(&self.state.name)?;
        let dir = self.store.dir().to_owned();
        fs::remove_dir_all(&dir).map_err(access(&dir))?;
        Ok(())
    }

    pub(crate) fn agent_dir(&self, unit: &str) -> PathBuf {
        self.store.dir().join("agents").join(tag(unit))
    }

    /// Abstract address of a unit agent's socket, short enough for the kernel's 108 bytes.
    pub(crate) fn socket(&self, unit: &str) -> String {
        format!("@/{}/{}.socket", &self.state.uuid[..13], tag(unit))
    }

    pub(crate) fn save(&self) -> Result<(), ModelError> {
        Ok(self.store.save(&self.state)?)
    }

    pub(crate) fn record(&self, record: &HookRecord) -> Result<(), ModelError> {
        Ok(self.store.append(HOOK_LOG, record)?)
    }

    /// Appends to the debug log. A log that cannot be written does not stop a hook.
    pub(crate) fn log(&self, unit: &str, level: Level, logger: &str, text: &str) {
        let time = self.clock.now().strftime("%H:%M:%S");
        let line = format!("{}: {time} {} {logger} {text}\n", tag(unit), level.name());
        let _ = self.store.append_text(DEBUG_LOG, &line);
    }

    /// Credentials for an application's charm, none without a cluster.
    pub(crate) fn credentials(&mut self, app: &str) -> Result<Option<Credentials>, CloudError> {
        if !self.cloud.rotates_tokens()
            && let Some(known) = self.credentials.get(app)
        {
            return Ok(Some(known.clone()));
        }
        let trusted = self.state.applications.get(app).is_some_and(|a| a.trusted);
        match self.cloud.provision(&self.state.name, app, trusted) {
            Ok(credentials) => {
                self.credentials.insert(app.to_owned(), credentials.clone());
                Ok(Some(credentials))
            }
            Err(CloudError::NoCluster) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// `unit-app-0` for `app/0`; other names are their own tags.
pub(crate) fn tag(unit: &str) -> String {
    match split_unit(unit) {
        Some((app, number)) => format!("unit-{app}-{number}"),
        None => unit.to_owned(),
    }
}

pub(crate) fn status(status: &str, message: &str, since: Timestamp) -> StatusInfo {
    StatusInfo {
        status: status.to_owned(),
        message: message.to_owned(),
        since,
    }
}

/// A version of two numbers with a third.
pub(crate) fn whole_version(version: &str) -> Result<String, ModelError> {
    let whole = match version.split('.').count() {
        2 => format!("{version}.{}", if version == "3.6" { 9 } else { 0 }),
        _ => version.to_owned(),
    };
    match JujuVersion::from_str(&whole) {
        Ok(_) => Ok(whole),
        Err(_) => refuse(format!("{version:?} is no version of Juju")),
    }
}

fn fresh(options: &Options, now: Timestamp) -> State {
    State {
        format: FORMAT,
        name: options.model_name.clone(),
        uuid: uuid(),
        rng: options.seed,
        created: now,
        juju_version: None,
        config: ModelConfig {
            update_status_interval_secs: 300,
            automatically_retry_hooks: true,
        },
        applications: BTreeMap::new(),
        relations: BTreeMap::new(),
        secrets: BTreeMap::new(),
        tasks: BTreeMap::new(),
        offers: BTreeMap::new(),
        saas: BTreeMap::new(),
        tokens: BTreeMap::new(),
        next_relation: 0,
        next_task: 1,
        next_address: 0,
        hooks_run: 0,
    }
}

/// A random UUID of version 4.
fn uuid() -> String {
    let hex = random_hex();
    format!(
        "{}-{}-4{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..]
    )
}

/// 32 random hexadecimal digits.
pub(crate) fn random_hex() -> String {
    let mut bytes = [0_u8; 16];
    // Without a random source the digits are zero: names then only have to differ between models
    // on one machine, which the lock and the socket check for.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
