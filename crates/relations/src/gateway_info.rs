//! Interface `istio-gateway-info`: which Istio `Gateway` object routes may be attached to. Plain
//! texts in the provider's application databag.

use juju_hooks::Databag;

use crate::{DecodeProblem, Result};

const NAME: &str = "gateway_name";
const NAMESPACE: &str = "gateway_namespace";
const UP: &str = "gateway_up";

/// The provider's `Gateway`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayInfo {
    /// Name of the `Gateway` object.
    pub gateway_name: String,
    /// Its namespace.
    pub gateway_namespace: String,
    /// Whether the workload behind it can be reached.
    pub gateway_up: bool,
}

impl GatewayInfo {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([
            (NAME.to_owned(), self.gateway_name.clone()),
            (NAMESPACE.to_owned(), self.gateway_namespace.clone()),
            (UP.to_owned(), self.gateway_up.to_string()),
        ])
    }

    /// Reads the provider's application databag. A missing `gateway_up` means up, as providers
    /// older than that key cannot say otherwise.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let text = |key: &str| bag.get(key).filter(|value| !value.is_empty()).cloned();
        match (text(NAME), text(NAMESPACE)) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(DecodeProblem::new(NAME, "is missing")),
            (Some(_), None) => Err(DecodeProblem::new(NAMESPACE, "is missing")),
            (Some(gateway_name), Some(gateway_namespace)) => Ok(Some(Self {
                gateway_name,
                gateway_namespace,
                gateway_up: text(UP).is_none_or(|up| up.eq_ignore_ascii_case("true")),
            })),
        }
    }
}
