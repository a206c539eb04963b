//! `purge`: confirms that Istio's definitions, and with them everybody's configuration, go when the
//! application goes.
//!
//! Juju tells a charm of its removal and of scaling to no units in the same way, so neither alone
//! deletes a definition. It takes the option `crd-policy=remove` and this confirmation; the
//! confirmation is a mark on the definitions themselves, so that it lasts as long as they do.

use juju_charm::{ModelView, Progress};
use kube_apply::{Delete, Engine, Inventory, Object, Query, Result};
use mesh::ownership::is_istio_definition;
use serde_json::json;

use super::Report;
use super::params::Params;
use crate::config::{self, CrdPolicy};
use crate::observe::{View, inventory};
use crate::surroundings::observe;
use crate::validate::Validated;

/// Annotation: the application whose end is the definition's end.
const PURGE: &str = "charms.istio-operators.dev/purge-with";
const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "CustomResourceDefinition";

/// A confirmation.
#[derive(Debug)]
pub struct Purge {
    inventory: Inventory,
    dry_run: bool,
}

pub(super) fn task(view: &ModelView, cluster: &View, params: Params<'_>) -> Option<Purge> {
    complaint(view, cluster, params).is_none().then(|| Purge {
        inventory: inventory(view),
        dry_run: params.dry_run(false),
    })
}

/// Why nothing is confirmed.
pub(super) fn refusal(view: &ModelView, cluster: &View, params: Params<'_>) -> String {
    complaint(view, cluster, params).unwrap_or_else(|| "nothing was confirmed".to_owned())
}

fn complaint(view: &ModelView, cluster: &View, params: Params<'_>) -> Option<String> {
    let app = &view.context.app;
    let policy = config::options(&view.config, app).map(|options| options.crd_policy);
    if policy != Ok(CrdPolicy::Remove) {
        return Some(format!(
            "definitions are kept; run: juju config {app} crd-policy=remove"
        ));
    }
    if let Some(other) = other_control_plane(view, cluster) {
        return Some(format!("{other} needs the definitions"));
    }
    if *app != params.text("confirm") && !params.dry_run(false) {
        return Some(format!(
            "this deletes everybody's Istio configuration with the application; run again with confirm={app}"
        ));
    }
    None
}

/// An istiod that is not this application's.
fn other_control_plane(view: &ModelView, cluster: &View) -> Option<String> {
    let inventory = inventory(view);
    let other = cluster
        .istiods
        .iter()
        .find(|istiod| !inventory.owns(istiod))?;
    Some(other.id().to_string())
}

/// The end of the definitions, where it was confirmed and the application goes.
pub(super) fn at_removal(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
) -> Option<RemoveDefinitions> {
    let policy = config::options(&view.config, &view.context.app)
        .ok()?
        .crd_policy;
    let goes = matches!(validated, Validated::Leave) && policy == CrdPolicy::Remove;
    (goes && other_control_plane(view, cluster).is_none()).then(|| RemoveDefinitions {
        inventory: inventory(view),
    })
}

/// Istio's definitions that the application owns; `confirmed` if they may go.
async fn owned(engine: &Engine, inventory: &Inventory) -> Result<Vec<Object>> {
    let query = Query::list(GROUP, KIND)
        .with_labels(&inventory.selector())
        .metadata_only();
    let observed = observe(engine, &[query]).await?;
    let definitions = observed.list(GROUP, KIND);
    Ok(definitions
        .filter(|definition| is_istio_definition(definition.name()))
        .cloned()
        .collect())
}

impl Purge {
    /// Marks the definitions, or tells which it would mark and how much hangs on each.
    pub(super) async fn run(self, engine: &Engine) -> Result<Report> {
        let definitions = owned(engine, &self.inventory).await?;
        let mut report = Report::default();
        let mut lines = Vec::new();
        for definition in &definitions {
            let count = objects_of(engine, definition).await?;
            lines.push(format!("{}: {count} objects", definition.name()));
        }
        report.set("definitions", lines.join("\n"));
        report.set("count", definitions.len().to_string());
        if self.dry_run {
            report.set("changed", "nothing: run again without dry-run");
            return Ok(report);
        }
        let owner = &self.inventory.owner;
        let mark = json!({"metadata": {"annotations": {PURGE: owner.app}}});
        for definition in &definitions {
            let manager = format!("{}/purge", owner.charm);
            engine
                .merge_patch(&definition.id(), &mark, &manager)
                .await?;
        }
        report.set(
            "changed",
            format!(
                "the definitions go with the application: juju remove-application {}",
                owner.app
            ),
        );
        Ok(report)
    }
}

/// How many objects a definition has.
async fn objects_of(engine: &Engine, definition: &Object) -> Result<usize> {
    let served = engine.served().await?;
    let (plural, group) = definition.name().split_once('.').unwrap_or_default();
    let kinds = istio_api::kinds::TABLE
        .iter()
        .chain(istio_api::kinds::READ_ONLY);
    let row = kinds
        .into_iter()
        .find(|row| row.group == group && row.plural == plural);
    let Some(row) = row.filter(|row| served.best(row.group, row.kind).is_some()) else {
        return Ok(0);
    };
    let query = Query::list(row.group, row.kind).metadata_only();
    let observed = observe(engine, &[query]).await?;
    Ok(observed.list(row.group, row.kind).count())
}

/// Deletes the definitions whose end was confirmed.
#[derive(Debug)]
pub struct RemoveDefinitions {
    inventory: Inventory,
}

impl RemoveDefinitions {
    /// Deletes them; what is gone already is no obstacle.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        let app = self.inventory.owner.app.as_str();
        for definition in owned(engine, &self.inventory).await? {
            if definition.annotation(PURGE) != Some(app) {
                continue;
            }
            let options = Delete {
                uid: definition.uid().map(str::to_owned),
                ..Delete::default()
            };
            engine.delete(&definition.id(), &options).await?;
            progress.say(&format!("deleted {}", definition.id()));
        }
        Ok(Report::default())
    }
}
