//! The guard over definitions, and the labels by which a purge would find what has to stay.
//!
//! Definitions only: a policy that refuses to delete custom objects makes their namespaces hang when
//! somebody deletes those.

use std::collections::BTreeMap;

use istio_api::ObjectRef;
use kube_apply::Object;
use serde_json::{Value, json};

use super::Request;
use super::data::{Action, Check, Phase, Plan, Step};
use crate::api::MANAGER;
use crate::inventory::{PURGED, Snapshot, Source, is_mesh_group};

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const CRD: &str = "CustomResourceDefinition";
/// Name of the policy and of its binding.
const GUARD: &str = "istio-migration-guard";

/// The first steps of every migration.
pub(super) fn steps(plan: &mut Plan, snapshot: &Snapshot, source: &Source<'_>, request: &Request) {
    plan.steps.push(guard(snapshot));
    plan.steps.push(disown(snapshot));
    if request.target.is_some() {
        plan.steps.extend(relabel(snapshot, source));
    }
}

/// The last one.
pub(super) fn last_step(plan: &mut Plan, snapshot: &Snapshot) {
    let mut step = Step::new(
        "unguard",
        Phase::Finish,
        "lift the guard over definitions",
        "A purge finds no definition any more: to delete one is an administrator's decision again.",
    );
    step.before.extend(not_purged(snapshot));
    let [policy, binding] = policy(GUARD, &Value::Null);
    for object in [binding, policy] {
        step.effect.push(Action::Delete {
            object: id(&object),
        });
        step.after.push(Check::Absent {
            object: id(&object),
        });
    }
    step.forward_only = true;
    plan.steps.push(step);
}

fn guard(snapshot: &Snapshot) -> Step {
    let mut step = Step::new(
        "guard",
        Phase::Prepare,
        "refuse every deletion of Istio's and Gateway API's definitions",
        "A definition that goes takes every object of its kind with it, in all namespaces; the remove \
         hook of istio-pilot and `istioctl uninstall --purge` delete definitions.",
    );
    let objects = policy(
        GUARD,
        &json!({
            "resourceRules": [{
                "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"],
                "operations": ["DELETE"], "resources": ["customresourcedefinitions"],
            }],
        }),
    );
    for object in &objects {
        step.effect.push(Action::Apply {
            object: object.clone(),
            manager: MANAGER.to_owned(),
        });
        step.undo.insert(0, Action::Delete { object: id(object) });
        step.undone.push(Check::Absent { object: id(object) });
    }
    let definitions = snapshot.objects.list("apiextensions.k8s.io", CRD);
    let first = definitions.map(Object::id).find(|crd| {
        let group = crd.name.split_once('.').map_or("", |(_, group)| group);
        group.ends_with(".istio.io")
    });
    step.after
        .extend(first.map(|object| Check::Undeletable { object }));
    step
}

/// A policy that refuses what `constraints` match, and its binding.
fn policy(name: &str, constraints: &Value) -> [Value; 2] {
    let group = "oldObject.spec.group.endsWith('.istio.io') \
                 || oldObject.spec.group == 'gateway.networking.k8s.io'";
    [
        json!({
            "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": constraints,
                "matchConditions": [{"name": "meshes", "expression": group}],
                "validations": [{
                    "expression": "false",
                    "message": "an Istio migration is under way: its definitions stay until it ends",
                }],
            },
        }),
        json!({
            "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}

/// The policy that keeps single objects with a label, for what an old charm deletes by name.
pub(super) fn keep_policy(name: &str, label: &str) -> [Value; 2] {
    let [mut policy, binding] = policy(
        name,
        &json!({
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"],
                 "resources": ["services", "serviceaccounts"]},
                {"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["DELETE"],
                 "resources": ["deployments"]},
                {"apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["*"],
                 "operations": ["DELETE"], "resources": ["roles", "rolebindings"]},
            ],
        }),
    );
    let labelled =
        format!("has(oldObject.metadata.labels) && '{label}' in oldObject.metadata.labels");
    policy["spec"]["matchConditions"] = json!([{"name": "kept", "expression": labelled}]);
    policy["spec"]["validations"][0]["message"] =
        "this gateway was handed over and keeps its address".into();
    [policy, binding]
}

pub(super) fn id(object: &Value) -> ObjectRef {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    ObjectRef::new(
        text("/apiVersion").unwrap_or_default(),
        text("/kind").unwrap_or_default(),
        text("/metadata/namespace"),
        text("/metadata/name").unwrap_or_default(),
    )
}

fn disown(snapshot: &Snapshot) -> Step {
    let mut step = Step::new(
        "disown",
        Phase::Prepare,
        "take off the labels by which a purge finds what it deletes",
        "`istioctl uninstall --purge` deletes whatever carries operator.istio.io/component, in all \
         namespaces; server-side apply by another manager does not take a label off.",
    );
    step.effect = strip(snapshot);
    for id in snapshot.purgeable() {
        let label = snapshot
            .objects
            .find(&id)
            .and_then(|live| live.label(PURGED));
        step.undo.push(marked(id, Some(label.unwrap_or_default())));
    }
    step.after.extend(not_purged(snapshot));
    step
}

/// Takes the label of a purge off everything that had it.
pub(super) fn strip(snapshot: &Snapshot) -> Vec<Action> {
    let objects = snapshot.purgeable().into_iter();
    objects.map(|id| marked(id, None)).collect()
}

fn marked(object: ObjectRef, label: Option<&str>) -> Action {
    Action::Patch {
        object,
        patch: json!({"metadata": {"labels": {PURGED: label}}}),
    }
}

/// What a purge would have deleted, it does not find; none when there was nothing.
pub(super) fn not_purged(snapshot: &Snapshot) -> Option<Check> {
    let objects = snapshot.purgeable();
    (!objects.is_empty()).then_some(Check::NotPurged { objects })
}

/// Custom objects that name the old revision are read by no other istiod, not even through a tag.
fn relabel(snapshot: &Snapshot, source: &Source<'_>) -> Option<Step> {
    let mut step = Step::new(
        "relabel",
        Phase::Prepare,
        "take istio.io/rev off custom objects that name the old revision",
        "istiod reads only objects without the label or with exactly its own revision; tags do not \
         count. Without the label, both control planes see them, and the default validator checks them.",
    );
    let mut by_label: BTreeMap<ObjectRef, &str> = BTreeMap::new();
    for object in snapshot
        .custom_objects()
        .filter(|o| is_mesh_group(o.group()))
    {
        if let Some(revision) = object
            .label("istio.io/rev")
            .filter(|_| source.is_labelled(object))
        {
            by_label.insert(object.id(), revision);
        }
    }
    for (id, revision) in by_label {
        let patch = |value: Value| json!({"metadata": {"labels": {"istio.io/rev": value}}});
        let field = |equals: Value| Check::Field {
            object: id.clone(),
            pointer: "/metadata/labels/istio.io~1rev".to_owned(),
            equals,
        };
        step.effect.push(Action::Patch {
            object: id.clone(),
            patch: patch(Value::Null),
        });
        step.after.push(field(Value::Null));
        step.undo.push(Action::Patch {
            object: id.clone(),
            patch: patch(revision.into()),
        });
        step.undone.push(field(revision.into()));
    }
    (!step.is_empty()).then_some(step)
}
