//! The simulator's `juju` over models without a cluster, and each of its hook tools under that
//! tool's name: the tests put it on `PATH` as what they need.

use std::process::ExitCode;
use std::sync::Arc;

use juju_sim::cloud::NoCloud;

fn main() -> ExitCode {
    juju_sim::cli::main(std::env::args(), Arc::new(NoCloud))
}
