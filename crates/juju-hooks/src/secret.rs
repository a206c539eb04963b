//! What secrets are made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::ids::{AppName, RelationKey, SecretId, UnitName};
use crate::redacted::Redacted;

/// A secret's keys and values. Keys have at least three characters, lower case, digits and inner
/// dashes.
pub type SecretContent = Redacted<BTreeMap<String, String>>;

/// How to name a secret to Juju: one of both, never both (with both, Juju would relabel).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecretRef {
    /// By identifier.
    Id(SecretId),
    /// By the label this side gave it.
    Label(String),
}

/// Which revision a reader gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SecretRevision {
    /// The one this unit tracks.
    #[default]
    Tracked,
    /// The latest; tracks it from now on.
    Refresh,
    /// The latest, without tracking it.
    Peek,
}

/// Whom a grant is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretGrantee {
    /// Everyone on the other side of a relation.
    Relation(RelationKey),
    /// One application.
    App(AppName),
    /// One unit.
    Unit(UnitName),
}

/// Who owns a new secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SecretOwner {
    /// The application; only the leader can.
    #[default]
    Application,
    /// This unit.
    Unit,
}

/// How often Juju asks for a new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretRotate {
    /// Not at all.
    Never,
    /// Every hour.
    Hourly,
    /// Every day.
    Daily,
    /// Every week.
    Weekly,
    /// Every month.
    Monthly,
    /// Every three months.
    Quarterly,
    /// Every year.
    Yearly,
}

impl SecretRotate {
    /// The word hook tools use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Quarterly => "quarterly",
            Self::Yearly => "yearly",
        }
    }
}

/// What a new secret, or a new revision, is to be. Unset parts are left to Juju.
#[derive(Debug, Clone, Default)]
pub struct NewSecret {
    /// The content; empty leaves the content of an existing secret alone.
    pub content: SecretContent,
    /// The owner's label for it.
    pub label: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// RFC 3339 time or a duration such as `24h`.
    pub expire: Option<String>,
    /// Rotation policy.
    pub rotate: Option<SecretRotate>,
    /// The owner.
    pub owner: SecretOwner,
}

/// What Juju knows about an own secret, content aside.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecretInfo {
    /// Latest revision.
    pub revision: u32,
    /// The owner's label.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub label: Option<String>,
    /// `application` or `unit`.
    pub owner: String,
    /// What it is for.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub description: Option<String>,
    /// Rotation policy.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub rotation: Option<String>,
    /// Expiry as Juju wrote it: RFC 3339 with 0 to 9 fractional digits.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub expiry: Option<String>,
}

fn empty_as_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

/// Whether Juju takes `key` in a secret: a letter, then at least two more letters or digits,
/// single dashes between them.
pub(crate) fn is_secret_key(key: &str) -> bool {
    let mut count = 0;
    let mut dash = true;
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' => (count, dash) = (count + 1, false),
            b'0'..=b'9' if count > 0 => (count, dash) = (count + 1, false),
            b'-' if !dash => dash = true,
            _ => return false,
        }
    }
    count >= 3 && !dash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_keys_are_checked_as_juju_does() {
        for good in ["abc", "a-b-c", "k8s", "tls-key", "a1-2b"] {
            assert!(is_secret_key(good), "{good}");
        }
        for bad in [
            "", "ab", "1ab", "Abc", "a--b-c", "-abc", "abc-", "a_b_c", "../etc", "a-b", "é",
        ] {
            assert!(!is_secret_key(bad), "{bad}");
        }
    }

    #[test]
    fn expiries_with_any_precision_and_gaps_are_read() {
        for expiry in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.123456789+01:00",
        ] {
            let json = format!(r#"{{"revision":3,"label":"","owner":"unit","expiry":"{expiry}"}}"#);
            let info: SecretInfo = serde_json::from_str(&json).unwrap();
            assert_eq!((info.expiry.as_deref(), info.label), (Some(expiry), None));
        }
    }
}
