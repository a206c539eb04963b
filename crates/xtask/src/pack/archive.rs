//! Zip files whose bytes depend on their content alone.
//!
//! Invariants: entries are sorted by name, bear one fixed time and are compressed by one fixed
//! method; programs have mode 0755, everything else 0644.

use std::io::{Cursor, Write as _};

use anyhow::{Result, ensure};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

impl Entry {
    /// A file to read.
    pub(super) fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.into(),
            mode: 0o644,
        }
    }

    /// A file to run.
    pub(super) fn program(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(name, bytes)
        }
    }
}

/// The archive of these entries.
pub(super) fn write(mut entries: Vec<Entry>) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = entries.windows(2).find(|pair| pair[0].name == pair[1].name);
    ensure!(twice.is_none(), "two entries have one name");
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            // The first moment a zip file can name.
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode);
        zip.start_file(entry.name, options)?;
        zip.write_all(&entry.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_entries_does_not_show() {
        let (a, b) = (Entry::file("a", "one"), Entry::program("b", "two"));
        let forward = write(vec![a.clone(), b.clone()]).unwrap();
        assert_eq!(forward, write(vec![b, a]).unwrap());
    }

    #[test]
    fn a_name_cannot_be_taken_twice() {
        assert!(write(vec![Entry::file("a", "one"), Entry::file("a", "two")]).is_err());
    }
}
