//! One page: the diagram of before, during and after, and every step with its why, checks and undo.
//! No scripts, no fonts, no images from elsewhere: it may be mailed and kept.

use std::fmt::Write as _;

use super::{headline, phase_title, phrase, standing};
use crate::execute::{Journal, State};
use crate::plan::{Place, Plan, Step};

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b2733}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #cfd8e0}\
details{border:1px solid #cfd8e0;border-radius:6px;margin:.4rem 0;padding:.4rem .8rem}\
summary{cursor:pointer}code{background:#eef2f5;padding:.1em .3em;border-radius:3px}\
.done{border-left:5px solid #2c8a4b}.running{border-left:5px solid #d08a12}\
.final{border-right:5px solid #b3322b}.why{color:#51606e}.hand{background:#fff6e0}\
svg{width:100%;height:auto}text{font:13px system-ui,sans-serif;fill:#1b2733}";

/// The page.
pub fn html(plan: &Plan, journal: Option<&Journal>) -> String {
    let mut out = String::new();
    let title = format!("Istio migration {}", plan.id);
    let _ = write!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\
         <style>{STYLE}</style><h1>{0}</h1><p>{1}</p>",
        escape(&title),
        escape(&headline(plan)),
    );
    if let Some(journal) = journal {
        let _ = write!(out, "<p>{}</p>", escape(&standing(plan, journal)));
    }
    out.push_str(&diagram(plan));
    if let Some(root) = &plan.root {
        let _ = write!(
            out,
            "<p>Root of trust: sha256 <code>{}</code></p>",
            escape(root)
        );
    }
    if let Some(step) = plan.point_of_no_return() {
        let _ = write!(
            out,
            "<p>Every step before <code>{}</code> can be taken back.</p>",
            escape(&step.id)
        );
    }
    list(&mut out, "To know", &plan.notes);
    list(&mut out, "To restart by hand", &plan.by_hand);
    let mut phase = None;
    for (number, step) in plan.steps.iter().enumerate() {
        if phase != Some(step.phase) {
            phase = Some(step.phase);
            let _ = write!(out, "<h2>{}</h2>", escape(phase_title(step.phase)));
        }
        let state = journal.map_or(State::Pending, |journal| journal.state(&step.id));
        write_step(&mut out, number + 1, step, state);
    }
    out.push_str("</html>\n");
    out
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = write!(out, "<h2>{}</h2><ul>", escape(title));
    for line in lines {
        let _ = write!(out, "<li>{}</li>", escape(line));
    }
    out.push_str("</ul>");
}

fn write_step(out: &mut String, number: usize, step: &Step, state: State) {
    let mut class = String::new();
    class.push_str(match state {
        State::Pending => "",
        State::Running => "running",
        State::Done => "done",
    });
    if step.forward_only {
        class.push_str(" final");
    }
    let _ = write!(
        out,
        "<details class=\"{class}\"><summary>{number}. <b>{}</b>: {}</summary><p class=\"why\">{}</p>",
        escape(&step.id),
        escape(&step.title),
        escape(&step.why),
    );
    let _ = write!(out, "<ul>");
    for action in &step.effect {
        let _ = write!(out, "<li>{}</li>", escape(&phrase(action)));
    }
    for command in &step.commands {
        let _ = write!(
            out,
            "<li class=\"hand\"><code>{}</code></li>",
            escape(command)
        );
    }
    let _ = write!(out, "</ul>");
    if step.forward_only {
        let _ = write!(out, "<p>No way back from here on.</p>");
    } else if !step.undo.is_empty() {
        let _ = write!(out, "<p>Taken back by:</p><ul>");
        for action in &step.undo {
            let _ = write!(out, "<li>{}</li>", escape(&phrase(action)));
        }
        let _ = write!(out, "</ul>");
    }
    out.push_str("</details>");
}

/// Three pictures: who serves whom before, during and after.
fn diagram(plan: &Plan) -> String {
    let mut out = String::from(
        "<svg viewBox=\"0 0 900 210\" role=\"img\" aria-label=\"before, during and after\">",
    );
    let name = |place: &Place| (place.namespace.clone(), place.revision.clone());
    let old = name(&plan.from);
    let new = plan.to.as_ref().map_or_else(|| old.clone(), name);
    let moves = plan.to.is_some();
    let pictures = [
        ("Before", vec![&old]),
        ("During", if moves { vec![&old, &new] } else { vec![&old] }),
        ("After", vec![&new]),
    ];
    for (index, (title, planes)) in pictures.iter().enumerate() {
        let left = index * 300 + 10;
        let _ = write!(
            out,
            "<text x=\"{left}\" y=\"20\" font-weight=\"bold\">{title}</text>"
        );
        let below = 150;
        for (number, plane) in planes.iter().enumerate() {
            let (namespace, revision) = plane;
            // A longer name would stand out of its box.
            let fit = if namespace.len() > 16 {
                " textLength=\"114\" lengthAdjust=\"spacingAndGlyphs\""
            } else {
                ""
            };
            let x = left + number * 140;
            let _ = write!(
                out,
                "<rect x=\"{x}\" y=\"35\" width=\"130\" height=\"46\" rx=\"6\" fill=\"{fill}\" \
                 stroke=\"#51606e\"/><text x=\"{from}\" y=\"54\"{fit}>{label}</text>\
                 <text x=\"{from}\" y=\"72\">istiod {revision}</text>\
                 <line x1=\"{middle}\" y1=\"81\" x2=\"{middle}\" y2=\"{below}\" stroke=\"#51606e\" \
                 stroke-dasharray=\"4 3\"/>",
                fill = if **plane == old { "#f4dfb8" } else { "#cfe8d5" },
                from = x + 8,
                label = escape(namespace),
                revision = escape(revision),
                middle = x + 65,
            );
        }
        let _ = write!(
            out,
            "<rect x=\"{left}\" y=\"{below}\" width=\"270\" height=\"40\" rx=\"6\" fill=\"#e6edf5\" stroke=\"#51606e\"/>\
             <text x=\"{}\" y=\"175\">gateways and sidecars, one root of trust</text>",
            left + 10,
        );
    }
    out.push_str("</svg>");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
