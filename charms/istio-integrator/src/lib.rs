//! Charm `istio-integrator`: ingress and authorization on whatever Istio it finds.
//!
//! Each module is a step of a hook: `config` and `observe` read, `validate`, `desired` and `pass`
//! decide (pure), `cluster` reads and writes, `status` and `actions` tell (pure).

pub mod actions;
pub mod cluster;
pub mod config;
pub mod desired;
pub mod observe;
pub mod pass;
pub mod status;
pub mod validate;

mod charm;

pub use charm::IstioIntegrator;
