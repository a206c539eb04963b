//! Step 2: one pass over the hook tools, each asked once for each answer.

use std::collections::{BTreeMap, BTreeSet};

use juju_hooks::{
    Bag, Context, Databag, EndpointName, Event, HookTools, RelationEvent, RelationKey,
    RelationKind, Result, SecretId, SecretRef, SecretRevision,
};

use crate::clock::Clock;
use crate::metadata::{Endpoint, Metadata, OptionKind, ResourceKind, Role};
use crate::view::{ActionCall, Config, ModelView, RelationView};

impl ModelView {
    /// Reads the model. Secrets named by config options are read too.
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
        let config = Config::new(tools.config_get()?);
        let leader = tools.is_leader()?;
        let planned_units = tools.goal_state()?.planned_units();
        let mut relations = Vec::new();
        for (name, endpoint) in &metadata.endpoints {
            let reader = Reader {
                context: &context,
                tools,
                name,
                endpoint,
                leader,
            };
            relations.extend(reader.relations()?);
        }
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
    name: &'a EndpointName,
    endpoint: &'a Endpoint,
    leader: bool,
}

impl Reader<'_> {
    fn relations(&self) -> Result<Vec<RelationView>> {
        let event = self
            .context
            .event
            .relation()
            .filter(|event| event.endpoint == *self.name);
        let listed = self.tools.relation_ids(self.name)?;
        // Some agents leave the relation being broken out of the list, some do not.
        let ids: BTreeSet<_> = listed
            .into_iter()
            .chain(event.map(|event| event.id))
            .collect();
        let mut relations = Vec::new();
        for id in ids {
            let event = event.filter(|event| event.id == id);
            match self.relation(&id.on(self.name), event) {
                Ok(relation) => relations.push(relation),
                Err(error) if error.is_not_found() => {
                    tracing::debug!("relation {}:{id} is gone: {error}", self.name);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(relations)
    }

    fn relation(&self, key: &RelationKey, event: Option<&RelationEvent>) -> Result<RelationView> {
        let (tools, context) = (self.tools, self.context);
        let peers = self.endpoint.role == Role::Peers;
        let broken = event.is_some_and(|event| event.kind == RelationKind::Broken);
        let mut view = RelationView::new(key.endpoint.clone(), &self.endpoint.interface, key.id);
        view.broken = broken;
        let units = if broken {
            gone_as_empty(tools.relation_list(key))?
        } else {
            tools.relation_list(key)?
        };
        // The hook's own word on the remote application holds for its own relation only.
        view.remote_app = match event.and_then(|event| event.remote_app.clone()) {
            Some(app) => Some(app),
            None if peers => Some(context.app.clone()),
            None => match units.first() {
                Some(unit) => Some(unit.app().clone()),
                None => gone_as_empty(tools.relation_app(key))?,
            },
        };
        for unit in units {
            let data = gone_as_empty(tools.relation_get(key, &Bag::Unit(unit.clone())))?;
            view.remote_units.insert(unit, data);
        }
        let own_app = |readable: bool| -> Result<Databag> {
            if readable {
                gone_as_empty(tools.relation_get(key, &Bag::App(context.app.clone())))
            } else {
                Ok(Databag::new())
            }
        };
        view.local_app_data = own_app(self.leader || peers)?;
        view.remote_app_data = match &view.remote_app {
            _ if peers => view.local_app_data.clone(),
            Some(app) => gone_as_empty(tools.relation_get(key, &Bag::App(app.clone())))?,
            None => Databag::new(),
        };
        let own_unit = tools.relation_get(key, &Bag::Unit(context.unit.clone()));
        view.local_unit_data = if broken {
            gone_as_empty(own_unit)?
        } else {
            own_unit?
        };
        Ok(view)
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
