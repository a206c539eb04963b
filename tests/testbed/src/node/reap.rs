//! The machine-wide lock, and the end of nodes that nobody ends.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{CGROUP, HOST_LINK, LIMIT};
use crate::api::wait;
use crate::{paths, run};

/// Machine-wide, because links, routes and cgroups are. Holds the directory of the living node.
const LOCK: &str = "/run/lock/testbed-node";
/// A file in the directory of a node that lives without an owner.
pub(super) const KEPT: &str = "kept";
/// The supervisor's name in the process list.
pub(super) const SUPERVISOR: &str = "testbed-node-supervisor";

fn open() -> Result<File> {
    fs::create_dir_all("/run/lock")?;
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(LOCK)
        .with_context(|| format!("cannot open {LOCK}"))
}

/// No node lives, and none is started, for as long as this is held.
#[derive(Debug)]
pub struct Vacancy(pub(super) File);

/// Waits until no node lives, unless it is one that nobody will end. The lock is held by every
/// process that holds the file.
pub fn vacant(say: &mut dyn FnMut(&str)) -> Result<Vacancy> {
    let file = open()?;
    if let Some(dir) = current()? {
        if dir.join(KEPT).exists() {
            bail!(
                "a node was left running in {}; `testbed down` ends it",
                dir.display()
            );
        }
        say(&format!(
            "waiting for the end of the node in {}",
            dir.display()
        ));
    }
    file.lock().with_context(|| format!("cannot lock {LOCK}"))?;
    Ok(Vacancy(file))
}

/// Writes down where the living node is. The caller holds the lock.
pub(super) fn announce(dir: &Path) -> Result<()> {
    let mut file = open()?;
    file.set_len(0)?;
    writeln!(file, "{}", dir.display())?;
    Ok(())
}

/// Directory of the living node.
pub fn current() -> Result<Option<PathBuf>> {
    match open()?.try_lock() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let dir = fs::read_to_string(LOCK)?;
            Ok(Some(PathBuf::from(dir.trim())).filter(|dir| dir.is_dir()))
        }
        Err(TryLockError::Error(error)) => Err(error).context("cannot try the node's lock"),
    }
}

/// Ends the living node, whoever owns it, and returns when nothing is left of it.
pub fn down() -> Result<()> {
    if let Some(dir) = current()? {
        let pid = fs::read_to_string(dir.join("supervisor.pid"))
            .context("the node is only just starting")?;
        let pid = pid.trim();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if !String::from_utf8_lossy(&line).contains(SUPERVISOR) {
            bail!("process {pid} is not the node's supervisor");
        }
        run::output(run::command("kill").args(["-TERM", pid]))?;
    }
    wait("end of the node", LIMIT, || {
        Ok(current()?.is_none().then_some(()))
    })?;
    reap()
}

/// Removes what a node left whose supervisor was killed; does nothing while a node lives.
pub fn reap() -> Result<()> {
    let file = open()?;
    match file.try_lock() {
        Ok(()) => leftovers(),
        Err(TryLockError::WouldBlock) => Ok(()),
        Err(TryLockError::Error(error)) => Err(error).context("cannot try the node's lock"),
    }
}

/// As [`reap`], for a caller that holds the lock. Namespaces, mounts, routes and processes end with
/// the first process of the node; what can stay is the link for a moment, cgroups and files.
pub(super) fn leftovers() -> Result<()> {
    if Path::new("/sys/class/net").join(HOST_LINK).exists() {
        // It may vanish by itself meanwhile: the other end went with its namespace.
        let _ = run::output(run::command("ip").args(["link", "del", HOST_LINK]));
    }
    wait("end of the last node's cgroups", LIMIT, || {
        let groups = cgroups()?;
        for group in &groups {
            remove_group(group);
        }
        Ok(groups.is_empty().then_some(()))
    })?;
    let _ = fs::remove_dir("/var/lib/kubelet");
    // The last node may have been another checkout's.
    let last = fs::read_to_string(LOCK).unwrap_or_default();
    let own = fs::read_dir(paths::root().join("run"))
        .into_iter()
        .flatten()
        .flatten();
    for dir in own
        .map(|entry| entry.path())
        .chain([PathBuf::from(last.trim())])
    {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("node-") && dir.is_dir() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
    }
    Ok(())
}

/// The node's cgroup in each hierarchy.
fn cgroups() -> Result<Vec<PathBuf>> {
    let top = Path::new("/sys/fs/cgroup");
    let mut found = vec![top.join(CGROUP)];
    for entry in fs::read_dir(top)? {
        found.push(entry?.path().join(CGROUP));
    }
    found.retain(|path| path.is_dir());
    Ok(found)
}

/// Removes a cgroup from its leaves up; one that still has processes stays.
fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}
