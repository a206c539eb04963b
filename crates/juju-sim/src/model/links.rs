//! What two models tell each other about their common relations.
//!
//! Each model writes what its side of a link says to a file of its own, whole and at once, and reads
//! the other's. So only its own lock is ever held, and models never wait for each other. A side that
//! is no longer there has no file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Model, ModelError};
use crate::agent::commit::reap_relations;
use crate::charm::Role;
use crate::state::{Bag, Databag, Life, Link, Relation, Secret, Side, State, split_unit};
use crate::store::access;

const LINKS: &str = "links";
const REQUESTS: &str = "requests";

/// Prefix of the owner of a secret of another model's; its UUID follows.
pub(crate) const REMOTE_OWNER: &str = "remote:";

/// One side of a link.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Told {
    life: Life,
    /// UUID of the model that says so.
    uuid: String,
    app: Bag,
    /// Units in scope by number.
    units: BTreeMap<u32, Bag>,
    /// Revisions of the secrets that the other side may read, by bare id.
    secrets: BTreeMap<String, BTreeMap<u32, Databag>>,
    /// Revisions of the other side's secrets that units track here, by bare id.
    #[serde(default)]
    tracked: BTreeMap<String, BTreeSet<u32>>,
}

/// What the consuming model asks of the offering one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) token: String,
    /// Directory name of the consuming model.
    pub(super) peer: String,
    /// What its application is called in the offering model.
    pub(super) app: String,
    pub(super) offer: String,
    /// The offering side's endpoint.
    pub(super) endpoint: String,
    pub(super) interface: String,
    /// The consuming side's endpoint and role.
    pub(super) remote_endpoint: String,
    pub(super) remote_role: Role,
}

impl Model {
    /// The directory of a model beside this one.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.store.dir().with_file_name(name)
    }

    /// Names of the models that this one has relations with, or has yet to answer.
    pub(crate) fn linked(&self) -> BTreeSet<String> {
        let links = self
            .state
            .relations
            .values()
            .filter_map(|r| r.link.as_ref());
        links.map(|link| link.peer.clone()).collect()
    }

    /// Asks another model for a relation. It answers when its agents run next.
    pub(super) fn request(&self, request: &Request, offering: &str) -> Result<(), ModelError> {
        self.tell()?;
        let path = file(&self.beside(offering), REQUESTS, &request.token);
        write(&path, request)
    }

    /// Takes in what other models say, and relations they ask for. Whether anything is new.
    pub(super) fn hear(&mut self) -> Result<bool, ModelError> {
        let asked = self.store.dir().join(REQUESTS).exists();
        let foreign_secret = |secret: &Secret| secret.owner.starts_with(REMOTE_OWNER);
        if !asked && self.linked().is_empty() && !self.state.secrets.values().any(foreign_secret) {
            return Ok(false);
        }
        let before = serde_json::to_value(&self.state).ok();
        self.answer_requests()?;
        let mut granted: BTreeMap<String, Secret> = BTreeMap::new();
        let links: Vec<(u32, Link)> = self
            .state
            .relations
            .iter()
            .filter_map(|(id, r)| Some((*id, r.link.clone()?)))
            .collect();
        for (id, link) in &links {
            let told: Option<Told> = read(&file(&self.beside(&link.peer), LINKS, &link.token))?;
            let Some(relation) = self.state.relations.get_mut(id) else {
                continue;
            };
            if let Some(told) = &told {
                let local = relation.remote(&link.app).map(|side| side.app.clone());
                for (xid, revisions) in &told.secrets {
                    let secret = granted
                        .entry(xid.clone())
                        .or_insert_with(|| foreign(&told.uuid, revisions));
                    secret.grants.extend(local.clone());
                }
                for (xid, secret) in &mut self.state.secrets {
                    match told.tracked.get(xid) {
                        Some(all) => {
                            let known = &mut secret.tracked_elsewhere;
                            known.insert(link.token.clone(), all.clone());
                        }
                        None => {
                            secret.tracked_elsewhere.remove(&link.token);
                        }
                    }
                }
            } else {
                for secret in self.state.secrets.values_mut() {
                    secret.tracked_elsewhere.remove(&link.token);
                }
            }
            overhear(relation, link, told);
        }
        self.state.secrets.retain(|xid, secret| {
            !secret.owner.starts_with(REMOTE_OWNER) || granted.contains_key(xid)
        });
        for (xid, mut secret) in granted {
            if let Some(known) = self.state.secrets.remove(&xid) {
                secret.consumers = known.consumers;
            }
            self.state.secrets.insert(xid, secret);
        }
        if !links.is_empty() {
            reap_relations(&mut self.state);
            self.reap()?;
        }
        let news = before != serde_json::to_value(&self.state).ok();
        if news {
            self.save()?;
        }
        Ok(news)
    }

    /// Tells other models what this one's sides say. Whether anything is new.
    pub(super) fn tell(&self) -> Result<bool, ModelError> {
        let mut wanted: BTreeMap<String, Told> = BTreeMap::new();
        for relation in self.state.relations.values() {
            if let Some(link) = &relation.link {
                wanted.insert(link.token.clone(), told(&self.state, relation, link));
            }
        }
        let mut news = false;
        for token in listed(&self.store.dir().join(LINKS))? {
            if !wanted.contains_key(&token) {
                let path = file(self.store.dir(), LINKS, &token);
                fs::remove_file(&path).map_err(access(&path))?;
                news = true;
            }
        }
        for (token, told) in wanted {
            let path = file(self.store.dir(), LINKS, &token);
            if read::<Told>(&path)?.as_ref() != Some(&told) {
                write(&path, &told)?;
                news = true;
            }
        }
        Ok(news)
    }

    fn answer_requests(&mut self) -> Result<(), ModelError> {
        for token in listed(&self.store.dir().join(REQUESTS))? {
            let path = file(self.store.dir(), REQUESTS, &token);
            let request: Option<Request> = read(&path)?;
            let offer = request
                .as_ref()
                .and_then(|request| self.state.offers.get(&request.offer).cloned());
            if let (Some(request), Some(offer)) = (request, offer) {
                let role = match request.remote_role {
                    Role::Requirer => Role::Provider,
                    _ => Role::Requirer,
                };
                let own = Side {
                    app: offer.app,
                    endpoint: request.endpoint,
                    role,
                };
                let other = Side {
                    app: request.app.clone(),
                    endpoint: request.remote_endpoint,
                    role: request.remote_role,
                };
                let sides = match role {
                    Role::Provider => vec![own, other],
                    _ => vec![other, own],
                };
                let link = Link {
                    token: request.token,
                    peer: request.peer,
                    app: request.app,
                    offer: Some(request.offer),
                    seen: true,
                    uuid: String::new(),
                };
                self.add_relation(request.interface, sides, Some(link));
            }
            // The answer is kept before the request goes, so that a kill between loses neither.
            self.save()?;
            self.tell()?;
            fs::remove_file(&path).map_err(access(&path))?;
        }
        Ok(())
    }
}

/// This side of a link.
fn told(state: &State, relation: &Relation, link: &Link) -> Told {
    let local = relation.remote(&link.app).map(|side| side.app.clone());
    let local = local.unwrap_or_default();
    let units = relation.scope.iter().filter_map(|name| {
        let (app, number) = split_unit(name)?;
        let bag = relation.unit_bags.get(name).cloned().unwrap_or_default();
        (app == local).then_some((number, bag))
    });
    let may_read = |secret: &&Secret| {
        let granted = |name: &String| {
            *name == link.app || split_unit(name).is_some_and(|(app, _)| app == link.app)
        };
        !secret.owner.starts_with(REMOTE_OWNER) && secret.grants.iter().any(granted)
    };
    let theirs = format!("{REMOTE_OWNER}{}", link.uuid);
    let read = state.secrets.iter().filter(|(_, s)| s.owner == theirs);
    let tracked = read.map(|(xid, secret)| {
        let revisions = secret.consumers.values().map(|c| c.tracked);
        (xid.clone(), revisions.collect::<BTreeSet<u32>>())
    });
    let tracked = tracked
        .filter(|(_, revisions)| !revisions.is_empty())
        .collect();
    let secrets = state.secrets.iter().filter(|(_, secret)| may_read(secret));
    Told {
        life: relation.life,
        uuid: state.uuid.clone(),
        app: relation.app_bags.get(&local).cloned().unwrap_or_default(),
        units: units.collect(),
        secrets: secrets
            .map(|(xid, secret)| (xid.clone(), secret.revisions.clone()))
            .collect(),
        tracked,
    }
}

/// Makes the remote side of a relation what the other model says.
fn overhear(relation: &mut Relation, link: &Link, told: Option<Told>) {
    let is_theirs = |name: &str| split_unit(name).is_some_and(|(app, _)| app == link.app);
    let Some(told) = told else {
        if link.seen {
            relation.life = Life::Dying;
            relation.scope.retain(|name| !is_theirs(name));
        }
        return;
    };
    if let Some(known) = &mut relation.link {
        known.seen = true;
        known.uuid = told.uuid;
    }
    if told.life == Life::Dying {
        relation.life = Life::Dying;
    }
    if told.app.version != 0 {
        relation.app_bags.insert(link.app.clone(), told.app);
    }
    let units: BTreeMap<String, Bag> = told
        .units
        .into_iter()
        .map(|(number, bag)| (format!("{}/{number}", link.app), bag))
        .collect();
    relation
        .scope
        .retain(|name| !is_theirs(name) || units.contains_key(name));
    relation.scope.extend(units.keys().cloned());
    relation.unit_bags.extend(units);
}

/// A secret of another model's as this one knows it.
fn foreign(uuid: &str, revisions: &BTreeMap<u32, Databag>) -> Secret {
    Secret {
        owner: format!("{REMOTE_OWNER}{uuid}"),
        label: String::new(),
        description: String::new(),
        rotate: "never".into(),
        rotates: None,
        expires: None,
        revisions: revisions.clone(),
        grants: BTreeSet::new(),
        consumers: BTreeMap::new(),
        tracked_elsewhere: BTreeMap::new(),
        obsolete: BTreeSet::new(),
    }
}

fn file(model: &Path, kind: &str, token: &str) -> PathBuf {
    model.join(kind).join(format!("{token}.json"))
}

/// The tokens of the files in a directory, sorted.
fn listed(dir: &Path) -> Result<Vec<String>, ModelError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(access(dir)(e).into()),
    };
    let mut tokens = Vec::new();
    for entry in entries {
        let name = entry.map_err(access(dir))?.file_name();
        tokens.extend(
            name.to_string_lossy()
                .strip_suffix(".json")
                .map(str::to_owned),
        );
    }
    tokens.sort();
    Ok(tokens)
}

/// The value in a file; none if there is no file.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ModelError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(access(path)(e).into()),
    };
    let value = serde_json::from_slice(&bytes).map_err(|e| access(path)(e.into()))?;
    Ok(Some(value))
}

/// Writes a value for other models to read; readable by nobody else, as it may hold secrets.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<(), ModelError> {
    Ok(crate::store::replace(path, value)?)
}
