//! A real one-node cluster in namespaces of its own: containers, networking, DNS, the lot.
//!
//! The node has its own mounts, processes, network, IPC and host name; the machine's stay as they
//! are, but for one link (`testbed0`), two routes and one cgroup while it lives. A machine has two
//! places for nodes; a third [`Node::up`] waits for the end of one. From the host, pods, Services and
//! node ports are reached at their own addresses, which differ between the places.

mod config;
mod dns;
mod machine;
mod place;
mod reap;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, Child, ChildStdin, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use place::Place;
pub use reap::{Vacancy, down, reap, vacant};

use crate::api::{Api, wait};
use crate::audit::AuditLog;
use crate::build::{Artifact, Built, need};
use crate::control_plane::is_ready;
use crate::istio::Istio;
use crate::{daemons, image, paths, run};

/// The node's name.
pub const NAME: &str = "node1";
const REGISTRY: &str = "127.0.0.1:5000";
/// The link's end inside.
const LINK: &str = "uplink0";
const CNI_PLUGINS: &str = "/usr/lib/cni";
/// Longest wait for one step of a start on a loaded machine.
const LIMIT: Duration = Duration::from_mins(2);

/// What a node is started with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Releases whose images the node can pull.
    pub istio: Vec<Istio>,
    /// Leave the node running when its [`Node`] is dropped or its process ends, until [`down`].
    pub keep: bool,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    place: Place,
    dir: PathBuf,
    /// The supervisor, and the pipe that ties it to this process; absent for a node that is kept.
    owner: Option<(Child, ChildStdin)>,
}

impl Node {
    /// Programs that a start needs.
    pub fn artifacts(options: &Options) -> Vec<Artifact> {
        let mut needed = vec![
            Artifact::Etcd,
            Artifact::KubeApiserver,
            Artifact::KubeControllerManager,
            Artifact::KubeScheduler,
            Artifact::Kubelet,
            Artifact::KubeProxy,
        ];
        needed.extend(image::BASE);
        for istio in &options.istio {
            needed.extend(image::need(*istio));
        }
        needed
    }

    /// Builds what is missing, starts, and returns when pods can be made and names resolved.
    pub fn up(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Self> {
        machine::prepare()?;
        let built = need(
            &Self::artifacts(options),
            &mut |step| say(&step.to_string()),
        )?;
        say("making images");
        let mut images = image::base(&built)?;
        for istio in &options.istio {
            images.extend(image::istio(&built, *istio)?);
        }
        let (place, lock) = reap::free_place(say)?;
        reap::leftovers(place)?;
        say("starting the node");
        let mut node = Self::spawn(&built, place, lock)?;
        node.start(&images, say)
            .with_context(|| daemons::log_tails(&node.dir))
            .inspect_err(|_| drop(node.end()))?;
        if options.keep {
            node.keep()?;
        }
        Ok(node)
    }

    fn spawn(built: &Built, place: Place, lock: fs::File) -> Result<Self> {
        let dir = paths::root().join(format!("run/{}{}", place.dir_prefix(), process::id()));
        fs::create_dir_all(&dir)?;
        config::write(&dir, place, built)?;
        place.announce(&dir)?;
        let mut supervisor = run::command("sh");
        supervisor
            .args(["-c", include_str!("supervise.sh"), reap::SUPERVISOR])
            .env("TB_RUN", &dir)
            .env("TB_LAST_LOGS", place.last_logs())
            .env("TB_ADDRESS", place.address())
            .env("TB_GATEWAY", place.gateway())
            .env("TB_CGROUP", place.cgroup())
            .env("TB_LINK", LINK)
            .env("TB_HOST_LINK", place.host_link())
            .env(
                "TB_ROUTES",
                format!("{} {}", place.pods(), place.services()),
            )
            .stdin(Stdio::piped())
            .stdout(lock)
            .stderr(fs::File::create(dir.join("log/supervisor.log"))?)
            .current_dir(&dir);
        // Out of the terminal's foreground group: Ctrl-C is the owner's to handle.
        std::os::unix::process::CommandExt::process_group(&mut supervisor, 0);
        let mut child = supervisor.spawn().context("cannot start the supervisor")?;
        let tie = child
            .stdin
            .take()
            .context("the supervisor has no standard input")?;
        Ok(Self {
            place,
            dir,
            owner: Some((child, tie)),
        })
    }

    fn start(&self, images: &[PathBuf], say: &mut dyn FnMut(&str)) -> Result<()> {
        for image in images {
            self.add_image(image)?;
        }
        let api = self.api()?;
        wait("API server ready", LIMIT, || {
            if !self.dir.exists() {
                let logs = self.place.last_logs();
                let error = anyhow!("the node ended at once; see {}", logs.display());
                return Ok(Some(Err(error)));
            }
            Ok(api.is_ready().then_some(Ok(())))
        })??;
        fs::write(self.dir.join("serving"), "")?;
        say("API server ready");
        wait("node ready", LIMIT, || {
            let node = api.find(&format!("/api/v1/nodes/{NAME}"))?;
            Ok(node.filter(is_ready).map(|_| ()))
        })?;
        say("node ready");
        dns::apply(&api, &self.place.dns())?;
        wait("default service account", LIMIT, || {
            api.find("/api/v1/namespaces/default/serviceaccounts/default")
        })?;
        api.wait_deployment("kube-system", "coredns", LIMIT)?;
        say("DNS ready");
        Ok(())
    }

    /// Gives the node up: from here on it lives until [`down`].
    fn keep(&mut self) -> Result<()> {
        if let Some((_, mut tie)) = self.owner.take() {
            fs::write(self.dir.join(reap::KEPT), "")?;
            writeln!(tie, "keep").context("the node ended just now")?;
        }
        Ok(())
    }

    /// The node that was left running, if there is one.
    pub fn kept() -> Result<Option<Self>> {
        let mut living = reap::living()?.into_iter();
        let kept = living.find(|(_, dir)| dir.join(reap::KEPT).exists());
        Ok(kept.map(|(place, dir)| Self {
            place,
            dir,
            owner: None,
        }))
    }

    /// The node's address as seen from the host; node ports are on it.
    pub fn address(&self) -> String {
        self.place.address()
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("pki/admin.kubeconfig")
    }

    /// What the API server was asked.
    pub fn audit(&self) -> AuditLog {
        AuditLog::new(daemons::audit_log(&self.dir))
    }

    /// Logs of the node's daemons, `<name>.log` each.
    pub fn logs(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// A client with all rights.
    pub fn api(&self) -> Result<Api> {
        Api::connect(&self.kubeconfig())
    }

    /// Lets the node pull one more image (an OCI layout tar, see [`image`]).
    pub fn add_image(&self, tar: &Path) -> Result<()> {
        let name = tar.file_name().context("an image is a file")?;
        let link = self.dir.join("images").join(name);
        let _ = fs::remove_file(&link);
        symlink(tar, &link).with_context(|| format!("cannot add image {}", tar.display()))
    }

    /// A command inside the node's namespaces, with the host's programs.
    pub fn inside(&self, program: &str) -> Result<process::Command> {
        let pid = fs::read_to_string(self.dir.join("init.pid")).context("the node is gone")?;
        let mut command = run::command("nsenter");
        command.args(["-t", pid.trim(), "-m", "-p", "-n", "-i", "-u", program]);
        Ok(command)
    }

    /// Ends the node; returns when nothing is left of it.
    pub fn down(mut self) -> Result<()> {
        match self.owner {
            Some(_) => self.end(),
            None => reap::end(self.place, &self.dir),
        }
    }

    fn end(&mut self) -> Result<()> {
        if let Some((mut child, tie)) = self.owner.take() {
            drop(tie);
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
