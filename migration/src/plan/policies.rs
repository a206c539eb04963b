//! What the root namespace means, and how that meaning moves with it.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::ObjectRef;
use kube_apply::Object;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::data::{Action, Check, Phase, Plan, Step};
use super::target::Target;
use crate::inventory::{Snapshot, Source};

/// The kinds whose objects mean more in the root namespace.
pub(crate) const KINDS: [(&str, &str); 10] = [
    ("security.istio.io", "PeerAuthentication"),
    ("security.istio.io", "RequestAuthentication"),
    ("security.istio.io", "AuthorizationPolicy"),
    ("telemetry.istio.io", "Telemetry"),
    ("networking.istio.io", "EnvoyFilter"),
    ("extensions.istio.io", "WasmPlugin"),
    ("extensions.istio.io", "TrafficExtension"),
    ("networking.istio.io", "Sidecar"),
    ("networking.istio.io", "ProxyConfig"),
    ("networking.istio.io", "DestinationRule"),
];
/// Kinds of which two equal objects do something twice.
const DOUBLING: [&str; 3] = ["EnvoyFilter", "WasmPlugin", "TrafficExtension"];
/// Label of copies: the namespace of the original.
pub(crate) const COPY_OF: &str = "istio-migrate/copy-of";

/// What an object in the root namespace means for the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Class {
    /// Selects nothing: holds for the whole mesh, and has to be in the root namespace.
    P1,
    /// Holds in its own namespace only: stays.
    P2,
    /// Selects workloads of other namespaces, or none yet: moves.
    P3,
}

/// The classes of the objects in `root`.
pub fn classify(snapshot: &Snapshot, root: &str) -> BTreeMap<ObjectRef, Class> {
    let mut found = BTreeMap::new();
    for (group, kind) in KINDS {
        let list = snapshot.objects.list(group, kind);
        for object in list.filter(|object| object.namespace() == Some(root)) {
            if object.label(COPY_OF).is_none() {
                found.insert(object.id(), class(object, snapshot, root));
            }
        }
    }
    found
}

fn class(object: &Object, snapshot: &Snapshot, root: &str) -> Class {
    match meaning(object, root) {
        Meaning::Of(class) => class,
        Meaning::OfPods(selector) => {
            let selected = snapshot.pods.iter();
            let selected = selected.filter(|pod| matches(&selector, &pod.labels));
            class_of_pods(selected.map(|pod| pod.namespace.as_str()), root)
        }
    }
}

/// What an object in the root namespace means, as far as it tells by itself.
pub(crate) enum Meaning {
    /// This.
    Of(Class),
    /// It depends on where the pods with these labels are.
    OfPods(Map<String, Value>),
}

/// What an object in the root namespace means.
pub(crate) fn meaning(object: &Object, root: &str) -> Meaning {
    let spec = &object.value()["spec"];
    if object.kind() == "DestinationRule" {
        return Meaning::Of(class_of_rule(spec, root));
    }
    if !spec["targetRef"].is_null() || !spec["targetRefs"].is_null() {
        return Meaning::Of(Class::P2);
    }
    let selector = selector(object);
    if selector.is_empty() {
        return Meaning::Of(Class::P1);
    }
    // A Sidecar or ProxyConfig that selects is one of its own namespace, even in the root namespace.
    if matches!(object.kind(), "Sidecar" | "ProxyConfig") {
        return Meaning::Of(Class::P2);
    }
    Meaning::OfPods(selector)
}

/// What an object means that selects pods in these namespaces.
pub(crate) fn class_of_pods<'a>(namespaces: impl Iterator<Item = &'a str>, root: &str) -> Class {
    let selected: BTreeSet<&str> = namespaces.collect();
    if selected.len() == 1 && selected.contains(root) {
        Class::P2
    } else {
        Class::P3
    }
}

/// Rules for services of their own namespace are found there by every client; the others are found by
/// clients without a rule of their own because this is the root namespace.
fn class_of_rule(spec: &Value, root: &str) -> Class {
    let host = spec["host"].as_str().unwrap_or_default();
    let own = !host.contains('.')
        || host == format!("{host_name}.{root}", host_name = first(host))
        || host.ends_with(&format!(".{root}.svc"))
        || host.ends_with(&format!(".{root}.svc.cluster.local"));
    if own || !spec["workloadSelector"].is_null() {
        Class::P2
    } else {
        Class::P1
    }
}

fn first(host: &str) -> &str {
    host.split('.').next().unwrap_or_default()
}

fn selector(object: &Object) -> Map<String, Value> {
    let spec = &object.value()["spec"];
    let found = [
        "/selector/matchLabels",
        "/workloadSelector/labels",
        "/workloadSelector/matchLabels",
    ]
    .into_iter()
    .find_map(|pointer| spec.pointer(pointer)?.as_object());
    found.cloned().unwrap_or_default()
}

fn matches(selector: &Map<String, Value>, labels: &BTreeMap<String, String>) -> bool {
    selector
        .iter()
        .all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
}

/// What becomes of each: the copy that is made, and when the original goes.
#[derive(Clone, Debug)]
struct Move {
    original: ObjectRef,
    copy: Value,
    /// Whether the original goes with the flip, and not only once the old istiod is drained.
    at_once: bool,
}

/// Labels of pods that stay on the old istiod until it is drained.
pub(super) type Stragglers = Vec<BTreeMap<String, String>>;

fn moves(
    snapshot: &Snapshot,
    source: &Source<'_>,
    target: &Target,
    late: &Stragglers,
) -> Vec<Move> {
    let root = &source.plane.root_namespace;
    let moving = classify(snapshot, root);
    let moving = moving.into_iter().filter(|(_, class)| *class != Class::P2);
    moving
        .filter_map(|(id, _)| {
            let object = snapshot.objects.find(&id)?;
            let selector = selector(object);
            let still_used = late.iter().any(|labels| matches(&selector, labels));
            Some(Move {
                copy: copy(object, snapshot, root, &target.namespace),
                at_once: DOUBLING.contains(&id.kind.as_str()) && !still_used,
                original: id,
            })
        })
        .collect()
}

/// The same object in another namespace, without the labels by which other charms and tools would
/// take it for their own and delete it.
fn copy(object: &Object, snapshot: &Snapshot, from: &str, to: &str) -> Value {
    let labels = object.labels().into_iter().filter(|(key, _)| {
        ![
            "app.kubernetes.io/",
            "app.juju.is/",
            "argocd.",
            "kubernetes-resource-handler",
            "kustomize.",
            "helm.",
            "olm.",
            "istio.io/rev",
        ]
        .iter()
        .any(|foreign| key.starts_with(foreign))
    });
    let mut labels: BTreeMap<&str, &str> = labels.collect();
    labels.insert(COPY_OF, from);
    let taken = |name: &str| {
        let live = snapshot
            .objects
            .get(object.group(), object.kind(), Some(to), name);
        live.is_some_and(|live| live.label(COPY_OF).is_none())
    };
    let mut name = object.name().to_owned();
    if taken(&name) {
        name = format!("{name}-of-{from}");
    }
    json!({
        "apiVersion": object.id().api_version(), "kind": object.kind(),
        "metadata": {"name": name, "namespace": to, "labels": labels},
        "spec": object.value()["spec"],
    })
}

/// Copies the policies, switches the root namespace and moves what may not be there twice.
pub(super) fn steps(
    plan: &mut Plan,
    snapshot: &Snapshot,
    source: &Source<'_>,
    target: &Target,
    late: &Stragglers,
) {
    let root = &source.plane.root_namespace;
    if *root == target.namespace || *root != source.plane.namespace {
        return;
    }
    let moves = moves(snapshot, source, target, late);
    if !moves.is_empty() {
        let mirrored = mirrored(snapshot, root, target, &moves, true);
        plan.steps.push(copying(&moves, mirrored));
    }
    let mirrored = mirrored(snapshot, root, target, &moves, false);
    let names = moves
        .iter()
        .filter(|m| m.original.kind == "AuthorizationPolicy")
        .map(|m| m.original.name.clone());
    let names: Vec<String> = names.collect();
    plan.steps
        .push(flip(root, &names, target, &moves, mirrored));
    let at_once = moves.iter().filter(|m| m.at_once);
    let step = retire(
        "filters",
        "take away the originals of filters that would run twice",
        "A filter in the root namespace and in a workload's own one runs twice there.",
        None,
        at_once,
    );
    plan.steps.extend(step);
}

/// Takes the other originals away; for when nobody reads the old root namespace any more.
pub(super) fn retire_step(
    snapshot: &Snapshot,
    source: &Source<'_>,
    target: &Target,
    late: &Stragglers,
) -> Option<Step> {
    let root = &source.plane.root_namespace;
    if *root == target.namespace || *root != source.plane.namespace {
        return None;
    }
    let moves = moves(snapshot, source, target, late);
    retire(
        "policies-retire",
        "take away the originals of mesh-wide policies",
        "They hold for their own namespace only now, and would go stale there.",
        // Here, not only at the flip: people may have gone on writing to the old place.
        Some(mirrored(snapshot, root, target, &moves, true)),
        moves.iter().filter(|m| !m.at_once),
    )
    .map(|step| Step {
        phase: Phase::Finish,
        ..step
    })
}

fn mirrored(snapshot: &Snapshot, root: &str, target: &Target, moves: &[Move], same: bool) -> Check {
    let classes = classify(snapshot, root).into_iter();
    let stay = classes.filter(|(_, class)| *class == Class::P2);
    Check::Mirrored {
        pairs: moves
            .iter()
            .map(|m| (m.original.clone(), super::guard::id(&m.copy)))
            .collect(),
        stay: stay.map(|(id, _)| id).collect(),
        same,
        from: root.to_owned(),
        to: target.namespace.clone(),
    }
}

fn mirror(Move { original, copy, .. }: &Move) -> Action {
    Action::Mirror {
        original: original.clone(),
        copy: copy.clone(),
    }
}

fn copying(moves: &[Move], mirrored: Check) -> Step {
    let mut step = Step::new(
        "policies",
        Phase::Switch,
        "copy mesh-wide policies into the new root namespace",
        "They mean nothing there yet. Without them, what is denied today would be open once the root \
         namespace changes: measured, 13 forbidden requests in 14 seconds.",
    );
    for moved in moves {
        step.effect.push(mirror(moved));
        let object = super::guard::id(&moved.copy);
        step.undo.push(Action::Delete {
            object: object.clone(),
        });
        step.undone.push(Check::Absent { object });
    }
    step.after.push(mirrored);
    step
}

fn flip(old: &str, policies: &[String], target: &Target, moves: &[Move], mirrored: Check) -> Step {
    let mut step = Step::new(
        "root",
        Phase::Switch,
        "switch the root namespace",
        "istiod reads its mesh configuration again by itself; the same policies hold before and after.",
    );
    step.before.push(mirrored);
    // What somebody has changed since they were copied.
    step.effect.extend(moves.iter().map(mirror));
    let object = target.mesh_config();
    let mesh = |form: &[Value]| {
        let map = form
            .iter()
            .find(|o| super::guard::id(o).same_object(&object));
        map.map_or(Value::Null, |map| map["data"]["mesh"].clone())
    };
    // The mesh key alone: the map holds the networks as well.
    for (form, actions) in [
        (&target.last, &mut step.effect),
        (&target.transitional, &mut step.undo),
    ] {
        actions.push(Action::Patch {
            object: object.clone(),
            patch: json!({"data": {"mesh": mesh(form)}}),
        });
    }
    for (form, checks) in [
        (&target.last, &mut step.after),
        (&target.transitional, &mut step.undone),
    ] {
        checks.push(Check::Field {
            object: object.clone(),
            pointer: "/data/mesh".to_owned(),
            equals: mesh(form),
        });
    }
    // istiod reads a mounted file: what the map says is in force some seconds later.
    let works_with = |root: &str, other: &str| Check::MeshRoot {
        namespace: target.namespace.clone(),
        revision: target.revision.clone(),
        root: root.to_owned(),
        other: other.to_owned(),
        policies: policies.to_vec(),
    };
    step.after.push(works_with(&target.namespace, old));
    step.undone.push(works_with(old, &target.namespace));
    step
}

fn retire<'a>(
    id: &str,
    title: &str,
    why: &str,
    mirrored: Option<Check>,
    moves: impl Iterator<Item = &'a Move>,
) -> Option<Step> {
    let mut step = Step::new(id, Phase::Switch, title, why);
    for Move { original, copy, .. } in moves {
        step.before.push(Check::Exists {
            object: super::guard::id(copy),
        });
        step.effect.push(Action::Delete {
            object: original.clone(),
        });
        step.after.push(Check::Absent {
            object: original.clone(),
        });
        step.undo.push(Action::Restore {
            object: original.clone(),
        });
        step.undone.push(Check::Exists {
            object: original.clone(),
        });
    }
    step.before.extend(mirrored);
    (!step.is_empty()).then_some(step)
}
