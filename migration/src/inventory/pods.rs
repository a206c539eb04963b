//! Pods that have a proxy, as far as a migration needs to know them.

use std::collections::BTreeMap;

use kube_apply::Object;
use serde::Serialize;
use serde_json::Value;

use super::text;

/// What a pod belongs to: the thing to restart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Owner {
    /// `Deployment`, `StatefulSet`, `DaemonSet`, `ReplicaSet`, `Job` or another.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// One pod with a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// What it belongs to; none for a bare pod.
    pub owner: Option<Owner>,
    /// The revision that injected it; none where the proxy was not injected.
    pub revision: Option<String>,
    /// Version of the proxy, where the image tag tells.
    pub version: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether the proxy is a gateway's.
    pub router: bool,
}

impl Pod {
    /// Reads a pod; `None` when it has no proxy, or has ended or is ending.
    pub fn of(pod: &Object) -> Option<Self> {
        let value = pod.value();
        let done = matches!(text(value, "/status/phase"), "Succeeded" | "Failed");
        if done || pod.is_terminating() {
            return None;
        }
        let containers = |list: &str| {
            let items = value.pointer(list).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let proxy = containers("/spec/containers")
            .chain(containers("/spec/initContainers"))
            .find(|container| container["name"] == "istio-proxy")?;
        let status = pod.annotation("sidecar.istio.io/status");
        let revision = status.map(|status| {
            let status: Value = serde_json::from_str(status).unwrap_or_default();
            let told = status["revision"].as_str().filter(|told| !told.is_empty());
            told.unwrap_or("default").to_owned()
        });
        let args = proxy["args"].as_array().into_iter().flatten();
        let conditions = containers("/status/conditions");
        let labels = pod.labels().into_iter();
        Some(Self {
            namespace: pod.namespace().unwrap_or_default().to_owned(),
            name: pod.name().to_owned(),
            labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            owner: owner(pod),
            revision,
            version: version(proxy["image"].as_str().unwrap_or_default()),
            ready: conditions
                .into_iter()
                .any(|c| c["type"] == "Ready" && c["status"] == "True"),
            router: args.into_iter().any(|arg| arg == "router"),
        })
    }
}

/// What makes the pod again.
pub(crate) fn owner(pod: &Object) -> Option<Owner> {
    let owners = pod.pointer("/metadata/ownerReferences")?.as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    let (kind, name) = (text(controller, "/kind"), text(controller, "/name"));
    // A Deployment's ReplicaSet is named after it and the hash of the template.
    let hash = pod.label("pod-template-hash");
    let deployment = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'));
    Some(match deployment {
        Some(name) if kind == "ReplicaSet" => Owner {
            kind: "Deployment".to_owned(),
            name: name.to_owned(),
        },
        _ => Owner {
            kind: kind.to_owned(),
            name: name.to_owned(),
        },
    })
}

/// The tag of an image, where it is a version.
fn version(image: &str) -> Option<String> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    let (_, tag) = name.split_once(':')?;
    let tag = tag.split('-').next()?;
    tag.starts_with(|c: char| c.is_ascii_digit())
        .then(|| tag.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(more: Value) -> Object {
        let mut value = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-5d9-x", "namespace": "lab", "labels": {"pod-template-hash": "5d9"},
                "annotations": {"sidecar.istio.io/status": "{\"revision\":\"\"}"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d9", "controller": true}],
            },
            "spec": {"initContainers": [{"name": "istio-proxy", "image": "hub/proxyv2:1.31.0-distroless"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
            value.extend(more);
        }
        Object::new(value).expect("a pod")
    }

    #[test]
    fn a_pod_tells_its_deployment_revision_and_version() {
        let read = Pod::of(&pod(json!({}))).expect("has a proxy");
        let owner = read.owner.expect("an owner");
        assert_eq!(
            (owner.kind.as_str(), owner.name.as_str()),
            ("Deployment", "web")
        );
        assert_eq!(read.revision.as_deref(), Some("default"));
        assert_eq!(read.version.as_deref(), Some("1.31.0"));
        assert!(read.ready && !read.router);
    }

    #[test]
    fn pods_without_a_proxy_and_those_that_have_ended_do_not_count() {
        let plain = json!({"spec": {"containers": [{"name": "main"}]}});
        let ended = json!({"status": {"phase": "Succeeded"}});
        for more in [plain, ended] {
            assert_eq!(Pod::of(&pod(more)), None);
        }
    }
}
