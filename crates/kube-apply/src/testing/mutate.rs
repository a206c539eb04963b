//! The writes that are not server-side apply: create, replace, JSON patch, eviction; and the question
//! what one may do.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::fake::State;
use super::http::{Incoming, Target, absent, failure};
use super::inject;
use super::ssa;
use super::store::{Entry, Key};

impl State {
    pub(super) fn create(&mut self, incoming: &Incoming, target: &Target) -> (u16, Value) {
        let Some(name) = incoming
            .body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
        else {
            return failure(422, "metadata.name is required", &json!({}));
        };
        if let Some(namespace) = &target.namespace
            && !self.store.has_namespace(namespace)
        {
            let message = format!("namespaces \"{namespace}\" not found");
            let details = json!({"kind": "namespaces", "name": namespace});
            return failure(404, &message, &details);
        }
        let key = target.key(name);
        if self.store.objects.contains_key(&key) {
            let message = format!("{} \"{name}\" already exists", target.resource());
            return failure(409, &message, &json!({}));
        }
        let mut value = incoming.body.clone();
        if let Some(metadata) = value["metadata"].as_object_mut() {
            for owned_by_server in ["uid", "resourceVersion", "creationTimestamp"] {
                metadata.remove(owned_by_server);
            }
        }
        if let Some(namespace) = &target.namespace {
            value["metadata"]["namespace"] = namespace.as_str().into();
        }
        if value["kind"] == "Pod" {
            value = match inject::injected(&self.store, value) {
                Ok(pod) => pod,
                Err(words) => return failure(500, &words, &json!({})),
            };
        }
        self.store_as(incoming, target, key, &json!({}), value, 201)
    }

    pub(super) fn replace(
        &mut self,
        incoming: &Incoming,
        target: &Target,
        name: &str,
    ) -> (u16, Value) {
        let key = target.key(name);
        let Some(entry) = self.store.objects.get(&key) else {
            return absent(target, name);
        };
        let before = entry.value.clone();
        if changed_since(&before, &incoming.body) {
            return failure(409, "the object has been modified", &json!({}));
        }
        let mut value = incoming.body.clone();
        for kept in ["uid", "creationTimestamp", "resourceVersion"] {
            value["metadata"][kept] = before["metadata"][kept].clone();
        }
        self.store_as(incoming, target, key, &before, value, 200)
    }

    pub(super) fn json_patch(
        &mut self,
        incoming: &Incoming,
        target: &Target,
        name: &str,
    ) -> (u16, Value) {
        let key = target.key(name);
        let Some(entry) = self.store.objects.get(&key) else {
            return absent(target, name);
        };
        let before = entry.value.clone();
        let mut value = before.clone();
        for operation in incoming.body.as_array().into_iter().flatten() {
            if operate(&mut value, operation).is_none() {
                let message = format!("the patch does not apply: {operation}");
                return failure(422, &message, &json!({}));
            }
        }
        self.store_as(incoming, target, key, &before, value, 200)
    }

    /// Removes the pod unless a budget over it (`status.disruptionsAllowed`) is used up.
    pub(super) fn evict(
        &mut self,
        incoming: &Incoming,
        namespace: &str,
        pod: &str,
    ) -> (u16, Value) {
        let id = |kind: &str, group: &str, name: &str| {
            let namespace = Some(namespace.to_owned());
            (
                group.to_owned(),
                kind.to_owned(),
                namespace,
                name.to_owned(),
            )
        };
        let key: Key = id("Pod", "", pod);
        let Some(entry) = self.store.objects.get(&key) else {
            return failure(404, &format!("pods \"{pod}\" not found"), &json!({}));
        };
        let labels = strings(&entry.value["metadata"]["labels"]);
        let refused = self
            .store
            .objects
            .iter()
            .any(|((group, kind, place, _), budget)| {
                let selector = strings(&budget.value["spec"]["selector"]["matchLabels"]);
                group == "policy"
                    && kind == "PodDisruptionBudget"
                    && place.as_deref() == Some(namespace)
                    && selector
                        .iter()
                        .all(|(key, value)| labels.get(key) == Some(value))
                    && budget.value["status"]["disruptionsAllowed"] == 0
            });
        if refused {
            let message = "Cannot evict pod as it would violate the pod's disruption budget.";
            return failure(429, message, &json!({}));
        }
        let dry = incoming.query.contains_key("dryRun");
        if !dry {
            self.store.objects.remove(&key);
        }
        (201, json!({"kind": "Status", "status": "Success"}))
    }

    /// Everything is allowed that was not forbidden.
    pub(super) fn review(&self, incoming: &Incoming) -> (u16, Value) {
        let wanted = &incoming.body["spec"]["resourceAttributes"];
        let text = |key: &str| wanted[key].as_str().unwrap_or_default();
        let mut plural = text("resource").to_owned();
        if !text("subresource").is_empty() {
            plural = format!("{plural}/{}", text("subresource"));
        }
        let resource = crate::engine::resource(text("group"), &plural);
        let everything = text("verb") == "*" && resource == "*.*";
        let allowed = !self
            .forbidden
            .iter()
            .any(|(verb, r)| everything || (verb == text("verb") && *r == resource));
        (201, json!({"status": {"allowed": allowed}}))
    }

    fn store_as(
        &mut self,
        incoming: &Incoming,
        target: &Target,
        key: Key,
        before: &Value,
        value: Value,
        code: u16,
    ) -> (u16, Value) {
        let known = self.store.objects.get(&key).cloned();
        let mut managers = known.map(|entry| entry.managers).unwrap_or_default();
        let manager = incoming.query.get("fieldManager");
        let manager = manager.map_or("unknown", String::as_str);
        ssa::update(before, &value, &mut managers, manager);
        if incoming.query.contains_key("dryRun") {
            return (code, target.shown(value, false));
        }
        let stored = self.store.put(key, Entry { value, managers });
        (code, target.shown(stored, false))
    }
}

/// Whether `wanted` names a `resourceVersion` other than the live one.
pub(super) fn changed_since(live: &Value, wanted: &Value) -> bool {
    let version = |value: &Value| {
        let version = value.pointer("/metadata/resourceVersion");
        version.and_then(Value::as_str).map(str::to_owned)
    };
    version(wanted).is_some_and(|wanted| Some(wanted) != version(live))
}

fn strings(map: &Value) -> BTreeMap<String, String> {
    let fields = map.as_object().into_iter().flatten();
    fields
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// One operation of RFC 6902; `None` when it does not apply.
fn operate(value: &mut Value, operation: &Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    let wanted = operation.get("value").cloned();
    let (parent, step) = path.rsplit_once('/')?;
    let step = step.replace("~1", "/").replace("~0", "~");
    match operation["op"].as_str()? {
        "test" => (value.pointer(path) == wanted.as_ref()).then_some(()),
        "replace" => value
            .pointer_mut(path)
            .map(|at| *at = wanted.unwrap_or_default()),
        "add" => match value.pointer_mut(parent)? {
            Value::Object(fields) => {
                fields.insert(step, wanted?);
                Some(())
            }
            Value::Array(items) => {
                let at = if step == "-" {
                    items.len()
                } else {
                    step.parse().ok()?
                };
                (at <= items.len()).then(|| items.insert(at, wanted.unwrap_or_default()))
            }
            _ => None,
        },
        "remove" => match value.pointer_mut(parent)? {
            Value::Object(fields) => fields.remove(&step).map(|_| ()),
            Value::Array(items) => {
                let at: usize = step.parse().ok()?;
                (at < items.len()).then(|| drop(items.remove(at)))
            }
            _ => None,
        },
        _ => None,
    }
}
