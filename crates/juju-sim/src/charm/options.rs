//! Config options of a charm and the values an operator may give them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::CharmError;

/// A declared config option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OptionMeta {
    /// `string`, `int`, `float`, `boolean` or `secret`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The value used when the operator gave none; null when there is none.
    #[serde(default)]
    pub(crate) default: Value,
    /// Help text.
    #[serde(default)]
    pub(crate) description: String,
}

/// The options in a charm's `config.yaml`.
pub(crate) fn declared(config: Option<&Value>) -> Result<BTreeMap<String, OptionMeta>, CharmError> {
    let Some(config) = config else {
        return Ok(BTreeMap::new());
    };
    let Some(options) = config.get("options") else {
        return Err(CharmError::Invalid(
            "its config has no key \"options\"".into(),
        ));
    };
    let mut declared = BTreeMap::new();
    for (name, body) in options.as_object().into_iter().flatten() {
        let meta = OptionMeta {
            kind: body
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or("string")
                .to_owned(),
            default: body.get("default").cloned().unwrap_or_default(),
            description: super::text(body, "description"),
        };
        if !["string", "int", "float", "boolean", "secret"].contains(&meta.kind.as_str()) {
            return Err(CharmError::Invalid(format!(
                "option \"{name}\" has unknown type \"{}\"",
                meta.kind
            )));
        }
        if !meta.default.is_null() {
            typed(name, &meta.kind, &meta.default).map_err(CharmError::Invalid)?;
        }
        declared.insert(name.clone(), meta);
    }
    Ok(declared)
}

/// Checks a YAML value against an option's type.
pub(crate) fn typed(name: &str, kind: &str, value: &Value) -> Result<Value, String> {
    let fits = match kind {
        "string" => value.is_string(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value
            .as_str()
            .is_some_and(|s| s.is_empty() || s.starts_with("secret:")),
    };
    if fits {
        return Ok(value.clone());
    }
    let shown = match value {
        Value::String(s) => format!("{s:?}"),
        other => other.to_string(),
    };
    Err(format!("option \"{name}\" expected {kind}, got {shown}"))
}

/// Reads a value from the command line, where everything is text.
pub(crate) fn parsed(name: &str, kind: &str, text: &str) -> Result<Value, String> {
    let value = match kind {
        "int" => text.parse::<i64>().ok().map(Value::from),
        "float" => text
            .parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map(Value::Number),
        "boolean" => match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(Value::Bool(false)),
            _ => None,
        },
        "secret" => {
            Some(Value::from(text)).filter(|_| text.is_empty() || text.starts_with("secret:"))
        }
        _ => Some(Value::from(text)),
    };
    value.ok_or_else(|| format!("option \"{name}\" expected {kind}, got {text:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_line_text_becomes_the_options_type() {
        let check = |kind: &str, text: &str, expect: Result<Value, &str>| {
            assert_eq!(parsed("x", kind, text), expect.map_err(ToOwned::to_owned));
        };
        check("int", "5", Ok(json!(5)));
        check("int", "a", Err("option \"x\" expected int, got \"a\""));
        check("boolean", "True", Ok(json!(true)));
        check(
            "boolean",
            "yes",
            Err("option \"x\" expected boolean, got \"yes\""),
        );
        check("float", "5", Ok(json!(5.0)));
        check("string", "", Ok(json!("")));
        check(
            "secret",
            "plain",
            Err("option \"x\" expected secret, got \"plain\""),
        );
    }

    #[test]
    fn defaults_must_fit_the_type() {
        let config = json!({"options": {"ratio": {"type": "float", "default": 1}}});
        assert!(declared(Some(&config)).is_ok());
        let config = json!({"options": {"ratio": {"type": "int", "default": "1"}}});
        assert!(declared(Some(&config)).is_err());
    }
}
