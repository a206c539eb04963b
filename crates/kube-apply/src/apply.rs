//! Making it so: stages in order, gates between them, and at the end the pruning.

use istio_api::ObjectRef;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::object::Object;
use crate::owner::Inventory;
use crate::plan::{self, Plan, Verdict};
use crate::prepare::prepare;
use crate::query::Observed;
use crate::set::{Applied, Conflict, ObjectsSet, Stage};
use crate::snapshot::{not_permitted, objects};
use crate::write::{DryRun, Outcome};

/// Whether what is no longer wanted goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prune {
    No,
    Yes,
}

impl Engine {
    /// What [`Engine::apply`] would do. Writes nothing; objects that differ are sent to the server as
    /// a dry run, so that conflicts of field managers and refusals show.
    ///
    /// # Errors
    /// Those of [`Engine::apply`] that a dry run meets.
    pub async fn plan(&self, set: &ObjectsSet) -> Result<Plan> {
        let live = self.snapshot(set).await?;
        let mut plan = plan::plan(set, &live);
        let mut contested = Vec::new();
        for object in objects(set) {
            let id = object.id();
            if !plan.change.iter().any(|change| change.object == id) {
                continue;
            }
            let prepared = prepare(object, &set.inventory);
            let adopt = live.find(&id).is_some_and(|live| !set.inventory.owns(live));
            let outcome = self.write(&prepared, &set.inventory, adopt, DryRun::Yes);
            if let Outcome::Conflict(conflict) = outcome.await? {
                contested.push(conflict);
            }
        }
        plan.change
            .retain(|change| !contested.iter().any(|c| c.object == change.object));
        if !contested.is_empty() {
            plan.prune.clear();
        }
        plan.conflict.extend(contested);
        Ok(plan)
    }

    /// Makes the cluster as the set says: applies what differs, stage by stage, waits for gates, and
    /// prunes when everything has been applied.
    ///
    /// * An object that is as desired is not written, not even as a dry run.
    /// * An object that somebody else owns, and fields that a controller manages, are left alone and
    ///   reported. Edits by people (`kubectl`) are overruled.
    /// * Of a set that is `whole` nothing is written while there is an object that somebody else owns.
    /// * Nothing is pruned while there is a conflict or a gate that does not hold. Namespaces and CRDs
    ///   are never deleted; existing Namespaces are never changed.
    ///
    /// The call may be cut off anywhere: the next one completes it.
    ///
    /// # Errors
    /// The first write that fails ends the run. [`Error::NotServed`] when an object's kind is neither
    /// installed nor in an earlier stage.
    pub async fn apply(&self, set: &ObjectsSet) -> Result<Applied> {
        self.bring_about(set, Prune::Yes).await
    }

    /// The same without pruning: for a part of an inventory that has to prove itself before the rest
    /// follows.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub async fn apply_unpruned(&self, set: &ObjectsSet) -> Result<Applied> {
        self.bring_about(set, Prune::No).await
    }

    async fn bring_about(&self, set: &ObjectsSet, prune: Prune) -> Result<Applied> {
        let mut live = self.snapshot(set).await?;
        let mut applied = Applied {
            not_permitted: not_permitted(&live),
            ..Applied::default()
        };
        if set.whole {
            applied.conflicts = plan::plan(set, &live).conflict;
            if !applied.conflicts.is_empty() {
                return Ok(applied);
            }
        }
        let mut budget = set.wait;
        for stage in &set.stages {
            self.apply_stage(stage, &set.inventory, &mut live, &mut applied)
                .await?;
            for gate in &stage.gate {
                let pending = self.wait_for(*gate, stage, &mut live, &mut budget).await?;
                if let Some(pending) = pending {
                    tracing::info!(stage = stage.name, "{pending}");
                    applied.pending = Some(pending);
                    return Ok(applied);
                }
            }
        }
        // What replaces something gets its chance to come up before the replaced goes.
        for stage in &set.stages {
            for gate in &stage.advisory {
                let pending = self.wait_for(*gate, stage, &mut live, &mut budget).await?;
                applied.advisory.extend(pending);
            }
        }
        if applied.conflicts.is_empty() && prune == Prune::Yes {
            self.prune(set, &live, &mut applied).await?;
        }
        Ok(applied)
    }

    async fn apply_stage(
        &self,
        stage: &Stage,
        inventory: &Inventory,
        live: &mut Observed,
        applied: &mut Applied,
    ) -> Result<()> {
        let mut objects: Vec<&Object> = stage.objects.iter().collect();
        objects.sort_by_cached_key(|object| plan::order(object));
        for object in objects {
            let prepared = prepare(object, inventory);
            let id = prepared.id();
            let adopt = match plan::verdict(&prepared, live.find(&id), inventory) {
                Verdict::Keep => {
                    applied.unchanged += 1;
                    continue;
                }
                Verdict::Conflict { owner } => {
                    applied.conflicts.push(Conflict {
                        object: id,
                        owner,
                        fields: Vec::new(),
                    });
                    continue;
                }
                Verdict::Terminating => {
                    return Err(Error::Terminating {
                        object: Box::new(id),
                    });
                }
                Verdict::Create => false,
                Verdict::Change { fields: _, adopt } => adopt,
            };
            match self.write(&prepared, inventory, adopt, DryRun::No).await? {
                Outcome::Written(written) => {
                    tracing::info!("applied {id}");
                    live.insert(*written);
                    applied.written.push(id);
                }
                Outcome::Conflict(conflict) => {
                    tracing::warn!("{conflict}");
                    applied.conflicts.push(conflict);
                }
            }
        }
        Ok(())
    }

    async fn prune(&self, set: &ObjectsSet, live: &Observed, applied: &mut Applied) -> Result<()> {
        let wanted: Vec<ObjectRef> = objects(set)
            .map(Object::id)
            .chain(set.retain.iter().cloned())
            .collect();
        let is_wanted = |id: &ObjectRef| wanted.iter().any(|wanted| wanted.same_object(id));
        for object in plan::prunable(live, &set.inventory, is_wanted) {
            let id = object.id();
            match self.delete_exactly(object).await {
                Ok(()) => {
                    tracing::info!("pruned {id}");
                    applied.pruned.push(id);
                }
                // Somebody was faster, or it is another object of the same name by now.
                Err(Error::NotFound { .. } | Error::Raced { .. }) => {}
                Err(Error::Forbidden { resource, .. }) => {
                    if !applied.not_permitted.contains(&resource) {
                        applied.not_permitted.push(resource);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        applied.not_permitted.sort();
        Ok(())
    }
}
