//! Where a migration stands, in the cluster: a `ConfigMap`, and a Lease of whoever works on it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube_apply::{Error, Object, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::store;
use super::{Clock, Executor, Failure, Stand};
use crate::api::Api;
use crate::inventory::Snapshot;
use crate::plan::Plan;

/// Namespace of everything that is recorded. It stays, with the backup in it.
pub const NAMESPACE: &str = "istio-migration";
const JOURNAL: &str = "journal";
const LEASE: &str = "istio-migrate";
/// How long a Lease lasts without renewal.
const LEASE_SECONDS: i64 = 60;
/// How long before it is renewed.
const RENEW: SignedDuration = SignedDuration::from_secs(15);

/// How far a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing of it is done.
    #[default]
    Pending,
    /// Some of it may be done, or taken back.
    Running,
    /// All of it holds.
    Done,
}

/// The record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Name of the plan.
    pub plan: String,
    /// Steps that are not pending.
    pub steps: BTreeMap<String, State>,
    /// Whether it is being taken back.
    pub back: bool,
    /// Whether it has come to an end.
    pub ended: bool,
    /// Whether a charm's hooks go on with it by themselves.
    #[serde(default)]
    pub auto: bool,
}

impl Journal {
    /// How far a step is.
    pub fn state(&self, step: &str) -> State {
        self.steps.get(step).copied().unwrap_or_default()
    }

    /// Whether there is a record that nobody can read: a migration of which nothing else is known.
    pub fn is_unreadable(&self) -> bool {
        self.plan.is_empty()
    }

    /// Whether nothing is left to do, in the direction that it went last.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// How it has ended, if it has.
    pub(super) fn end(&self) -> Option<Stand> {
        self.ended.then_some(if self.back {
            Stand::RolledBack
        } else {
            Stand::Done
        })
    }

    pub(super) fn set(&mut self, step: &str, state: State) {
        if state == State::Pending {
            self.steps.remove(step);
        } else {
            self.steps.insert(step.to_owned(), state);
        }
    }
}

/// The journal as it was read, and the Lease on it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) journal: Journal,
    /// The journal's live object.
    live: Object,
    lease: Option<Object>,
    renewed: Timestamp,
    /// The backup, read when it is needed first.
    pub(super) backup: Option<Vec<Object>>,
}

fn journal_id() -> ObjectRef {
    ObjectRef::namespaced("v1", "ConfigMap", NAMESPACE, JOURNAL)
}

fn lease_id() -> ObjectRef {
    ObjectRef::namespaced("coordination.k8s.io/v1", "Lease", NAMESPACE, LEASE)
}

/// The journal, and its object.
pub(super) async fn read(api: &impl Api) -> Result<Option<(Journal, Object)>, Failure> {
    let Some(live) = api.get(&journal_id()).await? else {
        return Ok(None);
    };
    let text = live.pointer("/data/journal.json").and_then(Value::as_str);
    let journal = text.and_then(|text| serde_json::from_str::<Journal>(text).ok());
    let journal = journal.filter(|journal| !journal.is_unreadable());
    let journal = journal.ok_or_else(|| Failure::Record {
        what: JOURNAL.to_owned(),
    })?;
    Ok(Some((journal, live)))
}

/// Where a migration stands; none when there was never one. One whose record cannot be read is under
/// way as far as anybody knows.
///
/// # Errors
/// Those of the API server.
pub async fn read_journal(api: &impl Api) -> Result<Option<Journal>, Error> {
    match read(api).await {
        Ok(found) => Ok(found.map(|(journal, _)| journal)),
        Err(Failure::Cluster { source, .. }) => Err(source),
        Err(_) => Ok(Some(Journal::default())),
    }
}

/// Writes `journal` into its object.
fn written(live: &Value, journal: &Journal) -> Result<Object, Failure> {
    let mut value = live.clone();
    let text = serde_json::to_string_pretty(journal).map_err(|_| Failure::Record {
        what: JOURNAL.to_owned(),
    })?;
    value["data"] = json!({"journal.json": text});
    Ok(Object::new(value)?)
}

fn timestamp(time: Timestamp) -> String {
    format!("{time:.6}")
}

impl<A: Api, C: Clock> Executor<'_, A, C> {
    /// Stores plan, backup and, last, an empty journal: before that, nothing has begun.
    pub(super) async fn store(&self, plan: &Plan, snapshot: &Snapshot) -> Result<(), Failure> {
        store::write(self.api, plan, snapshot).await?;
        let journal = Journal {
            plan: plan.id.clone(),
            ..Journal::default()
        };
        if let Some((_, live)) = read(self.api).await? {
            self.api.replace(&written(live.value(), &journal)?).await?;
            return Ok(());
        }
        let empty = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": JOURNAL, "namespace": NAMESPACE},
        });
        self.api.create(&written(&empty, &journal)?, false).await?;
        Ok(())
    }

    /// Takes the Lease and reads plan and journal.
    pub(super) async fn open(&self) -> Result<(Plan, Place), Failure> {
        let Some((journal, live)) = read(self.api).await? else {
            return Err(Failure::Nothing);
        };
        let plan = store::plan(self.api, &journal.plan).await?;
        if plan.id != journal.plan {
            return Err(store::unreadable("plan", &journal.plan));
        }
        let now = self.clock.now();
        let lease = self.take(now).await?;
        let mut place = Place {
            journal,
            live,
            lease: Some(lease),
            renewed: now,
            backup: None,
        };
        // Read again: whoever had the Lease before may have gone on.
        match read(self.api).await {
            Ok(Some((journal, live))) if journal.plan == plan.id => {
                (place.journal, place.live) = (journal, live);
                Ok((plan, place))
            }
            other => {
                self.release(&mut place).await;
                other?;
                Err(store::unreadable("plan", &plan.id))
            }
        }
    }

    pub(super) async fn take(&self, now: Timestamp) -> Result<Object, Failure> {
        let spec = json!({
            "holderIdentity": self.identity, "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": timestamp(now), "renewTime": timestamp(now),
        });
        let Some(live) = self.api.get(&lease_id()).await? else {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": LEASE, "namespace": NAMESPACE}, "spec": spec,
            });
            return Ok(self.api.create(&Object::new(lease)?, false).await?);
        };
        let text = |pointer: &str| {
            live.pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let holder = text("/spec/holderIdentity");
        let renewed: Option<Timestamp> = text("/spec/renewTime").parse().ok();
        let expired = renewed.is_none_or(|renewed| {
            now.duration_since(renewed) > SignedDuration::from_secs(LEASE_SECONDS)
        });
        if !holder.is_empty() && holder != self.identity && !expired {
            return Err(Failure::Busy {
                holder: holder.to_owned(),
            });
        }
        let mut value = live.into_value();
        value["spec"] = spec;
        Ok(self.api.replace(&Object::new(value)?).await?)
    }

    /// Renews the Lease when it is time. Losing it stops us.
    pub(super) async fn renew(&self, place: &mut Place) -> Result<(), Failure> {
        let now = self.clock.now();
        if now.duration_since(place.renewed) < RENEW {
            return Ok(());
        }
        if let Some(lease) = &place.lease {
            let mut value = lease.value().clone();
            value["spec"]["renewTime"] = timestamp(now).into();
            match self.api.replace(&Object::new(value)?).await {
                Ok(lease) => place.lease = Some(lease),
                Err(error) => {
                    // Whoever has taken it is not to lose it by our giving it back.
                    if matches!(error, Error::Raced { .. } | Error::NotFound { .. }) {
                        place.lease = None;
                    }
                    return Err(error.into());
                }
            }
            place.renewed = now;
        }
        Ok(())
    }

    /// Writes the journal. Somebody else's write in between stops us.
    pub(super) async fn save(&self, place: &mut Place) -> Result<(), Failure> {
        let wanted = written(place.live.value(), &place.journal)?;
        place.live = self.api.replace(&wanted).await?;
        Ok(())
    }

    /// Gives the Lease back, so that the next one need not wait for its end.
    pub(super) async fn release(&self, place: &mut Place) {
        if let Some(lease) = place.lease.take() {
            self.give_back(lease).await;
        }
    }

    pub(super) async fn give_back(&self, lease: Object) {
        let mut value = lease.into_value();
        value["spec"]["holderIdentity"] = "".into();
        // A Lease that could not be given back ends by itself.
        let given: Result<Object, Error> = match Object::new(value) {
            Ok(lease) => self.api.replace(&lease).await,
            Err(error) => Err(error),
        };
        if let Err(error) = given {
            tracing::debug!(%error, "the lease ends by itself");
        }
    }
}
