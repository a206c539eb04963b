//! What one control plane should look like: settings and a release payload in, objects out.

pub mod chart_labels;
pub mod gateway;
pub mod hardening;
pub mod profile;
pub mod render;
pub mod scale;
pub mod values;
pub mod webhooks;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

pub use gateway::{GatewayKind, GatewaySettings};
pub use profile::{Component, Components};
pub use render::{ControlPlane, RenderProblem, control_plane};
pub use scale::Scale;

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
    /// Which components there are; the profile's if none is said.
    pub components: Option<BTreeSet<Component>>,
    /// The kind of cluster, one of the release's platforms.
    pub platform: Option<String>,
    /// Registry and path of the images; the release's own if none.
    pub hub: Option<String>,
    /// Image tag; the release's own if none.
    pub tag: Option<String>,
    /// Flavour of the images, `distroless` or `debug`; the profile's if none.
    pub variant: Option<String>,
    /// Names of the Secrets by which images are pulled; the values' if empty.
    pub image_pull_secrets: Vec<String>,
    /// Chart values as upstream documents them, a mapping.
    pub values: Value,
    /// Mesh config over that of the values, a mapping.
    pub mesh_config: Value,
    /// Certificates, as PEM, that istiod trusts when it fetches the keys of tokens.
    pub jwks_ca: Option<String>,
    /// How many istiods.
    pub scale: Scale,
    /// Whether everything is denied that no policy allows.
    pub hardened: bool,
    /// The gateways.
    pub gateways: Vec<GatewaySettings>,
    /// Version of the Kubernetes API server, such as `v1.36.3`.
    pub kubernetes_version: Option<String>,
}

impl Settings {
    /// The release's defaults: its profile `default`, no values, no gateways.
    pub fn new(namespace: Namespace, revision: Revision) -> Self {
        Self {
            namespace,
            revision,
            profile: "default".to_owned(),
            components: None,
            platform: None,
            hub: None,
            tag: None,
            variant: None,
            image_pull_secrets: Vec::new(),
            values: Value::Object(Map::new()),
            mesh_config: Value::Object(Map::new()),
            jwks_ca: None,
            scale: Scale::Chart,
            hardened: false,
            gateways: Vec::new(),
            kubernetes_version: None,
        }
    }

    /// The mesh's root namespace: what the mesh config says, else the namespace of istiod.
    pub fn root_namespace(&self) -> &str {
        [&self.mesh_config, &self.values["meshConfig"]]
            .into_iter()
            .filter_map(|config| config["rootNamespace"].as_str())
            .find(|namespace| !namespace.is_empty())
            .unwrap_or_else(|| self.namespace.as_str())
    }
}
