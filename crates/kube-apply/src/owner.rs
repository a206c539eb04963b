//! Whose object is this? Owner labels, field managers, and signs of other owners.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::object::Object;

/// Label: the charm that writes the object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label: uuid of the Juju model (names repeat across controllers).
pub const MODEL: &str = "charms.istio-operators.dev/model";
/// Label: Juju application.
pub const APP: &str = "charms.istio-operators.dev/app";
/// Label: inventory of the application.
pub const INVENTORY: &str = "charms.istio-operators.dev/inventory";
/// Annotation: sha256 of the desired state that was applied last.
pub const APPLIED_HASH: &str = "charms.istio-operators.dev/applied-hash";

/// A Juju application as the owner of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Charm name, as in `istio-k8s`.
    pub charm: String,
    /// Uuid of the model.
    pub model_uuid: String,
    /// Application name.
    pub app: String,
}

/// A named set of objects of one owner: the unit of pruning and of field management.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inventory {
    /// Whose.
    pub owner: Owner,
    /// As in `control-plane`.
    pub name: String,
}

impl Inventory {
    /// The field manager, `<charm>/<inventory>`; Kubernetes allows 128 bytes.
    pub fn manager(&self) -> String {
        let mut manager = format!("{}/{}", self.owner.charm, self.name);
        manager.truncate(128);
        manager
    }

    /// The labels that every object of the inventory carries.
    pub fn labels(&self) -> BTreeMap<&'static str, &str> {
        BTreeMap::from([
            (MANAGED_BY, self.owner.charm.as_str()),
            (MODEL, self.owner.model_uuid.as_str()),
            (APP, self.owner.app.as_str()),
            (INVENTORY, self.name.as_str()),
        ])
    }

    /// The labels as a selector, `a=b,c=d`.
    pub fn selector(&self) -> String {
        let pairs: Vec<String> = self
            .labels()
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        pairs.join(",")
    }

    /// Whether `live` belongs to our owner. The inventory may differ: an object that moves from one
    /// inventory of an application to another is still the application's.
    pub fn owns(&self, live: &Object) -> bool {
        live.label(MANAGED_BY) == Some(&self.owner.charm)
            && live.label(MODEL) == Some(&self.owner.model_uuid)
            && live.label(APP) == Some(&self.owner.app)
    }

    /// Who else may write `live`, in a phrase; `None` when we may.
    ///
    /// An object without our labels is foreign. Definitions (CRDs) are the exception: they outlive
    /// every installer, so one without signs of a living owner (Helm release, operator, OLM) is taken
    /// over, and applications of one charm share them (which version stays is the plan's business).
    pub fn foreign_owner(&self, live: &Object) -> Option<String> {
        if self.owns(live) {
            return None;
        }
        let owner = other_owner(live);
        if live.kind() == "CustomResourceDefinition" {
            let sibling = live.label(MANAGED_BY) == Some(&self.owner.charm);
            return owner.filter(|_| !sibling);
        }
        Some(owner.unwrap_or_else(|| match live.label(MANAGED_BY) {
            Some(manager) => manager.to_owned(),
            None => "nobody known".to_owned(),
        }))
    }
}

/// Signs of an owner that would write the object again.
fn other_owner(live: &Object) -> Option<String> {
    if let (Some(app), Some(model)) = (live.label(APP), live.label(MODEL)) {
        return Some(format!("application {app} of model {model}"));
    }
    if let Some(release) = live.annotation("meta.helm.sh/release-name") {
        let namespace = live
            .annotation("meta.helm.sh/release-namespace")
            .unwrap_or("?");
        return Some(format!("Helm release {namespace}/{release}"));
    }
    if let Some(owner) = live.label("olm.owner") {
        return Some(format!("OLM {owner}"));
    }
    if let Some(argo) = live.annotation("argocd.argoproj.io/tracking-id") {
        return Some(format!("Argo CD {argo}"));
    }
    if let Some(name) = live.label("kustomize.toolkit.fluxcd.io/name") {
        return Some(format!("Flux {name}"));
    }
    match live.label(MANAGED_BY) {
        Some(operator) if operator.ends_with("-operator") => Some(operator.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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

    fn live(kind: &str, metadata: Value) -> Object {
        let mut metadata = metadata;
        metadata["name"] = "thing".into();
        Object::new(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata}))
            .expect("object")
    }

    #[test]
    fn an_inventory_is_a_field_manager_and_four_labels() {
        assert_eq!(inventory().manager(), "istio-k8s/control-plane");
        assert_eq!(
            inventory().selector(),
            "app.kubernetes.io/managed-by=istio-k8s,charms.istio-operators.dev/app=meshy,\
             charms.istio-operators.dev/inventory=control-plane,charms.istio-operators.dev/model=11-22"
        );
    }

    #[test]
    fn objects_without_our_labels_are_foreign_but_orphaned_definitions_are_not() {
        let check = |kind, metadata, expect: Option<&str>| {
            let owner = inventory().foreign_owner(&live(kind, metadata));
            assert_eq!(owner.as_deref(), expect);
        };
        let crd = "CustomResourceDefinition";
        let ours = json!({"labels": {MANAGED_BY: "istio-k8s", MODEL: "11-22", APP: "meshy", INVENTORY: "old"}});
        let sibling = json!({"labels": {MANAGED_BY: "istio-k8s", MODEL: "11-22", APP: "other"}});
        let helm = json!({
            "labels": {MANAGED_BY: "Helm"},
            "annotations": {"meta.helm.sh/release-name": "base", "meta.helm.sh/release-namespace": "mesh"},
        });
        check("Service", ours.clone(), None);
        check(crd, ours, None);
        check("Service", json!({}), Some("nobody known"));
        check(
            "Service",
            json!({"labels": {MANAGED_BY: "Helm"}}),
            Some("Helm"),
        );
        check(
            "Service",
            sibling.clone(),
            Some("application other of model 11-22"),
        );
        check(crd, sibling, None);
        let other_charm = json!({"labels": {MANAGED_BY: "other", MODEL: "11-22", APP: "other"}});
        check(crd, other_charm, Some("application other of model 11-22"));
        check(crd, helm, Some("Helm release mesh/base"));
        check(
            crd,
            json!({"labels": {MANAGED_BY: "sail-operator"}}),
            Some("sail-operator"),
        );
        check(
            crd,
            json!({"labels": {"olm.owner": "mesh.v1"}}),
            Some("OLM mesh.v1"),
        );
        check(
            crd,
            json!({"labels": {MANAGED_BY: "Helm", "operator.istio.io/managed": "Reconcile"}}),
            None,
        );
        check(crd, json!({}), None);
    }
}
