//! The actions' answers. Pure.

mod precheck;
mod revisions;

use std::collections::BTreeMap;

use juju_charm::{ActionCall, ActionOutcome, ModelView, Problem};
use kube_apply::Plan;
use mesh::proxy_status::ProxyStatus;

use crate::observe::{Proxies, View};
use crate::status;
use crate::upgrade::target::Intent;
use crate::validate::Validated;
use crate::work::{Done, Work};

/// Whether the action needs to know what a reconcile would change.
pub fn wants_plan(call: &ActionCall) -> bool {
    call.name == "plan" || (revisions::is_one(&call.name) && revisions::is_dry_run(call))
}

/// The work of the action, if it is one that writes and may do so.
pub fn work(view: &ModelView, validated: &Validated, cluster: &View) -> Option<Work> {
    revisions::work(view, validated, cluster)
}

/// Whether the action needs to know what an upgrade rests on.
pub fn wants_facts(action: &str) -> bool {
    action == "precheck" || revisions::is_one(action)
}

/// What the action asks of the revisions.
///
/// # Errors
/// What is wrong with its parameter: nothing else is done in its place.
pub fn intent(call: &ActionCall) -> Result<Intent, String> {
    let revision = || {
        let text = call.params.get("revision").and_then(|v| v.as_str());
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        let parsed = text.map(|text| {
            let parsed = text.parse();
            parsed.map_err(|why| format!("parameter revision: {text:?} {why}"))
        });
        parsed.transpose()
    };
    Ok(match call.name.as_str() {
        "promote" => Intent::Promote,
        "rollback" => Intent::Rollback(revision()?),
        "remove-revision" => match revision()? {
            Some(revision) => Intent::Remove(revision),
            None => return Err("parameter revision: names none".to_owned()),
        },
        _ => Intent::Keep,
    })
}

/// Answers an action.
pub fn action(
    view: &ModelView,
    call: &ActionCall,
    validated: &Validated,
    cluster: &View,
    plan: Option<&Plan>,
    done: Option<&Done>,
    problems: &[Problem],
) -> ActionOutcome {
    let json = call.params.get("format").and_then(|v| v.as_str()) == Some("json");
    match call.name.as_str() {
        "plan" => answer_plan(plan, problems, json),
        "proxy-status" => answer_proxies(call, cluster.proxies.as_ref(), json),
        "precheck" => {
            let failure = status::failure(view, validated, None).into_iter();
            let problems: Vec<Problem> = failure.chain(problems.iter().cloned()).collect();
            precheck::answer(view, cluster, &problems, json)
        }
        name if revisions::is_one(name) => {
            revisions::answer(view, call, validated, cluster, plan, done, problems)
        }
        other => failed(format!("unknown action {other}")),
    }
}

fn answer_plan(plan: Option<&Plan>, problems: &[Problem], json: bool) -> ActionOutcome {
    let Some(plan) = plan else {
        let why = problems
            .first()
            .map_or("nothing can be planned", |p| p.message.as_str());
        return failed(format!("no plan: {why}"));
    };
    let text = if json {
        serde_json::to_string_pretty(plan).unwrap_or_default()
    } else {
        plan.to_string()
    };
    results([("plan", text), ("changes", changes(plan).to_string())])
}

/// How many objects an apply would write or delete.
fn changes(plan: &Plan) -> usize {
    plan.create.len() + plan.change.len() + plan.prune.len()
}

fn answer_proxies(call: &ActionCall, proxies: Option<&Proxies>, json: bool) -> ActionOutcome {
    let Some(Proxies { proxies, failures }) = proxies else {
        return failed("the proxies were not read");
    };
    let param = |name| {
        call.params
            .get(name)
            .and_then(|v| v.as_str())
            .unwrap_or_default()
    };
    let (namespace, revision) = (param("namespace"), param("revision"));
    let chosen: Vec<&ProxyStatus> = proxies
        .iter()
        .filter(|p| {
            namespace.is_empty() || p.proxy.split_once('.').is_some_and(|x| x.1 == namespace)
        })
        .filter(|p| revision.is_empty() || p.revision == revision)
        .collect();
    let text = if json {
        serde_json::to_string_pretty(&chosen).unwrap_or_default()
    } else {
        table(&chosen)
    };
    let mut all = vec![("proxies", text), ("count", chosen.len().to_string())];
    if !failures.is_empty() {
        all.push(("not-asked", failures.join("\n")));
    }
    results(all)
}

fn failed(message: impl Into<String>) -> ActionOutcome {
    ActionOutcome::failed(message, BTreeMap::new())
}

fn results<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> ActionOutcome {
    let results: BTreeMap<String, String> = pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    ActionOutcome::ok(results)
}

/// The lines under a header, columns as wide as their widest cell.
fn table(proxies: &[&ProxyStatus]) -> String {
    let header = [
        "PROXY", "KIND", "VERSION", "REVISION", "CDS", "LDS", "EDS", "RDS", "ISTIOD",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    for p in proxies {
        let sync = |s: mesh::proxy_status::Sync| format!("{s:?}").to_uppercase();
        rows.push([
            p.proxy.clone(),
            p.kind.clone(),
            p.version.clone(),
            p.revision.clone(),
            sync(p.cds),
            sync(p.lds),
            sync(p.eds),
            sync(p.rds),
            p.istiod.clone(),
        ]);
    }
    let mut widths = [0; 9];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let line = |row: &[String; 9]| {
        let cells: Vec<_> = row
            .iter()
            .zip(widths)
            .map(|(c, w)| format!("{c:<w$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mesh::proxy_status::Sync;

    #[test]
    fn an_action_that_writes_makes_no_plan_first() {
        let check = |name: &str, dry_run: bool, expect: bool| {
            let call = ActionCall {
                name: name.to_owned(),
                params: [("dry-run".to_owned(), dry_run.into())]
                    .into_iter()
                    .collect(),
            };
            assert_eq!(wants_plan(&call), expect, "{call:?}");
        };
        check("plan", false, true);
        for revisions in ["upgrade", "promote", "rollback", "remove-revision"] {
            check(revisions, true, true);
            check(revisions, false, false);
        }
        check("precheck", true, false);
    }

    #[test]
    fn the_table_lines_up() {
        let proxy = ProxyStatus {
            proxy: "web-1.meshy".to_owned(),
            kind: "sidecar".to_owned(),
            version: "1.31.0".to_owned(),
            istiod: "istiod-0.istio-lab".to_owned(),
            revision: "default".to_owned(),
            cds: Sync::Synced,
            lds: Sync::Synced,
            eds: Sync::Synced,
            rds: Sync::Stale,
        };
        assert_eq!(
            table(&[&proxy]),
            "PROXY        KIND     VERSION  REVISION  CDS     LDS     EDS     RDS    ISTIOD\n\
             web-1.meshy  sidecar  1.31.0   default   SYNCED  SYNCED  SYNCED  STALE  istiod-0.istio-lab"
        );
    }
}
