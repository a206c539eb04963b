//! One finding of a check, for people and for programs.

use std::fmt;

use serde::Serialize;

/// How grave a finding is; a greater value is graver.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Nothing breaks by going on, but something is not as it should be.
    Warning,
    /// Going on breaks something: nothing is written.
    Error,
}

/// What a finding is about; as text, the same words with dashes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The payload of a release on the way cannot be used.
    StageUnusable,
    /// More than one minor forward in one step.
    MinorsSkipped,
    /// More than one minor back.
    DowngradeTooFar,
    /// A version that cannot be read.
    VersionUnknown,
    /// A proxy newer than its control plane would be.
    ProxyAhead,
    /// A proxy more than one minor behind its control plane would be.
    ProxyBehind,
    /// Nobody could tell which proxies there are.
    ProxiesUnknown,
    /// The API server is older than the release supports.
    KubernetesTooOld,
    /// A definition has objects stored in a version that the release's lacks.
    StoredVersion,
    /// A definition serves a version that the release's does not.
    ServedVersion,
    /// A Gateway API definition is older than the release reads.
    GatewayApiTooOld,
    /// A Gateway API definition lacks a version that the release reads.
    GatewayApiVersion,
    /// Two injectors take the same pods.
    InjectorOverlap,
    /// A webhook whose Service has nobody behind it.
    DeadWebhook,
    /// A disruption budget that allows no disruption, ever.
    DisruptionDeadlock,
    /// The root certificate ends soon.
    RootCertificate,
    /// A right in the cluster is missing.
    MissingRight,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Something that a person should know before an upgrade.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Finding {
    /// How grave.
    pub severity: Severity,
    /// What about.
    pub code: Code,
    /// Which object: `Kind namespace/name`, or what else it is about.
    pub object: String,
    /// Why it matters, without a full stop.
    pub why: String,
    /// The command that mends it.
    pub mend: String,
}

impl Finding {
    /// A finding that keeps the upgrade from starting.
    pub fn error(code: Code, object: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            object: object.into(),
            why: why.into(),
            mend: String::new(),
        }
    }

    /// A finding that is only told.
    pub fn warning(code: Code, object: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, object, why)
        }
    }

    /// A finding worth knowing.
    pub fn info(code: Code, object: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            severity: Severity::Info,
            ..Self::error(code, object, why)
        }
    }

    /// With the command that mends it.
    #[must_use]
    pub fn mended_by(self, mend: impl Into<String>) -> Self {
        Self {
            mend: mend.into(),
            ..self
        }
    }

    /// Whether the upgrade must not start.
    pub fn blocks(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The gravest first, then by code and object; each once.
pub fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    findings.dedup();
    findings
}

/// A few names and how many there are besides: `a, b, c (+4 more)`.
pub fn few(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names
        .iter()
        .take(SHOWN)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} (+{more} more)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_comes_first_and_each_once() {
        let warning = Finding::warning(Code::RootCertificate, "b", "soon");
        let error = Finding::error(Code::StoredVersion, "a", "stored");
        assert_eq!(
            sorted(vec![warning.clone(), error.clone(), warning.clone()]),
            [error, warning]
        );
    }

    #[test]
    fn a_code_is_its_words_with_dashes() {
        assert_eq!(Code::MinorsSkipped.to_string(), "minors-skipped");
    }

    #[test]
    fn many_names_are_counted() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(few(&names), "a, b, c (+2 more)");
        assert_eq!(few(&names[..1]), "a");
    }
}
