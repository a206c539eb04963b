//! Workload containers: when their Pebble answers, and how their checks are.

use juju_hooks::{Event, PebbleEvent, PebbleKind};

use super::{Model, ModelError, refuse};
use crate::pebble::Container;

impl Model {
    /// Starts a unit's container anew, or stops it: its Pebble answers, with nothing in its plan, and
    /// pebble-ready is due; or it does not answer. By itself it comes up with the unit's start.
    ///
    /// # Errors
    /// Unknown unit or container.
    pub fn set_container(
        &mut self,
        unit: &str,
        container: &str,
        up: bool,
    ) -> Result<(), ModelError> {
        let known = self.container(unit, container)?;
        *known = if up {
            Container::started()
        } else {
            Container::default()
        };
        if up {
            self.fire(unit, &event(container, PebbleKind::Ready))
        } else {
            self.save()
        }
    }

    /// Lets a check in a container's plan fail or succeed again; the unit is told what is news.
    ///
    /// # Errors
    /// Unknown unit, container or check.
    pub fn set_check(
        &mut self,
        unit: &str,
        container: &str,
        check: &str,
        healthy: bool,
    ) -> Result<(), ModelError> {
        let known = self.container(unit, container)?;
        if !known.up || !known.has_check(check) {
            return refuse(format!("container {container:?} has no check {check:?}"));
        }
        if !known.set_check(check, healthy) {
            return Ok(());
        }
        let check = check.to_owned();
        let kind = if healthy {
            PebbleKind::CheckRecovered { check }
        } else {
            PebbleKind::CheckFailed { check }
        };
        self.fire(unit, &event(container, kind))
    }

    fn container(&mut self, unit: &str, container: &str) -> Result<&mut Container, ModelError> {
        let Some(found) = self.state.unit_mut(unit) else {
            return refuse(format!("unit {unit:?} not found"));
        };
        match found.containers.get_mut(container) {
            Some(known) => Ok(known),
            None => refuse(format!("unit {unit:?} has no container {container:?}")),
        }
    }
}

fn event(container: &str, kind: PebbleKind) -> Event {
    Event::Pebble(PebbleEvent {
        container: container.to_owned(),
        kind,
    })
}
