//! Does a live object already satisfy the desired one? Pure.
//!
//! The server adds defaults, other writers add their fields, and some values are stored in another
//! spelling; none of that is a difference. What counts: a desired field that is absent or has another
//! meaning. Lists that server-side apply merges by key (`containers`, `env`, `webhooks`, ...) are
//! matched by that key, all others by position and length. A desired field that is empty (`""`,
//! `false`, `0`, `{}`, `[]`) is satisfied by absence, because the server drops many of those; not so
//! in labels, annotations and data, where an empty value is a value.

use serde_json::{Map, Value};

use crate::plan::FieldDiff;
use crate::quantity;

/// Values longer than this are cut in a [`FieldDiff`].
const SHOWN_CHARS: usize = 120;

/// The desired fields that `live` does not have, in order of their paths. `apiVersion` and `kind` are
/// not compared: an object is the same in each version.
pub(crate) fn differences(live: &Value, desired: &Value) -> Vec<FieldDiff> {
    let secret = desired.get("kind").and_then(Value::as_str) == Some("Secret");
    let mut walk = Walk {
        secret,
        path: Vec::new(),
        found: Vec::new(),
    };
    if let (Some(live), Some(desired)) = (live.as_object(), desired.as_object()) {
        for (key, wanted) in desired {
            if key != "apiVersion" && key != "kind" {
                walk.field(live, key, wanted);
            }
        }
    }
    walk.found
}

struct Walk {
    secret: bool,
    path: Vec<Step>,
    found: Vec<FieldDiff>,
}

enum Step {
    Key(String),
    Item(String),
}

impl Walk {
    fn field(&mut self, live: &Map<String, Value>, key: &str, desired: &Value) {
        self.path.push(Step::Key(key.to_owned()));
        self.value(live.get(key), desired);
        self.path.pop();
    }

    fn item(&mut self, label: String, live: Option<&Value>, desired: &Value) {
        self.path.push(Step::Item(label));
        self.value(live, desired);
        self.path.pop();
    }

    fn value(&mut self, live: Option<&Value>, desired: &Value) {
        match (live.filter(|value| !value.is_null()), desired) {
            (None, desired) if is_empty(desired) && !self.in_free_map() => {}
            (Some(Value::Object(live)), Value::Object(desired)) => {
                for (key, wanted) in desired {
                    self.field(live, key, wanted);
                }
            }
            (Some(Value::Array(live)), Value::Array(desired)) => self.list(live, desired),
            (Some(live), desired) if self.same_scalar(live, desired) => {}
            (live, desired) => self.differs(live, desired),
        }
    }

    fn list(&mut self, live: &[Value], desired: &[Value]) {
        if let Some(key) = self.merge_key(desired) {
            for wanted in desired {
                let found = live.iter().find(|item| key.same(item, wanted));
                self.item(key.label(wanted), found, wanted);
            }
        } else if live.len() == desired.len() {
            for (index, (live, wanted)) in live.iter().zip(desired).enumerate() {
                self.item(index.to_string(), Some(live), wanted);
            }
        } else {
            let (live, desired) = (Value::from(live), Value::from(desired));
            self.differs(Some(&live), &desired);
        }
    }

    /// How server-side apply tells the items of this list apart, when every desired item has the key.
    fn merge_key(&self, desired: &[Value]) -> Option<MergeKey> {
        let key = merge_key_of(self.last_key()?, desired.first()?)?;
        desired
            .iter()
            .all(|item| item.get(key.0).is_some())
            .then_some(key)
    }

    fn same_scalar(&self, live: &Value, desired: &Value) -> bool {
        if live == desired {
            return true;
        }
        match (live, desired) {
            (Value::Number(live), Value::Number(desired)) => live.as_f64() == desired.as_f64(),
            (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) => {
                self.holds_quantity() && quantity::same(live, desired)
            }
            _ => false,
        }
    }

    fn differs(&mut self, live: Option<&Value>, desired: &Value) {
        let redacted =
            self.secret && matches!(self.path.first(), Some(Step::Key(key)) if key == "data");
        let show = |value: &Value| {
            if redacted {
                "[redacted]".to_owned()
            } else {
                shown(value)
            }
        };
        self.found.push(FieldDiff {
            path: self.rendered_path(),
            live: live.map(show),
            desired: show(desired),
        });
    }

    fn last_key(&self) -> Option<&str> {
        self.keys().next_back()
    }

    fn keys(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        })
    }

    /// Whether the current path is an entry of a map with free keys.
    fn in_free_map(&self) -> bool {
        let parent = self.keys().rev().nth(1);
        matches!(
            parent,
            Some("labels" | "annotations" | "matchLabels" | "data" | "binaryData" | "selector")
        )
    }

    fn holds_quantity(&self) -> bool {
        self.keys().any(|key| {
            matches!(
                key,
                "limits"
                    | "requests"
                    | "hard"
                    | "capacity"
                    | "sizeLimit"
                    | "divisor"
                    | "averageValue"
            )
        })
    }

    fn rendered_path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Item(label) => {
                    text.push('[');
                    text.push_str(label);
                    text.push(']');
                }
                Step::Key(key) if key.contains(['.', '/']) => {
                    text.push_str("[\"");
                    text.push_str(key);
                    text.push_str("\"]");
                }
                Step::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(key);
                }
            }
        }
        text
    }
}

/// The field by which the items of a list are told apart.
#[derive(Clone, Copy)]
pub(crate) struct MergeKey(&'static str);

impl MergeKey {
    /// Whether two items are the same item. Ports are also told apart by protocol.
    pub(crate) fn same(self, one: &Value, other: &Value) -> bool {
        let protocol = |item: &Value| {
            item.get("protocol")
                .and_then(Value::as_str)
                .unwrap_or("TCP")
                .to_owned()
        };
        let is_port = matches!(self.0, "port" | "containerPort");
        one.get(self.0) == other.get(self.0) && (!is_port || protocol(one) == protocol(other))
    }

    fn label(self, item: &Value) -> String {
        match item.get("name").or_else(|| item.get(self.0)) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }
}

/// The merge key of the list in field `list`, judged by its first item. `None` for atomic lists.
pub(crate) fn merge_key_of(list: &str, first: &Value) -> Option<MergeKey> {
    let key = match list {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" | "webhooks"
        | "secrets" | "matchConditions" => "name",
        "volumeMounts" => "mountPath",
        "ports" if first.get("containerPort").is_some() => "containerPort",
        "ports" => "port",
        _ => return None,
    };
    first.get(key).map(|_| MergeKey(key))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(live: &Value, desired: &Value, expect: &[&str]) {
        let found: Vec<String> = differences(live, desired)
            .into_iter()
            .map(|d| d.path)
            .collect();
        assert_eq!(found, expect, "live {live} desired {desired}");
    }

    #[test]
    fn what_the_server_adds_or_respells_is_no_difference() {
        check(
            &json!({"spec": {"a": 1, "b": 2}, "status": {}}),
            &json!({"spec": {"a": 1}}),
            &[],
        );
        check(
            &json!({"spec": {"a": 1}}),
            &json!({"spec": {"a": 1.0}}),
            &[],
        );
        check(
            &json!({"spec": {}}),
            &json!({"spec": {"hostNetwork": false, "x": "", "y": {}}}),
            &[],
        );
        check(
            &json!({"spec": {"emptyDir": {}}}),
            &json!({"spec": {"emptyDir": {}}}),
            &[],
        );
        check(
            &json!({"apiVersion": "v1"}),
            &json!({"apiVersion": "v1beta1"}),
            &[],
        );
        let resources = |cpu: Value, memory: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}});
        check(
            &resources(json!("500m"), "2Gi"),
            &resources(json!(0.5), "2048Mi"),
            &[],
        );
    }

    #[test]
    fn a_desired_field_with_another_value_is_a_difference() {
        check(
            &json!({"spec": {"a": 1}}),
            &json!({"spec": {"a": 2}}),
            &["spec.a"],
        );
        check(
            &json!({"spec": {}}),
            &json!({"spec": {"a": true}}),
            &["spec.a"],
        );
        check(
            &json!({"spec": {"a": "1000m"}}),
            &json!({"spec": {"a": "1"}}),
            &["spec.a"],
        );
        check(
            &json!({"metadata": {"labels": {}}}),
            &json!({"metadata": {"labels": {"istio.io/rev": ""}}}),
            &["metadata.labels[\"istio.io/rev\"]"],
        );
    }

    #[test]
    fn lists_are_matched_as_server_side_apply_matches_them() {
        let containers = |names: &[&str]| {
            let items: Vec<Value> = names
                .iter()
                .map(|n| json!({"name": n, "image": "i"}))
                .collect();
            json!({"spec": {"containers": items}})
        };
        check(&containers(&["injected", "a"]), &containers(&["a"]), &[]);
        check(
            &containers(&["a"]),
            &containers(&["a", "b"]),
            &["spec.containers[b]"],
        );
        check(
            &json!({"rules": [1, 2]}),
            &json!({"rules": [1]}),
            &["rules"],
        );
        check(
            &json!({"rules": [{"a": 1, "d": 0}]}),
            &json!({"rules": [{"a": 1}]}),
            &[],
        );
        check(
            &json!({"rules": [1, 2]}),
            &json!({"rules": [2, 1]}),
            &["rules[0]", "rules[1]"],
        );
        check(
            &json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP", "x": 1}]}),
            &json!({"ports": [{"port": 53, "name": "dns", "x": 1}]}),
            &["ports[dns].name"],
        );
        check(
            &json!({"webhooks": [{"name": "w", "clientConfig": {"caBundle": "x", "url": "u"}}]}),
            &json!({"webhooks": [{"name": "w", "clientConfig": {"url": "u"}}]}),
            &[],
        );
    }

    #[test]
    fn secret_values_are_redacted_and_long_ones_cut() {
        let secret = |value: &str| json!({"kind": "Secret", "data": {"key": value}});
        let found = differences(&secret("b2xk"), &secret("bmV3"));
        assert_eq!(
            found,
            [FieldDiff {
                path: "data.key".to_owned(),
                live: Some("[redacted]".to_owned()),
                desired: "[redacted]".to_owned(),
            }]
        );
        let map = |value: String| json!({"kind": "ConfigMap", "data": {"key": value}});
        let found = differences(&map(String::new()), &map("ä".repeat(500)));
        assert_eq!(found[0].desired.chars().count(), SHOWN_CHARS + 1);
    }
}
