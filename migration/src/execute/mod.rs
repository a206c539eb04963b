//! Carries a plan out, step by step, from wherever it stands.
//!
//! # How it survives
//! Plan, backup and place are in the cluster (see [`journal`]). A step is marked as begun before its
//! first write and as done after its checks hold; its actions may be done twice. So whoever comes next
//! repeats at most one step. One at a time works: they share a Lease.

mod check;
mod journal;
mod perform;
mod store;

use std::time::Duration;

use jiff::Timestamp;
use kube_apply::Object;
use serde_json::Value;
use tokio::time::Instant;

pub use journal::{Journal, NAMESPACE, State, read_journal};

use crate::api::Api;
use crate::inventory::Snapshot;
use crate::plan::{Action, Plan, Step};

/// How often a step is tried when the API server is away or something raced.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Pauses in which proxies connect again after the last rollout of istiod.
const RECONNECT: u32 = 60;

/// The time of day.
pub trait Clock {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Who hears what is going on.
pub trait Progress {
    /// One line.
    fn say(&self, line: &str);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn say(&self, _line: &str) {}
}

/// How far one call goes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time after which no further step is begun, nor waited for.
    pub budget: Duration,
    /// The last step to take.
    pub until: Option<String>,
    /// Whether a charm's hooks go on by themselves from now on; none to leave that as it is.
    pub auto: Option<bool>,
}

impl Limits {
    /// Whether the plan has the steps that are named.
    ///
    /// # Errors
    /// [`Failure::NoStep`] when it has not.
    pub fn fit(&self, plan: &Plan) -> Result<(), Failure> {
        match &self.until {
            Some(step) if plan.step(step).is_none() => Err(Failure::NoStep { step: step.clone() }),
            _ => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            budget: Duration::from_mins(8),
            until: None,
            auto: None,
        }
    }
}

/// Where a migration stands when a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// All steps are done.
    Done,
    /// Everything is as it was.
    RolledBack,
    /// The next call goes on with this step.
    Paused {
        /// Step.
        step: String,
        /// What it was waiting for, or why no further step was taken.
        why: String,
    },
    /// A person has to do something.
    Waiting {
        /// Step.
        step: String,
        /// What is missing.
        why: String,
        /// What to do.
        commands: Vec<String>,
    },
}

/// Why a migration does not go on. The next call may.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The cluster refused or did not answer.
    #[error("step {step} stopped")]
    Cluster {
        /// Step, or what was done outside of steps.
        step: String,
        /// The cluster's word.
        #[source]
        source: kube_apply::Error,
    },
    /// Something that has to hold before a step does not.
    #[error("step {step} cannot begin: {why}")]
    Unprepared {
        /// Step.
        step: String,
        /// What does not hold.
        why: String,
    },
    /// No migration has begun.
    #[error("no migration has begun in this cluster")]
    Nothing,
    /// Another migration has begun and not ended.
    #[error("migration {id} has begun and not ended: go on with it, or roll it back")]
    Begun {
        /// Its name.
        id: String,
    },
    /// Somebody else works on it.
    #[error("{holder} works on this migration")]
    Busy {
        /// Who.
        holder: String,
    },
    /// There is no way back.
    #[error("no way back: step {step} was begun")]
    NoReturn {
        /// The point of no return.
        step: String,
    },
    /// There is no such step.
    #[error("the plan has no step {step}")]
    NoStep {
        /// What was asked for.
        step: String,
    },
    /// What is stored of the migration cannot be read.
    #[error("ConfigMap {NAMESPACE}/{what} of the migration cannot be read")]
    Record {
        /// Which.
        what: String,
    },
}

/// Carries plans out.
#[derive(Debug)]
pub struct Executor<'a, A, C> {
    api: &'a A,
    clock: &'a C,
    /// Who we are to others who would work on the same migration.
    identity: String,
}

/// Ways through a step's actions and checks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
}

/// The time that is left.
struct Budget {
    until: Instant,
}

impl Budget {
    fn of(limits: &Limits) -> Self {
        Self {
            until: Instant::now() + limits.budget,
        }
    }

    fn is_used_up(&self) -> bool {
        Instant::now() >= self.until
    }
}

impl<'a, A: Api, C: Clock> Executor<'a, A, C> {
    /// An executor that calls itself `identity`.
    pub fn new(api: &'a A, clock: &'a C, identity: &str) -> Self {
        Self {
            api,
            clock,
            identity: identity.to_owned(),
        }
    }

    /// Stores a plan and the backup that it asks for, as the snapshot that it was made from has it.
    /// Changes nothing else.
    ///
    /// # Errors
    /// [`Failure::Begun`] when a migration has begun that has not ended.
    pub async fn begin(&self, plan: &Plan, snapshot: &Snapshot) -> Result<(), Failure> {
        store::namespace(self.api).await?;
        let lease = self.take(self.clock.now()).await?;
        let begun = self.begin_alone(plan, snapshot).await;
        self.give_back(lease).await;
        begun
    }

    async fn begin_alone(&self, plan: &Plan, snapshot: &Snapshot) -> Result<(), Failure> {
        if let Some(journal) = self.journal().await?
            && !journal.has_ended()
        {
            let same = journal.plan == plan.id;
            return if same {
                Ok(())
            } else {
                Err(Failure::Begun { id: journal.plan })
            };
        }
        self.store(plan, snapshot).await
    }

    /// What there is of a migration.
    ///
    /// # Errors
    /// The cluster's, and [`Failure::Record`].
    pub async fn journal(&self) -> Result<Option<Journal>, Failure> {
        let stored = journal::read(self.api).await;
        stored.map(|stored| stored.map(|(journal, _)| journal))
    }

    /// The stored plan.
    ///
    /// # Errors
    /// [`Failure::Nothing`] without one.
    pub async fn plan(&self) -> Result<Plan, Failure> {
        let journal = self.journal().await?.ok_or(Failure::Nothing)?;
        store::plan(self.api, &journal.plan).await
    }

    /// Takes steps until the end, a wait for a person, or a limit. One that has ended stays as it is.
    ///
    /// # Errors
    /// The first that stops a step; the next call goes on there.
    pub async fn run(&self, limits: &Limits, progress: &dyn Progress) -> Result<Stand, Failure> {
        let (plan, mut place) = self.open().await?;
        let stand = self.take_steps(&plan, &mut place, limits, progress).await;
        self.release(&mut place).await;
        stand
    }

    async fn take_steps(
        &self,
        plan: &Plan,
        place: &mut Place,
        limits: &Limits,
        progress: &dyn Progress,
    ) -> Result<Stand, Failure> {
        if let Some(stand) = place.journal.end() {
            return Ok(stand);
        }
        limits.fit(plan)?;
        let auto = limits.auto.unwrap_or(place.journal.auto);
        if place.journal.back || place.journal.auto != auto {
            place.journal.back = false;
            place.journal.auto = auto;
            self.save(place).await?;
        }
        let budget = Budget::of(limits);
        let total = plan.steps.len();
        for (number, step) in plan.steps.iter().enumerate() {
            if place.journal.state(&step.id) != State::Done {
                if budget.is_used_up() {
                    return Ok(paused(step, "the time of this call is used up"));
                }
                progress.say(&format!(
                    "step {}/{total} {}: {}",
                    number + 1,
                    step.id,
                    step.title
                ));
                let stand = self.forward(plan, step, place, &budget, progress).await?;
                if let Some(stand) = stand {
                    return Ok(stand);
                }
            }
            if limits.until.as_ref() == Some(&step.id) && number + 1 < total {
                return Ok(paused(&plan.steps[number + 1], "asked to stop here"));
            }
        }
        place.journal.ended = true;
        self.save(place).await?;
        Ok(Stand::Done)
    }

    /// Takes back what was done, the last step first.
    ///
    /// # Errors
    /// [`Failure::NoReturn`] after the point of no return.
    pub async fn rollback(
        &self,
        limits: &Limits,
        progress: &dyn Progress,
    ) -> Result<Stand, Failure> {
        let (plan, mut place) = self.open().await?;
        let stand = self.take_back(&plan, &mut place, limits, progress).await;
        self.release(&mut place).await;
        stand
    }

    async fn take_back(
        &self,
        plan: &Plan,
        place: &mut Place,
        limits: &Limits,
        progress: &dyn Progress,
    ) -> Result<Stand, Failure> {
        if place.journal.ended && place.journal.back {
            return Ok(Stand::RolledBack);
        }
        let begun = |step: &&Step| place.journal.state(&step.id) != State::Pending;
        let mut begun = plan.steps.iter().filter(begun);
        if let Some(step) = begun.find(|step| step.forward_only) {
            let step = step.id.clone();
            return Err(Failure::NoReturn { step });
        }
        place.journal.back = true;
        self.save(place).await?;
        let budget = Budget::of(limits);
        for step in plan.steps.iter().rev() {
            if place.journal.state(&step.id) == State::Pending {
                continue;
            }
            if budget.is_used_up() {
                return Ok(paused(step, "the time of this call is used up"));
            }
            progress.say(&format!("taking back {}: {}", step.id, step.title));
            if let Some(stand) = self.back(step, plan, place, &budget, progress).await? {
                return Ok(stand);
            }
        }
        place.journal.ended = true;
        self.save(place).await?;
        Ok(Stand::RolledBack)
    }

    async fn forward(
        &self,
        plan: &Plan,
        step: &Step,
        place: &mut Place,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Option<Stand>, Failure> {
        if place.journal.state(&step.id) == State::Pending {
            if let Some(why) = self.unmet(plan, &step.before, budget, place).await? {
                // What people have to bring about is waited for; anything else should hold by now.
                if step.forward_only {
                    // What a person does in place of the step is not to be done yet.
                    let in_its_place = step.effect.is_empty();
                    let commands = (!in_its_place).then_some(&step.commands[..]);
                    return Ok(Some(waiting(step, why, commands.unwrap_or_default())));
                }
                let step = step.id.clone();
                return Err(Failure::Unprepared { step, why });
            }
            place.journal.set(&step.id, State::Running);
            self.save(place).await?;
        }
        if let Some(why) = self.act(step, Way::Forward, budget, place).await? {
            return Ok(Some(paused(step, &why)));
        }
        let unmet = if step.commands.is_empty() || step.after.is_empty() {
            self.unmet(plan, &step.after, budget, place).await?
        } else {
            self.first_unmet(plan, &step.after).await?
        };
        if let Some(why) = unmet {
            return Ok(Some(if step.commands.is_empty() {
                paused(step, &why)
            } else {
                waiting(step, why, &step.commands)
            }));
        }
        place.journal.set(&step.id, State::Done);
        self.save(place).await?;
        progress.say(&format!("{} holds", step.id));
        Ok(None)
    }

    async fn back(
        &self,
        step: &Step,
        plan: &Plan,
        place: &mut Place,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Option<Stand>, Failure> {
        if let Some(why) = self.first_unmet(plan, &step.before_undo).await? {
            return Ok(Some(waiting(step, why, &step.reverse)));
        }
        if place.journal.state(&step.id) == State::Done {
            place.journal.set(&step.id, State::Running);
            self.save(place).await?;
        }
        if let Some(why) = self.act(step, Way::Back, budget, place).await? {
            return Ok(Some(paused(step, &why)));
        }
        if !step.reverse.is_empty()
            && step.before_undo.is_empty()
            && let Some(why) = self.first_unmet(plan, &step.undone).await?
        {
            return Ok(Some(waiting(step, why, &step.reverse)));
        }
        if let Some(why) = self.unmet(plan, &step.undone, budget, place).await? {
            return Ok(Some(paused(step, &why)));
        }
        place.journal.set(&step.id, State::Pending);
        self.save(place).await?;
        progress.say(&format!("{} is taken back", step.id));
        Ok(None)
    }

    /// Does a step's actions; a reason when one has to wait longer than the budget allows.
    async fn act(
        &self,
        step: &Step,
        way: Way,
        budget: &Budget,
        place: &mut Place,
    ) -> Result<Option<String>, Failure> {
        let actions = match way {
            Way::Forward => &step.effect,
            Way::Back => &step.undo,
        };
        for action in actions {
            let mut attempt = 1;
            loop {
                self.renew(place).await?;
                match perform::perform(self.api, action, place).await {
                    Ok(None) => break,
                    Ok(Some(why)) if budget.is_used_up() => return Ok(Some(why)),
                    Ok(Some(_)) => {}
                    Err(failure) if attempt < ATTEMPTS && failure.may_pass() => attempt += 1,
                    Err(failure) => return Err(failure.at(&step.id)),
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(None)
    }

    /// Waits until all checks hold; the reason when one does not within the budget.
    async fn unmet(
        &self,
        plan: &Plan,
        checks: &[crate::plan::Check],
        budget: &Budget,
        place: &mut Place,
    ) -> Result<Option<String>, Failure> {
        for check in checks {
            let mut attempt = 1;
            loop {
                self.renew(place).await?;
                match check::unmet(self.api, plan, check).await {
                    Ok(None) => break,
                    Ok(Some(why)) if budget.is_used_up() => return Ok(Some(why)),
                    Ok(Some(_)) => {}
                    Err(error) => {
                        let failure = Failure::from(error);
                        if attempt >= ATTEMPTS || !failure.may_pass() {
                            return Err(failure.at(&format!("check {}", check::name(check))));
                        }
                        attempt += 1;
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(None)
    }

    async fn first_unmet(
        &self,
        plan: &Plan,
        checks: &[crate::plan::Check],
    ) -> Result<Option<String>, Failure> {
        for check in checks {
            if let Some(why) = check::unmet(self.api, plan, check).await? {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// What a finished migration has to have brought about: each with the reason why not. Proxies
    /// have a minute to connect again.
    ///
    /// # Errors
    /// The cluster's.
    pub async fn verify(&self, plan: &Plan) -> Result<Vec<(String, Option<String>)>, Failure> {
        let mut found = Vec::new();
        for check in check::lasting(plan) {
            let mut why = check::unmet(self.api, plan, &check).await?;
            for _ in 0..RECONNECT {
                if why.is_none() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
                why = check::unmet(self.api, plan, &check).await?;
            }
            found.push((check::name(&check), why));
        }
        Ok(found)
    }

    /// Creates the custom objects of the backup that are not there any more, as they would be at this
    /// point of the migration; returns their names. What a step took away is not brought back.
    ///
    /// # Errors
    /// The cluster's, and [`Failure::Record`] without a backup.
    pub async fn restore(&self, progress: &dyn Progress) -> Result<Vec<String>, Failure> {
        let journal = self.journal().await?.ok_or(Failure::Nothing)?;
        let plan = store::plan(self.api, &journal.plan).await?;
        let begun = |step: &&Step| journal.state(&step.id) != State::Pending;
        let actions: Vec<&Action> = plan
            .steps
            .iter()
            .filter(begun)
            .flat_map(|step| &step.effect)
            .collect();
        let mut made = Vec::new();
        for object in store::backup(self.api, &journal.plan).await? {
            let id = object.id();
            let taken = actions.iter().any(
                |action| matches!(action, Action::Delete { object } if object.same_object(&id)),
            );
            if taken
                || !crate::inventory::is_mesh_group(&id.group)
                || self.api.get(&id).await?.is_some()
            {
                continue;
            }
            let mut value = crate::api::fresh(object.into_value());
            for action in &actions {
                if let Action::Patch { object, patch } = action
                    && object.same_object(&id)
                {
                    merge(&mut value, patch);
                }
            }
            self.api.create(&Object::new(value)?, false).await?;
            progress.say(&format!("{id} is back"));
            made.push(id.to_string());
        }
        Ok(made)
    }
}

/// A merge patch (RFC 7386).
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    for (key, field) in fields {
        if field.is_null() {
            if let Some(fields) = value.as_object_mut() {
                fields.remove(key);
            }
        } else {
            merge(&mut value[key], field);
        }
    }
}

pub(crate) use journal::Place;

fn paused(step: &Step, why: &str) -> Stand {
    Stand::Paused {
        step: step.id.clone(),
        why: why.to_owned(),
    }
}

fn waiting(step: &Step, why: String, commands: &[String]) -> Stand {
    Stand::Waiting {
        step: step.id.clone(),
        why,
        commands: commands.to_vec(),
    }
}

impl From<kube_apply::Error> for Failure {
    fn from(source: kube_apply::Error) -> Self {
        Self::Cluster {
            step: "(record)".to_owned(),
            source,
        }
    }
}

impl Failure {
    /// The same, with the step that it happened in.
    fn at(self, step: &str) -> Self {
        match self {
            Self::Cluster { source, .. } => Self::Cluster {
                step: step.to_owned(),
                source,
            },
            other => other,
        }
    }

    /// Whether the same again may succeed.
    fn may_pass(&self) -> bool {
        match self {
            Self::Cluster { source, .. } => {
                let server = matches!(source, kube_apply::Error::Server { code: 500.., .. });
                let webhook = matches!(source, kube_apply::Error::WebhookUnavailable { .. });
                source.is_transient() || server || webhook
            }
            _ => false,
        }
    }
}
