//! Interface `certificate_transfer`: certificates to trust. Version 1 says them in the provider's
//! application databag, once the requirer has said that it reads that version; before, a provider
//! writes version 0 into its units' databags.

use std::collections::BTreeSet;

use juju_hooks::Databag;

use crate::{Result, json};

const VERSION: &str = "version";
const CERTIFICATES: &str = "certificates";
const CA: &str = "ca";
const CERTIFICATE: &str = "certificate";
const CHAIN: &str = "chain";

/// The requirer's application databag: it reads version 1.
pub fn request() -> Databag {
    Databag::from([(VERSION.to_owned(), "1".to_owned())])
}

/// The certificates to trust, as PEM.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateTransfer {
    /// Each once, sorted.
    pub certificates: BTreeSet<String>,
}

impl CertificateTransfer {
    /// The provider's application databag, version 1.
    pub fn encode(&self) -> Databag {
        Databag::from([
            (CERTIFICATES.to_owned(), json::encoded(&self.certificates)),
            (VERSION.to_owned(), "1".to_owned()),
        ])
    }

    /// A unit's databag, version 0: one authority.
    pub fn encode_unit(ca: &str) -> Databag {
        Databag::from([
            (CA.to_owned(), json::string(ca)),
            (CERTIFICATE.to_owned(), json::string(ca)),
            (CHAIN.to_owned(), json::encoded(&[ca])),
            (VERSION.to_owned(), "0".to_owned()),
        ])
    }

    /// Reads the provider's databags, in either version; `None` until it says something.
    pub fn decode<'a>(
        app: &Databag,
        units: impl IntoIterator<Item = &'a Databag>,
    ) -> Result<Option<Self>> {
        if let Some(certificates) = json::document(app, CERTIFICATES)? {
            return Ok(Some(Self { certificates }));
        }
        let mut certificates = BTreeSet::new();
        for unit in units {
            certificates.extend(json::text(unit, CA)?);
            let chain: Option<Vec<String>> = json::document(unit, CHAIN)?;
            certificates.extend(chain.into_iter().flatten());
        }
        Ok((!certificates.is_empty()).then_some(Self { certificates }))
    }
}
