//! Interface `ingress-auth` (serialized-data-interface, version 1): the requirer offers the service
//! that decides on every request of the ingress. The provider of the endpoint answers with nothing
//! but its versions.

use juju_hooks::Databag;
use serde_json::{Map, Value};

use crate::{Result, sdi};

/// Versions spoken.
pub const VERSIONS: &[u32] = &[1];

const REQUEST_HEADERS: &str = "allowed-request-headers";
const RESPONSE_HEADERS: &str = "allowed-response-headers";

/// The authorization service, as its charm describes it. It carries no namespace: the service is in
/// the model of the charm that reads this.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IngressAuth {
    /// Name of the Service.
    pub service: String,
    /// Its port.
    pub port: u16,
    /// Request headers handed to the service.
    pub allowed_request_headers: Vec<String>,
    /// Headers of its positive answer handed on to the workload: who the user is.
    pub allowed_response_headers: Vec<String>,
}

impl IngressAuth {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        let list = |items: &[String]| {
            items
                .iter()
                .map(|item| Value::from(item.as_str()))
                .collect()
        };
        let mut data = Map::new();
        data.insert("service".to_owned(), Value::from(self.service.as_str()));
        data.insert("port".to_owned(), Value::from(self.port));
        data.insert(
            REQUEST_HEADERS.to_owned(),
            list(&self.allowed_request_headers),
        );
        data.insert(
            RESPONSE_HEADERS.to_owned(),
            list(&self.allowed_response_headers),
        );
        sdi::envelope(VERSIONS, data)
    }

    /// Reads the requirer's application databag; `None` until it has sent versions and data.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some((_version, data)) = sdi::document(bag, VERSIONS)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            service: sdi::required_text(&data, "service")?,
            port: sdi::required_port(&data, "port")?,
            allowed_request_headers: sdi::texts(&data, REQUEST_HEADERS)?,
            allowed_response_headers: sdi::texts(&data, RESPONSE_HEADERS)?,
        }))
    }
}
