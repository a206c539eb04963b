//! Actions: `list-routes`, `discover`, `check-auth` and `dry-run`. Pure.

use std::collections::{BTreeMap, BTreeSet};

use juju_charm::{ActionOutcome, ModelView, Problem, RelationId};
use kube_apply::Plan;
use mesh::auth::{Gate, Mechanism};
use mesh::routes::{Backend, RouteRequest, Weighted, established};
use serde_json::Value;

use crate::check::{self, Answered};
use crate::ingress::IngressState;
use crate::observe::View;
use crate::validate::Validated;
use crate::{discover, findings, gateway_api, pass, replies};

/// Answers an action.
pub fn action(
    view: &ModelView,
    validated: &Validated,
    cluster: &View,
    plan: Option<&Plan>,
    answers: Option<&Vec<Answered>>,
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
        "list-routes" => vec![("routes", routes(view, validated, cluster))],
        "discover" => discover::tables(view, validated, cluster),
        "check-auth" => return check::told(validated, answers),
        "dry-run" => return dry_run(format, plan),
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
pub(crate) type Row = Vec<(&'static str, String)>;

/// What stands for a cell without a value.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

fn routes(view: &ModelView, validated: &Validated, cluster: &View) -> Vec<Row> {
    let model = view.context.model_name.as_str();
    let findings = findings::backends(model, cluster, &validated.routes);
    let auth = auth(validated, cluster);
    let tls = if validated.tls.pair.is_some() {
        "on"
    } else {
        "off"
    };
    let live = live_relations(validated, cluster);
    let kinds = kinds(validated, cluster);
    let joined =
        |kinds: &BTreeSet<&'static str>| kinds.iter().copied().collect::<Vec<_>>().join(",");
    let row = |(id, state): (&RelationId, &IngressState)| {
        let IngressState {
            endpoint,
            app,
            dialect,
            foreign: _,
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
            ("kind", or_dash(kinds.get(&id.0).map(joined))),
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
            ("finding", or_dash(findings.get(&id.0).cloned())),
        ]
    };
    validated.ingresses.iter().map(row).collect()
}

/// The relations all of whose routes are live.
fn live_relations(validated: &Validated, cluster: &View) -> BTreeSet<u32> {
    let Some(edge) = &validated.edge else {
        return BTreeSet::new();
    };
    let ours = &cluster.live;
    let live = match validated
        .target
        .as_ref()
        .and_then(|target| target.api.as_ref())
    {
        Some(choice) => gateway_api::established(edge, choice, &validated.routes, &ours.api),
        None => established(&validated.routes, edge, &ours.virtual_services),
    };
    pass::served(&validated.routes, &live)
}

/// The kinds of objects that carry the routes of relations now, of either API.
fn kinds(validated: &Validated, cluster: &View) -> BTreeMap<u32, BTreeSet<&'static str>> {
    let Some(edge) = &validated.edge else {
        return BTreeMap::new();
    };
    let (routes, ours) = (&validated.routes, &cluster.live);
    let mut kinds = gateway_api::carried(edge, routes, &ours.api);
    for route in established(routes, edge, &ours.virtual_services) {
        kinds
            .entry(route.relation)
            .or_default()
            .insert("VirtualService");
    }
    kinds
}

fn auth(validated: &Validated, cluster: &View) -> &'static str {
    let of_api = validated
        .target
        .as_ref()
        .is_some_and(|target| target.api.is_some());
    let policies = if of_api {
        &cluster.live.api.policies
    } else {
        &cluster.live.policies
    };
    let mechanism = validated.auth.gate.as_ref().and_then(Gate::mechanism);
    if !validated.auth.wanted {
        "off"
    } else if mechanism == Some(Mechanism::Tokens) {
        // The routes themselves let nobody else pass.
        "in force"
    } else if policies.is_empty() && cluster.evidence.in_force() {
        "in force"
    } else if cluster.evidence.denying() {
        "denied"
    } else {
        "unproven"
    }
}

/// What a hook would write now.
fn dry_run(format: &str, plan: Option<&Plan>) -> ActionOutcome {
    let Some(plan) = plan else {
        return ActionOutcome::failed("nothing would be written: see the status", BTreeMap::new());
    };
    let text = if format == "json" {
        serde_json::to_string(plan).unwrap_or_default()
    } else {
        plan.to_string()
    };
    ActionOutcome::ok(BTreeMap::from([("plan".to_owned(), text)]))
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
