//! config-get, is-leader, juju-log, state-*, resource-get and other tools about the unit itself.

use std::collections::BTreeMap;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::no_more;
use super::refused;
use super::usage;
use crate::agent::context::HookRun;
use crate::hook::Hook;
use crate::model::Level;
use crate::state::StorageSeen;

/// Limits of charm state: key and value, in bytes.
const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 64 << 10;

pub(super) fn config_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let Some(app) = run.state().applications.get(&run.app) else {
        return refused("application not found");
    };
    let all = call.line.is("a");
    let value_of = |name: &str| {
        let option = app.charm.options.get(name)?;
        Some(app.config.get(name).unwrap_or(&option.default).clone())
    };
    match call.line.args.as_slice() {
        [_] if all => usage("cannot use argument --all together with key"),
        [key] => call.print(&value_of(key).unwrap_or_default()),
        [] => {
            let values: Map<String, Value> = app
                .charm
                .options
                .keys()
                .filter_map(|name| Some((name.clone(), value_of(name)?)))
                .filter(|(_, v)| all || !v.is_null())
                .collect();
            call.print(&Value::Object(values))
        }
        [_, rest @ ..] => no_more(rest).map(|()| String::new()),
    }
}

pub(super) fn is_leader(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    call.print(&json!(run.is_leader()))
}

pub(super) fn juju_log(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    if call.line.args.is_empty() {
        return usage("no message specified");
    }
    let mut text = call.line.args.join(" ");
    if let Some(r) = run.hook.relation() {
        text = format!("{}:{}: {text}", r.endpoint, r.id);
    }
    let logger = format!("unit.{}.juju-log", run.unit);
    let unit = run.unit.clone();
    let level = match call.line.get("l") {
        None if call.line.is("debug") => Level::Debug,
        None => Level::Info,
        Some(word) => Level::parse(word).unwrap_or_else(|| {
            let warning = format!("Specified log level of {word:?} is not valid");
            run.model.log(&unit, Level::Warning, &logger, &warning);
            Level::Info
        }),
    };
    run.model.log(&unit, level, &logger, &text);
    Ok(String::new())
}

pub(super) fn reboot(_: &mut HookRun<'_>, _: &Call<'_>) -> Answer {
    refused("juju-reboot is not supported on a Kubernetes model")
}

pub(super) fn credential_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    if !run
        .state()
        .applications
        .get(&run.app)
        .is_some_and(|app| app.trusted)
    {
        return refused("permission denied");
    }
    let app = run.app.clone();
    let credentials = match run.model.credentials(&app) {
        Ok(Some(credentials)) => credentials,
        Ok(None) => return refused("cloud credentials not found"),
        Err(e) => return refused(e.to_string()),
    };
    let host = if credentials.host.contains(':') {
        format!("[{}]", credentials.host)
    } else {
        credentials.host
    };
    call.print(&json!({
        "type": "kubernetes",
        "name": "kubernetes",
        "endpoint": format!("https://{host}:{}", credentials.port),
        "credential": {"auth-type": "oauth2", "attrs": {"Token": credentials.token}},
        "cacertificates": [credentials.ca_crt],
    }))
}

pub(super) fn resource_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let name = match call.line.args.as_slice() {
        [] => return usage("missing resource name"),
        [name] => name.clone(),
        [_, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    match run.model.fetch_resource(&run.unit.clone(), &name) {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(e) => refused(format!("could not download resource: {e}")),
    }
}

pub(super) fn state_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let kept = kept(run);
    match call.line.args.as_slice() {
        // Agents of Juju 4 say of nothing that it is null.
        [] if kept.is_empty() && crate::at_least(&run.model.options.juju_version, 4) => {
            call.print(&Value::Null)
        }
        [] => call.print(&json!(kept)),
        [key] if key == "-" => call.print(&json!(kept)),
        [key] => match kept.get(key) {
            Some(value) => call.print(&json!(value)),
            None if call.line.is("strict") => refused(format!("{key:?} not found")),
            None => call.print(&json!("")),
        },
        [_, rest @ ..] => no_more(rest).map(|()| String::new()),
    }
}

pub(super) fn state_set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let settings = call.settings(&call.line.args)?;
    for (key, value) in &settings {
        if key.len() > MAX_KEY {
            return refused(format!(
                "max allowed key length ({MAX_KEY}) exceeded: {key:?}"
            ));
        }
        if value.len() > MAX_VALUE {
            return refused(format!(
                "max allowed value length ({MAX_VALUE}) exceeded for key {key:?}"
            ));
        }
    }
    let mut all = kept(run);
    all.extend(settings);
    run.pending.charm_state = Some(all);
    Ok(String::new())
}

pub(super) fn state_delete(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [key] = call.line.args.as_slice() else {
        return usage("no key specified");
    };
    let mut all = kept(run);
    all.remove(key);
    run.pending.charm_state = Some(all);
    Ok(String::new())
}

/// Charm state as this hook sees it.
fn kept(run: &HookRun<'_>) -> BTreeMap<String, String> {
    match &run.pending.charm_state {
        Some(kept) => kept.clone(),
        None => run
            .state()
            .unit(&run.unit)
            .map(|u| u.charm_state.clone())
            .unwrap_or_default(),
    }
}

pub(super) fn storage_list(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let wanted = call.line.args.first();
    let ids: Vec<&String> = storage(run)
        .into_iter()
        .flat_map(|storage| storage.keys())
        .filter(|id| wanted.is_none_or(|name| id.split('/').next() == Some(name)))
        .collect();
    call.print(&json!(ids))
}

pub(super) fn storage_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let about = match &run.hook {
        Hook::Told(told) => told.vars.get("JUJU_STORAGE_ID").cloned(),
        _ => None,
    };
    let Some(id) = call.line.get("s").map(ToOwned::to_owned).or(about) else {
        return usage("no storage instance specified");
    };
    let Some(known) = storage(run).and_then(|storage| storage.get(&id)) else {
        return usage(format!(
            "invalid value {id:?} for option -s: storage not found"
        ));
    };
    let known = json!({"kind": known.kind, "location": known.location});
    match call.line.args.first() {
        Some(key) => call.print(&known[key.as_str()]),
        None => call.print(&known),
    }
}

fn storage<'a>(run: &'a HookRun<'_>) -> Option<&'a BTreeMap<String, StorageSeen>> {
    Some(&run.state().unit(&run.unit)?.uniter.storage)
}

pub(super) fn storage_add(_: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    match call.line.args.first() {
        None => usage("storage add requires a storage directive"),
        Some(name) => refused(format!("storage {name:?} not found")),
    }
}
