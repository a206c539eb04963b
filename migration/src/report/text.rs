//! Lines for a terminal.

use std::fmt::Write as _;

use super::{headline, phase_title, phrase, standing};
use crate::execute::{Journal, State};
use crate::plan::{Plan, Refusal};

/// Actions of one step that are shown.
const SHOWN: usize = 8;

/// The plan, and how far it is where there is a journal.
pub fn text(plan: &Plan, journal: Option<&Journal>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "Migration {}: {}", plan.id, headline(plan));
    let _ = writeln!(
        out,
        "Strategy: {:?}; {} steps",
        plan.strategy,
        plan.steps.len()
    );
    if let Some(journal) = journal {
        let _ = writeln!(out, "{}", standing(plan, journal));
    }
    if let Some(root) = &plan.root {
        let _ = writeln!(out, "Root of trust: sha256 {root}");
    }
    if let Some(step) = plan.point_of_no_return() {
        let _ = writeln!(out, "Can be taken back until: {}", step.id);
    }
    for note in &plan.notes {
        let _ = writeln!(out, "note: {note}");
    }
    for line in &plan.by_hand {
        let _ = writeln!(out, "by hand: {line}");
    }
    let mut phase = None;
    for (number, step) in plan.steps.iter().enumerate() {
        if phase != Some(step.phase) {
            phase = Some(step.phase);
            let _ = writeln!(out, "\n{}", phase_title(step.phase));
        }
        let state = match journal.map(|journal| journal.state(&step.id)) {
            None => "",
            Some(State::Pending) => "[ ] ",
            Some(State::Running) => "[~] ",
            Some(State::Done) => "[x] ",
        };
        let back = if step.forward_only {
            "  (no way back)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{:>3}. {state}{}: {}{back}",
            number + 1,
            step.id,
            step.title
        );
        for action in step.effect.iter().take(SHOWN) {
            let _ = writeln!(out, "       {}", phrase(action));
        }
        if step.effect.len() > SHOWN {
            let _ = writeln!(out, "       … and {} more", step.effect.len() - SHOWN);
        }
        for command in &step.commands {
            let _ = writeln!(out, "       $ {command}");
        }
    }
    out
}

/// Why there is no plan.
pub fn refusals(refusals: &[Refusal]) -> String {
    let mut out = String::from("Not migrated; nothing was written.\n");
    for Refusal { code, why, remedy } in refusals {
        let _ = writeln!(out, "{code}: {why}\n    {remedy}");
    }
    out
}
