//! From HTTP requests to the store and back.

use std::collections::BTreeMap;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::fake::{FakeApi, Recorded, State};
use super::mutate::changed_since;
use super::selector;
use super::ssa;
use super::store::{Entry, Key, key_of};
use crate::object::Object;
use crate::query::ServedKind;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers one request.
pub(super) async fn answer(
    fake: &FakeApi,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
    };
    let incoming = Incoming {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: query_of(parts.uri.query().unwrap_or_default()),
        metadata_only: header(http::header::ACCEPT).contains("as=PartialObjectMetadata"),
        is_apply: header(http::header::CONTENT_TYPE).contains("apply-patch"),
        is_json_patch: header(http::header::CONTENT_TYPE).contains("json-patch"),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    let mut state = fake.lock();
    let recorded = Recorded {
        method: incoming.method.clone(),
        path: parts
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        body: incoming.body.clone(),
    };
    if state.is_gone(&recorded) {
        return Err("connection refused".into());
    }
    state.requests.push(recorded);
    let (code, body) = state.respond(&incoming);
    let response = Response::builder()
        .status(StatusCode::from_u16(code)?)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.into_bytes()))?;
    Ok(response)
}

pub(super) struct Incoming {
    method: String,
    path: String,
    pub(super) query: BTreeMap<String, String>,
    metadata_only: bool,
    is_apply: bool,
    is_json_patch: bool,
    pub(super) body: Value,
}

/// What a path names.
pub(super) struct Target {
    group: String,
    kind: String,
    served: ServedKind,
    pub(super) namespace: Option<String>,
    name: Option<String>,
}

impl Target {
    pub(super) fn resource(&self) -> String {
        crate::engine::resource(&self.group, &self.served.plural)
    }

    pub(super) fn key(&self, name: &str) -> Key {
        (
            self.group.clone(),
            self.kind.clone(),
            self.namespace.clone(),
            name.to_owned(),
        )
    }

    /// The object as it is answered: in the version of the path.
    pub(super) fn shown(&self, mut value: Value, metadata_only: bool) -> Value {
        value["apiVersion"] = istio_api::api_version(&self.group, &self.served.version).into();
        if metadata_only {
            value = json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": value["metadata"],
            });
        }
        value
    }
}

impl State {
    fn is_gone(&mut self, request: &Recorded) -> bool {
        match &mut self.writes_left {
            Some(0) => true,
            Some(left) if request.is_write() => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    fn respond(&mut self, incoming: &Incoming) -> (u16, String) {
        let scripted = self.scripted.iter_mut().find(|scripted| {
            let matches = match scripted.path.strip_suffix('$') {
                Some(whole) => incoming.path == whole,
                None => incoming.path.starts_with(&scripted.path),
            };
            scripted.method == incoming.method && matches && scripted.times != Some(0)
        });
        if let Some(scripted) = scripted {
            scripted.times = scripted.times.map(|times| times - 1);
            return (scripted.code, scripted.body.clone());
        }
        if let Some((namespace, pod)) = eviction_of(&incoming.path) {
            let (code, body) = self.evict(incoming, namespace, pod);
            return (code, body.to_string());
        }
        let (code, body) = match incoming.path.as_str() {
            "/apis" => (200, self.store.discovery()),
            "/version" => (200, json!({"gitVersion": "v1.33.0"})),
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => self.review(incoming),
            path => match self.target(path) {
                Some(target) => self.resource(incoming, &target),
                None => failure(
                    404,
                    "the server could not find the requested resource",
                    &json!({}),
                ),
            },
        };
        (code, body.to_string())
    }

    fn target(&self, path: &str) -> Option<Target> {
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, plural, name) = match rest {
            ["namespaces", name] => (None, "namespaces", Some(*name)),
            ["namespaces", namespace, plural] => (Some(*namespace), *plural, None),
            ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name)),
            [plural] => (None, *plural, None),
            [plural, name] => (None, *plural, Some(*name)),
            _ => return None,
        };
        let (group, kind, served) = self.store.kinds().into_iter().find(|(g, _, served)| {
            g == group && served.version == version && served.plural == plural
        })?;
        let namespace = namespace.map(str::to_owned);
        Some(Target {
            group,
            kind,
            served,
            namespace,
            name: name.map(str::to_owned),
        })
    }

    fn resource(&mut self, incoming: &Incoming, target: &Target) -> (u16, Value) {
        let verb = match (incoming.method.as_str(), &target.name) {
            ("GET", None) => "list",
            ("GET", Some(_)) => "get",
            ("PATCH", Some(_)) => "patch",
            ("POST", None) => "create",
            ("PUT", Some(_)) => "update",
            ("DELETE", Some(_)) => "delete",
            _ => return failure(405, "method not allowed", &json!({})),
        };
        let resource = target.resource();
        if self
            .forbidden
            .iter()
            .any(|(v, r)| v == verb && *r == resource)
        {
            return failure(
                403,
                &format!("cannot {verb} resource {resource}"),
                &json!({}),
            );
        }
        match &target.name {
            None if verb == "create" => self.create(incoming, target),
            None => self.list(incoming, target),
            Some(name) => match verb {
                "get" => self.get(incoming, target, name),
                "update" => self.replace(incoming, target, name),
                "patch" if incoming.is_json_patch => self.json_patch(incoming, target, name),
                "patch" => self.patch(incoming, target, name),
                _ => self.delete(incoming, target, name),
            },
        }
    }

    fn get(&self, incoming: &Incoming, target: &Target, name: &str) -> (u16, Value) {
        match self.store.objects.get(&target.key(name)) {
            Some(entry) => (
                200,
                target.shown(entry.value.clone(), incoming.metadata_only),
            ),
            None => absent(target, name),
        }
    }

    fn list(&self, incoming: &Incoming, target: &Target) -> (u16, Value) {
        let wanted = incoming
            .query
            .get("labelSelector")
            .map_or("", String::as_str);
        let number = |key: &str| {
            incoming
                .query
                .get(key)
                .and_then(|v| v.parse::<usize>().ok())
        };
        let found: Vec<Value> = self
            .store
            .of_kind(&target.group, &target.kind)
            .filter(|((_, _, namespace, _), _)| {
                target.namespace.is_none() || *namespace == target.namespace
            })
            .map(|(_, entry)| Object::from_value(entry.value.clone()))
            .filter(|object| selector::matches(wanted, &object.labels()))
            .map(|object| target.shown(object.into_value(), incoming.metadata_only))
            .collect();
        let start = number("continue").unwrap_or(0);
        let limit = number("limit").unwrap_or(usize::MAX);
        let end = start.saturating_add(limit).min(found.len());
        let next = if end < found.len() {
            end.to_string()
        } else {
            String::new()
        };
        let items: Vec<Value> = found.get(start..end).unwrap_or_default().to_vec();
        (
            200,
            json!({"kind": "List", "metadata": {"continue": next}, "items": items}),
        )
    }

    fn patch(&mut self, incoming: &Incoming, target: &Target, name: &str) -> (u16, Value) {
        let key = target.key(name);
        let known = self.store.objects.get(&key).cloned();
        if !incoming.is_apply && known.is_none() {
            return absent(target, name);
        }
        if let (None, Some(namespace)) = (&known, &target.namespace)
            && !self.store.has_namespace(namespace)
        {
            let message = format!("namespaces \"{namespace}\" not found");
            return failure(
                404,
                &message,
                &json!({"kind": "namespaces", "name": namespace}),
            );
        }
        if incoming.is_apply && key_of(&incoming.body) != key {
            return failure(400, "the object does not match the path", &json!({}));
        }
        let mut entry = known.unwrap_or_else(|| Entry {
            value: json!({
                "apiVersion": incoming.body["apiVersion"], "kind": target.kind,
                "metadata": {"name": name},
            }),
            ..Entry::default()
        });
        if incoming.is_apply {
            let manager = incoming
                .query
                .get("fieldManager")
                .map_or("unknown", String::as_str);
            let force = incoming
                .query
                .get("force")
                .is_some_and(|force| force == "true");
            let Entry { value, managers } = &mut entry;
            if let Err(contested) = ssa::apply(value, managers, manager, &incoming.body, force) {
                return conflict(&contested, target);
            }
        } else {
            if changed_since(&entry.value, &incoming.body) {
                return failure(409, "the object has been modified", &json!({}));
            }
            let before = entry.value.clone();
            merge_patch(&mut entry.value, &incoming.body);
            if let Some(manager) = incoming.query.get("fieldManager") {
                let Entry { value, managers } = &mut entry;
                ssa::update(&before, value, managers, manager);
            }
            if incoming.body.pointer("/metadata/managedFields").is_some() {
                entry.managers.clear();
            }
        }
        if incoming.query.contains_key("dryRun") {
            return (200, target.shown(entry.value, false));
        }
        let value = self.store.put(key, entry);
        (200, target.shown(value, false))
    }

    fn delete(&mut self, incoming: &Incoming, target: &Target, name: &str) -> (u16, Value) {
        let key = target.key(name);
        let Some(entry) = self.store.objects.get(&key) else {
            return absent(target, name);
        };
        if let Some(uid) = incoming.body.pointer("/preconditions/uid")
            && entry.value.pointer("/metadata/uid") != Some(uid)
        {
            return failure(
                409,
                "the uid in the precondition does not match",
                &json!({}),
            );
        }
        let wanted = &incoming.body["preconditions"];
        if changed_since(&entry.value, &json!({ "metadata": wanted })) {
            return failure(
                409,
                "the resourceVersion in the precondition does not match",
                &json!({}),
            );
        }
        // As the real server: what is in the query does not count beside a body.
        if incoming.body["dryRun"].is_null() {
            self.store.take(&key);
        }
        (200, json!({"kind": "Status", "status": "Success"}))
    }
}

pub(super) fn absent(target: &Target, name: &str) -> (u16, Value) {
    let details = json!({"kind": target.served.plural, "name": name});
    failure(
        404,
        &format!("{} \"{name}\" not found", target.resource()),
        &details,
    )
}

fn conflict(contested: &[(String, String)], target: &Target) -> (u16, Value) {
    let using = istio_api::api_version(&target.group, &target.served.version);
    let causes: Vec<Value> = contested
        .iter()
        .map(|(manager, field)| {
            json!({
                "reason": "FieldManagerConflict", "field": field,
                "message": format!("conflict with \"{manager}\" using {using}"),
            })
        })
        .collect();
    failure(
        409,
        "Apply failed with conflicts",
        &json!({ "causes": causes }),
    )
}

pub(super) fn failure(code: u16, message: &str, details: &Value) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": message, "details": details,
    });
    (code, status)
}

/// Namespace and pod of `/api/v1/namespaces/<namespace>/pods/<pod>/eviction`.
fn eviction_of(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/api/v1/namespaces/")?;
    rest.strip_suffix("/eviction")?.split_once("/pods/")
}

/// RFC 7386.
fn merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, change) in patch {
        if change.is_null() {
            if let Some(fields) = value.as_object_mut() {
                fields.remove(key);
            }
        } else {
            merge_patch(&mut value[key], change);
        }
    }
}

fn query_of(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key.to_owned(), decode(value))
        })
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
