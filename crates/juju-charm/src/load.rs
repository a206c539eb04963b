//! Step 2: one pass over the hook tools, each asked once for each answer.

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{
    Bag, Context, Databag, EndpointName, Event, HookTools, RelationEvent, RelationId, RelationKey,
    RelationKind, Result, SecretId, SecretRef, SecretRevision, UnitName,
};

use crate::clock::Clock;
use crate::metadata::{Endpoint, Metadata, OptionKind, ResourceKind, Role};
use crate::view::{ActionCall, Config, ModelView, RelationView};

impl ModelView {
    /// Reads the model. Secrets named by config options are read too.
    ///
    /// The planned units are asked for in `remove` only, where the last hook has to know that it is
    /// the last. Questions that do not need each other's answers are put together.
    ///
    /// Remote data Juju no longer gives out counts as empty; a relation that vanishes while it is
    /// read is left out; everything else that fails is an error.
    pub fn load(
        context: Context,
        metadata: &Metadata,
        tools: &dyn HookTools,
        clock: &dyn Clock,
    ) -> Result<Self> {
        let now = clock.now();
        let endpoints: Vec<&EndpointName> = metadata.endpoints.keys().collect();
        let opening = tools.opening(&endpoints, context.event == Event::Remove);
        let config = Config::new(opening.config?);
        let leader = opening.leader?;
        let planned_units = match opening.goal {
            Some(goal) => goal?.planned_units(),
            None => 1,
        };
        let reader = Reader {
            context: &context,
            tools,
            leader,
        };
        let relations = reader.relations(metadata, opening.relations)?;
        let mut resources = BTreeMap::new();
        for (name, kind) in &metadata.resources {
            if *kind == ResourceKind::File {
                let file = tools.resource_get(name).map_err(|error| error.to_string());
                resources.insert(name.clone(), file);
            }
        }
        let action = match &context.event {
            Event::Action(call) => Some(ActionCall {
                name: call.name.clone(),
                params: tools.action_get()?,
            }),
            _ => None,
        };
        let mut view = Self {
            context,
            config,
            leader,
            planned_units,
            relations,
            resources,
            secrets: BTreeMap::new(),
            action,
            now,
        };
        let options = metadata.options.iter();
        let named = options.filter(|(_, option)| option.kind == Some(OptionKind::Secret));
        let ids: Vec<SecretId> = named
            .filter_map(|(name, _)| view.config.secret(name))
            .collect();
        view.load_secrets(ids, tools);
        Ok(view)
    }

    /// Reads the latest revision of secrets not read yet.
    pub(crate) fn load_secrets(
        &mut self,
        ids: impl IntoIterator<Item = SecretId>,
        tools: &dyn HookTools,
    ) {
        for id in ids {
            self.secrets.entry(id).or_insert_with_key(|id| {
                let secret = SecretRef::Id(id.clone());
                tools
                    .secret_get(&secret, SecretRevision::Refresh)
                    .map_err(|e| e.to_string())
            });
        }
    }
}

struct Reader<'a> {
    context: &'a Context,
    tools: &'a dyn HookTools,
    leader: bool,
}

/// A relation while it is read.
struct Draft {
    key: RelationKey,
    view: RelationView,
    peers: bool,
    units: Vec<UnitName>,
}

/// Where a databag goes.
enum Place {
    LocalApp,
    LocalUnit,
    RemoteApp,
    RemoteUnit(UnitName),
}

impl Reader<'_> {
    /// All relations, by endpoint and number; those that vanish meanwhile are left out.
    fn relations(
        &self,
        metadata: &Metadata,
        listed: Vec<Result<Vec<RelationId>>>,
    ) -> Result<Vec<RelationView>> {
        let mut drafts = Vec::new();
        for ((name, endpoint), ids) in metadata.endpoints.iter().zip(listed) {
            let event = self.event().filter(|event| event.endpoint == *name);
            // Some agents leave the relation being broken out of the list, some do not.
            let ids: BTreeSet<_> = ids?
                .into_iter()
                .chain(event.map(|event| event.id))
                .collect();
            drafts.extend(ids.into_iter().map(|id| self.draft(id.on(name), endpoint)));
        }
        let drafts = self.with_members(drafts)?;
        self.with_data(drafts)
    }

    fn event(&self) -> Option<&RelationEvent> {
        self.context.event.relation()
    }

    fn draft(&self, key: RelationKey, endpoint: &Endpoint) -> Draft {
        let event = self.event().filter(|event| event.key() == key);
        let mut view = RelationView::new(key.endpoint.clone(), &endpoint.interface, key.id);
        view.broken = event.is_some_and(|event| event.kind == RelationKind::Broken);
        // The hook's own word on the remote application holds for its own relation only.
        view.remote_app = event.and_then(|event| event.remote_app.clone());
        Draft {
            key,
            view,
            peers: endpoint.role == Role::Peers,
            units: Vec::new(),
        }
    }

    fn with_members(&self, drafts: Vec<Draft>) -> Result<Vec<Draft>> {
        let keys: Vec<&RelationKey> = drafts.iter().map(|draft| &draft.key).collect();
        let lists = self.tools.relation_lists(&keys);
        let mut known = Vec::with_capacity(drafts.len());
        for (mut draft, units) in drafts.into_iter().zip(lists) {
            let units = if draft.view.broken {
                gone_as_empty(units)
            } else {
                units
            };
            let Some(units) = there(&draft.key, units)? else {
                continue;
            };
            draft.units = units;
            if draft.view.remote_app.is_none() {
                draft.view.remote_app = if draft.peers {
                    Some(self.context.app.clone())
                } else if let Some(unit) = draft.units.first() {
                    Some(unit.app().clone())
                } else {
                    gone_as_empty(self.tools.relation_app(&draft.key))?
                };
            }
            known.push(draft);
        }
        Ok(known)
    }

    fn with_data(&self, drafts: Vec<Draft>) -> Result<Vec<RelationView>> {
        let places: Vec<Vec<(Place, Bag)>> = drafts.iter().map(|d| self.places(d)).collect();
        let wanted: Vec<(&RelationKey, Bag)> = drafts
            .iter()
            .zip(&places)
            .flat_map(|(draft, bags)| bags.iter().map(|(_, bag)| (&draft.key, bag.clone())))
            .collect();
        let mut answers = self.tools.relation_gets(&wanted).into_iter();
        drop(wanted);
        let mut views = Vec::with_capacity(drafts.len());
        for (draft, places) in drafts.into_iter().zip(places) {
            let answers: Vec<_> = answers.by_ref().take(places.len()).collect();
            let key = draft.key.clone();
            let filled = filled(
                draft,
                places.into_iter().map(|(place, _)| place).zip(answers),
            );
            views.extend(there(&key, filled)?);
        }
        Ok(views)
    }

    /// The databags this unit may read.
    fn places(&self, draft: &Draft) -> Vec<(Place, Bag)> {
        let mut places: Vec<(Place, Bag)> = draft
            .units
            .iter()
            .map(|unit| (Place::RemoteUnit(unit.clone()), Bag::Unit(unit.clone())))
            .collect();
        if self.leader || draft.peers {
            places.push((Place::LocalApp, Bag::App(self.context.app.clone())));
        }
        if let Some(app) = draft.view.remote_app.clone().filter(|_| !draft.peers) {
            places.push((Place::RemoteApp, Bag::App(app)));
        }
        places.push((Place::LocalUnit, Bag::Unit(self.context.unit.clone())));
        places
    }
}

fn filled(
    draft: Draft,
    answers: impl Iterator<Item = (Place, Result<Databag>)>,
) -> Result<RelationView> {
    let Draft {
        mut view, peers, ..
    } = draft;
    for (place, answer) in answers {
        match place {
            Place::LocalUnit if !view.broken => view.local_unit_data = answer?,
            Place::LocalUnit => view.local_unit_data = gone_as_empty(answer)?,
            Place::LocalApp => view.local_app_data = gone_as_empty(answer)?,
            Place::RemoteApp => view.remote_app_data = gone_as_empty(answer)?,
            Place::RemoteUnit(unit) => {
                view.remote_units.insert(unit, gone_as_empty(answer)?);
            }
        }
    }
    if peers {
        view.remote_app_data = view.local_app_data.clone();
    }
    Ok(view)
}

/// `None` if the relation is gone.
fn there<T>(key: &RelationKey, answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_found() => {
            tracing::debug!("relation {key} is gone: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What Juju no longer gives out counts as empty.
fn gone_as_empty<T: Default>(answer: Result<T>) -> Result<T> {
    match answer {
        Err(error) if error.is_access() || error.is_not_found() => {
            tracing::debug!("counts as empty: {error}");
            Ok(T::default())
        }
        answer => answer,
    }
}
