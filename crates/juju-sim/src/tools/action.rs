//! action-get, action-set, action-fail, action-log.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::no_more;
use super::refused;
use super::usage;
use crate::agent::context::HookRun;
use crate::charm::actions::is_name;

/// Result keys the agent fills itself.
const RESERVED: [&str; 4] = ["stdout", "stdout-encoding", "stderr", "stderr-encoding"];

pub(super) fn get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let Some(params) = &run.params else {
        return refused("not running an action");
    };
    let whole = Value::Object(params.clone());
    let value = match call.line.args.as_slice() {
        [] => Some(&whole),
        [path] => path.split('.').try_fold(&whole, |at, key| at.get(key)),
        [_, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    call.print(value.unwrap_or(&Value::Null))
}

pub(super) fn set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let mut pairs = Vec::new();
    for arg in &call.line.args {
        let Some((path, value)) = arg.split_once('=') else {
            return usage(format!("argument {arg:?} must be of the form key...=value"));
        };
        let keys: Vec<&str> = path.split('.').collect();
        for key in &keys {
            if !is_name(key) {
                return usage(format!(
                    "key {key:?} must start and end with lowercase alphanumeric, and contain only \
                     lowercase alphanumeric and hyphens"
                ));
            }
        }
        if keys.len() == 1 && RESERVED.contains(&keys[0]) {
            return usage(format!("cannot set reserved action key {:?}", keys[0]));
        }
        pairs.push((keys, value));
    }
    if run.params.is_none() {
        return refused("not running an action");
    }
    for (keys, value) in pairs {
        nest(&mut run.said.results, &keys, value);
    }
    Ok(String::new())
}

/// Stores a value under a path; a plain value in the way is replaced.
fn nest(map: &mut Map<String, Value>, keys: &[&str], value: &str) {
    match keys {
        [] => {}
        [last] => {
            map.insert((*last).to_owned(), json!(value));
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

pub(super) fn fail(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    if run.params.is_none() {
        return refused("not running an action");
    }
    let message = call.line.args.join(" ");
    run.said.failed = Some(if message.is_empty() {
        "action failed without reason given, check action for errors".to_owned()
    } else {
        message
    });
    Ok(String::new())
}

pub(super) fn log(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    if call.line.args.is_empty() {
        return usage("no message specified");
    }
    if run.params.is_none() {
        return refused("not running an action");
    }
    let time = run
        .model
        .clock
        .now()
        .strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
    run.said
        .log
        .push(format!("{time} {}", call.line.args.join(" ")));
    Ok(String::new())
}
