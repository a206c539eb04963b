//! Regular expressions. Go's syntax and that of the crate `regex` are both RE2's.

use super::{Call, Row};
use crate::engine::Fail;
use crate::engine::value::Value;
use regex::Regex;

pub(super) const TABLE: &[Row] = &[
    // A broken expression matches nothing, as in sprig.
    ("regexMatch", 2, 2, |c| {
        let text = c.str(1)?;
        Ok(Value::Bool(
            compile(c).is_ok_and(|regex| regex.is_match(&text)),
        ))
    }),
    ("mustRegexMatch", 2, 2, |c| {
        let text = c.str(1)?;
        Ok(Value::Bool(compile(c)?.is_match(&text)))
    }),
    ("regexFind", 2, 2, find),
    ("mustRegexFind", 2, 2, find),
    ("regexFindAll", 3, 3, find_all),
    ("mustRegexFindAll", 3, 3, find_all),
    ("regexReplaceAll", 3, 3, |c| replace(c, false)),
    ("mustRegexReplaceAll", 3, 3, |c| replace(c, false)),
    ("regexReplaceAllLiteral", 3, 3, |c| replace(c, true)),
    ("mustRegexReplaceAllLiteral", 3, 3, |c| replace(c, true)),
    ("regexSplit", 3, 3, split),
    ("mustRegexSplit", 3, 3, split),
    ("regexQuoteMeta", 1, 1, |c| {
        Ok(Value::str(&quote_meta(&c.str(0)?)))
    }),
];

fn compile(c: &Call<'_>) -> Result<Regex, Fail> {
    let pattern = c.str(0)?;
    c.engine.budget.steps(100 + pattern.len())?;
    for i in 1..c.args.len() {
        if let Value::Str(text) = c.arg(i) {
            c.engine.budget.steps(text.len() / 16)?;
        }
    }
    Regex::new(&pattern).map_err(|_| Fail::call(format!("error parsing regexp: `{pattern}`")))
}

fn find(c: &mut Call<'_>) -> Result<Value, Fail> {
    let text = c.str(1)?;
    Ok(Value::str(
        compile(c)?.find(&text).map_or("", |found| found.as_str()),
    ))
}

fn limit(n: i64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn find_all(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (text, n) = (c.str(1)?, limit(c.int(2)?));
    let found: Vec<Value> = compile(c)?
        .find_iter(&text)
        .take(n)
        .map(|found| Value::str(found.as_str()))
        .collect();
    c.engine.budget.list(found.len())?;
    Ok(Value::list(found))
}

fn replace(c: &Call<'_>, literal: bool) -> Result<Value, Fail> {
    let (text, replacement) = (c.str(1)?, c.str(2)?);
    let regex = compile(c)?;
    let matches = regex.find_iter(&text).count();
    let grown = matches.saturating_mul(replacement.len().saturating_add(if literal {
        0
    } else {
        text.len()
    }));
    c.engine.budget.string(
        text.len()
            .saturating_add(if literal || replacement.contains('$') {
                grown
            } else {
                matches.saturating_mul(replacement.len())
            }),
    )?;
    Ok(Value::str(&if literal {
        regex.replace_all(&text, regex::NoExpand(&replacement))
    } else {
        regex.replace_all(&text, &*replacement)
    }))
}

fn split(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (text, n) = (c.str(1)?, c.int(2)?);
    let regex = compile(c)?;
    let parts: Vec<Value> = match usize::try_from(n) {
        Ok(0) => Vec::new(),
        Ok(n) => regex.splitn(&text, n).map(Value::str).collect(),
        Err(_) => regex.split(&text).map(Value::str).collect(),
    };
    c.engine.budget.list(parts.len())?;
    Ok(Value::list(parts))
}

/// `regexp.QuoteMeta`, which escapes less than `regex::escape`.
fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
