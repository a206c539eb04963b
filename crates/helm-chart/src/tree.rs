//! Files of a chart or of a release payload, in memory.
//!
//! Archives are untrusted: paths must stay inside, links and devices are refused, and the number of entries, the size
//! of each and the expansion of all are bounded while reading. Nothing is ever written to disk.

use crate::error::TreeError;
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::Path;

/// Bytes that are expanded at once.
const READ_BYTES: usize = 128 << 10;

/// Bounds of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Entries, directories included.
    pub entries: usize,
    /// Bytes of one kept file.
    pub file_bytes: u64,
    /// Bytes of all kept files together.
    pub kept_bytes: u64,
    /// Bytes of the whole archive once uncompressed, skipped entries included.
    pub expanded_bytes: u64,
}

impl Default for ArchiveLimits {
    /// Room for a whole Istio release archive with its binaries (some 150 MB expanded).
    fn default() -> Self {
        Self {
            entries: 20_000,
            file_bytes: 16 << 20,
            kept_bytes: 64 << 20,
            expanded_bytes: 1 << 30,
        }
    }
}

/// Files by their path: relative, `/`-separated, without `.` and `..`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTree(BTreeMap<String, Vec<u8>>);

impl FileTree {
    /// Reads a directory. Links are refused, [`ArchiveLimits::default`] holds.
    pub fn from_dir(root: &Path) -> Result<Self, TreeError> {
        let mut intake = Intake::new(ArchiveLimits::default());
        let mut pending = vec![root.to_path_buf()];
        while let Some(dir) = pending.pop() {
            let read = |source| TreeError::Read {
                path: dir.clone(),
                source,
            };
            for entry in std::fs::read_dir(&dir).map_err(read)? {
                let entry = entry.map_err(read)?;
                let path = entry.path();
                let failed = |source| TreeError::Read {
                    path: path.clone(),
                    source,
                };
                let kind = entry.file_type().map_err(failed)?;
                intake.entry()?;
                if kind.is_dir() {
                    pending.push(path);
                    continue;
                }
                let relative = path.strip_prefix(root).unwrap_or(&path);
                let name = relative
                    .to_str()
                    .ok_or_else(|| TreeError::Path(relative.display().to_string()))?;
                if !kind.is_file() {
                    return Err(TreeError::Kind(name.to_owned()));
                }
                let file = std::fs::File::open(&path).map_err(failed)?;
                intake.keep(name.to_owned(), file).map_err(|e| match e {
                    TreeError::Archive(source) => failed(source),
                    other => other,
                })?;
            }
        }
        Ok(Self(intake.files))
    }

    /// Reads a gzip-compressed tar archive.
    pub fn from_tar_gz(archive: &[u8], limits: &ArchiveLimits) -> Result<Self, TreeError> {
        Self::from_tar_gz_where(archive, limits, |_| true)
    }

    /// Reads those files of an archive whose path satisfies `wanted`; what is skipped may be anything, also a link, but
    /// still counts as an entry and as expansion.
    pub fn from_tar_gz_where(
        archive: &[u8],
        limits: &ArchiveLimits,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, TreeError> {
        let mut intake = Intake::new(limits.clone());
        let expanded = Bounded {
            inner: flate2::bufread::MultiGzDecoder::new(archive),
            left: limits.expanded_bytes,
        };
        let expanded = BufReader::with_capacity(READ_BYTES, expanded);
        let mut archive = tar::Archive::new(expanded);
        let too_large = |error: std::io::Error| {
            if error
                .get_ref()
                .and_then(|e| e.downcast_ref::<Exhausted>())
                .is_some()
            {
                TreeError::TooLarge {
                    what: "expanded bytes",
                    limit: limits.expanded_bytes,
                }
            } else {
                TreeError::Archive(error)
            }
        };
        for entry in archive.entries().map_err(too_large)? {
            let entry = entry.map_err(too_large)?;
            intake.entry()?;
            let kind = entry.header().entry_type();
            if matches!(kind, tar::EntryType::XGlobalHeader) {
                continue;
            }
            let path = entry.path_bytes();
            let raw = std::str::from_utf8(&path)
                .map_err(|_| TreeError::Path(String::from_utf8_lossy(&path).into_owned()))?
                .to_owned();
            if kind.is_dir() {
                if !matches!(raw.as_str(), "." | "./") {
                    normal(&raw)?;
                }
                continue;
            }
            let name = normal(&raw)?;
            if !wanted(&name) {
                continue;
            }
            if !matches!(kind, tar::EntryType::Regular | tar::EntryType::Continuous) {
                return Err(TreeError::Kind(name));
            }
            intake.keep(name, entry).map_err(|e| match e {
                TreeError::Archive(source) => too_large(source),
                other => other,
            })?;
        }
        Ok(Self(intake.files))
    }

    /// The files below a directory, with paths relative to it; `None` if there are none.
    pub fn subtree(&self, dir: &str) -> Option<Self> {
        let prefix = format!("{}/", dir.trim_end_matches('/'));
        let files: BTreeMap<_, _> = self
            .0
            .range(prefix.clone()..)
            .map_while(|(path, data)| Some((path.strip_prefix(&prefix)?.to_owned(), data.clone())))
            .collect();
        (!files.is_empty()).then_some(Self(files))
    }

    /// The one directory every file is in, as the `istio-1.30.3` of a release archive.
    pub fn single_root(&self) -> Option<&str> {
        let (root, _) = self.0.keys().next()?.split_once('/')?;
        let inside = |path: &String| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.0.keys().all(inside).then_some(root)
    }

    /// The content of a file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// Every path, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(path, data)| (path.as_str(), data.as_slice()))
    }
}

/// For trees that are made rather than read. Paths are checked like those of an archive.
impl<P: Into<String>, D: Into<Vec<u8>>> TryFrom<Vec<(P, D)>> for FileTree {
    type Error = TreeError;

    fn try_from(files: Vec<(P, D)>) -> Result<Self, TreeError> {
        let mut tree = BTreeMap::new();
        for (path, data) in files {
            let path = normal(&path.into())?;
            if tree.contains_key(&path) {
                return Err(TreeError::Duplicate(path));
            }
            tree.insert(path, data.into());
        }
        Ok(Self(tree))
    }
}

/// The normal form of an archive path: no leading `./`, and nothing that could lead elsewhere.
fn normal(path: &str) -> Result<String, TreeError> {
    let bad = || TreeError::Path(path.to_owned());
    if path.starts_with('/') || path.contains(['\\', '\0']) {
        return Err(bad());
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(bad()),
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        return Err(bad());
    }
    Ok(parts.join("/"))
}

/// Files taken so far, and what is left of the limits.
struct Intake {
    files: BTreeMap<String, Vec<u8>>,
    limits: ArchiveLimits,
    entries: usize,
    kept: u64,
}

impl Intake {
    fn new(limits: ArchiveLimits) -> Self {
        Self {
            files: BTreeMap::new(),
            limits,
            entries: 0,
            kept: 0,
        }
    }

    fn entry(&mut self) -> Result<(), TreeError> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(TreeError::TooLarge {
                what: "entries",
                limit: self.limits.entries as u64,
            });
        }
        Ok(())
    }

    fn keep(&mut self, path: String, data: impl Read) -> Result<(), TreeError> {
        if self.files.contains_key(&path) {
            return Err(TreeError::Duplicate(path));
        }
        let limit = self.limits.file_bytes;
        let mut bytes = Vec::new();
        data.take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(TreeError::Archive)?;
        let len = bytes.len() as u64;
        if len > limit {
            return Err(TreeError::TooLarge {
                what: "bytes in a file",
                limit,
            });
        }
        self.kept = self.kept.saturating_add(len);
        if self.kept > self.limits.kept_bytes {
            return Err(TreeError::TooLarge {
                what: "bytes in all files",
                limit: self.limits.kept_bytes,
            });
        }
        self.files.insert(path, bytes);
        Ok(())
    }
}

/// A reader that fails, rather than ends, once it has given so much.
struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("expansion limit reached")]
struct Exhausted;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        match self.left.checked_sub(n as u64) {
            Some(left) => {
                self.left = left;
                Ok(n)
            }
            None => Err(std::io::Error::other(Exhausted)),
        }
    }
}
