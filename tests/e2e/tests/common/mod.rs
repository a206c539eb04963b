//! The packed charm on a real API server whose pods are played, and a played istiod.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::print_stdout,
    reason = "test support; each test file uses its own part"
)]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::lab::{pack, program};
use e2e::listing::collections;
use e2e::{Juju, Lab};
use http::Method;
use juju_sim::clock::SystemClock;
use juju_sim::{Model, Options};
use serde_json::Value;
use testbed::audit::{Entry, Mark, writes};
use testbed::{Api, Beside, ControlPlane, RealCloud, V1_31};

/// The model, and with it the namespace of the applications.
pub const MODEL: &str = "lab";
/// The application.
pub const APP: &str = "mesh";
/// Namespace of istiod.
pub const NAMESPACE: &str = "istio-lab";
/// What a running application says.
pub const ACTIVE: &str = "active: Istio 1.31.0 in istio-lab";

const WEBHOOKS: [&str; 2] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];

/// A cluster of its own and a model on it.
#[derive(Debug)]
pub struct Bench {
    // Ended before the cluster that it plays on.
    _istiod: PlayedIstiod,
    pub juju: Juju,
    pub api: Api,
    pub cluster: ControlPlane,
    dir: PathBuf,
}

impl Bench {
    pub fn up() -> Result<Self> {
        pack()?;
        let cluster = ControlPlane::up(Beside::Pods, &mut |step| println!("testbed: {step}"))?;
        // Beside the cluster's own files, so that both go together.
        let dir = cluster.kubeconfig().with_file_name("juju");
        fs::create_dir_all(&dir)?;
        let kubeconfig = cluster.kubeconfig().to_owned();
        let juju = Juju::new(program("testbed-juju")?, dir.join("data"), kubeconfig);
        juju.run(&["add-model", MODEL])?;
        Ok(Self {
            _istiod: PlayedIstiod::start(cluster.api()?),
            juju,
            api: cluster.api()?,
            cluster,
            dir,
        })
    }

    /// `juju deploy` of the packed charm with a namespace of its own and no gateway, and more.
    pub fn deploy(&self, more: &[&str]) -> Result<()> {
        let charm = Lab::charm("istio-k8s");
        let namespace = format!("namespace={NAMESPACE}");
        let mut args = vec![
            "deploy",
            &charm,
            APP,
            "--config",
            "gateways=",
            "--config",
            &namespace,
        ];
        args.extend(more);
        self.juju.run(&args).map(drop)
    }

    /// A deployed, trusted application that is active.
    pub fn running() -> Result<Self> {
        let bench = Self::up()?;
        bench.deploy(&["--trust", "--resource", &release()?])?;
        bench.juju.wait_status(APP, ACTIVE)?;
        Ok(bench)
    }

    /// The model's agents as one process that lives on, as real ones do: they know their pod's
    /// account whether or not the API server answers. No command works on the model meanwhile.
    pub fn agents(&self) -> Result<Model> {
        let dir = self.dir.join("data/models").join(MODEL);
        let cloud = RealCloud::connect(self.cluster.kubeconfig())?;
        let options = Options {
            jujuc: Some(program("jujuc")?),
            ..Options::default()
        };
        Ok(Model::open(
            &dir,
            Arc::new(cloud),
            Arc::new(SystemClock),
            options,
        )?)
    }

    /// Writes a file for the command line and gives its path.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let path = self.dir.join(name);
        fs::write(&path, bytes)?;
        Ok(path.display().to_string())
    }

    /// Runs `juju ARGS`, waits for a status that starts with `status` and has all of `says`, and
    /// gives it.
    pub fn told(&self, args: &[&str], status: &str, says: &[&str]) -> Result<String> {
        if !args.is_empty() {
            self.juju.run(args)?;
        }
        let found = self.juju.wait_status(APP, status)?;
        for part in says {
            ensure!(found.contains(part), "{found:?} does not say {part:?}");
        }
        Ok(found)
    }

    pub fn mark(&self) -> Result<Mark> {
        self.cluster.audit().mark(&self.api)
    }

    /// What the application asked the API server since.
    pub fn asked(&self, since: Mark) -> Result<Vec<Entry>> {
        self.mark()?;
        let entries = self.cluster.audit().since(since)?;
        Ok(entries
            .into_iter()
            .filter(|entry| entry.is_by(MODEL, APP))
            .collect())
    }

    /// The application has written nothing since.
    #[track_caller]
    pub fn wrote_nothing(&self, since: Mark) -> Result<()> {
        let entries = self.asked(since)?;
        let writes = writes(&entries);
        ensure!(writes.is_empty(), "{APP} wrote {writes:#?}");
        Ok(())
    }

    /// Everything that carries the charm's label, as `resource namespace/name`.
    pub fn owned(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for path in collections(&self.api)? {
            let selector = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Distio-k8s";
            let list = self.api.get(&format!("{path}?{selector}"))?;
            let resource = path.rsplit('/').next().unwrap_or_default();
            for item in list["items"].as_array().into_iter().flatten() {
                let metadata = &item["metadata"];
                let namespace = metadata["namespace"].as_str().unwrap_or("-");
                let name = metadata["name"].as_str().unwrap_or_default();
                found.push(format!("{resource} {namespace}/{name}"));
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

/// The release as `--resource` and `attach-resource` take it.
pub fn release() -> Result<String> {
    Ok(format!("istio-release={}", V1_31.payload()?.display()))
}

/// Does to the webhooks what istiod does: gives each its CA. No istiod runs where pods are played.
#[derive(Debug)]
struct PlayedIstiod {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PlayedIstiod {
    fn start(api: Api) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                for plural in WEBHOOKS {
                    // Away or changed meanwhile: the next round sees it again, as istiod would.
                    let _ = sign(&api, plural);
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        Self {
            ended,
            thread: Some(thread),
        }
    }
}

impl Drop for PlayedIstiod {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn sign(api: &Api, plural: &str) -> Result<()> {
    let base = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let mut list = api.get(&base)?;
    for object in list["items"].as_array_mut().into_iter().flatten() {
        let name = object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let mut changed = false;
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            let config = &mut webhook["clientConfig"];
            if config["caBundle"].is_null() {
                config["caBundle"] = Value::from("Y2E=");
                changed = true;
            }
        }
        if changed {
            let path = format!("{base}/{name}?fieldManager=pilot-discovery");
            api.call(&Method::PUT, &path, Some(object))?;
        }
    }
    Ok(())
}
