//! Waiting for gates, within one budget.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::Result;
use crate::gate;
use crate::query::{Observed, Query};
use crate::set::{Gate, PendingGate, Stage};

const FIRST_POLL: Duration = Duration::from_millis(250);
const LONGEST_POLL: Duration = Duration::from_secs(2);

impl Engine {
    /// Waits until the gate holds or the budget is used up, and takes the time from the budget. A
    /// gate that holds already costs no request.
    pub(crate) async fn wait_for(
        &self,
        gate: Gate,
        stage: &Stage,
        live: &mut Observed,
        budget: &mut Duration,
    ) -> Result<Option<PendingGate>> {
        let started = Instant::now();
        let mut pause = FIRST_POLL;
        loop {
            let served = self.served().await?;
            let Some(what) = gate::pending(gate, &stage.objects, live, &served) else {
                *budget = budget.saturating_sub(started.elapsed());
                return Ok(None);
            };
            let left = budget.saturating_sub(started.elapsed());
            if left.is_zero() {
                *budget = Duration::ZERO;
                return Ok(Some(PendingGate {
                    stage: stage.name.clone(),
                    gate,
                    what,
                }));
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_POLL);
            self.look_again(gate, stage, live).await?;
        }
    }

    /// Reads again what a gate looks at.
    async fn look_again(&self, gate: Gate, stage: &Stage, live: &mut Observed) -> Result<()> {
        if gate == Gate::CrdEstablished {
            self.discover().await?;
            return Ok(());
        }
        let queries: Vec<Query> = stage
            .objects
            .iter()
            .filter(|object| gate::concerns(gate, object))
            .map(|object| {
                Query::get(
                    object.group(),
                    object.kind(),
                    object.namespace(),
                    object.name(),
                )
            })
            .collect();
        for object in self.observe(&queries).await?.objects() {
            live.insert(object.clone());
        }
        Ok(())
    }
}
