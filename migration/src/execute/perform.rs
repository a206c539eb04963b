//! Actions, each of which may be done twice.

use std::collections::BTreeMap;

use kube_apply::{Delete, Error, Evicted, Object, ObjectRef, Query};
use serde_json::{Value, json};

use super::journal::Place;
use super::{Failure, store};
use crate::api::Api;
use crate::inventory::Pod;
use crate::plan::{Action, Plan};
use crate::webhooks::selects;

/// Annotation of a pod template: the migration that restarted it.
pub(super) const RESTARTED: &str = "istio-migrate/restarted";

/// Does an action; a reason when it has to wait and be tried again.
pub(super) async fn perform(
    api: &impl Api,
    plan: &Plan,
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
        Action::JsonPatch { object, operations } => {
            present(api.json_patch(object, operations).await)?;
        }
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
    let _ = plan;
    Ok(None)
}

/// What is not there needs no change.
fn present(answer: Result<Object, Error>) -> Result<(), Error> {
    match answer {
        Ok(_) | Err(Error::NotFound { .. } | Error::NotServed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// An object as it is created again.
pub(super) fn fresh(object: &Object) -> Object {
    let mut value = object.value().clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for owned_by_server in [
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
            ] {
                metadata.remove(owned_by_server);
            }
        }
    }
    Object::new(value).unwrap_or_else(|_| object.clone())
}

async fn restore(api: &impl Api, id: &ObjectRef, place: &mut Place) -> Result<(), Failure> {
    if place.backup.is_none() {
        place.backup = Some(store::backup(api).await?);
    }
    let kept = place.backup.iter().flatten();
    let Some(kept) = kept.into_iter().find(|kept| kept.id().same_object(id)) else {
        return Err(Failure::Record {
            what: format!("backup of {id}"),
        });
    };
    let mut wanted = fresh(kept);
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

/// Evicts one pod of another revision, once all pods are ready.
async fn evict(
    api: &impl Api,
    workload: &ObjectRef,
    revision: &str,
) -> Result<Option<String>, Failure> {
    let pods = pods(api, workload).await?;
    let Some(next) = pods
        .iter()
        .find(|pod| pod.revision.as_deref() != Some(revision))
    else {
        return Ok(None);
    };
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

/// The pods of a workload that have proxies.
pub(super) async fn pods(api: &impl Api, workload: &ObjectRef) -> Result<Vec<Pod>, Error> {
    let namespace = workload.namespace.as_deref().unwrap_or_default();
    let list = Query::list("", "Pod").in_namespace(namespace);
    let read = api.read(&[list]).await?;
    let owned = |pod: &Pod| {
        let owner = pod.owner.as_ref();
        owner.is_some_and(|owner| owner.kind == workload.kind && owner.name == workload.name)
    };
    Ok(read
        .list("", "Pod")
        .filter_map(Pod::of)
        .filter(owned)
        .collect())
}
