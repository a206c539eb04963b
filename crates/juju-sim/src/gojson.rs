//! JSON and "smart" text exactly as Juju's hook tools print them.
//!
//! Go escapes `<`, `>`, `&`, U+2028 and U+2029 inside strings and sorts keys; numbers that crossed
//! the API are floats there, so `5.0` prints as `5`.

use std::fmt::Write as _;

use serde_json::Value;

/// Go's `json.Marshal` of a value, without the newline.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// The tools' default format: bare scalars, lists one item a line, the rest as YAML.
pub(crate) fn smart(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(b) => (if *b { "True\n" } else { "False\n" }).to_owned(),
        Value::String(s) if s.is_empty() => String::new(),
        Value::String(s) => format!("{s}\n"),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Array(items) if items.iter().all(Value::is_string) => items
            .iter()
            .filter_map(Value::as_str)
            .fold(String::new(), |mut out, item| {
                out.push_str(item);
                out.push('\n');
                out
            }),
        Value::Number(_) => format!("{}\n", json(value)),
        other => yaml(other),
    }
}

/// YAML, ending in a newline; nothing for null.
pub(crate) fn yaml(value: &Value) -> String {
    if value.is_null() {
        return String::new();
    }
    let mut text = ::yaml::emit(value).unwrap_or_else(|_| json(value));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e21 => {
                let _ = write!(out, "{f:.0}");
            }
            _ => {
                let _ = write!(out, "{n}");
            }
        },
        Value::String(s) => string(s, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                string(key, out);
                out.push(':');
                write(item, out);
            }
            out.push('}');
        }
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_escaped_as_go_does() {
        assert_eq!(
            json(&json!("a<b>&\u{2028}ü\u{1}\n")),
            r#""a\u003cb\u003e\u0026\u2028ü\u0001\n""#
        );
        assert_eq!(
            json(&json!({"b": 5.0, "a": [1, 2.5, null]})),
            r#"{"a":[1,2.5,null],"b":5}"#
        );
    }

    #[test]
    fn smart_output_is_bare_text_where_it_can_be() {
        assert_eq!(smart(&json!(true)), "True\n");
        assert_eq!(smart(&json!(["a", "b"])), "a\nb\n");
        assert_eq!(smart(&json!(null)), "");
        assert_eq!(smart(&json!("x")), "x\n");
    }
}
