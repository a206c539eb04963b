//! What related applications are told besides the root namespace. Pure.

use std::collections::BTreeMap;

use juju_charm::{Databag, ModelView, Outcome, RelationView};
use kube_apply::Applied;
use mesh::control_plane::Settings;
use relations::grafana_dashboard::Topology;
use relations::tracing::{Protocol, TracingRequest};
use relations::{
    Dashboards, ExtAuthzProvider, ScrapeJob, ScrapeJobs, ScrapeMetadata, StaticConfig,
    certificate_transfer,
};

use crate::inputs::{self, CHARM_TRACING, INGRESS_CONFIG, JWKS_CA, WORKLOAD_TRACING};
use crate::observe::View;
use crate::tasks::Report;
use crate::validate::Validated;
use crate::{authority, observability};

/// Name of the charm, as related applications know it.
const CHARM: &str = "istio-k8s";
/// istiod's port of metrics.
const METRICS: u16 = 15014;

/// Adds it to what this hook tells Juju.
pub fn add(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    applied: Option<&Applied>,
    report: Option<&Report>,
    outcome: &mut Outcome,
) {
    let mut put = |relation: &RelationView, app: Databag| {
        let data = outcome.databags.entry(relation.id).or_default();
        data.app.extend(app);
    };
    // What is asked for does not depend on how Istio does: who waits for it waits for both.
    for relation in view.relations_of(WORKLOAD_TRACING) {
        put(relation, TracingRequest(vec![Protocol::OtlpGrpc]).encode());
    }
    for relation in view.relations_of(CHARM_TRACING) {
        put(relation, TracingRequest(vec![Protocol::OtlpHttp]).encode());
    }
    for relation in view.relations_of(JWKS_CA) {
        put(relation, certificate_transfer::request());
    }
    for relation in view.relations_of("grafana-dashboard") {
        put(relation, dashboards(view).encode(env!("CARGO_PKG_VERSION")));
    }
    let made = report.and_then(|report| report.request.as_ref());
    let request = made
        .map(|made| made.0.clone())
        .or_else(|| authority::request(cluster));
    if let Some(request) = request {
        for relation in view.relations_of(authority::ENDPOINT) {
            put(relation, authority::databag(&request));
        }
    }
    let awaited = authority::is_awaited(view, cluster);
    let runs = applied.is_some_and(Applied::is_complete) && !awaited;
    match validated {
        Validated::Run(installation) if runs => {
            for relation in view.relations_of("metrics-endpoint") {
                put(relation, metrics(view, &installation.settings).encode());
            }
            // A policy that names a provider which the mesh config lacks denies everything.
            let names = inputs::inputs(view).authorizers;
            for relation in view.relations_of(INGRESS_CONFIG) {
                let name = names.get(&relation.id).cloned().unwrap_or_default();
                put(relation, ExtAuthzProvider { name }.encode());
            }
        }
        _ => {}
    }
    if awaited {
        outcome.workload_version = None;
        for relation in view.relations_of("istio-metadata") {
            outcome.databags.remove(&relation.id);
        }
    }
}

fn metrics(view: &ModelView, settings: &Settings) -> ScrapeJobs {
    let context = &view.context;
    let service = settings.revision.suffixed("istiod");
    let (model, uuid, app) = (
        context.model_name.to_string(),
        context.model_uuid.to_string(),
        context.app.to_string(),
    );
    let topology = BTreeMap::from([
        ("juju_application", app.as_str()),
        ("juju_charm", CHARM),
        ("juju_model", model.as_str()),
        ("juju_model_uuid", uuid.as_str()),
    ]);
    ScrapeJobs {
        alert_rules: observability::alert_rules(&topology),
        jobs: vec![ScrapeJob {
            metrics_path: "/metrics".to_owned(),
            static_configs: vec![StaticConfig {
                targets: vec![format!("{service}.{}.svc:{METRICS}", settings.namespace)],
            }],
        }],
        metadata: ScrapeMetadata {
            unit: leader_unit(&app),
            charm_name: CHARM.to_owned(),
            model: model.clone(),
            model_uuid: uuid.clone(),
            application: app.clone(),
        },
    }
}

fn dashboards(view: &ModelView) -> Dashboards {
    let context = &view.context;
    let app = context.app.to_string();
    Dashboards {
        charm: CHARM.to_owned(),
        topology: Topology {
            model: context.model_name.to_string(),
            model_uuid: context.model_uuid.to_string(),
            unit: leader_unit(&app),
            application: app,
        },
        dashboards: observability::dashboards(),
    }
}

/// A unit's name that does not change with the leader, or every change of it would be a change of the
/// data.
fn leader_unit(app: &str) -> String {
    format!("{app}/0")
}
