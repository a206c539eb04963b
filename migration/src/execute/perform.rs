//! Actions, each of which may be done twice.

use std::collections::BTreeMap;

use kube_apply::{Delete, Error, Evicted, Object, ObjectRef, Query};
use mesh::restart::is_rolled_out;
use serde_json::{Value, json};

use super::journal::Place;
use super::{Failure, store};
use crate::api::{Api, MANAGER, fresh};
use crate::inventory::{self, Pod};
use crate::plan::Action;
use crate::webhooks::selects;

/// Annotation of a pod template: the migration that restarted it.
pub(super) const RESTARTED: &str = "istio-migrate/restarted";

/// Does an action; a reason when it has to wait and be tried again.
pub(super) async fn perform(
    api: &impl Api,
    action: &Action,
    place: &mut Place,
) -> Result<Option<String>, Failure> {
    match action {
        Action::Apply { object, manager } => {
            api.apply(&Object::new(object.clone())?, manager).await?;
        }
        Action::Delete { object } => {
            api.delete(object, &Delete::default()).await?;
        }
        Action::Patch { object, patch } => {
            present(api.merge(object, patch).await)?;
        }
        Action::Readdress {
            workload,
            variables,
            from,
            to,
            own,
            labels,
        } => readdress(api, workload, variables, (from, to), own, labels).await?,
        Action::Mirror { original, copy } => {
            let mut copy = copy.clone();
            if let Some(live) = api.get(original).await? {
                copy["spec"] = live.value()["spec"].clone();
                api.apply(&Object::new(copy)?, MANAGER).await?;
            } else {
                api.delete(&Object::new(copy)?.id(), &Delete::default())
                    .await?;
            }
        }
        Action::DeleteCopy { name, from, to } => delete_copy(api, name, from, to).await?,
        Action::Restore { object } => restore(api, object, place).await?,
        Action::CopySecret { name, from, to } => copy_secret(api, name, from, to).await?,
        Action::Restart {
            workload,
            labels,
            mark,
            ask_budgets,
        } => return restart(api, workload, labels, mark.as_deref(), *ask_budgets).await,
        Action::Evict { workload, revision } => return evict(api, workload, revision).await,
    }
    Ok(None)
}

/// What is not there needs no change.
fn present(answer: Result<Object, Error>) -> Result<(), Error> {
    match answer {
        Ok(_) | Err(Error::NotFound { .. } | Error::NotServed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn restore(api: &impl Api, id: &ObjectRef, place: &mut Place) -> Result<(), Failure> {
    if place.backup.is_none() {
        place.backup = Some(store::backup(api, &place.journal.plan).await?);
    }
    let kept = place.backup.iter().flatten();
    let Some(kept) = kept.into_iter().find(|kept| kept.id().same_object(id)) else {
        return Err(Failure::Record {
            what: format!("backup of {id}"),
        });
    };
    let mut wanted = Object::new(fresh(kept.value().clone()))?;
    let answer = match api.get(id).await? {
        Some(live) => {
            let mut value = wanted.clone().into_value();
            value["metadata"]["resourceVersion"] =
                live.value()["metadata"]["resourceVersion"].clone();
            wanted = Object::new(value)?;
            api.replace(&wanted).await
        }
        None => api.create(&wanted, false).await,
    };
    match answer {
        // Somebody else got the Service's address meanwhile: another one will do.
        Err(Error::Invalid { object, .. }) if object.kind == "Service" => {
            let mut value = wanted.into_value();
            if let Some(spec) = value["spec"].as_object_mut() {
                spec.remove("clusterIP");
                spec.remove("clusterIPs");
            }
            let wanted = Object::new(value)?;
            if wanted.pointer("/metadata/resourceVersion").is_some() {
                api.replace(&wanted).await?;
            } else {
                api.create(&wanted, false).await?;
            }
        }
        answer => drop(answer?),
    }
    Ok(())
}

/// The Secret's content goes from the API server to the API server.
async fn copy_secret(api: &impl Api, name: &str, from: &str, to: &str) -> Result<(), Failure> {
    let secret = |namespace| ObjectRef::namespaced("v1", "Secret", namespace, name);
    let Some(original) = api.get(&secret(from)).await? else {
        let what = secret(from).to_string();
        return Err(Error::NotFound { what }.into());
    };
    if let Some(there) = api.get(&secret(to)).await? {
        let same = there.pointer("/data") == original.pointer("/data");
        return if same {
            Ok(())
        } else {
            Err(Error::Raced {
                object: Box::new(secret(to)),
            }
            .into())
        };
    }
    let copy = json!({
        "apiVersion": "v1", "kind": "Secret", "type": original.value()["type"],
        "metadata": {"name": name, "namespace": to},
        "data": original.value()["data"],
    });
    api.create(&Object::new(copy)?, false).await?;
    Ok(())
}

/// A Secret that says something else is not our copy, and stays.
async fn delete_copy(api: &impl Api, name: &str, from: &str, to: &str) -> Result<(), Failure> {
    let secret = |namespace| ObjectRef::namespaced("v1", "Secret", namespace, name);
    let (original, copy) = (api.get(&secret(from)).await?, api.get(&secret(to)).await?);
    let (Some(original), Some(copy)) = (original, copy) else {
        return Ok(());
    };
    if original.pointer("/data") == copy.pointer("/data") {
        api.delete(&copy.id(), &Delete::default()).await?;
    }
    Ok(())
}

/// Reads the template and writes it in one patch that holds for this very state: its environment may
/// hold what nobody should see, and is kept nowhere.
async fn readdress(
    api: &impl Api,
    workload: &ObjectRef,
    variables: &[(String, String)],
    (from, to): (&str, &str),
    own: &BTreeMap<String, Option<String>>,
    labels: &BTreeMap<String, Option<String>>,
) -> Result<(), Failure> {
    let Some(live) = api.get(workload).await? else {
        return Ok(());
    };
    let template = &live.value()["spec"]["template"];
    let mut containers = template["spec"]["containers"].clone();
    for container in containers.as_array_mut().into_iter().flatten() {
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        let Some(env) = container["env"].as_array_mut() else {
            continue;
        };
        for variable in env.iter_mut() {
            let known = |(c, v): &(String, String)| *c == name && variable["name"] == v.as_str();
            if variables.iter().any(known)
                && let Some(text) = variable["value"].as_str()
            {
                variable["value"] = text.replace(from, to).into();
            }
        }
        if name == "istio-proxy" {
            for (key, value) in own {
                env.retain(|variable| variable["name"] != key.as_str());
                env.extend(value.as_ref().map(|v| json!({"name": key, "value": v})));
            }
        }
    }
    let there = &template["metadata"]["labels"];
    let labelled = labels
        .iter()
        .all(|(key, value)| there[key].as_str() == value.as_deref());
    if labelled && containers == template["spec"]["containers"] {
        return Ok(());
    }
    let mut patch = json!({
        "metadata": {"resourceVersion": live.value()["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"containers": containers}}},
    });
    if !labels.is_empty() {
        patch["spec"]["template"]["metadata"] = json!({"labels": labels});
    }
    present(api.merge(workload, &patch).await)?;
    Ok(())
}

async fn restart(
    api: &impl Api,
    workload: &ObjectRef,
    labels: &BTreeMap<String, Option<String>>,
    mark: Option<&str>,
    ask_budgets: bool,
) -> Result<Option<String>, Failure> {
    let Some(live) = api.get(workload).await? else {
        return Ok(None);
    };
    let template = &live.value()["spec"]["template"]["metadata"];
    let marked = template["annotations"][RESTARTED].as_str() == mark;
    let labelled = labels
        .iter()
        .all(|(key, value)| template["labels"][key].as_str() == value.as_deref());
    if marked && labelled {
        return Ok(None);
    }
    if ask_budgets && let Some(why) = exhausted(api, workload, &template["labels"]).await? {
        return Ok(Some(why));
    }
    let mut patch = json!({"spec": {"template": {"metadata": {"annotations": {RESTARTED: mark}}}}});
    if !labels.is_empty() {
        patch["spec"]["template"]["metadata"]["labels"] = json!(labels);
    }
    present(api.merge(workload, &patch).await)?;
    Ok(None)
}

/// The budget over these pods that is used up.
async fn exhausted(
    api: &impl Api,
    workload: &ObjectRef,
    labels: &Value,
) -> Result<Option<String>, Failure> {
    let namespace = workload.namespace.as_deref().unwrap_or_default();
    let budgets = Query::list("policy", "PodDisruptionBudget").in_namespace(namespace);
    let read = api.read(&[budgets]).await?;
    let labels: BTreeMap<String, String> =
        serde_json::from_value(labels.clone()).unwrap_or_default();
    let used_up = read.list("policy", "PodDisruptionBudget").find(|budget| {
        selects(&budget.value()["spec"]["selector"], &labels)
            && budget.pointer("/status/disruptionsAllowed") == Some(&0.into())
    });
    Ok(used_up.map(|budget| format!("{} allows no disruption of {workload}", budget.id())))
}

/// Evicts one pod of another revision, once all pods are there and ready.
async fn evict(
    api: &impl Api,
    workload: &ObjectRef,
    revision: &str,
) -> Result<Option<String>, Failure> {
    let Some(live) = api.get(workload).await? else {
        return Ok(None);
    };
    let (pods, there) = owned_pods(api, workload).await?;
    let Some(next) = pods
        .iter()
        .find(|pod| pod.revision.as_deref() != Some(revision))
    else {
        return Ok(None);
    };
    // The one before has its successor. What the workload tells of itself may be older than the
    // eviction, so its pods are counted as well.
    if !is_rolled_out(live.value()) || there < wanted(&live) {
        return Ok(Some(format!("pods of {workload} are not all ready")));
    }
    if let Some(pod) = pods.iter().find(|pod| !pod.ready) {
        return Ok(Some(format!(
            "pod {}/{} is not ready",
            pod.namespace, pod.name
        )));
    }
    match api.evict(&next.namespace, &next.name).await? {
        Evicted::Gone => Ok(Some(format!(
            "pod {}/{} makes way",
            next.namespace, next.name
        ))),
        Evicted::Refused(words) => Ok(Some(words)),
    }
}

/// How many pods a workload is to have.
fn wanted(live: &Object) -> usize {
    let (pointer, default) = match live.kind() {
        "DaemonSet" => ("/status/desiredNumberScheduled", 0),
        _ => ("/spec/replicas", 1),
    };
    let wanted = live.pointer(pointer).and_then(Value::as_u64);
    usize::try_from(wanted.unwrap_or(default)).unwrap_or(usize::MAX)
}

/// The pods of a workload that have proxies.
pub(super) async fn pods(api: &impl Api, workload: &ObjectRef) -> Result<Vec<Pod>, Error> {
    Ok(owned_pods(api, workload).await?.0)
}

/// The pods of a workload that have proxies, and how many it has in all; those that end are in
/// neither.
async fn owned_pods(api: &impl Api, workload: &ObjectRef) -> Result<(Vec<Pod>, usize), Error> {
    let namespace = workload.namespace.as_deref().unwrap_or_default();
    let list = Query::list("", "Pod").in_namespace(namespace);
    let read = api.read(&[list]).await?;
    let owned = read.list("", "Pod").filter(|pod| {
        let owner = inventory::owner(pod);
        !pod.is_terminating()
            && owner.is_some_and(|o| o.kind == workload.kind && o.name == workload.name)
    });
    let owned: Vec<&Object> = owned.collect();
    let pods = owned.iter().filter_map(|pod| Pod::of(pod)).collect();
    Ok((pods, owned.len()))
}

#[cfg(test)]
mod tests {
    use kube_apply::testing::FakeApi;

    use super::*;

    fn pod(name: &str, revision: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "lab",
                "annotations": {"sidecar.istio.io/status": json!({"revision": revision}).to_string()},
                "ownerReferences": [{"kind": "StatefulSet", "name": "db", "controller": true}],
            },
            "spec": {"containers": [{"name": "istio-proxy", "image": "hub/proxyv2:1.31.0"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    #[tokio::test]
    async fn a_pod_is_evicted_only_when_the_one_before_has_its_successor() {
        let fake = FakeApi::new();
        fake.seed_namespace("lab");
        fake.seed(json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "lab"}, "spec": {"replicas": 2},
            // What the controller knew before the eviction.
            "status": {"readyReplicas": 2},
        }));
        fake.seed(pod("db-1", "default"));
        let id = ObjectRef::namespaced("apps/v1", "StatefulSet", "lab", "db");
        let engine = fake.engine();
        let old = ObjectRef::namespaced("v1", "Pod", "lab", "db-1");
        let why = evict(&engine, &id, "m1").await.expect("answers");
        assert_eq!(
            why.as_deref(),
            Some("pods of StatefulSet lab/db are not all ready")
        );
        assert!(fake.get(&old).is_some());
        fake.seed(pod("db-0", "m1"));
        evict(&engine, &id, "m1").await.expect("answers");
        assert!(fake.get(&old).is_none());
    }
}
