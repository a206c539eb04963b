//! Server-side apply on JSON: merging by key, and who manages which field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::compare::merge_key_of;

/// The way to a field: object keys, and list items by their key (`[name="a"]`).
pub(super) type Path = Vec<String>;
/// Which fields each manager has.
pub(super) type Managers = BTreeMap<String, BTreeSet<Path>>;

/// The leaves of an object: scalars, empty containers and lists that are not merged by key. Identity
/// and what the server owns is left out.
pub(super) fn leaves(value: &Value) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    if let Value::Object(fields) = value {
        for (key, field) in fields {
            if !matches!(key.as_str(), "apiVersion" | "kind" | "status") {
                collect(field, vec![key.clone()], &mut found);
            }
        }
    }
    let server = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "managedFields",
    ];
    found.retain(|path, _| {
        path[0] != "metadata" || !server.contains(&path.get(1).map_or("", |k| k))
    });
    found.retain(|path, _| path.get(1).is_none_or(|key| key != "creationTimestamp"));
    found
}

fn collect(value: &Value, path: Path, found: &mut BTreeMap<Path, Value>) {
    let below = |step: String| path.iter().cloned().chain([step]).collect::<Path>();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                collect(field, below(key.clone()), found);
            }
        }
        Value::Array(items) if is_keyed(&path, items) => {
            for item in items {
                collect(item, below(item_step(&path, item)), found);
            }
        }
        value => {
            found.insert(path, value.clone());
        }
    }
}

fn is_keyed(path: &[String], items: &[Value]) -> bool {
    match (path.last(), items.first()) {
        (Some(list), Some(first)) => merge_key_of(list, first).is_some(),
        _ => false,
    }
}

fn item_step(path: &[String], item: &Value) -> String {
    let list = path.last().map_or("", String::as_str);
    let keys: &[&str] = match list {
        "ports" if item.get("containerPort").is_some() => &["containerPort", "protocol"],
        "ports" => &["port", "protocol"],
        "volumeMounts" => &["mountPath"],
        _ => &["name"],
    };
    let pairs: Vec<String> = keys
        .iter()
        .filter_map(|key| match item.get(key) {
            Some(value) => Some(format!("{key}={value}")),
            None if *key == "protocol" => Some("protocol=\"TCP\"".to_owned()),
            None => None,
        })
        .collect();
    format!("[{}]", pairs.join(","))
}

/// Merges what an apply says into the live object.
pub(super) fn merge(live: &mut Value, applied: &Value) {
    merge_at(live, applied, &mut Vec::new());
}

fn merge_at(live: &mut Value, applied: &Value, path: &mut Path) {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => {
            for (key, value) in applied {
                path.push(key.clone());
                merge_at(live.entry(key).or_insert(Value::Null), value, path);
                path.pop();
            }
        }
        (Value::Array(live), Value::Array(applied)) if is_keyed(path, applied) => {
            for item in applied {
                let step = item_step(path, item);
                match live.iter().position(|known| item_step(path, known) == step) {
                    Some(at) => {
                        path.push(step);
                        merge_at(&mut live[at], item, path);
                        path.pop();
                    }
                    None => live.push(item.clone()),
                }
            }
        }
        (live, applied) => *live = applied.clone(),
    }
}

/// Removes a field, and the containers that it leaves empty.
pub(super) fn remove(value: &mut Value, path: &[String]) {
    let mut walked = Vec::new();
    remove_at(value, path, &mut walked);
}

/// Returns whether `value` is empty now.
fn remove_at(value: &mut Value, path: &[String], walked: &mut Path) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return true;
    };
    match value {
        Value::Object(fields) => {
            walked.push(step.clone());
            if let Some(field) = fields.get_mut(step)
                && remove_at(field, rest, walked)
            {
                fields.remove(step);
            }
            walked.pop();
            fields.is_empty()
        }
        Value::Array(items) => {
            if let Some(at) = items
                .iter()
                .position(|item| item_step(walked, item) == *step)
            {
                // The key of an item goes with its last other field.
                let is_key = rest.len() == 1 && step.contains(&format!("{}=", rest[0]));
                let others = items[at].as_object().map_or(0, Map::len);
                walked.push(step.clone());
                if !is_key || others == 1 {
                    let emptied = remove_at(&mut items[at], rest, walked);
                    let only_key = items[at].as_object().is_some_and(|fields| {
                        fields.keys().all(|key| step.contains(&format!("{key}=")))
                    });
                    if emptied || only_key {
                        items.remove(at);
                    }
                }
                walked.pop();
            }
            items.is_empty()
        }
        _ => false,
    }
}

/// One server-side apply. Without `force`, fields that others manage with another value refuse it:
/// `Err` holds `(manager, field)` pairs.
pub(super) fn apply(
    live: &mut Value,
    managers: &mut Managers,
    manager: &str,
    applied: &Value,
    force: bool,
) -> Result<(), Vec<(String, String)>> {
    let wanted = leaves(applied);
    let current = leaves(live);
    let mut contested = Vec::new();
    for (other, fields) in managers.iter().filter(|(other, _)| *other != manager) {
        for (path, value) in &wanted {
            if fields.contains(path) && current.get(path).is_some_and(|live| live != value) {
                contested.push((other.clone(), path.clone()));
            }
        }
    }
    if !force && !contested.is_empty() {
        return Err(contested
            .into_iter()
            .map(|(other, path)| (other, shown(&path)))
            .collect());
    }
    for (other, path) in contested {
        if let Some(fields) = managers.get_mut(&other) {
            fields.remove(&path);
        }
    }
    let before = managers.remove(manager).unwrap_or_default();
    for path in before.iter().filter(|path| !wanted.contains_key(*path)) {
        if !managers.values().any(|fields| fields.contains(path)) {
            remove(live, path);
        }
    }
    merge(live, applied);
    managers.insert(manager.to_owned(), wanted.into_keys().collect());
    Ok(())
}

/// An update by another writer: the fields it changed are its own from now on.
pub(super) fn update(before: &Value, after: &Value, managers: &mut Managers, manager: &str) {
    let (before, after) = (leaves(before), leaves(after));
    let changed: BTreeSet<Path> = after
        .iter()
        .filter(|(path, value)| before.get(*path) != Some(value))
        .map(|(path, _)| path.clone())
        .collect();
    for fields in managers.values_mut() {
        fields.retain(|path| !changed.contains(path) && after.contains_key(path));
    }
    managers
        .entry(manager.to_owned())
        .or_default()
        .extend(changed);
}

/// As the server writes it: `.spec.template.spec.containers[name="a"].image`.
fn shown(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        if !step.starts_with('[') {
            text.push('.');
        }
        text.push_str(step);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_no_longer_applied_goes_away_unless_somebody_else_has_it() {
        let mut live = json!({});
        let mut managers = Managers::new();
        let both = json!({"spec": {"a": 1, "b": {"c": 2}, "d": 3}});
        apply(&mut live, &mut managers, "one", &both, false).expect("no conflict");
        apply(
            &mut live,
            &mut managers,
            "two",
            &json!({"spec": {"d": 3}}),
            false,
        )
        .expect("shared");
        apply(
            &mut live,
            &mut managers,
            "one",
            &json!({"spec": {"a": 1}}),
            false,
        )
        .expect("fewer");
        assert_eq!(live, json!({"spec": {"a": 1, "d": 3}}));
    }

    #[test]
    fn another_value_for_a_managed_field_is_a_conflict_unless_forced() {
        let mut live = json!({"webhooks": [{"name": "w", "failurePolicy": "Ignore"}]});
        let mut managers = Managers::new();
        let applied = live.clone();
        apply(&mut live, &mut managers, "charm", &applied, false).expect("first");
        let mut flipped = live.clone();
        flipped["webhooks"][0]["failurePolicy"] = "Fail".into();
        update(&live, &flipped, &mut managers, "pilot-discovery");
        live = flipped;
        let refused =
            apply(&mut live, &mut managers, "charm", &applied, false).expect_err("conflict");
        let field = ".webhooks[name=\"w\"].failurePolicy".to_owned();
        assert_eq!(refused, [("pilot-discovery".to_owned(), field)]);
        apply(&mut live, &mut managers, "charm", &applied, true).expect("forced");
        assert_eq!(live, applied);
    }

    #[test]
    fn keyed_items_are_merged_and_removed_by_key() {
        let mut live = json!({});
        let mut managers = Managers::new();
        let containers = |names: &[&str]| {
            let items: Vec<Value> = names
                .iter()
                .map(|n| json!({"name": n, "image": n}))
                .collect();
            json!({"spec": {"containers": items}})
        };
        apply(
            &mut live,
            &mut managers,
            "one",
            &containers(&["a", "b"]),
            false,
        )
        .expect("first");
        apply(&mut live, &mut managers, "two", &containers(&["c"]), false).expect("another");
        apply(&mut live, &mut managers, "one", &containers(&["b"]), false).expect("fewer");
        assert_eq!(live, containers(&["b", "c"]));
    }
}
