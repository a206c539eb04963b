//! `adopt`: takes over the objects that this application would have, from whoever has them.
//!
//! Only what the application wants itself is taken, and the webhooks that lead to its own istiod.
//! Whoever had the objects must have been named, by owner or by object.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{Charm as _, ModelView, Progress};
use kube_apply::{Delete, Engine, Object, ObjectRef, ObjectsSet, Query, Result};
use mesh::ownership::{Former, release};
use serde_json::Value;

use super::Report;
use super::params::Params;
use crate::charm::IstioK8s;
use crate::observe::{View, inventory};
use crate::surroundings::observe;
use crate::validate::Validated;

/// What to take over.
#[derive(Debug)]
pub struct Adopt {
    set: ObjectsSet,
    /// Webhook configurations of others that lead to this application's istiod.
    beside: Vec<Object>,
    owner: String,
    objects: BTreeSet<String>,
    dry_run: bool,
    forget: bool,
}

pub(super) fn task(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    params: Params<'_>,
) -> Option<Adopt> {
    let set = IstioK8s::desired(view, validated, cluster)?.set;
    let wanted: BTreeSet<ObjectRef> = set
        .stages
        .iter()
        .flat_map(|stage| &stage.objects)
        .map(Object::id)
        .collect();
    let services = services(&set);
    let inventory = inventory(view);
    let beside = cluster.mutating.iter().chain(&cluster.validating);
    let beside = beside
        .filter(|config| !inventory.owns(config) && !wanted.contains(&config.id()))
        .filter(|config| leads_to(config.value(), &services));
    Some(Adopt {
        beside: beside.cloned().collect(),
        owner: params.text("owner").to_owned(),
        objects: params.list("objects").map(str::to_owned).collect(),
        dry_run: params.dry_run(true),
        forget: params.flag("forget-helm-release"),
        set,
    })
}

/// Namespace and name of the Services in the set: those of its istiod among them.
fn services(set: &ObjectsSet) -> BTreeSet<(String, String)> {
    let objects = set.stages.iter().flat_map(|stage| &stage.objects);
    objects
        .filter(|object| object.kind() == "Service")
        .map(|o| {
            (
                o.namespace().unwrap_or_default().to_owned(),
                o.name().to_owned(),
            )
        })
        .collect()
}

fn leads_to(config: &Value, services: &BTreeSet<(String, String)>) -> bool {
    let webhooks = config["webhooks"].as_array();
    webhooks.into_iter().flatten().any(|webhook| {
        let service = &webhook["clientConfig"]["service"];
        let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
        services.contains(&(text("namespace"), text("name")))
    })
}

impl Adopt {
    /// Takes the objects over, or tells which it would take.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        let inventory = &self.set.inventory;
        let plan = engine.plan(&self.set).await?;
        let whole = plan.conflict.into_iter().filter(|c| c.fields.is_empty());
        let mut foreign: BTreeMap<ObjectRef, String> = whole.map(|c| (c.object, c.owner)).collect();
        for object in &self.beside {
            let owner = inventory.foreign_owner(object).unwrap_or_default();
            foreign.insert(object.id(), owner);
        }
        let owners: BTreeSet<String> = foreign.values().cloned().collect();
        let named = |id: &ObjectRef, owner: &str| {
            (self.owner.is_empty() || self.owner == owner)
                && (self.objects.is_empty() || self.objects.contains(&id.to_string()))
        };
        foreign.retain(|id, owner| named(id, owner));
        let mut ids: Vec<ObjectRef> = foreign.keys().cloned().collect();
        ids.sort_by_key(|id| (id.kind != "CustomResourceDefinition", id.clone()));

        let mut report = Report::default();
        let lines = ids.iter().map(|id| format!("{id}: {}", foreign[id]));
        report.set("objects", lines.collect::<Vec<_>>().join("\n"));
        report.set("owners", Vec::from_iter(owners).join("\n"));
        report.set("count", ids.len().to_string());
        let records = records(engine, foreign.values()).await?;
        let secrets = records.iter().map(|record| record.id().to_string());
        report.set("helm-records", secrets.collect::<Vec<_>>().join("\n"));
        if self.dry_run {
            report.set("changed", "nothing: run again with dry-run=false");
            return Ok(report);
        }
        if self.owner.is_empty() && self.objects.is_empty() && !ids.is_empty() {
            report.failure = Some("name the owner or the objects to take over".to_owned());
            return Ok(report);
        }
        let all = BTreeSet::from(Former::ALL);
        for id in &ids {
            let Some(live) = engine.get(id).await? else {
                continue;
            };
            if let Some(patch) = release(live.value(), &all) {
                engine.merge_patch(id, &patch, &inventory.manager()).await?;
            }
            engine.adopt(inventory, std::slice::from_ref(id)).await?;
            progress.say(&format!("took over {id} from {}", foreign[id]));
        }
        if self.forget {
            for record in &records {
                engine.delete(&record.id(), &Delete::default()).await?;
                progress.say(&format!("deleted {}", record.id()));
            }
        }
        let left = match (records.is_empty(), self.forget) {
            (false, false) => "; `helm uninstall` would still delete them: see helm-records",
            _ => "",
        };
        report.set(
            "changed",
            format!(
                "{} objects; the next hook brings them in line{left}",
                ids.len()
            ),
        );
        Ok(report)
    }
}

/// The Secrets in which Helm remembers the releases among the owners: by them it would delete what
/// is not its own any more.
async fn records(engine: &Engine, owners: impl Iterator<Item = &String>) -> Result<Vec<Object>> {
    let releases: BTreeSet<(&str, &str)> = owners
        .filter_map(|owner| owner.strip_prefix("Helm release ")?.split_once('/'))
        .collect();
    let queries: Vec<Query> = releases
        .iter()
        .map(|(namespace, release)| {
            Query::list("", "Secret")
                .in_namespace(namespace)
                .with_labels(&format!("owner=helm,name={release}"))
                .metadata_only()
        })
        .collect();
    let observed = observe(engine, &queries).await?;
    Ok(observed.list("", "Secret").cloned().collect())
}
