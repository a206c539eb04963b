//! Charm `istio-k8s`: runs one Istio control plane and its gateways.
//!
//! Each module is one of the seven steps of a hook: `config` and `observe` read, `validate` and
//! `desired` decide (pure), `cluster` applies, `status` and `actions` tell (pure).

pub mod actions;
pub mod additions;
pub mod authority;
pub mod cluster;
pub mod config;
pub mod databags;
pub mod desired;
pub mod gateway_api;
pub mod inputs;
pub mod observability;
pub mod observe;
pub mod release;
pub mod singletons;
pub mod status;
pub mod surroundings;
pub mod tasks;
pub mod upgrade;
pub mod validate;
pub mod work;

mod charm;

pub use charm::IstioK8s;
