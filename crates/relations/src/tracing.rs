//! Interface `tracing`, version 2: the requirer says which protocols it speaks, the provider where
//! it receives them. JSON in the application databags.

use juju_hooks::Databag;
use serde::{Deserialize, Serialize};

use crate::{Result, json};

const RECEIVERS: &str = "receivers";

/// A protocol of traces.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// OpenTelemetry over gRPC; its addresses carry no scheme.
    OtlpGrpc,
    /// OpenTelemetry over HTTP.
    OtlpHttp,
    /// Zipkin's.
    Zipkin,
    /// Jaeger over gRPC.
    JaegerGrpc,
    /// Jaeger over HTTP.
    JaegerThriftHttp,
    /// One that this side does not know.
    #[serde(other)]
    Unknown,
}

impl Protocol {
    fn transport(self) -> &'static str {
        match self {
            Self::OtlpGrpc | Self::JaegerGrpc => "grpc",
            Self::OtlpHttp | Self::Zipkin | Self::JaegerThriftHttp | Self::Unknown => "http",
        }
    }
}

/// The protocols that the requirer wants to send by.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TracingRequest(pub Vec<Protocol>);

impl TracingRequest {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(RECEIVERS.to_owned(), json::encoded(&self.0))])
    }

    /// Reads the requirer's application databag; `None` until it asks for something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(json::document(bag, RECEIVERS)?.map(Self))
    }
}

/// Where the provider receives traces.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Receivers(pub Vec<(Protocol, String)>);

#[derive(Serialize, Deserialize)]
struct Receiver {
    protocol: Named,
    url: String,
}

#[derive(Serialize, Deserialize)]
struct Named {
    name: Protocol,
    #[serde(default, rename = "type")]
    transport: String,
}

impl Receivers {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        let receivers: Vec<Receiver> = self
            .0
            .iter()
            .map(|(name, url)| Receiver {
                protocol: Named {
                    name: *name,
                    transport: name.transport().to_owned(),
                },
                url: url.clone(),
            })
            .collect();
        Databag::from([(RECEIVERS.to_owned(), json::encoded(&receivers))])
    }

    /// Reads the provider's application databag; `None` until it receives something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let receivers: Option<Vec<Receiver>> = json::document(bag, RECEIVERS)?;
        let pairs =
            |all: Vec<Receiver>| all.into_iter().map(|r| (r.protocol.name, r.url)).collect();
        Ok(receivers.map(|all| Self(pairs(all))))
    }

    /// Where traces of a protocol go.
    pub fn url(&self, protocol: Protocol) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| *name == protocol);
        found.map(|(_, url)| url.as_str())
    }
}
