//! One read of the cluster into a snapshot: everything a plan rests on, and no secret.
//!
//! Pods are read one namespace at a time and kept as the few facts that matter, so that memory is
//! bounded by the largest namespace and not by the cluster.

mod pods;
mod source;
mod workloads;

use std::fmt::Write as _;

use istio_api::kinds;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube_apply::{Access, Note, Object, ObjectRef, Observed, Query, Result};
use mesh::upgrade::certificate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub(crate) use pods::owner;
pub use pods::{Owner, Pod};
pub(crate) use source::is_lock;
pub use source::{Source, control_planes};
pub use workloads::{Rollout, Workload, workloads};

use crate::api::Api;

/// The label by which `istioctl uninstall --purge` finds what it deletes, in all namespaces.
pub const PURGED: &str = "operator.istio.io/component";
/// Secrets that may hold the CA of an istiod, the one it prefers first.
pub const CA_SECRETS: [&str; 2] = ["cacerts", "istio-ca-secret"];
/// Name of the `ConfigMap` by which istiod tells every namespace its root.
pub const ROOT_CONFIG_MAP: &str = "istio-ca-root-cert";

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The certificate authority of one namespace's istiod, as far as it may be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// sha256 of the signing certificate's DER.
    pub fingerprint: String,
    /// First day.
    pub not_before: Timestamp,
    /// Last day.
    pub not_after: Timestamp,
}

/// The state of a cluster at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was read.
    pub at: Timestamp,
    /// What there is, Pods and Secrets apart.
    pub objects: Observed,
    /// Pods that have a proxy.
    pub pods: Vec<Pod>,
    /// Certificate authorities.
    pub roots: Vec<Root>,
    /// What a migration needs to do and we may not.
    pub may_not: Vec<Access>,
}

impl Snapshot {
    /// Reads the cluster. `old` is the namespace that Istio is in, `new` the one it goes to.
    ///
    /// # Errors
    /// Those of the API server. What may not be read is noted in the snapshot.
    pub async fn read(api: &impl Api, old: &str, new: &str, at: Timestamp) -> Result<Self> {
        let objects = api.read(&queries(old, new)).await?;
        let mut roots = Vec::new();
        for namespace in [old, new] {
            for secret in CA_SECRETS {
                roots.extend(root(api, namespace, secret).await?);
            }
        }
        roots.dedup();
        let namespaces: Vec<&str> = objects.list("", "Namespace").map(Object::name).collect();
        let mut pods = Vec::new();
        for namespace in namespaces {
            let list = Query::list("", "Pod").in_namespace(namespace);
            let read = api.read(&[list]).await?;
            pods.extend(read.list("", "Pod").filter_map(Pod::of));
        }
        let needed = needed();
        let may = api.may(&needed).await?;
        let may_not = needed.into_iter().zip(may);
        let may_not = may_not.filter(|(_, may)| !may).map(|(access, _)| access);
        Ok(Self {
            at,
            objects,
            pods,
            roots,
            may_not: may_not.collect(),
        })
    }

    /// What could not be read for want of a permission.
    pub fn unreadable(&self) -> Vec<String> {
        let notes = self.objects.notes();
        notes
            .filter_map(|note| match note {
                Note::Forbidden { verb, resource } => Some(format!("{verb} {resource}")),
                Note::NotInstalled { .. } => None,
            })
            .collect()
    }

    /// The CA of an istiod in `namespace`.
    pub fn root(&self, namespace: &str) -> Option<&Root> {
        self.roots.iter().find(|root| root.namespace == namespace)
    }

    /// The root certificate that the istiod in `namespace` tells, as webhooks carry it.
    pub fn ca_bundle(&self, namespace: &str) -> Option<String> {
        let told = self
            .objects
            .get("", "ConfigMap", Some(namespace), ROOT_CONFIG_MAP)?;
        let pem = told.pointer("/data/root-cert.pem")?.as_str()?;
        let encoded = serde_json::to_value(ByteString(pem.as_bytes().to_vec())).ok()?;
        encoded.as_str().map(str::to_owned)
    }

    /// Everything that a purge would delete.
    pub fn purgeable(&self) -> Vec<ObjectRef> {
        let marked = self.objects.objects().filter(|o| o.label(PURGED).is_some());
        marked.map(Object::id).collect()
    }

    /// All custom objects of Istio and of the Gateway API.
    pub fn custom_objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.objects().filter(|o| is_mesh_group(o.group()))
    }
}

/// Whether the custom objects of a group are Istio's or the Gateway API's.
pub fn is_mesh_group(group: &str) -> bool {
    group.ends_with(".istio.io") || group == "gateway.networking.k8s.io"
}

/// Reads a Secret and keeps of it what everybody may know.
pub(crate) async fn root(api: &impl Api, namespace: &str, secret: &str) -> Result<Option<Root>> {
    let id = ObjectRef::namespaced("v1", "Secret", namespace, secret);
    let Some(live) = api.get(&id).await? else {
        return Ok(None);
    };
    let pem = live.pointer("/data/ca-cert.pem").cloned();
    let pem = pem.and_then(|text| serde_json::from_value::<ByteString>(text).ok());
    let pem = pem.map(|ByteString(bytes)| String::from_utf8_lossy(&bytes).into_owned());
    let ca = pem.and_then(|pem| certificate::first(&pem));
    Ok(ca.and_then(|ca| {
        Some(Root {
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            fingerprint: hexadecimal(&Sha256::digest(&ca.der)),
            not_before: Timestamp::from_second(ca.not_before).ok()?,
            not_after: Timestamp::from_second(ca.not_after).ok()?,
        })
    }))
}

/// Bytes in hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn queries(old: &str, new: &str) -> Vec<Query> {
    let mut queries = vec![
        Query::list("", "Namespace"),
        Query::list("", "Service"),
        Query::list("apps", "Deployment"),
        Query::list("apps", "StatefulSet"),
        Query::list("apps", "DaemonSet"),
        Query::list("autoscaling", "HorizontalPodAutoscaler"),
        Query::list("policy", "PodDisruptionBudget"),
        Query::list("networking.k8s.io", "NetworkPolicy"),
        Query::list("apiextensions.k8s.io", "CustomResourceDefinition").metadata_only(),
        Query::list(ADMISSION, "MutatingWebhookConfiguration"),
        Query::list(ADMISSION, "ValidatingWebhookConfiguration"),
        Query::list(RBAC, "ClusterRole").metadata_only(),
        Query::list(RBAC, "ClusterRoleBinding").metadata_only(),
    ];
    for namespace in [old, new] {
        let inside = |group, kind| Query::list(group, kind).in_namespace(namespace);
        queries.push(inside("", "ConfigMap"));
        for (group, kind) in [
            (RBAC, "Role"),
            (RBAC, "RoleBinding"),
            ("", "ServiceAccount"),
            ("coordination.k8s.io", "Lease"),
        ] {
            queries.push(inside(group, kind).metadata_only());
        }
    }
    // A purge looks for its label in every namespace.
    for (group, kind) in [
        ("", "ConfigMap"),
        ("", "ServiceAccount"),
        ("", "Pod"),
        (RBAC, "Role"),
        (RBAC, "RoleBinding"),
    ] {
        let marked = Query::list(group, kind).with_labels(PURGED);
        queries.push(marked.metadata_only());
    }
    let custom = kinds::TABLE.iter().filter(|row| is_mesh_group(row.group));
    queries.extend(custom.map(|row| Query::list(row.group, row.kind)));
    queries
}

/// What a migration does, as permissions.
fn needed() -> Vec<Access> {
    let mut needed = Vec::new();
    for (verbs, group, resource) in [
        (&["create", "patch", "delete"][..], "apps", "deployments"),
        (&["patch"], "apps", "statefulsets"),
        (&["patch"], "apps", "daemonsets"),
        (&["get", "create", "delete"], "", "secrets"),
        (&["create", "patch", "update", "delete"], "", "configmaps"),
        (&["create", "patch", "update", "delete"], "", "services"),
        (&["create", "patch"], "", "namespaces"),
        (&["create"], "", "pods"),
        (&["create"], "", "pods/eviction"),
        (&["create"], "", "pods/portforward"),
        (&["create", "update"], "coordination.k8s.io", "leases"),
        (
            &["create", "patch", "delete"],
            ADMISSION,
            "mutatingwebhookconfigurations",
        ),
        (
            &["create", "patch", "delete"],
            ADMISSION,
            "validatingwebhookconfigurations",
        ),
        (
            &["create", "patch", "delete"],
            ADMISSION,
            "validatingadmissionpolicies",
        ),
        (
            &["create", "patch", "delete"],
            ADMISSION,
            "validatingadmissionpolicybindings",
        ),
        (&["create", "patch", "delete"], RBAC, "clusterroles"),
        (&["create", "patch", "delete"], RBAC, "clusterrolebindings"),
        (
            &["patch"],
            "apiextensions.k8s.io",
            "customresourcedefinitions",
        ),
        (
            &["create", "patch", "delete"],
            "security.istio.io",
            "authorizationpolicies",
        ),
        (
            &["create", "patch", "delete"],
            "networking.istio.io",
            "envoyfilters",
        ),
    ] {
        needed.extend(verbs.iter().map(|verb| Access {
            verb: (*verb).to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            ..Access::default()
        }));
    }
    needed
}

/// A text below a pointer.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
