//! What belongs to a control plane and comes from no chart: the certificate authority that it was
//! given, and Gateway API's definitions. Pure.

use juju_charm::ModelView;
use kube_apply::{Gate, Object, ObjectRef, ObjectsSet, Stage};
use mesh::control_plane::Settings;
use serde_json::{Value, json};

use crate::observe::{View, inventory};
use crate::validate::Validated;
use crate::work::Objects;
use crate::{authority, gateway_api};

/// Adds it to what is to be applied.
pub fn add(view: &ModelView, validated: &Validated, cluster: &View, objects: &mut Objects) {
    let Validated::Run(installation) = validated else {
        return;
    };
    let settings = &installation.settings;
    let mut sets = vec![&mut objects.set];
    if let Some(replacement) = &mut objects.replacement {
        sets.push(&mut replacement.judged);
        sets.extend(
            replacement
                .fallback
                .as_mut()
                .map(|fallback| &mut fallback.set),
        );
    }
    for set in sets {
        add_to(view, cluster, settings, set);
    }
    if authority::is_awaited(view, cluster) {
        // istiod would make an authority of its own, and that could not be exchanged later.
        objects.set.stages.retain(|stage| {
            stage
                .objects
                .iter()
                .all(|object| object.kind() == "Namespace")
        });
        objects.replacement = None;
        objects.partial = true;
    }
}

fn add_to(view: &ModelView, cluster: &View, settings: &Settings, set: &mut ObjectsSet) {
    let mut first = Vec::new();
    let (definitions, _) = gateway_api::wanted(view, cluster);
    if !definitions.is_empty() {
        let objects = Object::all(definitions).unwrap_or_default();
        first.push(Stage::new("Gateway API definitions", objects).gate(Gate::CrdEstablished));
    }
    match authority::secret(view, cluster, settings) {
        Some((secret, annotation)) => {
            let objects = Object::all([secret]).unwrap_or_default();
            first.push(Stage::new("certificate authority", objects));
            annotate(set, settings, &annotation);
        }
        None => keep(view, cluster, settings, set),
    }
    let after_namespaces = set
        .stages
        .iter()
        .position(|stage| stage.objects.iter().any(|o| o.kind() != "Namespace"))
        .unwrap_or(set.stages.len());
    set.stages.splice(after_namespaces..after_namespaces, first);
}

/// An authority that serves stays, whatever has become of the relation.
fn keep(view: &ModelView, cluster: &View, settings: &Settings, set: &mut ObjectsSet) {
    let given = cluster.surroundings.cacerts.as_ref();
    if given.is_none_or(|secret| !inventory(view).owns(secret)) {
        return;
    }
    let namespace = settings.namespace.as_str();
    set.retain.push(ObjectRef::namespaced(
        "v1",
        "Secret",
        namespace,
        authority::CACERTS,
    ));
    let live = cluster.istiods.iter().find_map(|istiod| {
        let annotations = istiod.pointer("/spec/template/metadata/annotations")?;
        annotations.get(authority::AUTHORITY)
    });
    if let Some(digest) = live {
        annotate(set, settings, &json!({ authority::AUTHORITY: digest }));
    }
}

/// Adds annotations to istiod's pods.
fn annotate(set: &mut ObjectsSet, settings: &Settings, annotations: &Value) {
    let objects = set.stages.iter_mut().flat_map(|stage| &mut stage.objects);
    for object in objects {
        let istiod = object.kind() == "Deployment"
            && object.namespace() == Some(settings.namespace.as_str())
            && object.pointer("/spec/template/metadata/labels/app") == Some(&json!("istiod"));
        if !istiod {
            continue;
        }
        let mut value = object.value().clone();
        let metadata = &mut value["spec"]["template"]["metadata"];
        for (key, text) in annotations.as_object().into_iter().flatten() {
            if !metadata["annotations"].is_object() {
                metadata["annotations"] = json!({});
            }
            metadata["annotations"][key] = text.clone();
        }
        if let Ok(annotated) = Object::new(value) {
            *object = annotated;
        }
    }
}
