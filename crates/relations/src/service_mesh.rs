//! Interfaces `service_mesh` and `cross_model_mesh`: who may call whom, and what an application of
//! another model is called there. Values are JSON-encoded.

use std::collections::BTreeMap;

use juju_hooks::Databag;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{DecodeProblem, Result, json};

const POLICIES: &str = "policies";
const LABELS: &str = "labels";
const MESH: &str = "mesh_type";
const CMR: &str = "cmr_data";

/// A permission that a requirer asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct MeshPolicy {
    /// Namespace of who calls.
    pub source_namespace: String,
    /// The application that calls: its pods run as the account of that name.
    pub source_app_name: String,
    /// Namespace of who is called.
    pub target_namespace: String,
    /// The application that is called.
    #[serde(default)]
    pub target_app_name: Option<String>,
    /// Labels of the pods that are called, instead of an application.
    #[serde(default)]
    pub target_selector_labels: Option<BTreeMap<String, String>>,
    /// The Service that is called, if it is not named as the application.
    #[serde(default)]
    pub target_service: Option<String>,
    /// Whether the Service or its pods are meant.
    #[serde(default)]
    pub target_type: TargetType,
    /// What may be called, any of these; none: everything.
    #[serde(default)]
    pub endpoints: Vec<MeshEndpoint>,
}

/// What a policy is about.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetType {
    /// The Service.
    #[default]
    App,
    /// Its pods, without the Service.
    Unit,
}

/// What may be called: everything given must hold.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct MeshEndpoint {
    /// Host names.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub hosts: Vec<String>,
    /// Ports.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub ports: Vec<u16>,
    /// Methods.
    #[serde(
        default,
        deserialize_with = "methods",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub methods: Vec<String>,
    /// Paths.
    #[serde(
        default,
        deserialize_with = "json::or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub paths: Vec<String>,
}

impl MeshPolicy {
    /// Refuses what its library refuses: a Service without a name or with labels of pods, pods with a
    /// Service or named twice.
    fn consistent(&self) -> Result<()> {
        let there = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let (app, service) = (there(&self.target_app_name), there(&self.target_service));
        let labels = self.target_selector_labels.as_ref();
        let labels = labels.is_some_and(|labels| !labels.is_empty());
        let what = match self.target_type {
            TargetType::App if !app && !service => {
                "of an application needs target_app_name or target_service"
            }
            TargetType::App if labels => "of an application has no target_selector_labels",
            TargetType::Unit if app && labels => {
                "of pods has target_app_name or target_selector_labels, not both"
            }
            TargetType::Unit if service => "of pods has no target_service",
            _ => return Ok(()),
        };
        Err(DecodeProblem::new(POLICIES, format!("a policy {what}")))
    }
}

fn methods<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let methods: Vec<String> = json::or_default(deserializer)?;
    for method in &methods {
        json::method(Some(method.clone()))?;
    }
    Ok(methods)
}

/// A requirer's permissions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MeshPolicies(pub Vec<MeshPolicy>);

impl MeshPolicies {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(POLICIES.to_owned(), json::encoded(&self.0))])
    }

    /// Reads the requirer's application databag; asking for nothing is the same as saying nothing.
    /// One policy that contradicts itself spoils them all: what was meant is not known.
    pub fn decode(bag: &Databag) -> Result<Self> {
        let policies: Vec<MeshPolicy> = json::document(bag, POLICIES)?.unwrap_or_default();
        for policy in &policies {
            policy.consistent()?;
        }
        Ok(Self(policies))
    }
}

/// What the provider tells: how pods become part of the mesh.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MeshLabels {
    /// Labels that requirers put on their pods.
    pub labels: BTreeMap<String, String>,
}

impl MeshLabels {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([
            (LABELS.to_owned(), json::encoded(&self.labels)),
            (MESH.to_owned(), json::string("istio")),
        ])
    }

    /// Reads the provider's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(json::document(bag, LABELS)?.map(|labels| Self { labels }))
    }
}

/// What an application is called in its own model.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CrossModelApp {
    /// The application.
    pub app_name: String,
    /// Its model.
    pub juju_model_name: String,
}

impl CrossModelApp {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(CMR.to_owned(), json::encoded(self))])
    }

    /// Reads the requirer's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        json::document(bag, CMR)
    }
}
