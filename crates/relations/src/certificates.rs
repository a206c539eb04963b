//! Interface `tls-certificates` (the wire form that versions 3 and 4 of its library share), one key
//! for the whole application: requests stand in the requirer's *application* databag.

use juju_hooks::Databag;
use serde::{Deserialize, Serialize};

use crate::{Result, json};

const REQUESTS: &str = "certificate_signing_requests";
const CERTIFICATES: &str = "certificates";
const ERRORS: &str = "request_errors";

/// The requirer's requests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CertificateRequests(pub Vec<CertificateRequest>);

/// A request to sign a key.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CertificateRequest {
    /// The request itself, as PEM.
    #[serde(rename = "certificate_signing_request")]
    pub csr: String,
    /// Whether a certificate authority is wanted.
    #[serde(default, deserialize_with = "json::or_default")]
    pub ca: bool,
}

impl CertificateRequests {
    /// The requirer's databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(REQUESTS.to_owned(), json::encoded(&self.0))])
    }

    /// Reads the requirer's databag; `None` until it asks for something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(json::document(bag, REQUESTS)?.map(Self))
    }
}

/// The provider's answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Certificates {
    /// Signed requests, those of other requirers among them.
    pub issued: Vec<IssuedCertificate>,
    /// Refused requests.
    pub refused: Vec<RefusedRequest>,
}

/// A signed request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct IssuedCertificate {
    /// The request that it answers.
    #[serde(rename = "certificate_signing_request")]
    pub csr: String,
    /// The certificate, as PEM.
    pub certificate: String,
    /// The authority's, as PEM.
    pub ca: String,
    /// From the certificate (in some providers without it) to the authority's.
    #[serde(default, deserialize_with = "json::or_default")]
    pub chain: Vec<String>,
    /// Whether it is no good any more.
    #[serde(default, deserialize_with = "json::or_default")]
    pub revoked: bool,
}

/// A refused request.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// The request.
    pub csr: String,
    /// Why.
    pub error: RequestError,
}

/// Why a request was refused.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct RequestError {
    /// A number of the interface's.
    #[serde(default)]
    pub code: i64,
    /// A word for it.
    #[serde(default, deserialize_with = "json::or_default")]
    pub name: String,
    /// For people.
    #[serde(default, deserialize_with = "json::or_default")]
    pub message: String,
}

impl Certificates {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        let mut bag = Databag::from([(CERTIFICATES.to_owned(), json::encoded(&self.issued))]);
        if !self.refused.is_empty() {
            bag.insert(ERRORS.to_owned(), json::encoded(&self.refused));
        }
        bag
    }

    /// Reads the provider's application databag. A provider that has not answered has no answers.
    pub fn decode(bag: &Databag) -> Result<Self> {
        Ok(Self {
            issued: json::document(bag, CERTIFICATES)?.unwrap_or_default(),
            refused: json::document(bag, ERRORS)?.unwrap_or_default(),
        })
    }

    /// The valid answer to a request. Line ends and blanks around it do not count.
    pub fn answer(&self, csr: &str) -> Option<&IssuedCertificate> {
        let answers = |issued: &&IssuedCertificate| issued.csr.trim() == csr.trim();
        self.issued
            .iter()
            .filter(|issued| !issued.revoked)
            .find(answers)
    }

    /// Why a request was refused.
    pub fn refusal(&self, csr: &str) -> Option<&RequestError> {
        let refused = self
            .refused
            .iter()
            .find(|refused| refused.csr.trim() == csr.trim());
        refused.map(|refused| &refused.error)
    }
}

impl IssuedCertificate {
    /// The certificate followed by what signed it, as servers show it.
    pub fn bundle(&self) -> String {
        let leaf = self.certificate.trim();
        let mut parts = vec![leaf];
        for part in self.chain.iter().map(|part| part.trim()) {
            if !part.is_empty() && !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join("\n") + "\n"
    }
}
