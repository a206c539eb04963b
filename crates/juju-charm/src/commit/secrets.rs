//! Secrets of the charm's own: what is there is read first, and only what differs is written.
//!
//! The databags tell what is granted: a grant and the key that names the secret are written by the
//! same hook, and Juju keeps both or none.

use std::collections::BTreeMap;

use juju_hooks::{
    Databag, Event, HookTools, NewSecret, RelationId, Result, SecretGrantee, SecretId, SecretInfo,
    SecretKind, SecretOwner, SecretRef, SecretRevision,
};

use super::CommitError;
use crate::outcome::{LocalData, Outcome, OwnSecret};
use crate::view::{ModelView, RelationView};

/// What is to be done about one secret.
pub(super) struct Change<'a> {
    label: &'a str,
    wanted: &'a OwnSecret,
    id: Option<SecretId>,
    write: Write,
    /// A revision that nobody reads any more.
    dropped: Option<u32>,
}

enum Write {
    Nothing,
    Add,
    Set(NewSecret),
    Remove,
}

/// Compares the secrets wanted with those there are. The application's are left to the leader.
pub(super) fn changes<'a>(
    view: &ModelView,
    outcome: &'a Outcome,
    tools: &dyn HookTools,
) -> Result<Vec<Change<'a>>, CommitError> {
    let mut changes = Vec::new();
    for (label, wanted) in &outcome.secrets {
        if wanted.owner == SecretOwner::Application && !view.leader {
            continue;
        }
        if let Some(id) = wanted
            .shared
            .keys()
            .find(|id| view.relation(**id).is_none())
        {
            return Err(CommitError::UnknownRelation(*id));
        }
        let known = match tools.secret_info(&SecretRef::Label(label.clone())) {
            Ok(known) => Some(known),
            Err(error) if error.is_not_found() => None,
            Err(error) if error.is_access() => {
                tracing::warn!("secret {label:?} is another's now: {error}");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let write = match &known {
            None if wanted.content.expose().is_empty() => Write::Nothing,
            None => Write::Add,
            Some(_) if wanted.content.expose().is_empty() => Write::Remove,
            Some((id, info)) => difference(wanted, id, info, tools)?,
        };
        let dropped = known
            .as_ref()
            .and_then(|(id, info)| dropped(view, id, info));
        changes.push(Change {
            label,
            wanted,
            id: known.map(|(id, _)| id),
            write,
            dropped,
        });
    }
    Ok(changes)
}

fn difference(
    wanted: &OwnSecret,
    id: &SecretId,
    info: &SecretInfo,
    tools: &dyn HookTools,
) -> Result<Write, CommitError> {
    // A reader that only peeks holds the revision it saw first for ever, its owner too.
    let content = tools.secret_get(&SecretRef::Id(id.clone()), SecretRevision::Refresh)?;
    let mut new = NewSecret {
        owner: wanted.owner,
        ..NewSecret::default()
    };
    if content != wanted.content {
        new.content = wanted.content.clone();
    }
    if wanted.description.is_some() && wanted.description != info.description {
        new.description.clone_from(&wanted.description);
    }
    let rotation = wanted.rotate.filter(|rotate| {
        let now = info.rotation.as_deref().unwrap_or("never");
        now != rotate.as_str()
    });
    new.rotate = rotation;
    let differs =
        !new.content.expose().is_empty() || new.description.is_some() || new.rotate.is_some();
    Ok(if differs {
        Write::Set(new)
    } else {
        Write::Nothing
    })
}

/// The revision that Juju says nobody tracks; never the latest.
fn dropped(view: &ModelView, id: &SecretId, info: &SecretInfo) -> Option<u32> {
    let Event::Secret(event) = view.event() else {
        return None;
    };
    let own = event.kind == SecretKind::Remove && event.id.xid() == id.xid();
    event
        .revision
        .filter(|revision| own && *revision < info.revision)
}

impl Change<'_> {
    /// Whether it needs leadership.
    pub(super) fn needs_lead(&self, view: &ModelView) -> bool {
        let writes = !matches!(self.write, Write::Nothing) || self.dropped.is_some();
        self.is_app() && (writes || view.relations.iter().any(|r| self.is_told_else(r)))
    }

    pub(super) fn is_app(&self) -> bool {
        self.wanted.owner == SecretOwner::Application
    }

    fn bag<'r>(&self, relation: &'r RelationView) -> &'r Databag {
        match self.wanted.owner {
            SecretOwner::Application => &relation.local_app_data,
            SecretOwner::Unit => &relation.local_unit_data,
        }
    }

    /// The key that is to name the secret to the other side.
    fn key(&self, relation: RelationId) -> Option<&String> {
        let kept = !matches!(self.write, Write::Remove) && (self.id.is_some() || self.is_added());
        self.wanted.shared.get(&relation).filter(|_| kept)
    }

    fn is_added(&self) -> bool {
        matches!(self.write, Write::Add)
    }

    /// Whether the databag says something else about the secret than it is to.
    fn is_told_else(&self, relation: &RelationView) -> bool {
        if relation.broken {
            return false;
        }
        let told = told(self.bag(relation), self.id.as_ref());
        let wanted: Vec<&String> = self.key(relation.id).into_iter().collect();
        told != wanted
    }

    /// Writes; gives what the databags are to name the secret by.
    fn write(
        &self,
        view: &ModelView,
        tools: &dyn HookTools,
        bags: &mut BTreeMap<RelationId, LocalData>,
    ) -> Result<()> {
        let id = match (&self.write, &self.id) {
            (Write::Add, _) => tools.secret_add(&NewSecret {
                content: self.wanted.content.clone(),
                label: Some(self.label.to_owned()),
                description: self.wanted.description.clone(),
                expire: None,
                rotate: self.wanted.rotate,
                owner: self.wanted.owner,
            })?,
            (Write::Set(new), Some(id)) => {
                tools.secret_set(id, new)?;
                id.clone()
            }
            (_, Some(id)) => id.clone(),
            (_, None) => return Ok(()),
        };
        if let Some(revision) = self.dropped {
            tools.secret_remove(&id, Some(revision))?;
        }
        for relation in view.relations.iter().filter(|r| self.is_told_else(r)) {
            let told = told(self.bag(relation), self.id.as_ref());
            let key = self.key(relation.id);
            let relation_key = relation.id.on(&relation.endpoint);
            match (key, told.is_empty()) {
                (Some(_), true) => tools.secret_grant(&id, &relation_key, None)?,
                (None, false) if !matches!(self.write, Write::Remove) => {
                    tools.secret_revoke(&id, &SecretGrantee::Relation(relation_key))?;
                }
                _ => {}
            }
            let data = bags.entry(relation.id).or_default();
            let data = match self.wanted.owner {
                SecretOwner::Application => &mut data.app,
                SecretOwner::Unit => &mut data.unit,
            };
            data.extend(told.into_iter().map(|key| (key.clone(), String::new())));
            data.extend(key.map(|key| (key.clone(), format!("secret:{}", id.xid()))));
        }
        if matches!(self.write, Write::Remove) {
            tools.secret_remove(&id, None)?;
        }
        Ok(())
    }
}

/// Writes all; gives what the databags are to name the secrets by.
pub(super) fn write(
    changes: &[Change<'_>],
    view: &ModelView,
    leads: bool,
    tools: &dyn HookTools,
) -> Result<BTreeMap<RelationId, LocalData>> {
    let mut bags = BTreeMap::new();
    for change in changes.iter().filter(|change| leads || !change.is_app()) {
        change.write(view, tools, &mut bags)?;
    }
    Ok(bags)
}

/// The keys of a databag that name the secret.
fn told<'r>(bag: &'r Databag, id: Option<&SecretId>) -> Vec<&'r String> {
    let Some(id) = id else {
        return Vec::new();
    };
    let names = |text: &String| SecretId::new(text).is_ok_and(|named| named.xid() == id.xid());
    let told = bag.iter().filter(|(_, value)| names(value));
    told.map(|(key, _)| key).collect()
}
