//! The `dispatch` of charm `gatekeeper-k8s`.

use std::process::ExitCode;

fn main() -> ExitCode {
    juju_charm::run::<workload::Workload<workload::Gatekeeper>>(workload::cluster::connect)
}
