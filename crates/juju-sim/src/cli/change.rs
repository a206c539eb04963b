//! Commands that change the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Failure;
use super::Session;
use super::arguments;
use super::document;
use super::fail;
use super::inspect::scalar;
use super::pairs;
use super::usage;
use crate::Databag;
use crate::DeployRequest;
use crate::RefreshRequest;
use crate::flags::Parsed;

pub(super) fn deploy(session: &Session, line: &Parsed) -> Answer {
    let (charm, app) = match line.args.as_slice() {
        [charm] => (charm, None),
        [charm, app] => (charm, Some(app.clone())),
        _ => return usage("usage: juju deploy ./CHARM [APP]"),
    };
    if !charm.starts_with("./") && !charm.starts_with('/') && !charm.starts_with("../") {
        return usage(format!(
            "only local charms can be deployed; write the path as ./{charm} or from the root"
        ));
    }
    let units = number(line, "n")?.unwrap_or(1);
    let mut model = session.open(line)?;
    let mut request = DeployRequest::new(charm);
    request.config = settings(line, app.as_deref())?;
    request.app = app;
    request.resources = pairs(line.all("resource"))?;
    request.trust = line.is("trust");
    request.units = units;
    let name = model.deploy(&request)?;
    Ok(format!(
        "Deploying {name:?} from local charm, {units} unit(s)\n"
    ))
}

pub(super) fn refresh(session: &Session, line: &Parsed) -> Answer {
    let [app] = arguments(line, "refresh APP --path ./CHARM")?;
    let request = RefreshRequest {
        charm: line.get("path").map(Into::into),
        config: settings(line, Some(app))?,
        resources: pairs(line.all("resource"))?,
        force_units: line.is("force-units"),
    };
    if request.charm.is_none() && request.resources.is_empty() && request.config.is_empty() {
        return usage("a local charm is refreshed with --path ./CHARM");
    }
    let mut model = session.open(line)?;
    model.refresh(app, &request)?;
    if line.is("trust") {
        model.trust(app, true)?;
    }
    Ok(format!("Refreshed {app:?}\n"))
}

pub(super) fn attach_resource(session: &Session, line: &Parsed) -> Answer {
    let [app, resource] = arguments(line, "attach-resource APP NAME=PATH")?;
    let resources = pairs(std::iter::once(resource.as_str()))?;
    session.open(line)?.attach(app, &resources)?;
    Ok(String::new())
}

pub(super) fn integrate(session: &Session, line: &Parsed) -> Answer {
    let [a, b] = arguments(line, "integrate APP[:ENDPOINT] APP[:ENDPOINT]")?;
    session.open(line)?.integrate(a, b)?;
    Ok(String::new())
}

pub(super) fn remove_relation(session: &Session, line: &Parsed) -> Answer {
    let [a, b] = arguments(line, "remove-relation APP[:ENDPOINT] APP[:ENDPOINT]")?;
    session.open(line)?.remove_relation(a, b)?;
    Ok(String::new())
}

pub(super) fn config(session: &Session, line: &Parsed) -> Answer {
    let Some((app, rest)) = line.args.split_first() else {
        return usage("usage: juju config APP [KEY | KEY=VALUE...]");
    };
    let mut model = session.open(line)?;
    if let Some(names) = line.get("reset") {
        let names: Vec<String> = names.split(',').map(|n| n.trim().to_owned()).collect();
        model.reset_config(app, &names)?;
    }
    let mut values = match line.get("file") {
        None => BTreeMap::new(),
        Some(path) => config_file(path, Some(app))?,
    };
    if let [key] = rest
        && !key.contains('=')
    {
        let doc = model.config(app)?;
        let setting = doc["settings"]
            .get(key)
            .or_else(|| doc["application-config"].get(key));
        return match setting {
            None => fail(format!(
                "key {key:?} not found in {app:?} application config"
            )),
            Some(setting) => Ok(scalar(&setting["value"])),
        };
    }
    for (key, value) in pairs(rest.iter().map(String::as_str))? {
        values.insert(key, json!(value));
    }
    if values.is_empty() {
        if line.get("reset").is_some() {
            return Ok(String::new());
        }
        return document(line, &model.config(app)?);
    }
    model.set_config(app, &values)?;
    Ok(String::new())
}

pub(super) fn model_config(session: &Session, line: &Parsed) -> Answer {
    let mut model = session.open(line)?;
    match line.args.as_slice() {
        [] => document(line, &model.model_config()),
        [key] if !key.contains('=') => match model.model_config().get(key) {
            None => fail(format!(
                "key {key:?} not found in {:?} model config",
                model.name()
            )),
            Some(value) => Ok(scalar(value)),
        },
        many => {
            for (key, value) in pairs(many.iter().map(String::as_str))? {
                model.set_model_config(&key, &value)?;
            }
            Ok(String::new())
        }
    }
}

pub(super) fn add_unit(session: &Session, line: &Parsed) -> Answer {
    let [app] = arguments(line, "add-unit APP [-n N]")?;
    session
        .open(line)?
        .add_units(app, number(line, "n")?.unwrap_or(1))?;
    Ok(String::new())
}

pub(super) fn remove_unit(session: &Session, line: &Parsed) -> Answer {
    let [app] = arguments(line, "remove-unit APP --num-units N")?;
    if app.contains('/') {
        return usage(
            "on Kubernetes the units to go cannot be chosen: juju remove-unit APP --num-units N",
        );
    }
    let Some(count) = number(line, "num-units")? else {
        return usage("specify the number of units with --num-units");
    };
    session
        .open(line)?
        .remove_units(app, count, line.is("force"))?;
    Ok(String::new())
}

pub(super) fn remove_application(session: &Session, line: &Parsed) -> Answer {
    if line.args.is_empty() {
        return usage("usage: juju remove-application APP...");
    }
    let mut model = session.open(line)?;
    for app in &line.args {
        model.remove_application(app, line.is("force"))?;
    }
    let mut text = String::new();
    for app in &line.args {
        let _ = writeln!(text, "will remove application {app}");
    }
    Ok(text)
}

pub(super) fn trust(session: &Session, line: &Parsed) -> Answer {
    let [app] = arguments(line, "trust APP --scope=cluster")?;
    let mut model = session.open(line)?;
    match line.get("scope") {
        Some("cluster") => {}
        None if line.is("remove") => {}
        _ => {
            return usage(
                "\"--scope=cluster\" is needed: on Kubernetes trust reaches over the whole cluster",
            );
        }
    }
    model.trust(app, !line.is("remove"))?;
    Ok(String::new())
}

pub(super) fn resolve(session: &Session, line: &Parsed) -> Answer {
    let mut model = session.open(line)?;
    let units = if line.is("all") {
        model.failed_units()
    } else {
        line.args.clone()
    };
    if units.is_empty() && !line.is("all") {
        return usage("usage: juju resolve UNIT... [--no-retry]");
    }
    for unit in units {
        model.resolve(&unit, !line.is("no-retry"))?;
    }
    Ok(String::new())
}

pub(super) fn add_secret(session: &Session, line: &Parsed) -> Answer {
    let (name, content) = secret(line)?;
    Ok(session.open(line)?.add_secret(name, content)? + "\n")
}

pub(super) fn update_secret(session: &Session, line: &Parsed) -> Answer {
    let (name, content) = secret(line)?;
    session.open(line)?.update_secret(name, content)?;
    Ok(String::new())
}

pub(super) fn remove_secret(session: &Session, line: &Parsed) -> Answer {
    let [name] = arguments(line, "remove-secret NAME")?;
    session.open(line)?.remove_secret(name)?;
    Ok(String::new())
}

pub(super) fn grant_secret(session: &Session, line: &Parsed) -> Answer {
    grant(session, line, true)
}

pub(super) fn revoke_secret(session: &Session, line: &Parsed) -> Answer {
    grant(session, line, false)
}

fn grant(session: &Session, line: &Parsed, granted: bool) -> Answer {
    let [name, apps] = arguments(line, "grant-secret NAME APP[,APP...]")?;
    let apps: Vec<String> = apps.split(',').map(|a| a.trim().to_owned()).collect();
    session.open(line)?.grant_secret(name, &apps, granted)?;
    Ok(String::new())
}

/// Name and content of a user secret; `key#file=PATH` reads a file.
fn secret(line: &Parsed) -> Result<(&str, Databag), Failure> {
    let Some((name, rest)) = line.args.split_first() else {
        return usage("usage: juju add-secret NAME key=value...");
    };
    let mut content = Databag::new();
    if let Some(path) = line.get("file") {
        for (key, value) in config_file(path, None)? {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned);
            content.insert(key, text);
        }
    }
    for (key, value) in pairs(rest.iter().map(String::as_str))? {
        match key.strip_suffix("#file") {
            Some(key) => content.insert(key.to_owned(), read(&value)?),
            None => content.insert(key, value),
        };
    }
    Ok((name, content))
}

/// Values of `--config`: `key=value`, or a YAML file keyed by application.
fn settings(line: &Parsed, app: Option<&str>) -> Result<BTreeMap<String, Value>, Failure> {
    let mut values = BTreeMap::new();
    for given in line.all("config") {
        match given.split_once('=') {
            Some((key, text)) => {
                values.insert(key.to_owned(), json!(text));
            }
            None => values.extend(config_file(given, app)?),
        }
    }
    Ok(values)
}

/// A YAML map of values; one keyed by the application, or by a single other name, is opened first.
fn config_file(path: &str, app: Option<&str>) -> Result<BTreeMap<String, Value>, Failure> {
    let value = yaml::parse(&read(path)?).map_err(|e| Failure::Usage(format!("{path}: {e}")))?;
    let Value::Object(mut map) = value else {
        return usage(format!("{path}: expected a map of values"));
    };
    let key = app
        .filter(|app| map.contains_key(*app))
        .map(ToOwned::to_owned)
        .or_else(|| map.keys().next().filter(|_| map.len() == 1).cloned());
    if let Some(key) = key
        && let Some(Value::Object(inner)) = map.get_mut(&key)
    {
        map = std::mem::take(inner);
    }
    Ok(map.into_iter().collect())
}

fn read(path: &str) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|e| Failure::Usage(format!("cannot read {path}: {e}")))
}

fn number(line: &Parsed, flag: &str) -> Result<Option<u32>, Failure> {
    match line.get(flag).map(str::parse::<u32>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => usage(format!("--{flag} needs a number")),
    }
}
