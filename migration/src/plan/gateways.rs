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
    let refreshed = |istiod: &str, by: &str| Check::Refreshed {
        workload: workload.id.clone(),
        revision: None,
        istiod: istiod.to_owned(),
        by: by.to_owned(),
    };
    step.effect.push(patch(&target.revision.as_str().into()));
    step.after
        .push(refreshed(&target.namespace, &target.revision));
    step.undo.push(patch(&json!(gateway.label("istio.io/rev"))));
    step.undone.push(refreshed(
        &source.plane.namespace,
        source.plane.revision.label(),
    ));
    step
}

/// What gives every variable with the old address the new one, and what takes it back; `None` when
/// nothing names the old istiod. No value of a variable is in either.
fn readdress(live: &Object, source: &Source<'_>, target: &Target) -> Option<(Action, Action)> {
    let (service, namespace) = (source.service_name(), &source.plane.namespace);
    let (old, new) = (
        format!("{service}.{namespace}."),
        format!("{}.{}.", target.service(), target.namespace),
    );
    let mut variables = Vec::new();
    let (mut names_config, mut proxy) = (false, false);
    let containers = live.pointer("/spec/template/spec/containers")?.as_array()?;
    for container in containers {
        let of = container["name"].as_str().unwrap_or_default();
        proxy |= of == "istio-proxy";
        for variable in container["env"].as_array().into_iter().flatten() {
            let text = variable["value"].as_str().unwrap_or_default();
            let name = variable["name"].as_str().unwrap_or_default();
            names_config |= name == "PROXY_CONFIG";
            if name != NOT_AN_ADDRESS && text.contains(&old) {
                variables.push((of.to_owned(), name.to_owned()));
            }
        }
    }
    if variables.is_empty() {
        return None;
    }
    let (mut own, mut not_own) = (BTreeMap::new(), BTreeMap::new());
    // Without it, the agent takes the address from a ConfigMap of the old control plane.
    if proxy && !names_config {
        let address = format!("{}.{}.svc:15012", target.service(), target.namespace);
        let config = json!({"discoveryAddress": address}).to_string();
        own.insert("PROXY_CONFIG".to_owned(), Some(config));
        not_own.insert("PROXY_CONFIG".to_owned(), None);
    }
    // The label by which a purge finds pods goes with the same rollout.
    let (mut without, mut with) = (BTreeMap::new(), BTreeMap::new());
    let labels = live.pointer("/spec/template/metadata/labels");
    if let Some(label) = labels.and_then(|labels| labels[PURGED].as_str()) {
        without.insert(PURGED.to_owned(), None);
        with.insert(PURGED.to_owned(), Some(label.to_owned()));
    }
    let action = |from: &str, to: &str, own, labels| Action::Readdress {
        workload: live.id(),
        variables: variables.clone(),
        from: from.to_owned(),
        to: to.to_owned(),
        own,
        labels,
    };
    Some((
        action(&old, &new, own, without),
        action(&new, &old, not_own, with),
    ))
}

fn repoint(
    workload: &Workload,
    forward: Action,
    back: Action,
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
    let refreshed = |istiod: &str, by: &str| Check::Refreshed {
        workload: workload.id.clone(),
        revision: None,
        istiod: istiod.to_owned(),
        by: by.to_owned(),
    };
    step.effect.push(forward);
    step.after
        .push(refreshed(&target.namespace, &target.revision));
    step.undo.push(back);
    step.undone.push(refreshed(
        &source.plane.namespace,
        source.plane.revision.label(),
    ));
    step
}
