//! Interface `prometheus_scrape`: what to scrape. The provider's application databag says it in JSON,
//! each unit's databag its address.

use juju_hooks::Databag;
use serde::{Deserialize, Serialize};

use crate::{Result, json};

const METADATA: &str = "scrape_metadata";
const JOBS: &str = "scrape_jobs";
const RULES: &str = "alert_rules";
const UNIT_ADDRESS: &str = "prometheus_scrape_unit_address";
const UNIT_NAME: &str = "prometheus_scrape_unit_name";

/// What to scrape, and whose it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScrapeJobs {
    /// Whose metrics they are.
    pub metadata: ScrapeMetadata,
    /// The jobs.
    pub jobs: Vec<ScrapeJob>,
    /// Alert rules, as Prometheus reads them: `{"groups": […]}`; `null` for none.
    pub alert_rules: serde_json::Value,
}

/// Juju's names of who is scraped.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ScrapeMetadata {
    /// The model.
    pub model: String,
    /// Its UUID.
    pub model_uuid: String,
    /// The application.
    pub application: String,
    /// A unit of it.
    pub unit: String,
    /// Its charm.
    pub charm_name: String,
}

/// One job.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct ScrapeJob {
    /// Path of the metrics.
    pub metrics_path: String,
    /// Where they are.
    pub static_configs: Vec<StaticConfig>,
}

/// Addresses of a job.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct StaticConfig {
    /// `host:port`; `*` for the host stands for each unit.
    pub targets: Vec<String>,
}

impl ScrapeJobs {
    /// The provider's application databag.
    pub fn encode(&self) -> Databag {
        let mut bag = Databag::from([
            (METADATA.to_owned(), json::encoded(&self.metadata)),
            (JOBS.to_owned(), json::encoded(&self.jobs)),
        ]);
        if !self.alert_rules.is_null() {
            bag.insert(RULES.to_owned(), self.alert_rules.to_string());
        }
        bag
    }

    /// Reads the provider's application databag; `None` until it has said something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(jobs) = json::document(bag, JOBS)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            metadata: json::document(bag, METADATA)?.unwrap_or_default(),
            jobs,
            alert_rules: json::value(bag, RULES)?.unwrap_or_default(),
        }))
    }
}

/// A unit's databag.
pub fn unit(name: &str, address: &str) -> Databag {
    Databag::from([
        (UNIT_ADDRESS.to_owned(), address.to_owned()),
        (UNIT_NAME.to_owned(), name.to_owned()),
    ])
}
