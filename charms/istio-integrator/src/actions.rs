//! Actions: `list-routes` and `discover`. Pure.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{ActionOutcome, ModelView, Problem, RelationId};
use mesh::discovery::{ControlPlane, GatewayWorkload};
use mesh::routes::{Backend, RouteRequest, Weighted, established};
use serde_json::Value;

use crate::ingress::IngressState;
use crate::observe::View;
use crate::validate::Validated;
use crate::{pass, replies};

/// Answers an action.
pub fn action(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    problems: &[Problem],
) -> ActionOutcome {
    let Some(call) = &view.action else {
        return ActionOutcome::failed("not running an action", BTreeMap::new());
    };
    let format = call
        .params
        .get("format")
        .and_then(|value| value.as_str())
        .unwrap_or("table");
    let results = match call.name.as_str() {
        "list-routes" => vec![("routes", routes(validated, cluster))],
        "discover" => vec![
            ("control-planes", planes(cluster)),
            ("gateways", gateways(cluster)),
        ],
        other => return ActionOutcome::failed(format!("no action {other}"), BTreeMap::new()),
    };
    let results = results
        .into_iter()
        .map(|(key, rows)| (key.to_owned(), written(format, &rows)));
    let mut outcome = ActionOutcome::ok(results.collect());
    for problem in problems {
        outcome = outcome.with_log(problem.to_string());
    }
    outcome
}

/// One line: names and cells, in order.
type Row = Vec<(&'static str, String)>;

/// What stands for a cell without a value.
fn or_dash(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

fn routes(validated: &Validated, cluster: &View) -> Vec<Row> {
    let auth = auth(validated, cluster);
    let tls = if validated.tls.pair.is_some() {
        "on"
    } else {
        "off"
    };
    let live = live_relations(validated, cluster);
    let row = |(id, state): (&RelationId, &IngressState)| {
        let IngressState {
            endpoint,
            app,
            dialect,
            requests,
            problem,
        } = state;
        let wanted = validated.routes.iter().any(|route| route.relation == id.0);
        let told = match problem {
            Some(problem) => problem.clone(),
            None if live.contains(&id.0) => "served".to_owned(),
            None if wanted => "held back".to_owned(),
            None => "unknown".to_owned(),
        };
        let backend = |weighted: &Weighted| {
            let Backend {
                service,
                namespace,
                port,
            } = &weighted.backend;
            format!("{service}.{namespace}:{port}")
        };
        let paths: Vec<String> = requests.iter().flat_map(RouteRequest::paths).collect();
        let backends: BTreeSet<String> = requests
            .iter()
            .flat_map(RouteRequest::backends)
            .map(backend)
            .collect();
        let url = validated
            .target
            .as_ref()
            .and_then(|target| replies::url(target, validated, *id));
        let open = requests.iter().any(|request| request.open);
        vec![
            ("relation", format!("{endpoint}:{id}")),
            ("app", app.clone()),
            ("dialect", or_dash(dialect.map(str::to_owned))),
            ("prefix", or_dash(Some(paths.join(",")))),
            (
                "backend",
                or_dash(Some(backends.into_iter().collect::<Vec<_>>().join(","))),
            ),
            ("url", or_dash(url)),
            (
                "gateway",
                or_dash(
                    validated
                        .target
                        .as_ref()
                        .map(|target| target.gateway.reference()),
                ),
            ),
            ("auth", if open { "open" } else { auth }.to_owned()),
            ("tls", tls.to_owned()),
            ("state", told),
        ]
    };
    validated.ingresses.iter().map(row).collect()
}

/// The relations all of whose routes are live.
fn live_relations(validated: &Validated, cluster: &View) -> BTreeSet<u32> {
    let Some(edge) = &validated.edge else {
        return BTreeSet::new();
    };
    let live = established(&validated.routes, edge, &cluster.live.virtual_services);
    pass::served(&validated.routes, &live)
}

fn auth(validated: &Validated, cluster: &View) -> &'static str {
    if !validated.auth.wanted {
        "off"
    } else if cluster.live.policies.is_empty() && cluster.evidence.in_force() {
        "in force"
    } else if cluster.evidence.denying() {
        "denied"
    } else {
        "unproven"
    }
}

fn planes(cluster: &View) -> Vec<Row> {
    let row = |plane: &ControlPlane| {
        vec![
            ("control-plane", plane.reference()),
            ("version", or_dash(plane.version.clone())),
            ("root-namespace", plane.root_namespace.clone()),
            ("tags", or_dash(Some(plane.tags.join(",")))),
            (
                "extension-providers",
                or_dash(Some(plane.extension_providers.join(","))),
            ),
            ("owner", plane.owner.to_string()),
            ("ready", plane.ready.to_string()),
        ]
    };
    cluster.control_planes.iter().map(row).collect()
}

fn gateways(cluster: &View) -> Vec<Row> {
    let row = |gateway: &GatewayWorkload| {
        let service = gateway.service.as_ref();
        vec![
            ("gateway", gateway.reference()),
            ("kind", gateway.kind.clone()),
            ("revision", or_dash(gateway.revision.clone())),
            (
                "service",
                or_dash(service.map(|s| format!("{} {}", s.kind, s.name))),
            ),
            (
                "address",
                or_dash(service.and_then(|s| s.host()).map(str::to_owned)),
            ),
            ("ready", gateway.ready.to_string()),
        ]
    };
    cluster.gateways.iter().map(row).collect()
}

fn written(format: &str, rows: &[Row]) -> String {
    if format != "json" {
        return table(rows);
    }
    let object = |row: &Row| -> Value {
        row.iter()
            .map(|(name, cell)| ((*name).to_owned(), Value::from(cell.as_str())))
            .collect()
    };
    Value::Array(rows.iter().map(object).collect()).to_string()
}

/// Columns as wide as their widest cell, headed by their names.
fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return "none".to_owned();
    };
    let mut lines: Vec<Vec<String>> = vec![first.iter().map(|(n, _)| n.to_uppercase()).collect()];
    lines.extend(
        rows.iter()
            .map(|row| row.iter().map(|(_, cell)| cell.clone()).collect()),
    );
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..first.len()).map(width).collect();
    let line = |line: &Vec<String>| {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
