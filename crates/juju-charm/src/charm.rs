//! A charm author's whole contract.

use juju_hooks::SecretId;

use crate::action::ActionOutcome;
use crate::outcome::Outcome;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::view::{ActionCall, ModelView};

/// What a charm does to the world besides Juju. The types are the charm's own; this crate only
/// hands them from step to step.
#[expect(
    async_fn_in_trait,
    reason = "a hook is one task on one thread; no Send bound wanted"
)]
pub trait Effects {
    /// What to read.
    type Query;
    /// What was read.
    type View;
    /// What is to exist.
    type Objects;
    /// Proof of what was done.
    type Applied;
    /// What would be done.
    type Plan;
    /// One piece of work that is no set of objects: steps that wait for each other, restarts,
    /// deletions, a migration. [`Infallible`](std::convert::Infallible) for effects without any.
    type Work;
    /// What came of the work.
    type Done;
    /// How it fails.
    type Error: EffectError;

    /// Reads the world; writes nothing.
    async fn observe(&self, query: Self::Query) -> Result<Self::View, Self::Error>;
    /// Makes the world so.
    async fn apply(&self, objects: Self::Objects) -> Result<Self::Applied, Self::Error>;
    /// Tells what [`Effects::apply`] would do; writes nothing.
    async fn plan(&self, objects: Self::Objects) -> Result<Self::Plan, Self::Error>;
    /// Does the work, telling its progress.
    ///
    /// It is dropped at its deadline ([`DEADLINE`](crate::DEADLINE),
    /// [`ACTION_DEADLINE`](crate::ACTION_DEADLINE)), whatever it waits for then; a process may be
    /// killed anywhere. Work done in part must therefore be safe to start again.
    async fn work(
        &self,
        work: Self::Work,
        progress: &dyn Progress,
    ) -> Result<Self::Done, Self::Error>;
}

/// Effects are as good behind a reference, so that a test can look at its fake afterwards.
impl<T: Effects> Effects for &T {
    type Query = T::Query;
    type View = T::View;
    type Objects = T::Objects;
    type Applied = T::Applied;
    type Plan = T::Plan;
    type Work = T::Work;
    type Done = T::Done;
    type Error = T::Error;

    async fn observe(&self, query: Self::Query) -> Result<Self::View, Self::Error> {
        (**self).observe(query).await
    }

    async fn apply(&self, objects: Self::Objects) -> Result<Self::Applied, Self::Error> {
        (**self).apply(objects).await
    }

    async fn plan(&self, objects: Self::Objects) -> Result<Self::Plan, Self::Error> {
        (**self).plan(objects).await
    }

    async fn work(&self, work: T::Work, progress: &dyn Progress) -> Result<T::Done, T::Error> {
        (**self).work(work, progress).await
    }
}

/// Effects that fit charm `C`: its own, or a stand-in with the same types.
pub trait EffectsFor<C: Charm>:
    Effects<
        Query = QueryOf<C>,
        View = ViewOf<C>,
        Objects = ObjectsOf<C>,
        Applied = AppliedOf<C>,
        Plan = PlanOf<C>,
        Work = WorkOf<C>,
        Done = DoneOf<C>,
    >
{
}

impl<C, T> EffectsFor<C> for T
where
    C: Charm,
    T: Effects<
            Query = QueryOf<C>,
            View = ViewOf<C>,
            Objects = ObjectsOf<C>,
            Applied = AppliedOf<C>,
            Plan = PlanOf<C>,
            Work = WorkOf<C>,
            Done = DoneOf<C>,
        >,
{
}

/// An error of [`Effects`].
pub trait EffectError: std::error::Error + 'static {
    /// The problem a status can show; the hook then succeeds. `None` is a bug: the hook fails.
    fn problem(&self) -> Option<Problem>;
}

/// A charm's query type.
pub type QueryOf<C> = <<C as Charm>::Fx as Effects>::Query;
/// A charm's view of the world besides Juju.
pub type ViewOf<C> = <<C as Charm>::Fx as Effects>::View;
/// A charm's desired objects.
pub type ObjectsOf<C> = <<C as Charm>::Fx as Effects>::Objects;
/// A charm's proof of application.
pub type AppliedOf<C> = <<C as Charm>::Fx as Effects>::Applied;
/// A charm's plan.
pub type PlanOf<C> = <<C as Charm>::Fx as Effects>::Plan;
/// A charm's work.
pub type WorkOf<C> = <<C as Charm>::Fx as Effects>::Work;
/// What comes of a charm's work.
pub type DoneOf<C> = <<C as Charm>::Fx as Effects>::Done;
/// A charm's effect error.
pub type ErrorOf<C> = <<C as Charm>::Fx as Effects>::Error;

/// A charm: pure functions from what is to what shall be. Every hook runs all of them from
/// scratch, so that missed, repeated and reordered hooks do no harm.
pub trait Charm {
    /// The charm's `charmcraft.yaml`: `include_str!("../charmcraft.yaml")`.
    const METADATA: &'static str;
    /// The effects.
    type Fx: Effects;
    /// What validation makes of the inputs.
    type Validated;

    /// Secrets to read besides those in config options: ids found in remote data.
    fn secrets(view: &ModelView) -> Vec<SecretId> {
        let _ = view;
        Vec::new()
    }

    /// What must be read from the world.
    fn query(view: &ModelView) -> QueryOf<Self>
    where
        Self: Sized;

    /// Checks all inputs. Bad remote data costs its relation, never the run.
    fn validate(view: &ModelView, cluster: &ViewOf<Self>) -> (Self::Validated, Vec<Problem>)
    where
        Self: Sized;

    /// What shall exist; `None` touches nothing (not the leader, blocked). Also asked when an
    /// action wants a plan. Nothing desired is not `None`: with an empty set, what was is pruned.
    fn desired(
        view: &ModelView,
        validated: &Self::Validated,
        cluster: &ViewOf<Self>,
    ) -> Option<ObjectsOf<Self>>
    where
        Self: Sized;

    /// The work to do, if any. Asked in an action, after its plan if that did not fail; in a hook,
    /// only once what is desired was applied. Whatever the problems are: `validated` has to tell
    /// when not to.
    fn work(
        view: &ModelView,
        validated: &Self::Validated,
        cluster: &ViewOf<Self>,
    ) -> Option<WorkOf<Self>>
    where
        Self: Sized,
    {
        let _ = (view, validated, cluster);
        None
    }

    /// What Juju is told. `applied` is `None` if nothing was desired or applying failed, `done` if
    /// there was no work or it failed; then `problems` says why.
    fn outcome(
        view: &ModelView,
        validated: &Self::Validated,
        cluster: &ViewOf<Self>,
        applied: Option<&AppliedOf<Self>>,
        done: Option<&DoneOf<Self>>,
        problems: &[Problem],
    ) -> Outcome
    where
        Self: Sized;

    /// Whether the action needs a plan. Without one that was wanted, no work is done.
    fn wants_plan(action: &ActionCall) -> bool {
        let _ = action;
        false
    }

    /// Answers an action. Called whatever the problems are, unless its work failed: then the
    /// action fails with that problem.
    fn action(
        view: &ModelView,
        validated: &Self::Validated,
        cluster: &ViewOf<Self>,
        plan: Option<&PlanOf<Self>>,
        done: Option<&DoneOf<Self>>,
        problems: &[Problem],
    ) -> ActionOutcome
    where
        Self: Sized;

    /// What Juju is told when the world could not even be read.
    fn unobserved(view: &ModelView, problem: Problem) -> Outcome {
        Outcome::from_problems(view, "", &[problem])
    }
}
