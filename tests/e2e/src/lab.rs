//! A cluster, a model on it and the packed charms.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testbed::audit::AuditLog;
use testbed::{Api, Istio, Node, node};

use crate::http::{self, Response};
use crate::juju::Juju;
use crate::wait::until;

/// Registry of the testbed's images. The node's registry looks at the last part of a name only.
pub const HUB: &str = "registry.istio.io/testing";

/// Longest wait for a route to reach the gateway's Envoy.
const ROUTED: Duration = Duration::from_mins(1);

/// Everything a test needs.
#[derive(Debug)]
pub struct Lab {
    /// The model.
    pub juju: Juju,
    /// The cluster.
    pub api: Api,
    /// The node, unless the cluster is somebody's own. Held, because it ends with its owner.
    node: Option<Node>,
    kubeconfig: PathBuf,
    dir: PathBuf,
}

impl Lab {
    /// Packs the charms, brings up a node with the images of `istios` and makes the empty model
    /// `name` on it. The node ends with this process.
    ///
    /// # Errors
    /// Anything that does not build or start.
    pub fn up(name: &str, istios: &[Istio]) -> Result<Self> {
        pack()?;
        let options = node::Options {
            istio: istios.to_vec(),
            keep: false,
        };
        let node = start(&options)?;
        // With the node's logs, which outlive it: another test's model is another's.
        let dir = node.logs().join("juju");
        Self::on(name, node.kubeconfig(), Some(node), dir)
    }

    /// The same for the demo, whose charms are packed: on the cluster of `kubeconfig` if there is
    /// one, else on a node that is left running if `keep`.
    ///
    /// # Errors
    /// As [`Self::up`].
    pub fn up_or_use(
        name: &str,
        istios: &[Istio],
        kubeconfig: Option<PathBuf>,
        keep: bool,
    ) -> Result<Self> {
        // Where `cargo xtask juju` looks for it.
        let dir = testbed::root().join("juju");
        if let Some(kubeconfig) = kubeconfig {
            return Self::on(name, kubeconfig, None, dir);
        }
        let node = start(&node::Options {
            istio: istios.to_vec(),
            keep,
        })?;
        Self::on(name, node.kubeconfig(), Some(node), dir)
    }

    fn on(name: &str, kubeconfig: PathBuf, node: Option<Node>, dir: PathBuf) -> Result<Self> {
        let api = Api::connect(&kubeconfig)?;
        let data = dir.clone();
        let model = data.join("models").join(name);
        if model.exists() {
            fs::remove_dir_all(&model).with_context(|| format!("remove {}", model.display()))?;
        }
        fs::create_dir_all(&dir)?;
        let juju = Juju::new(program("testbed-juju")?, data, kubeconfig.clone());
        juju.run(&["add-model", name])?;
        Ok(Self {
            juju,
            api,
            node,
            kubeconfig,
            dir,
        })
    }

    /// The cluster's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Whether the cluster was started here; else it is somebody's own.
    pub fn owns_cluster(&self) -> bool {
        self.node.is_some()
    }

    /// The API server's audit log.
    ///
    /// # Errors
    /// A cluster that is not the testbed's.
    pub fn audit(&self) -> Result<AuditLog> {
        self.node
            .as_ref()
            .map(Node::audit)
            .context("only the testbed's node has an audit log")
    }

    /// Path of a packed charm, as `juju deploy` takes it.
    pub fn charm(name: &str) -> String {
        let file = format!("{name}_ubuntu-24.04-amd64.charm");
        workspace()
            .join("target/charms")
            .join(file)
            .display()
            .to_string()
    }

    /// Writes a file for the command line and gives its path.
    ///
    /// # Errors
    /// The disk.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<String> {
        let path = self.dir.join(name);
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// The Service's address inside the cluster, which the host has a route to.
    ///
    /// # Errors
    /// No such Service.
    pub fn service(&self, namespace: &str, name: &str, port: u16) -> Result<SocketAddr> {
        let service = self
            .api
            .get(&format!("/api/v1/namespaces/{namespace}/services/{name}"))?;
        let address = service["spec"]["clusterIP"]
            .as_str()
            .context("no clusterIP")?;
        Ok(SocketAddr::new(address.parse()?, port))
    }
}

/// What a request has to come back with. Envoy learns of a change a moment after the cluster does,
/// so an expectation is polled; what must never happen is asserted on each answer instead.
#[derive(Debug)]
pub struct Gateway {
    /// Where it listens.
    pub address: SocketAddr,
    /// The host that is asked for.
    pub host: String,
}

impl Gateway {
    /// One GET.
    ///
    /// # Errors
    /// No answer.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
        http::get(self.address, &self.host, path, headers)
    }

    /// Asks until the answer has `status`, and gives that answer.
    ///
    /// # Errors
    /// Another status for a minute; the error has the last answer.
    pub fn expect(&self, path: &str, headers: &[(&str, &str)], status: u16) -> Result<Response> {
        let mut last = String::new();
        until(&format!("{status} for {path}"), ROUTED, || {
            let answer = self.get(path, headers)?;
            last = format!("{} {}", answer.status, answer.body);
            Ok((answer.status == status).then_some(answer))
        })
        .with_context(|| format!("the last answer to {path} was {last}"))
    }
}

/// The options that istio-k8s needs for the testbed's images, as a file for `--config`.
///
/// # Errors
/// None that a test could cause.
pub fn istio_config(app: &str, hub: &str, tag: &str, gateway_namespace: &str) -> Result<String> {
    let gateways = format!(
        "- name: istio-ingressgateway\n  namespace: {gateway_namespace}\n  \
         service-type: NodePort\n  replicas: 1\n  \
         values: {{resources: {{requests: {{cpu: 10m, memory: 40Mi}}}}}}\n"
    );
    let options = serde_json::json!({app: {
        "hub": hub,
        "tag": tag,
        "values": testbed::pilot_values(),
        "gateways": gateways,
    }});
    Ok(serde_json::to_string_pretty(&options)?)
}

/// What the sample workload says it received.
///
/// # Errors
/// An answer of something else.
pub fn received(answer: &Response) -> Result<Value> {
    answer.json()
}

/// The program `name`, built beside the running one.
///
/// # Errors
/// It is not there.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    // A test runs from target/<profile>/deps, the demo from target/<profile>.
    let found = here
        .ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join(name))
        .find(|p| p.is_file());
    found.with_context(|| format!("{name} is not built: cargo build -p testbed -p juju-sim"))
}

/// `cargo xtask pack`.
///
/// # Errors
/// A charm that does not build.
#[expect(
    clippy::disallowed_methods,
    reason = "the charms are packed by the user's own command"
)]
pub fn pack() -> Result<()> {
    let output = Command::new("cargo")
        .args(["xtask", "pack"])
        .current_dir(workspace())
        .output()
        .context("cargo xtask pack")?;
    ensure!(
        output.status.success(),
        "cargo xtask pack\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The checkout.
fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Starts a node and tells the steps on stderr. A node that somebody keeps is not taken from them.
#[expect(
    clippy::print_stderr,
    reason = "a start takes long enough to say what it is at"
)]
fn start(options: &node::Options) -> Result<Node> {
    if let Some(kept) = Node::kept()? {
        bail!(
            "a node is up already ({}); end it with: cargo xtask testbed down",
            kept.kubeconfig().display()
        );
    }
    Node::up(options, &mut |step| eprintln!("testbed: {step}"))
}
