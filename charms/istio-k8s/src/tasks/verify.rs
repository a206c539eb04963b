//! `verify`: proves injection, mutual TLS, routing and denial by a workload in a namespace of its own.
//!
//! The namespace goes whatever happens: at the end, and if this was killed, at the beginning of the
//! next run.

use std::time::Duration;

use juju_charm::{ModelView, Progress};
use kube_apply::{Delete, Engine, Object, ObjectRef, Result};
use mesh::restart::proxy;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::Report;
use super::params::Params;
use super::verify_objects::{CHECKS, Check, SCRATCH, Workload};
use crate::config;

const MANAGER: &str = "istio-k8s/verify";
const POLL: Duration = Duration::from_secs(1);
/// How long the proof may take; the rest of an action's nine minutes is for cleaning up.
const PROOF: Duration = Duration::from_mins(6);
/// How long one expectation may take to come true: configuration has to reach every proxy.
const CHECK: Duration = Duration::from_mins(2);
/// How long the namespace may take to go.
const CLEANING: Duration = Duration::from_mins(1);

/// What to prove, and with which images.
#[derive(Debug)]
pub struct Verify {
    workload: Workload,
}

pub(super) fn task(view: &ModelView, params: Params<'_>) -> Option<Verify> {
    let words = |name| -> Vec<String> {
        let words = params.text(name).split_whitespace();
        words.map(str::to_owned).collect()
    };
    let own = config::options(&view.config, &view.context.app);
    let own = own.map(|options| options.settings.revision.label().to_owned());
    let revision = match params.text("revision") {
        "" => own.unwrap_or_else(|_| "default".to_owned()),
        named => named.to_owned(),
    };
    let client_command = words("client-command");
    if client_command.is_empty() {
        return None;
    }
    Some(Verify {
        workload: Workload {
            namespace: format!("{}-verify", view.context.app),
            revision,
            server_image: params.text("server-image").to_owned(),
            server_args: words("server-args"),
            client_image: params.text("client-image").to_owned(),
            client_command,
        },
    })
}

/// What a check came to.
type Verdict = std::result::Result<(), String>;

impl Verify {
    /// Installs the workload, asks, and removes it.
    pub(super) async fn run(self, engine: &Engine, progress: &dyn Progress) -> Result<Report> {
        if let Some(why) = self.clean(engine).await? {
            return Ok(Report::failed(why));
        }
        let mut report = Report::default();
        let proof = timeout(PROOF, self.prove(engine, progress, &mut report)).await;
        let cleaned = self.clean(engine).await;
        match proof {
            Ok(Ok(Ok(()))) => report.set("verified", "injection, mtls, routing, denial"),
            Ok(Ok(Err(why))) => report.failure = Some(format!("the mesh is not proven: {why}")),
            Ok(Err(error)) => return Err(error),
            Err(_) => report.failure = Some("the mesh is not proven in time".to_owned()),
        }
        if let Some(why) = cleaned? {
            report.set("left-behind", why);
        }
        Ok(report)
    }

    async fn prove(
        &self,
        engine: &Engine,
        progress: &dyn Progress,
        report: &mut Report,
    ) -> Result<Verdict> {
        let objects = std::iter::once(self.workload.namespace_object());
        for object in objects.chain(self.workload.objects()) {
            engine.create(&Object::new(object)?, MANAGER, false).await?;
        }
        progress.say("the workload is installed");
        let server = self.injected(engine).await?;
        report.set("injection", word(&server));
        if let Err(why) = server {
            return Ok(Err(format!("injection: {why}")));
        }
        progress.say("injection: passed");
        for check in &CHECKS {
            let verdict = self.check(engine, check).await?;
            report.set(check.name, word(&verdict));
            if let Err(why) = verdict {
                return Ok(Err(format!("{}: {why}", check.name)));
            }
            progress.say(&format!("{}: passed: {}", check.name, check.what));
        }
        Ok(Ok(()))
    }

    /// Waits for the server and looks for its sidecar.
    async fn injected(&self, engine: &Engine) -> Result<Verdict> {
        let end = Instant::now() + CHECK;
        let id = self.pod("server");
        loop {
            let Some(pod) = engine.get(&id).await? else {
                return Ok(Err("the server is gone".to_owned()));
            };
            if proxy(pod.value()).is_none() {
                let revision = &self.workload.revision;
                return Ok(Err(format!("no injector takes revision {revision}")));
            }
            if is_ready(pod.value()) {
                return Ok(Ok(()));
            }
            if Instant::now() >= end {
                return Ok(Err(format!(
                    "the server is not ready: {}",
                    waits_for(pod.value())
                )));
            }
            sleep(POLL).await;
        }
    }

    /// Asks again and again until the answer is the expected one.
    async fn check(&self, engine: &Engine, check: &Check) -> Result<Verdict> {
        let end = Instant::now() + CHECK;
        for attempt in 0_usize.. {
            let pod = Object::new(self.workload.client(check, attempt))?;
            engine.create(&pod, MANAGER, false).await?;
            let code = self.exit_code(engine, &pod.id(), end).await?;
            engine.delete(&pod.id(), &Delete::default()).await?;
            match code {
                Ok(code) if (code == 0) == check.answered => return Ok(Ok(())),
                Ok(_) if Instant::now() < end => sleep(POLL).await,
                Ok(0) => return Ok(Err(format!("not so: {}", check.what))),
                Ok(code) => return Ok(Err(format!("exit code {code}, not so: {}", check.what))),
                Err(why) => return Ok(Err(why)),
            }
        }
        Ok(Err("never tried".to_owned()))
    }

    /// The client's exit code; its sidecar may live on.
    async fn exit_code(
        &self,
        engine: &Engine,
        id: &ObjectRef,
        end: Instant,
    ) -> Result<std::result::Result<i64, String>> {
        loop {
            let Some(pod) = engine.get(id).await? else {
                return Ok(Err("the client is gone".to_owned()));
            };
            let statuses = pod.pointer("/status/containerStatuses");
            let statuses = statuses.and_then(Value::as_array).into_iter().flatten();
            let client = statuses
                .into_iter()
                .find(|status| status["name"] == "client");
            let code = client.and_then(|status| status["state"]["terminated"]["exitCode"].as_i64());
            if let Some(code) = code {
                return Ok(Ok(code));
            }
            if Instant::now() >= end {
                return Ok(Err(format!(
                    "the client does not end: {}",
                    waits_for(pod.value())
                )));
            }
            sleep(POLL).await;
        }
    }

    /// Deletes the namespace, if it is ours, and waits for its end. Why it is still there, if it is.
    async fn clean(&self, engine: &Engine) -> Result<Option<String>> {
        let name = &self.workload.namespace;
        let id = ObjectRef::new("v1", "Namespace", None, name);
        let end = Instant::now() + CLEANING;
        let mut deleted = false;
        loop {
            let Some(namespace) = engine.get(&id).await? else {
                return Ok(None);
            };
            if namespace.label(SCRATCH).is_none() {
                return Ok(Some(format!("namespace {name} is somebody else's")));
            }
            if !deleted {
                engine.delete(&id, &Delete::default()).await?;
                deleted = true;
            }
            if Instant::now() >= end {
                return Ok(Some(format!("namespace {name} is still going")));
            }
            sleep(POLL).await;
        }
    }

    fn pod(&self, name: &str) -> ObjectRef {
        ObjectRef::namespaced("v1", "Pod", &self.workload.namespace, name)
    }
}

fn word(verdict: &Verdict) -> String {
    match verdict {
        Ok(()) => "passed".to_owned(),
        Err(why) => format!("failed: {why}"),
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The reason for which a container waits, or the pod's phase.
fn waits_for(pod: &Value) -> String {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut statuses = lists
        .iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten();
    let reason = statuses.find_map(|status| status["state"]["waiting"]["reason"].as_str());
    let phase = pod["status"]["phase"].as_str();
    reason.or(phase).unwrap_or("nothing is known").to_owned()
}
