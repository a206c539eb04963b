//! The `juju` command over models without a cluster.

use std::process::ExitCode;
use std::sync::Arc;

use juju_sim::cli;
use juju_sim::cloud::NoCloud;

fn main() -> ExitCode {
    cli::main(std::env::args(), Arc::new(NoCloud))
}
