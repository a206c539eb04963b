//! Taking units and applications down, resolving errors, coming back after a kill.

use std::fs;

use super::Model;
use super::ModelError;
use super::refuse;
use super::tag;
use crate::agent::commit::reap_relations;
use crate::agent::environment::SOCKET_VARIABLE;
use crate::agent::process;
use crate::hook::Hook;
use crate::state::Life;
use crate::state::Resolution;
use crate::state::split_unit;
use crate::store::access;

impl Model {
    /// Takes an application down: its relations end, its units run their last hooks.
    ///
    /// # Errors
    /// Unknown application.
    pub fn remove_application(&mut self, app: &str, force: bool) -> Result<(), ModelError> {
        let application = self.app_mut(app)?;
        application.life = Life::Dying;
        for unit in application.units.values_mut() {
            unit.life = Life::Dying;
            unit.force |= force;
        }
        let related: Vec<u32> = self
            .state
            .relations
            .iter()
            .filter(|(_, r)| r.side(app).is_some())
            .map(|(id, _)| *id)
            .collect();
        for id in related {
            self.end_relation(id);
        }
        self.reap()?;
        self.save()
    }

    /// Takes the `count` highest units of an application down.
    ///
    /// # Errors
    /// Unknown application, or fewer units than asked for.
    pub fn remove_units(&mut self, app: &str, count: u32, force: bool) -> Result<(), ModelError> {
        self.alive_app(app)?;
        let application = self.app_mut(app)?;
        let alive = application
            .units
            .values()
            .filter(|u| u.life == Life::Alive)
            .count();
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        if wanted > alive {
            return refuse(format!(
                "cannot remove {count} units of {app:?}: it has only {alive}"
            ));
        }
        let highest = application
            .units
            .values_mut()
            .rev()
            .filter(|u| u.life == Life::Alive)
            .take(wanted);
        for unit in highest {
            unit.life = Life::Dying;
            unit.force |= force;
        }
        self.save()
    }

    /// Replaces a unit's pod, as a node drain does: stop (unless `killed`), then with an empty
    /// charm directory upgrade-charm, config-changed, start.
    ///
    /// # Errors
    /// Unknown unit.
    pub fn restart_unit(&mut self, unit: &str, killed: bool) -> Result<(), ModelError> {
        let Some(found) = self.state.unit_mut(unit) else {
            return refuse(format!("unit {unit:?} not found"));
        };
        found.uniter.restart = found.uniter.installed;
        found.uniter.stopped |= killed;
        self.save()
    }

    /// Resolves a unit's error: run the failed hook again, or count it as done.
    ///
    /// # Errors
    /// Unknown unit, no error.
    pub fn resolve(&mut self, unit: &str, retry: bool) -> Result<(), ModelError> {
        let Some(found) = self.state.unit_mut(unit) else {
            return refuse(format!("unit {unit:?} not found"));
        };
        let Some(error) = &mut found.uniter.error else {
            return refuse(format!("unit {unit:?} is not in an error state"));
        };
        error.resolved = Some(if retry {
            Resolution::Retry
        } else {
            Resolution::NoRetry
        });
        self.save()
    }

    /// Removes a unit whose last hook ran.
    pub(crate) fn vanish(&mut self, unit: &str) -> Result<(), ModelError> {
        let Some((app, number)) = split_unit(unit) else {
            return Ok(());
        };
        if let Some(application) = self.state.applications.get_mut(app) {
            application.units.remove(&number);
            if application.leader == Some(number) {
                application.leader = None;
            }
        }
        self.elect();
        for relation in self.state.relations.values_mut() {
            relation.scope.remove(unit);
        }
        for task in self.state.tasks.values_mut() {
            if task.unit == unit && task.status == "pending" {
                "cancelled".clone_into(&mut task.status);
                "unit removed".clone_into(&mut task.message);
            }
        }
        for secret in self.state.secrets.values_mut() {
            secret.consumers.remove(unit);
        }
        self.state
            .secrets
            .retain(|_, s| s.owner != format!("unit:{unit}"));
        reap_relations(&mut self.state);
        let dir = self.agent_dir(unit);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(access(&dir))?;
        }
        self.reap()
    }

    /// Gives every application without a leader one: its lowest unit that is alive, else its lowest.
    pub(super) fn elect(&mut self) {
        for application in self.state.applications.values_mut() {
            if application.leader.is_none() {
                let alive = application
                    .units
                    .iter()
                    .find(|(_, u)| u.life == Life::Alive);
                let chosen = alive.or_else(|| application.units.iter().next());
                application.leader = chosen.map(|(lowest, _)| *lowest);
            }
        }
    }

    /// Removes dying applications that have neither units nor relations left.
    pub(crate) fn reap(&mut self) -> Result<(), ModelError> {
        let over: Vec<String> = self
            .state
            .applications
            .iter()
            .filter(|(name, app)| {
                app.life == Life::Dying
                    && app.units.is_empty()
                    && !self
                        .state
                        .relations
                        .values()
                        .any(|r| r.side(name).is_some())
            })
            .map(|(name, _)| name.clone())
            .collect();
        for app in over {
            self.cloud.remove(&self.state.name, &app)?;
            self.credentials.remove(&app);
            self.state.applications.remove(&app);
            self.state
                .secrets
                .retain(|_, s| s.owner != format!("application:{app}"));
        }
        Ok(())
    }

    /// Cleans up behind a killed simulator: the process left over is killed, its hook is queued
    /// again, its action has failed and is not run again.
    pub(super) fn recover(&mut self) {
        for name in self.state.unit_names() {
            let Some(unit) = self.state.unit_mut(&name) else {
                continue;
            };
            let Some(hook) = unit.uniter.running.take() else {
                continue;
            };
            match hook {
                Hook::Task(id) => {
                    if let Some(task) = self.state.tasks.get_mut(&id) {
                        "failed".clone_into(&mut task.status);
                        "action terminated".clone_into(&mut task.message);
                    }
                }
                // A hook that is retried after an error is found again through that error.
                hook => {
                    if unit.uniter.error.is_none() {
                        unit.uniter.queued = Some(hook);
                    }
                }
            }
            let logger = "juju.worker.uniter";
            process::kill_leftovers(&format!("{SOCKET_VARIABLE}={}", self.socket(&name)));
            self.log(
                &name,
                super::Level::Info,
                logger,
                &format!("{} resumed", tag(&name)),
            );
        }
    }
}
