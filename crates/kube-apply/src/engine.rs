//! The engine: a client and what it has learnt about the cluster.

use kube::Client;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::query::{Observed, Query};
use crate::set::{Applied, ObjectsSet};

/// Talks to one API server.
pub struct Engine {
    client: Client,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

fn later() -> Error {
    Error::Config {
        reason: "not implemented".to_owned(),
    }
}

impl Engine {
    /// An engine over an existing client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Reads.
    pub async fn observe(&self, _queries: &[Query]) -> Result<Observed> {
        let _ = &self.client;
        Err(later())
    }

    /// What [`Engine::apply`] would do.
    pub async fn plan(&self, _set: &ObjectsSet) -> Result<Plan> {
        Err(later())
    }

    /// Makes the cluster as desired.
    pub async fn apply(&self, _set: &ObjectsSet) -> Result<Applied> {
        Err(later())
    }
}
