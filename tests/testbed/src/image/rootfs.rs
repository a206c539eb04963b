//! The base layer: a shell, core tools, iptables and nftables, unpacked from Debian packages.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use super::layer::Layer;
use crate::digest::Key;
use crate::{paths, run};

const PACKAGES: &[&str] = &[
    "base-files",
    "base-passwd",
    "bash",
    "ca-certificates",
    "coreutils",
    "dash",
    "gcc-12-base",
    "iptables",
    "libacl1",
    "libattr1",
    "libbsd0",
    "libc6",
    "libedit2",
    "libgcc-s1",
    "libgmp10",
    "libip4tc2",
    "libip6tc2",
    "libjansson4",
    "libmd0",
    "libmnl0",
    "libnetfilter-conntrack3",
    "libnfnetlink0",
    "libnftables1",
    "libnftnl11",
    "libpcre2-8-0",
    "libselinux1",
    "libtinfo6",
    "libxtables12",
    "nftables",
];

/// Unpacking a package runs none of its scripts, so the links they would make are made here.
const LINKS: &[(&str, &str)] = &[
    ("bin/sh", "dash"),
    ("usr/sbin/iptables", "iptables-nft"),
    ("usr/sbin/iptables-save", "iptables-nft-save"),
    ("usr/sbin/iptables-restore", "iptables-nft-restore"),
    ("usr/sbin/ip6tables", "ip6tables-nft"),
    ("usr/sbin/ip6tables-save", "ip6tables-nft-save"),
    ("usr/sbin/ip6tables-restore", "ip6tables-nft-restore"),
];

const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
istio-proxy:x:1337:1337::/var/lib/istio:/usr/sbin/nologin
";
const GROUP: &str = "root:x:0:
nogroup:x:65534:
istio-proxy:x:1337:
";

/// The base layer, made once per list of packages.
pub(super) fn layer() -> Result<Layer> {
    let mut key = Key::default();
    for package in PACKAGES {
        key.add(package);
    }
    for text in LINKS
        .iter()
        .flat_map(|(name, target)| [*name, *target])
        .chain([PASSWD, GROUP])
    {
        key.add(text);
    }
    let path = paths::root().join(format!("layers/rootfs-{}.tar", key.short()));
    if path.exists() {
        return Layer::open(&path);
    }
    let work = paths::root().join("rootfs");
    let _ = fs::remove_dir_all(&work);
    let (debs, tree) = (work.join("debs"), work.join("tree"));
    for dir in [&debs, &tree] {
        fs::create_dir_all(dir)?;
    }
    download(&debs)?;
    for entry in fs::read_dir(&debs)? {
        run::output(
            run::command("dpkg-deb")
                .arg("-x")
                .arg(entry?.path())
                .arg(&tree),
        )?;
    }
    finish(&tree)?;
    fs::create_dir_all(path.parent().context("a layer needs a directory")?)?;
    let layer = Layer::of_tree(&path, &tree)?;
    fs::remove_dir_all(&work)?;
    Ok(layer)
}

fn download(debs: &Path) -> Result<()> {
    let fetch = || {
        let mut apt = run::command("apt-get");
        apt.args(["download", "-o", "APT::Sandbox::User=root"])
            .args(PACKAGES)
            .current_dir(debs);
        run::output(&mut apt)
    };
    // A machine's package lists may be too old, or missing, for the first try.
    if fetch().is_err() {
        run::output(run::command("apt-get").arg("update"))?;
        fetch()?;
    }
    Ok(())
}

fn finish(tree: &Path) -> Result<()> {
    for (name, target) in LINKS {
        let path = tree.join(name);
        let _ = fs::remove_file(&path);
        symlink(target, &path).with_context(|| format!("cannot link {name}"))?;
    }
    for waste in [
        "usr/share/doc",
        "usr/share/locale",
        "usr/share/man",
        "usr/lib/python3",
    ] {
        let _ = fs::remove_dir_all(tree.join(waste));
    }
    fs::write(tree.join("etc/passwd"), PASSWD)?;
    fs::write(tree.join("etc/group"), GROUP)?;
    bundle_authorities(tree)
}

/// Joins the certificate authorities into the file that TLS libraries read.
fn bundle_authorities(tree: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(tree.join("usr/share/ca-certificates/mozilla"))? {
        files.push(entry?.path());
    }
    files.sort();
    let mut bundle = String::new();
    for file in files {
        bundle.push_str(&fs::read_to_string(&file)?);
    }
    fs::create_dir_all(tree.join("etc/ssl/certs"))?;
    fs::write(tree.join("etc/ssl/certs/ca-certificates.crt"), bundle)?;
    Ok(())
}
