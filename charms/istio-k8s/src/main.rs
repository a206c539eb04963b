//! The charm's `dispatch`.

use std::process::ExitCode;

fn main() -> ExitCode {
    juju_charm::run::<istio_k8s::IstioK8s>(istio_k8s::cluster::connect)
}
