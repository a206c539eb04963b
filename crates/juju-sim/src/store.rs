//! The model directory: one JSON file with the state, a lock, the debug log, the hook records.
//!
//! The state file is replaced atomically (write beside, fsync, rename, fsync of the directory), so
//! a killed simulator leaves the last complete moment. The lock is an advisory file lock that the
//! kernel drops with its process; commands on one model therefore run one after the other.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use crate::state::State;

/// Why the model directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file of the model cannot be read or written.
    #[error("cannot access {path}", path = path.display())]
    Access {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The state file does not hold a state.
    #[error("damaged state in {path}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The state file was written by another version.
    #[error("model state has format {found}, this simulator knows {known}")]
    Format {
        /// Format found.
        found: u32,
        /// Format known.
        known: u32,
    },
}

/// Format of the state file.
pub(crate) const FORMAT: u32 = 1;

/// An open, locked model directory.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    /// Held for its lock.
    _lock: File,
}

impl Store {
    /// Opens and locks a directory, making it if needed; waits while another process holds it.
    pub(crate) fn open(dir: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(dir).map_err(access(dir))?;
        let dir = dir.canonicalize().map_err(access(dir))?;
        let path = dir.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(access(&path))?;
        lock.lock().map_err(access(&path))?;
        Ok(Self { dir, _lock: lock })
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The stored state, none in a new directory.
    pub(crate) fn load(&self) -> Result<Option<State>, StoreError> {
        let path = self.dir.join("state.json");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(access(&path)(e)),
        };
        let state: State = serde_json::from_slice(&bytes)
            .map_err(|source| StoreError::Damaged { path, source })?;
        if state.format != FORMAT {
            return Err(StoreError::Format {
                found: state.format,
                known: FORMAT,
            });
        }
        Ok(Some(state))
    }

    /// Makes `state` the stored one.
    pub(crate) fn save(&self, state: &State) -> Result<(), StoreError> {
        replace(&self.dir.join("state.json"), state)
    }

    /// Appends one line of JSON to a log of the model.
    pub(crate) fn append(&self, file: &str, line: &impl Serialize) -> Result<(), StoreError> {
        let path = self.dir.join(file);
        let write = || -> io::Result<()> {
            let mut text = serde_json::to_vec(line)?;
            text.push(b'\n');
            open_append(&path)?.write_all(&text)
        };
        write().map_err(access(&path))
    }

    /// Appends text to a log of the model.
    pub(crate) fn append_text(&self, file: &str, text: &str) -> Result<(), StoreError> {
        let path = self.dir.join(file);
        let write = || open_append(&path)?.write_all(text.as_bytes());
        write().map_err(access(&path))
    }
}

/// Puts a value into a file, whole or not at all; its directory is made if needed.
pub(crate) fn replace(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let write = || -> io::Result<()> {
        let dir = path.parent().unwrap_or(path);
        fs::create_dir_all(dir)?;
        let beside = path.with_extension("json.new");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(&serde_json::to_vec_pretty(value)?)?;
        file.sync_data()?;
        fs::rename(&beside, path)?;
        File::open(dir)?.sync_data()
    };
    write().map_err(access(path))
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// Turns an I/O error at `path` into a [`StoreError`].
pub(crate) fn access(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    move |source| StoreError::Access {
        path: path.to_owned(),
        source,
    }
}
