//! The Istio releases the testbed can make, each pinned by one module file under `go/istio`.
//!
//! Releases are commits of release branches: the module proxy serves no release tags. They carry
//! the version they are closest to.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::build::{Artifact, Progress, go, need};
use crate::{paths, run};

/// One Istio release. The payload of each can be written; programs are built for some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Istio {
    /// Version its charts, programs and images are stamped with.
    pub version: &'static str,
    /// Name of its module file under `go/istio`, without `.mod`.
    pub module_file: &'static str,
    /// Commit of its sources, as the programs report it.
    pub commit: &'static str,
    /// Whether pilot-discovery and pilot-agent can be built.
    pub programs: bool,
}

/// The current minor.
pub const V1_31: Istio = Istio {
    version: "1.31.0",
    module_file: "1.31",
    commit: "eed52ebb66ad",
    programs: true,
};
/// An earlier state of the current minor: other charts under the same minor.
pub const V1_31_PRE: Istio = Istio {
    version: "1.31.0-alpha.0",
    module_file: "1.31-pre",
    commit: "b01690e6db7d",
    programs: false,
};
/// The minor before the current one.
pub const V1_30: Istio = Istio {
    version: "1.30.3",
    module_file: "1.30",
    commit: "9739e10eb9d7",
    programs: true,
};
/// A minor long out of support, for upgrades that skip minors.
pub const V1_26: Istio = Istio {
    version: "1.26.0",
    module_file: "1.26",
    commit: "c2e9871f340c",
    programs: true,
};
/// The oldest charts.
pub const V1_24: Istio = Istio {
    version: "1.24.0",
    module_file: "1.24",
    commit: "8825a6b7f8c9",
    programs: false,
};

/// Every release, newest first.
pub const ALL: &[Istio] = &[V1_31, V1_31_PRE, V1_30, V1_26, V1_24];

impl Istio {
    /// Finds a release by version (`1.30.3`) or minor (`1.30`).
    pub fn find(name: &str) -> Result<Self> {
        ALL.iter()
            .find(|istio| istio.version == name || istio.module_file == name)
            .copied()
            .with_context(|| {
                let known: Vec<_> = ALL.iter().map(|istio| istio.version).collect();
                format!(
                    "unknown Istio release {name}; known are {}",
                    known.join(", ")
                )
            })
    }

    /// Path of its release payload: a tar.gz with `istio-<version>/manifests/{charts,profiles}`.
    pub fn payload(&self) -> Result<PathBuf> {
        self.payload_as(self.version)
    }

    /// The same charts under another version, for upgrades that change nothing but the version.
    pub fn payload_as(&self, version: &str) -> Result<PathBuf> {
        if version.is_empty() || version.contains(['/', ' ']) {
            bail!("{version:?} is no version");
        }
        let program = Artifact::Payload(*self);
        let built = need(&[program], &mut |_: &Progress<'_>| {})?;
        let target = paths::root().join(format!("payload/istio-{version}.tar.gz"));
        run::output(run::command(built.path(program)?).arg(&target).arg(version))?;
        Ok(target)
    }

    /// Directory of the `istio.io/istio` module itself.
    pub(crate) fn module_dir(&self) -> Result<PathBuf> {
        go::module_dir("istio", Some(self.module_file), "istio.io/istio")
    }
}

/// Directory of the Gateway API's standard CRDs, of the version the current Istio is built with.
pub fn gateway_api_crds() -> Result<PathBuf> {
    let module = go::module_dir("istio", Some(V1_31.module_file), "sigs.k8s.io/gateway-api")?;
    Ok(module.join("config/crd/standard"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_by_version_and_by_minor() {
        for (name, expect) in [
            ("1.31", V1_31),
            ("1.31.0", V1_31),
            ("1.31-pre", V1_31_PRE),
            ("1.30", V1_30),
            ("1.26.0", V1_26),
        ] {
            assert_eq!(Istio::find(name).unwrap(), expect, "{name}");
        }
        let error = Istio::find("1.2").unwrap_err().to_string();
        assert!(
            error.contains("1.31.0") && error.contains("1.24.0"),
            "{error}"
        );
    }
}
