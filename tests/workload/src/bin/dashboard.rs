//! The `dispatch` of charm `dashboard-k8s`.

use std::process::ExitCode;

fn main() -> ExitCode {
    juju_charm::run::<workload::Workload<workload::Dashboard>>(workload::cluster::connect)
}
