//! offer, offers, remove-offer, consume, remove-saas.

use super::Answer;
use super::Session;
use super::arguments;
use super::document;
use super::usage;
use crate::flags::Parsed;

pub(super) fn offer(session: &Session, line: &Parsed) -> Answer {
    let (what, name) = match line.args.as_slice() {
        [what] => (what, None),
        [what, name] => (what, Some(name.as_str())),
        _ => return usage("usage: juju offer [MODEL.]APP:ENDPOINT[,ENDPOINT] [OFFER]"),
    };
    let (model, what) = match what.split_once('.') {
        Some((model, what)) => (Some(model), what),
        None => (None, what.as_str()),
    };
    let mut model = match model {
        Some(model) => session.open_named(model)?,
        None => session.open(line)?,
    };
    let url = model.offer(what, name)?;
    let (app, endpoints) = what.split_once(':').unwrap_or((what, ""));
    let endpoints = endpoints.replace(',', ", ");
    Ok(format!(
        "Application {app:?} endpoints [{endpoints}] available at {url:?}\n"
    ))
}

pub(super) fn offers(session: &Session, line: &Parsed) -> Answer {
    document(line, &session.open(line)?.offers())
}

pub(super) fn remove_offer(session: &Session, line: &Parsed) -> Answer {
    let [url] = arguments(line, "remove-offer [MODEL.]OFFER [--force]")?;
    let path = url.rsplit(['/', ':']).next().unwrap_or(url);
    let (mut model, name) = match path.split_once('.') {
        Some((model, name)) => (session.open_named(model)?, name),
        None => (session.open(line)?, path),
    };
    model.remove_offer(name, line.is("force"))?;
    Ok(String::new())
}

pub(super) fn consume(session: &Session, line: &Parsed) -> Answer {
    let (url, alias) = match line.args.as_slice() {
        [url] => (url, None),
        [url, alias] => (url, Some(alias.as_str())),
        _ => return usage("usage: juju consume [OWNER/]MODEL.OFFER [ALIAS]"),
    };
    let name = session.open(line)?.consume(url, alias)?;
    let path = url.rsplit(':').next().unwrap_or(url);
    let owned = if path.contains('/') {
        path.to_owned()
    } else {
        format!("admin/{path}")
    };
    Ok(format!("Added {owned} as {name}\n"))
}

pub(super) fn remove_saas(session: &Session, line: &Parsed) -> Answer {
    let [name] = arguments(line, "remove-saas NAME")?;
    session.open(line)?.remove_saas(name)?;
    Ok(String::new())
}
