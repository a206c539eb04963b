//! Sidecars, namespace by namespace and batch by batch, onto the new control plane.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::ObjectRef;
use kube_apply::Object;
use serde_json::{Value, json};

use super::data::{Action, Check, Phase, Plan, Step};
use super::target::Target;
use super::{Request, Strategy};
use crate::inventory::{Rollout, Snapshot, Source, Workload};

const REV: &str = "istio.io/rev";
const INJECTION: &str = "istio-injection";
const INJECT: &str = "sidecar.istio.io/inject";

/// How a namespace asks for sidecars.
struct Asking<'a> {
    injection: Option<&'a str>,
    rev: Option<&'a str>,
}

impl<'a> Asking<'a> {
    fn of(namespace: &'a Object) -> Self {
        Self {
            injection: namespace.label(INJECTION),
            rev: namespace.label(REV),
        }
    }

    /// Whether the old control plane answers the labels of the namespace.
    fn is_of(&self, source: &Source<'_>) -> bool {
        let plane = &source.plane;
        match (self.injection, self.rev) {
            (Some("enabled"), _) => answers(source, "default"),
            (None, Some(rev)) => plane.revision.label() == rev || answers(source, rev),
            _ => false,
        }
    }
}

fn answers(source: &Source<'_>, tag: &str) -> bool {
    source.plane.revision.label() == tag || source.plane.tags.iter().any(|known| known == tag)
}

/// The steps; returns the labels of the pods that stay where they are.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
    workloads: &[Workload],
) -> Vec<BTreeMap<String, String>> {
    let mut late = Vec::new();
    let mut by_namespace: BTreeMap<&str, Vec<&Workload>> = BTreeMap::new();
    let sidecars = workloads.iter().filter(|w| w.revision.is_some());
    for workload in sidecars {
        let namespace = workload.id.namespace.as_deref().unwrap_or_default();
        by_namespace.entry(namespace).or_default().push(workload);
    }
    let namespaces: BTreeMap<&str, &Object> = snapshot
        .objects
        .list("", "Namespace")
        .map(|namespace| (namespace.name(), namespace))
        .collect();
    for (name, workloads) in by_namespace {
        let Some(namespace) = namespaces.get(name) else {
            continue;
        };
        let asking = Asking::of(namespace);
        let labelled = asking.is_of(source);
        let mut going = Vec::new();
        for workload in workloads {
            if workload.revision.as_deref() == Some(target.revision.as_str())
                && request.strategy == Strategy::ZeroDowntime
            {
                continue;
            }
            match obstacle(workload, &asking, labelled, source, request) {
                Some(why) => {
                    plan.by_hand.push(format!("{}: {why}", workload.id));
                    late.push(workload.labels.clone());
                }
                None => going.push(workload),
            }
        }
        let relabelled =
            (labelled && request.strategy == Strategy::ZeroDowntime).then_some(*namespace);
        batches(plan, source, request, target, name, relabelled, &going);
    }
    if request.strategy == Strategy::ZeroDowntime {
        empty_namespaces(plan, snapshot, source, target, workloads);
    }
    late
}

/// Why a workload is not restarted.
fn obstacle(
    workload: &Workload,
    asking: &Asking<'_>,
    labelled: bool,
    source: &Source<'_>,
    request: &Request,
) -> Option<String> {
    if workload.rollout == Rollout::AllGoFirst && !request.accept_interruption {
        return Some("all its pods go before new ones come (strategy Recreate)".to_owned());
    }
    let label = |key: &str| workload.labels.get(key).map(String::as_str);
    let pod_asks = match (label(REV), label(INJECT)) {
        (Some(rev), _) => answers(source, rev),
        (None, inject) => inject == Some("true") && answers(source, "default"),
    };
    let asks = labelled || (asking.injection.is_none() && asking.rev.is_none() && pod_asks);
    (!asks).then(|| "nothing asks for its sidecar any more: a restart would lose it".to_owned())
}

fn batches(
    plan: &mut Plan,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
    name: &str,
    relabelled: Option<&Object>,
    workloads: &[&Workload],
) {
    let labels = relabelled.map(|namespace| Relabel::new(namespace, target));
    if workloads.is_empty() && labels.is_none() {
        return;
    }
    let chunks: Vec<&[&Workload]> = if workloads.is_empty() {
        vec![&[]]
    } else {
        workloads.chunks(request.batch.max(1)).collect()
    };
    for (number, chunk) in chunks.into_iter().enumerate() {
        let id = if number == 0 {
            format!("refresh-{name}")
        } else {
            format!("refresh-{name}-{}", number + 1)
        };
        let mut step = Step::new(
            &id,
            Phase::SideBySide,
            &format!("restart {} workloads of namespace {name}", chunk.len()),
            "A sidecar learns of another istiod only when its pod is made anew.",
        );
        step.before.push(Check::OneInjector);
        if let Some(labels) = &labels {
            if number == 0 {
                step.effect.push(labels.forward());
            }
            step.undo.push(labels.back());
        }
        for workload in chunk {
            restart(
                &mut step,
                plan,
                workload,
                labels.is_some(),
                source,
                request,
                target,
            );
        }
        step.after.push(Check::OneInjector);
        plan.steps.push(step);
    }
}

fn restart(
    step: &mut Step,
    plan: &Plan,
    workload: &Workload,
    by_namespace: bool,
    source: &Source<'_>,
    request: &Request,
    target: &Target,
) {
    let (mut set, mut unset) = (BTreeMap::new(), BTreeMap::new());
    // Where the namespace says nothing, the pod's own label decides.
    if !by_namespace && request.strategy == Strategy::ZeroDowntime {
        set.insert(REV.to_owned(), Some(target.revision.clone()));
        unset.insert(REV.to_owned(), workload.labels.get(REV).cloned());
    }
    let (old, new) = (source.plane.revision.label(), target.revision.as_str());
    for (actions, labels, mark, revision) in [
        (&mut step.effect, set, Some(plan.id.clone()), new),
        (&mut step.undo, unset, None, old),
    ] {
        actions.push(Action::Restart {
            workload: workload.id.clone(),
            labels,
            mark,
            ask_budgets: workload.rollout != Rollout::SurgeFirst,
        });
        if workload.rollout == Rollout::ByEviction {
            actions.push(Action::Evict {
                workload: workload.id.clone(),
                revision: revision.to_owned(),
            });
        }
    }
    let refreshed = |revision: &str, istiod: &str| Check::Refreshed {
        workload: workload.id.clone(),
        revision: Some(revision.to_owned()),
        istiod: istiod.to_owned(),
        by: revision.to_owned(),
    };
    step.after.push(refreshed(new, &target.namespace));
    step.undone.push(refreshed(old, &source.plane.namespace));
}

/// The labels of a namespace, for the time in which two control planes run.
struct Relabel {
    object: ObjectRef,
    injection: Option<String>,
    rev: Option<String>,
    to: String,
}

impl Relabel {
    fn new(namespace: &Object, target: &Target) -> Self {
        Self {
            object: namespace.id(),
            injection: namespace.label(INJECTION).map(str::to_owned),
            rev: namespace.label(REV).map(str::to_owned),
            to: target.revision.clone(),
        }
    }

    /// Both labels in one write: in between, nobody would inject.
    fn forward(&self) -> Action {
        self.patch(&Value::Null, &self.to.as_str().into())
    }

    fn back(&self) -> Action {
        self.patch(&json!(self.injection), &json!(self.rev))
    }

    fn patch(&self, injection: &Value, rev: &Value) -> Action {
        Action::Patch {
            object: self.object.clone(),
            patch: json!({"metadata": {"labels": {INJECTION: injection, REV: rev}}}),
        }
    }

    fn checks(&self, injection: &Value, rev: &Value) -> [Check; 2] {
        [(INJECTION, injection), ("istio.io~1rev", rev)].map(|(label, equals)| Check::Field {
            object: self.object.clone(),
            pointer: format!("/metadata/labels/{label}"),
            equals: equals.clone(),
        })
    }
}

/// Namespaces that ask for sidecars and have none yet.
fn empty_namespaces(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    target: &Target,
    workloads: &[Workload],
) {
    let used: BTreeSet<Option<&str>> = workloads
        .iter()
        .filter(|w| w.revision.is_some())
        .map(|w| w.id.namespace.as_deref())
        .collect();
    let namespaces = snapshot.objects.list("", "Namespace");
    let empty: Vec<Relabel> = namespaces
        .filter(|n| Asking::of(n).is_of(source) && !used.contains(&Some(n.name())))
        .map(|n| Relabel::new(n, target))
        .collect();
    let mut step = Step::new(
        "relabel-namespaces",
        Phase::SideBySide,
        &format!(
            "have {} namespaces without sidecars injected by the new istiod",
            empty.len()
        ),
        "Their next pods get the new sidecar at once.",
    );
    for labels in empty {
        step.effect.push(labels.forward());
        step.after
            .extend(labels.checks(&Value::Null, &labels.to.as_str().into()));
        step.undo.push(labels.back());
        step.undone
            .extend(labels.checks(&json!(labels.injection), &json!(labels.rev)));
    }
    if !step.is_empty() {
        plan.steps.push(step);
    }
}

/// Gives namespaces the labels back that they had: the tags answer them by now.
pub(super) fn restore_labels(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    target: &Target,
) {
    let mut step = Step::new(
        "labels",
        Phase::Switch,
        "give namespaces the labels back that they had",
        "The new control plane answers them by its tags: nothing is restarted, and nobody who labels \
         namespaces has to learn a new name.",
    );
    step.before.push(Check::OneInjector);
    let namespaces = snapshot.objects.list("", "Namespace");
    for labels in namespaces
        .filter(|n| Asking::of(n).is_of(source))
        .map(|n| Relabel::new(n, target))
    {
        step.effect.push(labels.back());
        step.after
            .extend(labels.checks(&json!(labels.injection), &json!(labels.rev)));
        step.undo.push(labels.forward());
        step.undone
            .extend(labels.checks(&Value::Null, &labels.to.as_str().into()));
    }
    if !step.is_empty() {
        plan.steps.push(step);
    }
}
