//! Effects of a charm that has no world besides Juju.

use std::convert::Infallible;

use crate::charm::{EffectError, Effects};
use crate::problem::Problem;
use crate::progress::Progress;

/// Nothing to observe, to apply or to work on: relations, config and statuses are all the charm
/// is about. `type Fx = NoWorld` and `juju_charm::run::<MyCharm>(NoWorld::connect)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoWorld;

/// An effect that cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Never {}

impl EffectError for Never {
    fn problem(&self) -> Option<Problem> {
        match *self {}
    }
}

impl NoWorld {
    /// For [`run`](crate::run).
    pub fn connect(_: &juju_hooks::Context) -> Result<Self, Never> {
        Ok(Self)
    }
}

impl Effects for NoWorld {
    type Query = ();
    type View = ();
    type Objects = ();
    type Applied = ();
    type Plan = ();
    type Work = Infallible;
    type Done = Infallible;
    type Error = Never;

    async fn observe(&self, (): ()) -> Result<(), Never> {
        Ok(())
    }

    async fn apply(&self, (): ()) -> Result<(), Never> {
        Ok(())
    }

    async fn plan(&self, (): ()) -> Result<(), Never> {
        Ok(())
    }

    async fn work(&self, work: Infallible, _: &dyn Progress) -> Result<Infallible, Never> {
        match work {}
    }
}
