//! The simulator's `juju` over the test cluster: the one of `KUBECONFIG`, else the node that is kept.
//!
//! Without either, charms run without a cluster.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a command: it is told its cluster by the environment and its errors go to stderr"
)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use juju_sim::cli;
use juju_sim::cloud::{Cloud, NoCloud};
use testbed::{Node, RealCloud};

fn main() -> ExitCode {
    match cloud() {
        Ok(cloud) => cli::main(std::env::args(), cloud),
        Err(error) => {
            eprintln!("ERROR {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn cloud() -> Result<Arc<dyn Cloud>> {
    let named = std::env::var("KUBECONFIG")
        .ok()
        .filter(|path| !path.is_empty());
    let kubeconfig = match named {
        Some(path) => Some(PathBuf::from(path)),
        None => Node::kept()?.map(|node| node.kubeconfig()),
    };
    Ok(match kubeconfig {
        Some(path) => Arc::new(RealCloud::connect(&path)?),
        None => Arc::new(NoCloud),
    })
}
