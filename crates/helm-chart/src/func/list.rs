//! Lists. None is changed in place: every function returns a new one.

use super::{ANY, Call, Row};
use crate::engine::Fail;
use crate::engine::value::Value;
use std::rc::Rc;

pub(super) const TABLE: &[Row] = &[
    ("list", 0, ANY, |c| Ok(Value::list(interfaces(&c.args)))),
    ("tuple", 0, ANY, |c| Ok(Value::list(interfaces(&c.args)))),
    ("first", 1, 1, first),
    ("mustFirst", 1, 1, first),
    ("last", 1, 1, last),
    ("mustLast", 1, 1, last),
    ("rest", 1, 1, rest),
    ("mustRest", 1, 1, rest),
    ("initial", 1, 1, initial),
    ("mustInitial", 1, 1, initial),
    ("append", 2, 2, append),
    ("mustAppend", 2, 2, append),
    ("push", 2, 2, append),
    ("mustPush", 2, 2, append),
    ("prepend", 2, 2, prepend),
    ("mustPrepend", 2, 2, prepend),
    ("concat", 0, ANY, concat),
    ("reverse", 1, 1, reverse),
    ("mustReverse", 1, 1, reverse),
    ("uniq", 1, 1, uniq),
    ("mustUniq", 1, 1, uniq),
    ("without", 1, ANY, without),
    ("mustWithout", 1, ANY, without),
    ("has", 2, 2, has),
    ("mustHas", 2, 2, has),
    ("compact", 1, 1, compact),
    ("mustCompact", 1, 1, compact),
    ("slice", 1, 3, slice),
    ("mustSlice", 1, 3, slice),
    ("chunk", 2, 2, chunk),
    ("mustChunk", 2, 2, chunk),
    ("sortAlpha", 1, 1, sort_alpha),
    ("join", 2, 2, join),
    ("toStrings", 1, 1, |c| {
        let texts = strings(c, 0)?;
        Ok(Value::list(
            texts.iter().map(|text| Value::str(text)).collect(),
        ))
    }),
];

/// Values as a `[]interface {}` holds them: nothing is a nil interface.
fn interfaces(values: &[Value]) -> Vec<Value> {
    values
        .iter()
        .map(|value| {
            if value.is_nil() {
                Value::Nil
            } else {
                value.clone()
            }
        })
        .collect()
}

fn first(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(c.items(0, "find first")?
        .first()
        .cloned()
        .unwrap_or(Value::Nil))
}

fn last(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(c.items(0, "find last")?
        .last()
        .cloned()
        .unwrap_or(Value::Nil))
}

fn rest(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(Value::list(
        c.items(0, "find rest")?.into_iter().skip(1).collect(),
    ))
}

fn initial(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut items = c.items(0, "find initial")?;
    items.pop();
    Ok(Value::list(items))
}

fn append(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut items = c.items(0, "push")?;
    items.extend(interfaces(&c.args[1..]));
    Ok(Value::list(items))
}

fn prepend(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut items = interfaces(&c.args[1..]);
    items.extend(c.items(0, "prepend")?);
    Ok(Value::list(items))
}

fn concat(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut all = Vec::new();
    for i in 0..c.args.len() {
        all.extend(c.items(i, "concat")?);
    }
    c.engine.budget.list(all.len())?;
    Ok(Value::list(all))
}

fn reverse(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(Value::list(
        c.items(0, "find reverse")?.into_iter().rev().collect(),
    ))
}

fn contains(c: &Call<'_>, haystack: &[Value], needle: &Value) -> Result<bool, Fail> {
    for item in haystack {
        if needle.deep_equal(item, &c.engine.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut unique = Vec::new();
    for item in c.items(0, "find uniq")? {
        if !contains(c, &unique, &item)? {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

fn without(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut kept = Vec::new();
    for item in c.items(0, "find without")? {
        if !contains(c, &c.args[1..], &item)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn has(c: &mut Call<'_>) -> Result<Value, Fail> {
    if c.arg(1).is_nil() {
        return Ok(Value::Bool(false));
    }
    let items = c.items(1, "find has")?;
    Ok(Value::Bool(contains(c, &items, c.arg(0))?))
}

fn compact(c: &mut Call<'_>) -> Result<Value, Fail> {
    Ok(Value::list(
        c.items(0, "compact")?
            .into_iter()
            .filter(Value::truth)
            .collect(),
    ))
}

/// Go's builtin for strings, sprig's for lists: sprig's wins the name, and refuses strings.
fn slice(c: &mut Call<'_>) -> Result<Value, Fail> {
    let items = c.items(0, "slice")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let bound = |i: usize, default: usize| -> Result<usize, Fail> {
        match c.args.get(i) {
            None => Ok(default),
            Some(value) => usize::try_from(super::math::to_int(value))
                .map_err(|_| Fail::call("slice bounds out of range")),
        }
    };
    let (start, end) = (bound(1, 0)?, bound(2, items.len())?);
    match items.get(start..end) {
        Some(part) => Ok(Value::list(part.to_vec())),
        None => Err(Fail::call("slice bounds out of range")),
    }
}

fn chunk(c: &mut Call<'_>) -> Result<Value, Fail> {
    let size = c.size(0)?;
    if size == 0 {
        return Err(Fail::call("chunks of size 0"));
    }
    let items = c.items(1, "chunk")?;
    Ok(Value::list(
        items
            .chunks(size)
            .map(|part| Value::list(part.to_vec()))
            .collect(),
    ))
}

/// `strslice`: the printed items of a list, nothing left out; anything else is a list of one.
fn strings(c: &Call<'_>, i: usize) -> Result<Vec<String>, Fail> {
    match c.arg(i) {
        Value::Invalid | Value::Nil => Ok(Vec::new()),
        Value::List(list) => {
            c.engine.budget.list(list.0.len())?;
            list.0
                .iter()
                .filter(|item| !item.is_nil())
                .map(|item| c.text(item))
                .collect()
        }
        other => Ok(vec![c.text(other)?]),
    }
}

fn sort_alpha(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut texts = strings(c, 0)?;
    texts.sort_unstable();
    Ok(Value::list(
        texts
            .iter()
            .map(|text| Value::Str(Rc::from(text.as_str())))
            .collect(),
    ))
}

fn join(c: &mut Call<'_>) -> Result<Value, Fail> {
    let separator = c.str(0)?;
    let texts = strings(c, 1)?;
    let len =
        texts.iter().map(String::len).sum::<usize>() + separator.len().saturating_mul(texts.len());
    c.engine.budget.string(len)?;
    Ok(Value::str(&texts.join(&separator)))
}
