//! The live state that a plan needs: what the inventory has, and what stands where it wants to write.

use std::collections::BTreeSet;

use istio_api::kinds;

use crate::engine::Engine;
use crate::error::Result;
use crate::query::{Note, Observed, Query};
use crate::set::ObjectsSet;

impl Engine {
    /// Reads the live state for [`crate::plan()`].
    pub(crate) async fn snapshot(&self, set: &ObjectsSet) -> Result<Observed> {
        let served = self.served().await?;
        let wanted: BTreeSet<(&str, &str)> = objects(set)
            .map(|object| (object.group(), object.kind()))
            .collect();
        let selector = set.inventory.selector();
        let lists: Vec<Query> = kinds::TABLE
            .iter()
            .filter(|row| served.best(row.group, row.kind).is_some())
            .filter(|row| match row.kind {
                "Namespace" => false,
                "CustomResourceDefinition" => wanted.contains(&(row.group, row.kind)),
                _ => true,
            })
            .map(|row| {
                let full = row.kind != "CustomResourceDefinition"
                    && wanted.contains(&(row.group, row.kind));
                let query = Query::list(row.group, row.kind).with_labels(&selector);
                Query {
                    metadata_only: !full,
                    ..query
                }
            })
            .collect();
        let ours = self.observe(&lists).await?;
        let unlabelled: BTreeSet<Query> = objects(set)
            .filter(|object| ours.find(&object.id()).is_none())
            .filter(|object| served.best(object.group(), object.kind()).is_some())
            .map(|object| {
                let query = Query::get(
                    object.group(),
                    object.kind(),
                    object.namespace(),
                    object.name(),
                );
                Query {
                    metadata_only: object.kind() == "CustomResourceDefinition",
                    ..query
                }
            })
            .collect();
        let unlabelled: Vec<Query> = unlabelled.into_iter().collect();
        let others = self.observe(&unlabelled).await?;
        let mut live = ours;
        for object in others.objects() {
            live.insert(object.clone());
        }
        for note in others.notes() {
            live.note(note.clone());
        }
        Ok(live)
    }
}

/// All objects of all stages.
pub(crate) fn objects(set: &ObjectsSet) -> impl Iterator<Item = &crate::object::Object> {
    set.stages.iter().flat_map(|stage| &stage.objects)
}

/// The kinds (`deployments.apps`) that could not be read, sorted.
pub(crate) fn not_permitted(live: &Observed) -> Vec<String> {
    let resources: BTreeSet<&String> = live
        .notes()
        .filter_map(|note| match note {
            Note::Forbidden { resource, .. } => Some(resource),
            Note::NotInstalled { .. } => None,
        })
        .collect();
    resources.into_iter().cloned().collect()
}
