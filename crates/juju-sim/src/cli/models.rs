//! add-model, models, switch, destroy-model.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::Answer;
use super::Failure;
use super::Session;
use super::arguments;
use super::document;
use super::fail;
use super::pairs;
use super::usage;
use crate::Model;
use crate::Options;
use crate::clock::SystemClock;
use crate::flags::Parsed;
use crate::model::whole_version;

pub(super) fn add(session: &Session, line: &Parsed) -> Answer {
    let [name] = arguments(line, "add-model NAME")?;
    let dir = session.model_dir(name)?;
    if dir.join("state.json").exists() {
        return fail(format!("model {name:?} already exists"));
    }
    if let Some(version) = line.get("juju") {
        whole_version(version)?;
    }
    let options = Options {
        model_name: name.clone(),
        ..session.options.clone()
    };
    let mut model = Model::open(
        &dir,
        Arc::clone(&session.cloud),
        Arc::new(SystemClock),
        options,
    )?;
    if let Some(version) = line.get("juju") {
        model.set_juju_version(version)?;
    }
    for (key, value) in pairs(line.all("config"))? {
        model.set_model_config(&key, &value)?;
    }
    if !line.is("no-switch") {
        select(session, name)?;
    }
    Ok(format!("Added '{name}' model\n"))
}

pub(super) fn switch(session: &Session, line: &Parsed) -> Answer {
    let [name] = arguments(line, "switch NAME")?;
    if !session.model_dir(name)?.join("state.json").exists() {
        return fail(format!("model {name:?} not found"));
    }
    select(session, name)?;
    Ok(format!("simulator -> simulator:{name}\n"))
}

pub(super) fn list(session: &Session, line: &Parsed) -> Answer {
    let names = names(&session.data.join("models")).map_err(|e| failed(&e))?;
    let models: Vec<_> = names
        .iter()
        .map(|n| json!({"name": n, "short-name": n, "type": "caas"}))
        .collect();
    document(line, &json!({"models": models}))
}

pub(super) fn destroy(session: &Session, line: &Parsed) -> Answer {
    let [name] = arguments(line, "destroy-model NAME --no-prompt")?;
    if !line.is("no-prompt") {
        return usage("add --no-prompt: this command does not ask");
    }
    let dir = session.model_dir(name)?;
    if !dir.join("state.json").exists() {
        return fail(format!("model {name:?} not found"));
    }
    let clock = Arc::new(SystemClock);
    let mut model = Model::open(
        &dir,
        Arc::clone(&session.cloud),
        clock,
        session.options.clone(),
    )?;
    // Charms get their chance to clean up; what an error holds back is removed by force.
    for force in [false, true] {
        for app in model.application_names() {
            model.remove_application(&app, force)?;
        }
        model.advance()?;
    }
    model.destroy()?;
    let current = session.data.join("current-model");
    if fs::read_to_string(&current).is_ok_and(|c| c.trim() == name) {
        fs::remove_file(&current).map_err(|e| failed(&e))?;
    }
    Ok(format!("Model '{name}' destroyed\n"))
}

fn select(session: &Session, name: &str) -> Result<(), Failure> {
    fs::write(session.data.join("current-model"), format!("{name}\n")).map_err(|e| failed(&e))
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    if dir.exists() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.path().join("state.json").exists() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

fn failed(error: &io::Error) -> Failure {
    Failure::Run {
        text: format!("cannot use the models' directory: {error}"),
        stdout: String::new(),
    }
}
