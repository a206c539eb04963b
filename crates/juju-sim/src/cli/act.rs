//! run and exec.

use std::fmt::Write as _;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Failure;
use super::Session;
use super::usage;
use crate::TaskResult;
use crate::flags::Parsed;
use crate::gojson;
use crate::model::tag;

pub(super) fn run(session: &Session, line: &Parsed) -> Answer {
    let [unit, action, pairs @ ..] = line.args.as_slice() else {
        return usage("usage: juju run UNIT ACTION [KEY=VALUE...]");
    };
    if action.contains('/') {
        return usage("this simulator runs an action on one unit at a time");
    }
    let mut params = match line.get("params") {
        None => Map::new(),
        Some(path) => from_file(path)?,
    };
    for pair in pairs {
        let Some((path, text)) = pair.split_once('=') else {
            return usage(format!(
                "argument {pair:?} must be of the form key.key.key...=value"
            ));
        };
        let value = if line.is("string-args") || text.is_empty() {
            json!(text)
        } else {
            yaml::parse(text).unwrap_or_else(|_| json!(text))
        };
        let keys: Vec<&str> = path.split('.').collect();
        nest(&mut params, &keys, value);
    }
    let mut model = session.open_as_is(&session.named(line)?)?;
    answer(line, &model.run(unit, action, params)?)
}

pub(super) fn exec(session: &Session, line: &Parsed) -> Answer {
    let Some(unit) = line.get("u") else {
        return usage("usage: juju exec --unit UNIT -- COMMAND");
    };
    if line.args.is_empty() {
        return usage("no commands specified");
    }
    let mut model = session.open_as_is(&session.named(line)?)?;
    answer(line, &model.exec(unit, &line.args.join(" "))?)
}

/// What real Juju does on its own every few minutes, brought forward for whoever is waiting.
pub(super) fn update_status(session: &Session, line: &Parsed) -> Answer {
    if line.args.is_empty() {
        return usage("usage: juju update-status APP...");
    }
    let mut model = session.open_as_is(&session.named(line)?)?;
    for app in &line.args {
        model.fire_update_status(app)?;
    }
    model.advance()?;
    Ok(String::new())
}

fn answer(line: &Parsed, result: &TaskResult) -> Answer {
    let stdout = match line.get("format") {
        Some("json") => gojson::json(&json!({result.unit.clone(): result.json()})) + "\n",
        Some("yaml") => gojson::yaml(&json!({result.unit.clone(): result.json()})),
        _ => text(result),
    };
    if result.status == "completed" && failed_code(result) == 0 {
        return Ok(stdout);
    }
    let mut text = format!("the following task failed:\n - id \"{}\"", result.id);
    if !result.message.is_empty() {
        let _ = write!(text, " with message {:?}", result.message);
    }
    let code = failed_code(result);
    if code != 0 {
        let _ = write!(text, " with return code {code}");
    }
    let _ = write!(text, "\n\nUse 'juju show-task' to inspect the failure");
    Err(Failure::Run { text, stdout })
}

fn failed_code(result: &TaskResult) -> i64 {
    result
        .results
        .get("return-code")
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// The text a terminal shows: progress, then the results as YAML without the return code.
fn text(result: &TaskResult) -> String {
    let mut text = format!(
        "Running operation {} with 1 task\n  - task {} on {}\n\nWaiting for task {}...\n",
        result.id - 1,
        result.id,
        tag(&result.unit),
        result.id
    );
    for entry in &result.log {
        text.push_str(entry);
        text.push('\n');
    }
    let mut shown = result.results.clone();
    shown.remove("return-code");
    if !result.message.is_empty() {
        let _ = writeln!(text, "Action id {} failed: {}", result.id, result.message);
    }
    if !shown.is_empty() {
        text.push_str(&gojson::yaml(&Value::Object(shown)));
    }
    text.push('\n');
    text
}

fn from_file(path: &str) -> Result<Map<String, Value>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::Usage(format!("cannot read {path}: {e}")))?;
    match yaml::parse(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => usage(format!("{path}: expected a map of parameters")),
        Err(e) => usage(format!("{path}: {e}")),
    }
}

fn nest(map: &mut Map<String, Value>, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [last] => {
            map.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = map.entry((*first).to_owned()).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Value::Object(inner) = inner {
                nest(inner, rest, value);
            }
        }
    }
}
