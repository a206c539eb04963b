//! Interface `grafana_dashboard`: dashboards in the provider's application databag, each as the JSON
//! that Grafana reads, packed by xz and written in base64.

use std::collections::BTreeMap;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use juju_hooks::Databag;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DecodeProblem, Result, json};

const DASHBOARDS: &str = "dashboards";
/// A packed dashboard is not unpacked beyond this.
const LARGEST: u64 = 16 << 20;

/// Dashboards, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dashboards {
    /// The charm's name.
    pub charm: String,
    /// Juju's names of who offers them.
    pub topology: Topology,
    /// Each dashboard by its name.
    pub dashboards: BTreeMap<String, Value>,
}

/// Juju's names of who offers dashboards.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// The model.
    pub model: String,
    /// Its UUID.
    pub model_uuid: String,
    /// The application.
    pub application: String,
    /// A unit of it.
    pub unit: String,
}

#[derive(Serialize, Deserialize)]
struct Document {
    templates: BTreeMap<String, Template>,
    /// The requirer looks again when this changes.
    #[serde(default)]
    uuid: String,
}

#[derive(Serialize, Deserialize)]
struct Template {
    charm: String,
    content: String,
    juju_topology: Topology,
    #[serde(default)]
    inject_dropdowns: bool,
    #[serde(default)]
    dashboard_alt_uid: String,
}

impl Dashboards {
    /// The provider's application databag. `revision` is any text that changes with the dashboards.
    pub fn encode(&self, revision: &str) -> Databag {
        let Self {
            charm,
            topology,
            dashboards,
        } = self;
        let template = |(name, dashboard): (&String, &Value)| {
            let template = Template {
                charm: charm.clone(),
                content: packed(dashboard),
                juju_topology: topology.clone(),
                inject_dropdowns: true,
                dashboard_alt_uid: format!("{charm}-{name}"),
            };
            (format!("file:{name}"), template)
        };
        let document = Document {
            templates: dashboards.iter().map(template).collect(),
            uuid: revision.to_owned(),
        };
        Databag::from([(DASHBOARDS.to_owned(), json::encoded(&document))])
    }

    /// Reads the provider's application databag; `None` until it offers something.
    pub fn decode(bag: &Databag) -> Result<Option<Self>> {
        let Some(Document { templates, .. }) = json::document(bag, DASHBOARDS)? else {
            return Ok(None);
        };
        let mut out = Self::default();
        for (key, template) in templates {
            let name = key.strip_prefix("file:").unwrap_or(&key).to_owned();
            out.dashboards.insert(name, unpacked(&template.content)?);
            out.charm = template.charm;
            out.topology = template.juju_topology;
        }
        Ok(Some(out))
    }
}

fn packed(dashboard: &Value) -> String {
    let mut xz = Vec::new();
    let text = dashboard.to_string();
    // Neither side of this is a file that could fail.
    let written = lzma_rs::xz_compress(&mut Cursor::new(text), &mut xz);
    debug_assert!(written.is_ok());
    STANDARD.encode(xz)
}

fn unpacked(content: &str) -> Result<Value> {
    let wrong = |what: &str| DecodeProblem::new(DASHBOARDS, what);
    let xz = STANDARD
        .decode(content.trim())
        .map_err(|_| wrong("content is not base64"))?;
    let mut text = Limited::default();
    lzma_rs::xz_decompress(&mut Cursor::new(xz), &mut text)
        .map_err(|_| wrong("content is not packed by xz"))?;
    serde_json::from_slice(&text.0).map_err(|_| wrong("content is not JSON"))
}

/// Takes no more than [`LARGEST`] bytes.
#[derive(Default)]
struct Limited(Vec<u8>);

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > LARGEST {
            return Err(std::io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
