//! Text.

use super::{ANY, Call, Row};
use crate::engine::value::{Entries, MapKind, MapObj, Value};
use crate::engine::{Fail, format};
use std::rc::Rc;

pub(super) const TABLE: &[Row] = &[
    ("trim", 1, 1, |c| Ok(Value::str(c.str(0)?.trim()))),
    ("trimAll", 2, 2, trim_all),
    ("trimall", 2, 2, trim_all),
    ("trimSuffix", 2, 2, |c| {
        let (suffix, text) = (c.str(0)?, c.str(1)?);
        Ok(Value::str(text.strip_suffix(&*suffix).unwrap_or(&text)))
    }),
    ("trimPrefix", 2, 2, |c| {
        let (prefix, text) = (c.str(0)?, c.str(1)?);
        Ok(Value::str(text.strip_prefix(&*prefix).unwrap_or(&text)))
    }),
    ("upper", 1, 1, |c| Ok(Value::str(&c.str(0)?.to_uppercase()))),
    ("lower", 1, 1, |c| Ok(Value::str(&c.str(0)?.to_lowercase()))),
    ("title", 1, 1, |c| Ok(Value::str(&title(&c.str(0)?)))),
    ("untitle", 1, 1, |c| Ok(Value::str(&untitle(&c.str(0)?)))),
    ("nospace", 1, 1, |c| {
        Ok(Value::str(
            &c.str(0)?
                .chars()
                .filter(|c| !c.is_whitespace())
                .collect::<String>(),
        ))
    }),
    ("contains", 2, 2, |c| {
        Ok(Value::Bool(c.str(1)?.contains(&*c.str(0)?)))
    }),
    ("hasPrefix", 2, 2, |c| {
        Ok(Value::Bool(c.str(1)?.starts_with(&*c.str(0)?)))
    }),
    ("hasSuffix", 2, 2, |c| {
        Ok(Value::Bool(c.str(1)?.ends_with(&*c.str(0)?)))
    }),
    ("quote", 0, ANY, |c| quoted(c, format::quote)),
    ("squote", 0, ANY, |c| quoted(c, |text| format!("'{text}'"))),
    ("cat", 0, ANY, cat),
    ("indent", 2, 2, |c| Ok(Value::str(&indent(c, "")?))),
    ("nindent", 2, 2, |c| Ok(Value::str(&indent(c, "\n")?))),
    ("replace", 3, 3, replace),
    ("plural", 3, 3, |c| {
        Ok(c.arg(usize::from(c.int(2)? != 1)).clone())
    }),
    ("repeat", 2, 2, |c| {
        let (count, text) = (c.size(0)?, c.str(1)?);
        c.engine.budget.string(text.len().saturating_mul(count))?;
        Ok(Value::str(&text.repeat(count)))
    }),
    ("substr", 3, 3, substr),
    ("trunc", 2, 2, trunc),
    ("abbrev", 2, 2, abbrev),
    ("initials", 1, 1, |c| {
        Ok(Value::str(
            &c.str(0)?
                .split_whitespace()
                .filter_map(|word| word.chars().next())
                .collect::<String>(),
        ))
    }),
    ("split", 2, 2, |c| {
        Ok(numbered(c.str(1)?.split(&*c.str(0)?)))
    }),
    ("splitn", 3, 3, |c| {
        let n = usize::try_from(c.int(1)?).unwrap_or(usize::MAX);
        Ok(numbered(c.str(2)?.splitn(n, &*c.str(0)?)))
    }),
    ("splitList", 2, 2, |c| {
        let (separator, text) = (c.str(0)?, c.str(1)?);
        let parts: Vec<Value> = if separator.is_empty() {
            text.chars()
                .map(|c| Value::str(c.encode_utf8(&mut [0; 4])))
                .collect()
        } else {
            text.split(&*separator).map(Value::str).collect()
        };
        c.engine.budget.list(parts.len())?;
        Ok(Value::list(parts))
    }),
    ("toString", 1, 1, |c| Ok(Value::str(&c.text(c.arg(0))?))),
    ("camelcase", 1, 1, |c| Ok(Value::str(&camel(&c.str(0)?)))),
    ("snakecase", 1, 1, |c| {
        Ok(Value::str(&words(&c.str(0)?, '_')))
    }),
    ("kebabcase", 1, 1, |c| {
        Ok(Value::str(&words(&c.str(0)?, '-')))
    }),
    ("base", 1, 1, |c| {
        let path = c.str(0)?;
        let trimmed = path.trim_end_matches('/');
        Ok(Value::str(match trimmed.rsplit('/').next() {
            _ if path.is_empty() => ".",
            Some("") | None => "/",
            Some(base) => base,
        }))
    }),
    ("ext", 1, 1, |c| {
        let path = c.str(0)?;
        let name = path.rsplit('/').next().unwrap_or("");
        Ok(Value::str(name.rfind('.').map_or("", |dot| &name[dot..])))
    }),
];

fn trim_all(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (cut, text) = (c.str(0)?, c.str(1)?);
    Ok(Value::str(text.trim_matches(|ch| cut.contains(ch))))
}

/// `strings.Title`: the first letter of every word in title case.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.push(c);
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphanumeric() || c == '_' || c == '\'';
    }
    out
}

fn untitle(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut start = true;
    for c in text.chars() {
        if start {
            out.extend(c.to_lowercase());
        } else {
            out.push(c);
        }
        start = c.is_whitespace();
    }
    out
}

fn quoted(c: &Call<'_>, quote: fn(&str) -> String) -> Result<Value, Fail> {
    let mut out = Vec::new();
    for arg in &c.args {
        if !arg.is_nil() {
            let text = c.text(arg)?;
            c.engine.budget.string(text.len().saturating_mul(2))?;
            out.push(quote(&text));
        }
    }
    Ok(Value::str(&out.join(" ")))
}

fn cat(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut out = Vec::new();
    for arg in &c.args {
        if !arg.is_nil() {
            out.push(format::text(arg, &c.engine.budget)?);
        }
    }
    Ok(Value::str(&out.join(" ")))
}

fn indent(c: &Call<'_>, lead: &str) -> Result<String, Fail> {
    let (spaces, text) = (c.size(0)?, c.str(1)?);
    let lines = text.bytes().filter(|b| *b == b'\n').count() + 1;
    let len = text.len().saturating_add(lines.saturating_mul(spaces));
    c.engine.budget.string(len)?;
    let pad = " ".repeat(spaces);
    let mut out = String::with_capacity(len + 1);
    out.push_str(lead);
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out.push_str(&pad);
        out.push_str(line);
    }
    Ok(out)
}

fn replace(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (old, new, text) = (c.str(0)?, c.str(1)?, c.str(2)?);
    let count = if old.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(&*old).count()
    };
    c.engine
        .budget
        .string(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::str(&text.replace(&*old, &new)))
}

/// The nearest character boundary at or below a byte offset. Go cuts in the middle of a character, which no YAML survives.
fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn trunc(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (count, text) = (c.int(0)?, c.str(1)?);
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(Value::str(if count >= 0 {
        &text[..boundary(&text, size)]
    } else if text.len() > size {
        &text[boundary(&text, text.len() - size)..]
    } else {
        &text
    }))
}

fn substr(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (start, end, text) = (c.int(0)?, c.int(1)?, c.str(2)?);
    let len = text.len();
    let end = usize::try_from(end).unwrap_or(len).min(len);
    let start = usize::try_from(start).unwrap_or(0);
    if start > end {
        return Err(Fail::call("slice bounds out of range"));
    }
    Ok(Value::str(
        &text[boundary(&text, start)..boundary(&text, end)],
    ))
}

fn abbrev(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (width, text) = (c.size(0)?, c.str(1)?);
    Ok(if width < 4 || text.len() <= width {
        Value::Str(text)
    } else {
        Value::str(&format!("{}...", &text[..boundary(&text, width - 3)]))
    })
}

/// `split` makes a map with the keys `_0`, `_1` and so on.
fn numbered<'t>(parts: impl Iterator<Item = &'t str>) -> Value {
    let entries: Entries = parts
        .enumerate()
        .map(|(i, part)| (Rc::from(format!("_{i}")), Value::str(part)))
        .collect();
    Value::Map(MapObj::new(MapKind::Strings, entries))
}

fn camel(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(['_', '-', ' ']) {
        let mut chars = word.chars();
        if let Some(first) = chars.next() {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
    }
    out
}

fn words(text: &str, separator: char) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let chars: Vec<char> = text.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        if matches!(c, '_' | '-' | ' ') {
            out.push(separator);
            continue;
        }
        let after_lower = i > 0 && (chars[i - 1].is_lowercase() || chars[i - 1].is_numeric());
        let before_lower = i > 0
            && chars[i - 1].is_uppercase()
            && chars.get(i + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_lower || before_lower) {
            out.push(separator);
        }
        out.extend(c.to_lowercase());
    }
    out
}
