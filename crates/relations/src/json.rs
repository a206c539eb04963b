//! Databags whose every value is JSON-encoded on its own, as pydantic-style libraries write them.

use juju_hooks::Databag;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{DecodeProblem, Result};

/// The JSON value under `key`; `None` where the key is absent or empty.
pub(crate) fn value(bag: &Databag, key: &str) -> Result<Option<Value>> {
    match bag.get(key).map(String::as_str) {
        None | Some("") => Ok(None),
        Some(text) => serde_json::from_str(text)
            .map(Some)
            .map_err(|_| DecodeProblem::new(key, "must be JSON")),
    }
}

/// The JSON text under `key`.
pub(crate) fn text(bag: &Databag, key: &str) -> Result<Option<String>> {
    match value(bag, key)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(DecodeProblem::new(key, "must be a JSON string")),
    }
}

/// The JSON boolean under `key`; absent is `false`.
pub(crate) fn flag(bag: &Databag, key: &str) -> Result<bool> {
    match value(bag, key)? {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(DecodeProblem::new(key, "must be true or false")),
    }
}

/// A TCP port out of a JSON or YAML number.
pub(crate) fn port(key: &str, field: &str, value: &Value) -> Result<u16> {
    let named = if field.is_empty() {
        String::new()
    } else {
        format!("field {field} ")
    };
    let number = value
        .as_u64()
        .ok_or_else(|| DecodeProblem::new(key, format!("{named}must be an integer")))?;
    match u16::try_from(number) {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(DecodeProblem::new(
            key,
            format!("{named}must be 1 to 65535, is {number}"),
        )),
    }
}

/// `text` as a JSON string.
pub(crate) fn string(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// `value` as JSON. Our types have no keys but texts and nothing that fails to serialize.
pub(crate) fn encoded<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .unwrap_or(Value::Null)
        .to_string()
}

/// The JSON document under `key`; `None` where the key is absent, empty or `null`.
pub(crate) fn document<T: DeserializeOwned>(bag: &Databag, key: &str) -> Result<Option<T>> {
    match value(bag, key)? {
        None | Some(Value::Null) => Ok(None),
        Some(value) => serde_json::from_value(value)
            .map(Some)
            .map_err(|error| DecodeProblem::new(key, error.to_string())),
    }
}

/// Reads `null` as the default: pydantic writes what is absent so.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Methods of HTTP that the interfaces know.
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

/// A method, or none.
pub(crate) fn method<E: Error>(method: Option<String>) -> Result<Option<String>, E> {
    match method {
        Some(odd) if !METHODS.contains(&odd.as_str()) => {
            Err(E::custom(format!("{odd:?} is no method of HTTP")))
        }
        method => Ok(method),
    }
}

/// A TCP port.
pub(crate) fn port_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let port = u16::deserialize(deserializer)?;
    some_port(Some(port))?;
    Ok(port)
}

/// A TCP port, or none.
pub(crate) fn some_port_number<'de, D>(deserializer: D) -> Result<Option<u16>, D::Error>
where
    D: Deserializer<'de>,
{
    some_port(Option::deserialize(deserializer)?)
}

fn some_port<E: Error>(port: Option<u16>) -> Result<Option<u16>, E> {
    match port {
        Some(0) => Err(E::custom("a port must be 1 to 65535, is 0")),
        port => Ok(port),
    }
}
