//! Interface `istio_ingress_config`: an ingress asks the control plane's charm for an external
//! authorizer in the mesh config, and is told the name it got there. Lists are JSON-encoded, texts
//! are plain.

use juju_hooks::Databag;

use crate::{DecodeProblem, Result, json};

const SERVICE: &str = "ext_authz_service_name";
const PORT: &str = "ext_authz_port";
const PROTOCOL: &str = "ext_authz_protocol";
const CHECK: &str = "include_headers_in_check";
const UPSTREAM: &str = "headers_to_upstream_on_allow";
const ALLOW: &str = "headers_to_downstream_on_allow";
const DENY: &str = "headers_to_downstream_on_deny";
const PROVIDER: &str = "ext_authz_provider_name";
/// Stands for "no authorizer": a databag cannot be emptied across models.
const NOBODY: (&str, &str) = ("fake_host", "5432");

/// The authorizer that an ingress wants to ask.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IngressConfig {
    /// Full name of its Service.
    pub service: String,
    /// Its port.
    pub port: u16,
    /// Whether it speaks gRPC; else HTTP.
    pub grpc: bool,
    /// Request headers it is shown.
    pub include_headers_in_check: Vec<String>,
    /// Headers of a positive answer that reach the workload.
    pub headers_to_upstream_on_allow: Vec<String>,
    /// Headers of a positive answer that reach the client.
    pub headers_to_downstream_on_allow: Vec<String>,
    /// Headers of a negative answer that reach the client.
    pub headers_to_downstream_on_deny: Vec<String>,
}

impl IngressConfig {
    /// The databag of an ingress without an authorizer.
    pub fn nobody() -> Databag {
        Databag::from([
            (SERVICE.to_owned(), NOBODY.0.to_owned()),
            (PORT.to_owned(), NOBODY.1.to_owned()),
            (PROTOCOL.to_owned(), "http".to_owned()),
        ])
    }

    /// The ingress' application databag.
    pub fn encode(&self) -> Databag {
        let protocol = if self.grpc { "grpc" } else { "http" };
        Databag::from([
            (SERVICE.to_owned(), self.service.clone()),
            (PORT.to_owned(), self.port.to_string()),
            (PROTOCOL.to_owned(), protocol.to_owned()),
            (
                CHECK.to_owned(),
                json::encoded(&self.include_headers_in_check),
            ),
            (
                UPSTREAM.to_owned(),
                json::encoded(&self.headers_to_upstream_on_allow),
            ),
            (
                ALLOW.to_owned(),
                json::encoded(&self.headers_to_downstream_on_allow),
            ),
            (
                DENY.to_owned(),
                json::encoded(&self.headers_to_downstream_on_deny),
            ),
        ])
    }

    /// Reads the ingress' application databag; `None` while it has no authorizer.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(service) = bag.get(SERVICE).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let port = bag.get(PORT).map_or("", String::as_str);
        if (service.as_str(), port) == NOBODY {
            return Ok(None);
        }
        let port = match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(DecodeProblem::new(PORT, "must be 1 to 65535")),
        };
        let grpc = match bag.get(PROTOCOL).map(String::as_str) {
            None | Some("" | "http") => false,
            Some("grpc") => true,
            Some(_) => return Err(DecodeProblem::new(PROTOCOL, "must be http or grpc")),
        };
        let list = |key: &str| -> Result<Vec<String>> {
            Ok(json::document(bag, key)?.unwrap_or_default())
        };
        Ok(Some(Self {
            service: service.clone(),
            port,
            grpc,
            include_headers_in_check: list(CHECK)?,
            headers_to_upstream_on_allow: list(UPSTREAM)?,
            headers_to_downstream_on_allow: list(ALLOW)?,
            headers_to_downstream_on_deny: list(DENY)?,
        }))
    }
}

/// The name that the control plane's charm gave the authorizer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExtAuthzProvider {
    /// Name of the extension provider in the mesh config.
    pub name: String,
}

impl ExtAuthzProvider {
    /// The control plane's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(PROVIDER.to_owned(), self.name.clone())])
    }

    /// Reads the control plane's application databag; `None` until there is a name.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let name = bag.get(PROVIDER).filter(|name| !name.is_empty());
        Ok(name.map(|name| Self { name: name.clone() }))
    }
}
