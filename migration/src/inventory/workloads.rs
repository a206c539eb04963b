//! What has to be restarted, and how safely that can be done.

use std::collections::BTreeMap;

use kube_apply::{Object, ObjectRef};
use serde_json::Value;

use super::{Owner, Pod, Snapshot, text};

/// How a workload replaces its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// New pods first: no pod goes before its successor is ready.
    SurgeFirst,
    /// Some pods go first; disruption budgets have to allow it.
    SomeGoFirst,
    /// All pods go first: an interruption.
    AllGoFirst,
    /// Only when each pod is deleted by somebody.
    ByEviction,
}

/// A workload whose pods have proxies.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What it is.
    pub id: ObjectRef,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// How it replaces them.
    pub rollout: Rollout,
    /// Replicas wanted.
    pub replicas: u64,
    /// Whether its proxies are gateways'.
    pub router: bool,
    /// The revision that injected its pods; none where the proxy is part of the template.
    pub revision: Option<String>,
}

/// The workloads of the pods that have proxies, and what cannot be restarted, in words.
pub fn workloads(snapshot: &Snapshot) -> (Vec<Workload>, Vec<String>) {
    let mut owners: BTreeMap<(String, Option<Owner>, String), &Pod> = BTreeMap::new();
    for pod in &snapshot.pods {
        let bare = if pod.owner.is_none() {
            pod.name.clone()
        } else {
            String::new()
        };
        owners
            .entry((pod.namespace.clone(), pod.owner.clone(), bare))
            .or_insert(pod);
    }
    let (mut found, mut by_hand) = (Vec::new(), Vec::new());
    for ((namespace, owner, name), pod) in owners {
        let Some(owner) = owner else {
            by_hand.push(format!(
                "Pod {namespace}/{name}: belongs to nothing that makes it again"
            ));
            continue;
        };
        let live = snapshot
            .objects
            .get("apps", &owner.kind, Some(&namespace), &owner.name);
        let Some(live) = live else {
            let Owner { kind, name } = owner;
            by_hand.push(format!(
                "{kind} {namespace}/{name}: its pods cannot be restarted from outside"
            ));
            continue;
        };
        found.push(Workload {
            id: live.id(),
            labels: template_labels(live),
            rollout: rollout(live),
            replicas: replicas(live),
            router: pod.router,
            revision: pod.revision.clone(),
        });
    }
    (found, by_hand)
}

fn template_labels(live: &Object) -> BTreeMap<String, String> {
    let labels = live.pointer("/spec/template/metadata/labels");
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn replicas(live: &Object) -> u64 {
    let wanted = live.pointer("/spec/replicas").and_then(Value::as_u64);
    wanted.unwrap_or(1)
}

fn rollout(live: &Object) -> Rollout {
    let value = live.value();
    match (live.kind(), text(value, "/spec/strategy/type")) {
        ("Deployment", "Recreate") => return Rollout::AllGoFirst,
        ("Deployment", _) => {}
        _ if text(value, "/spec/updateStrategy/type") == "OnDelete" => return Rollout::ByEviction,
        _ => return Rollout::SomeGoFirst,
    }
    // The server's default is 25 %, rounded down.
    let unavailable = value.pointer("/spec/strategy/rollingUpdate/maxUnavailable");
    let gone = match unavailable {
        None => replicas(live) / 4,
        Some(Value::String(share)) => {
            let share: u64 = share.trim_end_matches('%').parse().unwrap_or(25);
            replicas(live) * share / 100
        }
        Some(number) => number.as_u64().unwrap_or(1),
    };
    if gone == 0 {
        Rollout::SurgeFirst
    } else {
        Rollout::SomeGoFirst
    }
}
