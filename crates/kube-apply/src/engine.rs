//! The engine: a client, what it has learnt about the cluster, and the reads.
//!
//! # Requests
//! * `observe`: one per query (one more per 500 listed objects), plus one for discovery, which is read
//!   once per engine.
//! * `plan` and a no-op `apply`: one list per served kind of the kind table (about 23 on a
//!   cluster without Istio, 46 with Istio and Gateway API), one read per desired object that does not
//!   carry our labels (Namespaces, foreign objects), six at a time. No writes.
//! * `apply` also sends one patch per object that differs (two if a person's edit is overruled), one
//!   read per polled object and poll of a gate, and one delete per pruned object.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{StreamExt as _, TryStreamExt as _};
use istio_api::{ObjectRef, kinds};
use kube::Client;
use serde_json::Value;

use crate::connect::Connect;
use crate::discovery;
use crate::error::{Error, Result};
use crate::object::Object;
use crate::query::{Note, Observed, Query, Served, ServedKind};
use crate::transport::{self, Call, Refusal, encode};

/// Objects per page of a list.
const PAGE: usize = 500;
/// Requests that are in flight at once.
pub(crate) const CONCURRENCY: usize = 6;
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Talks to one API server.
///
/// Errors are [`Error::Unreachable`] when there is no answer in time, [`Error::Forbidden`] when the
/// `ServiceAccount` lacks a permission, and otherwise name the object.
pub struct Engine {
    pub(crate) client: Client,
    served: Mutex<Option<Arc<Served>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over an existing client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            served: Mutex::new(None),
        }
    }

    /// An engine for an API server. Sends nothing yet, but must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] when the credentials are missing or unreadable.
    pub fn connect(to: &Connect) -> Result<Self> {
        to.client().map(Self::new)
    }

    /// Reads what the queries ask for. A kind that is not installed and a kind that may not be read
    /// are [`Note`]s, not errors; an object that does not exist is just absent.
    pub async fn observe(&self, queries: &[Query]) -> Result<Observed> {
        let served = self.served().await?;
        let answers: Vec<Answer> = futures::stream::iter(queries)
            .map(|query| self.answer(query, &served))
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        let mut observed = Observed::default().with_served((*served).clone());
        for answer in answers {
            match answer {
                Answer::Objects(objects) => objects.into_iter().for_each(|o| observed.insert(o)),
                Answer::Note(note) => observed.note(note),
            }
        }
        Ok(observed)
    }

    /// Which kinds the cluster serves; read once per engine.
    pub async fn served(&self) -> Result<Arc<Served>> {
        let cached = self
            .served
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match cached {
            Some(served) => Ok(served),
            None => self.discover().await,
        }
    }

    /// Reads anew which kinds the cluster serves.
    pub(crate) async fn discover(&self) -> Result<Arc<Served>> {
        let served = Arc::new(discovery::discover(&self.client).await?);
        *self.served.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&served));
        Ok(served)
    }

    /// The server's version, as in `v1.33.2`.
    pub async fn server_version(&self) -> Result<String> {
        let call = Call::get("/version".to_owned(), "get", "version".to_owned());
        let version = transport::json(&self.client, &call).await?;
        match version.get("gitVersion").and_then(Value::as_str) {
            Some(version) => Ok(version.to_owned()),
            None => Err(Error::Malformed {
                what: "answer to /version".to_owned(),
                source: None,
            }),
        }
    }

    async fn answer(&self, query: &Query, served: &Served) -> Result<Answer> {
        let Some(kind) = served.best(&query.group, &query.kind) else {
            return Ok(Answer::Note(not_installed(query)));
        };
        let verb = if query.name.is_some() { "get" } else { "list" };
        let read = match &query.name {
            Some(name) => self.read(query, kind, name).await,
            None => self.list(query, kind).await,
        };
        match read {
            Ok(objects) => Ok(Answer::Objects(objects)),
            Err(Refusal::Absent(_)) if query.name.is_some() => Ok(Answer::Objects(Vec::new())),
            Err(Refusal::Absent(_)) => Ok(Answer::Note(not_installed(query))),
            Err(refusal) => match Error::from(refusal) {
                Error::Forbidden { resource, .. } => Ok(Answer::Note(Note::Forbidden {
                    verb: verb.to_owned(),
                    resource,
                })),
                error => Err(error),
            },
        }
    }

    async fn read(
        &self,
        query: &Query,
        kind: &ServedKind,
        name: &str,
    ) -> Result<Vec<Object>, Refusal> {
        let path = path(query, kind, Some(name));
        let mut call = Call::get(path, "get", resource(&query.group, &kind.plural));
        if query.metadata_only {
            call.accept = METADATA;
        }
        let value = transport::json(&self.client, &call).await?;
        Ok(vec![typed(value, query, kind)])
    }

    async fn list(&self, query: &Query, kind: &ServedKind) -> Result<Vec<Object>, Refusal> {
        let mut objects = Vec::new();
        let mut next = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", path(query, kind, None));
            if let Some(labels) = &query.labels {
                path.push_str("&labelSelector=");
                path.push_str(&encode(labels));
            }
            if !next.is_empty() {
                path.push_str("&continue=");
                path.push_str(&encode(&next));
            }
            let mut call = Call::get(path, "list", resource(&query.group, &kind.plural));
            if query.metadata_only {
                call.accept = METADATA_LIST;
            }
            let mut page = transport::json(&self.client, &call).await?;
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                objects.extend(items.into_iter().map(|item| typed(item, query, kind)));
            }
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => token.clone_into(&mut next),
                _ => return Ok(objects),
            }
        }
    }
}

enum Answer {
    Objects(Vec<Object>),
    Note(Note),
}

fn not_installed(query: &Query) -> Note {
    Note::NotInstalled {
        group: query.group.clone(),
        kind: query.kind.clone(),
    }
}

/// `deployments.apps`, as RBAC rules and people write it.
pub(crate) fn resource(group: &str, plural: &str) -> String {
    if group.is_empty() {
        plural.to_owned()
    } else {
        format!("{plural}.{group}")
    }
}

/// The items of a list carry neither `apiVersion` nor `kind`, and metadata carries its own.
fn typed(mut item: Value, query: &Query, kind: &ServedKind) -> Object {
    if let Some(fields) = item.as_object_mut() {
        let api_version = istio_api::api_version(&query.group, &kind.version);
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), query.kind.clone().into());
    }
    Object::from_value(item)
}

fn path(query: &Query, kind: &ServedKind, name: Option<&str>) -> String {
    let namespace = query.namespace.as_deref().filter(|_| kind.namespaced);
    kinds::resource_path(&query.group, &kind.version, &kind.plural, namespace, name)
}

/// The path of an object in the version that it is written in.
pub(crate) fn object_path(id: &ObjectRef, kind: &ServedKind) -> String {
    let namespace = id.namespace.as_deref().filter(|_| kind.namespaced);
    kinds::resource_path(
        &id.group,
        &id.version,
        &kind.plural,
        namespace,
        Some(&id.name),
    )
}
