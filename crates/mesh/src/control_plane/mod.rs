//! What one control plane should look like: settings and a release payload in, objects out.

pub mod chart_labels;
pub mod gateway;
pub mod profile;
pub mod render;
pub mod values;
pub mod webhooks;

use serde::Serialize;
use serde_json::Value;

pub use gateway::GatewaySettings;
pub use profile::Components;
pub use render::{ControlPlane, RenderProblem, control_plane};

use crate::{Namespace, Revision};

/// What an administrator asks of one control plane. All of it is checked already.
///
/// Serialised, it is the key under which a rendering may be kept: equal settings and an equal
/// payload give equal objects.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Namespace of istiod.
    pub namespace: Namespace,
    /// The revision.
    pub revision: Revision,
    /// Name of one of the release's profiles.
    pub profile: String,
    /// Registry and path of the images; the release's own if none.
    pub hub: Option<String>,
    /// Image tag; the release's own if none.
    pub tag: Option<String>,
    /// Chart values as upstream documents them, a mapping.
    pub values: Value,
    /// The gateways.
    pub gateways: Vec<GatewaySettings>,
    /// Version of the Kubernetes API server, such as `v1.36.3`.
    pub kubernetes_version: Option<String>,
}
