//! Chart values: how Helm merges them.
//!
//! Two different merges exist in Helm. *Layering* several values files ([`layer`]) replaces, key by key, and keeps
//! nulls. *Coalescing* with a chart's defaults ([`merge`]) fills in what is missing, and a null deletes the
//! default it stands against.

use serde_json::{Map, Value};

type Table = Map<String, Value>;

/// The deepest path [`set`] follows, as in Helm.
const MAX_SET_DEPTH: usize = 30;
/// The highest list index [`set`] accepts, as in Helm.
const MAX_SET_INDEX: usize = 65_536;

/// Why a `--set` expression was not understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("cannot set {expression:?}: {message}")]
pub struct SetError {
    expression: String,
    message: &'static str,
}

/// Reads a values file. An empty file is an empty map.
pub fn parse_file(text: &str) -> Result<Value, yaml::Error> {
    Ok(match yaml::parse_first(text)? {
        Value::Null => Value::Object(Table::new()),
        value => value,
    })
}

/// Fills `overlay` up with `base`: maps are merged, otherwise the overlay wins, and a null in the overlay deletes the
/// key of the base.
pub fn merge(base: Value, overlay: &Value) -> Value {
    match (base, overlay) {
        (Value::Object(mut base), Value::Object(overlay)) => {
            let mut merged = overlay.clone();
            coalesce_tables(&mut merged, &mut base, false);
            Value::Object(merged)
        }
        (base, Value::Null) => base,
        (_, overlay) => overlay.clone(),
    }
}

/// Puts a later values file over an earlier one: maps are merged, otherwise the later one wins, null included.
pub fn layer(earlier: &mut Value, later: Value) {
    match (earlier, later) {
        (Value::Object(earlier), Value::Object(later)) => {
            for (key, value) in later {
                match earlier.get_mut(&key) {
                    Some(old) => layer(old, value),
                    None => {
                        earlier.insert(key, value);
                    }
                }
            }
        }
        (earlier, later) => *earlier = later,
    }
}

/// Applies one or more `path=value` expressions as `helm --set` does: dots and `[index]` lead down, `\` escapes, `{a,b}`
/// is a list, and `true`, `false`, `null` and integers get their type.
pub fn set(values: &mut Value, expressions: &str) -> Result<(), SetError> {
    for expression in split_unescaped(expressions, ',') {
        let fail = |message| SetError {
            expression: expression.clone(),
            message,
        };
        let mut halves = split_unescaped(&expression, '=').into_iter();
        let path = halves.next().unwrap_or_default();
        let rest: Vec<String> = halves.collect();
        if rest.is_empty() {
            return Err(fail("no value"));
        }
        let steps = parse_path(&path).map_err(fail)?;
        let value = parse_value(&rest.join("="));
        insert(values, &steps, value).map_err(fail)?;
    }
    Ok(())
}

enum Step {
    Key(String),
    Index(usize),
}

/// Splits at a character that is neither escaped nor inside braces; escapes stay.
fn split_unescaped(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut braces = 0_usize;
    let mut escaped = false;
    for c in text.chars() {
        if !escaped {
            match c {
                '{' => braces += 1,
                '}' => braces = braces.saturating_sub(1),
                c if c == separator && braces == 0 => {
                    parts.push(String::new());
                    continue;
                }
                _ => {}
            }
        }
        escaped = c == '\\' && !escaped;
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' {
            chars.next().unwrap_or('\\')
        } else {
            c
        });
    }
    out
}

fn parse_path(path: &str) -> Result<Vec<Step>, &'static str> {
    let mut steps = Vec::new();
    for part in split_unescaped(path, '.') {
        let (key, indexes) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part.as_str(), ""),
        };
        if key.is_empty() {
            return Err("empty key");
        }
        steps.push(Step::Key(unescape(key)));
        for index in indexes.split_terminator(']') {
            let index: usize = index
                .strip_prefix('[')
                .and_then(|i| i.parse().ok())
                .ok_or("bad index")?;
            if index > MAX_SET_INDEX {
                return Err("index too high");
            }
            steps.push(Step::Index(index));
        }
    }
    if steps.len() > MAX_SET_DEPTH {
        return Err("path too deep");
    }
    Ok(steps)
}

fn parse_value(text: &str) -> Value {
    if let Some(list) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        if list.is_empty() {
            return Value::Array(Vec::new());
        }
        return split_unescaped(list, ',')
            .iter()
            .map(|item| parse_value(item))
            .collect();
    }
    let integer = || {
        let significant = text == "0" || !text.starts_with('0');
        significant.then(|| text.parse::<i64>().ok()).flatten()
    };
    match text.to_ascii_lowercase().as_str() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        _ => integer().map_or_else(|| Value::String(unescape(text)), Value::from),
    }
}

fn insert(at: &mut Value, steps: &[Step], value: Value) -> Result<(), &'static str> {
    let Some((step, rest)) = steps.split_first() else {
        *at = value;
        return Ok(());
    };
    match step {
        Step::Key(key) => {
            if at.is_null() {
                *at = Value::Object(Table::new());
            }
            let map = at.as_object_mut().ok_or("a value is in the way")?;
            insert(map.entry(key.clone()).or_insert(Value::Null), rest, value)
        }
        Step::Index(index) => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let list = at.as_array_mut().ok_or("no list to index")?;
            if list.len() <= *index {
                list.resize(index + 1, Value::Null);
            }
            insert(list.get_mut(*index).ok_or("bad index")?, rest, value)
        }
    }
}

/// Helm's `coalesceValues`: fills the user's values up with a chart's defaults. `is_subchart` tells keys that hold
/// the values of a subchart, in which nulls are kept for the subchart's own turn.
pub(crate) fn coalesce_values(
    user: &mut Table,
    defaults: &Table,
    is_subchart: impl Fn(&str) -> bool,
) {
    for (key, default) in defaults {
        match user.get_mut(key) {
            Some(Value::Null) => {
                user.remove(key);
            }
            Some(Value::Object(table)) => {
                if let Value::Object(default) = default {
                    let mut default = default.clone();
                    let keep_nulls = is_subchart(key);
                    if !keep_nulls {
                        remove_nulls(&mut default);
                    }
                    coalesce_tables(table, &mut default, keep_nulls);
                }
            }
            Some(_) => {}
            None => {
                let mut default = default.clone();
                if default.is_null() {
                    continue;
                }
                if let Value::Object(table) = &mut default {
                    remove_nulls(table);
                }
                user.insert(key.clone(), default);
            }
        }
    }
}

/// Helm's `coalesceTablesFullKey`. With `keep_nulls` ("merge" in Helm) a null stays where it is.
pub(crate) fn coalesce_tables(dst: &mut Table, src: &mut Table, keep_nulls: bool) {
    for (key, val) in std::mem::take(src) {
        match dst.get_mut(&key) {
            None => {
                dst.insert(key, val);
            }
            Some(Value::Null) => {
                // The user deletes a default; where there was none, the null is the user's own.
                if !keep_nulls && !val.is_null() {
                    dst.remove(&key);
                }
            }
            Some(Value::Object(table)) => {
                if let Value::Object(mut val) = val {
                    coalesce_tables(table, &mut val, keep_nulls);
                }
            }
            Some(_) => {}
        }
    }
}

/// Gives a subchart the globals of its parent, which win over its own.
pub(crate) fn coalesce_globals(subchart: &mut Table, parent: &Table) {
    let empty = Value::Object(Table::new());
    let Some(Value::Object(parent)) = parent.get("global").or(Some(&empty)) else {
        return;
    };
    let own = subchart.entry("global").or_insert_with(|| empty.clone());
    let Value::Object(own) = own else { return };
    for (key, val) in parent {
        match (own.get_mut(key), val) {
            (None, val) => {
                own.insert(key.clone(), val.clone());
            }
            (Some(Value::Object(dest)), Value::Object(val)) => {
                let mut merged = val.clone();
                coalesce_tables(&mut merged, dest, true);
                *dest = merged;
            }
            (Some(Value::Object(_)), _) | (Some(_), Value::Object(_)) => {}
            (Some(dest), val) => *dest = val.clone(),
        }
    }
}

fn remove_nulls(table: &mut Table) {
    table.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(table) => {
            remove_nulls(table);
            true
        }
        _ => true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_overlay_wins_and_null_deletes() {
        let base = json!({"a": 1, "b": {"x": 1, "y": 2}, "c": [1], "d": {"z": 1}});
        let overlay =
            json!({"a": null, "b": {"x": null, "w": null}, "c": [2], "d": "text", "e": 5});
        assert_eq!(
            merge(base, &overlay),
            json!({"b": {"y": 2, "w": null}, "c": [2], "d": "text", "e": 5})
        );
    }

    #[test]
    fn layering_keeps_null() {
        let mut values = json!({"a": {"x": 1, "y": 2}, "b": 1});
        layer(&mut values, json!({"a": {"x": null}, "b": {"c": 1}}));
        assert_eq!(values, json!({"a": {"x": null, "y": 2}, "b": {"c": 1}}));
    }

    #[test]
    fn defaults_fill_up_user_values() {
        let Value::Object(mut user) = json!({"a": null, "b": {"x": null}, "n": null}) else {
            unreachable!()
        };
        let Value::Object(defaults) =
            json!({"a": 1, "b": {"x": 1, "y": null, "z": 3}, "c": {"q": null, "r": 1}, "d": null})
        else {
            unreachable!()
        };
        coalesce_values(&mut user, &defaults, |_| false);
        assert_eq!(
            Value::Object(user),
            json!({"b": {"z": 3}, "c": {"r": 1}, "n": null})
        );
    }

    #[test]
    fn set_follows_paths() {
        for (expression, expect) in [
            ("a.b=1", json!({"a": {"b": 1}})),
            (
                "a=true,b=False,c=null,d=007,e=0,f=1.5",
                json!({"a": true, "b": false, "c": null, "d": "007", "e": 0, "f": "1.5"}),
            ),
            ("a[1].b=x", json!({"a": [null, {"b": "x"}]})),
            ("a={x,2,{}}", json!({"a": ["x", 2, []]})),
            (r"a\.b\,c=d\,e", json!({"a.b,c": "d,e"})),
            ("a=b=c", json!({"a": "b=c"})),
            ("a=", json!({"a": ""})),
        ] {
            let mut values = json!({});
            set(&mut values, expression).unwrap();
            assert_eq!(values, expect, "{expression}");
        }
    }

    #[test]
    fn set_refuses_nonsense() {
        for expression in ["a", "=1", "a[x]=1", "a[99999999]=1", "a..b=1"] {
            assert!(set(&mut json!({}), expression).is_err(), "{expression}");
        }
        assert!(set(&mut json!({"a": 1}), "a.b=1").is_err());
        let deep = format!("{}a=1", "a.".repeat(31));
        assert!(set(&mut json!({}), &deep).is_err());
    }
}
