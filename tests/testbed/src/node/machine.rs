//! What a node asks of the machine.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::build::{Tool, require};

const TOOLS: &[Tool] = &[
    Tool {
        program: "/usr/lib/cni/bridge",
        package: "containernetworking-plugins",
    },
    Tool {
        program: "conntrack",
        package: "conntrack",
    },
    Tool {
        program: "containerd",
        package: "containerd",
    },
    Tool {
        program: "ip",
        package: "iproute2",
    },
    Tool {
        program: "iptables",
        package: "iptables",
    },
    Tool {
        program: "mount",
        package: "mount",
    },
    Tool {
        program: "nft",
        package: "nftables",
    },
    Tool {
        program: "openssl",
        package: "openssl",
    },
    Tool {
        program: "ps",
        package: "procps",
    },
    Tool {
        program: "runc",
        package: "runc",
    },
    Tool {
        program: "unshare",
        package: "util-linux",
    },
];

/// Says early, and in plain words, what a machine cannot give, and installs what it lacks.
pub(super) fn prepare() -> Result<()> {
    check()?;
    require(TOOLS)
}

fn check() -> Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let root = uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0");
    if !root {
        bail!("a node needs root: it makes namespaces, mounts and network links");
    }
    let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
    let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers").is_file();
    if !v1 && !v2 {
        bail!("a node needs cgroups, and /sys/fs/cgroup has none");
    }
    Ok(())
}
