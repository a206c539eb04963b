//! A real one-node Kubernetes with real Istio, for tests and the demo.
//!
//! Nothing comes from a container registry: Kubernetes, etcd, `CoreDNS`, Helm and Istio are built from
//! pinned Go modules, Envoy is a wheel, the rest are Debian packages. Two clusters are offered: a
//! [`ControlPlane`] (API server only, no root, seconds) and a [`Node`] (everything, root, half a
//! minute). Both end with the process that started them, however that ends.

mod api;
pub mod audit;
pub mod build;
#[cfg(feature = "cloud")]
mod cloud;
mod control_plane;
mod daemons;
mod digest;
mod guard;
pub mod image;
mod istio;
pub mod node;
mod paths;
mod pki;
pub mod run;
mod tell;
mod values;

pub use api::Api;
pub use build::Artifact;
#[cfg(feature = "cloud")]
pub use cloud::RealCloud;
pub use control_plane::{Beside, ControlPlane};
pub use istio::{ALL, Istio, V1_24, V1_26, V1_30, V1_31, V1_31_PRE, gateway_api_crds};
pub use node::Node;
pub use paths::root;
pub use tell::tell;
pub use values::pilot_values;
