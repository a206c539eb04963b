//! Interface `forward_auth`: the related application decides on requests that come in. Lists are
//! JSON-encoded, texts are plain.

use juju_hooks::Databag;

use crate::{DecodeProblem, Result, json};

const ADDRESS: &str = "decisions_address";
const APPS: &str = "app_names";
const HEADERS: &str = "headers";
const INGRESSED: &str = "ingress_app_names";

/// The service that decides, as its charm describes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForwardAuth {
    /// URL that is asked, e.g. `http://gate.lab.svc.cluster.local:4180/`.
    pub decisions_address: String,
    /// Applications that the provider wants guarded.
    pub app_names: Vec<String>,
    /// Headers of a positive answer that tell the workload who the user is.
    pub headers: Vec<String>,
}

impl ForwardAuth {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([
            (ADDRESS.to_owned(), self.decisions_address.clone()),
            (APPS.to_owned(), json::encoded(&self.app_names)),
            (HEADERS.to_owned(), json::encoded(&self.headers)),
        ])
    }

    /// Reads the provider's application databag; `None` until it names an address. Which applications
    /// it guards must be said with it, as its library does.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(address) = bag.get(ADDRESS).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let app_names = json::document(bag, APPS)?;
        Ok(Some(Self {
            decisions_address: address.clone(),
            app_names: app_names.ok_or_else(|| DecodeProblem::new(APPS, "is missing"))?,
            headers: json::document(bag, HEADERS)?.unwrap_or_default(),
        }))
    }

    /// Scheme, host and port of the address.
    ///
    /// # Errors
    /// It is no URL of that kind.
    pub fn address(&self) -> Result<(String, String, u16)> {
        let wrong = || DecodeProblem::new(ADDRESS, "must be like http://host:port/path");
        let (scheme, rest) = self.decisions_address.split_once("://").ok_or_else(wrong)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let default = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Err(wrong()),
        };
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (authority, default),
        };
        if host.is_empty() || host.contains('@') || port == 0 {
            return Err(wrong());
        }
        Ok((scheme.to_owned(), host.to_owned(), port))
    }
}

/// What the requirer tells: the applications it gives ingress to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct IngressedApps(pub Vec<String>);

impl IngressedApps {
    /// The requirer's application databag.
    pub fn encode(&self) -> Databag {
        Databag::from([(INGRESSED.to_owned(), json::encoded(&self.0))])
    }

    /// Reads the requirer's application databag.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        Ok(json::document(bag, INGRESSED)?.map(Self))
    }
}
