//! Names with the limits Kubernetes puts on them, so that a bad one is refused before anything is
//! touched.

use std::fmt;
use std::str::FromStr;

/// Longest RFC 1123 label, in bytes.
const LABEL_MAX: usize = 63;

/// Why a text is not an RFC 1123 label.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidName {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than 63 bytes.
    #[error("has {0} characters, at most 63 are allowed")]
    TooLong(usize),
    /// A character other than `a-z`, `0-9` or `-`.
    #[error("has {0:?}, only a-z, 0-9 and - are allowed")]
    Character(char),
    /// The first or last character is a dash.
    #[error("must start and end with a letter or digit")]
    Edge,
}

/// Checks that `text` is an RFC 1123 label: 1 to 63 of `a-z`, `0-9`, `-`, no dash at either end.
pub fn check_label(text: &str) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if let Some(odd) = text
        .chars()
        .find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'))
    {
        return Err(InvalidName::Character(odd));
    }
    if text.len() > LABEL_MAX {
        return Err(InvalidName::TooLong(text.len()));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(InvalidName::Edge);
    }
    Ok(())
}

/// A Kubernetes namespace name: an RFC 1123 label.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Serialize)]
pub struct Namespace(String);

impl Namespace {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Namespace {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        check_label(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &Result<(), InvalidName>) {
        assert_eq!(&text.parse::<Namespace>().map(|_| ()), expect, "{text:?}");
    }

    #[test]
    fn a_namespace_is_an_rfc_1123_label() {
        check("istio-lab", &Ok(()));
        check("a", &Ok(()));
        check("0", &Ok(()));
        check(&"a".repeat(63), &Ok(()));
        check("", &Err(InvalidName::Empty));
        check(&"a".repeat(64), &Err(InvalidName::TooLong(64)));
        check("Istio", &Err(InvalidName::Character('I')));
        check("istio_lab", &Err(InvalidName::Character('_')));
        check("istio.lab", &Err(InvalidName::Character('.')));
        check("-lab", &Err(InvalidName::Edge));
        check("lab-", &Err(InvalidName::Edge));
    }
}
