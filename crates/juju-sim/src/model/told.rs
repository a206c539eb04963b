//! Hooks that follow from what the simulator does not itself play: secrets that fall due, storage,
//! Pebble, metrics. A test says that they are due; the agent runs them in their turn.

use std::collections::BTreeMap;

use juju_hooks::{
    Context, Event, ModelName, ModelUuid, SecretKind, StorageForm, StorageKind, UnitName,
};

use super::{Model, ModelError, refuse};
use crate::hook::{Hook, Told};
use crate::state::{StorageSeen, split_unit};

/// Variables that belong to one of these hooks.
const VARIABLES: [&str; 6] = [
    "JUJU_SECRET_",
    "JUJU_STORAGE_",
    "JUJU_WORKLOAD_NAME",
    "JUJU_NOTICE_",
    "JUJU_PEBBLE_",
    "JUJU_TARGET_",
];

impl Model {
    /// Makes a hook due on a unit that is about a secret of its own, storage, a workload
    /// container, or of which Juju tells nothing but the name. It runs once the unit is installed,
    /// before config-changed and relation hooks. For an application's secret it is skipped unless
    /// the unit still leads in its turn.
    ///
    /// # Errors
    /// An unknown unit; an event that the agent itself makes from the model's state.
    pub fn fire(&mut self, unit: &str, event: &Event) -> Result<(), ModelError> {
        let own = matches!(
            event,
            Event::Storage(_)
                | Event::Pebble(_)
                | Event::LeaderSettingsChanged
                | Event::CollectMetrics
                | Event::MeterStatusChanged
                | Event::PreSeriesUpgrade
                | Event::PostSeriesUpgrade
                | Event::Unknown(_)
        ) || matches!(event, Event::Secret(secret) if secret.kind != SecretKind::Changed);
        if !own {
            return refuse(format!("{event} is the agent's own business"));
        }
        let leader_only = match event {
            Event::Secret(secret) => {
                let known = self.state.secrets.get(secret.id.xid());
                known.is_some_and(|secret| secret.owner.starts_with("application:"))
            }
            _ => false,
        };
        let told = Told {
            name: event.name(),
            vars: self.variables_of(unit, event)?,
            leader_only,
        };
        let dying_needs_none = *event == Event::LeaderSettingsChanged;
        let Some(found) = self.state.unit_mut(unit) else {
            return refuse(format!("unit {unit:?} not found"));
        };
        // A dying unit is told no settings of a leader it will not follow.
        if dying_needs_none && found.life == crate::state::Life::Dying {
            return Ok(());
        }
        if let Event::Storage(storage) = event
            && storage.kind == StorageKind::Attached
        {
            let seen = StorageSeen {
                kind: storage
                    .form
                    .unwrap_or(StorageForm::Filesystem)
                    .as_str()
                    .to_owned(),
                location: storage.location.clone().unwrap_or_default(),
            };
            let id = format!("{}/{}", storage.name, storage.index);
            found.uniter.storage.insert(id, seen);
        }
        found.uniter.due.push(Hook::Told(told));
        self.save()
    }

    fn variables_of(
        &self,
        unit: &str,
        event: &Event,
    ) -> Result<BTreeMap<String, String>, ModelError> {
        let parts = split_unit(unit).is_some().then(|| {
            let unit: UnitName = unit.parse().ok()?;
            let model = ModelName::new(self.state.name.as_str()).ok()?;
            let uuid = ModelUuid::new(self.state.uuid.as_str()).ok()?;
            Some(Context::new(event.clone(), unit, model, uuid))
        });
        let Some(context) = parts.flatten() else {
            return refuse(format!("invalid unit name {unit:?}"));
        };
        let mut vars = context.to_vars();
        vars.retain(|name, _| VARIABLES.iter().any(|prefix| name.starts_with(prefix)));
        Ok(vars)
    }
}
