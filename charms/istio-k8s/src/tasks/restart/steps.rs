//! One workload's restart, step by step.

use std::time::Duration;

use kube_apply::{Engine, Evicted, ObjectRef, Query, Result};
use mesh::restart::{Owner, Proxy, budget_against, is_rolled_out};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Behind, MANAGER};
use crate::surroundings::observe;

/// How often a restarted workload is looked at.
const POLL: Duration = Duration::from_secs(2);
/// Annotation of a pod template whose change makes a new generation.
const RESTARTED: &str = "charms.istio-operators.dev/proxies-restarted-for";

pub(super) fn id(owner: &Owner) -> ObjectRef {
    ObjectRef::namespaced("apps/v1", &owner.kind, &owner.namespace, &owner.name)
}

/// Whether the API server has something against this pod and not against us.
pub(super) fn is_of_one_pod(error: &kube_apply::Error) -> bool {
    use kube_apply::Error;
    matches!(
        error,
        Error::Invalid { .. }
            | Error::Denied { .. }
            | Error::WebhookUnavailable { .. }
            | Error::Forbidden { .. }
    )
}

/// Why a budget keeps the workload as it is now.
pub(super) async fn held(engine: &Engine, behind: &Behind) -> Result<Option<String>> {
    let query = Query::list("policy", "PodDisruptionBudget").in_namespace(&behind.owner.namespace);
    let observed = observe(engine, &[query]).await?;
    let budgets: Vec<Value> = observed
        .list("policy", "PodDisruptionBudget")
        .map(|budget| budget.value().clone())
        .collect();
    let pods: Vec<&Value> = behind.pods.iter().collect();
    let name = budget_against(behind.workload.value(), &pods, &budgets);
    Ok(name.map(|name| format!("PodDisruptionBudget {name} allows no disruption")))
}

/// Makes a new generation of a Deployment's pods. Said twice for the same proxy, it changes nothing.
pub(super) async fn roll(engine: &Engine, owner: &Owner, proxy: &Proxy) -> Result<()> {
    let mark = format!("{} {}", proxy.revision, proxy.image);
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: mark}}}}});
    engine.merge_patch(&id(owner), &patch, MANAGER).await?;
    Ok(())
}

/// Evicts the pods one after the other, each once the workload is whole again. Why it stopped, if it
/// did.
pub(super) async fn evict(
    engine: &Engine,
    owner: &Owner,
    pods: &[Value],
    end: Instant,
) -> Result<Option<String>> {
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        loop {
            match engine.evict(&owner.namespace, name, false).await? {
                Evicted::Gone => break,
                Evicted::Refused(why) if Instant::now() >= end => return Ok(Some(why)),
                Evicted::Refused(_) => sleep(POLL).await,
            }
        }
        if !came_back(engine, owner, end).await? {
            return Ok(Some("a pod has not come back".to_owned()));
        }
    }
    Ok(None)
}

/// Waits until the workload is whole.
pub(super) async fn came_back(engine: &Engine, owner: &Owner, end: Instant) -> Result<bool> {
    loop {
        sleep(POLL).await;
        match engine.get(&id(owner)).await? {
            None => return Ok(true),
            Some(workload) if is_rolled_out(workload.value()) => return Ok(true),
            Some(_) if Instant::now() >= end => return Ok(false),
            Some(_) => {}
        }
    }
}
