//! The `dispatch` of charm `echo-k8s`.

use std::process::ExitCode;

fn main() -> ExitCode {
    juju_charm::run::<workload::Workload<workload::Echo>>(workload::cluster::connect)
}
