//! A real API server without a node: etcd and kube-apiserver on loopback, in seconds, without root.
//!
//! Ports are random, so any number can run at once. Everything ends with the owner, however it ends.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::api::{Api, wait};
use crate::audit::AuditLog;
use crate::build::{Artifact, Built, Tool, go, need, require};
use crate::daemons::{self, Daemon, Plan};
use crate::guard::Guarded;
use crate::paths;
use crate::pki::Pki;

const TOOLS: &[Tool] = &[
    Tool {
        program: "openssl",
        package: "openssl",
    },
    Tool {
        program: "setpriv",
        package: "util-linux",
    },
];
/// Longest wait for a start on a loaded machine.
const LIMIT: Duration = Duration::from_secs(90);

/// What runs beside the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Beside {
    /// Nothing: namespaces are not finalised, nothing is scheduled.
    #[default]
    Nothing,
    /// The controller manager: namespaces end, Deployments get pods, service accounts appear.
    Controllers,
    /// Controllers, a scheduler, and a played node on which every pod is Ready at once.
    Pods,
}

/// A running control plane; dropping it ends it.
#[derive(Debug)]
pub struct ControlPlane {
    // Ended in this order, so that nothing complains about a server that went first.
    daemons: Vec<Guarded>,
    apiserver: Daemon,
    dir: PathBuf,
    kubeconfig: PathBuf,
    url: String,
}

impl ControlPlane {
    /// Programs that a start needs.
    pub fn artifacts(beside: Beside) -> Vec<Artifact> {
        let mut needed = vec![Artifact::Etcd, Artifact::KubeApiserver];
        if beside != Beside::Nothing {
            needed.push(Artifact::KubeControllerManager);
        }
        if beside == Beside::Pods {
            needed.extend([Artifact::KubeScheduler, Artifact::Kwok]);
        }
        needed
    }

    /// Builds what is missing, starts, and returns when the API server serves.
    pub fn up(beside: Beside, say: &mut dyn FnMut(&str)) -> Result<Self> {
        require(TOOLS)?;
        let built = need(&Self::artifacts(beside), &mut |step| say(&step.to_string()))?;
        let dir = new_dir()?;
        Self::start(beside, &built, &dir)
            .with_context(|| daemons::log_tails(&dir))
            .inspect_err(|_| drop(fs::remove_dir_all(&dir)))
    }

    fn start(beside: Beside, built: &Built, dir: &Path) -> Result<Self> {
        let [port, etcd, etcd_peer, managers, scheduler] = free_ports()?;
        let url = format!("https://127.0.0.1:{port}");
        let names = [
            "DNS:localhost".into(),
            "IP:127.0.0.1".into(),
            "IP:10.96.0.1".into(),
        ];
        let pki = Pki::create(&dir.join("pki"), &url, &names, None)?;
        daemons::write_audit_policy(dir)?;
        let plan = Plan {
            dir,
            pki: &pki,
            bind: "127.0.0.1",
            advertise: "127.0.0.1",
            port,
            etcd,
            etcd_peer,
            services: "10.96.0.0/16",
            pods: "10.244.0.0/24",
        };
        let kubeconfig = PathBuf::from(pki.file("admin.kubeconfig"));
        let mut cluster = Self {
            daemons: Vec::new(),
            apiserver: loopback(plan.apiserver(built.path(Artifact::KubeApiserver)?)),
            dir: dir.into(),
            kubeconfig,
            url,
        };
        cluster.add(&plan.etcd(built.path(Artifact::Etcd)?))?;
        cluster.start_api_server()?;
        let api = cluster.api()?;
        if beside != Beside::Nothing {
            let program = built.path(Artifact::KubeControllerManager)?;
            cluster.add(&plan.controller_manager(program, managers))?;
        }
        if beside == Beside::Pods {
            cluster.add(&plan.scheduler(built.path(Artifact::KubeScheduler)?, scheduler))?;
            cluster.add(&kwok(built.path(Artifact::Kwok)?, &cluster.kubeconfig)?)?;
            played_node(&api)?;
        }
        if beside != Beside::Nothing {
            wait("default service account", LIMIT, || {
                api.find("/api/v1/namespaces/default/serviceaccounts/default")
            })?;
        }
        Ok(cluster)
    }

    fn add(&mut self, daemon: &Daemon) -> Result<()> {
        self.daemons.insert(0, Guarded::start(daemon, &self.dir)?);
        Ok(())
    }

    /// Ends the API server alone: whoever asks it is refused. What it knew is kept, and those
    /// beside it wait for it.
    pub fn stop_api_server(&mut self) {
        self.daemons
            .retain(|daemon| daemon.name() != self.apiserver.name);
    }

    /// Starts the API server, and returns when it serves.
    pub fn start_api_server(&mut self) -> Result<()> {
        // The last to end is what it stores in.
        let place = self.daemons.len().saturating_sub(1);
        let daemon = Guarded::start(&self.apiserver, &self.dir)?;
        self.daemons.insert(place, daemon);
        let api = self.api()?;
        wait("API server ready", LIMIT, || {
            // A daemon that cannot start is an answer: waiting on would only hide it.
            Ok(match self.check() {
                Err(error) => Some(Err(error)),
                Ok(()) => api.is_ready().then_some(Ok(())),
            })
        })?
    }

    /// An error when a daemon has ended by itself.
    fn check(&mut self) -> Result<()> {
        self.daemons.iter_mut().try_for_each(Guarded::check)
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the API server was asked.
    pub fn audit(&self) -> AuditLog {
        AuditLog::new(daemons::audit_log(&self.dir))
    }

    /// A client with all rights.
    pub fn api(&self) -> Result<Api> {
        Api::connect(&self.kubeconfig)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.daemons.clear();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// An API server whose own address is loopback cannot be an endpoint of the `kubernetes` Service;
/// nothing here asks for it.
fn loopback(mut apiserver: Daemon) -> Daemon {
    apiserver
        .args
        .push("--endpoint-reconciler-type=none".into());
    apiserver
}

fn kwok(program: &Path, kubeconfig: &Path) -> Result<Daemon> {
    let stages = go::module_dir("kwok", None, "sigs.k8s.io/kwok")?.join("kustomize/stage");
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--manage-all-nodes=true".into(),
    ];
    for stage in [
        "node/fast/node-initialize.yaml",
        "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
        "pod/fast/pod-ready.yaml",
        "pod/fast/pod-complete.yaml",
        "pod/fast/pod-delete.yaml",
    ] {
        args.push(format!("--config={}", stages.join(stage).display()));
    }
    args.push("--node-lease-duration-seconds=40".into());
    Ok(Daemon {
        name: "kwok",
        program: program.into(),
        args,
    })
}

fn played_node(api: &Api) -> Result<()> {
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "played", "labels": {"kubernetes.io/os": "linux"}},
    });
    api.apply("/api/v1/nodes/played", &node)?;
    wait("played node ready", LIMIT, || {
        let node = api.get("/api/v1/nodes/played")?;
        Ok(is_ready(&node).then_some(()))
    })
}

/// Whether an object has the condition Ready.
pub(crate) fn is_ready(object: &serde_json::Value) -> bool {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Ports that were free a moment ago; all are held until all are known, so that they differ.
fn free_ports() -> Result<[u16; 5]> {
    let mut held = Vec::new();
    let mut ports = [0; 5];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// A directory of this process; those of processes that are gone are removed.
fn new_dir() -> Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let parent = paths::root().join("run");
    fs::create_dir_all(&parent)?;
    for entry in fs::read_dir(&parent)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name
            .strip_prefix("control-plane-")
            .and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let dir = parent.join(format!("control-plane-{}-{number}", process::id()));
    fs::create_dir_all(dir.join("log"))?;
    Ok(dir)
}
