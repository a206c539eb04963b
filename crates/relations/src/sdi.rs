//! The envelope of `serialized-data-interface`: the versions one side speaks under
//! `_supported_versions`, and one document under `data`, both YAML, both in the application databag.
//!
//! Neither side sends before it has seen the other's versions, so the versions are written first and
//! whatever the state of everything else. The Python library writes them in an order that changes
//! from process to process; this one sorts them.

use juju_hooks::Databag;
use serde_json::{Map, Value};

use crate::{DecodeProblem, Result};

/// Databag key of the list of versions.
pub const VERSIONS_KEY: &str = "_supported_versions";
/// Databag key of the document.
pub const DATA_KEY: &str = "data";

/// The text of [`VERSIONS_KEY`] for these version numbers: `- v1` and `- v2`, a line each, rising.
pub fn versions_text(versions: &[u32]) -> String {
    let mut sorted = versions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let lines: Vec<String> = sorted
        .iter()
        .map(|version| format!("- v{version}\n"))
        .collect();
    lines.concat()
}

/// The databag entry that says which versions this side speaks.
pub fn versions(versions: &[u32]) -> Databag {
    Databag::from([(VERSIONS_KEY.to_owned(), versions_text(versions))])
}

/// Whether the databag was written by this library: it has versions or a document.
pub fn is_spoken(bag: &Databag) -> bool {
    bag.contains_key(VERSIONS_KEY) || bag.contains_key(DATA_KEY)
}

/// The versions and the document of one side.
pub(crate) fn envelope(ours: &[u32], data: Map<String, Value>) -> Databag {
    let mut bag = versions(ours);
    // JSON is YAML, and keeps a string of digits a string in every reader.
    bag.insert(DATA_KEY.to_owned(), Value::Object(data).to_string());
    bag
}

/// The highest version both sides speak and the document, or `None` while the other side has not
/// sent both.
pub(crate) fn document(bag: &Databag, ours: &[u32]) -> Result<Option<(u32, Map<String, Value>)>> {
    let Some(versions) = bag.get(VERSIONS_KEY).filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let version = common_version(versions, ours)?;
    let Some(data) = bag.get(DATA_KEY).filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let parsed =
        yaml::parse(data).map_err(|_| DecodeProblem::new(DATA_KEY, "must be a YAML mapping"))?;
    match parsed {
        Value::Null => Ok(None),
        Value::Object(map) if map.is_empty() => Ok(None),
        Value::Object(map) => Ok(Some((version, map))),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(DecodeProblem::new(DATA_KEY, "must be a YAML mapping"))
        }
    }
}

fn common_version(text: &str, ours: &[u32]) -> Result<u32> {
    let listed = yaml::parse(text)
        .ok()
        .and_then(|value| value.as_array().cloned())
        .ok_or_else(|| DecodeProblem::new(VERSIONS_KEY, "must be a YAML list such as [v1]"))?;
    listed
        .iter()
        .filter_map(number)
        .filter(|version| ours.contains(version))
        .max()
        .ok_or_else(|| {
            let spoken: Vec<String> = ours.iter().map(|v| format!("v{v}")).collect();
            DecodeProblem::new(
                VERSIONS_KEY,
                format!(
                    "no version in common, this side speaks {}",
                    spoken.join(", ")
                ),
            )
        })
}

/// `v2` and `2` are both version 2.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
        Value::String(text) => text.strip_prefix('v').unwrap_or(text).parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A text field of the document.
pub(crate) fn text(map: &Map<String, Value>, field: &str) -> Result<Option<String>> {
    match map.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(DecodeProblem::new(
            DATA_KEY,
            format!("field {field} must be text, quote it"),
        )),
    }
}

/// A text field that must be there.
pub(crate) fn required_text(map: &Map<String, Value>, field: &str) -> Result<String> {
    text(map, field)?.ok_or_else(|| missing(field))
}

/// A port field that must be there.
pub(crate) fn required_port(map: &Map<String, Value>, field: &str) -> Result<u16> {
    let value = map.get(field).ok_or_else(|| missing(field))?;
    crate::json::port(DATA_KEY, field, value)
}

/// A list of texts; absent is empty.
pub(crate) fn texts(map: &Map<String, Value>, field: &str) -> Result<Vec<String>> {
    let wrong = || DecodeProblem::new(DATA_KEY, format!("field {field} must be a list of texts"));
    match map.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
        Some(_) => Err(wrong()),
    }
}

fn missing(field: &str) -> DecodeProblem {
    DecodeProblem::new(DATA_KEY, format!("field {field} is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_whatever_order_they_are_given_in() {
        assert_eq!(versions_text(&[2, 1, 2]), "- v1\n- v2\n");
    }

    #[test]
    fn the_highest_common_version_is_taken() {
        let check = |text: &str, expect: Option<u32>| {
            assert_eq!(common_version(text, &[1, 2]).ok(), expect, "{text:?}");
        };
        check("- v1\n- v2\n", Some(2));
        check("- v2\n- v1\n", Some(2));
        check("[\"v1\"]", Some(1));
        check("- 2\n", Some(2));
        check("- v3\n", None);
        check("v1", None);
        check("- [", None);
    }
}
