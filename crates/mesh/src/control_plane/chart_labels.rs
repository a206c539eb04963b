//! The labels that upstream's charts put on every object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Longest label value, in bytes.
const LABEL_VALUE_MAX: usize = 63;

/// What the common labels are made from.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ChartLabels {
    /// Helm release name.
    pub release: String,
    chart: String,
    app_version: String,
}

impl ChartLabels {
    /// Labels of the chart `name`-`version` released as `release`.
    pub fn new(release: &str, name: &str, version: &str, app_version: &str) -> Self {
        let mut chart = format!("{name}-{version}").replace('+', "_");
        chart.truncate(LABEL_VALUE_MAX);
        Self {
            release: release.to_owned(),
            chart: chart.trim_end_matches('-').to_owned(),
            app_version: app_version.to_owned(),
        }
    }

    /// The labels common to all of the chart's objects.
    pub fn common(&self) -> BTreeMap<String, String> {
        BTreeMap::from(
            [
                ("app.kubernetes.io/managed-by", "Helm"),
                ("app.kubernetes.io/instance", self.release.as_str()),
                ("app.kubernetes.io/part-of", "istio"),
                ("app.kubernetes.io/version", self.app_version.as_str()),
                ("helm.sh/chart", self.chart.as_str()),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        )
    }
}
