//! The simulator's `juju` on a real cluster: that of `KUBECONFIG`, else the node left running by
//! `testbed up`, else none.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use juju_sim::cloud::{Cloud, NoCloud};
use testbed::{Node, RealCloud};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match cloud() {
        Ok(cloud) => juju_sim::cli::main(args, cloud),
        Err(error) => {
            say(&format!("ERROR {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn cloud() -> Result<Arc<dyn Cloud>> {
    let kubeconfig = match kubeconfig_variable() {
        Some(path) => Some(path),
        None => Node::kept()?.map(|node| node.kubeconfig()),
    };
    Ok(match kubeconfig {
        Some(path) => Arc::new(RealCloud::connect(&path)?),
        None => Arc::new(NoCloud),
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the variable all Kubernetes clients read"
)]
fn kubeconfig_variable() -> Option<PathBuf> {
    std::env::var("KUBECONFIG")
        .ok()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

#[expect(clippy::print_stderr, reason = "the error of a command line program")]
fn say(line: &str) {
    eprintln!("{line}");
}
