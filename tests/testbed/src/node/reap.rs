//! Free places for nodes, and the end of nodes that nobody ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{LIMIT, Place};
use crate::api::wait;
use crate::{paths, run};

/// A file in the directory of a node that lives without an owner.
pub(super) const KEPT: &str = "kept";
/// The supervisor's name in the process list.
pub(super) const SUPERVISOR: &str = "testbed-node-supervisor";

/// No node lives at any place, and none is started, for as long as this is held.
#[derive(Debug)]
pub struct Vacancy {
    _locks: Vec<File>,
}

/// Waits until no node lives at all, unless there is one that nobody will end.
pub fn vacant(say: &mut dyn FnMut(&str)) -> Result<Vacancy> {
    let mut locks = Vec::new();
    for place in Place::ALL {
        locks.push(lock_one(&[place], say)?.1);
    }
    Ok(Vacancy { _locks: locks })
}

/// Waits for a free place, and holds its lock.
pub(super) fn free_place(say: &mut dyn FnMut(&str)) -> Result<(Place, File)> {
    lock_one(&Place::ALL, say)
}

fn lock_one(places: &[Place], say: &mut dyn FnMut(&str)) -> Result<(Place, File)> {
    let mut told = false;
    loop {
        for &place in places {
            if let Some(lock) = place.try_lock()? {
                return Ok((place, lock));
            }
        }
        let living = living()?;
        let mut mine = living.iter().filter(|(place, _)| places.contains(place));
        let mut kept = mine.clone().filter(|(_, dir)| dir.join(KEPT).exists());
        if kept.clone().count() == places.len()
            && let Some((_, dir)) = kept.next()
        {
            bail!(
                "a node was left running in {}; `testbed down` ends it",
                dir.display()
            );
        }
        if let (false, Some((_, dir))) = (told, mine.next()) {
            say(&format!(
                "waiting for the end of the node in {}",
                dir.display()
            ));
            told = true;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Every living node: its place and its directory.
pub(super) fn living() -> Result<Vec<(Place, PathBuf)>> {
    let mut found = Vec::new();
    for place in Place::ALL {
        found.extend(place.living()?.map(|dir| (place, dir)));
    }
    Ok(found)
}

/// Ends every living node, whoever owns it, and returns when nothing is left of them.
pub fn down() -> Result<()> {
    for (place, dir) in living()? {
        end(place, &dir)?;
    }
    reap()
}

/// Ends the node of a directory.
pub(super) fn end(place: Place, dir: &Path) -> Result<()> {
    let pid =
        fs::read_to_string(dir.join("supervisor.pid")).context("the node is only just starting")?;
    let pid = pid.trim();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if !String::from_utf8_lossy(&line).contains(SUPERVISOR) {
        bail!("process {pid} is not the node's supervisor");
    }
    run::output(run::command("kill").args(["-TERM", pid]))?;
    wait("end of the node", LIMIT, || {
        Ok(place.living()?.is_none().then_some(()))
    })
}

/// Removes what nodes left whose supervisor was killed; leaves the living alone.
pub fn reap() -> Result<()> {
    for place in Place::ALL {
        if let Some(_lock) = place.try_lock()? {
            leftovers(place)?;
        }
    }
    Ok(())
}

/// As [`reap`], for a caller that holds the place's lock. Namespaces, mounts, routes and processes
/// end with the first process of the node; what can stay is the link for a moment, cgroups and files.
pub(super) fn leftovers(place: Place) -> Result<()> {
    let link = place.host_link();
    if Path::new("/sys/class/net").join(&link).exists() {
        // It may vanish by itself meanwhile: the other end went with its namespace.
        let _ = run::output(run::command("ip").args(["link", "del", &link]));
    }
    wait("end of the last node's cgroups", LIMIT, || {
        let groups = cgroups(place)?;
        for group in &groups {
            remove_group(group);
        }
        Ok(groups.is_empty().then_some(()))
    })?;
    let own = fs::read_dir(paths::root().join("run"))
        .into_iter()
        .flatten()
        .flatten();
    // The last node may have been another checkout's.
    for dir in own.map(|entry| entry.path()).chain([place.announced()]) {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&place.dir_prefix()) && dir.is_dir() {
            fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
        }
    }
    Ok(())
}

/// The place's cgroup in each hierarchy.
fn cgroups(place: Place) -> Result<Vec<PathBuf>> {
    let (top, name) = (Path::new("/sys/fs/cgroup"), place.cgroup());
    let mut found = vec![top.join(&name)];
    for entry in fs::read_dir(top)? {
        found.push(entry?.path().join(&name));
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
