//! The charm's one place that does I/O: reads the payload's file and talks to the API server.

use juju_charm::{EffectError, Effects, Problem, Progress};
use juju_hooks::{AppName, Context};
use kube_apply::{Advice, Applied, Connect, Engine, Error, Note, Object, Observed, Plan, Remedy};
use mesh::proxy_status;

use crate::desired::NEW_TAGS;
use crate::observe::{Proxies, Query, View};
use crate::surroundings;
use crate::tasks;
use crate::upgrade::choice::{Chosen, choose, is_due};
use crate::upgrade::flow::Trouble;
use crate::upgrade::record;
use crate::upgrade::target::Fleet;
use crate::work::{Done, Objects, Work};

/// istiod's plaintext debug port. It answers a caller on its own loopback address without a token,
/// and a port-forward is one.
const DEBUG_PORT: u16 = 15014;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The cluster, as this charm sees it.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) engine: Engine,
    pub(crate) app: AppName,
}

/// Connects to the API server that Juju names.
///
/// # Errors
/// No API server in the environment, or unreadable credentials.
pub fn connect(context: &Context) -> Result<Cluster, ClusterError> {
    let app = &context.app;
    let connected = match &context.kubernetes {
        Some((host, port)) => Engine::connect(&Connect::in_cluster(host, *port)),
        None => Err(Error::Config {
            reason: "Juju names no Kubernetes API server".to_owned(),
        }),
    };
    match connected {
        Ok(engine) => Ok(Cluster::new(engine, app.clone())),
        Err(source) => Err(ClusterError::Kubernetes {
            app: app.clone(),
            source,
        }),
    }
}

/// What can go wrong with the cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The API server does not do what is asked.
    #[error("the cluster does not do what application {app} asks")]
    Kubernetes {
        /// The application, for the command that mends it.
        app: AppName,
        /// What went wrong.
        source: Error,
    },
    /// An upgrade did not succeed.
    #[error(transparent)]
    Upgrade(#[from] Trouble),
}

impl EffectError for ClusterError {
    fn problem(&self) -> Option<Problem> {
        let (app, source) = match self {
            Self::Kubernetes { app, source } => (app, source),
            Self::Upgrade(trouble) => return Some(trouble.problem()),
        };
        let Advice { message, remedy } = source.advice()?;
        let problem = match remedy {
            Remedy::Wait => Problem::waiting(message),
            Remedy::Act => Problem::blocked(message),
            Remedy::Permit => {
                Problem::blocked(message).with_hint(format!("juju trust {app} --scope=cluster"))
            }
        };
        Some(problem)
    }
}

/// The application lacks a right in the cluster.
pub fn not_permitted(app: &AppName, verb: &str, resource: &str) -> Problem {
    Problem::blocked(format!("not permitted to {verb} {resource}"))
        .with_hint(format!("juju trust {app} --scope=cluster"))
}

impl Effects for Cluster {
    type Applied = Applied;
    type Error = ClusterError;
    type Objects = Objects;
    type Plan = Plan;
    type Work = Work;
    type Done = Done;
    type Query = Query;
    type View = View;

    async fn observe(&self, query: Query) -> Result<View, ClusterError> {
        let records = format!("{},{}", query.inventory.selector(), record::LABEL);
        let observed = self
            .read(&[
                kube_apply::Query::list(ADMISSION, "MutatingWebhookConfiguration"),
                kube_apply::Query::list(ADMISSION, "ValidatingWebhookConfiguration"),
                kube_apply::Query::list("apps", "Deployment").with_labels("app=istiod"),
                kube_apply::Query::list("", "Secret").with_labels(&records),
            ])
            .await?;
        let list = |group, kind| -> Vec<Object> { observed.list(group, kind).cloned().collect() };
        let mutating = list(ADMISSION, "MutatingWebhookConfiguration");
        let istiods = list("apps", "Deployment");
        let fleet = Fleet::of(&query.inventory, &istiods, &list("", "Secret"), &mutating);
        let Chosen {
            release,
            target,
            goal,
        } = choose(&query, &fleet);
        let mut view = View {
            release,
            mutating,
            validating: list(ADMISSION, "ValidatingWebhookConfiguration"),
            istiods,
            proxies: None,
            namespace: query.wish.namespace.clone(),
            fleet,
            target,
            goal,
            facts: None,
            surroundings: surroundings::Surroundings::default(),
            migration: self.migration().await?,
        };
        let rendered = view
            .release
            .as_ref()
            .and_then(|release| release.as_ref().ok());
        let rendered = rendered.map(|release| &release.control_plane);
        let owns = |object: &Object| query.inventory.owns(object);
        let read = surroundings::read(&self.engine, &query.surroundings, rendered, owns).await;
        view.surroundings = read.map_err(|source| self.failed(source))?;
        let due = is_due(&view);
        if query.proxies || query.facts || due {
            view.proxies = Some(self.proxies().await?);
        }
        if query.facts || due {
            view.facts = Some(self.facts(&view).await?);
        }
        Ok(view)
    }

    async fn apply(&self, objects: Objects) -> Result<Applied, ClusterError> {
        self.bring_about(&objects, &|line| tracing::info!("{line}"))
            .await
    }

    async fn plan(&self, objects: Objects) -> Result<Plan, ClusterError> {
        // A tag that comes parked first is still one object.
        let mut set = objects.set;
        set.stages.retain(|stage| stage.name != NEW_TAGS);
        let plan = self.engine.plan(&set).await;
        let mut plan = plan.map_err(|source| self.failed(source))?;
        if objects.partial {
            plan.prune.clear();
        }
        Ok(plan)
    }

    async fn work(&self, work: Work, progress: &dyn Progress) -> Result<Done, ClusterError> {
        match work {
            Work::Reconcile(objects) => {
                let applied = self
                    .bring_about(&objects, &|line| progress.say(line))
                    .await?;
                Ok(Done::Reconciled(Box::new(applied)))
            }
            Work::Tasks(tasks) => {
                let report = tasks::run(&self.engine, tasks, progress).await;
                let report = report.map_err(|source| self.failed(source))?;
                Ok(Done::Report(Box::new(report)))
            }
        }
    }
}

impl Cluster {
    /// The cluster behind an engine, for the application `app`.
    pub const fn new(engine: Engine, app: AppName) -> Self {
        Self { engine, app }
    }

    /// Where a migration stands.
    async fn migration(&self) -> Result<Option<migration::execute::Journal>, ClusterError> {
        let journal = migration::execute::read_journal(&self.engine).await;
        journal.map_err(|source| self.failed(source))
    }

    async fn bring_about(
        &self,
        objects: &Objects,
        say: &dyn Fn(&str),
    ) -> Result<Applied, ClusterError> {
        if objects.aside {
            return Ok(Applied::default());
        }
        if let Some(replacement) = &objects.replacement {
            return self.replace(&objects.set, replacement, say).await;
        }
        let applied = if objects.partial {
            self.engine.apply_unpruned(&objects.set).await
        } else {
            self.engine.apply(&objects.set).await
        };
        applied.map_err(|source| self.failed(source))
    }

    /// The error with the application that it happens to.
    pub(crate) fn failed(&self, source: Error) -> ClusterError {
        ClusterError::Kubernetes {
            app: self.app.clone(),
            source,
        }
    }

    /// Reads what the decisions rest on. What may not be read is not the same as nothing: taken for
    /// nothing, another Istio would be overlooked.
    pub(crate) async fn read(
        &self,
        queries: &[kube_apply::Query],
    ) -> Result<Observed, ClusterError> {
        let observed = self.engine.observe(queries).await;
        let observed = observed.map_err(|source| self.failed(source))?;
        let refusal = observed.notes().find_map(|note| match note {
            Note::Forbidden { verb, resource } => Some(Error::Forbidden {
                verb: verb.clone(),
                resource: resource.clone(),
                message: String::new(),
            }),
            Note::NotInstalled { .. } => None,
        });
        match refusal {
            Some(refusal) => Err(self.failed(refusal)),
            None => Ok(observed),
        }
    }

    /// Asks every istiod for the proxies it serves. One that does not answer costs only its line.
    async fn proxies(&self) -> Result<Proxies, ClusterError> {
        let query = kube_apply::Query::list("", "Pod").with_labels("app=istiod");
        let observed = self.read(&[query]).await?;
        let mut out = Proxies::default();
        for pod in observed.list("", "Pod") {
            let (name, namespace) = (pod.name(), pod.namespace().unwrap_or_default());
            let istiod = format!("{name}.{namespace}");
            let revision = pod.label("istio.io/rev").unwrap_or("default");
            let answer = self
                .engine
                .forwarded_get(namespace, name, DEBUG_PORT, "/debug/syncz")
                .await;
            let parsed = match answer {
                Ok((200, body)) => {
                    proxy_status::parse(&istiod, revision, &body).map_err(|e| e.to_string())
                }
                Ok((status, _)) => Err(format!("istiod {istiod} answered {status}")),
                Err(error) => Err(format!("istiod {istiod} cannot be asked: {error}")),
            };
            match parsed {
                Ok(lines) => out.proxies.extend(lines),
                Err(failure) => out.failures.push(failure),
            }
        }
        out.proxies.sort();
        Ok(out)
    }
}
