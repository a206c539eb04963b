//! The objects of the fake server, and the controllers that play on them.

use std::collections::BTreeMap;

use istio_api::{Scope, kinds, split_api_version};
use serde_json::{Value, json};

use super::fake::Controllers;
use super::ssa::{self, Managers};
use crate::query::ServedKind;

/// Group, kind, namespace, name.
pub(super) type Key = (String, String, Option<String>, String);

#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) managers: Managers,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) objects: BTreeMap<Key, Entry>,
    pub(super) extra_kinds: Vec<(String, String, ServedKind)>,
    pub(super) controllers: Controllers,
    counter: u64,
}

/// The key of an object's JSON.
pub(super) fn key_of(value: &Value) -> Key {
    let text = |pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let api_version = text("/apiVersion").unwrap_or_default();
    (
        split_api_version(&api_version).0.to_owned(),
        text("/kind").unwrap_or_default(),
        text("/metadata/namespace"),
        text("/metadata/name").unwrap_or_default(),
    )
}

impl Store {
    /// All kinds that are served: Kubernetes' own, those of established CRDs, and extra ones.
    pub(super) fn kinds(&self) -> Vec<(String, String, ServedKind)> {
        let mut found = Vec::new();
        for row in kinds::TABLE.iter().chain(kinds::READ_ONLY) {
            if is_builtin(row.group) {
                found.extend(row.versions.iter().map(|version| {
                    let namespaced = row.scope == Scope::Namespaced;
                    let kind = served_kind(version, row.plural, namespaced);
                    (row.group.to_owned(), row.kind.to_owned(), kind)
                }));
            }
        }
        found.extend(self.extra_kinds.iter().cloned());
        let definitions = self.of_kind("apiextensions.k8s.io", "CustomResourceDefinition");
        for (_, entry) in definitions.filter(|(_, entry)| is_established(&entry.value)) {
            found.extend(crd_kinds(&entry.value));
        }
        found
    }

    /// The objects of a kind, by namespace and name.
    pub(super) fn of_kind<'a>(
        &'a self,
        group: &'a str,
        kind: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Entry)> {
        let first = (group.to_owned(), kind.to_owned(), None, String::new());
        self.objects
            .range(first..)
            .take_while(move |((g, k, ..), _)| g == group && k == kind)
    }

    pub(super) fn discovery(&self) -> Value {
        let mut groups: BTreeMap<String, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
        for (group, kind, served) in self.kinds() {
            if !group.is_empty() {
                let scope = if served.namespaced {
                    "Namespaced"
                } else {
                    "Cluster"
                };
                groups
                    .entry(group)
                    .or_default()
                    .entry(served.version)
                    .or_default()
                    .push(json!({
                        "resource": served.plural, "responseKind": {"kind": kind}, "scope": scope,
                    }));
            }
        }
        let items: Vec<Value> = groups
            .into_iter()
            .map(|(group, versions)| {
                // `v1` sorts before `v1beta1`, as the server prefers it.
                let versions: Vec<Value> = versions
                    .into_iter()
                    .map(|(version, resources)| json!({"version": version, "resources": resources}))
                    .collect();
                json!({"metadata": {"name": group}, "versions": versions})
            })
            .collect();
        json!({"kind": "APIGroupDiscoveryList", "items": items})
    }

    /// Whether the namespace of a new object is there.
    pub(super) fn has_namespace(&self, namespace: &str) -> bool {
        let key = (
            String::new(),
            "Namespace".to_owned(),
            None,
            namespace.to_owned(),
        );
        self.objects.contains_key(&key)
    }

    /// Stores the new state of an object; returns it as the server answers it.
    pub(super) fn put(&mut self, key: Key, mut entry: Entry) -> Value {
        let before = self.objects.get(&key).map(|entry| &entry.value);
        if before.is_some_and(|before| *before == entry.value) {
            self.objects.insert(key, entry.clone());
            return entry.value;
        }
        self.counter += 1;
        let content = |value: &Value| {
            let mut content = value.clone();
            if let Some(fields) = content.as_object_mut() {
                fields.remove("metadata");
                fields.remove("status");
            }
            content
        };
        let generation = before
            .and_then(|b| b.pointer("/metadata/generation"))
            .and_then(Value::as_u64);
        let same_content = before.is_some_and(|before| content(before) == content(&entry.value));
        let generation = generation.map_or(1, |g| if same_content { g } else { g + 1 });
        let counter = self.counter;
        let metadata = &mut entry.value["metadata"];
        metadata["generation"] = generation.into();
        metadata["resourceVersion"] = counter.to_string().into();
        if metadata.get("uid").is_none() {
            metadata["uid"] = format!("00000000-0000-4000-8000-{counter:012}").into();
            metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        play(self.controllers, &mut entry);
        let managed: Vec<Value> = entry
            .managers
            .keys()
            .map(|manager| json!({"manager": manager}))
            .collect();
        entry.value["metadata"]["managedFields"] = managed.into();
        self.objects.insert(key, entry.clone());
        entry.value
    }

    /// Deletes an object and what goes with it: the objects of a definition, the content of a
    /// namespace.
    pub(super) fn take(&mut self, key: &Key) {
        let Some(taken) = self.objects.remove(key) else {
            return;
        };
        let text = |pointer: &str| taken.value.pointer(pointer).and_then(Value::as_str);
        match key.1.as_str() {
            "CustomResourceDefinition" => {
                let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
                self.objects
                    .retain(|(g, k, ..), _| Some(g.as_str()) != group || Some(k.as_str()) != kind);
            }
            "Namespace" => {
                let name = Some(&key.3);
                self.objects
                    .retain(|(.., namespace, _), _| namespace.as_ref() != name);
            }
            _ => {}
        }
    }

    /// Lets the controllers look at every object again.
    pub(super) fn play_all(&mut self) {
        let controllers = self.controllers;
        self.objects
            .values_mut()
            .for_each(|entry| play(controllers, entry));
    }
}

/// Plays the controllers that would act on an object.
fn play(controllers: Controllers, entry: &mut Entry) {
    let Entry { value, managers } = entry;
    let kind = value
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match kind.as_str() {
        "Namespace" => value["status"] = json!({"phase": "Active"}),
        "CustomResourceDefinition" if controllers.establish => {
            value["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        }
        "Deployment" | "StatefulSet" if controllers.roll_out => {
            let replicas = value
                .pointer("/spec/replicas")
                .cloned()
                .unwrap_or_else(|| 1.into());
            value["status"] = json!({
                "observedGeneration": value["metadata"]["generation"], "replicas": replicas,
                "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            });
        }
        "DaemonSet" if controllers.roll_out => {
            value["status"] = json!({
                "observedGeneration": value["metadata"]["generation"], "desiredNumberScheduled": 1,
                "updatedNumberScheduled": 1, "numberReady": 1,
            });
        }
        // A pod that runs once: its images are there, unless their tag is `missing`.
        "Pod" if value.pointer("/spec/restartPolicy") == Some(&"Never".into()) => {
            let containers = value.pointer("/spec/containers").and_then(Value::as_array);
            let statuses = containers.into_iter().flatten().map(|container| {
                let image = container["image"].as_str().unwrap_or_default();
                let state = if image.ends_with(":missing") {
                    json!({"waiting": {"reason": "ErrImagePull"}})
                } else {
                    json!({"terminated": {"exitCode": 0}})
                };
                json!({"name": container["name"], "image": image, "imageID": "", "ready": false,
                       "restartCount": 0, "state": state})
            });
            value["status"] = json!({"containerStatuses": statuses.collect::<Vec<_>>()});
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
            if controllers.ca_bundle =>
        {
            let before = value.clone();
            for webhook in value["webhooks"].as_array_mut().into_iter().flatten() {
                if webhook.pointer("/clientConfig/caBundle").is_none() {
                    webhook["clientConfig"]["caBundle"] = "Y2E=".into();
                }
            }
            ssa::update(&before, value, managers, "pilot-discovery");
        }
        _ => {}
    }
}

pub(super) fn served_kind(version: &str, plural: &str, namespaced: bool) -> ServedKind {
    ServedKind {
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespaced,
    }
}

/// Whether Kubernetes itself serves the group.
fn is_builtin(group: &str) -> bool {
    group != "gateway.networking.k8s.io" && (!group.contains('.') || group.ends_with(".k8s.io"))
}

fn is_established(value: &Value) -> bool {
    let conditions = value
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
        && conditions
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// The served versions that a definition declares.
fn crd_kinds(crd: &Value) -> Vec<(String, String, ServedKind)> {
    let text = |pointer: &str| {
        crd.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let namespaced = text("/spec/scope") != "Cluster";
    let versions = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    versions
        .filter(|version| version["served"] == true)
        .filter_map(|version| version["name"].as_str())
        .map(|version| {
            let kind = served_kind(version, text("/spec/names/plural"), namespaced);
            (
                text("/spec/group").to_owned(),
                text("/spec/names/kind").to_owned(),
                kind,
            )
        })
        .collect()
}
