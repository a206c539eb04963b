//! The control plane that there is to be, as objects: while two run side by side, and at the end.

use istio_api::ObjectRef;
use kube_apply::Object;
use mesh::control_plane::render::webhooks_of;
use mesh::control_plane::{RenderProblem, Settings, control_plane};
use mesh::discovery::ControlPlane;
use mesh::payload::{ChartName, Payload};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::guard::id;
use super::{Request, Strategy};
use crate::inventory::{PURGED, Snapshot, Source, control_planes};

const ADMISSION: &str = "admissionregistration.k8s.io";
/// Labels by which istioctl knows its own.
const FOREIGN: [&str; 4] = [
    PURGED,
    "operator.istio.io/managed",
    "operator.istio.io/version",
    "install.operator.istio.io/owning-resource",
];

/// A control plane to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Namespace of istiod.
    pub namespace: String,
    /// Revision, `default` for the default one.
    pub revision: String,
    /// Version of Istio.
    pub version: String,
    /// Its objects while the old one runs: the old root namespace, the old name in its certificate.
    pub transitional: Vec<Value>,
    /// Its objects at the end, tags included.
    pub last: Vec<Value>,
}

/// Why there are no objects.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is nothing to take the mesh configuration over from.
    #[error("no istiod in namespace {0}")]
    NoSource(String),
    /// The charts refuse the values.
    #[error("the new control plane does not render")]
    Render(#[from] RenderProblem),
}

impl Target {
    /// What a release makes in place of the control plane in `from`. `settings` are those of the end;
    /// the mesh configuration of the source is taken over where they say nothing.
    ///
    /// # Errors
    /// No control plane in `from`, and values that the charts refuse.
    pub fn of(
        payload: &Payload,
        snapshot: &Snapshot,
        from: &str,
        settings: &Settings,
        strategy: Strategy,
    ) -> Result<Self, TargetError> {
        let planes = control_planes(snapshot).into_iter();
        let revision = settings.revision.label();
        let mut planes = planes.filter(|plane| {
            let target = plane.namespace == settings.namespace.as_str();
            plane.namespace == from && !(target && plane.revision.label() == revision)
        });
        let plane = planes.next();
        let plane = plane.ok_or_else(|| TargetError::NoSource(from.to_owned()))?;
        let source = Source::new(snapshot, plane);
        let version = &payload.chart(ChartName::Istiod).app_version;
        let mesh = source.mesh();
        Self::render(payload, version, settings, &source.plane, &mesh, strategy)
    }

    fn render(
        payload: &Payload,
        version: &str,
        settings: &Settings,
        source: &ControlPlane,
        mesh: &Value,
        strategy: Strategy,
    ) -> Result<Self, TargetError> {
        let mut carried = mesh.clone();
        if let Some(fields) = carried.as_object_mut() {
            if source.root_namespace == source.namespace {
                fields.remove("rootNamespace");
            }
            if let Some(proxy) = fields
                .get_mut("defaultConfig")
                .and_then(Value::as_object_mut)
            {
                proxy.remove("discoveryAddress");
            }
        }
        let mut values = json!({"meshConfig": carried});
        helm_chart::values::layer(&mut values, settings.values.clone());
        let mut last = Settings {
            values,
            ..settings.clone()
        };
        let host = source.revision.suffixed("istiod");
        let mut between = json!({
            "pilot": {"replicaCount": 2, "autoscaleMin": 2, "env": {
                "ISTIOD_CUSTOM_HOST": format!("{host}.{}.svc", source.namespace),
                "PILOT_ENABLE_IP_AUTOALLOCATE": "false",
                "CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL": "0",
            }},
        });
        if strategy == Strategy::ZeroDowntime {
            between["meshConfig"]["rootNamespace"] = source.root_namespace.as_str().into();
        }
        let mut transitional = last.clone();
        helm_chart::values::layer(&mut transitional.values, between);
        let mut tags = source.tags.clone();
        tags.push(source.revision.label().to_owned());
        tags.retain(|tag| tag != settings.revision.label());
        tags.sort();
        tags.dedup();
        if !tags.is_empty() {
            helm_chart::values::layer(&mut last.values, json!({"revisionTags": tags}));
        }
        Ok(Self {
            namespace: settings.namespace.as_str().to_owned(),
            revision: settings.revision.label().to_owned(),
            version: version.to_owned(),
            transitional: objects(payload, &transitional)?,
            last: objects(payload, &last)?,
        })
    }

    /// `istiod-<revision>`.
    pub fn service(&self) -> String {
        match self.revision.as_str() {
            "default" => "istiod".to_owned(),
            revision => format!("istiod-{revision}"),
        }
    }

    /// Its Deployment.
    pub(super) fn deployment(&self) -> ObjectRef {
        ObjectRef::namespaced("apps/v1", "Deployment", &self.namespace, &self.service())
    }

    /// Its mesh configuration.
    pub(super) fn mesh_config(&self) -> ObjectRef {
        let name = match self.revision.as_str() {
            "default" => "istio".to_owned(),
            revision => format!("istio-{revision}"),
        };
        ObjectRef::namespaced("v1", "ConfigMap", &self.namespace, &name)
    }

    /// The objects of one form, with the owner's labels and without those of istioctl.
    pub(super) fn dressed(form: &[Value], request: &Request) -> Vec<Value> {
        let labels = request.owner.as_ref().map(|owner| &owner.labels);
        let mut objects: Vec<Value> = form
            .iter()
            .filter(|object| object["kind"] != "Namespace")
            .cloned()
            .collect();
        for object in &mut objects {
            // Pods are found by a purge as well.
            if let Some(pods) = object
                .pointer_mut("/spec/template/metadata/labels")
                .and_then(Value::as_object_mut)
            {
                for label in FOREIGN {
                    pods.remove(label);
                }
            }
            if !object["metadata"]["labels"].is_object() {
                object["metadata"]["labels"] = json!({});
            }
            if let Some(known) = object["metadata"]["labels"].as_object_mut() {
                for label in FOREIGN {
                    known.remove(label);
                }
                for (key, value) in labels.into_iter().flatten() {
                    known.insert(key.clone(), value.as_str().into());
                }
            }
        }
        objects.sort_by_key(rank);
        objects
    }
}

/// In the order in which objects are applied.
pub(super) fn rank(object: &Value) -> (u8, ObjectRef) {
    let id = id(object);
    (istio_api::kinds::rank_of(&id.group, &id.kind), id)
}

/// Whether an object is a webhook configuration.
pub(super) fn is_webhook(object: &Value) -> bool {
    id(object).group == ADMISSION
}

/// Gives every webhook that has none the CA with which istiod will answer, so that it is not asked in
/// vain until istiod has written it; takes `failurePolicy` off where there is a live one to keep.
pub(super) fn armed(mut object: Value, ca_bundle: Option<&str>, live: Option<&Object>) -> Value {
    for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(bundle) = ca_bundle
            && webhook["clientConfig"]["caBundle"].is_null()
        {
            webhook["clientConfig"]["caBundle"] = bundle.into();
        }
        if live.is_some()
            && let Some(fields) = webhook.as_object_mut()
        {
            fields.remove("failurePolicy");
        }
    }
    object
}

fn objects(payload: &Payload, settings: &Settings) -> Result<Vec<Value>, RenderProblem> {
    let plane = control_plane(payload, settings)?;
    let webhooks = webhooks_of(&plane, settings, &std::collections::BTreeMap::new());
    let mut objects = plane.crds;
    objects.extend(plane.config);
    objects.extend(plane.injector_config);
    objects.extend(plane.istiod);
    objects.extend(webhooks);
    Ok(objects)
}
