//! The places for nodes on a machine, and what two nodes cannot share: addresses, link, cgroup, lock.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::paths;

/// One of the places. Everything that is the machine's carries its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u8);

impl Place {
    /// Two nodes keep two cores busy.
    pub(super) const ALL: [Self; 2] = [Self(0), Self(1)];

    /// Address of the node on the link; node ports are on it.
    pub(super) fn address(self) -> String {
        format!("10.200.{}.2", self.0)
    }

    /// The host's end of the link.
    pub(super) fn gateway(self) -> String {
        format!("10.200.{}.1", self.0)
    }

    pub(super) fn pods(self) -> String {
        format!("10.244.{}.0/24", self.0)
    }

    pub(super) fn services(self) -> String {
        format!("{}.0/24", self.service_prefix())
    }

    /// The Service of the API server.
    pub(super) fn api_service(self) -> String {
        format!("{}.1", self.service_prefix())
    }

    pub(super) fn dns(self) -> String {
        format!("{}.10", self.service_prefix())
    }

    fn service_prefix(self) -> String {
        format!("10.96.{}", self.0)
    }

    pub(super) fn cgroup(self) -> String {
        format!("testbed-node{}", self.0)
    }

    /// The link's end on the host.
    pub(super) fn host_link(self) -> String {
        format!("testbed{}", self.0)
    }

    /// Directories of nodes at this place begin like this.
    pub(super) fn dir_prefix(self) -> String {
        format!("node{}-", self.0)
    }

    /// Where the logs of the node that ended last at this place are.
    pub(super) fn last_logs(self) -> PathBuf {
        paths::root().join(format!("last-node{}-logs", self.0))
    }

    /// Machine-wide, because links, routes and cgroups are. Holds the directory of the living node.
    fn lock_file(self) -> PathBuf {
        PathBuf::from(format!("/run/lock/testbed-node{}", self.0))
    }

    fn open(self) -> Result<File> {
        let path = self.lock_file();
        fs::create_dir_all("/run/lock")?;
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))
    }

    /// The lock, unless a node lives here. It is held by every process that holds the file.
    pub(super) fn try_lock(self) -> Result<Option<File>> {
        let file = self.open()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot try the lock of {self}"))
            }
        }
    }

    /// Writes down where the living node is. The caller holds the lock.
    pub(super) fn announce(self, dir: &Path) -> Result<()> {
        let mut file = self.open()?;
        file.set_len(0)?;
        writeln!(file, "{}", dir.display())?;
        Ok(())
    }

    /// The directory that was written down last; it may be gone.
    pub(super) fn announced(self) -> PathBuf {
        let last = fs::read_to_string(self.lock_file()).unwrap_or_default();
        PathBuf::from(last.trim())
    }

    /// Directory of the node that lives here.
    pub(super) fn living(self) -> Result<Option<PathBuf>> {
        Ok(match self.try_lock()? {
            Some(_) => None,
            None => Some(self.announced()).filter(|dir| dir.is_dir()),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "place {} for nodes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_places_have_nothing_of_the_machine_in_common() {
        let all = |place: Place| {
            [
                place.address(),
                place.gateway(),
                place.pods(),
                place.services(),
                place.cgroup(),
                place.host_link(),
                place.dir_prefix(),
                place.lock_file().display().to_string(),
                place.last_logs().display().to_string(),
            ]
        };
        let [first, second] = Place::ALL.map(all);
        for (first, second) in first.iter().zip(&second) {
            assert_ne!(first, second);
        }
    }
}
