//! A revision: the name under which one control plane is told from another.
//!
//! The default revision is the empty string in chart values and `default` in the `istio.io/rev`
//! label. Passing `default` to a chart names its objects `istiod-default` while istiod looks for the
//! unsuffixed ones, so this type keeps the two spellings apart.

use std::fmt;
use std::str::FromStr;

use crate::name::{InvalidName, check_label};

/// Longest revision: `istio-sidecar-injector-<rev>-<namespace>` must still name an object, and
/// the `istio.io/rev` label value holds at most 63 bytes.
const MAX: usize = 56;

/// One control plane's revision.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub enum Revision {
    /// The unnamed revision.
    #[default]
    Default,
    /// A named revision such as `1-31`. Never empty, never `default`.
    Named(String),
}

/// Why a text is not a revision.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidRevision {
    /// Not usable as a part of object names.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// Longer than 56 bytes.
    #[error("has {0} characters, at most 56 are allowed")]
    TooLong(usize),
}

impl Revision {
    /// The value of the charts' `revision` key: empty for the default revision.
    pub fn chart_value(&self) -> &str {
        match self {
            Self::Default => "",
            Self::Named(name) => name,
        }
    }

    /// The value of the `istio.io/rev` label: `default` for the default revision.
    pub fn label(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::Named(name) => name,
        }
    }

    /// `base` with the revision's suffix, as the charts name their objects: `istiod`,
    /// `istiod-1-31`.
    pub fn suffixed(&self, base: &str) -> String {
        match self {
            Self::Default => base.to_owned(),
            Self::Named(name) => format!("{base}-{name}"),
        }
    }

    /// Whether this is the default revision.
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Default)
    }
}

impl FromStr for Revision {
    type Err = InvalidRevision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text == "default" {
            return Ok(Self::Default);
        }
        check_label(text)?;
        if text.len() > MAX {
            return Err(InvalidRevision::TooLong(text.len()));
        }
        Ok(Self::Named(text.to_owned()))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_empty_in_charts_and_spelt_out_in_labels() {
        for text in ["", "default"] {
            let revision: Revision = text.parse().unwrap();
            assert_eq!(revision.chart_value(), "");
            assert_eq!(revision.label(), "default");
            assert_eq!(revision.suffixed("istiod"), "istiod");
        }
    }

    #[test]
    fn a_named_revision_suffixes_object_names() {
        let revision: Revision = "1-31".parse().unwrap();
        assert_eq!(revision.chart_value(), "1-31");
        assert_eq!(revision.label(), "1-31");
        assert_eq!(
            revision.suffixed("istio-sidecar-injector"),
            "istio-sidecar-injector-1-31"
        );
    }

    #[test]
    fn a_revision_that_cannot_name_an_object_is_refused() {
        assert!("1.31".parse::<Revision>().is_err());
        assert!("Canary".parse::<Revision>().is_err());
        assert_eq!(
            "a".repeat(57).parse::<Revision>(),
            Err(InvalidRevision::TooLong(57))
        );
    }
}
