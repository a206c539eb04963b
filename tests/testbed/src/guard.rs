//! Daemons that never outlive the process that started them.

use std::fs::File;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use anyhow::{Context, Result, bail};

use crate::daemons::Daemon;
use crate::run;

/// A running daemon; dropping it kills the daemon and waits for its end.
#[derive(Debug)]
pub(crate) struct Guarded {
    name: &'static str,
    shell: Child,
    /// Closed to end the daemon.
    tie: Option<ChildStdin>,
}

impl Guarded {
    /// Starts a daemon with its output in `<dir>/log/<name>.log`.
    pub(crate) fn start(daemon: &Daemon, dir: &Path) -> Result<Self> {
        let log = File::create(dir.join(format!("log/{}.log", daemon.name)))?;
        let mut command = run::command("sh");
        command
            .args(["-c", include_str!("guard.sh"), "guard.sh"])
            .arg(&daemon.program)
            .args(&daemon.args)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .current_dir(dir);
        // Out of the terminal's foreground group: Ctrl-C is the owner's to handle.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut shell = command
            .spawn()
            .with_context(|| format!("cannot start {}", daemon.name))?;
        let tie = shell.stdin.take();
        Ok(Self {
            name: daemon.name,
            shell,
            tie,
        })
    }

    /// The daemon's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// An error when the daemon has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.shell.try_wait()? {
            Some(status) => bail!("{} ended: {status}", self.name),
            None => Ok(()),
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.tie.take());
        let _ = self.shell.wait();
    }
}
