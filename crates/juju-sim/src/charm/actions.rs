//! Actions of a charm and the validation of their parameters.
//!
//! Juju validates with JSON schema draft 4. The keywords charms use are covered: type, enum,
//! required, properties, additionalProperties, items, minimum, maximum, minLength, maxLength,
//! pattern is accepted without a check (no regular-expression engine here).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use super::CharmError;

/// A declared action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActionMeta {
    /// Help text.
    #[serde(default)]
    pub(crate) description: String,
    /// An object schema: properties, required, additionalProperties.
    pub(crate) schema: Value,
}

/// The actions in a charm's `actions.yaml`.
pub(crate) fn declared(
    actions: Option<&Value>,
) -> Result<BTreeMap<String, ActionMeta>, CharmError> {
    let mut declared = BTreeMap::new();
    for (name, body) in actions.and_then(Value::as_object).into_iter().flatten() {
        if !is_name(name) || name == "juju" || name.starts_with("juju-") {
            return Err(CharmError::Invalid(format!("bad action name \"{name}\"")));
        }
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        let params = body
            .get("params")
            .cloned()
            .unwrap_or_else(|| Value::Object(Map::new()));
        schema.insert("properties".into(), params);
        for key in ["required", "additionalProperties"] {
            if let Some(v) = body.get(key) {
                schema.insert(key.into(), v.clone());
            }
        }
        let description = super::text(body, "description");
        declared.insert(
            name.clone(),
            ActionMeta {
                description,
                schema: Value::Object(schema),
            },
        );
    }
    Ok(declared)
}

/// Whether `text` matches Juju's rule for action names and result keys:
/// `^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$`.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    match text.as_bytes() {
        [] => false,
        [one] => plain(*one),
        [first, middle @ .., last] => {
            plain(*first) && plain(*last) && middle.iter().all(|c| plain(*c) || *c == b'-')
        }
    }
}

/// Fills in defaults and validates parameters.
///
/// # Errors
/// Juju's `validation failed: …` text.
pub(crate) fn validated(
    meta: &ActionMeta,
    mut params: Map<String, Value>,
    additional_by_default: bool,
) -> Result<Map<String, Value>, String> {
    let declared = meta.schema.get("properties").and_then(Value::as_object);
    for (name, property) in declared.into_iter().flatten() {
        if let Some(default) = property.get("default")
            && !params.contains_key(name)
        {
            params.insert(name.clone(), default.clone());
        }
    }
    let mut schema = meta.schema.clone();
    if let Some(object) = schema.as_object_mut()
        && !object.contains_key("additionalProperties")
    {
        object.insert("additionalProperties".into(), additional_by_default.into());
    }
    let mut problems = Vec::new();
    check(
        "(root)",
        &schema,
        &Value::Object(params.clone()),
        &mut problems,
    );
    if problems.is_empty() {
        return Ok(params);
    }
    Err(format!("validation failed: {}", problems.join(", ")))
}

fn check(at: &str, schema: &Value, value: &Value, problems: &mut Vec<String>) {
    let mut fault = |rule: &str| problems.push(format!("{at} : {rule}, given {value}"));
    if let Some(kinds) = schema.get("type") {
        let named: Vec<&str> = match kinds {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !named.iter().any(|kind| is_kind(kind, value)) {
            fault(&format!("must be of type {}", named.join(" or ")));
            return;
        }
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        fault(&format!(
            "must match one of the enum values {}",
            Value::from(allowed.clone())
        ));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(min) = bound("minimum").filter(|min| number < *min) {
            fault(&format!("must be greater than or equal to {min}"));
        }
        if let Some(max) = bound("maximum").filter(|max| number > *max) {
            fault(&format!("must be less than or equal to {max}"));
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(min) = limit("minLength").filter(|min| length < *min) {
            fault(&format!("must be at least {min} characters long"));
        }
        if let Some(max) = limit("maxLength").filter(|max| length > *max) {
            fault(&format!("must be at most {max} characters long"));
        }
    }
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        for (i, item) in items.iter().enumerate() {
            check(&format!("{at}.{i}"), schema, item, problems);
        }
    }
    if let Some(object) = value.as_object() {
        check_object(at, schema, object, problems);
    }
}

fn check_object(at: &str, schema: &Value, object: &Map<String, Value>, problems: &mut Vec<String>) {
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(name) = name.as_str()
            && !object.contains_key(name)
        {
            problems.push(format!(
                "{at} : \"{name}\" property is missing and required"
            ));
        }
    }
    let empty = Map::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for (name, item) in object {
        let inner = format!("{at}.{name}");
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(property), _) => check(&inner, property, item, problems),
            (None, Some(Value::Bool(false))) => {
                problems.push(format!(
                    "{at} : additional property \"{name}\" is not allowed"
                ));
            }
            (None, Some(rest @ Value::Object(_))) => check(&inner, rest, item, problems),
            (None, _) => {}
        }
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|f| f.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn meta() -> ActionMeta {
        let actions = json!({"probe": {
            "params": {
                "count": {"type": "integer", "default": 3, "minimum": 1},
                "mode": {"type": "string", "enum": ["fast", "full"]},
            },
            "required": ["mode"],
            "additionalProperties": false,
        }});
        declared(Some(&actions)).unwrap().remove("probe").unwrap()
    }

    #[track_caller]
    fn check_params(params: &Value, expect: Result<Value, &str>) {
        let got = validated(&meta(), params.as_object().unwrap().clone(), true);
        assert_eq!(got.map(Value::Object), expect.map_err(ToOwned::to_owned));
    }

    #[test]
    fn parameters_are_validated_and_completed() {
        check_params(
            &json!({"mode": "fast"}),
            Ok(json!({"mode": "fast", "count": 3})),
        );
        check_params(
            &json!({}),
            Err("validation failed: (root) : \"mode\" property is missing and required"),
        );
        check_params(
            &json!({"mode": "fast", "count": "many"}),
            Err("validation failed: (root).count : must be of type integer, given \"many\""),
        );
        check_params(
            &json!({"mode": "fast", "extra": 1}),
            Err("validation failed: (root) : additional property \"extra\" is not allowed"),
        );
        check_params(
            &json!({"mode": "slow"}),
            Err(
                "validation failed: (root).mode : must match one of the enum values \
                 [\"fast\",\"full\"], given \"slow\"",
            ),
        );
    }

    #[test]
    fn names_are_lower_case_words() {
        for (name, ok) in [
            ("a", true),
            ("get-plan", true),
            ("a1", true),
            ("-a", false),
            ("A", false),
            ("", false),
        ] {
            assert_eq!(is_name(name), ok, "{name}");
        }
    }
}
