//! The databag schema of each interface, both sides of it.
//!
//! Invariants: decoding never fails a hook (a databag written by somebody else gives a value, `None`
//! for "nothing there yet", or a [`DecodeProblem`]); encoding gives the same bytes for the same
//! value, whatever the process; `decode(encode(x)) == x`.

use std::fmt;

pub mod certificate_transfer;
pub mod certificates;
pub mod forward_auth;
pub mod gateway_info;
pub mod gateway_metadata;
pub mod grafana_dashboard;
pub mod ingress;
pub mod ingress_auth;
pub mod ingress_config;
pub mod ingress_route;
pub mod istio_metadata;
mod json;
pub mod metrics_endpoint;
pub mod request_auth;
pub mod sdi;
pub mod service_mesh;
pub mod tracing;

pub use certificate_transfer::CertificateTransfer;
pub use certificates::{CertificateRequest, CertificateRequests, Certificates, IssuedCertificate};
pub use forward_auth::{ForwardAuth, IngressedApps};
pub use gateway_info::GatewayInfo;
pub use gateway_metadata::GatewayMetadata;
pub use grafana_dashboard::Dashboards;
pub use ingress::{Ingress, KubeflowIngress, Scheme, TraefikIngress, TraefikReply, UnitAddress};
pub use ingress_auth::IngressAuth;
pub use ingress_config::{ExtAuthzProvider, IngressConfig};
pub use ingress_route::{RouteConfig, RouteReply};
pub use istio_metadata::IstioMetadata;
pub use metrics_endpoint::{ScrapeJob, ScrapeJobs, ScrapeMetadata, StaticConfig};
pub use request_auth::RequestAuth;
pub use service_mesh::{CrossModelApp, MeshLabels, MeshPolicies, MeshPolicy};

/// What is wrong with the other side's databag. Prints as one line that names the key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecodeProblem {
    /// The databag key, e.g. `data` or `port`.
    pub key: String,
    /// What is wrong with its value, in words, e.g. `field port must be an integer`.
    pub what: String,
}

impl DecodeProblem {
    /// The problem `what` of the value of `key`.
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for DecodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "databag key {}: {}", self.key, self.what)
    }
}

impl std::error::Error for DecodeProblem {}

/// The result of decoding a databag.
pub type Result<T, E = DecodeProblem> = std::result::Result<T, E>;
