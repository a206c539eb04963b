//! The `juju` command as a user types it, each call a process of its own.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::wait::until;

/// How long applications may take to settle on a busy machine.
const SETTLE: Duration = Duration::from_mins(4);

/// A Juju model, reached through the command.
#[derive(Clone, Debug)]
pub struct Juju {
    program: PathBuf,
    data: PathBuf,
    kubeconfig: PathBuf,
}

impl Juju {
    /// The command `program` with its models kept in `data`, on the cluster of `kubeconfig`.
    pub fn new(program: PathBuf, data: PathBuf, kubeconfig: PathBuf) -> Self {
        Self {
            program,
            data,
            kubeconfig,
        }
    }

    /// Runs `juju ARGS` and gives its stdout.
    ///
    /// # Errors
    /// A non-zero exit; the error has the command, its stderr and its stdout.
    #[expect(
        clippy::disallowed_methods,
        reason = "the harness runs the command a user would type"
    )]
    pub fn run(&self, args: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .args(args)
            .env("JUJU_DATA", &self.data)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .with_context(|| format!("start {}", self.program.display()))?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("juju {}\n{stderr}{stdout}", args.join(" "))
    }

    /// `juju status --format json`.
    ///
    /// # Errors
    /// As [`Self::run`], or an answer that is no JSON.
    pub fn status(&self) -> Result<Value> {
        serde_json::from_str(&self.run(&["status", "--format", "json"])?).context("status")
    }

    /// Status and message of an application, as in `active: ` or `blocked: option profile …`.
    ///
    /// # Errors
    /// As [`Self::status`].
    pub fn app_status(&self, app: &str) -> Result<String> {
        let status = self.status()?;
        let status = &status["applications"][app]["application-status"];
        let current = status["current"].as_str().unwrap_or("absent");
        Ok(format!(
            "{current}: {}",
            status["message"].as_str().unwrap_or_default()
        ))
    }

    /// Waits until the application's status starts with `expect`, letting time pass in the model.
    ///
    /// # Errors
    /// It does not within four minutes; the error has the status and the log's end.
    pub fn wait_status(&self, app: &str, expect: &str) -> Result<String> {
        let mut last = String::new();
        until(&format!("{app} {expect:?}"), SETTLE, || {
            last = self.app_status(app)?;
            if last.starts_with(expect) {
                return Ok(Some(last.clone()));
            }
            // What waits for the cluster looks again at the next update-status, which is minutes
            // away; the harness brings it forward.
            self.run(&["update-status", app])?;
            Ok(None)
        })
        .with_context(|| format!("{app} is {last:?}\n{}", self.log_end()))
    }

    /// Waits until each application is active.
    ///
    /// # Errors
    /// As [`Self::wait_status`].
    pub fn wait_active(&self, apps: &[&str]) -> Result<()> {
        apps.iter()
            .try_for_each(|app| self.wait_status(app, "active").map(drop))
    }

    /// Runs an action and gives its results.
    ///
    /// # Errors
    /// The action fails.
    pub fn action(&self, unit: &str, action: &str, params: &[&str]) -> Result<Value> {
        let mut args = vec!["run", "--format", "json", unit, action];
        args.extend(params);
        let answer: Value = serde_json::from_str(&self.run(&args)?).context("run")?;
        let unit = answer
            .as_object()
            .and_then(|map| map.values().next())
            .context("no unit")?;
        Ok(unit["results"].clone())
    }

    fn log_end(&self) -> String {
        self.run(&["debug-log", "--limit", "40"])
            .unwrap_or_else(|error| format!("no log: {error}"))
    }
}
