//! A path prefix that ends at a segment border.

use std::fmt;
use std::str::FromStr;

/// Paths under this one are the charm's own; no route may claim them.
pub const RESERVED_PREFIX: &str = "/.well-known/istio-integrator";

/// Longest prefix, in bytes. Envoy and browsers take far longer ones; routes do not need them.
const MAX: usize = 1024;

/// Why a text is not a path prefix.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPrefix {
    /// It does not begin with a slash.
    #[error("must begin with /")]
    NoSlash,
    /// It has a character that paths of requests do not have, or have in more than one spelling.
    #[error("has {0:?}, which a path prefix cannot have")]
    Character(char),
    /// It has a `.` or `..` segment: proxies resolve those before they match.
    #[error("must not have . or .. segments")]
    Dots,
    /// It is longer than 1024 bytes.
    #[error("must have at most 1024 characters")]
    TooLong,
    /// It is the charm's own.
    #[error("is reserved")]
    Reserved,
}

/// A path prefix, normalised: begins with a slash, no double slashes, no slash at the end but for
/// the root itself.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Prefix(String);

impl Prefix {
    /// `/`, or `/a/b` without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `/`, or `/a/b/` with a slash at the end.
    pub fn with_slash(&self) -> String {
        if self.is_root() {
            self.0.clone()
        } else {
            format!("{}/", self.0)
        }
    }

    /// Whether this is `/`, which every path begins with.
    pub fn is_root(&self) -> bool {
        self.0 == "/"
    }

    /// Whether this is [`RESERVED_PREFIX`] or under it.
    pub fn is_reserved(&self) -> bool {
        self.0
            .strip_prefix(RESERVED_PREFIX)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The first segment; empty for the root.
    pub fn first_segment(&self) -> &str {
        self.0.split('/').nth(1).unwrap_or_default()
    }
}

impl FromStr for Prefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.starts_with('/') {
            return Err(InvalidPrefix::NoSlash);
        }
        if text.len() > MAX {
            return Err(InvalidPrefix::TooLong);
        }
        let allowed = |c: &char| c.is_ascii_alphanumeric() || "/-._~!$&'()+,=:@".contains(*c);
        if let Some(odd) = text.chars().find(|c| !allowed(c)) {
            return Err(InvalidPrefix::Character(odd));
        }
        let segments: Vec<&str> = text
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        if segments
            .iter()
            .any(|segment| matches!(*segment, "." | ".."))
        {
            return Err(InvalidPrefix::Dots);
        }
        Ok(Self(format!("/{}", segments.join("/"))))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
