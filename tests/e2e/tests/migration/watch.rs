//! Looks at injection and validation several times a second, all the way through.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use http::Method;
use kube_apply::Object;
use migration::webhooks;
use serde_json::{Value, json};
use testbed::Api;

use crate::pilot::Lab;

const PAUSE: Duration = Duration::from_millis(250);
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    looks: u64,
    probes: u64,
    /// Cut off by an istiod that ended just then, as any rollout of it may, and well the second time.
    cut: u64,
    refused: u64,
    bare: u64,
    invalid_accepted: u64,
    wrong: Vec<String>,
}

impl Seen {
    pub(crate) fn nothing_failed(&self) -> Result<()> {
        ensure!(self.probes > 100, "{} probes only", self.probes);
        ensure!(self.wrong.is_empty(), "{:#?}", self.wrong);
        ensure!(self.refused == 0 && self.bare == 0, "{self}");
        ensure!(self.invalid_accepted == 0, "{self}");
        Ok(())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "injection probes {}: {} cut off by an ending istiod, {} refused, {} without a sidecar; \
             invalid objects accepted {}; looks at the injectors {}: {} with two or none",
            self.probes,
            self.cut,
            self.refused,
            self.bare,
            self.invalid_accepted,
            self.looks,
            self.wrong.len()
        )
    }
}

/// A running watch.
pub(crate) struct Watch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watch {
    pub(crate) fn start(lab: &Lab) -> Result<Self> {
        let api = Api::connect(&lab.kubeconfig())?;
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let first = injectors(&api)?;
        let thread = thread::spawn(move || {
            let mut seen = Seen::default();
            let begun = webhooks::injectors(&first, &[]);
            while !until.load(Ordering::Relaxed) {
                look(&api, &begun, &mut seen);
                thread::sleep(PAUSE);
            }
            seen
        });
        Ok(Self { ended, thread })
    }

    pub(crate) fn stop(self) -> Result<Seen> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the watch ended early"))
    }
}

type Injectors =
    std::collections::BTreeMap<webhooks::Permutation, std::collections::BTreeSet<String>>;

fn look(api: &Api, begun: &Injectors, seen: &mut Seen) {
    if let Ok(now) = injectors(api) {
        seen.looks += 1;
        let now = webhooks::injectors(&now, &[]);
        let wrong = webhooks::regressions(begun, &now);
        if seen.wrong.len() < 20 {
            seen.wrong.extend(wrong);
        }
    }
    seen.probes += 1;
    let mut tried = try_pod(api);
    if tried.as_ref().is_err_and(is_cut) {
        seen.cut += 1;
        tried = try_pod(api);
    }
    match tried {
        Ok(tried) if tried["spec"].to_string().contains("istio-proxy") => {}
        Ok(_) => seen.bare += 1,
        Err(error) => {
            seen.refused += 1;
            if seen.refused < 5 {
                println!("a pod was refused: {error:#}");
            }
        }
    }
    let invalid = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "invalid", "namespace": "probe-lab"},
        "spec": {"hosts": ["a"], "http": [{"route": [{"destination": {"host": "a"}, "weight": 50},
                                                      {"destination": {"host": "b"}, "weight": -7}]}]},
    });
    let path = "/apis/networking.istio.io/v1/namespaces/probe-lab/virtualservices?dryRun=All";
    if api.call(&Method::POST, path, Some(&invalid)).is_ok() {
        seen.invalid_accepted += 1;
    }
}

fn is_cut(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("failed to call webhook")
        && (text.contains("connection reset by peer") || text.contains(": EOF"))
}

fn try_pod(api: &Api) -> Result<Value> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "probe-lab"},
        "spec": {"containers": [{"name": "main", "image": "probe"}]},
    });
    let path = "/api/v1/namespaces/probe-lab/pods?dryRun=All";
    api.call(&Method::POST, path, Some(&pod))
}

fn injectors(api: &Api) -> Result<Vec<Object>> {
    let list = api.get(CONFIGURATIONS)?;
    let items = list["items"].as_array().into_iter().flatten().cloned();
    let objects = items.map(|mut item: Value| {
        item["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        item["kind"] = "MutatingWebhookConfiguration".into();
        Object::new(item)
    });
    Ok(objects.collect::<Result<_, _>>()?)
}
