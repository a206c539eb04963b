//! Gateways: those that are injected are restarted like any workload; the others name their istiod.

use std::collections::BTreeMap;

use istio_api::ObjectRef;
use kube_apply::Object;
use serde_json::{Value, json};

use super::data::{Action, Check, Phase, Plan, Step};
use super::target::Target;
use super::{Request, Strategy};
use crate::inventory::{PURGED, Rollout, Snapshot, Source, Workload};

/// Variables that name the CA's provider, not its address.
pub(crate) const NOT_AN_ADDRESS: &str = "PILOT_CERT_PROVIDER";

/// Points gateways that name the old istiod at the new one; returns the labels of those that stay.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
    workloads: &[Workload],
) -> Vec<BTreeMap<String, String>> {
    let mut late = Vec::new();
    for workload in workloads.iter().filter(|w| w.revision.is_none()) {
        if let Some(gateway) = managed_by(snapshot, workload) {
            plan.steps.push(relabel(gateway, workload, source, target));
            continue;
        }
        let Some(live) = snapshot.objects.find(&workload.id) else {
            continue;
        };
        let Some((forward, back)) = readdress(live, source, target) else {
            continue;
        };
        let safe = workload.replicas >= 2 && workload.rollout != Rollout::AllGoFirst;
        if !safe && request.strategy == Strategy::ZeroDowntime && !request.accept_interruption {
            plan.notes.push(format!(
                "{} has {} replica: it is not restarted, and follows the old name of istiod over a \
                 bridge until somebody restarts it",
                workload.id, workload.replicas
            ));
            late.push(workload.labels.clone());
            continue;
        }
        plan.steps
            .push(repoint(workload, forward, back, source, target));
    }
    late
}

/// The Gateway object whose controller writes the workload.
fn managed_by<'a>(snapshot: &'a Snapshot, workload: &Workload) -> Option<&'a Object> {
    let name = workload
        .labels
        .get("gateway.networking.k8s.io/gateway-name")?;
    let namespace = workload.id.namespace.as_deref();
    let group = "gateway.networking.k8s.io";
    snapshot.objects.get(group, "Gateway", namespace, name)
}

fn relabel(gateway: &Object, workload: &Workload, source: &Source<'_>, target: &Target) -> Step {
    let mut step = Step::new(
        &format!(
            "gateway-{}-{}",
            gateway.namespace().unwrap_or_default(),
            gateway.name()
        ),
        Phase::SideBySide,
        &format!("hand {} to the new control plane", gateway.id()),
        "The gateway's controller in the istiod that the label names writes its Deployment.",
    );
    let patch = |rev: &Value| Action::Patch {
        object: gateway.id(),
        patch: json!({"metadata": {"labels": {"istio.io/rev": rev}}}),
    };
    let refreshed = |istiod: &str| Check::Refreshed {
        workload: workload.id.clone(),
        revision: None,
        istiod: istiod.to_owned(),
    };
    step.effect.push(patch(&target.revision.as_str().into()));
    step.after.push(refreshed(&target.namespace));
    step.undo.push(patch(&json!(gateway.label("istio.io/rev"))));
    step.undone.push(refreshed(&source.plane.namespace));
    step
}

/// The operations that give every variable with the old address the new one, and those that take it
/// back; `None` when nothing names the old istiod.
fn readdress(live: &Object, source: &Source<'_>, target: &Target) -> Option<(Value, Value)> {
    let (service, namespace) = (source.service_name(), &source.plane.namespace);
    let (old, new) = (
        format!("{service}.{namespace}."),
        format!("{}.{}.", target.service(), target.namespace),
    );
    let (mut forward, mut back) = (Vec::new(), Vec::new());
    let mut names_config = false;
    let containers = live.pointer("/spec/template/spec/containers")?.as_array()?;
    for (at, container) in containers.iter().enumerate() {
        let variables = container["env"].as_array().into_iter().flatten();
        for (number, variable) in variables.enumerate() {
            let text = variable["value"].as_str().unwrap_or_default();
            names_config |= variable["name"] == "PROXY_CONFIG";
            if variable["name"] == NOT_AN_ADDRESS || !text.contains(&old) {
                continue;
            }
            let path = format!("/spec/template/spec/containers/{at}/env/{number}/value");
            forward.push(json!({"op": "replace", "path": path, "value": text.replace(&old, &new)}));
            back.push(json!({"op": "replace", "path": path, "value": text}));
        }
    }
    // Without it, the agent takes the address from a ConfigMap of the old control plane.
    let proxy = containers.iter().position(|c| c["name"] == "istio-proxy");
    if let Some(at) = proxy.filter(|_| !names_config && !forward.is_empty()) {
        let env = format!("/spec/template/spec/containers/{at}/env");
        let all = containers[at]["env"].clone();
        let mut with: Vec<Value> = all.as_array().cloned().unwrap_or_default();
        for variable in &mut with {
            let text = variable["value"].as_str().unwrap_or_default();
            if variable["name"] != NOT_AN_ADDRESS && text.contains(&old) {
                variable["value"] = text.replace(&old, &new).into();
            }
        }
        let address = format!("{}.{}.svc:15012", target.service(), target.namespace);
        let config = json!({"discoveryAddress": address}).to_string();
        with.push(json!({"name": "PROXY_CONFIG", "value": config}));
        forward.push(json!({"op": "replace", "path": env, "value": with}));
        // The whole list once more, so that either direction may be done twice.
        back = vec![json!({"op": "replace", "path": env, "value": all})];
        forward.retain(|operation| operation["path"] == env.as_str());
    }
    if forward.is_empty() {
        return None;
    }
    // The label by which a purge finds pods goes with the same rollout.
    let path = "/spec/template/metadata/labels";
    if let Some(labels) = live
        .pointer(path)
        .filter(|labels| !labels[PURGED].is_null())
    {
        let mut without = labels.clone();
        if let Some(fields) = without.as_object_mut() {
            fields.remove(PURGED);
        }
        forward.push(json!({"op": "replace", "path": path, "value": without}));
        back.push(json!({"op": "replace", "path": path, "value": labels}));
    }
    Some((forward.into(), back.into()))
}

fn repoint(
    workload: &Workload,
    forward: Value,
    back: Value,
    source: &Source<'_>,
    target: &Target,
) -> Step {
    let ObjectRef {
        namespace, name, ..
    } = &workload.id;
    let mut step = Step::new(
        &format!(
            "gateway-{}-{name}",
            namespace.as_deref().unwrap_or_default()
        ),
        Phase::SideBySide,
        &format!("point {} at the new istiod", workload.id),
        "It is not injected: the address of istiod is written in it.",
    );
    let object = workload.id.clone();
    let refreshed = |istiod: &str| Check::Refreshed {
        workload: workload.id.clone(),
        revision: None,
        istiod: istiod.to_owned(),
    };
    step.effect.push(Action::JsonPatch {
        object: object.clone(),
        operations: forward,
    });
    step.after.push(refreshed(&target.namespace));
    step.undo.push(Action::JsonPatch {
        object,
        operations: back,
    });
    step.undone.push(refreshed(&source.plane.namespace));
    step
}
