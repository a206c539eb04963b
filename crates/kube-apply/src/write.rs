//! The writes: server-side apply, delete, and taking or giving up ownership.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use istio_api::ObjectRef;
use serde_json::{Map, Value, json};

use crate::engine::{Engine, object_path, resource};
use crate::error::{Error, Result};
use crate::object::Object;
use crate::owner::{APPLIED_HASH, Inventory};
use crate::query::{Query, Served, ServedKind};
use crate::set::Conflict;
use crate::transport::{self, Call, JSON, Refusal, encode};

pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const MERGE: &str = "application/merge-patch+json";
/// How often an apply is sent when the kind is not served yet, though discovery shows it.
const SERVE_ATTEMPTS: u32 = 8;
const SERVE_PAUSE: Duration = Duration::from_millis(250);

/// Whether a write is only tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DryRun {
    No,
    Yes,
}

/// Whether an apply takes fields from other managers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    No,
    Yes,
}

/// What came of a write.
pub(crate) enum Outcome {
    /// The object as it is now.
    Written(Box<Object>),
    /// Nothing was written.
    Conflict(Conflict),
}

impl Engine {
    /// One server-side apply. First without force; fields that only people (or we, under another
    /// inventory) hold are then taken.
    pub(crate) async fn write(
        &self,
        prepared: &Object,
        inventory: &Inventory,
        adopt: bool,
        dry_run: DryRun,
    ) -> Result<Outcome> {
        let id = prepared.id();
        let force = if adopt { Force::Yes } else { Force::No };
        let managers = match self.patch(prepared, &id, inventory, force, dry_run).await {
            Ok(written) => return Ok(Outcome::Written(Box::new(written))),
            Err(Refusal::Managers(managers)) => managers,
            Err(refusal) => return Err(refusal.into()),
        };
        let ours = format!("{}/", inventory.owner.charm);
        let owners: BTreeSet<&str> = managers
            .iter()
            .map(|(manager, _)| manager.as_str())
            .filter(|manager| !is_passive(manager) && !manager.starts_with(&ours))
            .collect();
        if owners.is_empty() {
            let written = self
                .patch(prepared, &id, inventory, Force::Yes, dry_run)
                .await?;
            return Ok(Outcome::Written(Box::new(written)));
        }
        let owner = owners.into_iter().collect::<Vec<_>>().join(", ");
        let fields = managers.into_iter().map(|(_, field)| field).collect();
        Ok(Outcome::Conflict(Conflict {
            object: id,
            owner,
            fields,
        }))
    }

    async fn patch(
        &self,
        prepared: &Object,
        id: &ObjectRef,
        inventory: &Inventory,
        force: Force,
        dry_run: DryRun,
    ) -> Result<Object, Refusal> {
        let kind = self.served_kind(id).await?;
        let mut path = object_path(id, &kind);
        path.push_str("?fieldManager=");
        path.push_str(&encode(&inventory.manager()));
        path.push_str("&fieldValidation=Strict");
        if force == Force::Yes {
            path.push_str("&force=true");
        }
        if dry_run == DryRun::Yes {
            path.push_str("&dryRun=All");
        }
        let call = Call {
            method: Method::PATCH,
            path,
            accept: JSON,
            content_type: APPLY,
            body: prepared.value().to_string().into_bytes(),
            verb: "patch",
            resource: resource(&id.group, &kind.plural),
            object: Some(id),
        };
        let mut attempt = 1;
        loop {
            match transport::json(&self.client, &call).await {
                Err(Refusal::Absent(Error::NotFound { what }))
                    if attempt < SERVE_ATTEMPTS && !what.starts_with("namespace ") =>
                {
                    tokio::time::sleep(SERVE_PAUSE).await;
                    attempt += 1;
                }
                answer => return answer.map(Object::from_value),
            }
        }
    }

    /// The served version that `id` names; discovery is read again when it is not known.
    pub(crate) async fn served_kind(&self, id: &ObjectRef) -> Result<ServedKind> {
        let find = |served: &Served| {
            let versions = served.versions(&id.group, &id.kind);
            versions
                .iter()
                .find(|kind| kind.version == id.version)
                .cloned()
        };
        if let Some(kind) = find(&*self.served().await?) {
            return Ok(kind);
        }
        find(&*self.discover().await?).ok_or_else(|| Error::NotServed {
            object: Box::new(id.clone()),
            api_version: id.api_version(),
        })
    }

    /// Deletes exactly the object that was read: its uid must still be the same.
    pub(crate) async fn delete_exactly(&self, object: &Object) -> Result<()> {
        let id = object.id();
        let kind = self.served_kind(&id).await?;
        let mut options = json!({"propagationPolicy": "Background"});
        if let Some(uid) = object.uid() {
            options["preconditions"] = json!({"uid": uid});
        }
        let call = Call {
            method: Method::DELETE,
            path: object_path(&id, &kind),
            accept: JSON,
            content_type: JSON,
            body: options.to_string().into_bytes(),
            verb: "delete",
            resource: resource(&id.group, &kind.plural),
            object: Some(&id),
        };
        transport::json(&self.client, &call).await?;
        Ok(())
    }

    /// Makes existing objects ours: sets the inventory's labels and forgets who managed which
    /// field, so that the next apply meets no conflict. For migrations, after they made sure that the
    /// old owner is gone. Objects that do not exist are skipped. Returns those that were changed.
    pub async fn adopt(
        &self,
        inventory: &Inventory,
        objects: &[ObjectRef],
    ) -> Result<Vec<ObjectRef>> {
        let labels: Map<String, Value> = inventory
            .labels()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        let patch = json!({"metadata": {"labels": labels, "managedFields": [{}]}});
        self.merge(objects, &patch, |live| !inventory.owns(live))
            .await
    }

    /// Lets go of objects without deleting them: removes the owner labels, so that no apply of the
    /// inventory prunes or changes them any more. Returns those that were changed.
    pub async fn disown(
        &self,
        inventory: &Inventory,
        objects: &[ObjectRef],
    ) -> Result<Vec<ObjectRef>> {
        let labels: Map<String, Value> = inventory
            .labels()
            .into_keys()
            .map(|key| (key.to_owned(), Value::Null))
            .collect();
        let annotations = json!({ APPLIED_HASH: null });
        let patch = json!({"metadata": {"labels": labels, "annotations": annotations}});
        self.merge(objects, &patch, |live| inventory.owns(live))
            .await
    }

    async fn merge(
        &self,
        objects: &[ObjectRef],
        patch: &Value,
        concerns: impl Fn(&Object) -> bool,
    ) -> Result<Vec<ObjectRef>> {
        let queries: Vec<Query> = objects
            .iter()
            .map(|id| Query::get(&id.group, &id.kind, id.namespace.as_deref(), &id.name))
            .map(Query::metadata_only)
            .collect();
        let mut changed = Vec::new();
        for live in self
            .observe(&queries)
            .await?
            .objects()
            .filter(|live| concerns(live))
        {
            let id = live.id();
            let kind = self.served_kind(&id).await?;
            let call = Call {
                method: Method::PATCH,
                path: object_path(&id, &kind),
                accept: JSON,
                content_type: MERGE,
                body: patch.to_string().into_bytes(),
                verb: "patch",
                resource: resource(&id.group, &kind.plural),
                object: Some(&id),
            };
            transport::json(&self.client, &call).await?;
            changed.push(id);
        }
        Ok(changed)
    }
}

/// Whether nothing will write the field again by itself: a person at a terminal (`kubectl`,
/// `kubectl-<command>`), or nobody known (what the server calls the fields of an object that has no
/// managers when it is first applied).
fn is_passive(manager: &str) -> bool {
    matches!(manager, "kubectl" | "before-first-apply") || manager.starts_with("kubectl-")
}
