//! What an apply would do; pure.

use std::fmt;

use istio_api::{ObjectRef, kinds};
use serde::Serialize;
use serde_json::Value;

use crate::compare;
use crate::object::Object;
use crate::owner::{APPLIED_HASH, Inventory, MANAGED_BY};
use crate::prepare::prepare;
use crate::query::Observed;
use crate::set::{Conflict, ObjectsSet};

/// What an apply would do.
///
/// `Display` is for people, `Serialize` for programs. Values of Secrets are `[redacted]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Objects that do not exist.
    pub create: Vec<ObjectRef>,
    /// Objects that differ.
    pub change: Vec<Change>,
    /// Objects that are as desired.
    pub keep: Vec<ObjectRef>,
    /// Objects of the inventory that are no longer desired, in the order they would be deleted.
    pub prune: Vec<ObjectRef>,
    /// Objects that somebody else holds.
    pub conflict: Vec<Conflict>,
}

/// An object that differs from the desired one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The object.
    pub object: ObjectRef,
    /// The fields that differ. Empty when only the recorded hash does: a field that was desired
    /// before no longer is.
    pub fields: Vec<FieldDiff>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDiff {
    /// As in `spec.template.spec.containers[discovery].image`.
    pub path: String,
    /// The live value as JSON, shortened; `None` when there is none.
    pub live: Option<String>,
    /// The desired value as JSON, shortened.
    pub desired: String,
}

impl Plan {
    /// Whether an apply would write or delete anything.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.change.is_empty() && self.prune.is_empty()
    }
}

/// What is to be done with one desired object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does not exist.
    Create,
    /// It exists and differs. `adopt`: it is not ours yet, and is taken over.
    Change { fields: Vec<FieldDiff>, adopt: bool },
    /// It is as desired.
    Keep,
    /// It is being deleted: it cannot be written, and will have to be created again.
    Terminating,
    /// It is somebody else's.
    Conflict { owner: String },
}

/// Compares a prepared object with the live one.
pub(crate) fn verdict(prepared: &Object, live: Option<&Object>, inventory: &Inventory) -> Verdict {
    let Some(live) = live else {
        return Verdict::Create;
    };
    if prepared.kind() == "Namespace" {
        return Verdict::Keep;
    }
    if prepared.kind() == "CustomResourceDefinition" && is_shared(prepared, live, inventory) {
        return Verdict::Keep;
    }
    if let Some(owner) = inventory.foreign_owner(live) {
        return Verdict::Conflict { owner };
    }
    if live.is_terminating() {
        return Verdict::Terminating;
    }
    let adopt = !inventory.owns(live);
    // Definitions are too large to read in each hook: the hash in their metadata stands for them.
    let fields = if prepared.kind() == "CustomResourceDefinition" {
        compare::differences(live.value(), &metadata_of(prepared))
    } else {
        compare::differences(live.value(), prepared.value())
    };
    let same_hash = live.annotation(APPLIED_HASH) == prepared.annotation(APPLIED_HASH);
    if fields.is_empty() && same_hash && !adopt {
        Verdict::Keep
    } else {
        let fields = fields
            .into_iter()
            .filter(|diff| !diff.path.contains(APPLIED_HASH))
            .collect();
        Verdict::Change { fields, adopt }
    }
}

/// Whether a definition is left as it is because this charm wrote it in a version at least as new.
///
/// Applications of one charm share definitions, and definitions outlive applications. The newest
/// version wins: an older one lacks fields, and the server drops unknown fields of everybody's objects.
fn is_shared(prepared: &Object, live: &Object, inventory: &Inventory) -> bool {
    if live.label(MANAGED_BY) != Some(&inventory.owner.charm) {
        return false;
    }
    let (ours, theirs) = (version(prepared), version(live));
    if inventory.owns(live) {
        theirs > ours
    } else {
        theirs >= ours
    }
}

/// The numbers of the label `app.kubernetes.io/version`: `1.31.0-rc.1` is 1, 31, 0, 1.
fn version(object: &Object) -> Vec<u64> {
    let text = object
        .label("app.kubernetes.io/version")
        .unwrap_or_default();
    text.split(['.', '-', '+'])
        .filter_map(|part| part.parse().ok())
        .collect()
}

fn metadata_of(object: &Object) -> Value {
    serde_json::json!({ "metadata": object.pointer("/metadata") })
}

/// The live objects of the inventory that nothing wants any more, in the order of deletion.
///
/// Never Namespaces and definitions: both take what is inside them along. Never what a controller
/// made (`ownerReferences`): controllers copy labels, so an `EndpointSlice` carries those of its Service.
pub(crate) fn prunable<'a>(
    live: &'a Observed,
    inventory: &Inventory,
    is_wanted: impl Fn(&ObjectRef) -> bool,
) -> Vec<&'a Object> {
    let labels = inventory.labels();
    let mut prunable: Vec<&Object> = live
        .objects()
        .filter(|object| {
            labels
                .iter()
                .all(|(key, value)| object.label(key) == Some(value))
                && !matches!(object.kind(), "Namespace" | "CustomResourceDefinition")
                && kinds::TABLE
                    .iter()
                    .any(|row| row.group == object.group() && row.kind == object.kind())
                && object.pointer("/metadata/ownerReferences").is_none()
                && !object.is_terminating()
                && !is_wanted(&object.id())
        })
        .collect();
    prunable.sort_by_key(|object| std::cmp::Reverse(order(object)));
    prunable
}

/// The place of an object in the order of application.
pub(crate) fn order(object: &Object) -> (u8, ObjectRef) {
    (kinds::rank_of(object.group(), object.kind()), object.id())
}

/// What an apply of `set` would do to `live`; pure.
///
/// `live` must hold the desired objects that exist and all objects with the inventory's labels
/// (of definitions the metadata is enough). Conflicts between field managers are not seen here: only
/// the server knows them, and [`crate::Engine::plan`] asks it.
pub fn plan(set: &ObjectsSet, live: &Observed) -> Plan {
    let mut plan = Plan::default();
    let mut wanted: Vec<ObjectRef> = set.retain.clone();
    for stage in &set.stages {
        let mut objects: Vec<&Object> = stage.objects.iter().collect();
        objects.sort_by_cached_key(|object| order(object));
        for object in objects {
            let id = object.id();
            wanted.push(id.clone());
            match verdict(
                &prepare(object, &set.inventory),
                live.find(&id),
                &set.inventory,
            ) {
                Verdict::Create | Verdict::Terminating => plan.create.push(id),
                Verdict::Change { fields, adopt: _ } => {
                    plan.change.push(Change { object: id, fields });
                }
                Verdict::Keep => plan.keep.push(id),
                Verdict::Conflict { owner } => {
                    plan.conflict.push(Conflict {
                        object: id,
                        owner,
                        fields: Vec::new(),
                    });
                }
            }
        }
    }
    if plan.conflict.is_empty() {
        let is_wanted = |id: &ObjectRef| wanted.iter().any(|wanted| wanted.same_object(id));
        plan.prune = prunable(live, &set.inventory, is_wanted)
            .iter()
            .map(|o| o.id())
            .collect();
    }
    plan
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in &self.create {
            writeln!(f, "create {object}")?;
        }
        for Change { object, fields } in &self.change {
            writeln!(f, "change {object}")?;
            for FieldDiff {
                path,
                live,
                desired,
            } in fields
            {
                writeln!(
                    f,
                    "  {path}: {} -> {desired}",
                    live.as_deref().unwrap_or("(absent)")
                )?;
            }
        }
        for object in &self.prune {
            writeln!(f, "prune {object}")?;
        }
        for conflict in &self.conflict {
            writeln!(f, "conflict {conflict}")?;
        }
        write!(f, "{} unchanged", self.keep.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::owner::Owner;
    use crate::set::Stage;

    fn inventory() -> Inventory {
        Inventory {
            owner: Owner {
                charm: "istio-k8s".to_owned(),
                model_uuid: "11-22".to_owned(),
                app: "meshy".to_owned(),
            },
            name: "control-plane".to_owned(),
        }
    }

    fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Object {
        let mut metadata = json!({"name": name});
        let mut value = json!({"apiVersion": api_version, "kind": kind});
        let scoped = kinds::lookup(istio_api::split_api_version(api_version).0, kind);
        if scoped.is_some_and(kinds::Kind::is_namespaced) {
            metadata["namespace"] = "lab".into();
        }
        value["metadata"] = metadata;
        value["spec"] = spec;
        Object::new(value).expect("an object")
    }

    fn service(name: &str, spec: Value) -> Object {
        object("v1", "Service", name, spec)
    }

    fn set(objects: Vec<Object>) -> ObjectsSet {
        ObjectsSet {
            inventory: inventory(),
            stages: vec![Stage::new("all", objects)],
            retain: Vec::new(),
            wait: Duration::ZERO,
            whole: false,
        }
    }

    fn ours(object: &Object) -> Object {
        prepare(object, &inventory())
    }

    fn check(desired: Vec<Object>, live: Vec<Object>, expect: &str) {
        let plan = plan(&set(desired), &Observed::from_objects(live));
        assert_eq!(plan.to_string(), expect);
    }

    #[test]
    fn a_plan_says_what_is_created_changed_kept_and_pruned() {
        let kept = service("kept", json!({"a": 1}));
        let mut extended = ours(&kept);
        extended.value_mut()["spec"]["clusterIP"] = "10.0.0.1".into();
        check(
            vec![
                service("new", json!({})),
                service("changed", json!({"a": 2})),
                kept,
            ],
            vec![
                ours(&service("changed", json!({"a": 1}))),
                extended,
                ours(&service("old", json!({}))),
            ],
            "create Service lab/new\nchange Service lab/changed\n  spec.a: 1 -> 2\n\
             prune Service lab/old\n1 unchanged",
        );
    }

    #[test]
    fn a_field_that_is_no_longer_desired_is_a_change() {
        check(
            vec![service("a", json!({"a": 1}))],
            vec![ours(&service("a", json!({"a": 1, "b": 2})))],
            "change Service lab/a\n0 unchanged",
        );
    }

    #[test]
    fn foreign_objects_are_conflicts_and_keep_everything_from_being_pruned() {
        check(
            vec![service("a", json!({"a": 1}))],
            vec![
                service("a", json!({"a": 1})),
                ours(&service("old", json!({}))),
            ],
            "conflict Service lab/a belongs to nobody known\n0 unchanged",
        );
    }

    #[test]
    fn namespaces_and_definitions_are_never_pruned_and_namespaces_never_changed() {
        let namespace = object("v1", "Namespace", "istio-lab", json!({}));
        let mut marked = namespace.clone();
        for (key, value) in inventory().labels() {
            marked.set_label(key, value);
        }
        let crd = object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "a.b",
            json!({}),
        );
        check(vec![], vec![marked.clone(), ours(&crd)], "0 unchanged");
        check(vec![namespace], vec![marked], "1 unchanged");
    }

    #[test]
    fn of_definitions_that_applications_of_one_charm_share_the_newest_stays() {
        let crd = |version: &str| {
            let mut crd = object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "a.b",
                json!({}),
            );
            crd.set_label("app.kubernetes.io/version", version);
            crd
        };
        let siblings = |version: &str| {
            let mut live = ours(&crd(version));
            live.set_label(crate::owner::APP, "sibling");
            live
        };
        let verdict = |live: Object, desired: &str| {
            plan(&set(vec![crd(desired)]), &Observed::from_objects([live])).to_string()
        };
        assert_eq!(verdict(siblings("1.31.0"), "1.31.0"), "1 unchanged");
        assert_eq!(verdict(siblings("1.31.0"), "1.30.9"), "1 unchanged");
        assert!(verdict(siblings("1.9.0"), "1.31.0").starts_with("change"));
        assert_eq!(verdict(ours(&crd("1.31.0")), "1.30.9"), "1 unchanged");
        assert!(verdict(ours(&crd("1.30.9")), "1.31.0").starts_with("change"));
    }

    #[test]
    fn definitions_without_another_owner_are_taken_over_and_compared_by_hash() {
        let crd = |spec| {
            object(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "a.b",
                spec,
            )
        };
        let metadata_only = |object: &Object| {
            let mut value = object.value().clone();
            value.as_object_mut().expect("fields").remove("spec");
            Object::new(value).expect("an object")
        };
        let desired = crd(json!({"x": 1}));
        check(
            vec![desired.clone()],
            vec![metadata_only(&ours(&desired))],
            "1 unchanged",
        );
        let older = metadata_only(&ours(&crd(json!({"x": 0}))));
        check(
            vec![desired.clone()],
            vec![older],
            "change CustomResourceDefinition a.b\n0 unchanged",
        );
        let orphan = plan(
            &set(vec![desired.clone()]),
            &Observed::from_objects([metadata_only(&desired)]),
        );
        assert_eq!(orphan.change.len(), 1);
        let mut helms = metadata_only(&desired);
        helms.set_annotation("meta.helm.sh/release-name", "base");
        check(
            vec![desired],
            vec![helms],
            "conflict CustomResourceDefinition a.b belongs to Helm release ?/base\n0 unchanged",
        );
    }

    #[test]
    fn what_is_retained_or_made_by_a_controller_is_not_pruned() {
        let retained = service("canary", json!({}));
        let mut slice = ours(&object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "a-x1",
            json!({}),
        ));
        slice.value_mut()["metadata"]["ownerReferences"] = json!([{"kind": "Service"}]);
        let live = Observed::from_objects([ours(&retained), slice]);
        let mut set = set(vec![]);
        set.retain = vec![ObjectRef::namespaced("v1", "Service", "lab", "canary")];
        assert_eq!(plan(&set, &live), Plan::default());
    }

    #[test]
    fn pruning_goes_from_webhooks_to_identities() {
        let webhook = object(
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "w",
            json!({}),
        );
        let account = object("v1", "ServiceAccount", "a", json!({}));
        let live = [
            account,
            object("apps/v1", "Deployment", "d", json!({})),
            webhook,
        ];
        check(
            vec![],
            live.iter().map(ours).collect(),
            "prune MutatingWebhookConfiguration w\nprune Deployment lab/d\nprune ServiceAccount lab/a\n\
             0 unchanged",
        );
    }
}
