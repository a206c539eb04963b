//! The fake server as tests see it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use istio_api::{ObjectRef, Scope, kinds};
use kube::Client;
use serde_json::Value;

use super::http;
use super::ssa;
use super::store::{Entry, Key, Store, key_of, served_kind};
use crate::engine::Engine;

/// A request that the server got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// `GET`, `PATCH`, `DELETE`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Body; `null` when there is none.
    pub body: Value,
}

impl Recorded {
    /// Whether the request may change something.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
            && self.body["dryRun"].is_null()
            && !self.path.contains("dryRun=All")
            && !self.path.contains("selfsubjectaccessreviews")
    }
}

/// Which controllers act. All do, unless told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// Workloads are rolled out as soon as they are written.
    pub roll_out: bool,
    /// CRDs are established, and their kinds served, as soon as they are written.
    pub establish: bool,
    /// Webhooks get a CA bundle, as istiod gives it to them.
    pub ca_bundle: bool,
}

impl Default for Controllers {
    fn default() -> Self {
        Self {
            roll_out: true,
            establish: true,
            ca_bundle: true,
        }
    }
}

/// An answer that is given instead of the real one.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) code: u16,
    pub(super) body: String,
    pub(super) times: Option<u32>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) store: Store,
    pub(super) requests: Vec<Recorded>,
    pub(super) forbidden: Vec<(String, String)>,
    pub(super) scripted: Vec<Scripted>,
    /// How many writes succeed before the server is gone; `None`: it stays.
    pub(super) writes_left: Option<u32>,
}

/// An API server in the test process. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct FakeApi {
    state: Arc<Mutex<State>>,
}

impl FakeApi {
    /// A cluster with Kubernetes' own kinds and the namespaces `default` and `kube-system`.
    pub fn new() -> Self {
        let fake = Self::default();
        fake.seed_namespace("default");
        fake.seed_namespace("kube-system");
        fake
    }

    /// A client; needs a tokio runtime.
    pub fn client(&self) -> Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request| {
            let fake = fake.clone();
            async move { http::answer(&fake, request).await }
        });
        Client::new(service, "default")
    }

    /// An engine; needs a tokio runtime.
    pub fn engine(&self) -> Engine {
        Engine::new(self.client())
    }

    /// Serves all kinds of Istio's and Gateway API's CRDs, without the CRDs.
    #[must_use]
    pub fn with_istio_kinds(self) -> Self {
        for row in kinds::TABLE.iter().chain(kinds::READ_ONLY) {
            if row.group.ends_with(".istio.io") || row.group == "gateway.networking.k8s.io" {
                for version in row.versions {
                    let namespaced = row.scope == Scope::Namespaced;
                    self.serve(row.group, version, row.kind, row.plural, namespaced);
                }
            }
        }
        self
    }

    /// Serves one more kind.
    pub fn serve(&self, group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) {
        let served = served_kind(version, plural, namespaced);
        self.lock()
            .store
            .extra_kinds
            .push((group.to_owned(), kind.to_owned(), served));
    }

    /// Stores a namespace.
    pub fn seed_namespace(&self, name: &str) {
        self.seed(serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }));
    }

    /// Stores an object that somebody made long ago: no field of it is managed.
    pub fn seed(&self, value: Value) {
        let mut state = self.lock();
        let key = key_of(&value);
        state.store.put(
            key,
            Entry {
                value,
                managers: ssa::Managers::new(),
            },
        );
    }

    /// Changes an object as another writer does: the fields it changes are managed by `manager`.
    ///
    /// # Panics
    /// When there is no such object.
    pub fn edit(&self, manager: &str, id: &ObjectRef, change: impl FnOnce(&mut Value)) {
        let mut state = self.lock();
        let key = key(id);
        let Some(mut entry) = state.store.objects.get(&key).cloned() else {
            unreachable!("no {id} to edit")
        };
        let before = entry.value.clone();
        change(&mut entry.value);
        ssa::update(&before, &entry.value, &mut entry.managers, manager);
        state.store.put(key, entry);
    }

    /// Removes an object, as if somebody had deleted it.
    pub fn remove(&self, id: &ObjectRef) {
        self.lock().store.objects.remove(&key(id));
    }

    /// A live object.
    pub fn get(&self, id: &ObjectRef) -> Option<Value> {
        self.lock()
            .store
            .objects
            .get(&key(id))
            .map(|entry| entry.value.clone())
    }

    /// All live objects, by group, kind, namespace and name.
    pub fn objects(&self) -> Vec<Value> {
        self.lock()
            .store
            .objects
            .values()
            .map(|entry| entry.value.clone())
            .collect()
    }

    /// The live objects of a kind, by namespace and name.
    pub fn objects_of(&self, kind: &str) -> Vec<Value> {
        let state = self.lock();
        let objects = state.store.objects.iter();
        objects
            .filter(|((_, of, ..), _)| of == kind)
            .map(|(_, entry)| entry.value.clone())
            .collect()
    }

    /// Another server with the same objects: what happens to the one does not happen to the other.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.lock();
        let fork = State {
            store: state.store.clone(),
            forbidden: state.forbidden.clone(),
            scripted: state.scripted.clone(),
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(fork)),
        }
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// The requests so far that may have changed something, as `PATCH <path without query>`.
    pub fn writes(&self) -> Vec<String> {
        let state = self.lock();
        let writes = state.requests.iter().filter(|request| request.is_write());
        writes
            .map(|r| {
                format!(
                    "{} {}",
                    r.method,
                    r.path.split('?').next().unwrap_or_default()
                )
            })
            .collect()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    /// Answers `verb` (`get`, `list`, `patch`, `delete`) of `resource` (`deployments.apps`) with 403.
    pub fn forbid(&self, verb: &str, resource: &str) {
        self.lock()
            .forbidden
            .push((verb.to_owned(), resource.to_owned()));
    }

    /// Answers requests whose method is `method` and whose path begins with `path` (is it, if `path` ends
    /// in `$`) with `body`; for pod proxies, and for refusals (`times` bounds how often).
    pub fn script(&self, method: &str, path: &str, code: u16, body: &str, times: Option<u32>) {
        self.lock().scripted.push(Scripted {
            method: method.to_owned(),
            path: path.to_owned(),
            code,
            body: body.to_owned(),
            times,
        });
    }

    /// The server goes away after that many more writes. Reads fail as well then.
    pub fn die_after_writes(&self, writes: u32) {
        self.lock().writes_left = Some(writes);
    }

    /// The server is back.
    pub fn revive(&self) {
        self.lock().writes_left = None;
    }

    /// Says which controllers act from now on, and lets them look at everything.
    pub fn set_controllers(&self, controllers: Controllers) {
        let mut state = self.lock();
        state.store.controllers = controllers;
        state.store.play_all();
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &ObjectRef) -> Key {
    (
        id.group.clone(),
        id.kind.clone(),
        id.namespace.clone(),
        id.name.clone(),
    )
}
