//! Charm `istio-integrator`: ingress and authorization on whatever Istio it finds.
//!
//! Each module is a step of a hook, and all but `cluster` and `keys` are pure: `config` and `observe`
//! say what is read; `validate`, with a module for each thing that is checked (`ingress`, `auth`,
//! `tls`, `target`), `desired` and `pass` decide, `gateway_api` for gateways of the Gateway API; `cluster` reads and writes; `status` and `actions`
//! tell people and `replies` tells the related applications.

pub mod actions;
pub mod auth;
pub mod check;
pub mod cluster;
pub mod config;
pub mod desired;
mod discover;
pub mod findings;
pub mod gateway_api;
pub mod ingress;
pub mod observe;
pub mod pass;
pub mod policies;
pub mod status;
pub mod target;
pub mod tls;
pub mod validate;

mod charm;
mod keys;
mod replies;
mod route_config;

pub use charm::IstioIntegrator;
