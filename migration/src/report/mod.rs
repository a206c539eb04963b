//! A plan for people: text for a terminal, and one HTML page that needs nothing else.

mod html;
mod text;

pub use html::html;
pub use text::{refusals, text};

use crate::execute::{Journal, State};
use crate::plan::{Action, Phase, Plan, Step};

/// An action in a phrase. Contents of objects are not in it.
fn phrase(action: &Action) -> String {
    match action {
        Action::Apply { object, .. } => {
            let text = |pointer: &str| crate::inventory::text(object, pointer);
            let namespace = text("/metadata/namespace");
            let slash = if namespace.is_empty() { "" } else { "/" };
            format!(
                "apply {} {namespace}{slash}{}",
                text("/kind"),
                text("/metadata/name")
            )
        }
        Action::Delete { object } => format!("delete {object}"),
        Action::Patch { object, patch } => format!("patch {object}: {}", fields(patch)),
        Action::Restore { object } => format!("restore {object}"),
        Action::Readdress { workload, to, .. } => format!("point {workload} at {to}"),
        Action::Mirror { original, copy } => {
            let namespace = copy["metadata"]["namespace"].as_str().unwrap_or_default();
            format!("copy {original} to {namespace}")
        }
        Action::DeleteCopy { name, to, .. } => format!("delete the copy of Secret {name} in {to}"),
        Action::CopySecret { name, from, to } => {
            format!("copy Secret {name} from {from} to {to} (its content is not shown)")
        }
        Action::Restart { workload, mark, .. } => match mark {
            Some(_) => format!("restart {workload}"),
            None => format!("restart {workload} as it was"),
        },
        Action::Evict { workload, .. } => format!("evict the old pods of {workload}, one by one"),
    }
}

/// The leaves that a patch names, at most three.
fn fields(patch: &serde_json::Value) -> String {
    let mut found = Vec::new();
    leaves(patch, String::new(), &mut found);
    let more = if found.len() > 3 { ", …" } else { "" };
    found.truncate(3);
    format!("{}{more}", found.join(", "))
}

fn leaves(value: &serde_json::Value, path: String, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                leaves(field, format!("{path}{dot}{key}"), found);
            }
        }
        serde_json::Value::Null => found.push(format!("{path} removed")),
        serde_json::Value::String(text) if text.len() <= 40 => found.push(format!("{path}={text}")),
        serde_json::Value::Number(number) => found.push(format!("{path}={number}")),
        _ => found.push(path),
    }
}

fn phase_title(phase: Phase) -> &'static str {
    match phase {
        Phase::Prepare => "Prepare: nothing that anybody uses is changed",
        Phase::SideBySide => "Side by side: workloads go to the new control plane",
        Phase::Switch => "Switch: the old control plane steps back",
        Phase::HandOver => "Hand over: routes change owners",
        Phase::Finish => "Finish: the old control plane goes",
    }
}

/// How far a migration is, in a line.
fn standing(plan: &Plan, journal: &Journal) -> String {
    let pending = |step: &&Step| journal.state(&step.id) == State::Pending;
    match (journal.has_ended(), journal.back) {
        (true, true) => "Taken back: everything is as it was".to_owned(),
        (true, false) => "Done".to_owned(),
        (false, true) => {
            let next = plan.steps.iter().rev().find(|step| !pending(step));
            let next = next.map_or("none", |step| step.id.as_str());
            format!("Being taken back; next: {next}")
        }
        (false, false) => {
            let done = |step: &&Step| journal.state(&step.id) == State::Done;
            let next = plan.steps.iter().find(|step| !done(step));
            let next = next.map_or("none", |step| step.id.as_str());
            format!("Under way; next: {next}")
        }
    }
}

fn headline(plan: &Plan) -> String {
    let place = |place: &crate::plan::Place| {
        let version = place.version.as_deref().unwrap_or("unknown version");
        format!(
            "{} (revision {}, {version})",
            place.namespace, place.revision
        )
    };
    let to = plan
        .to
        .as_ref()
        .map_or_else(|| "two charms, in place".to_owned(), place);
    format!("{} -> {to}", place(&plan.from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Place, Strategy};

    #[test]
    fn a_report_says_how_far_a_migration_is() {
        let place = Place {
            namespace: "lab".to_owned(),
            revision: "default".to_owned(),
            version: None,
        };
        let plan = Plan {
            id: "ab12".to_owned(),
            strategy: Strategy::Window,
            from: place,
            to: None,
            manager: "meshy".to_owned(),
            root: None,
            injected: Vec::new(),
            steps: ["one", "two"]
                .map(|id| Step::new(id, Phase::Prepare, "", ""))
                .to_vec(),
            notes: Vec::new(),
            by_hand: Vec::new(),
            backup: Vec::new(),
        };
        let check = |one: State, back: bool, ended: bool, expect: &str| {
            let journal = Journal {
                plan: "ab12".to_owned(),
                steps: [("one".to_owned(), one)].into(),
                back,
                ended,
                ..Journal::default()
            };
            assert_eq!(standing(&plan, &journal), expect);
        };
        check(State::Done, false, false, "Under way; next: two");
        check(State::Running, false, false, "Under way; next: one");
        check(State::Running, true, false, "Being taken back; next: one");
        check(State::Done, false, true, "Done");
        check(
            State::Pending,
            true,
            true,
            "Taken back: everything is as it was",
        );
    }
}
