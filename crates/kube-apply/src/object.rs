//! One Kubernetes object as JSON.

use std::collections::BTreeMap;
use std::fmt;

use istio_api::{ObjectRef, split_api_version};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// A Kubernetes object as JSON with at least `apiVersion`, `kind` and `metadata.name`.
///
/// `Debug` shows the object's name only: objects may be Secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(Value);

impl Object {
    /// Wraps `value`.
    ///
    /// # Errors
    /// [`Error::Malformed`] when `apiVersion`, `kind` or `metadata.name` is missing.
    pub fn new(value: Value) -> Result<Self> {
        for pointer in ["/apiVersion", "/kind", "/metadata/name"] {
            let present = value
                .pointer(pointer)
                .and_then(Value::as_str)
                .is_some_and(|s| !s.is_empty());
            if !present {
                let what = format!(
                    "object without {}",
                    pointer.trim_start_matches('/').replace('/', ".")
                );
                return Err(Error::Malformed { what, source: None });
            }
        }
        Ok(Self(value))
    }

    /// Wraps every value; for rendered charts.
    ///
    /// # Errors
    /// As [`Object::new`], at the first value that is not an object.
    pub fn all(values: impl IntoIterator<Item = Value>) -> Result<Vec<Self>> {
        values.into_iter().map(Self::new).collect()
    }

    /// The typed form, read leniently.
    ///
    /// # Errors
    /// [`Error::Malformed`] when the JSON does not have the shape of `T`.
    pub fn typed<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.0).map_err(|source| Error::Malformed {
            what: self.id().to_string(),
            source: Some(source),
        })
    }

    /// What this object is.
    pub fn id(&self) -> ObjectRef {
        ObjectRef::new(
            self.text("/apiVersion"),
            self.kind(),
            self.namespace(),
            self.name(),
        )
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        split_api_version(self.text("/apiVersion")).0
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> Option<&str> {
        self.0
            .pointer("/metadata/namespace")
            .and_then(Value::as_str)
    }

    /// `metadata.uid`, of a live object.
    pub fn uid(&self) -> Option<&str> {
        self.0.pointer("/metadata/uid").and_then(Value::as_str)
    }

    /// `metadata.labels`.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        self.strings("/metadata/labels")
    }

    /// `metadata.annotations`.
    pub fn annotations(&self) -> BTreeMap<&str, &str> {
        self.strings("/metadata/annotations")
    }

    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get("labels")?.get(key)?.as_str()
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.0
            .get("metadata")?
            .get("annotations")?
            .get(key)?
            .as_str()
    }

    /// Whether the object is on its way out (`metadata.deletionTimestamp`).
    pub fn is_terminating(&self) -> bool {
        self.0.pointer("/metadata/deletionTimestamp").is_some()
    }

    /// The JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// A JSON pointer into the object.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer)
    }

    /// The JSON, owned.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// Sets `metadata.labels[key]`.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.set("labels", key, value);
    }

    /// Sets `metadata.annotations[key]`.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        self.set("annotations", key, value);
    }

    pub(crate) fn from_value(value: Value) -> Self {
        Self(value)
    }

    #[cfg(test)]
    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    fn set(&mut self, map: &str, key: &str, value: &str) {
        let metadata = object_at(&mut self.0, "metadata");
        let map = metadata
            .entry(map)
            .or_insert_with(|| Value::Object(Map::new()));
        if map.is_null() {
            *map = Value::Object(Map::new());
        }
        if let Value::Object(map) = map {
            map.insert(key.to_owned(), value.into());
        }
    }

    fn text(&self, pointer: &str) -> &str {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn strings(&self, pointer: &str) -> BTreeMap<&str, &str> {
        let map = self.0.pointer(pointer).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.as_str(), v.as_str()?)))
            .collect()
    }
}

/// The object under `key`, made if need be.
fn object_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    if !value.get(key).is_some_and(Value::is_object) {
        value[key] = Value::Object(Map::new());
    }
    match &mut value[key] {
        Value::Object(map) => map,
        _ => unreachable!("made an object just above"),
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.id())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_needs_a_version_a_kind_and_a_name() {
        let check = |value, expect: &str| {
            assert_eq!(Object::new(value).expect_err("refused").to_string(), expect);
        };
        check(json!({}), "malformed object without apiVersion");
        check(json!({"apiVersion": "v1"}), "malformed object without kind");
        check(
            json!({"apiVersion": "v1", "kind": "Secret"}),
            "malformed object without metadata.name",
        );
    }

    #[test]
    fn debug_does_not_show_the_content() {
        let secret = Object::new(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "key", "namespace": "lab"}, "data": {"k": "aHVzaA=="},
        }))
        .expect("an object");
        assert_eq!(format!("{secret:?}"), "Object(Secret lab/key)");
    }

    #[test]
    fn labels_are_made_where_there_are_none() {
        let mut object = Object::new(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "labels": null},
        }))
        .expect("an object");
        object.set_label("app", "meshy");
        object.set_annotation("note", "x");
        assert_eq!(object.label("app"), Some("meshy"));
        assert_eq!(object.annotation("note"), Some("x"));
    }
}
