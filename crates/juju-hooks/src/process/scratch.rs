//! A directory only this user can read, gone when dropped.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// A new directory below `parent`. An existing one is never used, whoever made it.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let dir = parent.join(format!("charm-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => return Ok(Self(dir)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A new file `name` with `content`.
    pub(super) fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is left to tell anyone if this fails; the directory dies with the pod.
        drop(fs::remove_dir_all(&self.0));
    }
}
