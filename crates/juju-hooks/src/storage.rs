//! Storage of a unit: what `storage-get` and `storage-list` tell.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::IdError;

/// One instance of a declared storage, `data/0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StorageId {
    /// The storage's declared name.
    pub name: String,
    /// Which instance of it.
    pub index: u32,
}

impl fmt::Display for StorageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.index)
    }
}

impl FromStr for StorageId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let parts = text.rsplit_once('/').filter(|(name, index)| {
            !name.is_empty() && !name.contains('/') && index.bytes().all(|b| b.is_ascii_digit())
        });
        let read = parts.and_then(|(name, index)| Some((name, index.parse().ok()?)));
        let (name, index) = read.ok_or_else(|| IdError {
            what: "storage id",
            text: text.to_owned(),
        })?;
        Ok(Self {
            name: name.to_owned(),
            index,
        })
    }
}

impl TryFrom<String> for StorageId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<StorageId> for String {
    fn from(id: StorageId) -> Self {
        id.to_string()
    }
}

/// How a storage shows itself to the charm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StorageForm {
    /// A device file.
    Block,
    /// A mounted directory.
    Filesystem,
}

impl StorageForm {
    /// The word Juju uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Filesystem => "filesystem",
        }
    }
}

/// What `storage-get` tells about one instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageInfo {
    /// Its form.
    pub kind: StorageForm,
    /// Where it is.
    pub location: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_ids_parse_as_juju_prints_them() {
        let check = |text: &str, expect: Option<(&str, u32)>| {
            let got = text.parse::<StorageId>().ok();
            let parts = got.as_ref().map(|id| (id.name.as_str(), id.index));
            assert_eq!(parts, expect, "{text:?}");
            assert!(got.is_none_or(|id| id.to_string() == text));
        };
        check("data/0", Some(("data", 0)));
        check("web-root/12", Some(("web-root", 12)));
        for bad in [
            "",
            "data",
            "data/",
            "/0",
            "data/x",
            "data/+1",
            "a/b/0",
            "data/99999999999",
        ] {
            check(bad, None);
        }
    }
}
