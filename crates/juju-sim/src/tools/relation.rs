//! relation-ids, relation-list, relation-get, relation-set, relation-model-get.

use serde_json::Value;
use serde_json::json;

use super::Answer;
use super::Call;
use super::Failure;
use super::no_more;
use super::refused;
use super::usage;
use crate::agent::context::HookRun;
use crate::hook::RelationKind;
use crate::state::Relation;
use crate::state::by_number;
use crate::state::split_unit;

pub(super) fn ids(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let endpoint = match call.line.args.as_slice() {
        [] => match run.hook.relation() {
            Some(hook) => hook.endpoint.clone(),
            None => return usage("no endpoint name specified"),
        },
        [name] => name.clone(),
        [_, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    let broken = run
        .hook
        .relation()
        .filter(|r| r.kind == RelationKind::Broken)
        .map(|r| r.id);
    let mut listed: Vec<String> = run
        .state()
        .relations
        .iter()
        .filter(|(id, r)| broken != Some(**id) && known(run, **id, r))
        .filter(|(_, r)| r.side(&run.app).is_some_and(|s| s.endpoint == endpoint))
        .map(|(id, _)| format!("{endpoint}:{id}"))
        .collect();
    listed.sort();
    call.print(&json!(listed))
}

/// Whether this unit has heard of a relation and is not done with it.
fn known(run: &HookRun<'_>, id: u32, relation: &Relation) -> bool {
    relation.scope.contains(&run.unit)
        && run
            .state()
            .unit(&run.unit)
            .is_some_and(|u| u.uniter.relations.get(&id).is_some_and(|seen| !seen.broken))
}

pub(super) fn list(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let Some(id) = relation_id(run, call)? else {
        return usage("no relation id specified");
    };
    let remote = remote_app(run, id);
    if call.line.is("app") {
        return call.print(&remote.map_or(Value::Null, Value::from));
    }
    call.print(&json!(members(run, id)))
}

/// Remote units present in this hook, sorted.
fn members(run: &HookRun<'_>, id: u32) -> Vec<String> {
    let seen = run
        .state()
        .unit(&run.unit)
        .and_then(|u| u.uniter.relations.get(&id).cloned())
        .unwrap_or_default();
    let mut present: Vec<String> = seen.members.into_keys().collect();
    if let Some(hook) = run.hook.relation().filter(|hook| hook.id == id)
        && let Some(remote) = &hook.remote_unit
    {
        present.retain(|u| u != remote);
        if hook.kind != RelationKind::Departed {
            present.push(remote.clone());
        }
    }
    present.sort_by(|a, b| by_number(a, b));
    present
}

pub(super) fn get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let id = relation_id(run, call)?;
    let (key, mut who) = match call.line.args.as_slice() {
        [] => (None, None),
        [key] => (Some(key.as_str()), None),
        [key, who] => (Some(key.as_str()), Some(who.clone())),
        [_, _, rest @ ..] => return no_more(rest).map(|()| String::new()),
    };
    let key = key.filter(|k| *k != "-" && !k.is_empty());
    let Some(id) = id else {
        return usage("no relation id specified");
    };
    let mut app = call.line.is("app");
    if who.is_none()
        && let Some(hook) = run.hook.relation().filter(|hook| hook.id == id)
    {
        who.clone_from(&hook.remote_unit);
        if who.is_none() && !hook.remote_app.is_empty() {
            who = Some(hook.remote_app.clone());
            app = true;
        }
    }
    let Some(who) = who else {
        return usage("no unit or application specified");
    };
    let unit = split_unit(&who);
    let owner = match (app, unit) {
        (true, Some((of, _))) => of.to_owned(),
        (true, None) | (false, Some(_)) => who,
        (false, None) if who.contains('/') || who.is_empty() => {
            return usage(format!("invalid unit name {who:?}"));
        }
        (false, None) => {
            return usage(format!("expected unit name, got application name {who:?}"));
        }
    };
    let data = readable(run, id, &owner)?;
    let value = match key {
        Some(key) => data.get(key).map_or(Value::Null, |v| json!(v)),
        None => json!(data),
    };
    call.print(&value)
}

/// A databag, if this unit may read it.
fn readable(run: &HookRun<'_>, id: u32, owner: &str) -> Result<crate::state::Databag, Failure> {
    let words = if crate::at_least(&run.model.options.juju_version, 4) {
        "permission denied (unauthorized access)"
    } else {
        "permission denied"
    };
    let denied = || Failure::Run(words.into());
    let Some(relation) = run.state().relations.get(&id) else {
        return Err(denied());
    };
    let peer = relation.is_peer();
    if !run.takes_part(id, owner) {
        return Err(denied());
    }
    if owner == run.app && !peer && !run.is_leader() {
        return Err(denied());
    }
    let other_unit_of_own_app =
        split_unit(owner).is_some_and(|(app, _)| app == run.app) && owner != run.unit && !peer;
    if other_unit_of_own_app {
        return Err(denied());
    }
    run.bag(id, owner).ok_or_else(|| {
        Failure::Run(format!(
            "cannot read settings for unit \"{owner}\" in relation \"{}\": unit \"{owner}\": \
             settings not found",
            describe(relation)
        ))
    })
}

fn describe(relation: &Relation) -> String {
    let sides: Vec<String> = relation
        .sides
        .iter()
        .rev()
        .map(|s| format!("{}:{}", s.app, s.endpoint))
        .collect();
    sides.join(" ")
}

pub(super) fn set(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    let Some(id) = relation_id(run, call)? else {
        return usage("no relation id specified");
    };
    let settings = call.settings(&call.line.args)?;
    let owner = if call.line.is("app") {
        if !run.is_leader() {
            return refused("cannot write relation settings");
        }
        run.app.clone()
    } else {
        run.unit.clone()
    };
    let pending = run.pending.bags.entry((id, owner)).or_default();
    pending.extend(settings);
    Ok(String::new())
}

pub(super) fn model_get(run: &mut HookRun<'_>, call: &Call<'_>) -> Answer {
    no_more(&call.line.args)?;
    let Some(id) = relation_id(run, call)? else {
        return usage("no relation id specified");
    };
    let link = run.state().relations.get(&id).and_then(|r| r.link.as_ref());
    let uuid = match link {
        Some(link) => &link.uuid,
        None => &run.state().uuid,
    };
    call.print(&json!({"uuid": uuid}))
}

fn remote_app(run: &HookRun<'_>, id: u32) -> Option<String> {
    run.state()
        .relations
        .get(&id)?
        .remote(&run.app)
        .map(|side| side.app.clone())
}

/// The relation named by `-r`, else the hook's own.
pub(super) fn relation_id(run: &HookRun<'_>, call: &Call<'_>) -> Result<Option<u32>, Failure> {
    let Some(text) = call.line.get("r") else {
        return Ok(run.hook.relation().map(|hook| hook.id));
    };
    let invalid =
        |why: &str| Failure::Usage(format!("invalid value {text:?} for option -r: {why}"));
    let (endpoint, number) = match text.rsplit_once(':') {
        Some((endpoint, number)) => (Some(endpoint), number),
        None => (None, text),
    };
    let id: u32 = number.parse().map_err(|_| invalid("invalid relation id"))?;
    let side = run
        .state()
        .relations
        .get(&id)
        .and_then(|r| r.side(&run.app));
    let known = run
        .state()
        .unit(&run.unit)
        .is_some_and(|u| u.uniter.relations.contains_key(&id));
    match side {
        Some(side) if known && endpoint.is_none_or(|e| e.is_empty() || e == side.endpoint) => {
            Ok(Some(id))
        }
        _ => Err(invalid("relation not found")),
    }
}
