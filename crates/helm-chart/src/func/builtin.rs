//! Go's own functions, and Helm's that reach into the engine.

use super::{ANY, Call, Row};
use crate::engine::Fail;
use crate::engine::format;
use crate::engine::native::Native;
use crate::engine::value::{Entries, Value};
use std::cmp::Ordering;
use std::rc::Rc;

pub(super) const TABLE: &[Row] = &[
    ("not", 1, 1, |c| Ok(Value::Bool(!c.arg(0).truth()))),
    ("eq", 1, ANY, eq),
    ("ne", 2, 2, |c| Ok(Value::Bool(!same(c.arg(0), c.arg(1))?))),
    ("lt", 2, 2, |c| {
        Ok(Value::Bool(order(c)? == Some(Ordering::Less)))
    }),
    ("le", 2, 2, |c| {
        Ok(Value::Bool(matches!(
            order(c)?,
            Some(Ordering::Less | Ordering::Equal)
        )))
    }),
    ("gt", 2, 2, |c| {
        Ok(Value::Bool(order(c)? == Some(Ordering::Greater)))
    }),
    ("ge", 2, 2, |c| {
        Ok(Value::Bool(matches!(
            order(c)?,
            Some(Ordering::Greater | Ordering::Equal)
        )))
    }),
    ("len", 1, 1, len),
    ("index", 1, ANY, index),
    ("print", 0, ANY, print),
    ("println", 0, ANY, println),
    ("printf", 1, ANY, |c| {
        let pattern = c.str(0)?;
        Ok(Value::str(&format::sprintf(
            &pattern,
            &c.args[1..],
            &c.engine.budget,
        )?))
    }),
    ("html", 0, ANY, |c| escaped(c, html)),
    ("js", 0, ANY, |c| escaped(c, js)),
    ("urlquery", 0, ANY, |c| escaped(c, url)),
    ("call", 1, ANY, |c| {
        Err(Fail::call(format!(
            "non-function of type {}",
            c.arg(0).go_type()
        )))
    }),
    ("include", 2, 2, |c| {
        let name = c.str(0)?;
        let data = c.arg(1).clone();
        Ok(Value::str(&c.engine.include(&name, data)?))
    }),
    ("tpl", 2, 2, |c| {
        let text = c.str(0)?;
        let data = c.arg(1).clone();
        Ok(Value::str(&c.engine.tpl(&text, data)?))
    }),
    ("fail", 1, 1, |c| Err(Fail::Refused(c.str(0)?.to_string()))),
    ("required", 2, 2, |c| match c.arg(1) {
        Value::Invalid | Value::Nil => Err(Fail::Refused(c.str(0)?.to_string())),
        Value::Str(text) if text.is_empty() => Err(Fail::Refused(c.str(0)?.to_string())),
        value => Ok(value.clone()),
    }),
    // Without a cluster there is nothing to find, as in `helm template`.
    ("lookup", 4, 4, |_| Ok(Value::map(Entries::new()))),
    ("getHostByName", 1, 1, |_| Ok(Value::str(""))),
];

const BAD_COMPARISON: &str = "incompatible types for comparison";

fn eq(c: &mut Call<'_>) -> Result<Value, Fail> {
    if c.args.len() < 2 {
        return Err(Fail::call("missing argument for comparison"));
    }
    for other in &c.args[1..] {
        if same(c.arg(0), other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// Go's typed equality: a string against a bool is an error, anything against nothing is false.
fn same(a: &Value, b: &Value) -> Result<bool, Fail> {
    Ok(match (a, b) {
        (Value::Invalid | Value::Nil, Value::Invalid | Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        #[expect(clippy::float_cmp, reason = "Go compares exactly")]
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Map(_) | Value::List(_) | Value::Bytes(_), other)
        | (other, Value::Map(_) | Value::List(_) | Value::Bytes(_))
            if !is_basic(other) =>
        {
            let composite = if is_basic(a) || a.is_nil() { b } else { a };
            if a.is_nil() || b.is_nil() {
                return Ok(false);
            }
            return Err(Fail::call(format!(
                "non-comparable type {}",
                composite.go_type()
            )));
        }
        (Value::Invalid | Value::Nil, _) | (_, Value::Invalid | Value::Nil) => false,
        _ => return Err(Fail::call(BAD_COMPARISON)),
    })
}

fn is_basic(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Str(_)
    )
}

fn order(c: &Call<'_>) -> Result<Option<Ordering>, Fail> {
    match (c.arg(0), c.arg(1)) {
        (Value::Int(a), Value::Int(b)) => Ok(Some(a.cmp(b))),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Str(a), Value::Str(b)) => Ok(Some(a.cmp(b))),
        (a, b) if is_orderable(a) && is_orderable(b) => Err(Fail::call(BAD_COMPARISON)),
        _ => Err(Fail::call("invalid type for comparison")),
    }
}

fn is_orderable(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Float(_) | Value::Str(_))
}

fn length(value: &Value) -> Option<usize> {
    Some(match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.0.len(),
        Value::Map(map) => map.len(),
        Value::Native(Native::Files(files)) => files.len(),
        Value::Native(Native::ApiVersions(caps)) => caps.api_versions.len(),
        _ => return None,
    })
}

fn len(c: &mut Call<'_>) -> Result<Value, Fail> {
    match length(c.arg(0)) {
        Some(n) => Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX))),
        None if c.arg(0).is_nil() => Err(Fail::call("len of nil pointer")),
        None => Err(Fail::call(format!("len of type {}", c.arg(0).go_type()))),
    }
}

fn position(value: &Value, len: usize) -> Result<usize, Fail> {
    match value {
        Value::Int(i) => usize::try_from(*i)
            .ok()
            .filter(|i| *i < len)
            .ok_or_else(|| Fail::call(format!("index out of range: {i}"))),
        Value::Invalid | Value::Nil => Err(Fail::call("cannot index slice/array with nil")),
        other => Err(Fail::call(format!(
            "cannot index slice/array with type {}",
            other.go_type()
        ))),
    }
}

fn index(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut item = c.arg(0).clone();
    if item.is_nil() {
        return Err(Fail::call("index of untyped nil"));
    }
    for index in &c.args[1..] {
        item = match &item {
            Value::Invalid | Value::Nil => return Err(Fail::call("index of nil pointer")),
            Value::List(list) => list.0[position(index, list.0.len())?].clone(),
            Value::Bytes(bytes) => Value::Int(i64::from(bytes[position(index, bytes.len())?])),
            Value::Str(text) => {
                Value::Int(i64::from(text.as_bytes()[position(index, text.len())?]))
            }
            Value::Map(map) => match index {
                Value::Str(key) => map.get(key),
                Value::Invalid | Value::Nil => {
                    return Err(Fail::call("value is nil; should be of type string"));
                }
                other => {
                    return Err(Fail::call(format!(
                        "value has type {}; should be string",
                        other.go_type()
                    )));
                }
            },
            Value::Native(Native::Files(files)) => match index {
                Value::Str(key) => files
                    .get(key)
                    .map_or(Value::Nil, |data| Value::Bytes(Rc::clone(data))),
                other => {
                    return Err(Fail::call(format!(
                        "value has type {}; should be string",
                        other.go_type()
                    )));
                }
            },
            other => {
                return Err(Fail::call(format!(
                    "can't index item of type {}",
                    other.go_type()
                )));
            }
        };
    }
    Ok(item)
}

/// `fmt.Sprint`: a space between operands of which neither is a string.
fn sprint(c: &Call<'_>) -> Result<String, Fail> {
    let mut out = String::new();
    for (i, arg) in c.args.iter().enumerate() {
        let is_str = |v: &Value| matches!(v, Value::Str(_));
        if i > 0 && !is_str(arg) && !is_str(&c.args[i - 1]) {
            out.push(' ');
        }
        out.push_str(&format::text(arg, &c.engine.budget)?);
        c.engine.budget.fits(out.len())?;
    }
    Ok(out)
}

fn print(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(Value::str(&sprint(c)?))
}

fn println(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut texts = Vec::new();
    for arg in &c.args {
        texts.push(format::text(arg, &c.engine.budget)?);
    }
    Ok(Value::str(&format!("{}\n", texts.join(" "))))
}

fn escaped(c: &Call<'_>, escape: fn(char, &mut String)) -> Result<Value, Fail> {
    let text = sprint(c)?;
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        escape(ch, &mut out);
    }
    Ok(Value::str(&out))
}

fn html(c: char, out: &mut String) {
    match c {
        '\0' => out.push('\u{fffd}'),
        '"' => out.push_str("&#34;"),
        '\'' => out.push_str("&#39;"),
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}

fn js(c: char, out: &mut String) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\'' => out.push_str("\\'"),
        '"' => out.push_str("\\\""),
        '<' | '>' | '&' | '=' => out.extend([format!("\\u{:04X}", u32::from(c))]),
        c if c < ' ' => out.extend([format!("\\u{:04X}", u32::from(c))]),
        c => out.push(c),
    }
}

fn url(c: char, out: &mut String) {
    match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => out.push(c),
        ' ' => out.push('+'),
        c => {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                out.extend([format!("%{byte:02X}")]);
            }
        }
    }
}
