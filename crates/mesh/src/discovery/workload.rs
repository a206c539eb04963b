//! What Deployments and `DaemonSet`s have in common for discovery.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

pub(super) type Labels = BTreeMap<String, String>;

/// A Deployment or a `DaemonSet`.
#[derive(Clone, Copy)]
pub(super) struct Workload<'a> {
    pub(super) kind: &'static str,
    pub(super) metadata: &'a ObjectMeta,
    selector: &'a LabelSelector,
    template: &'a PodTemplateSpec,
    /// Pods wanted and pods ready.
    pub(super) pods: (i32, i32),
}

impl<'a> Workload<'a> {
    pub(super) fn of_deployment(deployment: &'a Deployment) -> Option<Self> {
        let spec = deployment.spec.as_ref()?;
        let ready = deployment
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas);
        Some(Self {
            kind: "Deployment",
            metadata: &deployment.metadata,
            selector: &spec.selector,
            template: &spec.template,
            pods: (spec.replicas.unwrap_or(1), ready.unwrap_or(0)),
        })
    }

    pub(super) fn of_daemon_set(daemon_set: &'a DaemonSet) -> Option<Self> {
        let spec = daemon_set.spec.as_ref()?;
        let status = daemon_set.status.as_ref();
        Some(Self {
            kind: "DaemonSet",
            metadata: &daemon_set.metadata,
            selector: &spec.selector,
            template: &spec.template,
            pods: status.map_or((0, 0), |s| (s.desired_number_scheduled, s.number_ready)),
        })
    }

    pub(super) fn name(&self) -> &'a str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(super) fn namespace(&self) -> &'a str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        label(self.metadata, key)
    }

    pub(super) fn pod_label(&self, key: &str) -> Option<&'a str> {
        self.template
            .metadata
            .as_ref()
            .and_then(|metadata| label(metadata, key))
    }

    pub(super) fn pod_annotation(&self, key: &str) -> Option<&'a str> {
        let annotations = self.template.metadata.as_ref()?.annotations.as_ref()?;
        annotations.get(key).map(String::as_str)
    }

    pub(super) fn pod_labels(&self) -> Labels {
        self.template
            .metadata
            .as_ref()
            .and_then(|m| m.labels.clone())
            .unwrap_or_default()
    }

    pub(super) fn match_labels(&self) -> Labels {
        self.selector.match_labels.clone().unwrap_or_default()
    }

    pub(super) fn pod_spec(&self) -> Option<&'a PodSpec> {
        self.template.spec.as_ref()
    }

    pub(super) fn container(&self, name: &str) -> Option<&'a Container> {
        self.pod_spec()?
            .containers
            .iter()
            .find(|container| container.name == name)
    }
}

pub(super) fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether Istio's proxy runs as a router (a gateway) in one of the containers.
pub(super) fn runs_router(spec: &PodSpec) -> bool {
    let init = spec.init_containers.iter().flatten();
    spec.containers.iter().chain(init).any(|container| {
        let words: Vec<&str> = container
            .command
            .iter()
            .chain(&container.args)
            .flatten()
            .map(String::as_str)
            .collect();
        words.windows(2).any(|pair| pair == ["proxy", "router"])
    })
}
