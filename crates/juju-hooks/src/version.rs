//! Juju's agent version.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A text that is no Juju version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid juju version {0:?}")]
pub struct VersionError(pub String);

/// `3.6.9`, `3.6.9.1` (a build), `4.0-beta1`, `3.6-beta2.1`. Ordered as Juju orders: a tagged
/// (pre-release) version comes before every untagged one of the same major and minor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JujuVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; with a tag, the number behind it. 0 when absent.
    pub patch: u32,
    /// `beta`, `rc`, …; empty for a release.
    pub tag: String,
    /// Fourth number; 0 when absent.
    pub build: u32,
}

impl JujuVersion {
    /// The release `major.minor.patch`.
    pub fn release(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
            tag: String::new(),
            build: 0,
        }
    }

    fn key(&self) -> (u32, u32, bool, &str, u32, u32) {
        (
            self.major,
            self.minor,
            self.tag.is_empty(),
            &self.tag,
            self.patch,
            self.build,
        )
    }
}

impl PartialOrd for JujuVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for JujuVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Display for JujuVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            major,
            minor,
            patch,
            tag,
            build,
        } = self;
        if tag.is_empty() {
            write!(f, "{major}.{minor}.{patch}")?;
        } else {
            write!(f, "{major}.{minor}-{tag}{patch}")?;
        }
        if *build > 0 {
            write!(f, ".{build}")
        } else {
            Ok(())
        }
    }
}

impl FromStr for JujuVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        parse(text).ok_or_else(|| VersionError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<JujuVersion> {
    let (major, rest) = text.split_once('.')?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (minor, rest) = rest.split_at(digits);
    let mut version = JujuVersion::release(number(major)?, number(minor)?, 0);
    let rest = match rest.strip_prefix('-') {
        Some(tagged) => {
            let letters = tagged.find(|c: char| !c.is_ascii_lowercase())?;
            if letters == 0 {
                return None;
            }
            tagged[..letters].clone_into(&mut version.tag);
            Some(&tagged[letters..])
        }
        None if rest.is_empty() => None,
        None => Some(rest.strip_prefix('.')?),
    };
    if let Some(rest) = rest {
        let (patch, build) = match rest.split_once('.') {
            Some((patch, build)) => (patch, number(build)?),
            None => (rest, 0),
        };
        version.patch = number(patch)?;
        version.build = build;
    }
    Some(version)
}

fn number(text: &str) -> Option<u32> {
    let valid = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_as_juju_writes_them_and_print_back() {
        let check = |text: &str, expect: Option<(u32, u32, &str, u32, u32)>| {
            let got = text.parse::<JujuVersion>().ok();
            let parts = got
                .as_ref()
                .map(|v| (v.major, v.minor, v.tag.as_str(), v.patch, v.build));
            assert_eq!(parts, expect, "{text:?}");
            if let Some(version) = got {
                assert_eq!(version.to_string().parse(), Ok(version), "{text:?}");
            }
        };
        check("3.6.9", Some((3, 6, "", 9, 0)));
        check("3.6.9.1", Some((3, 6, "", 9, 1)));
        check("4.0", Some((4, 0, "", 0, 0)));
        check("4.0-beta1", Some((4, 0, "beta", 1, 0)));
        check("3.6-beta2.1", Some((3, 6, "beta", 2, 1)));
        check("3.6-rc1", Some((3, 6, "rc", 1, 0)));
        for bad in [
            "",
            "3",
            "3.",
            ".6",
            "3.6.",
            "3.6-",
            "3.6-beta",
            "3.6-1",
            "3.6.9.1.2",
            "v3.6.9",
            "3.6.x",
            "3.6 .9",
            "+3.6.9",
            "3.6.-9",
            "3.6-Beta1",
            "٣.6.9",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn a_prerelease_comes_before_its_release() {
        let order = [
            "2.9.50",
            "3.6-alpha3",
            "3.6-beta2",
            "3.6-beta2.1",
            "3.6-rc1",
            "3.6.0",
            "3.6.0.1",
            "3.6.9",
            "3.10.0",
            "4.0-beta1",
            "4.0",
        ];
        let parsed: Vec<JujuVersion> = order.iter().map(|t| t.parse().unwrap()).collect();
        assert!(parsed.is_sorted());
    }
}
