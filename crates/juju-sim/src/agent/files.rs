//! A unit's files: its charm directory, the hook tools, the program to start.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;

use crate::Model;
use crate::ModelError;
use crate::charm::archive;
use crate::hook::Hook;
use crate::state::Task;
use crate::state::TaskKind;
use crate::state::split_unit;
use crate::store::access;
use crate::tools;

/// What to start for a hook.
pub(super) enum Program {
    Run(Vec<String>),
    Missing,
    Unusable(String),
}

/// The program for a hook and how Juju names that choice in its log.
pub(super) fn program(charm: &Path, hook: &Hook, task: Option<&(u64, Task)>) -> (Program, String) {
    if let Some((
        _,
        Task {
            kind: TaskKind::Exec { script },
            ..
        },
    )) = task
    {
        let shell = if Path::new("/bin/bash").exists() {
            "/bin/bash"
        } else {
            "/bin/sh"
        };
        let argv = vec![shell.to_owned(), "-c".to_owned(), script.clone()];
        return (Program::Run(argv), "juju-exec".to_owned());
    }
    let bespoke = match task {
        Some((
            _,
            Task {
                kind: TaskKind::Action { name, .. },
                ..
            },
        )) => charm.join("actions").join(name),
        _ => charm.join("hooks").join(hook.name()),
    };
    let dispatch = charm.join("dispatch");
    let (path, how) = if dispatch.exists() {
        (dispatch, "hook dispatching script: dispatch")
    } else if bespoke.exists() {
        (bespoke, "explicit, bespoke hook script")
    } else {
        return (Program::Missing, "missing".to_owned());
    };
    let executable = fs::metadata(&path).is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
    let text = path.to_string_lossy().into_owned();
    if executable {
        (Program::Run(vec![text]), how.to_owned())
    } else {
        (
            Program::Unusable(format!("fork/exec {text}: permission denied")),
            how.to_owned(),
        )
    }
}

pub(super) fn unpack_charm(model: &mut Model, unit: &str) -> Result<(), ModelError> {
    let Some((app, _)) = split_unit(unit) else {
        return Ok(());
    };
    let Some(application) = model.state.applications.get(app) else {
        return Ok(());
    };
    let source = model
        .store
        .dir()
        .join("charms")
        .join(&application.charm_dir);
    let revision = application.charm_rev;
    let target = model.charm_dir(unit);
    let replace = || -> io::Result<()> {
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        archive::copy_tree(&source, &target)
    };
    replace().map_err(access(&target))?;
    if let Some(u) = model.state.unit_mut(unit) {
        u.uniter.charm_rev = Some(revision);
    }
    Ok(())
}

/// Gives a unit the application's current charm. After a pod restart start runs again; a forced
/// refresh of a unit in error changes the files and nothing else.
pub(super) fn swap_charm(model: &mut Model, unit: &str) -> Result<(), ModelError> {
    unpack_charm(model, unit)?;
    if let Some(unit) = model.state.unit_mut(unit) {
        let u = &mut unit.uniter;
        if std::mem::take(&mut u.force_charm) {
            return Ok(());
        }
        if std::mem::take(&mut u.restart) {
            u.started = false;
            u.stopped = false;
            unit.containers.clear();
        }
        u.upgrade = true;
        u.config_seen = None;
    }
    Ok(())
}

/// The directory with the tools' names, all links to the one `jujuc`.
pub(super) fn tools_dir(model: &Model) -> Result<PathBuf, ModelError> {
    let dir = model.store.dir().join("tools");
    let jujuc = jujuc(model)?;
    let link = dir.join("is-leader");
    if fs::read_link(&link).is_ok_and(|target| target == jujuc) {
        return Ok(dir);
    }
    let make = || -> io::Result<()> {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        for name in tools::names() {
            symlink(&jujuc, dir.join(name))?;
        }
        Ok(())
    };
    make().map_err(access(&dir))?;
    Ok(dir)
}

/// The `jujuc` program.
pub(super) fn jujuc(model: &Model) -> Result<PathBuf, ModelError> {
    let beside = || {
        let exe = std::env::current_exe().ok()?;
        let dir = exe.parent()?;
        [Some(dir), dir.parent()]
            .into_iter()
            .flatten()
            .map(|d| d.join("jujuc"))
            .find(|p| p.exists())
    };
    let path = model.options.jujuc.clone().or_else(beside);
    let path = path.unwrap_or_else(|| PathBuf::from("jujuc"));
    path.canonicalize().map_err(|_| ModelError::NoTools(path))
}
