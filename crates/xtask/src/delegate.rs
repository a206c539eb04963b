//! Commands that other programs of the workspace carry out.
//!
//! Invariant: the last step replaces this process, so signals and exit codes are the program's own.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};

use crate::{
    pack, preflight,
    preflight::Need,
    process::{self, Stderr},
    workspace::Workspace,
};

/// Packs the charms, then shows them at work: on the cluster of `KUBECONFIG` if that is set, else
/// on a node of our own.
pub(crate) fn demo(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    let mut needs = vec![Need::Build, Need::Go];
    if std::env::var_os("KUBECONFIG").is_none() {
        needs.push(Need::Node);
    }
    preflight::ensure(&needs)?;
    pack::pack(workspace, None)?;
    // The demo types `juju`, which is a program of other packages.
    let build = [
        "build", "--bins", "-p", "e2e", "-p", "testbed", "-p", "juju-sim",
    ];
    must(workspace.cargo().args(build))?;
    // Of the same profile as this program, and so beside it.
    let here = std::env::current_exe().context("cannot tell where this program is")?;
    replace(Command::new(here.with_file_name("demo")), args)
}

/// The simulator's `juju`.
pub(crate) fn juju(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    let mut command = run_binary(workspace, "testbed", "testbed-juju");
    if std::env::var_os("JUJU_DATA").is_none() {
        // Where the demo keeps its models.
        command.env("JUJU_DATA", workspace.path("target/testbed/juju"));
    }
    replace(command, args)
}

/// The one-node cluster.
pub(crate) fn testbed(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    if args.first().is_some_and(|verb| verb == "up") {
        preflight::ensure(&[Need::Build, Need::Go, Need::Node])?;
    }
    replace(run_binary(workspace, "testbed", "testbed"), args)
}

/// The charm's rendering path. Paths among the arguments stay relative to the caller's directory.
pub(crate) fn render(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    replace(run_binary(workspace, "istio-k8s", "render"), args)
}

fn run_binary(workspace: &Workspace, package: &str, binary: &str) -> Command {
    let mut command = workspace.cargo();
    command
        .args(["run", "--quiet", "--manifest-path"])
        .arg(workspace.path("Cargo.toml"))
        .args(["--package", package, "--bin", binary, "--"]);
    if let Ok(here) = std::env::current_dir() {
        command.current_dir(here);
    }
    command
}

fn replace(mut command: Command, args: &[String]) -> Result<ExitCode> {
    command.args(args);
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {}", process::describe(&command)))
}

/// Runs a command that has to succeed, its output going where ours goes.
pub(crate) fn must(command: &mut Command) -> Result<()> {
    let finished = process::run(command, Stderr::Shown, &mut |line| println!("{line}"))?;
    anyhow::ensure!(
        finished.status.success(),
        "{} ended with {}",
        process::describe(command),
        finished.cause()
    );
    Ok(())
}
