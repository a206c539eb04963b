//! The control plane that is to move: what it is, who made it, and which objects are its own.

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_apply::{Object, ObjectRef};
use mesh::discovery::{self, ControlPlane, Live};
use serde_json::Value;

use super::Snapshot;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The control planes of a snapshot, whoever made them.
pub fn control_planes(snapshot: &Snapshot) -> Vec<ControlPlane> {
    let objects = &snapshot.objects;
    let live = Live {
        deployments: typed::<Deployment>(objects.list("apps", "Deployment")),
        webhooks: typed::<MutatingWebhookConfiguration>(
            objects.list(ADMISSION, "MutatingWebhookConfiguration"),
        ),
        config_maps: typed::<ConfigMap>(objects.list("", "ConfigMap")),
        ..Live::default()
    };
    discovery::control_planes(&live)
}

fn typed<'a, T: serde::de::DeserializeOwned>(objects: impl Iterator<Item = &'a Object>) -> Vec<T> {
    objects.filter_map(|object| object.typed().ok()).collect()
}

/// The control plane in one namespace.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    snapshot: &'a Snapshot,
    /// What it is.
    pub plane: ControlPlane,
}

impl<'a> Source<'a> {
    /// The control plane `plane` of a snapshot.
    pub fn new(snapshot: &'a Snapshot, plane: ControlPlane) -> Self {
        Self { snapshot, plane }
    }

    /// Its Deployment.
    pub fn istiod(&self) -> Option<&'a Object> {
        let name = self.plane.revision.suffixed("istiod");
        self.get("apps", "Deployment", &name)
    }

    /// Its Service, by which proxies find it.
    pub fn service_name(&self) -> String {
        self.plane.revision.suffixed("istiod")
    }

    /// Its mesh configuration, parsed.
    pub fn mesh(&self) -> Value {
        let name = discovery::mesh_config_name(&self.plane.revision);
        let map = self.get("", "ConfigMap", &name);
        let text = map.and_then(|map| map.pointer("/data/mesh")?.as_str());
        text.and_then(|text| yaml::parse(text).ok())
            .unwrap_or(Value::Null)
    }

    /// The value of a variable of istiod's environment.
    pub fn env(&self, name: &str) -> Option<&'a str> {
        let containers = self.istiod()?.pointer("/spec/template/spec/containers")?;
        let env = containers
            .as_array()?
            .iter()
            .filter_map(|c| c["env"].as_array());
        let found = env.flatten().find(|variable| variable["name"] == name)?;
        found["value"].as_str()
    }

    /// Injectors and validators that this istiod answers, whatever they are called.
    pub fn webhooks(&self, kind: &'a str) -> Vec<&'a Object> {
        let list = self.snapshot.objects.list(ADMISSION, kind);
        let (namespace, service) = (self.plane.namespace.as_str(), self.service_name());
        list.filter(|configuration| {
            let entries = configuration.pointer("/webhooks").and_then(Value::as_array);
            entries.into_iter().flatten().any(|entry| {
                let target = &entry["clientConfig"]["service"];
                let name = target["name"].as_str().unwrap_or_default();
                let tag =
                    name.starts_with("istiod-revision-tag-") && self.is_labelled(configuration);
                target["namespace"].as_str() == Some(namespace) && (name == service || tag)
            })
        })
        .collect()
    }

    /// Whether the label `istio.io/rev` of an object names this control plane.
    pub fn is_labelled(&self, object: &Object) -> bool {
        object.label("istio.io/rev") == Some(self.plane.revision.label())
    }

    /// What is left of this control plane once nobody uses it, the Secrets of its CA apart.
    pub fn remains(&self) -> Vec<ObjectRef> {
        let namespace = self.plane.namespace.as_str();
        let suffixed = |base: &str| self.plane.revision.suffixed(base);
        let mut names: Vec<(&str, &str, String)> = vec![
            ("policy", "PodDisruptionBudget", suffixed("istiod")),
            ("networking.k8s.io", "NetworkPolicy", suffixed("istiod")),
            ("apps", "Deployment", suffixed("istiod")),
            ("", "ConfigMap", suffixed("istio")),
            ("", "ConfigMap", suffixed("istio-sidecar-injector")),
            ("", "ConfigMap", suffixed("values")),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                suffixed("istiod"),
            ),
            ("rbac.authorization.k8s.io", "Role", suffixed("istiod")),
            ("", "ServiceAccount", suffixed("istiod")),
            (
                "",
                "ServiceAccount",
                "istio-reader-service-account".to_owned(),
            ),
        ];
        for tag in &self.plane.tags {
            names.push(("", "Service", format!("istiod-revision-tag-{tag}")));
        }
        let mut found: Vec<ObjectRef> = names
            .iter()
            .filter_map(|(group, kind, name)| self.get(group, kind, name).map(Object::id))
            .collect();
        let leaders = self
            .snapshot
            .objects
            .list("", "ConfigMap")
            .chain(self.snapshot.objects.list("coordination.k8s.io", "Lease"));
        found.extend(
            leaders
                .filter(|lock| lock.namespace() == Some(namespace) && is_lock(lock.name()))
                .map(Object::id),
        );
        let rbac = "rbac.authorization.k8s.io";
        for kind in ["ClusterRoleBinding", "ClusterRole"] {
            for base in [
                "istiod-clusterrole",
                "istiod-gateway-controller",
                "istio-reader-clusterrole",
            ] {
                let name = format!("{}-{namespace}", suffixed(base));
                let live = self.snapshot.objects.get(rbac, kind, None, &name);
                found.extend(live.map(Object::id));
            }
        }
        found
    }

    fn get(&self, group: &str, kind: &str, name: &str) -> Option<&'a Object> {
        let namespace = Some(self.plane.namespace.as_str());
        self.snapshot.objects.get(group, kind, namespace, name)
    }
}

/// The locks by which istiods agree who leads; not in any chart.
pub(crate) fn is_lock(name: &str) -> bool {
    const LOCKS: [&str; 9] = [
        "istio-leader",
        "istio-namespace-controller-election",
        "istio-serviceexport-controller-election",
        "istio-gateway-status-leader",
        "istio-gateway-deployment",
        "istio-gateway-inferencepool",
        "istio-status-leader",
        "istio-analyze-leader",
        "istio-ip-autoallocate",
    ];
    LOCKS.iter().any(|lock| name.starts_with(lock))
}
