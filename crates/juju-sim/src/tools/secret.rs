//! The secret tools.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::Failure;
use super::no_more;
use super::refused;
use super::relation::relation_id;
use super::usage;
use crate::agent::context::HookRun;
use crate::model::REMOTE_OWNER;
use crate::model::timers;
use crate::state::Consumer;
use crate::state::Databag;
use crate::state::Expiry;
use crate::state::Secret;

/// Greatest size of all values of a secret, in bytes.
const MAX_CONTENT: usize = 1_000_000;

pub(super) fn add(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let content = content(call, &call.line.args)?;
    if content.is_empty() {
        return usage("missing secret value or filename");
    }
    let owner = match call.line.get("owner") {
        None | Some("application") => format!("application:{}", run.app),
        Some("unit") => format!("unit:{}", run.unit),
        Some(other) => return usage(format!("secret owner {other:?} not valid")),
    };
    if owner.starts_with("application:") && !run.is_leader() {
        return refused("this unit is not the leader");
    }
    let label = call.line.get("label").unwrap_or_default();
    if !label.is_empty()
        && run
            .secrets()
            .values()
            .any(|s| s.owner == owner && s.label == label)
    {
        return refused(format!("secret with label {label:?} already exists"));
    }
    let mut secret = Secret {
        owner,
        label: String::new(),
        description: String::new(),
        rotate: "never".into(),
        rotates: None,
        expires: None,
        revisions: BTreeMap::from([(1, content)]),
        grants: BTreeSet::new(),
        consumers: BTreeMap::new(),
        tracked_elsewhere: BTreeMap::new(),
        obsolete: BTreeSet::new(),
    };
    describe(&mut secret, call, run.model.clock.now())?;
    run.pending.app_secrets |= secret.owner.starts_with("application:");
    let id = run.model.secret_id();
    run.secrets_mut().insert(id.clone(), secret);
    Ok(format!("secret:{id}\n"))
}

pub(super) fn set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [id, pairs @ ..] = call.line.args.as_slice() else {
        return usage("missing secret URI");
    };
    let id = owned(run, id)?;
    let content = content(call, pairs)?;
    let now = run.model.clock.now();
    let stored = run.state().secrets.get(&id).map(|s| s.expires.clone());
    let Some(secret) = run.secrets_mut().get_mut(&id) else {
        return not_found(&id);
    };
    describe(secret, call, now)?;
    if !content.is_empty() && secret.revisions.get(&secret.latest()) != Some(&content) {
        secret.revisions.insert(secret.latest() + 1, content);
    }
    // An expiry that this hook gave is its last revision's.
    let latest = secret.latest();
    if stored.as_ref() != Some(&secret.expires)
        && let Some(expires) = &mut secret.expires
    {
        expires.revision = latest;
    }
    Ok(String::new())
}

pub(super) fn get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let (peek, refresh) = (call.line.is("peek"), call.line.is("refresh"));
    if peek && refresh {
        return usage("specify one of --peek or --refresh but not both");
    }
    let (id, key) = match call.line.args.as_slice() {
        [] => (None, None),
        [id] => (Some(bare(id)), None),
        [id, key] => (Some(bare(id)), Some(key)),
        [_, _, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    let label = call.line.get("label");
    let id = match (id, label) {
        (None, None) => return usage("require either a secret URI or label"),
        (Some(id), _) => id,
        (None, Some(label)) => by_label(run, label)?,
    };
    let unit = run.unit.clone();
    let Some(secret) = run.secrets().get(&id) else {
        return not_found(&id);
    };
    let owns = owns(run, secret);
    if !owns && !secret.grants.contains(&run.app) && !secret.grants.contains(&unit) {
        return refused("permission denied");
    }
    let latest = secret.latest();
    let known = secret.consumers.get(&unit).cloned();
    let tracked = match &known {
        Some(consumer) if !refresh && consumer.tracked != 0 => consumer.tracked,
        _ => latest,
    };
    let shown = if peek { latest } else { tracked };
    let Some(content) = secret.revisions.get(&shown).cloned() else {
        return not_found(&id);
    };
    let consumer = Consumer {
        label: match (label, known) {
            (Some(label), _) if !owns => label.to_owned(),
            (_, Some(known)) => known.label,
            (_, None) => String::new(),
        },
        tracked: if peek { tracked.min(latest) } else { tracked },
        notified: latest,
    };
    // Tracking is immediate: it survives a hook that fails.
    if !owns {
        for secrets in [
            Some(&mut run.model.state.secrets),
            run.pending.secrets.as_mut(),
        ] {
            if let Some(secret) = secrets.and_then(|all| all.get_mut(&id)) {
                secret.consumers.insert(unit.clone(), consumer.clone());
            }
        }
    } else if let Some(secret) = run.secrets_mut().get_mut(&id) {
        secret.consumers.insert(unit, consumer);
    }
    match key {
        Some(key) => match content.get(key.as_str()) {
            Some(value) => call.print(&json!(value)),
            None => refused(format!("secret key {key:?} not found")),
        },
        None => call.print(&json!(content)),
    }
}

pub(super) fn info(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let id = match (call.line.args.as_slice(), call.line.get("label")) {
        ([], None) => return usage("require either a secret URI or label"),
        ([_], Some(_)) => return usage("specify either a secret URI or label but not both"),
        ([id], None) => bare(id),
        ([], Some(label)) => by_label(run, label)?,
        ([_, rest @ ..], _) => return no_more(rest).map(|()| String::new()),
    };
    let Some(secret) = run.secrets().get(&id).filter(|s| owns(run, s)) else {
        return not_found(&id);
    };
    let mut body = Map::new();
    body.insert("revision".into(), json!(secret.latest()));
    body.insert("label".into(), json!(secret.label));
    body.insert(
        "owner".into(),
        json!(secret.owner.split(':').next().unwrap_or_default()),
    );
    body.insert("rotation".into(), json!(secret.rotate));
    if !secret.description.is_empty() {
        body.insert("description".into(), json!(secret.description));
    }
    if let Some(expires) = &secret.expires {
        body.insert("expiry".into(), json!(expires.at.to_string()));
    }
    if let Some(rotates) = secret.rotates {
        body.insert("rotates".into(), json!(rotates.to_string()));
    }
    call.print(&json!({id: body}))
}

pub(super) fn ids(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let all = run
        .secrets()
        .iter()
        .filter(|(_, s)| owns(run, s))
        .map(|(id, _)| id);
    let listed: Vec<&String> = all.collect();
    call.print(&json!(listed))
}

pub(super) fn grant(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [id] = call.line.args.as_slice() else {
        return usage("missing secret URI");
    };
    let id = owned(run, id)?;
    let Some(relation) = relation_id(run, call)? else {
        return usage("missing relation id");
    };
    let side = run
        .state()
        .relations
        .get(&relation)
        .and_then(|r| r.remote(&run.app));
    let Some(remote) = side.map(|s| s.app.clone()) else {
        return refused("relation not found");
    };
    let grantee = call.line.get("unit").map_or(remote, ToOwned::to_owned);
    if let Some(secret) = run.secrets_mut().get_mut(&id) {
        secret.grants.insert(grantee);
    }
    Ok(String::new())
}

pub(super) fn revoke(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [id] = call.line.args.as_slice() else {
        return usage("missing secret URI");
    };
    let id = owned(run, id)?;
    let of_relation = match relation_id(run, call)? {
        Some(relation) if call.line.get("r").is_some() => {
            let side = run
                .state()
                .relations
                .get(&relation)
                .and_then(|r| r.remote(&run.app));
            side.map(|s| s.app.clone())
        }
        _ => None,
    };
    let line = &call.line;
    let named = line
        .get("unit")
        .or_else(|| line.get("app"))
        .map(ToOwned::to_owned)
        .or(of_relation);
    let Some(grantee) = named else {
        return usage("specify one of --relation, --app or --unit");
    };
    if let Some(secret) = run.secrets_mut().get_mut(&id) {
        secret.grants.remove(&grantee);
    }
    Ok(String::new())
}

pub(super) fn remove(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let [id] = call.line.args.as_slice() else {
        return usage("missing secret URI");
    };
    let id = owned(run, id)?;
    let revision = match call.line.get("revision").map(str::parse::<u32>) {
        None => None,
        Some(Ok(revision)) => Some(revision),
        Some(Err(_)) => return usage("revision must be a positive integer"),
    };
    let secrets = run.secrets_mut();
    if let (Some(revision), Some(secret)) = (revision, secrets.get_mut(&id)) {
        secret.revisions.remove(&revision);
        if !secret.revisions.is_empty() {
            return Ok(String::new());
        }
    }
    secrets.remove(&id);
    Ok(String::new())
}

fn owns(run: &HookRun<'_>, secret: &Secret) -> bool {
    secret.owner == format!("application:{}", run.app)
        || secret.owner == format!("unit:{}", run.unit)
}

/// The bare id of a secret that this unit may change, and is about to.
fn owned(run: &mut HookRun<'_>, id: &str) -> Result<String, Failure> {
    let id = bare(id);
    let Some(secret) = run.secrets().get(&id) else {
        return not_found(&id);
    };
    if !owns(run, secret) {
        return refused("permission denied");
    }
    let of_app = secret.owner.starts_with("application:");
    if of_app && !run.is_leader() {
        return refused("this unit is not the leader");
    }
    run.pending.app_secrets |= of_app;
    Ok(id)
}

fn by_label(run: &HookRun<'_>, label: &str) -> Result<String, Failure> {
    run.secrets()
        .iter()
        .find(|(_, s)| {
            (owns(run, s) && s.label == label)
                || s.consumers.get(&run.unit).is_some_and(|c| c.label == label)
        })
        .map(|(id, _)| id.clone())
        .ok_or_else(|| Failure::Run(format!("secret {label:?} not found")))
}

fn bare(id: &str) -> String {
    let id = id.strip_prefix("secret:").unwrap_or(id);
    id.rsplit('/').next().unwrap_or(id).to_owned()
}

fn not_found<T>(id: &str) -> Result<T, Failure> {
    refused(format!("secret {id:?} not found"))
}

fn describe(secret: &mut Secret, call: &Call<'_>, now: Timestamp) -> Result<(), Failure> {
    if let Some(label) = call.line.get("label") {
        label.clone_into(&mut secret.label);
    }
    if let Some(description) = call.line.get("description") {
        description.clone_into(&mut secret.description);
    }
    if let Some(expire) = call.line.get("expire") {
        let Some(at) = timers::expiry(expire, now) else {
            return usage(format!("expire time or duration {expire:?} not valid"));
        };
        let revision = secret.latest();
        secret.expires = Some(Expiry { at, revision });
    }
    if let Some(rotate) = call.line.get("rotate") {
        let known = [
            "never",
            "hourly",
            "daily",
            "weekly",
            "monthly",
            "quarterly",
            "yearly",
        ];
        if !known.contains(&rotate) {
            return usage(format!("rotate policy {rotate:?} not valid"));
        }
        if secret.rotate != rotate {
            secret.rotates = timers::next_rotation(rotate, now);
        }
        rotate.clone_into(&mut secret.rotate);
    }
    Ok(())
}

/// Content from `k=v`, `k#base64=v`, `k#file=PATH` and `--file`.
fn content(call: &Call<'_>, pairs: &[String]) -> Result<Databag, Failure> {
    let mut given = Vec::new();
    let mut read = Databag::new();
    for pair in pairs {
        match pair.split_once('=').map(|(k, v)| (k.split_once('#'), v)) {
            Some((Some((key, "file")), path)) => {
                let text = fs::read(Path::new(call.dir).join(path))
                    .map_err(|e| Failure::Run(format!("cannot read {path}: {e}")))?;
                read.insert(key.to_owned(), String::from_utf8_lossy(&text).into_owned());
            }
            Some((Some((key, "base64")), value)) => {
                read.insert(key.to_owned(), unbase64(value)?);
            }
            _ => given.push(pair.clone()),
        }
    }
    let mut content = call.settings(&given)?;
    content.append(&mut read);
    validated(content).map_err(Failure::Usage)
}

/// Checks keys and size of a secret's content.
pub(crate) fn validated(content: Databag) -> Result<Databag, String> {
    for key in content.keys() {
        let bytes = key.as_bytes();
        let valid = bytes.len() >= 3
            && bytes[0].is_ascii_lowercase()
            && !key.ends_with('-')
            && !key.contains("--")
            && bytes
                .iter()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == b'-');
        if !valid {
            return Err(format!("key {key:?} not valid"));
        }
    }
    if content.values().map(String::len).sum::<usize>() > MAX_CONTENT {
        return Err(format!("secret content exceeds {MAX_CONTENT} bytes"));
    }
    Ok(content)
}

fn unbase64(text: &str) -> Result<String, Failure> {
    let invalid = || Failure::Usage("illegal base64 data".into());
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0_u32);
    for c in text.trim_end_matches('=').bytes() {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(invalid()),
        };
        bits = (bits << 6) | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).unwrap_or_default());
        }
    }
    String::from_utf8(out).map_err(|_| invalid())
}

/// All secrets in a listing for the operator.
pub(crate) fn listing(secrets: &BTreeMap<String, Secret>) -> Value {
    let entries: Map<String, Value> = secrets
        .iter()
        .filter(|(_, s)| !s.owner.starts_with(REMOTE_OWNER))
        .map(|(id, s)| {
            let owner = s.owner.split_once(':').map_or("<model>", |(_, name)| name);
            let mut body = Map::new();
            body.insert("revision".into(), json!(s.latest()));
            body.insert("owner".into(), json!(owner));
            let name = if s.owner == "model" { "name" } else { "label" };
            body.insert(name.into(), json!(s.label));
            (id.clone(), Value::Object(body))
        })
        .collect();
    Value::Object(entries)
}
