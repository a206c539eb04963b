//! The order in which an upgrade is proven, written and judged.
//!
//! 1. Both images are pulled by a pod that ends at once; nothing is written before that.
//! 2. The stages up to the webhooks are applied, nothing is pruned. A rollout that cannot go on is
//!    found out while it is waited for.
//! 3. A pod is tried (server-side dry run): readiness says nothing about the injector's templates.
//! 4. Everything is applied, the record of what runs now last.
//!
//! Where 2 or 3 fails, the objects of the record are applied again: templates before istiod.

use std::time::Duration;

use juju_charm::Problem;
use kube_apply::{Applied, Delete, Error, Gate, Object, ObjectRef, ObjectsSet, PendingGate, Query};
use mesh::Revision;
use mesh::upgrade::{Rollout, rollout};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::images::{self, Pulled};
use super::proof::{self, Injection};
use super::record::{self, Failed};
use crate::cluster::{Cluster, ClusterError};
use crate::desired::{NEW_TAGS, RECORD};

/// How long one hook waits for images and rollouts.
const BUDGET: Duration = Duration::from_secs(90);
/// How long a rollout is waited for before its pods are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How long the roll-back waits; the next hook waits on.
const ROLL_BACK: Duration = Duration::from_secs(20);
/// How long the injector may take to follow its templates and its webhooks.
const SETTLE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(500);
/// The field manager of pods that prove something.
const MANAGER: &str = "istio-k8s/proof";

/// An upgrade on its way.
#[derive(Debug)]
pub struct Replacement {
    /// The version that comes.
    pub version: String,
    /// Digest of what comes, see [`record::digest`].
    pub digest: String,
    /// The stages that are judged before the rest is applied.
    pub judged: ObjectsSet,
    /// The pod that pulls the images, where there are new ones.
    pub pulling: Option<Value>,
    /// The revision whose injector shows beforehand whether injection works at all.
    pub control: Option<Revision>,
    /// The revision whose injector is tried, and the image that it is to give; none while it is not
    /// to inject.
    pub injects: Option<(Revision, Option<String>)>,
    /// Namespace of istiod, where a pod is tried first.
    pub namespace: String,
    /// Name of istiod's Deployment.
    pub istiod: Option<ObjectRef>,
    /// What ran before; its record comes first.
    pub fallback: Option<Fallback>,
}

/// What is returned to.
#[derive(Debug)]
pub struct Fallback {
    /// Its version.
    pub version: String,
    /// Its objects.
    pub set: ObjectsSet,
}

/// How an upgrade ends that does not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// An image cannot be had; nothing was written.
    #[error("{0}: nothing was changed")]
    Image(String),
    /// The images are not there yet; nothing was written.
    #[error("pulling the images of Istio {0}: {1}")]
    Pulling(String, String),
    /// What came did not run, and what ran before was put back.
    #[error("Istio {version} failed ({why}), {before} serves")]
    RolledBack {
        /// What came.
        version: String,
        /// Why it did not run.
        why: String,
        /// What runs.
        before: String,
    },
    /// What came did not run, and what ran before is not back yet; the next hook goes on.
    #[error("Istio {version} failed ({why}), {before} comes back: {what}")]
    RollingBack {
        /// What came.
        version: String,
        /// Why it did not run.
        why: String,
        /// What is put back.
        before: String,
        /// What is waited for, or what stands in the way.
        what: String,
    },
    /// What came did not run, and there is nothing to return to.
    #[error("Istio {version} failed: {why}")]
    Failed {
        /// What came.
        version: String,
        /// Why.
        why: String,
    },
}

impl Trouble {
    /// As a status says it.
    pub fn problem(&self) -> Problem {
        match self {
            Self::Pulling(..) | Self::RollingBack { .. } => Problem::waiting(self.to_string()),
            Self::Image(_) | Self::RolledBack { .. } | Self::Failed { .. } => {
                Problem::blocked(self.to_string())
            }
        }
    }
}

impl Cluster {
    /// Brings about a replacement and everything after it.
    ///
    /// # Errors
    /// Those of the engine, and [`Trouble`].
    pub async fn replace(
        &self,
        set: &ObjectsSet,
        replacement: &Replacement,
        say: &dyn Fn(&str),
    ) -> Result<Applied, ClusterError> {
        let end = Instant::now() + BUDGET;
        if let Some(pod) = &replacement.pulling {
            say("pulling the images");
            self.pull(pod, &replacement.version, end).await?;
        }
        say(&format!("bringing up Istio {}", replacement.version));
        // Where injection is broken already, what comes may well be the cure.
        let works = match &replacement.control {
            Some(revision) => self.tried(&replacement.namespace, revision, None).await?,
            None => Injection::Right,
        };
        let judged = match self.bring_up(replacement, end).await? {
            Risen::Up if matches!(works, Injection::Wrong(_)) => Ok(()),
            Risen::Up => self.judged(replacement).await?,
            Risen::Pending(applied) => return Ok(*applied),
            Risen::Failed(why) => Err(why),
        };
        if let Err(why) = judged {
            say(&format!("it fails: {why}"));
            return Err(self.roll_back(replacement, why).await?.into());
        }
        say("the rest follows");
        let mut all = set.clone();
        all.stages.retain(|stage| stage.name != NEW_TAGS);
        all.wait = all
            .wait
            .min(end.saturating_duration_since(Instant::now()).max(LOOK));
        self.engine.apply(&all).await.map_err(|e| self.failed(e))
    }

    /// Waits until both images were pulled once.
    async fn pull(&self, pod: &Value, version: &str, end: Instant) -> Result<(), ClusterError> {
        let wanted = Object::new(pod.clone()).map_err(|e| self.failed(e))?;
        let id = wanted.id();
        loop {
            let live = self.engine.get(&id).await.map_err(|e| self.failed(e))?;
            let verdict = match &live {
                None => match self.engine.create(&wanted, MANAGER, false).await {
                    Ok(_) | Err(Error::Raced { .. }) => Pulled::Waiting("begun".to_owned()),
                    // A quota or a policy that keeps this pod out says nothing about the images.
                    Err(
                        error @ (Error::Forbidden { .. }
                        | Error::Denied { .. }
                        | Error::Invalid { .. }
                        | Error::WebhookUnavailable { .. }),
                    ) => Pulled::Unknown(error.to_string()),
                    Err(error) => return Err(self.failed(error)),
                },
                Some(live) if live.is_terminating() => Pulled::Waiting("ending".to_owned()),
                Some(live) if !images::pulls_the_same(live, pod) => {
                    self.end_pod(&id).await?;
                    Pulled::Waiting("begun".to_owned())
                }
                Some(live) => images::pulled(live),
            };
            match verdict {
                Pulled::Yes => return self.end_pod(&id).await,
                Pulled::Unknown(why) => {
                    tracing::warn!("whether the images can be pulled is not known: {why}");
                    return self.end_pod(&id).await;
                }
                Pulled::No(why) => {
                    self.end_pod(&id).await?;
                    return Err(Trouble::Image(why).into());
                }
                Pulled::Waiting(what) if Instant::now() >= end => {
                    return Err(Trouble::Pulling(version.to_owned(), what).into());
                }
                Pulled::Waiting(_) => sleep(PAUSE).await,
            }
        }
    }

    async fn end_pod(&self, id: &ObjectRef) -> Result<(), ClusterError> {
        let gone = self.engine.delete(id, &Delete::default()).await;
        gone.map(drop).map_err(|e| self.failed(e))
    }

    /// Applies the judged stages, a slice of the budget at a time, and looks at the pods in between.
    async fn bring_up(&self, of: &Replacement, end: Instant) -> Result<Risen, ClusterError> {
        loop {
            let mut set = of.judged.clone();
            let left = end.saturating_duration_since(Instant::now());
            set.wait = left.min(LOOK);
            let applied = self.engine.apply_unpruned(&set).await;
            let applied = applied.map_err(|e| self.failed(e))?;
            let Some(pending) = &applied.pending else {
                return Ok(if applied.conflicts.is_empty() {
                    Risen::Up
                } else {
                    Risen::Pending(Box::new(applied))
                });
            };
            if let Some(why) = self.stuck(of, pending).await? {
                return Ok(Risen::Failed(why));
            }
            if left.is_zero() {
                return Ok(Risen::Pending(Box::new(applied)));
            }
        }
    }

    /// Why the rollout that is waited for does not go on, if it does not.
    async fn stuck(
        &self,
        of: &Replacement,
        pending: &PendingGate,
    ) -> Result<Option<String>, ClusterError> {
        let Some(istiod) = of
            .istiod
            .as_ref()
            .filter(|_| pending.gate == Gate::RolledOut)
        else {
            return Ok(None);
        };
        let Some(deployment) = self.engine.get(istiod).await.map_err(|e| self.failed(e))? else {
            return Ok(None);
        };
        let query = Query::list("", "Pod")
            .in_namespace(&of.namespace)
            .with_labels("app=istiod");
        let observed = self.read(&[query]).await?;
        let pods: Vec<Value> = observed
            .list("", "Pod")
            .map(|pod| pod.value().clone())
            .collect();
        Ok(match rollout::rollout(deployment.value(), &pods) {
            Rollout::Failed(why) => Some(why),
            Rollout::Done | Rollout::Going => None,
        })
    }

    /// Tries a pod until the injector does right, or has had its time.
    async fn judged(&self, of: &Replacement) -> Result<Result<(), String>, ClusterError> {
        let Some((revision, image)) = &of.injects else {
            return Ok(Ok(()));
        };
        let end = Instant::now() + SETTLE;
        loop {
            let tried = self.tried(&of.namespace, revision, image.as_deref());
            match tried.await? {
                Injection::Right => return Ok(Ok(())),
                Injection::Unknown(why) => {
                    tracing::warn!("the tried pod says nothing about injection: {why}");
                    return Ok(Ok(()));
                }
                Injection::Wrong(why) if Instant::now() >= end => return Ok(Err(why)),
                Injection::Wrong(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Tries one pod: what the injector of the revision makes of it.
    async fn tried(
        &self,
        first: &str,
        revision: &Revision,
        image: Option<&str>,
    ) -> Result<Injection, ClusterError> {
        let namespaces = self.read(&[Query::list("", "Namespace")]).await?;
        let namespaces = namespaces.list("", "Namespace");
        let Some(namespace) = proof::quiet_namespace(namespaces, first) else {
            let why = "every namespace names an injector".to_owned();
            return Ok(Injection::Unknown(why));
        };
        let pod =
            Object::new(proof::tried_pod(&namespace, revision)).map_err(|e| self.failed(e))?;
        let answer = match self.engine.create(&pod, MANAGER, true).await {
            Ok(pod) => Ok(pod),
            Err(
                Error::Forbidden { message, .. }
                | Error::Denied { message, .. }
                | Error::Invalid { message, .. }
                | Error::WebhookUnavailable { message, .. }
                | Error::Server { message, .. },
            ) => Err(message),
            Err(error) => return Err(self.failed(error)),
        };
        let answer = answer.as_ref().map_err(String::as_str);
        Ok(proof::judge(answer, revision, image))
    }

    /// Puts back what ran before, and notes first that it is to stay.
    async fn roll_back(&self, of: &Replacement, why: String) -> Result<Trouble, ClusterError> {
        let version = of.version.clone();
        let Some(Fallback {
            version: before,
            set,
        }) = &of.fallback
        else {
            return Ok(Trouble::Failed { version, why });
        };
        let mut set = set.clone();
        set.wait = ROLL_BACK;
        let failed = Failed {
            digest: of.digest.clone(),
            version: version.clone(),
            why: why.clone(),
        };
        let stages = set.stages.iter_mut();
        let noted = stages
            .filter(|stage| stage.name == RECORD)
            .flat_map(|stage| &mut stage.objects);
        noted.for_each(|record| record::mark(record, &failed));
        let applied = self.engine.apply(&set).await;
        let applied = applied.map_err(|e| self.failed(e))?;
        let before = before.clone();
        Ok(match unfinished(&applied) {
            Some(what) => Trouble::RollingBack {
                version,
                why,
                before,
                what,
            },
            None => Trouble::RolledBack {
                version,
                why,
                before,
            },
        })
    }
}

/// What keeps applied objects from being in force.
pub fn unfinished(applied: &Applied) -> Option<String> {
    let conflict = applied.conflicts.first().map(ToString::to_string);
    conflict.or_else(|| applied.pending.as_ref().map(|pending| pending.what.clone()))
}

/// How far the judged stages have come.
enum Risen {
    /// Every gate holds.
    Up,
    /// Not yet, or not without a person.
    Pending(Box<Applied>),
    /// It does not go on by itself.
    Failed(String),
}
