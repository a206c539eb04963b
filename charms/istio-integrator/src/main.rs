//! The charm's `dispatch`.

use std::process::ExitCode;

fn main() -> ExitCode {
    juju_charm::run::<istio_integrator::IstioIntegrator>(istio_integrator::cluster::connect)
}
