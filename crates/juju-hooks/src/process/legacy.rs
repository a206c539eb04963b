//! The tools of Juju up to 3.x.

use std::collections::BTreeMap;

use super::{ProcessTools, argument_text};
use crate::databag::json_texts;
use crate::error::Result;
use crate::legacy::{LegacyTools, PayloadId, UnitAddress};

impl LegacyTools for ProcessTools {
    fn leader_get(&self) -> Result<BTreeMap<String, String>> {
        let settings: Option<_> = self.json("leader-get", &["--format=json"])?;
        Ok(settings.unwrap_or_default())
    }

    fn leader_set(&self, settings: &BTreeMap<String, String>) -> Result<()> {
        let input = json_texts(settings);
        self.run("leader-set", &["--file", "-"], Some(&input))
            .map(drop)
    }

    fn unit_get(&self, which: UnitAddress) -> Result<String> {
        let which = match which {
            UnitAddress::Private => "private-address",
            UnitAddress::Public => "public-address",
        };
        self.json("unit-get", &["--format=json", which])
    }

    fn add_metric(&self, metrics: &BTreeMap<String, String>) -> Result<()> {
        let pairs: Vec<String> = metrics
            .iter()
            .map(|(key, value)| format!("{key}={}", argument_text(value)))
            .collect();
        self.run("add-metric", &pairs, None).map(drop)
    }

    fn payload_register(&self, payload: &PayloadId, id: &str, tags: &[&str]) -> Result<()> {
        let mut args = vec![payload.kind.as_str(), payload.class.as_str(), id];
        args.extend(tags);
        self.run("payload-register", &args, None).map(drop)
    }

    fn payload_unregister(&self, class: &str, id: &str) -> Result<()> {
        self.run("payload-unregister", &[class, id], None).map(drop)
    }

    fn payload_status_set(&self, class: &str, id: &str, status: &str) -> Result<()> {
        self.run("payload-status-set", &[class, id, status], None)
            .map(drop)
    }

    fn pod_spec_get(&self) -> Result<String> {
        self.run::<&str>("pod-spec-get", &[], None)
    }

    fn pod_spec_set(&self, spec: &str) -> Result<()> {
        self.run("pod-spec-set", &["--file", "-"], Some(spec))
            .map(drop)
    }

    fn k8s_raw_get(&self) -> Result<String> {
        self.run::<&str>("k8s-raw-get", &[], None)
    }

    fn k8s_raw_set(&self, spec: &str) -> Result<()> {
        self.run("k8s-raw-set", &["--file", "-"], Some(spec))
            .map(drop)
    }
}
