//! A charm as Juju reads it: metadata, config options, actions, base.

pub(crate) mod actions;
pub(crate) mod archive;
pub(crate) mod options;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

/// Why a charm cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CharmError {
    /// A file of the charm is missing or unreadable.
    #[error("cannot read {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A YAML file of the charm does not parse.
    #[error("invalid {file}")]
    Yaml {
        /// File name inside the charm.
        file: String,
        /// The cause.
        #[source]
        source: yaml::Error,
    },
    /// The charm says something Juju refuses.
    #[error("invalid charm: {0}")]
    Invalid(String),
    /// The zip archive is damaged or unsafe.
    #[error("cannot unpack {path}", path = path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The cause.
        #[source]
        source: zip::result::ZipError,
    },
}

/// Which side of a relation an endpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Declared under `provides`.
    Provider,
    /// Declared under `requires`.
    Requirer,
    /// Declared under `peers`.
    Peer,
}

/// A relation endpoint of a charm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    /// Interface name.
    pub(crate) interface: String,
    /// Side.
    pub(crate) role: Role,
    /// Greatest number of relations, none for unlimited.
    #[serde(default)]
    pub(crate) limit: Option<u32>,
}

/// A resource a charm declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResourceMeta {
    /// `file` or `oci-image`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Name the file gets on the unit; empty for images.
    #[serde(default)]
    pub(crate) filename: String,
}

/// The parts of a charm the model needs, read once at deploy or refresh.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CharmMeta {
    /// Charm name.
    pub(crate) name: String,
    /// Endpoints by name.
    pub(crate) endpoints: BTreeMap<String, Endpoint>,
    /// Resources by name.
    pub(crate) resources: BTreeMap<String, ResourceMeta>,
    /// Config options by name.
    pub(crate) options: BTreeMap<String, options::OptionMeta>,
    /// Actions by name.
    pub(crate) actions: BTreeMap<String, actions::ActionMeta>,
    /// Names under `extra-bindings`.
    pub(crate) extra_bindings: Vec<String>,
    /// Names under `containers`.
    #[serde(default)]
    pub(crate) containers: Vec<String>,
    /// Base channel from the manifest, e.g. `24.04`.
    pub(crate) base_channel: String,
    /// Text of the charm's `version` file.
    pub(crate) version: String,
}

impl CharmMeta {
    /// Reads an unpacked charm. A directory with only `charmcraft.yaml` is understood as well: its
    /// config and actions sections then take the place of the packed files.
    pub(crate) fn load(dir: &Path) -> Result<Self, CharmError> {
        let packed = document(dir, "metadata.yaml")?;
        let source = if packed.is_some() {
            None
        } else {
            document(dir, "charmcraft.yaml")?
        };
        let metadata = packed
            .as_ref()
            .or(source.as_ref())
            .ok_or_else(|| CharmError::Invalid("it has no metadata.yaml".into()))?;
        let (config, actions) = match &source {
            Some(s) => (s.get("config").cloned(), s.get("actions").cloned()),
            None => (
                document(dir, "config.yaml")?,
                document(dir, "actions.yaml")?,
            ),
        };
        let manifest = document(dir, "manifest.yaml")?;
        let name = text(metadata, "name");
        if name.is_empty() {
            return Err(CharmError::Invalid("its metadata has no name".into()));
        }
        if !dir.join("dispatch").is_file() && !dir.join("hooks").is_dir() {
            return Err(CharmError::Invalid(
                "it has neither dispatch nor hooks".into(),
            ));
        }
        let mut endpoints = BTreeMap::new();
        for (section, role) in [
            ("provides", Role::Provider),
            ("requires", Role::Requirer),
            ("peers", Role::Peer),
        ] {
            for (endpoint, body) in entries(metadata, section) {
                let declared = endpoint_of(endpoint, body, role)?;
                if endpoints.insert(endpoint.clone(), declared).is_some() {
                    return Err(CharmError::Invalid(format!(
                        "endpoint \"{endpoint}\" is declared twice"
                    )));
                }
            }
        }
        let mut resources = BTreeMap::new();
        for (resource, body) in entries(metadata, "resources") {
            let meta = ResourceMeta {
                kind: Some(text(body, "type"))
                    .filter(|t| !t.is_empty())
                    .unwrap_or_else(|| "file".into()),
                filename: text(body, "filename"),
            };
            if meta.kind == "file" && (meta.filename.is_empty() || meta.filename.contains('/')) {
                return Err(CharmError::Invalid(format!(
                    "resource \"{resource}\" needs a filename without a slash"
                )));
            }
            resources.insert(resource.clone(), meta);
        }
        let channel = manifest
            .as_ref()
            .and_then(|m| m.pointer("/bases/0/channel"))
            .and_then(Value::as_str)
            .unwrap_or("24.04");
        Ok(Self {
            name,
            endpoints,
            resources,
            options: options::declared(config.as_ref())?,
            actions: actions::declared(actions.as_ref())?,
            extra_bindings: entries(metadata, "extra-bindings")
                .map(|(k, _)| k.clone())
                .collect(),
            containers: entries(metadata, "containers")
                .map(|(k, _)| k.clone())
                .collect(),
            base_channel: channel.split('/').next().unwrap_or(channel).to_owned(),
            version: fs::read_to_string(dir.join("version"))
                .unwrap_or_default()
                .trim()
                .to_owned(),
        })
    }

    /// Names of the peer endpoints.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (&String, &Endpoint)> {
        self.endpoints.iter().filter(|(_, e)| e.role == Role::Peer)
    }
}

fn endpoint_of(name: &str, body: &Value, role: Role) -> Result<Endpoint, CharmError> {
    let interface = match body {
        Value::String(interface) => interface.clone(),
        body => text(body, "interface"),
    };
    if interface.is_empty() {
        return Err(CharmError::Invalid(format!(
            "endpoint \"{name}\" has no interface"
        )));
    }
    let limit = body
        .get("limit")
        .and_then(Value::as_u64)
        .and_then(|l| u32::try_from(l).ok());
    Ok(Endpoint {
        interface,
        role,
        limit,
    })
}

/// One optional YAML file of a charm; an empty one counts as absent.
fn document(dir: &Path, file: &str) -> Result<Option<Value>, CharmError> {
    let path = dir.join(file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(CharmError::Read { path, source }),
    };
    if text
        .lines()
        .all(|l| l.trim().is_empty() || l.trim_start().starts_with('#'))
    {
        return Ok(None);
    }
    yaml::parse(&text)
        .map(|v| Some(v).filter(|v| !v.is_null()))
        .map_err(|source| CharmError::Yaml {
            file: file.to_owned(),
            source,
        })
}

fn text(value: &Value, key: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}
