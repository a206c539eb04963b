//! Version constraints in the notation of Helm (`Masterminds/semver`): `>=1.28-0 <2`, `~1.2`, `^1.2`, `1.2.x`,
//! `1.2 - 1.4`, `||`.

use super::{Call, Row};
use crate::engine::Fail;
use crate::engine::native::entries;
use crate::engine::value::Value;
use semver::Version;

pub(super) const TABLE: &[Row] = &[
    ("semverCompare", 2, 2, |c| {
        let (constraint, version) = (c.str(0)?, c.str(1)?);
        match matches(&constraint, &version) {
            Some(result) => Ok(Value::Bool(result)),
            None => Err(Fail::call(format!(
                "invalid constraint {constraint:?} or version {version:?}"
            ))),
        }
    }),
    ("semver", 1, 1, parsed),
];

fn parsed(c: &mut Call<'_>) -> Result<Value, Fail> {
    let text = c.str(0)?;
    let Some(partial) = Partial::parse(&text) else {
        return Err(Fail::call("invalid semantic version"));
    };
    let version = partial.lowest();
    let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    Ok(Value::map(entries([
        ("Major", number(version.major)),
        ("Minor", number(version.minor)),
        ("Patch", number(version.patch)),
        ("Prerelease", Value::str(version.pre.as_str())),
        ("Metadata", Value::str(version.build.as_str())),
        ("Original", Value::Str(text)),
    ])))
}

/// A version of which the tail may be missing or a wildcard.
struct Partial {
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
    pre: semver::Prerelease,
    build: semver::BuildMetadata,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').unwrap_or((text, ""));
        let (numbers, pre) = text.split_once('-').unwrap_or((text, ""));
        let mut parts = numbers.split('.').map(|part| match part {
            "x" | "X" | "*" => Some(None),
            part => part.parse().ok().map(Some),
        });
        let major = parts.next()??;
        let minor = parts.next().unwrap_or(Some(None))?;
        let patch = parts.next().unwrap_or(Some(None))?;
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            major,
            minor: major.and(minor),
            patch: major.and(minor).and(patch),
            pre: semver::Prerelease::new(pre).ok()?,
            build: semver::BuildMetadata::new(build).ok()?,
        })
    }

    fn lowest(&self) -> Version {
        Version {
            major: self.major.unwrap_or(0),
            minor: self.minor.unwrap_or(0),
            patch: self.patch.unwrap_or(0),
            pre: self.pre.clone(),
            build: self.build.clone(),
        }
    }

    /// The first version beyond all that this one stands for.
    fn beyond(&self) -> Option<Version> {
        Some(match (self.major, self.minor, self.patch) {
            (None, _, _) => return None,
            (Some(major), None, _) => Version::new(major.saturating_add(1), 0, 0),
            (Some(major), Some(minor), None) => Version::new(major, minor.saturating_add(1), 0),
            (Some(major), Some(minor), Some(patch)) => {
                Version::new(major, minor, patch.saturating_add(1))
            }
        })
    }
}

/// Whether a version satisfies a constraint; `None` if either makes no sense.
pub(crate) fn matches(constraint: &str, version: &str) -> Option<bool> {
    let version = Partial::parse(version)?.lowest();
    let mut any = false;
    for alternative in constraint.split("||") {
        any |= all_match(alternative, &version)?;
    }
    Some(any)
}

fn all_match(alternative: &str, version: &Version) -> Option<bool> {
    let spaced = alternative.replace(" - ", " .. ").replace(',', " ");
    let mut words: Vec<String> = Vec::new();
    for word in spaced.split_whitespace() {
        match words.last_mut() {
            // An operator may be followed by a space.
            Some(last) if is_operator(last) => last.push_str(word),
            _ => words.push(word.to_owned()),
        }
    }
    if words.is_empty() {
        return None;
    }
    let mut result = true;
    let mut i = 0;
    while i < words.len() {
        if words.get(i + 1).is_some_and(|w| w == "..") {
            let high = words.get(i + 2)?;
            result &= one_matches(&format!(">={}", words[i]), version)?;
            result &= one_matches(&format!("<={high}"), version)?;
            i += 3;
        } else {
            result &= one_matches(&words[i], version)?;
            i += 1;
        }
    }
    Some(result)
}

fn is_operator(word: &str) -> bool {
    word.chars().all(|c| "=<>!~^".contains(c))
}

fn one_matches(constraint: &str, version: &Version) -> Option<bool> {
    let at = constraint.find(|c| !"=<>!~^".contains(c))?;
    let (operator, wanted) = constraint.split_at(at);
    let wanted = Partial::parse(wanted)?;
    // Pre-releases only satisfy constraints that mention one.
    let pre_ok = version.pre.is_empty() || !wanted.pre.is_empty();
    let low = wanted.lowest();
    let below =
        |bound: Option<Version>| bound.is_none_or(|bound| version.cmp_precedence(&bound).is_lt());
    let at_least = version.cmp_precedence(&low).is_ge();
    let partial = wanted.patch.is_none();
    let result = match operator {
        "" | "=" | "==" if partial => at_least && below(wanted.beyond()),
        "" | "=" | "==" => version.cmp_precedence(&low).is_eq(),
        "!=" if partial => !(at_least && below(wanted.beyond())),
        "!=" => return Some(version.cmp_precedence(&low).is_ne()),
        ">" if partial => !below(wanted.beyond()),
        ">" => version.cmp_precedence(&low).is_gt(),
        ">=" | "=>" => at_least,
        "<" => version.cmp_precedence(&low).is_lt(),
        "<=" | "=<" if partial => below(wanted.beyond()),
        "<=" | "=<" => version.cmp_precedence(&low).is_le(),
        "~" | "~>" => {
            let bound = match (wanted.major, wanted.minor) {
                (Some(major), Some(minor)) => Some(Version::new(major, minor.saturating_add(1), 0)),
                _ => wanted.beyond(),
            };
            at_least && below(bound)
        }
        "^" => {
            let bound = match (wanted.major, wanted.minor, wanted.patch) {
                (Some(0), Some(0), Some(patch)) => {
                    Some(Version::new(0, 0, patch.saturating_add(1)))
                }
                (Some(0), Some(minor), _) => Some(Version::new(0, minor.saturating_add(1), 0)),
                (Some(major), _, _) => Some(Version::new(major.saturating_add(1), 0, 0)),
                _ => None,
            };
            at_least && below(bound)
        }
        _ => return None,
    };
    Some(result && pre_ok)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn constraints_are_read_as_helm_reads_them() {
        for (constraint, version, expect) in [
            (">=1.28", "v1.36.3", Some(true)),
            (">= 1.28-0", "1.28.0-gke.1", Some(true)),
            (">=1.28", "1.29.0-gke.1", Some(false)),
            ("<1.28", "1.27.9", Some(true)),
            ("~1.2.3", "1.2.9", Some(true)),
            ("~1.2", "1.3.0", Some(false)),
            ("^1.2", "1.9.0", Some(true)),
            ("^0.2", "0.3.0", Some(false)),
            ("1.2.x", "1.2.7", Some(true)),
            ("1.2", "1.3.0", Some(false)),
            ("*", "5.0.0", Some(true)),
            ("1.2 - 1.4", "1.4.9", Some(true)),
            ("1.2 - 1.4", "1.5.0", Some(false)),
            (">=1.2, <1.4", "1.4.0", Some(false)),
            ("<1 || >=2", "2.1.0", Some(true)),
            ("!=1.2.3", "1.2.4", Some(true)),
            (">1.2", "1.2.9", Some(false)),
            ("<=1.2", "1.2.9", Some(true)),
            ("nonsense", "1.2.3", None),
            (">=1", "nonsense", None),
        ] {
            assert_eq!(
                matches(constraint, version),
                expect,
                "{constraint} {version}"
            );
        }
    }
}
