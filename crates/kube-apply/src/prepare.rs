//! From what a charm wants to what is sent: owner labels, hash, and none of the fields that the
//! server owns. Pure.

use std::fmt::Write as _;

use k8s_openapi::ByteString;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::object::Object;
use crate::owner::{APPLIED_HASH, Inventory};

/// The object as it is applied.
///
/// Namespaces keep the labels they were given and get none of ours: they are shared, and we never
/// delete them.
pub(crate) fn prepare(desired: &Object, inventory: &Inventory) -> Object {
    let mut value = desired.value().clone();
    strip_nulls(&mut value);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for owned_by_server in [
                "creationTimestamp",
                "generation",
                "managedFields",
                "resourceVersion",
                "uid",
            ] {
                metadata.remove(owned_by_server);
            }
        }
    }
    encode_string_data(&mut value);
    let mut object = Object::from_value(value);
    if object.kind() == "Namespace" {
        return object;
    }
    for (key, label) in inventory.labels() {
        object.set_label(key, label);
    }
    let hash = hash(object.value());
    object.set_annotation(APPLIED_HASH, &hash);
    object
}

/// sha256 of the JSON, in hexadecimal. Object keys are sorted, so equal objects have equal hashes.
fn hash(value: &Value) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(value.to_string().as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `null` says nothing in an apply, and charts render it.
fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// `stringData` is write-only: the server moves it to `data`, so that is what we send.
fn encode_string_data(value: &mut Value) {
    if value.get("kind").and_then(Value::as_str) != Some("Secret") {
        return;
    }
    let Some(Value::Object(strings)) = value.as_object_mut().and_then(|v| v.remove("stringData"))
    else {
        return;
    };
    for (key, text) in strings {
        if let Value::String(text) = text
            && let Ok(encoded) = serde_json::to_value(ByteString(text.into_bytes()))
        {
            value["data"][key] = encoded;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::owner::Owner;

    fn prepared(value: Value) -> Object {
        let inventory = Inventory {
            owner: Owner {
                charm: "istio-k8s".to_owned(),
                model_uuid: "11-22".to_owned(),
                app: "meshy".to_owned(),
            },
            name: "control-plane".to_owned(),
        };
        prepare(&Object::new(value).expect("an object"), &inventory)
    }

    #[test]
    fn fields_of_the_server_and_nulls_are_not_sent() {
        let object = prepared(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "creationTimestamp": null, "uid": "x", "resourceVersion": "1"},
            "spec": {"a": null, "list": [{"b": null, "c": 1}]}, "status": {"x": 1},
        }));
        assert_eq!(object.pointer("/spec"), Some(&json!({"list": [{"c": 1}]})));
        assert_eq!(object.pointer("/status"), None);
        assert_eq!(object.uid(), None);
        assert_eq!(
            object.label("charms.istio-operators.dev/app"),
            Some("meshy")
        );
    }

    #[test]
    fn the_hash_depends_on_the_content_only() {
        let config = |data: Value| {
            let object = prepared(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data,
            }));
            object.annotation(APPLIED_HASH).expect("hash").to_owned()
        };
        assert_eq!(
            config(json!({"a": "1", "b": "2"})),
            config(json!({"b": "2", "a": "1"}))
        );
        assert_ne!(config(json!({"a": "1"})), config(json!({"a": "2"})));
    }

    #[test]
    fn string_data_becomes_data() {
        let secret = prepared(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},
            "stringData": {"key": "hush"}, "data": {"other": "eA=="},
        }));
        assert_eq!(
            secret.pointer("/data"),
            Some(&json!({"key": "aHVzaA==", "other": "eA=="}))
        );
        assert_eq!(secret.pointer("/stringData"), None);
    }

    #[test]
    fn namespaces_are_not_labelled() {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-lab"}});
        assert_eq!(prepared(namespace.clone()).value(), &namespace);
    }
}
