//! `migrate`: moves a running Istio of somebody else to where this application would have it.
//!
//! The plan, the backup and the place are in the cluster (crate `migration`), so every unit and the
//! program `istio-migrate` go on with the same migration. While one is under way, the application
//! itself stands aside.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use juju_charm::{ModelView, Progress, chain};
use kube_apply::{Engine, Result};
use mesh::control_plane::Settings;
use mesh::discovery::ControlPlane;
use mesh::payload::Payload;
use migration::execute::{Clock as _, Journal, Limits, State, SystemClock};
use migration::inventory::control_planes;
use migration::plan::{GatewayChoice, NewOwner, Split, Strategy, Target};
use migration::{Executor, Failure, Plan, Request, Snapshot, Stand, plan, report};

use super::Report;
use super::params::Params;
use crate::observe::{RELEASE, View, inventory};
use crate::validate::Validated;
use crate::{config, release};

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
    pinned: BTreeSet<String>,
    owner: NewOwner,
    identity: String,
    strategy: Strategy,
    gateway: GatewayChoice,
    split: Option<Split>,
    dry_run: bool,
    rollback: bool,
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
    let application = |parameter, known: &str| named(parameter).unwrap_or_else(|| known.to_owned());
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
        pinned: config::release_sha256(&view.config),
        owner: NewOwner {
            labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            manager: inventory.manager(),
        },
        identity: identity(view),
        strategy: match params.text("strategy") {
            "window" => Strategy::Window,
            _ => Strategy::ZeroDowntime,
        },
        gateway: match params.text("gateway") {
            "keep-address" => GatewayChoice::KeepAddress,
            "new-address" => GatewayChoice::NewAddress,
            _ => GatewayChoice::Stay,
        },
        split: params.flag("split").then(|| Split {
            pilot: application("pilot", "istio-pilot"),
            gateway: application("gateway-application", "istio-ingressgateway"),
            daemon: view.context.app.to_string(),
            integrator: application("integrator", "istio-integrator"),
            authorizer: application("authorizer", "AUTH"),
            applications: params.list("applications").map(str::to_owned).collect(),
        }),
        dry_run: params.dry_run(false),
        rollback: params.flag("rollback"),
        limits: Limits {
            budget: Duration::from_mins(params.number("budget", BUDGET).clamp(1, BUDGET)),
            until: named("step").or_else(|| named("until")),
            auto: Some(params.flag("auto")),
        },
        step: named("step"),
        format: params.text("format").to_owned(),
    }
}

/// Who works: units of one name there are in every model.
fn identity(view: &ModelView) -> String {
    let context = &view.context;
    format!("{}/{}", context.model_name, context.unit)
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
        pinned: BTreeSet::new(),
        owner: NewOwner {
            labels: std::collections::BTreeMap::new(),
            manager: String::new(),
        },
        identity: identity(view),
        strategy: Strategy::ZeroDowntime,
        gateway: GatewayChoice::Stay,
        split: None,
        dry_run: false,
        rollback: false,
        step: None,
        limits: Limits {
            budget: HOOK,
            until: None,
            auto: None,
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
        if self.dry_run {
            let plan = match running {
                Some(_) => executor.plan().await.map_err(|f| chain(&f))?,
                None if self.rollback => return Err(chain(&Failure::Nothing)),
                None => self.plan(engine).await?.0,
            };
            return self.shown(&plan, running.as_ref());
        }
        if self.rollback {
            let stand = executor.rollback(&self.limits, told).await;
            return Ok(answer(&stand.map_err(|f| chain(&f))?));
        }
        if let Some(journal) = &running {
            let plan = executor.plan().await.map_err(|f| chain(&f))?;
            self.fits(&plan, journal)?;
        } else {
            let (plan, snapshot) = self.plan(engine).await?;
            self.fits(&plan, &Journal::default())?;
            let begun = executor.begin(&plan, &snapshot).await;
            begun.map_err(|f| chain(&f))?;
        }
        let stand = executor.run(&self.limits, told).await;
        Ok(answer(&stand.map_err(|f| chain(&f))?))
    }

    /// The plan as it is read, or, on the way back, the steps that would be taken back.
    fn shown(&self, plan: &Plan, running: Option<&Journal>) -> Result<Report, String> {
        let mut report = Report::default();
        if self.rollback {
            let begun = plan.steps.iter().rev().filter(|step| {
                running.is_some_and(|journal| journal.state(&step.id) != State::Pending)
            });
            let begun: Vec<&str> = begun.map(|step| step.id.as_str()).collect();
            report.set("would-take-back", begun.join("\n"));
            return Ok(report);
        }
        let shown = match self.format.as_str() {
            "json" => serde_json::to_string(plan).map_err(|error| error.to_string())?,
            "html" => report::html(plan, running),
            _ => report::text(plan, running),
        };
        report.set("plan", shown);
        Ok(report)
    }

    /// The steps that are named are the plan's, and a single one is the next.
    fn fits(&self, plan: &Plan, journal: &Journal) -> Result<(), String> {
        self.limits.fit(plan).map_err(|f| chain(&f))?;
        let Some(step) = &self.step else {
            return Ok(());
        };
        let done = |id: &str| journal.state(id) == State::Done;
        match plan.steps.iter().find(|step| !done(&step.id)) {
            Some(next) if next.id == *step => Ok(()),
            Some(next) => Err(format!("the next step is {}, not {step}", next.id)),
            None => Err("all steps are done".to_owned()),
        }
    }

    async fn plan(&self, engine: &Engine) -> Result<(Plan, Snapshot), String> {
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
            target,
            strategy: self.strategy,
            split: self.split.clone(),
            gateway: self.gateway,
            batch: 10,
            owner: Some(self.owner.clone()),
            ..Request::moving(&self.from, Target::default())
        };
        match plan(&snapshot, &request) {
            Ok(plan) => Ok((plan, snapshot)),
            Err(refusals) => Err(report::refusals(&refusals)),
        }
    }

    /// What there is to be; none where a split leaves it as it is.
    fn target(&self, snapshot: &Snapshot, settings: &Settings) -> Result<Option<Target>, String> {
        let stays = |plane: &ControlPlane| {
            plane.namespace == self.from
                && plane.namespace == settings.namespace.as_str()
                && plane.revision == settings.revision
        };
        if self.split.is_some() && control_planes(snapshot).iter().any(stays) {
            return Ok(None);
        }
        let Some(file) = &self.release else {
            return Err(format!("attach the release as the resource {RELEASE}"));
        };
        let (bytes, _) = release::read(file, &self.pinned)
            .map_err(|trouble| format!("resource {RELEASE}{}", trouble.why()))?;
        let payload = Payload::from_tar_gz(&bytes).map_err(|error| chain(&error))?;
        let settings = Settings {
            gateways: Vec::new(),
            ..settings.clone()
        };
        Target::of(&payload, snapshot, &self.from, &settings, self.strategy)
            .map(Some)
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
