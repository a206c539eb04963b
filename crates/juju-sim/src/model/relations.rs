//! Integrating applications and taking relations down.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use super::Model;
use super::ModelError;
use super::refuse;
use crate::agent::commit::reap_relations;
use crate::charm::Role;
use crate::state::Life;
use crate::state::Link;
use crate::state::Relation;
use crate::state::Side;

/// A possible pair of endpoints: provider side first.
struct Match {
    provider: Side,
    requirer: Side,
    interface: String,
}

impl Model {
    /// Relates two applications, each given as `app` or `app:endpoint`; returns the relation id. One
    /// of them may be another model's: consumed before, or named by the URL of its offer.
    ///
    /// # Errors
    /// No match, an ambiguous one, an existing relation, an exhausted limit.
    pub fn integrate(&mut self, a: &str, b: &str) -> Result<u32, ModelError> {
        let (a, b) = (self.consumed(a)?, self.consumed(b)?);
        let found = self.matching(&a, &b)?;
        for (side, other) in [
            (&found.provider, &found.requirer),
            (&found.requirer, &found.provider),
        ] {
            self.check_limit(side, other)?;
        }
        let taken = self
            .state
            .relations
            .values()
            .any(|r| r.sides.contains(&found.provider) && r.sides.contains(&found.requirer));
        if taken {
            return refuse(format!(
                "cannot add relation \"{}:{} {}:{}\": relation already exists",
                found.requirer.app,
                found.requirer.endpoint,
                found.provider.app,
                found.provider.endpoint
            ));
        }
        let apps = [found.provider.app.clone(), found.requirer.app.clone()];
        let sides = vec![found.provider, found.requirer];
        if let Some(saas) = apps.iter().find(|app| self.state.saas.contains_key(*app)) {
            return self.link(found.interface, sides, saas);
        }
        let id = self.add_relation(found.interface, sides, None);
        self.save()?;
        Ok(id)
    }

    /// Takes a relation down; its units still run departed and broken.
    ///
    /// # Errors
    /// No such relation.
    pub fn remove_relation(&mut self, a: &str, b: &str) -> Result<(), ModelError> {
        let fits = |side: &Side, text: &str| match text.split_once(':') {
            Some((app, endpoint)) => side.app == app && side.endpoint == endpoint,
            None => side.app == text,
        };
        let found: Vec<u32> = self
            .state
            .relations
            .iter()
            .filter(|(_, r)| match r.sides.as_slice() {
                [x, y] => (fits(x, a) && fits(y, b)) || (fits(x, b) && fits(y, a)),
                _ => false,
            })
            .map(|(id, _)| *id)
            .collect();
        match found.as_slice() {
            [] => refuse(format!("relation \"{a} {b}\" not found")),
            [id] => {
                self.end_relation(*id);
                self.save()
            }
            _ => refuse(format!(
                "more than one relation between {a:?} and {b:?}; name the endpoints"
            )),
        }
    }

    pub(super) fn end_relation(&mut self, id: u32) {
        if let Some(relation) = self.state.relations.get_mut(&id) {
            relation.life = Life::Dying;
        }
        reap_relations(&mut self.state);
    }

    pub(super) fn add_peer_relations(&mut self, app: &str) {
        let Some(application) = self.state.applications.get(app) else {
            return;
        };
        let wanted: Vec<(String, String)> = application
            .charm
            .peers()
            .map(|(name, endpoint)| (name.clone(), endpoint.interface.clone()))
            .collect();
        for (endpoint, interface) in wanted {
            let side = Side {
                app: app.to_owned(),
                endpoint,
                role: Role::Peer,
            };
            if !self
                .state
                .relations
                .values()
                .any(|r| r.sides.contains(&side))
            {
                self.add_relation(interface, vec![side], None);
            }
        }
    }

    /// The name here of what the text names: a URL of an offer is consumed.
    fn consumed(&mut self, text: &str) -> Result<String, ModelError> {
        if Self::is_offer(text) {
            self.consume(text, None)
        } else {
            Ok(text.to_owned())
        }
    }

    pub(super) fn add_relation(
        &mut self,
        interface: String,
        sides: Vec<Side>,
        link: Option<Link>,
    ) -> u32 {
        let id = self.state.next_relation;
        self.state.next_relation += 1;
        let relation = Relation {
            interface,
            sides,
            life: Life::Alive,
            app_bags: BTreeMap::new(),
            unit_bags: BTreeMap::new(),
            scope: BTreeSet::new(),
            link,
        };
        self.state.relations.insert(id, relation);
        id
    }

    fn check_limit(&self, side: &Side, other: &Side) -> Result<(), ModelError> {
        if self.state.saas.contains_key(&side.app) {
            return Ok(());
        }
        let endpoint = &self.alive_app(&side.app)?.charm.endpoints[&side.endpoint];
        let Some(limit) = endpoint.limit else {
            return Ok(());
        };
        let used = self
            .state
            .relations
            .values()
            .filter(|r| r.sides.contains(side))
            .count();
        if used < usize::try_from(limit).unwrap_or(usize::MAX) {
            return Ok(());
        }
        refuse(format!(
            "cannot add relation \"{}:{} {}:{}\": establishing a new relation for {}:{} would \
             exceed its maximum relation limit of {limit} (quota limit exceeded)",
            side.app, side.endpoint, other.app, other.endpoint, side.app, side.endpoint
        ))
    }

    fn matching(&self, a: &str, b: &str) -> Result<Match, ModelError> {
        let (left, right) = (self.candidates(a)?, self.candidates(b)?);
        let mut found = Vec::new();
        for (x, xi) in &left {
            for (y, yi) in &right {
                let (provider, requirer) = match (x.role, y.role) {
                    (Role::Provider, Role::Requirer) => (x, y),
                    (Role::Requirer, Role::Provider) => (y, x),
                    _ => continue,
                };
                if xi == yi && x != y {
                    found.push(Match {
                        provider: provider.clone(),
                        requirer: requirer.clone(),
                        interface: xi.clone(),
                    });
                }
            }
        }
        if found.len() > 1 {
            let options: Vec<String> = found
                .iter()
                .map(|m| {
                    format!(
                        "\"{}:{} {}:{}\"",
                        m.requirer.app, m.requirer.endpoint, m.provider.app, m.provider.endpoint
                    )
                })
                .collect();
            return refuse(format!(
                "ambiguous relation: \"{a} {b}\" could refer to {}",
                options.join("; ")
            ));
        }
        match found.pop() {
            Some(found) if found.provider.app == found.requirer.app => refuse(format!(
                "cannot relate application {:?} to itself",
                found.provider.app
            )),
            Some(found) => Ok(found),
            None => refuse(format!(
                "no relations found: \"{a} {b}\" share no interface"
            )),
        }
    }

    /// Endpoints an `app` or `app:endpoint` can mean, with their interfaces.
    fn candidates(&self, text: &str) -> Result<Vec<(Side, String)>, ModelError> {
        let (app, wanted) = match text.split_once(':') {
            Some((app, endpoint)) => (app, Some(endpoint)),
            None => (text, None),
        };
        let endpoints = match self.state.saas.get(app) {
            Some(saas) => &saas.endpoints,
            None => &self.alive_app(app)?.charm.endpoints,
        };
        if let Some(endpoint) = wanted
            && !endpoints.contains_key(endpoint)
        {
            return refuse(format!("application {app:?} has no {endpoint:?} relation"));
        }
        Ok(endpoints
            .iter()
            .filter(|(name, _)| wanted.is_none_or(|w| w == *name))
            .map(|(name, e)| {
                let side = Side {
                    app: app.to_owned(),
                    endpoint: name.clone(),
                    role: e.role,
                };
                (side, e.interface.clone())
            })
            .collect())
    }
}
