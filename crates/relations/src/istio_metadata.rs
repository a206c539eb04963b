//! Interface `istio_metadata`: the root namespace of the related Istio. One plain text in the
//! provider's application databag.

use juju_hooks::Databag;

use crate::Result;

const ROOT_NAMESPACE: &str = "root_namespace";

/// What the provider says about its Istio.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IstioMetadata {
    /// The mesh's root namespace.
    pub root_namespace: String,
}

impl IstioMetadata {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(ROOT_NAMESPACE.to_owned(), self.root_namespace.clone())])
    }

    /// Reads the provider's application databag; `None` until it says something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(bag
            .get(ROOT_NAMESPACE)
            .filter(|value| !value.is_empty())
            .map(|value| Self {
                root_namespace: value.clone(),
            }))
    }
}
