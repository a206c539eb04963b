//! The status table.

use jiff::Timestamp;

use super::ports;
use super::status::derived;
use super::status::shown;
use crate::Options;
use crate::charm::Role;
use crate::state::State;

/// The sections a terminal shows; each a padded table.
pub(crate) fn text(state: &State, options: &Options, now: Timestamp, relations: bool) -> String {
    let mut sections = vec![table(
        &[
            "Model",
            "Controller",
            "Cloud/Region",
            "Version",
            "SLA",
            "Timestamp",
        ],
        &[[
            state.name.as_str(),
            "simulator",
            "kubernetes",
            &options.juju_version,
            "unsupported",
            &now.strftime("%H:%M:%SZ").to_string(),
        ]
        .map(ToOwned::to_owned)
        .to_vec()],
    )];
    if state.applications.is_empty() {
        sections.push(format!("Model \"{}\" is empty.\n", state.name));
        return sections.join("\n");
    }
    let mut apps = Vec::new();
    let mut units = Vec::new();
    for (name, app) in &state.applications {
        let status = derived(app, state.created);
        apps.push(vec![
            name.clone(),
            app.workload_version.clone(),
            status.status,
            app.units.len().to_string(),
            app.charm.name.clone(),
            String::new(),
            app.charm_rev.to_string(),
            app.address.clone(),
            "no".to_owned(),
            status.message,
        ]);
        for (number, unit) in &app.units {
            let status = shown(unit);
            let star = if app.leader == Some(*number) { "*" } else { "" };
            units.push(vec![
                format!("{name}/{number}{star}"),
                status.status,
                unit.agent.status.clone(),
                unit.address.clone(),
                ports(unit).join(","),
                status.message,
            ]);
        }
    }
    sections.push(table(
        &[
            "App", "Version", "Status", "Scale", "Charm", "Channel", "Rev", "Address", "Exposed",
            "Message",
        ],
        &apps,
    ));
    if !units.is_empty() {
        sections.push(table(
            &["Unit", "Workload", "Agent", "Address", "Ports", "Message"],
            &units,
        ));
    }
    let mut rows = Vec::new();
    for relation in state.relations.values() {
        let name = |i: usize| {
            let side = relation.sides.get(i).or_else(|| relation.sides.first());
            side.map(|s| format!("{}:{}", s.app, s.endpoint))
                .unwrap_or_default()
        };
        let peer = relation.sides.first().is_some_and(|s| s.role == Role::Peer);
        let kind = if peer { "peer" } else { "regular" };
        rows.push(vec![
            name(0),
            name(1),
            relation.interface.clone(),
            kind.to_owned(),
        ]);
    }
    rows.sort();
    if relations && !rows.is_empty() {
        sections.push(table(
            &["Integration provider", "Requirer", "Interface", "Type"],
            &rows,
        ));
    }
    sections.join("\n")
}

/// Columns padded to their widest cell, two spaces apart, no trailing blanks.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| {
        all.iter()
            .filter_map(|r| r.get(column))
            .map(|c| c.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            let missing = width(column).saturating_sub(cell.chars().count());
            line.push_str(&" ".repeat(missing + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
