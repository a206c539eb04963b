//! What users would notice while something changes: a request through the gateway and a pod that is
//! only tried, over and over, each in a thread of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use testbed::Api;

use crate::http::get;

/// Pause between two tries of one kind. Two cores bear no more beside a cluster.
const PAUSE: Duration = Duration::from_millis(150);

/// How often something was tried, and what went wrong.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Requests sent.
    pub requests: usize,
    /// Pods tried.
    pub pods: usize,
    /// Requests that failed: seconds since the start, and how.
    pub failed: Vec<String>,
    /// Pods that were denied or got no proxy.
    pub denied: Vec<String>,
    /// The revision that injected each pod, each time another one did.
    pub revisions: Vec<String>,
}

/// The running loops; dropping ends them.
#[derive(Debug)]
pub struct Loops {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ended: AtomicBool,
    began: Instant,
    tally: Mutex<Tally>,
}

impl Shared {
    fn note(&self, note: impl FnOnce(&mut Tally, &str)) {
        let at = format!("{:.1} s", self.began.elapsed().as_secs_f32());
        note(
            &mut self.tally.lock().unwrap_or_else(PoisonError::into_inner),
            &at,
        );
    }
}

impl Loops {
    /// Begins to ask `path` of `host` at the gateway, and to try pods in `namespace`.
    ///
    /// # Errors
    /// A kubeconfig that cannot be read.
    pub fn start(
        kubeconfig: &Path,
        gateway: SocketAddr,
        host: &str,
        path: &str,
        namespace: &str,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            ended: AtomicBool::new(false),
            began: Instant::now(),
            tally: Mutex::default(),
        });
        let api = Api::connect(kubeconfig)?;
        let (host, path, namespace) = (host.to_owned(), path.to_owned(), namespace.to_owned());
        let requests = Arc::clone(&shared);
        let pods = Arc::clone(&shared);
        let threads = vec![
            thread::spawn(move || each(&requests, || request(&requests, gateway, &host, &path))),
            thread::spawn(move || each(&pods, || try_pod(&pods, &api, &namespace))),
        ];
        Ok(Self { shared, threads })
    }

    /// What happened since the last call.
    pub fn take(&self) -> Tally {
        let mut tally = self
            .shared
            .tally
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *tally)
    }

    /// What happened since the last call, if nothing of it went wrong.
    ///
    /// # Errors
    /// A failed request, a denied pod, or nothing tried at all.
    pub fn undisturbed(&self, during: &str) -> Result<Tally> {
        let tally = self.take();
        let Tally {
            requests,
            pods,
            failed,
            denied,
            revisions,
        } = &tally;
        testbed::tell(&format!(
            "{during}: {requests} requests, {} failed; {pods} pods tried, {} denied; injected by {}",
            failed.len(),
            denied.len(),
            revisions.join(", ")
        ));
        ensure!(*requests > 0 && *pods > 0, "{during}: nothing was tried");
        if failed.is_empty() && denied.is_empty() {
            return Ok(tally);
        }
        bail!("{during}: failed {failed:#?}, denied {denied:#?}")
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn each(shared: &Shared, attempt: impl Fn()) {
    while !shared.ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        attempt();
        thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
    }
}

fn request(shared: &Shared, gateway: SocketAddr, host: &str, path: &str) {
    let answer = get(gateway, host, path, &[]);
    shared.note(|tally, at| {
        tally.requests += 1;
        match answer {
            Ok(answer) if answer.status == 200 => {}
            Ok(answer) => tally
                .failed
                .push(format!("{at}: {} {}", answer.status, answer.body)),
            Err(error) => tally.failed.push(format!("{at}: {error:#}")),
        }
    });
}

fn try_pod(shared: &Shared, api: &Api, namespace: &str) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": namespace},
        "spec": {"containers": [{"name": "app", "image": testbed::image::TESTAPP}]},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let answer = api.call(&Method::POST, &path, Some(&pod));
    shared.note(|tally, at| {
        tally.pods += 1;
        match answer.map(|pod| injected_by(&pod)) {
            Ok(Some(revision)) => {
                if tally.revisions.last() != Some(&revision) {
                    tally.revisions.push(revision);
                }
            }
            Ok(None) => tally.denied.push(format!("{at}: no proxy")),
            Err(error) => tally.denied.push(format!("{at}: {error:#}")),
        }
    });
}

/// The revision that gave the pod its proxy, if any did, and the proxy's image tag.
pub fn injected_by(pod: &Value) -> Option<String> {
    let status = pod["metadata"]["annotations"]["sidecar.istio.io/status"].as_str()?;
    let status: Value = serde_json::from_str(status).ok()?;
    let containers = ["initContainers", "containers"]
        .iter()
        .flat_map(|key| pod["spec"][*key].as_array().into_iter().flatten());
    let image = containers
        .filter(|container| container["name"] == "istio-proxy")
        .find_map(|container| container["image"].as_str())?;
    let tag = image.rsplit(':').next().unwrap_or_default();
    Some(format!(
        "{} {tag}",
        status["revision"].as_str().unwrap_or("?")
    ))
}
