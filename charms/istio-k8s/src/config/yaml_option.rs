//! Options whose text is a YAML mapping.

use juju_charm::Config;
use k8s_openapi::ByteString;
use mesh::name::check_label;
use serde_json::{Map, Value};

use super::text::{Bad, text};

pub(super) fn values(config: &Config) -> Result<Value, Bad> {
    let values = mapping(config, "values")?;
    whole_scope(&values)?;
    readable_bundles(&values)?;
    mesh_shape("values", "meshConfig: ", &values["meshConfig"])?;
    Ok(values)
}

pub(super) fn mesh_config(config: &Config) -> Result<Value, Bad> {
    let mesh = mapping(config, "mesh-config")?;
    mesh_shape("mesh-config", "", &mesh)?;
    Ok(mesh)
}

fn mapping(config: &Config, option: &'static str) -> Result<Value, Bad> {
    let empty = || Value::Object(Map::new());
    let Some(text) = text(config, option) else {
        return Ok(empty());
    };
    match yaml::parse(text).map_err(|why| Bad::unreadable(option, &why))? {
        Value::Null => Ok(empty()),
        value @ Value::Object(_) => Ok(value),
        _ => Err(Bad::of(option, "not a YAML mapping")),
    }
}

/// One application owns all of a control plane: a part of it would prune the other.
fn whole_scope(values: &Value) -> Result<(), Bad> {
    match values["global"]["resourceScope"].as_str() {
        None | Some("all") => Ok(()),
        Some(scope) => Err(Bad::of(
            "values",
            format!("global.resourceScope {scope:?}, only \"all\" is allowed"),
        )),
    }
}

/// A certificate bundle that cannot be read would leave webhooks that nobody can answer.
fn readable_bundles(values: &Value) -> Result<(), Bad> {
    for (chart, key) in [
        ("base", "validationCABundle"),
        ("istiodRemote", "injectionCABundle"),
    ] {
        let Some(text) = values[chart][key].as_str() else {
            continue;
        };
        let trimmed = Value::String(text.trim().to_owned());
        if serde_json::from_value::<ByteString>(trimmed).is_err() {
            return Err(Bad::of("values", format!("{chart}.{key} is not base64")));
        }
    }
    Ok(())
}

/// What a key of the mesh config must be. istiod does not start with a mesh config that it cannot
/// read, and a running one silently keeps the one it had; so the shapes are checked here.
const MESH_KEYS: [(&str, Shape); 14] = [
    ("accessLogEncoding", Shape::Text),
    ("accessLogFile", Shape::Text),
    ("accessLogFormat", Shape::Text),
    ("defaultConfig", Shape::Mapping),
    ("defaultProviders", Shape::Mapping),
    ("discoverySelectors", Shape::Mappings),
    ("enableAutoMtls", Shape::Flag),
    ("enablePrometheusMerge", Shape::Flag),
    ("enableTracing", Shape::Flag),
    ("extensionProviders", Shape::Mappings),
    ("outboundTrafficPolicy", Shape::Mapping),
    ("rootNamespace", Shape::Namespace),
    ("serviceSettings", Shape::Mappings),
    ("trustDomain", Shape::Text),
];

/// The shape of a value.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Mapping,
    Mappings,
    Namespace,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Mapping => value.is_object(),
            Self::Mappings => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_object)),
            Self::Namespace => value
                .as_str()
                .is_some_and(|text| text.is_empty() || check_label(text).is_ok()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Flag => "true or false",
            Self::Mapping => "a mapping",
            Self::Mappings => "a list of mappings",
            Self::Namespace => "a namespace",
        }
    }
}

fn mesh_shape(option: &'static str, at: &str, mesh: &Value) -> Result<(), Bad> {
    for (key, shape) in MESH_KEYS {
        let Some(value) = mesh.get(key).filter(|value| !value.is_null()) else {
            continue;
        };
        if !shape.fits(value) {
            let (value, shape) = (value.to_string(), shape.name());
            let part = format!("{at}{key}");
            return Err(Bad::part(option, &part, &value, format!("is not {shape}")));
        }
    }
    // Which istiod a proxy talks to follows from namespace and revision.
    if mesh["defaultConfig"]["discoveryAddress"].is_string() {
        return Err(Bad::of(
            option,
            format!("{at}defaultConfig.discoveryAddress is the charm's to set"),
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    for provider in mesh["extensionProviders"].as_array().into_iter().flatten() {
        let name = provider["name"].as_str().unwrap_or_default();
        if name.is_empty() || !seen.insert(name) {
            let part = format!("{at}extensionProviders: name");
            return Err(Bad::part(option, &part, name, "must be there once"));
        }
    }
    Ok(())
}
