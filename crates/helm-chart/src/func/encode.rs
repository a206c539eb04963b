//! YAML, JSON, base64, checksums.

use super::{Call, Row};
use crate::engine::Fail;
use crate::engine::native::entries;
use crate::engine::value::{NoJson, Value};
use sha2::Digest as _;
use std::fmt::Write as _;

pub(super) const TABLE: &[Row] = &[
    ("toYaml", 1, 1, |c| to_yaml(c, false)),
    ("mustToYaml", 1, 1, |c| to_yaml(c, true)),
    ("fromYaml", 1, 1, from_yaml),
    ("fromYamlArray", 1, 1, from_yaml_array),
    ("toJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: false,
                html: true,
            },
        )
    }),
    ("mustToJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: false,
                html: true,
            },
        )
    }),
    ("toRawJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: false,
                html: false,
            },
        )
    }),
    ("mustToRawJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: false,
                html: false,
            },
        )
    }),
    ("toPrettyJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: true,
                html: true,
            },
        )
    }),
    ("mustToPrettyJson", 1, 1, |c| {
        to_json(
            c,
            Layout {
                pretty: true,
                html: true,
            },
        )
    }),
    ("fromJson", 1, 1, from_json),
    ("mustFromJson", 1, 1, |c| {
        parse_json(c)?
            .map(|json| Value::from_json(&json))
            .map_err(Fail::call)
    }),
    ("fromJsonArray", 1, 1, from_json_array),
    ("b64enc", 1, 1, |c| {
        Ok(Value::str(&base64(c.str(0)?.as_bytes())))
    }),
    ("b64dec", 1, 1, |c| Ok(Value::str(&unbase64(&c.str(0)?)))),
    ("sha256sum", 1, 1, |c| {
        let text = c.str(0)?;
        c.engine.budget.steps(text.len() / 64)?;
        let mut hex = String::with_capacity(64);
        for byte in sha2::Sha256::digest(text.as_bytes()) {
            let _ = write!(hex, "{byte:02x}");
        }
        Ok(Value::str(&hex))
    }),
];

/// What has no JSON is the empty string, unless the function insists.
fn json(c: &Call<'_>) -> Result<Option<serde_json::Value>, Fail> {
    match c.arg(0).to_json(&c.engine.budget) {
        Ok(json) => Ok(Some(json)),
        Err(NoJson::Unsupported) => Ok(None),
        Err(NoJson::Exceeded(exceeded)) => Err(exceeded.into()),
    }
}

fn to_yaml(c: &Call<'_>, insist: bool) -> Result<Value, Fail> {
    let Some(json) = json(c)? else {
        return if insist {
            Err(Fail::call("json: unsupported value"))
        } else {
            Ok(Value::str(""))
        };
    };
    let text = yaml::emit_go(&json);
    Ok(Value::str(text.strip_suffix('\n').unwrap_or(&text)))
}

fn parse_yaml(c: &Call<'_>) -> Result<Result<serde_json::Value, String>, Fail> {
    let text = c.str(0)?;
    c.engine.budget.steps(text.len() / 64)?;
    Ok(yaml::parse_first(&text).map_err(|e| format!("error converting YAML to JSON: {e}")))
}

fn map_with_error(message: String) -> Value {
    Value::map(entries([(
        "Error",
        Value::from_json(&serde_json::Value::String(message)),
    )]))
}

/// Charts read the same long text again and again: Istio's, each CRD once for its name and once for the rest.
fn from_yaml(c: &mut Call<'_>) -> Result<Value, Fail> {
    let text = c.str(0)?;
    if let Some(known) = c.engine.read.get(&text) {
        return Ok(known.deep_copy(&c.engine.budget)?);
    }
    Ok(match parse_yaml(c)? {
        Ok(json @ serde_json::Value::Object(_)) => {
            let value = Value::from_json(&json);
            if !c.engine.read.takes(&text) {
                return Ok(value);
            }
            let copy = value.deep_copy(&c.engine.budget)?;
            c.engine.read.keep(text, value);
            copy
        }
        Ok(serde_json::Value::Null) => Value::map(entries([])),
        Ok(_) => map_with_error("error unmarshaling JSON: not a mapping".to_owned()),
        Err(message) => map_with_error(message),
    })
}

fn from_yaml_array(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(match parse_yaml(c)? {
        Ok(json @ serde_json::Value::Array(_)) => Value::from_json(&json),
        Ok(serde_json::Value::Null) => Value::list(Vec::new()),
        Ok(_) => Value::list(vec![Value::str("error unmarshaling JSON: not a sequence")]),
        Err(message) => Value::list(vec![Value::str(&message)]),
    })
}

fn parse_json(c: &Call<'_>) -> Result<Result<serde_json::Value, String>, Fail> {
    let text = c.str(0)?;
    c.engine.budget.steps(text.len() / 64)?;
    Ok(serde_json::from_str(&text).map_err(|e| e.to_string()))
}

/// Helm's `fromJson`, which replaces sprig's: objects only, an error becomes a key.
fn from_json(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(match parse_json(c)? {
        Ok(json @ serde_json::Value::Object(_)) => Value::from_json(&json),
        Ok(serde_json::Value::Null) => Value::map(entries([])),
        Ok(_) => map_with_error("json: cannot unmarshal into a map".to_owned()),
        Err(message) => map_with_error(message),
    })
}

fn from_json_array(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(match parse_json(c)? {
        Ok(json @ serde_json::Value::Array(_)) => Value::from_json(&json),
        Ok(serde_json::Value::Null) => Value::list(Vec::new()),
        Ok(_) => Value::list(vec![Value::str("json: cannot unmarshal into a list")]),
        Err(message) => Value::list(vec![Value::str(&message)]),
    })
}

#[derive(Clone, Copy)]
struct Layout {
    pretty: bool,
    html: bool,
}

fn to_json(c: &Call<'_>, layout: Layout) -> Result<Value, Fail> {
    let Some(json) = json(c)? else {
        return Ok(Value::str(""));
    };
    let mut out = String::new();
    write_json(&mut out, &json, layout, 0);
    Ok(Value::str(&out))
}

/// `json.Marshal` and `json.MarshalIndent` with two spaces.
fn write_json(out: &mut String, json: &serde_json::Value, layout: Layout, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        if layout.pretty {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    match json {
        serde_json::Value::Null => out.push_str("null"),
        serde_json::Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        serde_json::Value::Number(n) => out.push_str(&number(n)),
        serde_json::Value::String(s) => write_string(out, s, layout.html),
        serde_json::Value::Array(items) if items.is_empty() => out.push_str("[]"),
        serde_json::Value::Object(map) if map.is_empty() => out.push_str("{}"),
        serde_json::Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_json(out, item, layout, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        serde_json::Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                line(out, depth + 1);
                write_string(out, key, layout.html);
                out.push_str(if layout.pretty { ": " } else { ":" });
                write_json(out, item, layout, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
    }
}

/// Go writes floats without an exponent between 1e-6 and 1e21.
fn number(n: &serde_json::Number) -> String {
    let Some(f) = n.as_f64().filter(|_| n.is_f64()) else {
        return n.to_string();
    };
    if f == 0.0 || (1e-6..1e21).contains(&f.abs()) {
        return format!("{f}");
    }
    let text = format!("{f:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => {
            format!("{mantissa}e+{exponent}")
        }
        _ => text,
    }
}

fn write_string(out: &mut String, text: &str, html: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '<' | '>' | '&' if html => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                let index = (group >> (18 - 6 * i)) & 63;
                out.push(char::from(ALPHABET[index as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// The decoded text; of what is no base64, Go's error message, as in sprig.
fn unbase64(text: &str) -> String {
    let illegal = |at: usize| format!("illegal base64 data at input byte {at}");
    let digits: Vec<(usize, u8)> = text
        .bytes()
        .enumerate()
        .filter(|(_, b)| !matches!(b, b'\r' | b'\n'))
        .collect();
    if !digits.len().is_multiple_of(4) {
        return illegal(text.len());
    }
    let padding = digits.iter().rev().take_while(|(_, b)| *b == b'=').count();
    if padding > 2 {
        return illegal(text.len() - padding);
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut value = 0_u32;
        for (at, digit) in group {
            let last_group = *at >= text.len() - padding;
            let six = match ALPHABET.iter().position(|b| b == digit) {
                Some(six) => u32::try_from(six).unwrap_or(0),
                None if *digit == b'=' && last_group => 0,
                None => return illegal(*at),
            };
            value = value << 6 | six;
        }
        bytes.extend_from_slice(&value.to_be_bytes()[1..]);
    }
    bytes.truncate(bytes.len() - padding.min(bytes.len()));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_written_like_go() {
        let value =
            json!({"b": [1.5, 1e21, 1e-7, 3.0], "a": {"x": "<&>\u{2028}\u{1}"}, "e": [], "f": {}});
        let mut out = String::new();
        write_json(
            &mut out,
            &value,
            Layout {
                pretty: false,
                html: true,
            },
            0,
        );
        assert_eq!(
            out,
            r#"{"a":{"x":"\u003c\u0026\u003e\u2028\u0001"},"b":[1.5,1e+21,1e-7,3],"e":[],"f":{}}"#
        );
        let mut out = String::new();
        write_json(
            &mut out,
            &json!({"a": [1], "b": {}}),
            Layout {
                pretty: true,
                html: true,
            },
            0,
        );
        assert_eq!(out, "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
    }

    #[test]
    fn base64_round_trips() {
        for text in ["", "a", "ab", "abc", "abcd", "é\n"] {
            assert_eq!(unbase64(&base64(text.as_bytes())), text);
        }
        assert_eq!(base64(b"hello"), "aGVsbG8=");
        assert_eq!(unbase64("a"), "illegal base64 data at input byte 1");
        assert_eq!(unbase64("a*=="), "illegal base64 data at input byte 1");
    }
}
