//! Interface `gateway_metadata`: which gateway requests come through, for whoever writes policies
//! that let it in. One JSON document in the provider's application databag.

use juju_hooks::Databag;
use serde::{Deserialize, Serialize};

use crate::{Result, json};

const METADATA: &str = "metadata";

/// The gateway.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct GatewayMetadata {
    /// Namespace of its workload.
    pub namespace: String,
    /// Name of the `Gateway` object.
    pub gateway_name: String,
    /// Name of the Deployment.
    pub deployment_name: String,
    /// The account that its pods run as: their identity in the mesh.
    pub service_account: String,
}

impl GatewayMetadata {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(METADATA.to_owned(), json::encoded(self))])
    }

    /// Reads the provider's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        json::document(bag, METADATA)
    }
}
