//! The release payload: upstream's charts and profiles of one Istio version, from a tar.gz laid out
//! as the release archive is (`<any prefix>/manifests/{charts,profiles}`).

use std::collections::{BTreeMap, BTreeSet};

use helm_chart::{ArchiveLimits, Chart, FileTree};
use serde_json::Value;

/// Which of upstream's charts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ChartName {
    /// CRDs, the reader account and the default validator.
    Base,
    /// The control plane.
    Istiod,
    /// The default tag and validator as istioctl creates them.
    Default,
    /// A gateway of one's own.
    Gateway,
    /// The node agent.
    Cni,
    /// The ambient node proxy.
    Ztunnel,
}

impl ChartName {
    /// Every chart, in the order they depend on each other.
    pub const ALL: [Self; 6] = [
        Self::Base,
        Self::Istiod,
        Self::Default,
        Self::Gateway,
        Self::Cni,
        Self::Ztunnel,
    ];

    /// Where the chart lies under `manifests/charts`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Istiod => "istio-control/istio-discovery",
            Self::Default => "default",
            Self::Gateway => "gateway",
            Self::Cni => "istio-cni",
            Self::Ztunnel => "ztunnel",
        }
    }

    /// The release name that upstream's installation guide gives to the chart.
    pub fn release(self) -> &'static str {
        match self {
            Self::Base => "istio-base",
            Self::Istiod => "istiod",
            Self::Default => "istiod-default-tag",
            Self::Gateway => "istio-ingressgateway",
            Self::Cni => "istio-cni",
            Self::Ztunnel => "ztunnel",
        }
    }
}

/// Why an archive is not a release payload.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The file is empty: the placeholder that a store gives when nothing was attached.
    #[error("the file is empty")]
    Empty,
    /// Not a readable tar.gz within the limits.
    #[error("cannot read the archive")]
    Archive(#[source] helm_chart::TreeError),
    /// The tree holds no `manifests/charts`.
    #[error("it holds no manifests/charts directory")]
    Layout,
    /// A chart is missing.
    #[error("it holds no chart {0}")]
    MissingChart(&'static str),
    /// A chart does not load.
    #[error("its chart {0} does not load")]
    Chart(&'static str, #[source] Box<helm_chart::ChartError>),
    /// A profile is not the YAML it should be.
    #[error("its profile {0} is not valid YAML")]
    Profile(String, #[source] yaml::Error),
}

/// A loaded release payload.
#[derive(Debug)]
pub struct Payload {
    charts: BTreeMap<ChartName, Chart>,
    profiles: BTreeMap<String, Value>,
}

impl Payload {
    /// Reads a payload from the bytes of a tar.gz.
    ///
    /// # Errors
    /// Anything that is not a complete payload; nothing is kept of a damaged one.
    pub fn from_tar_gz(bytes: &[u8]) -> Result<Self, PayloadError> {
        if bytes.is_empty() {
            return Err(PayloadError::Empty);
        }
        let tree = FileTree::from_tar_gz(bytes, &ArchiveLimits::default())
            .map_err(PayloadError::Archive)?;
        Self::from_tree(&tree)
    }

    /// Reads a payload from an unpacked tree.
    ///
    /// # Errors
    /// As [`Self::from_tar_gz`].
    pub fn from_tree(tree: &FileTree) -> Result<Self, PayloadError> {
        let root = manifests_root(tree).ok_or(PayloadError::Layout)?;
        let mut charts = BTreeMap::new();
        for name in ChartName::ALL {
            let path = name.path();
            let subtree = tree
                .subtree(&format!("{root}charts/{path}"))
                .ok_or(PayloadError::MissingChart(path))?;
            let chart = Chart::from_tree(&subtree)
                .map_err(|source| PayloadError::Chart(path, Box::new(source)))?;
            charts.insert(name, chart);
        }
        let prefix = format!("{root}profiles/");
        let mut profiles = BTreeMap::new();
        for path in tree.paths() {
            let Some(name) = path
                .strip_prefix(&prefix)
                .and_then(|p| p.strip_suffix(".yaml"))
            else {
                continue;
            };
            if name.contains('/') {
                continue;
            }
            let text = String::from_utf8_lossy(tree.get(path).unwrap_or_default());
            let value = yaml::parse(&text)
                .map_err(|source| PayloadError::Profile(name.to_owned(), source))?;
            profiles.insert(name.to_owned(), value);
        }
        Ok(Self { charts, profiles })
    }

    /// One of the charts.
    pub fn chart(&self, name: ChartName) -> &Chart {
        // `from_tree` refuses a payload that lacks any of ChartName::ALL.
        &self.charts[&name]
    }

    /// The Istio version, as the istiod chart's `appVersion` has it: `1.31.0`.
    #[expect(clippy::misnamed_getters, reason = "a chart's own version may differ")]
    pub fn version(&self) -> &str {
        &self.chart(ChartName::Istiod).app_version
    }

    /// The names of the profiles, sorted.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// The kinds of clusters that the istiod chart has settings for.
    pub fn platforms(&self) -> BTreeSet<&str> {
        let files = self.chart(ChartName::Istiod).file_names();
        files
            .filter_map(|file| file.strip_prefix("files/profile-platform-"))
            .filter_map(|file| file.strip_suffix(".yaml"))
            .collect()
    }

    /// The profile's overlay laid over `default`, or none if there is no such profile.
    pub fn profile(&self, name: &str) -> Option<Value> {
        let overlay = self.profiles.get(name)?;
        let mut merged = self.profiles.get("default").cloned().unwrap_or_default();
        if name != "default" {
            helm_chart::values::layer(&mut merged, overlay.clone());
        }
        Some(merged)
    }
}

/// The path up to and including `manifests/`, wherever the archive has it.
fn manifests_root(tree: &FileTree) -> Option<String> {
    tree.paths().find_map(|path| {
        let at = path.find("manifests/charts/")?;
        let before = &path[..at];
        (before.is_empty() || before.ends_with('/')).then(|| format!("{before}manifests/"))
    })
}
