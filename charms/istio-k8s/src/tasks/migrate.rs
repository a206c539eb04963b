//! `migrate`: moves a running Istio of somebody else to where this application would have it.
//!
//! The plan, the backup and the place are in the cluster (crate `migration`), so every unit and the
//! program `istio-migrate` go on with the same migration. While one is under way, the application
//! itself stands aside.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use juju_charm::{ModelView, Progress};
use kube_apply::{Engine, Result};
use mesh::control_plane::Settings;
use mesh::payload::{ChartName, Payload};
use migration::execute::{Clock as _, Limits, SystemClock};
use migration::inventory::{Source, control_planes};
use migration::plan::{GatewayChoice, NewOwner, Split, Strategy, Target};
use migration::{Executor, Plan, Request, Snapshot, Stand, plan, report};

use super::Report;
use super::params::Params;
use crate::observe::{RELEASE, View, inventory};
use crate::validate::Validated;

/// Minutes of one action, unless it says otherwise.
const BUDGET: u64 = 8;
/// What a hook gives to a migration that goes on by itself.
const HOOK: Duration = Duration::from_mins(1);

/// What to do about a migration.
#[derive(Debug)]
pub struct Migrate {
    from: String,
    settings: Option<Box<Settings>>,
    release: Option<PathBuf>,
    owner: NewOwner,
    identity: String,
    daemon: String,
    strategy: Strategy,
    gateway: GatewayChoice,
    split: bool,
    dry_run: bool,
    rollback: bool,
    auto: Option<bool>,
    step: Option<String>,
    limits: Limits,
    format: String,
}

/// What an action asks.
pub(super) fn task(view: &ModelView, validated: &Validated, params: Params<'_>) -> Migrate {
    let named = |name| Some(params.text(name).to_owned()).filter(|text| !text.is_empty());
    let settings = match validated {
        Validated::Aside(settings) => Some(settings.clone()),
        Validated::Stay(settings) => settings.clone(),
        Validated::Run(installation) => Some(Box::new(installation.settings.clone())),
        Validated::Standby | Validated::Leave => None,
    };
    let inventory = inventory(view);
    let labels = inventory.labels().into_iter();
    Migrate {
        from: named("from-namespace")
            .or_else(|| view.config.str("migrate-from").map(str::to_owned))
            .unwrap_or_default(),
        settings,
        release: view
            .resources
            .get(RELEASE)
            .and_then(|file| file.clone().ok()),
        owner: NewOwner {
            labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            manager: inventory.manager(),
        },
        identity: view.context.unit.to_string(),
        daemon: view.context.app.to_string(),
        strategy: match params.text("strategy") {
            "window" => Strategy::Window,
            _ => Strategy::ZeroDowntime,
        },
        gateway: match params.text("gateway") {
            "keep-address" => GatewayChoice::KeepAddress,
            "new-address" => GatewayChoice::NewAddress,
            _ => GatewayChoice::Stay,
        },
        split: params.flag("split"),
        dry_run: params.dry_run(false),
        rollback: params.flag("rollback"),
        auto: Some(params.flag("auto")),
        limits: Limits {
            budget: Duration::from_mins(params.number("budget", BUDGET).clamp(1, BUDGET)),
            until: named("step").or_else(|| named("until")),
        },
        step: named("step"),
        format: params.text("format").to_owned(),
    }
}

/// A hook goes on with a migration that was told to go on by itself.
pub(super) fn in_a_hook(
    view: &ModelView,
    cluster: &View,
    validated: &Validated,
) -> Option<Migrate> {
    let running = cluster
        .migration
        .as_ref()
        .filter(|journal| !journal.has_ended())?;
    let Validated::Aside(_) = validated else {
        return None;
    };
    (running.auto && !running.back && view.leader).then(|| Migrate {
        from: String::new(),
        settings: None,
        release: None,
        owner: NewOwner {
            labels: std::collections::BTreeMap::new(),
            manager: String::new(),
        },
        identity: view.context.unit.to_string(),
        daemon: view.context.app.to_string(),
        strategy: Strategy::ZeroDowntime,
        gateway: GatewayChoice::Stay,
        split: false,
        dry_run: false,
        rollback: false,
        auto: None,
        step: None,
        limits: Limits {
            budget: HOOK,
            until: None,
        },
        format: String::new(),
    })
}

impl Migrate {
    /// Plans, begins, goes on or goes back.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        let told = Told(progress);
        match self.proceed(engine, &told).await {
            Ok(report) => Ok(report),
            Err(why) => Ok(Report::failed(why)),
        }
    }

    async fn proceed(&self, engine: &Engine, told: &Told<'_>) -> Result<Report, String> {
        let executor = Executor::new(engine, &SystemClock, &self.identity);
        let journal = executor.journal().await.map_err(|f| chain(&f))?;
        let running = journal.filter(|journal| !journal.has_ended());
        if self.rollback {
            let stand = executor.rollback(&self.limits, told).await;
            return Ok(answer(&stand.map_err(|f| chain(&f))?));
        }
        if self.dry_run {
            let plan = match running {
                Some(_) => executor.plan().await.map_err(|f| chain(&f))?,
                None => self.plan(engine).await?,
            };
            let mut report = Report::default();
            let shown = match self.format.as_str() {
                "json" => serde_json::to_string(&plan).map_err(|error| error.to_string())?,
                "html" => report::html(&plan, running.as_ref()),
                _ => report::text(&plan, running.as_ref()),
            };
            report.set("plan", shown);
            return Ok(report);
        }
        if running.is_none() {
            let plan = self.plan(engine).await?;
            executor.begin(&plan).await.map_err(|f| chain(&f))?;
        }
        if let Some(step) = &self.step {
            self.is_next(&executor, step).await?;
        }
        if let Some(auto) = self.auto {
            executor.set_auto(auto).await.map_err(|f| chain(&f))?;
        }
        let stand = executor.run(&self.limits, told).await;
        Ok(answer(&stand.map_err(|f| chain(&f))?))
    }

    /// A single step is the next one, or it is not taken.
    async fn is_next(
        &self,
        executor: &Executor<'_, Engine, SystemClock>,
        step: &str,
    ) -> Result<(), String> {
        let plan = executor.plan().await.map_err(|f| chain(&f))?;
        let journal = executor
            .journal()
            .await
            .map_err(|f| chain(&f))?
            .unwrap_or_default();
        let done = |id: &str| journal.state(id) == migration::execute::State::Done;
        match plan.steps.iter().find(|step| !done(&step.id)) {
            Some(next) if next.id == step => Ok(()),
            Some(next) => Err(format!("the next step is {}, not {step}", next.id)),
            None => Err("all steps are done".to_owned()),
        }
    }

    async fn plan(&self, engine: &Engine) -> Result<Plan, String> {
        let text = |error: kube_apply::Error| chain(&error);
        let Some(settings) = &self.settings else {
            return Err("the options are not in order".to_owned());
        };
        if self.from.is_empty() {
            return Err("which Istio? run with from-namespace=NAMESPACE".to_owned());
        }
        let new = settings.namespace.as_str();
        let snapshot = Snapshot::read(engine, &self.from, new, SystemClock.now()).await;
        let snapshot = snapshot.map_err(text)?;
        let target = self.target(&snapshot, settings)?;
        let request = Request {
            target: Some(target),
            strategy: self.strategy,
            split: self.split.then(|| Split {
                pilot: "istio-pilot".to_owned(),
                gateway: "istio-ingressgateway".to_owned(),
                daemon: self.daemon.clone(),
                integrator: "istio-integrator".to_owned(),
                applications: Vec::new(),
            }),
            gateway: self.gateway,
            batch: 10,
            owner: Some(self.owner.clone()),
            ..Request::moving(&self.from, Target::default())
        };
        plan(&snapshot, &request).map_err(|refusals| report::refusals(&refusals))
    }

    fn target(&self, snapshot: &Snapshot, settings: &Settings) -> Result<Target, String> {
        let Some(file) = &self.release else {
            return Err(format!(
                "attach the release: juju attach-resource {} {RELEASE}=…",
                self.daemon
            ));
        };
        let bytes = fs::read(file).map_err(|error| error.to_string())?;
        let payload = Payload::from_tar_gz(&bytes).map_err(|error| chain(&error))?;
        let version = payload.chart(ChartName::Istiod).app_version.clone();
        let planes = control_planes(snapshot);
        let Some(plane) = planes
            .into_iter()
            .find(|plane| plane.namespace == self.from)
        else {
            return Err(format!("no istiod in namespace {}", self.from));
        };
        let source = Source::new(snapshot, plane);
        let mesh = source.mesh();
        let settings = Settings {
            gateways: Vec::new(),
            ..settings.clone()
        };
        Target::render(
            &payload,
            &version,
            &settings,
            &source.plane,
            &mesh,
            self.strategy,
        )
        .map_err(|error| chain(&error))
    }
}

fn answer(stand: &Stand) -> Report {
    let mut report = Report::default();
    let again = "run the action migrate again";
    match stand {
        Stand::Done => report.set("stand", "done"),
        Stand::RolledBack => report.set("stand", "everything is as it was"),
        Stand::Paused { step, why } => {
            report.set("stand", "paused");
            report.set("step", step);
            report.set("why", why);
            report.set("next", again);
        }
        Stand::Waiting {
            step,
            why,
            commands,
        } => {
            report.set("stand", "waiting");
            report.set("step", step);
            report.set("why", why);
            report.set("commands", commands.join("\n"));
            report.set("next", again);
        }
    }
    report
}

/// What goes to the action's log.
struct Told<'a>(&'a dyn Progress);

impl migration::Progress for Told<'_> {
    fn say(&self, line: &str) {
        self.0.say(line);
    }
}

/// An error with its sources.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
