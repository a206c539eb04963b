//! A small charm and a cluster that is none, for tests of the library.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{
    ActionCall, ActionOutcome, Charm, EffectError, Effects, LocalData, ModelView, Outcome,
    OwnSecret, Port, Problem, Progress, Protocol, RelationId, SecretContent, SecretOwner, Severity,
};

/// How the fake cluster fails.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the cluster is away")]
    Away,
    #[error("nobody thought of this")]
    Bug,
}

impl EffectError for Failure {
    fn problem(&self) -> Option<Problem> {
        match self {
            Self::Away => Some(Problem::waiting("cluster not reachable")),
            Self::Bug => None,
        }
    }
}

/// A cluster that remembers what it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    pub(crate) observe_fails: Option<Failure>,
    pub(crate) apply_fails: Option<Failure>,
    pub(crate) plan_fails: Option<Failure>,
    pub(crate) apply_hangs: bool,
    pub(crate) work_fails: Option<Failure>,
    pub(crate) work_hangs: bool,
    pub(crate) seen: RefCell<Option<ModelView>>,
    pub(crate) applied: RefCell<Vec<BTreeSet<String>>>,
}

impl Cluster {
    /// The view the charm had.
    pub(crate) fn view(&self) -> ModelView {
        self.seen.borrow().clone().expect("the charm observed")
    }
}

impl Effects for Cluster {
    type Query = ModelView;
    type View = ();
    type Objects = BTreeSet<String>;
    type Applied = usize;
    type Plan = String;
    type Work = Vec<String>;
    type Done = usize;
    type Error = Failure;

    async fn observe(&self, view: ModelView) -> Result<(), Failure> {
        *self.seen.borrow_mut() = Some(view);
        self.observe_fails.clone().map_or(Ok(()), Err)
    }

    async fn apply(&self, objects: BTreeSet<String>) -> Result<usize, Failure> {
        if self.apply_hangs {
            std::future::pending::<()>().await;
        }
        if let Some(failure) = &self.apply_fails {
            return Err(failure.clone());
        }
        let count = objects.len();
        self.applied.borrow_mut().push(objects);
        Ok(count)
    }

    async fn plan(&self, objects: BTreeSet<String>) -> Result<String, Failure> {
        let text = objects.into_iter().collect::<Vec<_>>().join(",");
        self.plan_fails.clone().map_or(Ok(text), Err)
    }

    /// Moves one after the other; fails or hangs after the first.
    async fn work(&self, moves: Vec<String>, progress: &dyn Progress) -> Result<usize, Failure> {
        for (index, name) in moves.iter().enumerate() {
            tracing::debug!("moving {name}");
            progress.say(&format!("moved {name} ({}/{})", index + 1, moves.len()));
            if self.work_hangs {
                std::future::pending::<()>().await;
            }
            if let Some(failure) = &self.work_fails {
                return Err(failure.clone());
            }
        }
        Ok(moves.len())
    }
}

/// The charm: one object per related application; tells each its own name.
#[derive(Debug)]
pub(crate) struct Meshy;

/// Option `text` as `share PASSWORD`, `own PASSWORD`, `keep PASSWORD` or `drop it` tells what becomes of the secret.
fn secret(view: &ModelView) -> Option<(String, OwnSecret)> {
    let (word, password) = view.config.str("text")?.split_once(' ')?;
    let content = match word {
        "share" | "keep" | "own" | "stray" => {
            BTreeMap::from([("password".to_owned(), password.to_owned())])
        }
        "drop" => BTreeMap::new(),
        _ => return None,
    };
    let shared = view.relations_of("mesh-info").filter(|_| word != "keep");
    let mut shared: BTreeMap<_, _> = shared.map(|r| (r.id, "credentials".to_owned())).collect();
    if word == "stray" {
        shared.insert(RelationId(99), "credentials".to_owned());
    }
    let secret = OwnSecret {
        content: SecretContent::new(content),
        owner: match word {
            "own" => SecretOwner::Unit,
            _ => SecretOwner::Application,
        },
        description: Some("of the mesh".to_owned()),
        rotate: None,
        shared,
    };
    Some(("mesh".to_owned(), secret))
}

impl Charm for Meshy {
    const METADATA: &'static str = include_str!("charmcraft.yaml");
    type Fx = Cluster;
    type Validated = bool;

    fn query(view: &ModelView) -> ModelView {
        view.clone()
    }

    fn validate(view: &ModelView, (): &()) -> (bool, Vec<Problem>) {
        let mut problems = Vec::new();
        if view.config.str("text") == Some("bad") {
            let bad = Problem::blocked("option text is bad");
            problems.push(bad.with_hint("juju config meshy text=good"));
        }
        (
            problems
                .iter()
                .all(|problem| problem.severity < Severity::Blocked),
            problems,
        )
    }

    fn desired(view: &ModelView, valid: &bool, (): &()) -> Option<BTreeSet<String>> {
        if !view.leader || !valid {
            return None;
        }
        let gone = view.planned_units == 0;
        let related = view.relations_of("mesh-info").filter(|_| !gone);
        Some(
            related
                .filter_map(|relation| Some(relation.remote_app.clone()?.to_string()))
                .collect(),
        )
    }

    fn work(view: &ModelView, valid: &bool, (): &()) -> Option<Vec<String>> {
        let wanted = match &view.action {
            Some(call) => call.name == "move",
            None => view.config.str("text") == Some("move"),
        };
        let names = view.relations_of("mesh-info");
        let names = names.filter_map(|relation| Some(relation.remote_app.clone()?.to_string()));
        (wanted && *valid).then(|| names.collect())
    }

    fn outcome(
        view: &ModelView,
        _: &bool,
        (): &(),
        applied: Option<&usize>,
        done: Option<&usize>,
        problems: &[Problem],
    ) -> Outcome {
        let active = match (applied, done) {
            (Some(count), Some(moved)) => format!("{count} objects, {moved} moved"),
            (Some(count), None) => format!("{count} objects"),
            (None, _) => String::new(),
        };
        let mut outcome = Outcome::from_problems(view, active, problems);
        for relation in &view.relations {
            let mut data = LocalData::default();
            data.unit
                .insert("unit".to_owned(), view.context.unit.to_string());
            if let Some(app) = &relation.remote_app {
                data.app.insert("for".to_owned(), app.to_string());
            }
            data.app.insert(
                "text".to_owned(),
                view.config.str("text").unwrap_or("").to_owned(),
            );
            outcome.databags.insert(relation.id, data);
        }
        if view.config.str("text") == Some("stray") {
            outcome
                .databags
                .insert(RelationId(99), LocalData::default());
        }
        outcome.secrets.extend(secret(view));
        outcome.workload_version = Some("1.27.3".to_owned());
        outcome.ports = Port::new(8080, Protocol::Tcp)
            .ok()
            .map(|port| BTreeSet::from([port]));
        outcome
    }

    fn wants_plan(action: &ActionCall) -> bool {
        action.name == "plan" || action.params.get("plan") == Some(&true.into())
    }

    fn action(
        view: &ModelView,
        _: &bool,
        (): &(),
        plan: Option<&String>,
        done: Option<&usize>,
        problems: &[Problem],
    ) -> ActionOutcome {
        let mut results = BTreeMap::new();
        let call = view.action.as_ref().expect("an action");
        for (index, problem) in problems.iter().enumerate() {
            results.insert(format!("problems.{index}"), problem.to_string());
        }
        if let Some(key) = call.params.get("key").and_then(|key| key.as_str()) {
            results.insert(key.to_owned(), "x".repeat(200_000));
        }
        if let Some(depth) = call.params.get("depth") {
            results.insert("depth".to_owned(), depth.to_string());
        }
        if let Some(moved) = done {
            results.insert("moved".to_owned(), moved.to_string());
        }
        match plan {
            Some(plan) => {
                results.insert("plan".to_owned(), plan.clone());
                ActionOutcome::ok(results).with_log("planned")
            }
            None if call.name == "plan" => ActionOutcome::failed("no plan", results),
            None => ActionOutcome::ok(results),
        }
    }
}
