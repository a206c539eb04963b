//! `restart-proxies`: gives every workload the proxy that its injector would give it now.
//!
//! Which workloads are behind is read from the cluster each time, so a run that was cut off is
//! resumed by the next one. A workload is restarted only if a dry run of its pod comes back with a
//! proxy, its budgets allow it and it is whole; everything else is listed for a person. A workload
//! that does not come back ends the run.

mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use juju_charm::{ModelView, Problem, Progress};
use kube_apply::{Engine, Object, Query, Result};
use mesh::restart::{Owner, Proxy, Way, is_rolled_out, probe, proxy, workloads};
use serde_json::Value;
use tokio::time::Instant;

use self::steps::{came_back, evict, held, id, is_of_one_pod, roll};
use super::Report;
use super::params::Params;
use crate::config::{self, RestartProxies};
use crate::surroundings::observe;
use crate::upgrade::images::proxy_image;
use crate::validate::Validated;

/// How long one batch may take.
const PATIENCE: Duration = Duration::from_mins(3);
/// How long an action restarts; it is cut off at nine minutes.
const ACTION: Duration = Duration::from_mins(8);
/// How long a hook waits for what it restarted.
const HOOK: Duration = Duration::from_secs(20);
/// The field manager of the mark by which a workload rolls.
const MANAGER: &str = "istio-k8s/restart-proxies";

/// Which proxies, and how.
#[derive(Debug)]
pub struct Restart {
    namespace: Option<String>,
    /// Only proxies that would come to this revision.
    revision: Option<String>,
    batch: usize,
    dry_run: bool,
    /// Most workloads of one run.
    most: usize,
    /// How long the run may take.
    time: Duration,
    /// In a hook: what the injector of a release gives to pods that ask for nothing else. Who has it
    /// is not tried again in each hook.
    usual: Option<Proxy>,
    in_a_hook: bool,
}

pub(super) fn task(params: Params<'_>) -> Option<Restart> {
    let named = |name| Some(params.text(name).to_owned()).filter(|text| !text.is_empty());
    Some(Restart {
        namespace: named("namespace"),
        revision: named("revision"),
        batch: usize::try_from(params.number("batch", 3)).ok()?.max(1),
        dry_run: params.dry_run(false),
        most: usize::MAX,
        time: ACTION,
        usual: None,
        in_a_hook: false,
    })
}

/// With `restart-proxies=rolling`, each hook of a running control plane restarts a few.
pub(super) fn in_a_hook(view: &ModelView, validated: &Validated) -> Option<Restart> {
    let Validated::Run(installation) = validated else {
        return None;
    };
    let options = config::options(&view.config, &view.context.app).ok()?;
    let revision = installation.settings.revision.label().to_owned();
    let usual = proxy_image(&installation.control_plane).map(|image| Proxy {
        image,
        revision: revision.clone(),
    });
    (options.restart_proxies == RestartProxies::Rolling).then_some(Restart {
        namespace: None,
        revision: Some(revision),
        batch: 2,
        dry_run: false,
        most: 2,
        time: HOOK,
        usual,
        in_a_hook: true,
    })
}

/// A workload that is behind.
struct Behind {
    owner: Owner,
    workload: Object,
    pods: Vec<Value>,
    proxy: Proxy,
}

impl Restart {
    /// Restarts what is behind, or tells what it would restart.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        let end = Instant::now() + self.time;
        let mut person = BTreeMap::new();
        let behind = self.behind(engine, &mut person).await?;
        let mut report = Report::default();
        let lines = |all: &[Behind]| -> String {
            let lines = all.iter().map(|b| {
                let Proxy { image, revision } = &b.proxy;
                format!(
                    "{}: {} pods to {image} of {revision}",
                    b.owner,
                    b.pods.len()
                )
            });
            lines.collect::<Vec<_>>().join("\n")
        };
        report.set("behind", lines(&behind));
        let mut done = 0;
        let mut stopped = None;
        if !self.dry_run {
            let mut left = behind.iter().take(self.most).peekable();
            while left.peek().is_some() && stopped.is_none() {
                if Instant::now() >= end {
                    break;
                }
                let batch: Vec<&Behind> = left.by_ref().take(self.batch).collect();
                stopped = self
                    .batch(engine, &batch, end, progress, &mut person)
                    .await?;
                if stopped.is_none() {
                    done += batch.len();
                }
            }
        }
        let of_a_person: Vec<String> = person
            .iter()
            .map(|(owner, why)| format!("{owner}: {why}"))
            .collect();
        let held = behind
            .iter()
            .filter(|b| person.contains_key(&b.owner))
            .count();
        let restarted = done - held.min(done);
        report.set("restarted", restarted.to_string());
        report.set("remaining", (behind.len() - restarted).to_string());
        report.set("needs-a-person", of_a_person.join("\n"));
        if self.in_a_hook {
            let left = behind.len() - restarted;
            if left > 0 {
                let line = format!("{left} workloads have a proxy that is behind");
                tracing::info!("{line}");
            }
            report.results.clear();
            if let Some(why) = stopped {
                report.problems.push(Problem::waiting(why));
            }
        } else if let Some(why) = stopped {
            report.failure = Some(why);
        }
        Ok(report)
    }

    /// The workloads whose pods have another proxy than they would get now.
    async fn behind(
        &self,
        engine: &Engine,
        person: &mut BTreeMap<Owner, String>,
    ) -> Result<Vec<Behind>> {
        let here = |query: Query| match &self.namespace {
            Some(namespace) => query.in_namespace(namespace),
            None => query,
        };
        let observed = observe(
            engine,
            &[
                here(Query::list("", "Pod")),
                here(Query::list("apps", "ReplicaSet").metadata_only()),
            ],
        )
        .await?;
        let values = |group: &str, kind: &str| -> Vec<Value> {
            observed
                .list(group, kind)
                .map(|o| o.value().clone())
                .collect()
        };
        let (pods, sets) = (values("", "Pod"), values("apps", "ReplicaSet"));
        let mut behind = Vec::new();
        for (owner, pods) in workloads(&pods, &sets) {
            let outdated = |new: &Proxy| {
                let new = Some(new);
                let old = pods.iter().filter(|pod| proxy(pod).as_ref() != new);
                old.map(|pod| (*pod).clone()).collect::<Vec<Value>>()
            };
            if let Way::Person(why) = owner.way() {
                // Whether it is behind cannot be proven: there is no template to try.
                if self.revision.is_none() {
                    person.insert(owner, why.to_owned());
                }
                continue;
            }
            let has_usual = |pod: &&Value| self.usual.is_some() && proxy(pod) == self.usual;
            if pods.iter().all(has_usual) {
                continue;
            }
            let id = id(&owner);
            let Some(workload) = engine.get(&id).await? else {
                continue;
            };
            let tried = Object::new(probe(workload.value()))?;
            let answer = match engine.create(&tried, MANAGER, true).await {
                Ok(answer) => answer,
                Err(error) if is_of_one_pod(&error) => {
                    person.insert(owner, format!("its pod is not admitted: {error}"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let Some(new) = proxy(answer.value()) else {
                person.insert(owner, "a restart would take its sidecar away".to_owned());
                continue;
            };
            let revision = self.revision.as_deref();
            if revision.is_some_and(|wanted| wanted != new.revision) {
                continue;
            }
            let pods = outdated(&new);
            if !pods.is_empty() {
                behind.push(Behind {
                    owner,
                    workload,
                    pods,
                    proxy: new,
                });
            }
        }
        Ok(behind)
    }

    /// Restarts a few workloads at once and waits for all of them. What stops the run, if anything.
    async fn batch(
        &self,
        engine: &Engine,
        batch: &[&Behind],
        end: Instant,
        progress: &dyn Progress,
        person: &mut BTreeMap<Owner, String>,
    ) -> Result<Option<String>> {
        let end = end.min(Instant::now() + PATIENCE);
        let mut waiting = Vec::new();
        for behind in batch {
            let Behind {
                owner,
                workload,
                pods,
                proxy,
            } = behind;
            if !is_rolled_out(workload.value()) {
                person.insert(owner.clone(), "it is not whole; mend it first".to_owned());
                continue;
            }
            if let Some(why) = held(engine, behind).await? {
                person.insert(owner.clone(), why);
                continue;
            }
            progress.say(&format!("restarting {owner} for {}", proxy.image));
            match owner.way() {
                Way::Roll => {
                    roll(engine, owner, proxy).await?;
                    waiting.push(owner);
                }
                Way::Evict => {
                    let why = evict(engine, owner, pods, end).await?;
                    match why {
                        None => waiting.push(owner),
                        Some(why) => {
                            person.insert(owner.clone(), why);
                        }
                    }
                }
                Way::Person(why) => {
                    person.insert(owner.clone(), why.to_owned());
                }
            }
        }
        for owner in waiting {
            if !came_back(engine, owner, end).await? {
                return Ok(Some(format!(
                    "{owner} has not come back, nothing more is restarted"
                )));
            }
        }
        Ok(None)
    }
}
