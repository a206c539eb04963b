//! What to read, and what was read.

use std::collections::{BTreeMap, BTreeSet};

use istio_api::ObjectRef;
use serde::Serialize;

use crate::object::Object;

/// One read: an object by name, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Query {
    /// API group; empty for the core group.
    pub group: String,
    /// As in `Deployment`.
    pub kind: String,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
    /// One object; needs `namespace` for namespaced kinds.
    pub name: Option<String>,
    /// Label selector, as in `app=istiod,istio.io/rev`.
    pub labels: Option<String>,
    /// Read `metadata` only: for large or secret objects.
    pub metadata_only: bool,
}

impl Query {
    /// All objects of a kind.
    pub fn list(group: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// One object.
    pub fn get(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            ..Self::list(group, kind)
        }
    }

    /// Only in `namespace`.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only objects that the selector matches.
    #[must_use]
    pub fn with_labels(mut self, selector: &str) -> Self {
        self.labels = Some(selector.to_owned());
        self
    }

    /// Only `metadata`.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }
}

/// Why a query has no answer, though nothing is wrong with the connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Note {
    /// The cluster does not serve the kind.
    NotInstalled {
        /// API group.
        group: String,
        /// Kind.
        kind: String,
    },
    /// The `ServiceAccount` may not read the kind.
    Forbidden {
        /// `get` or `list`.
        verb: String,
        /// `secrets`, `deployments.apps`.
        resource: String,
    },
}

/// The answers to a list of queries, and which kinds the cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    objects: BTreeMap<Key, Object>,
    notes: BTreeSet<Note>,
    served: Served,
}

type Key = (String, String, Option<String>, String);

impl Observed {
    /// Answers made up from objects; for tests of pure code.
    pub fn from_objects(objects: impl IntoIterator<Item = Object>) -> Self {
        let mut observed = Self::default();
        for object in objects {
            observed.insert(object);
        }
        observed
    }

    /// The same, with the kinds that the cluster serves.
    #[must_use]
    pub fn with_served(mut self, served: Served) -> Self {
        self.served = served;
        self
    }

    /// The same, with a note.
    #[must_use]
    pub fn with_note(mut self, note: Note) -> Self {
        self.notes.insert(note);
        self
    }

    /// Adds an object. One that was read fully is not replaced by its metadata.
    pub fn insert(&mut self, object: Object) {
        let key = key(
            object.group(),
            object.kind(),
            object.namespace(),
            object.name(),
        );
        let is_metadata = |object: &Object| {
            object
                .value()
                .as_object()
                .is_some_and(|fields| fields.len() <= 3)
        };
        if let Some(known) = self.objects.get(&key)
            && is_metadata(&object)
            && !is_metadata(known)
        {
            return;
        }
        self.objects.insert(key, object);
    }

    /// The objects of a kind, by namespace and name.
    pub fn list<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        self.objects
            .range((group.to_owned(), kind.to_owned(), None, String::new())..)
            .take_while(move |((g, k, _, _), _)| g == group && k == kind)
            .map(|(_, object)| object)
    }

    /// One object.
    pub fn get(
        &self,
        group: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&Object> {
        self.objects.get(&key(group, kind, namespace, name))
    }

    /// One object, whatever version it was read in.
    pub fn find(&self, id: &ObjectRef) -> Option<&Object> {
        self.get(&id.group, &id.kind, id.namespace.as_deref(), &id.name)
    }

    /// All objects.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// What could not be read, and why.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter()
    }

    /// Which kinds the cluster serves.
    pub fn served(&self) -> &Served {
        &self.served
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.notes.insert(note);
    }
}

fn key(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Key {
    (
        group.to_owned(),
        kind.to_owned(),
        namespace.map(str::to_owned),
        name.to_owned(),
    )
}

/// The kinds that the cluster serves, from its discovery document.
///
/// The core group is not read (it is the same everywhere): its kinds are taken as served in `v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    kinds: BTreeMap<(String, String), Vec<ServedKind>>,
}

/// One version of a served kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ServedKind {
    /// Version, without the group.
    pub version: String,
    /// Plural name, as in URLs.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Served {
    /// Adds a version; versions are added in the server's order of preference.
    pub fn insert(&mut self, group: &str, kind: &str, served: ServedKind) {
        let versions = self
            .kinds
            .entry((group.to_owned(), kind.to_owned()))
            .or_default();
        if !versions.iter().any(|known| known.version == served.version) {
            versions.push(served);
        }
    }

    /// The versions of a kind in the server's order of preference; empty when it is not served.
    pub fn versions(&self, group: &str, kind: &str) -> &[ServedKind] {
        self.kinds
            .get(&(group.to_owned(), kind.to_owned()))
            .map_or(&[], Vec::as_slice)
    }

    /// Whether the kind is served in `version`.
    pub fn serves(&self, group: &str, version: &str, kind: &str) -> bool {
        self.versions(group, kind)
            .iter()
            .any(|served| served.version == version)
    }

    /// The newest version of a kind that both we and the cluster speak, else the one that the
    /// cluster prefers.
    pub fn best(&self, group: &str, kind: &str) -> Option<&ServedKind> {
        let served = self.versions(group, kind);
        let ours = istio_api::kinds::lookup(group, kind).map_or(&[][..], |row| row.versions);
        ours.iter()
            .find_map(|version| served.iter().find(|kind| kind.version == *version))
            .or_else(|| served.first())
    }

    /// `group/version` and `group/version/Kind` of all served kinds, as Helm's
    /// `.Capabilities.APIVersions` has them.
    pub fn api_versions(&self) -> BTreeSet<String> {
        let mut versions = BTreeSet::new();
        for ((group, kind), served) in &self.kinds {
            for ServedKind { version, .. } in served {
                let api_version = istio_api::api_version(group, version);
                versions.insert(format!("{api_version}/{kind}"));
                versions.insert(api_version);
            }
        }
        versions
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, spec: bool) -> Object {
        let mut value = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "lab"},
        });
        if spec {
            value["spec"] = json!({});
        }
        Object::new(value).expect("an object")
    }

    #[test]
    fn objects_are_listed_by_kind_in_order() {
        let observed = Observed::from_objects([
            object("Deployment", "b", true),
            object("DaemonSet", "c", true),
            object("Deployment", "a", true),
        ]);
        let names: Vec<&str> = observed
            .list("apps", "Deployment")
            .map(Object::name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(observed.list("apps", "StatefulSet").count(), 0);
    }

    #[test]
    fn metadata_does_not_replace_a_full_object() {
        let full = object("Deployment", "a", true);
        let observed = Observed::from_objects([full.clone(), object("Deployment", "a", false)]);
        assert_eq!(
            observed.get("apps", "Deployment", Some("lab"), "a"),
            Some(&full)
        );
    }

    #[test]
    fn the_best_version_is_the_newest_that_both_sides_speak() {
        let mut served = Served::default();
        let kind = |version: &str| ServedKind {
            version: version.to_owned(),
            plural: "things".to_owned(),
            namespaced: true,
        };
        for version in ["v1alpha3", "v1beta1"] {
            served.insert("networking.istio.io", "Gateway", kind(version));
        }
        served.insert("example.org", "Thing", kind("v3"));
        let best = |group, kind| served.best(group, kind).map(|kind| kind.version.as_str());
        assert_eq!(best("networking.istio.io", "Gateway"), Some("v1beta1"));
        assert_eq!(best("example.org", "Thing"), Some("v3"));
        assert_eq!(best("example.org", "Other"), None);
        assert!(
            served
                .api_versions()
                .contains("networking.istio.io/v1beta1/Gateway")
        );
    }
}
