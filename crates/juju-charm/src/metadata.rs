//! The parts of `charmcraft.yaml` a running charm and its tests need.

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{EndpointName, IdError};
use serde::Deserialize;
use serde_json::Value;

/// Why a `charmcraft.yaml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// It is no YAML.
    #[error("charmcraft.yaml is not readable")]
    Yaml(#[source] yaml::Error),
    /// It has not the shape of a charm's metadata.
    #[error("charmcraft.yaml has not the expected shape")]
    Shape(#[source] serde_json::Error),
    /// An endpoint has an impossible name.
    #[error("charmcraft.yaml declares an impossible endpoint")]
    Endpoint(#[source] IdError),
    /// Two roles share an endpoint name.
    #[error("charmcraft.yaml declares endpoint {0} twice")]
    Duplicate(EndpointName),
}

/// A charm's declarations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The charm's name.
    pub name: String,
    /// Endpoints of all three roles.
    pub endpoints: BTreeMap<EndpointName, Endpoint>,
    /// Config options.
    pub options: BTreeMap<String, ConfigOption>,
    /// Actions.
    pub actions: BTreeMap<String, ActionSpec>,
    /// Resources.
    pub resources: BTreeMap<String, ResourceKind>,
    /// Workload containers.
    pub containers: BTreeSet<String>,
    /// Storage names.
    pub storage: BTreeSet<String>,
    /// Bindings without an endpoint.
    pub extra_bindings: BTreeSet<String>,
}

/// Which side of a relation an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Offers the interface.
    Provides,
    /// Uses the interface.
    Requires,
    /// Between the units of the application.
    Peers,
}

/// A declared endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its role.
    pub role: Role,
    /// Its interface.
    pub interface: String,
    /// How many relations it takes at most.
    pub limit: Option<u32>,
    /// Whether the charm works without.
    pub optional: bool,
}

/// A declared config option.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ConfigOption {
    /// Its type; `None` if undeclared, which is a mistake.
    #[serde(rename = "type", default)]
    pub kind: Option<OptionKind>,
    /// Its default, unset if `None`.
    #[serde(default)]
    pub default: Option<Value>,
    /// Its description.
    #[serde(default)]
    pub description: Option<String>,
}

/// Types of config options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionKind {
    /// Text.
    String,
    /// Integer.
    Int,
    /// Number.
    Float,
    /// Boolean.
    Boolean,
    /// Id of a secret.
    Secret,
}

/// A declared action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionSpec {
    /// What it does.
    pub description: Option<String>,
    /// Its parameters.
    #[serde(deserialize_with = "null_as_default")]
    pub params: BTreeMap<String, ParamSpec>,
    /// Parameters it cannot do without.
    #[serde(deserialize_with = "null_as_default")]
    pub required: Vec<String>,
    /// Whether undeclared parameters are let through; Juju 3 and 4 disagree on the default.
    pub additional_properties: Option<bool>,
}

/// A declared action parameter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ParamSpec {
    /// Its type; `None` if undeclared, which is a mistake.
    #[serde(rename = "type")]
    pub kind: Option<ParamKind>,
    /// Its default.
    pub default: Option<Value>,
}

/// Types of action parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// Text.
    String,
    /// Integer.
    Integer,
    /// Number.
    Number,
    /// Boolean.
    Boolean,
    /// List.
    Array,
    /// Map.
    Object,
}

/// Kinds of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// A file, fetched on demand.
    File,
    /// A container image, Juju's business.
    Image,
}

impl Metadata {
    /// Reads a `charmcraft.yaml`.
    pub fn parse(text: &str) -> Result<Self, MetadataError> {
        let value = yaml::parse(text).map_err(MetadataError::Yaml)?;
        let raw: Raw = serde_json::from_value(value).map_err(MetadataError::Shape)?;
        let mut endpoints = BTreeMap::new();
        let roles = [
            (Role::Provides, raw.provides),
            (Role::Requires, raw.requires),
            (Role::Peers, raw.peers),
        ];
        for (role, declared) in roles {
            for (name, endpoint) in declared {
                let name = EndpointName::new(name).map_err(MetadataError::Endpoint)?;
                let RawEndpoint {
                    interface,
                    limit,
                    optional,
                } = endpoint;
                let endpoint = Endpoint {
                    role,
                    interface,
                    limit,
                    optional,
                };
                if endpoints.insert(name.clone(), endpoint).is_some() {
                    return Err(MetadataError::Duplicate(name));
                }
            }
        }
        let kind = |resource: RawResource| match resource.kind.as_str() {
            "file" => ResourceKind::File,
            _ => ResourceKind::Image,
        };
        Ok(Self {
            name: raw.name,
            endpoints,
            options: raw.config.options,
            actions: raw.actions,
            resources: raw
                .resources
                .into_iter()
                .map(|(name, r)| (name, kind(r)))
                .collect(),
            containers: raw.containers.into_keys().collect(),
            storage: raw.storage.into_keys().collect(),
            extra_bindings: raw.extra_bindings.into_keys().collect(),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Raw {
    name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    provides: BTreeMap<String, RawEndpoint>,
    #[serde(default, deserialize_with = "null_as_default")]
    requires: BTreeMap<String, RawEndpoint>,
    #[serde(default, deserialize_with = "null_as_default")]
    peers: BTreeMap<String, RawEndpoint>,
    #[serde(default, deserialize_with = "null_as_default")]
    config: RawConfig,
    #[serde(default, deserialize_with = "null_as_default")]
    actions: BTreeMap<String, ActionSpec>,
    #[serde(default, deserialize_with = "null_as_default")]
    resources: BTreeMap<String, RawResource>,
    #[serde(default, deserialize_with = "null_as_default")]
    containers: BTreeMap<String, Value>,
    #[serde(default, deserialize_with = "null_as_default")]
    storage: BTreeMap<String, Value>,
    #[serde(default, deserialize_with = "null_as_default")]
    extra_bindings: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawConfig {
    #[serde(deserialize_with = "null_as_default")]
    options: BTreeMap<String, ConfigOption>,
}

#[derive(Deserialize)]
struct RawEndpoint {
    interface: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    optional: bool,
}

#[derive(Deserialize)]
struct RawResource {
    #[serde(rename = "type")]
    kind: String,
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_options_actions_and_resources_are_read() {
        let metadata = Metadata::parse(
            "name: meshy\n\
             provides:\n  mesh-info:\n    interface: mesh_info\n\
             requires:\n  ingress:\n    interface: ingress\n    limit: 1\n    optional: true\n\
             peers:\n  cluster:\n    interface: meshy_peers\n\
             config:\n  options:\n    ratio:\n      type: float\n      default: 1\n    token:\n      type: secret\n\
             actions:\n  plan:\n    additionalProperties: false\n    params:\n      depth:\n        type: integer\n        default: 3\n\
             resources:\n  payload:\n    type: file\n    filename: p.tgz\n  image:\n    type: oci-image\n\
             containers:\n",
        )
        .unwrap();
        let endpoint = |name: &str| &metadata.endpoints[&EndpointName::new(name).unwrap()];
        assert_eq!(endpoint("mesh-info").role, Role::Provides);
        assert_eq!(
            (endpoint("ingress").limit, endpoint("ingress").optional),
            (Some(1), true)
        );
        assert_eq!(endpoint("cluster").role, Role::Peers);
        assert_eq!(metadata.options["ratio"].kind, Some(OptionKind::Float));
        assert_eq!(metadata.options["token"].default, None);
        assert_eq!(
            metadata.actions["plan"].params["depth"].kind,
            Some(ParamKind::Integer)
        );
        assert_eq!(metadata.actions["plan"].additional_properties, Some(false));
        assert_eq!(metadata.resources["payload"], ResourceKind::File);
        assert_eq!(metadata.resources["image"], ResourceKind::Image);
    }

    #[test]
    fn one_endpoint_name_in_two_roles_is_refused() {
        let text = "name: meshy\nprovides: {a: {interface: x}}\nrequires: {a: {interface: x}}\n";
        assert!(
            matches!(Metadata::parse(text), Err(MetadataError::Duplicate(name)) if name == "a")
        );
    }
}
