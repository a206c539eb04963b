//! Commands that only look: status, show-*, debug-log, secrets, version.

use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Session;
use super::arguments;
use super::document;
use super::fail;
use super::usage;
use crate::flags::Parsed;
use crate::model::Level;
use crate::model::tag;

pub(super) fn status(session: &Session, line: &Parsed) -> Answer {
    let model = session.open(line)?;
    match line.get("format") {
        None | Some("tabular") => Ok(model.status_text(line.is("relations"))),
        _ => document(line, &model.status()),
    }
}

pub(super) fn show_unit(session: &Session, line: &Parsed) -> Answer {
    let [unit] = arguments(line, "show-unit UNIT")?;
    let model = session.open(line)?;
    let unit = model.unit_name(unit)?;
    document(line, &model.show_unit(&unit)?)
}

pub(super) fn show_application(session: &Session, line: &Parsed) -> Answer {
    let [app] = arguments(line, "show-application APP")?;
    let model = session.open(line)?;
    let status = model.status();
    let Some(entry) = status["applications"].get(app) else {
        return fail(format!("application {app:?} not found"));
    };
    let body = json!({
        "charm": entry["charm-name"],
        "base": format!("ubuntu@{}", entry["base"]["channel"].as_str().unwrap_or_default()),
        "principal": true,
        "exposed": false,
        "remote": false,
        "life": entry.get("life").cloned().unwrap_or_else(|| json!("alive")),
        "endpoint-bindings": entry["endpoint-bindings"],
    });
    document(line, &json!({app: body}))
}

pub(super) fn show_model(session: &Session, line: &Parsed) -> Answer {
    let model = session.open(line)?;
    let status = model.status();
    let body = json!({
        "name": format!("admin/{}", model.name()),
        "short-name": model.name(),
        "model-uuid": model.uuid(),
        "model-type": "caas",
        "controller-name": "simulator",
        "cloud": "kubernetes",
        "type": "kubernetes",
        "life": "alive",
        "status": {"current": "available"},
        "agent-version": status["model"]["version"],
    });
    document(line, &json!({model.name(): body}))
}

pub(super) fn secrets(session: &Session, line: &Parsed) -> Answer {
    document(line, &session.open(line)?.secrets())
}

pub(super) fn version(session: &Session, line: &Parsed) -> Answer {
    match line.get("format") {
        Some("json") => document(line, &json!(session.options.juju_version)),
        _ => Ok(format!("{}\n", session.options.juju_version)),
    }
}

pub(super) fn debug_log(session: &Session, line: &Parsed) -> Answer {
    let limit = match line.get("n").map(str::parse::<usize>) {
        None | Some(Ok(0)) => usize::MAX,
        Some(Ok(limit)) => limit,
        Some(Err(_)) => return usage("--limit needs a number of lines"),
    };
    let level = match line.get("l") {
        None => Level::Trace,
        Some(word) => match Level::parse(word) {
            Some(level) => level,
            None => {
                return usage(format!(
                    "level value {word:?} is not one of TRACE, DEBUG, INFO, WARNING, ERROR"
                ));
            }
        },
    };
    let text = session.open(line)?.debug_log()?;
    let named = |flag: &str| line.all(flag).map(entity).collect::<Vec<_>>();
    let (include, exclude) = (named("i"), named("x"));
    // A message of several lines stays with its first one.
    let mut entries: Vec<(bool, String)> = Vec::new();
    for row in text.lines() {
        match (head(row), entries.last_mut()) {
            (Some((unit, found)), _) => {
                let wanted = (include.is_empty() || include.iter().any(|e| matches(e, unit)))
                    && !exclude.iter().any(|e| matches(e, unit))
                    && found >= level;
                entries.push((wanted, format!("{row}\n")));
            }
            (None, Some((_, entry))) => {
                entry.push_str(row);
                entry.push('\n');
            }
            (None, None) => {}
        }
    }
    let wanted: Vec<String> = entries
        .into_iter()
        .filter(|(w, _)| *w)
        .map(|(_, e)| e)
        .collect();
    Ok(wanted[wanted.len().saturating_sub(limit)..].concat())
}

/// The entity and level of a line that starts an entry.
fn head(row: &str) -> Option<(&str, Level)> {
    let (unit, rest) = row.split_once(": ")?;
    let mut words = rest.split(' ');
    let time = words.next()?;
    let clock = time.len() == 8 && time.bytes().all(|c| c.is_ascii_digit() || c == b':');
    let level = Level::parse(words.next()?)?;
    (clock && !unit.contains(' ')).then_some((unit, level))
}

/// `app/0`, `unit-app-0` and `app` all name log entities.
fn entity(text: &str) -> String {
    if text.contains('/') {
        tag(text)
    } else {
        text.to_owned()
    }
}

fn matches(entity: &str, unit: &str) -> bool {
    entity == unit
        || unit
            .strip_prefix("unit-")
            .and_then(|u| u.rsplit_once('-'))
            .is_some_and(|(app, _)| app == entity)
}

/// Text of a value for `juju config APP KEY` and the like.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Null => String::new(),
        other => format!("{}\n", crate::gojson::json(other)),
    }
}
