//! Maps. `set`, `unset`, `merge` and their kin write into their first argument, which is shared.

use super::{ANY, Call, Row};
use crate::engine::Fail;
use crate::engine::value::{Entries, MapObj, Value};
use crate::limits::Budget;
use std::rc::Rc;

pub(super) const TABLE: &[Row] = &[
    ("dict", 0, ANY, dict),
    ("get", 2, 2, |c| {
        let map = c.map(0)?;
        let key = c.str(1)?;
        let found = map.entries.borrow().get(&key).cloned();
        Ok(found.unwrap_or_else(|| Value::str("")))
    }),
    ("set", 3, 3, |c| {
        let (map, key) = (c.map(0)?, c.str(1)?);
        map.set(&key, nothing_as_nil(c.arg(2)));
        Ok(Value::Map(map))
    }),
    ("unset", 2, 2, |c| {
        let (map, key) = (c.map(0)?, c.str(1)?);
        let removed = map.entries.borrow_mut().remove(&key);
        drop(removed);
        Ok(Value::Map(map))
    }),
    ("hasKey", 2, 2, |c| {
        let (map, key) = (c.map(0)?, c.str(1)?);
        let has = map.entries.borrow().contains_key(&key);
        Ok(Value::Bool(has))
    }),
    ("keys", 0, ANY, |c| {
        let mut keys = Vec::new();
        for i in 0..c.args.len() {
            keys.extend(
                c.map(i)?
                    .entries
                    .borrow()
                    .keys()
                    .map(|key| Value::Str(Rc::clone(key))),
            );
        }
        c.engine.budget.list(keys.len())?;
        Ok(Value::list(keys))
    }),
    ("values", 1, 1, |c| {
        let map = c.map(0)?;
        let values: Vec<Value> = map.entries.borrow().values().cloned().collect();
        c.engine.budget.list(values.len())?;
        Ok(Value::list(values))
    }),
    ("pluck", 1, ANY, |c| {
        let key = c.str(0)?;
        let mut found = Vec::new();
        for i in 1..c.args.len() {
            found.extend(c.map(i)?.entries.borrow().get(&key).cloned());
        }
        Ok(Value::list(found))
    }),
    ("pick", 1, ANY, |c| select(c, true)),
    ("omit", 1, ANY, |c| select(c, false)),
    ("dig", 3, ANY, dig),
    ("merge", 1, ANY, |c| merge_all(c, false)),
    ("mustMerge", 1, ANY, |c| merge_all(c, false)),
    ("mergeOverwrite", 1, ANY, |c| merge_all(c, true)),
    ("mustMergeOverwrite", 1, ANY, |c| merge_all(c, true)),
    ("deepCopy", 1, 1, |c| {
        Ok(c.arg(0).deep_copy(&c.engine.budget)?)
    }),
    ("mustDeepCopy", 1, 1, |c| {
        Ok(c.arg(0).deep_copy(&c.engine.budget)?)
    }),
];

/// In a map, nothing is a nil interface.
fn nothing_as_nil(value: &Value) -> Value {
    if value.is_nil() {
        Value::Nil
    } else {
        value.clone()
    }
}

fn dict(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut entries = Entries::new();
    for pair in c.args.chunks(2) {
        let [key, rest @ ..] = pair else { continue };
        let key = c.text(key)?;
        let value = rest.first().map_or_else(|| Value::str(""), nothing_as_nil);
        entries.insert(Rc::from(key.as_str()), value);
    }
    Ok(Value::map(entries))
}

fn select(c: &Call<'_>, named: bool) -> Result<Value, Fail> {
    let map = c.map(0)?;
    let mut keys = Vec::new();
    for i in 1..c.args.len() {
        keys.push(c.str(i)?);
    }
    c.engine.budget.steps(map.len())?;
    let entries = map
        .entries
        .borrow()
        .iter()
        .filter(|(key, _)| keys.contains(key) == named)
        .map(|(key, value)| (Rc::clone(key), value.clone()))
        .collect();
    Ok(Value::map(entries))
}

fn dig(c: &mut Call<'_>) -> Result<Value, Fail> {
    let n = c.args.len();
    let mut at = c.arg(n - 1).clone();
    for i in 0..n - 2 {
        let key = c.str(i)?;
        let Value::Map(map) = &at else {
            return Err(Fail::call(format!(
                "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
                if at.is_nil() { "nil" } else { at.go_type() }
            )));
        };
        let found = map.entries.borrow().get(&key).cloned();
        match found {
            Some(value) => at = value,
            None => return Ok(c.arg(n - 2).clone()),
        }
    }
    Ok(at)
}

fn merge_all(c: &mut Call<'_>, overwrite: bool) -> Result<Value, Fail> {
    let target = c.map(0)?;
    for i in 1..c.args.len() {
        // A key that is not there passes as a nil map, which has nothing to merge.
        if c.arg(i).is_nil() {
            continue;
        }
        let source = c.map(i)?;
        merge(&target, &source, overwrite, &c.engine.budget, 0)?;
    }
    Ok(Value::Map(target))
}

/// The library `mergo`, for maps. With `overwrite` every value of the source that is not nothing wins, and nothing wins too;
/// without, a value of the source is taken where the target has none or an empty one. Maps present on both sides
/// are merged in place; other values are shared, not copied.
fn merge(
    target: &Rc<MapObj>,
    source: &Rc<MapObj>,
    overwrite: bool,
    budget: &Budget,
    depth: usize,
) -> Result<(), Fail> {
    Budget::value_depth(depth)?;
    if Rc::ptr_eq(target, source) {
        return Ok(());
    }
    let pairs: Vec<(Rc<str>, Value)> = source
        .entries
        .borrow()
        .iter()
        .map(|(key, value)| (Rc::clone(key), value.clone()))
        .collect();
    for (key, new) in pairs {
        budget.steps(1)?;
        let old = target.entries.borrow().get(&key).cloned();
        if new.is_nil() {
            if overwrite {
                target.set(&key, new);
            }
            continue;
        }
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, &new) {
            merge(old, new, overwrite, budget, depth + 1)?;
            if old.len() > 0 {
                continue;
            }
        }
        if overwrite || old.is_none_or(|old| !old.truth()) {
            target.set(&key, new);
        }
    }
    Ok(())
}
