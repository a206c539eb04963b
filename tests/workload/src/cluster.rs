//! The charms' one place that talks to the API server.

use std::convert::Infallible;

use juju_charm::{EffectError, Effects, Problem, Progress};
use juju_hooks::Context;
use kube_apply::{Applied, Connect, Engine, Error, ObjectsSet, Plan};

/// The cluster, as these charms see it: only written to.
#[derive(Debug)]
pub struct Cluster {
    engine: Engine,
}

/// What can go wrong with the cluster.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ClusterError(#[from] Error);

/// Connects to the API server that Juju names.
///
/// # Errors
/// No API server in the environment, or unreadable credentials.
pub fn connect(context: &Context) -> Result<Cluster, ClusterError> {
    let Some((host, port)) = &context.kubernetes else {
        let reason = "the hook names no API server".to_owned();
        return Err(ClusterError(Error::Config { reason }));
    };
    Ok(Cluster::new(Engine::connect(&Connect::in_cluster(
        host, *port,
    ))?))
}

impl Cluster {
    /// Effects over an engine.
    pub fn new(engine: Engine) -> Self {
        Self { engine }
    }
}

impl EffectError for ClusterError {
    /// A sample has one thing to say about every error: what it is, and that it tries again.
    fn problem(&self) -> Option<Problem> {
        Some(Problem::waiting(self.0.to_string()))
    }
}

impl Effects for Cluster {
    type Applied = Applied;
    type Error = ClusterError;
    type Objects = ObjectsSet;
    type Plan = Plan;
    type Work = Infallible;
    type Done = Infallible;
    type Query = ();
    type View = ();

    async fn observe(&self, _query: ()) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn apply(&self, objects: ObjectsSet) -> Result<Applied, ClusterError> {
        Ok(self.engine.apply(&objects).await?)
    }

    async fn plan(&self, objects: ObjectsSet) -> Result<Plan, ClusterError> {
        Ok(self.engine.plan(&objects).await?)
    }

    async fn work(&self, work: Infallible, _: &dyn Progress) -> Result<Infallible, ClusterError> {
        match work {}
    }
}
