//! Plain operations on single objects, for callers that change a cluster step by step (upgrades,
//! migrations) and not as one inventory.
//!
//! # Invariants
//! * One call is one request, besides discovery when a kind is not known yet, and besides the repeats
//!   after 429, 503 and 504 ([`Error::Unreachable`] when those do not end).
//! * Nothing is decided here: no ownership, no pruning, no waiting.
//! * Every write names its field manager, so that a person sees who did it.

use futures::{StreamExt as _, TryStreamExt as _};
use http::Method;
use istio_api::{ObjectRef, kinds};
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::{CONCURRENCY, Engine, object_path, resource};
use crate::error::{Error, Result};
use crate::object::Object;
use crate::query::ServedKind;
use crate::transport::{self, Call, JSON, Refusal, encode};
use crate::write::{APPLY, MERGE};

const JSON_PATCH: &str = "application/json-patch+json";

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes them afterwards.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The conditions of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only the object with this uid; another one is [`Error::Raced`].
    pub uid: Option<String>,
    /// Only the object in this state; another one is [`Error::Raced`].
    pub resource_version: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Propagation,
    /// The server judges the delete and does not do it.
    pub dry_run: bool,
}

/// What came of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// The pod is on its way out, or was gone already.
    Gone,
    /// A disruption budget does not allow it now; the server's words.
    Refused(String),
}

/// One permission to ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Access {
    /// `get`, `create`, `delete`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name, with a subresource after a slash: `pods/eviction`.
    pub resource: String,
    /// One namespace; `None` for all, and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// One object; `None` for all.
    pub name: Option<String>,
}

impl Engine {
    /// The live object, read in the version of `id` or, when the cluster does not serve that one, in
    /// the best it has; `None` when there is no such object or kind.
    pub async fn get(&self, id: &ObjectRef) -> Result<Option<Object>> {
        let served = self.served().await?;
        let exact = served
            .versions(&id.group, &id.kind)
            .iter()
            .find(|kind| kind.version == id.version);
        let Some(kind) = exact.or_else(|| served.best(&id.group, &id.kind)) else {
            return Ok(None);
        };
        let id = ObjectRef {
            version: kind.version.clone(),
            ..id.clone()
        };
        let call = self.call(&id, kind, Method::GET, "get");
        match transport::json(&self.client, &call).await {
            Ok(value) => Ok(Some(Object::from_value(value))),
            Err(Refusal::Absent(_)) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Creates an object. With `dry_run` the server does everything but store it: admission mutates and
    /// judges it, so that the answer shows what would have become of it.
    ///
    /// # Errors
    /// [`Error::Raced`] when it exists.
    pub async fn create(&self, object: &Object, manager: &str, dry_run: bool) -> Result<Object> {
        let id = object.id();
        let kind = self.served_kind(&id).await?;
        let namespace = id.namespace.as_deref().filter(|_| kind.namespaced);
        let collection =
            kinds::resource_path(&id.group, &id.version, &kind.plural, namespace, None);
        let mut call = self.call(&id, &kind, Method::POST, "create");
        call.path = collection + &query(manager, dry_run);
        call.body = body(object);
        self.written(&call).await
    }

    /// One server-side apply of the object as it is. Without `force`, fields of other managers with
    /// another value refuse it ([`Error::Server`] with code 409, naming managers and fields).
    pub async fn apply_as(
        &self,
        object: &Object,
        manager: &str,
        force: bool,
        dry_run: bool,
    ) -> Result<Object> {
        let id = object.id();
        let kind = self.served_kind(&id).await?;
        let mut call = self.call(&id, &kind, Method::PATCH, "patch");
        call.path.push_str(&query(manager, dry_run));
        if force {
            call.path.push_str("&force=true");
        }
        call.content_type = APPLY;
        call.body = body(object);
        self.written(&call).await
    }

    /// Replaces the object that has the `resourceVersion` of `object`.
    ///
    /// # Errors
    /// [`Error::Raced`] when it has changed since.
    pub async fn replace(&self, object: &Object, manager: &str) -> Result<Object> {
        let id = object.id();
        let kind = self.served_kind(&id).await?;
        let mut call = self.call(&id, &kind, Method::PUT, "update");
        call.path.push_str(&query(manager, false));
        call.body = body(object);
        self.written(&call).await
    }

    /// A merge patch (RFC 7386) of an existing object. With a `metadata.resourceVersion` in it, only
    /// of the object in that state.
    pub async fn merge_patch(
        &self,
        id: &ObjectRef,
        patch: &Value,
        manager: &str,
    ) -> Result<Object> {
        self.patch_as(id, patch, manager, MERGE).await
    }

    /// A JSON patch (RFC 6902), a list of operations, of an existing object.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a `test` fails.
    pub async fn json_patch(
        &self,
        id: &ObjectRef,
        operations: &Value,
        manager: &str,
    ) -> Result<Object> {
        self.patch_as(id, operations, manager, JSON_PATCH).await
    }

    /// Deletes an object; `false` when it was gone.
    pub async fn delete(&self, id: &ObjectRef, options: &Delete) -> Result<bool> {
        let kind = match self.served_kind(id).await {
            Err(Error::NotServed { .. }) => return Ok(false),
            kind => kind?,
        };
        let mut wanted = json!({"propagationPolicy": options.propagation.name()});
        if let Some(uid) = &options.uid {
            wanted["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &options.resource_version {
            wanted["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if options.dry_run {
            // Beside a body, the server does not look at the query: there, a dry run would delete.
            wanted["dryRun"] = json!(["All"]);
        }
        let mut call = self.call(id, &kind, Method::DELETE, "delete");
        call.body = wanted.to_string().into_bytes();
        match transport::json(&self.client, &call).await {
            Ok(_) => Ok(true),
            Err(Refusal::Absent(_)) => Ok(false),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Evicts a pod, as a node drain does: disruption budgets are asked.
    pub async fn evict(&self, namespace: &str, pod: &str, dry_run: bool) -> Result<Evicted> {
        let id = ObjectRef::namespaced("v1", "Pod", namespace, pod);
        let mut eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        });
        if dry_run {
            eviction["deleteOptions"]["dryRun"] = json!(["All"]);
        }
        let kind = ServedKind {
            version: "v1".to_owned(),
            plural: "pods".to_owned(),
            namespaced: true,
        };
        let mut call = self.call(&id, &kind, Method::POST, "create");
        call.path.push_str("/eviction");
        if dry_run {
            call.path.push_str("?dryRun=All");
        }
        "pods/eviction".clone_into(&mut call.resource);
        call.body = eviction.to_string().into_bytes();
        // 429 is an answer here, not a busy server: `transport::json` would wait and ask again.
        let (status, answer) = transport::send(&self.client, &call).await?;
        if status.is_success() || status.as_u16() == 404 {
            return Ok(Evicted::Gone);
        }
        let refusal = transport::refusal(&call, status.as_u16(), &answer);
        let words = serde_json::from_slice::<Value>(&answer).unwrap_or_default();
        let words = words["message"].as_str().unwrap_or_default();
        // Several budgets over one pod are a 500 that no waiting mends; it is their refusal, too.
        if status.as_u16() == 429 || words.contains("more than one PodDisruptionBudget") {
            return Ok(Evicted::Refused(words.to_owned()));
        }
        Err(refusal.into())
    }

    /// Whether we may do each of these, in their order (`SelfSubjectAccessReview`).
    pub async fn may(&self, accesses: &[Access]) -> Result<Vec<bool>> {
        futures::stream::iter(accesses)
            .map(|access| self.may_one(access))
            .buffered(CONCURRENCY)
            .try_collect()
            .await
    }

    async fn may_one(&self, access: &Access) -> Result<bool> {
        let (resource, subresource) = access
            .resource
            .split_once('/')
            .unwrap_or((&access.resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": access.verb, "group": access.group, "resource": resource,
                "subresource": subresource, "namespace": access.namespace, "name": access.name,
            }},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned();
        let mut call = Call::get(path, "create", "selfsubjectaccessreviews".to_owned());
        call.method = Method::POST;
        call.body = review.to_string().into_bytes();
        let answer = transport::json(&self.client, &call).await?;
        Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
    }

    async fn patch_as(
        &self,
        id: &ObjectRef,
        patch: &Value,
        manager: &str,
        content_type: &'static str,
    ) -> Result<Object> {
        let kind = self.served_kind(id).await?;
        let mut call = self.call(id, &kind, Method::PATCH, "patch");
        call.path.push_str(&query(manager, false));
        call.content_type = content_type;
        call.body = patch.to_string().into_bytes();
        self.written(&call).await
    }

    async fn written(&self, call: &Call<'_>) -> Result<Object> {
        let value = transport::json(&self.client, call).await?;
        Ok(Object::from_value(value))
    }

    #[expect(clippy::unused_self, reason = "reads as the engine's")]
    fn call<'a>(
        &self,
        id: &'a ObjectRef,
        kind: &ServedKind,
        method: Method,
        verb: &'static str,
    ) -> Call<'a> {
        Call {
            method,
            object: Some(id),
            accept: JSON,
            ..Call::get(
                object_path(id, kind),
                verb,
                resource(&id.group, &kind.plural),
            )
        }
    }
}

fn query(manager: &str, dry_run: bool) -> String {
    let dry_run = if dry_run { "&dryRun=All" } else { "" };
    format!(
        "?fieldManager={}&fieldValidation=Strict{dry_run}",
        encode(manager)
    )
}

fn body(object: &Object) -> Vec<u8> {
    object.value().to_string().into_bytes()
}
