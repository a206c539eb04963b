//! Offers, and what other models offer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::links::{self, Request};
use super::{Model, ModelError, random_hex, refuse};
use crate::charm::Role;
use crate::state::{Life, Link, Offer, Offered, Saas, Side, State};

/// The file in a model's directory that tells what it offers.
const OFFERS: &str = "offers.json";

/// Who the simulator's user is, in the URLs of offers.
const OWNER: &str = "admin";

impl Model {
    /// Offers endpoints of an application, given as `app:endpoint[,endpoint]`, under `name` or the
    /// application's own; returns the offer's URL.
    ///
    /// # Errors
    /// Unknown application or endpoint, a peer endpoint, a name in use.
    pub fn offer(&mut self, what: &str, name: Option<&str>) -> Result<String, ModelError> {
        let Some((app, endpoints)) = what.split_once(':') else {
            return refuse(format!("missing endpoints: offer {what}:ENDPOINT"));
        };
        let charm = &self.alive_app(app)?.charm;
        let mut offered = BTreeMap::new();
        for endpoint in endpoints.split(',') {
            match charm.endpoints.get(endpoint) {
                Some(known) if known.role != Role::Peer => {
                    offered.insert(endpoint.to_owned(), known.clone());
                }
                _ => return refuse(format!("application {app:?} has no {endpoint:?} relation")),
            }
        }
        let name = name.unwrap_or(app);
        if self
            .state
            .offers
            .get(name)
            .is_some_and(|offer| offer.app != app)
        {
            return refuse(format!(
                "cannot offer {app:?}: offer {name:?} already exists"
            ));
        }
        let offer = Offer {
            app: app.to_owned(),
            endpoints: offered,
        };
        self.state.offers.insert(name.to_owned(), offer);
        self.save_offers()?;
        Ok(self.url(name))
    }

    /// Withdraws an offer; with `force` also one that is in use.
    ///
    /// # Errors
    /// Unknown offer, or one that is in use.
    pub fn remove_offer(&mut self, name: &str, force: bool) -> Result<(), ModelError> {
        if !self.state.offers.contains_key(name) {
            return refuse(format!("offer {name:?} not found"));
        }
        let used = connections(&self.state, name);
        if !used.is_empty() && !force {
            let count = used.len();
            let s = if count == 1 { "" } else { "s" };
            return refuse(format!(
                "cannot delete application offer {name:?}: offer has {count} relation{s}"
            ));
        }
        for id in used {
            self.end_relation(id);
        }
        self.state.offers.remove(name);
        self.save_offers()
    }

    /// Makes what another model offers an application of this one, under `alias` or the offer's
    /// name; returns that. The URL is `[controller:][owner/]model.offer`.
    ///
    /// # Errors
    /// A bad URL, an unknown offer, a name in use.
    pub fn consume(&mut self, url: &str, alias: Option<&str>) -> Result<String, ModelError> {
        let Some((model, offer)) = parse(url) else {
            return refuse(format!("application offer URL {url:?} is not valid"));
        };
        let path = self.beside(model).join(OFFERS);
        let offered: Option<Offered> = links::read(&path)?;
        let Some((uuid, found)) =
            offered.and_then(|o| Some((o.uuid, o.offers.get(offer)?.clone())))
        else {
            return refuse(format!(
                "application offer \"{OWNER}/{model}.{offer}\" not found"
            ));
        };
        let name = alias.unwrap_or(offer);
        let saas = Saas {
            url: format!("{OWNER}/{model}.{offer}"),
            model: model.to_owned(),
            uuid,
            offer: offer.to_owned(),
            endpoints: found.endpoints,
        };
        let other = self
            .state
            .saas
            .get(name)
            .is_some_and(|known| known.url != saas.url);
        if other || self.state.applications.contains_key(name) {
            return refuse(format!("saas application {name:?} already exists"));
        }
        self.state.saas.insert(name.to_owned(), saas);
        self.save()?;
        Ok(name.to_owned())
    }

    /// Takes an application of another model's away again, and its relations.
    ///
    /// # Errors
    /// Unknown name.
    pub fn remove_saas(&mut self, name: &str) -> Result<(), ModelError> {
        if self.state.saas.remove(name).is_none() {
            return refuse(format!("remote application {name:?} not found"));
        }
        let ending = self.state.relations.iter();
        let ending = ending.filter(|(_, r)| r.link.as_ref().is_some_and(|link| link.app == name));
        let ending: Vec<u32> = ending.map(|(id, _)| *id).collect();
        for id in ending {
            self.end_relation(id);
        }
        self.save()
    }

    /// What `juju offers` lists.
    pub fn offers(&self) -> Value {
        json(&self.state)
    }

    /// Whether text names an offer rather than an application of this model.
    pub(super) fn is_offer(text: &str) -> bool {
        parse(text).is_some_and(|_| text.contains('.'))
    }

    /// Relates an application with one of another model's: this model's half, and the request for
    /// the other's.
    pub(super) fn link(
        &mut self,
        interface: String,
        sides: Vec<Side>,
        saas: &str,
    ) -> Result<u32, ModelError> {
        let Some(known) = self.state.saas.get(saas).cloned() else {
            return refuse(format!("remote application {saas:?} not found"));
        };
        let own = sides.iter().find(|side| side.app != saas).cloned();
        let theirs = sides.iter().find(|side| side.app == saas).cloned();
        let (Some(own), Some(theirs)) = (own, theirs) else {
            return refuse(format!("cannot relate application {saas:?} to itself"));
        };
        let token = random_hex();
        let link = Link {
            token: token.clone(),
            peer: known.model.clone(),
            app: saas.to_owned(),
            offer: None,
            seen: false,
            uuid: known.uuid.clone(),
        };
        let app = self
            .state
            .tokens
            .entry(own.app.clone())
            .or_insert_with(random_hex);
        let app = format!("remote-{app}");
        let id = self.add_relation(interface.clone(), sides, Some(link));
        self.save()?;
        let dir = self.store.dir().file_name().unwrap_or_default();
        let request = Request {
            token,
            peer: dir.to_string_lossy().into_owned(),
            app,
            offer: known.offer,
            endpoint: theirs.endpoint,
            interface,
            remote_endpoint: own.endpoint,
            remote_role: own.role,
        };
        self.request(&request, &known.model)?;
        Ok(id)
    }

    fn url(&self, offer: &str) -> String {
        let dir = self.store.dir().file_name().unwrap_or_default();
        format!("{OWNER}/{}.{offer}", dir.to_string_lossy())
    }

    fn save_offers(&self) -> Result<(), ModelError> {
        self.save()?;
        let offered = Offered {
            uuid: self.state.uuid.clone(),
            offers: self.state.offers.clone(),
        };
        links::write(&self.store.dir().join(OFFERS), &offered)
    }
}

/// Model and offer of `[controller:][owner/]model.offer`.
fn parse(url: &str) -> Option<(&str, &str)> {
    let path = url.rsplit_once(':').map_or(url, |(_, path)| path);
    let path = path.rsplit_once('/').map_or(path, |(_, path)| path);
    let (model, offer) = path.split_once('.')?;
    let plain = |name: &str| {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        !name.is_empty() && name.chars().all(word)
    };
    (plain(model) && plain(offer)).then_some((model, offer))
}

/// Relations that came of an offer.
fn connections(state: &State, offer: &str) -> Vec<u32> {
    let of = |link: &Link| link.offer.as_deref() == Some(offer);
    let found = state.relations.iter();
    let found = found.filter(|(_, relation)| relation.link.as_ref().is_some_and(of));
    found.map(|(id, _)| *id).collect()
}

/// The offers, as `juju status` and `juju offers` show them.
pub(crate) fn json(state: &State) -> Value {
    let offer = |(name, offer): (&String, &Offer)| {
        let ids = connections(state, name);
        let active = ids.iter().filter(|id| {
            let relation = &state.relations[id];
            relation.life == Life::Alive && relation.link.as_ref().is_some_and(|link| link.seen)
        });
        let charm = state.applications.get(&offer.app);
        let charm = charm.map(|app| format!("local:{}-{}", app.charm.name, app.charm_rev));
        let body = json!({
            "application": offer.app,
            "charm": charm.unwrap_or_default(),
            "active-connected-count": active.count(),
            "total-connected-count": ids.len(),
            "endpoints": endpoints(&offer.endpoints),
        });
        (name.clone(), body)
    };
    Value::Object(state.offers.iter().map(offer).collect())
}

/// The applications of other models, as `juju status` shows them.
pub(crate) fn consumed(state: &State) -> Value {
    let saas = |(name, saas): (&String, &Saas)| {
        let mut relations: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for relation in state.relations.values() {
            if let (Some(own), Some(other)) = (relation.side(name), relation.remote(name)) {
                relations
                    .entry(&own.endpoint)
                    .or_default()
                    .insert(&other.app);
            }
        }
        let body = json!({
            "url": format!("simulator:{}", saas.url),
            "endpoints": endpoints(&saas.endpoints),
            "application-status": {"current": "active"},
            "relations": relations,
        });
        (name.clone(), body)
    };
    Value::Object(state.saas.iter().map(saas).collect())
}

fn endpoints(endpoints: &BTreeMap<String, crate::charm::Endpoint>) -> Map<String, Value> {
    let shown = endpoints.iter().map(|(name, endpoint)| {
        let body = json!({"interface": endpoint.interface, "role": endpoint.role});
        (name.clone(), body)
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_offers_may_name_controller_and_owner() {
        for url in [
            "lab.db",
            "admin/lab.db",
            "simulator:admin/lab.db",
            "simulator:lab.db",
        ] {
            assert_eq!(parse(url), Some(("lab", "db")), "{url}");
        }
        for none in ["db", "db:out", "lab.", ".db", "../lab.db.x", "lab.d/b", ""] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}
