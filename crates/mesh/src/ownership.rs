//! By what an owner finds the objects that it would change or delete, and how an object is taken out
//! of its reach.
//!
//! Installers do not record what they made where others can see it: they mark the objects, and look
//! for the marks when they uninstall. An object that changes hands has to lose the old owner's marks,
//! or it goes with the old owner.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

/// A kind of owner that leaves marks.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Former {
    /// A Helm release.
    Helm,
    /// istioctl; `istioctl uninstall --purge` deletes whatever carries its component label, CRDs too.
    Istioctl,
    /// An operator: Sail's, or one installed by the Operator Lifecycle Manager.
    Operator,
    /// A charm that finds its objects by the labels of the `lightkube` extensions.
    Charm,
}

impl Former {
    /// Every kind of owner.
    pub const ALL: [Self; 4] = [Self::Helm, Self::Istioctl, Self::Operator, Self::Charm];

    /// As a parameter names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Helm => "helm",
            Self::Istioctl => "istioctl",
            Self::Operator => "operator",
            Self::Charm => "charm",
        }
    }

    /// Labels by which it finds its objects.
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Helm => &[],
            Self::Istioctl => &[
                "install.operator.istio.io/owning-resource",
                "install.operator.istio.io/owning-resource-namespace",
                "operator.istio.io/component",
                "operator.istio.io/managed",
                "operator.istio.io/version",
            ],
            Self::Operator => &["olm.owner", "olm.owner.kind", "olm.owner.namespace"],
            Self::Charm => &[
                "app.istio-pilot.io/is-workload-entity",
                "app.juju.is/created-by",
                "kubernetes-resource-handler-scope",
            ],
        }
    }

    fn annotations(self) -> &'static [&'static str] {
        match self {
            Self::Helm => &[
                "meta.helm.sh/release-name",
                "meta.helm.sh/release-namespace",
            ],
            Self::Istioctl | Self::Operator | Self::Charm => &[],
        }
    }

    fn is_manager(self, managed_by: &str) -> bool {
        match self {
            Self::Helm => managed_by == "Helm",
            Self::Operator => managed_by.ends_with("-operator"),
            Self::Istioctl | Self::Charm => false,
        }
    }

    /// Whether an owner reference is its own: such an object is deleted with its owner.
    fn is_reference(self, api_version: &str) -> bool {
        self == Self::Operator
            && [
                "sailoperator.io/",
                "operators.coreos.com/",
                "operator.istio.io/",
            ]
            .iter()
            .any(|group| api_version.starts_with(group))
    }
}

impl fmt::Display for Former {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Former {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = Self::ALL.into_iter().find(|former| former.as_str() == text);
        named.ok_or(())
    }
}

/// Label of whoever manages an object.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label by which charms tell their objects from those of their siblings; Helm's charts use it too.
const INSTANCE: &str = "app.kubernetes.io/instance";

/// Whose marks an object carries.
fn marks(object: &Value) -> BTreeSet<Former> {
    let has = |of: &str, key: &str| !object["metadata"][of][key].is_null();
    let manager = object["metadata"]["labels"][MANAGED_BY].as_str();
    let marked = |former: &Former| {
        former.labels().iter().any(|key| has("labels", key))
            || former
                .annotations()
                .iter()
                .any(|key| has("annotations", key))
            || manager.is_some_and(|name| former.is_manager(name))
            || references(object).any(|reference| former.is_reference(reference))
    };
    Former::ALL.into_iter().filter(marked).collect()
}

fn references(object: &Value) -> impl Iterator<Item = &str> {
    let all = object["metadata"]["ownerReferences"].as_array();
    all.into_iter()
        .flatten()
        .filter_map(|reference| reference["apiVersion"].as_str())
}

/// The merge patch that takes an object out of the reach of these owners; none where it is out of
/// reach already.
pub fn release(object: &Value, from: &BTreeSet<Former>) -> Option<Value> {
    let marked = marks(object);
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    let present = |of: &str, key: &str| !object["metadata"][of][key].is_null();
    let manager = object["metadata"]["labels"][MANAGED_BY].as_str();
    let mut kept = Vec::new();
    let mut referred = false;
    for former in marked.intersection(from) {
        for key in former.labels().iter().filter(|key| present("labels", key)) {
            labels.insert((*key).to_owned(), Value::Null);
        }
        for key in former
            .annotations()
            .iter()
            .filter(|key| present("annotations", key))
        {
            annotations.insert((*key).to_owned(), Value::Null);
        }
        if manager.is_some_and(|name| former.is_manager(name)) {
            labels.insert(MANAGED_BY.to_owned(), Value::Null);
        }
        if *former == Former::Charm && present("labels", "kubernetes-resource-handler-scope") {
            labels.insert(INSTANCE.to_owned(), Value::Null);
        }
        referred |= references(object).any(|reference| former.is_reference(reference));
    }
    let mut metadata = Map::new();
    if !labels.is_empty() {
        metadata.insert("labels".to_owned(), Value::Object(labels));
    }
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if referred {
        let all = object["metadata"]["ownerReferences"].as_array();
        let foreign = |reference: &&Value| {
            let version = reference["apiVersion"].as_str().unwrap_or_default();
            !from.iter().any(|former| former.is_reference(version))
        };
        kept.extend(all.into_iter().flatten().filter(foreign).cloned());
        metadata.insert("ownerReferences".to_owned(), Value::Array(kept));
    }
    (!metadata.is_empty()).then(|| json!({ "metadata": metadata }))
}

/// Whether a custom resource definition is one of Istio's, by its name.
pub fn is_istio_definition(name: &str) -> bool {
    name.ends_with(".istio.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
    fn object(metadata: Value) -> Value {
        json!({"kind": "Service", "metadata": metadata})
    }

    #[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
    #[track_caller]
    fn check(metadata: Value, marked: &[Former], patch: Value) {
        let object = object(metadata);
        assert_eq!(marks(&object), marked.iter().copied().collect());
        let patch = (!patch.is_null()).then(|| json!({"metadata": patch}));
        assert_eq!(release(&object, &Former::ALL.into()), patch);
        if let Some(patch) = patch {
            let mut released = object;
            merge(&mut released, &patch);
            assert_eq!(marks(&released), BTreeSet::new(), "{released}");
        }
    }

    fn merge(into: &mut Value, patch: &Value) {
        for (key, value) in patch.as_object().unwrap() {
            match value {
                Value::Null => {
                    into.as_object_mut().unwrap().remove(key);
                }
                Value::Object(_) => merge(&mut into[key], value),
                other => into[key] = other.clone(),
            }
        }
    }

    #[test]
    fn a_helm_release_loses_its_annotations_and_its_name() {
        check(
            json!({
                "labels": {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "istiod"},
                "annotations": {
                    "meta.helm.sh/release-name": "istiod", "meta.helm.sh/release-namespace": "mesh-lab",
                    "mine": "x",
                },
            }),
            &[Former::Helm],
            json!({
                "labels": {"app.kubernetes.io/managed-by": null},
                "annotations": {
                    "meta.helm.sh/release-name": null, "meta.helm.sh/release-namespace": null,
                },
            }),
        );
    }

    #[test]
    fn nothing_is_left_that_a_stray_purge_would_find() {
        check(
            json!({"labels": {"operator.istio.io/component": "Pilot", "operator.istio.io/managed": "Reconcile", "app": "istiod"}}),
            &[Former::Istioctl],
            json!({"labels": {"operator.istio.io/component": null, "operator.istio.io/managed": null}}),
        );
    }

    #[test]
    fn an_operators_references_go_and_those_of_others_stay() {
        let own = json!({"apiVersion": "sailoperator.io/v1", "kind": "IstioRevision"});
        let other = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        check(
            json!({"labels": {"app.kubernetes.io/managed-by": "sail-operator"}, "ownerReferences": [own, other]}),
            &[Former::Operator],
            json!({"labels": {"app.kubernetes.io/managed-by": null}, "ownerReferences": [other]}),
        );
    }

    #[test]
    fn a_charms_scope_goes_with_the_instance_that_it_selects_by() {
        check(
            json!({"labels": {"kubernetes-resource-handler-scope": "istio-crds", "app.kubernetes.io/instance": "lab-mesh"}}),
            &[Former::Charm],
            json!({"labels": {"kubernetes-resource-handler-scope": null, "app.kubernetes.io/instance": null}}),
        );
        check(
            json!({"labels": {"app.juju.is/created-by": "istio-pilot"}}),
            &[Former::Charm],
            json!({"labels": {"app.juju.is/created-by": null}}),
        );
    }

    #[test]
    fn only_the_owners_that_are_named_lose_their_marks() {
        let both = object(json!({
            "labels": {"operator.istio.io/component": "Pilot"},
            "annotations": {"meta.helm.sh/release-name": "istiod"},
        }));
        assert_eq!(
            release(&both, &BTreeSet::from([Former::Helm])),
            Some(json!({"metadata": {"annotations": {"meta.helm.sh/release-name": null}}}))
        );
        check(json!({"labels": {"app": "web"}}), &[], Value::Null);
    }

    #[test]
    fn definitions_are_istios_by_their_name() {
        assert!(is_istio_definition("gateways.networking.istio.io"));
        assert!(!is_istio_definition("gateways.gateway.networking.k8s.io"));
    }
}
