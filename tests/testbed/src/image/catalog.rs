//! The images the test cluster runs.

use std::path::PathBuf;

use anyhow::Result;

use super::layer::{Entry, Layer};
use super::{Image, rootfs};
use crate::build::{Artifact, Built, lock};
use crate::digest::Key;
use crate::istio::Istio;
use crate::paths;

/// The sandbox image.
pub const PAUSE: &str = "testbed.local/pause:v1";
/// Echo server, authorizer (`auth`) and client (`get URL`); entry point `/usr/local/bin/testapp`.
pub const TESTAPP: &str = "testbed.local/testapp:v1";
pub(crate) const COREDNS: &str = "testbed.local/coredns:v1";

/// Programs that the base images are made of.
pub(crate) const BASE: &[Artifact] = &[Artifact::Testapp, Artifact::Coredns];

/// Programs that need building before [`istio`] can be called.
pub fn need(istio: Istio) -> [Artifact; 3] {
    [
        Artifact::PilotDiscovery(istio),
        Artifact::PilotAgent(istio),
        Artifact::Envoy,
    ]
}

/// Images of every cluster: pause, testapp and `CoreDNS`.
pub fn base(built: &Built) -> Result<Vec<PathBuf>> {
    let _lock = lock("images.lock")?;
    let testapp = built.path(Artifact::Testapp)?;
    let program = "/usr/local/bin/testapp";
    let files = [
        ("usr/local/bin/testapp", Entry::File(testapp.into())),
        ("tmp", Entry::Directory(0o1777)),
    ];
    let coredns = built.path(Artifact::Coredns)?;
    Ok(vec![
        write("pause:v1", &[program, "pause"], "65535:65535", &[], &files)?,
        write("testapp:v1", &[program], "", &[], &files)?,
        write(
            "coredns:v1",
            &["/coredns"],
            "",
            &[],
            &[("coredns", Entry::File(coredns.into()))],
        )?,
    ])
}

/// `pilot:<version>` and `proxyv2:<version>` of one release, with upstream's Envoy.
pub fn istio(built: &Built, istio: Istio) -> Result<Vec<PathBuf>> {
    let _lock = lock("images.lock")?;
    let bootstrap = istio
        .module_dir()?
        .join("tools/packaging/common/envoy_bootstrap.json");
    let base = rootfs::layer()?;
    let envoy = built.path(Artifact::Envoy)?;
    let envoy = layer(&[("usr/local/bin/envoy", Entry::File(envoy.into()))])?;
    let pilot = built.path(Artifact::PilotDiscovery(istio))?;
    let agent = built.path(Artifact::PilotAgent(istio))?;
    Ok(vec![
        write(
            &format!("pilot:{}", istio.version),
            &["/usr/local/bin/pilot-discovery"],
            "1337:1337",
            std::slice::from_ref(&base),
            &[("usr/local/bin/pilot-discovery", Entry::File(pilot.into()))],
        )?,
        write(
            &format!("proxyv2:{}", istio.version),
            &["/usr/local/bin/pilot-agent"],
            "",
            &[base, envoy],
            &[
                ("usr/local/bin/pilot-agent", Entry::File(agent.into())),
                (
                    "var/lib/istio/envoy/envoy_bootstrap_tmpl.json",
                    Entry::File(bootstrap),
                ),
            ],
        )?,
    ])
}

/// Writes an image of some base layers and one layer of files, unless the same one exists.
fn write(
    name: &str,
    entrypoint: &[&str],
    user: &str,
    base: &[Layer],
    files: &[(&str, Entry)],
) -> Result<PathBuf> {
    let mut layers = base.to_vec();
    layers.push(layer(files)?);
    let mut key = Key::default();
    key.add(name);
    key.add(user);
    for part in entrypoint {
        key.add(part);
    }
    for layer in &layers {
        key.add(layer.digest());
    }
    let dir = paths::root().join("images").join(key.short());
    let target = dir.join(format!("{}.tar", name.replace(':', "-")));
    if target.exists() {
        return Ok(target);
    }
    let image = Image {
        name: name.into(),
        entrypoint: entrypoint.iter().map(|part| (*part).to_owned()).collect(),
        user: user.into(),
        layers,
    };
    image.write(&dir)
}

/// A layer of files, kept under a key of what is in it. Programs have keyed paths of their own, so
/// a file's path stands for its content.
fn layer(files: &[(&str, Entry)]) -> Result<Layer> {
    let mut key = Key::default();
    for (name, entry) in files {
        key.add(name);
        key.add(format!("{entry:?}"));
    }
    let path = paths::root().join(format!("layers/files-{}.tar", key.short()));
    if path.exists() {
        Layer::open(&path)
    } else {
        Layer::write(&path, files)
    }
}
