//! `disown`: takes objects out of the reach of an owner, without deleting or changing them otherwise.
//!
//! From `own`, this application lets go of everything it has: it can be removed and Istio stays. From
//! another owner, the marks go by which it would delete Istio's objects, definitions first: they take
//! everybody's configuration along.

use std::collections::BTreeSet;

use istio_api::kinds::TABLE;
use juju_charm::{ModelView, Progress};
use kube_apply::{Engine, Inventory, Object, Query, Result};
use mesh::ownership::{Former, is_istio_definition, release};

use super::Report;
use super::params::Params;
use crate::observe::inventory;
use crate::surroundings::observe;

/// By which labels Istio's objects are found, whoever installed them.
const SELECTORS: [&str; 4] = [
    "app.juju.is/created-by=istio-pilot",
    "app.kubernetes.io/part-of=istio",
    "kubernetes-resource-handler-scope",
    "operator.istio.io/component",
];

/// Whose reach, and which objects.
#[derive(Debug)]
pub struct Disown {
    inventory: Inventory,
    /// None is this application itself.
    from: Option<Former>,
    namespace: String,
    dry_run: bool,
}

pub(super) fn task(view: &ModelView, params: Params<'_>) -> Option<Disown> {
    let from = match params.text("from") {
        "own" => None,
        other => Some(other.parse().ok()?),
    };
    Some(Disown {
        inventory: inventory(view),
        from,
        namespace: params.text("namespace").to_owned(),
        dry_run: params.dry_run(true),
    })
}

impl Disown {
    /// Lets go, or tells of what it would let go.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        let mut objects = match self.from {
            None => self.own(engine).await?,
            Some(former) => self.marked(engine, former).await?,
        };
        let here = |object: &Object| {
            let namespace = object.namespace().unwrap_or_default();
            self.namespace.is_empty() || namespace == self.namespace
        };
        objects.retain(here);
        objects.sort_by_key(|o| (o.kind() != "CustomResourceDefinition", o.id()));
        let lines: Vec<String> = objects.iter().map(|o| o.id().to_string()).collect();
        let mut report = Report::default();
        report.set("objects", lines.join("\n"));
        report.set("count", objects.len().to_string());
        if self.dry_run {
            report.set("changed", "nothing: run again with dry-run=false");
            return Ok(report);
        }
        for object in &objects {
            let id = object.id();
            match self.from {
                None => {
                    let one = std::slice::from_ref(&id);
                    engine.disown(&self.inventory, one).await?;
                }
                Some(former) => {
                    let from = BTreeSet::from([former]);
                    if let Some(patch) = release(object.value(), &from) {
                        let manager = self.inventory.manager();
                        engine.merge_patch(&id, &patch, &manager).await?;
                    }
                }
            }
            progress.say(&format!("let go of {id}"));
        }
        report.set("changed", format!("{} objects", objects.len()));
        Ok(report)
    }

    async fn own(&self, engine: &Engine) -> Result<Vec<Object>> {
        let selector = self.inventory.selector();
        let queries: Vec<Query> = TABLE
            .iter()
            .map(|row| Query::list(row.group, row.kind).with_labels(&selector))
            .map(Query::metadata_only)
            .collect();
        let observed = observe(engine, &queries).await?;
        Ok(observed.objects().cloned().collect())
    }

    async fn marked(&self, engine: &Engine, former: Former) -> Result<Vec<Object>> {
        let mut queries =
            vec![Query::list("apiextensions.k8s.io", "CustomResourceDefinition").metadata_only()];
        for row in TABLE {
            for selector in SELECTORS {
                let query = Query::list(row.group, row.kind).with_labels(selector);
                queries.push(query.metadata_only());
            }
        }
        let observed = observe(engine, &queries).await?;
        let from = BTreeSet::from([former]);
        let marked = |object: &&Object| {
            let definition = object.kind() == "CustomResourceDefinition";
            (!definition || is_istio_definition(object.name()))
                && release(object.value(), &from).is_some()
        };
        Ok(observed.objects().filter(marked).cloned().collect())
    }
}
