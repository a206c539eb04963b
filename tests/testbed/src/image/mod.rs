//! Container images without a container tool: OCI layouts in one tar each, as the test registry
//! serves them.
//!
//! An image is named by the last part of its name and its tag (`pilot:1.31.0`); the registry ignores
//! what stands before. Layers are uncompressed: nothing here travels over a network.

mod catalog;
mod layer;
mod rootfs;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub(crate) use catalog::{BASE, COREDNS};
pub use catalog::{PAUSE, TESTAPP, base, istio, need};
pub use layer::{Entry, Layer};

use crate::digest;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image to write.
#[derive(Debug, Clone)]
pub struct Image {
    /// Name and tag, e.g. `testapp:v1`.
    pub name: String,
    /// Program and leading arguments.
    pub entrypoint: Vec<String>,
    /// `uid:gid`; empty is root.
    pub user: String,
    /// Bottom first.
    pub layers: Vec<Layer>,
}

impl Image {
    /// Writes the OCI layout and returns its path.
    pub fn write(&self, dir: &Path) -> Result<PathBuf> {
        let config = self.config();
        let layers: Vec<_> = self
            .layers
            .iter()
            .map(
                |layer| json!({"mediaType": LAYER, "digest": layer.digest(), "size": layer.size()}),
            )
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": layers,
        })
        .to_string();
        let mut entry = descriptor(MANIFEST, &manifest);
        entry["platform"] = json!({"architecture": "amd64", "os": "linux"});
        entry["annotations"] =
            json!({"io.containerd.image.name": format!("testbed.local/{}", self.name)});
        let index =
            json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();

        fs::create_dir_all(dir)?;
        let target = dir.join(format!("{}.tar", self.name.replace(':', "-")));
        let part = target.with_extension("part");
        let mut tar = tar::Builder::new(File::create(&part)?);
        append(&mut tar, "oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        append(&mut tar, "index.json", &index)?;
        for document in [&config, &manifest] {
            append(
                &mut tar,
                &blob(&digest::of_bytes(document.as_bytes())),
                document,
            )?;
        }
        // The same layer twice in one image is one blob.
        let layers: BTreeMap<_, _> = self
            .layers
            .iter()
            .map(|layer| (layer.digest(), layer))
            .collect();
        for layer in layers.values() {
            let mut header = layer::header(layer.size(), 0o644);
            let name = blob(layer.digest().trim_start_matches("sha256:"));
            let file = File::open(layer.path())
                .with_context(|| format!("cannot read {}", layer.path().display()))?;
            tar.append_data(&mut header, name, file)?;
        }
        tar.into_inner()?.sync_data()?;
        fs::rename(&part, &target)?;
        Ok(target)
    }

    fn config(&self) -> String {
        let diffs: Vec<_> = self.layers.iter().map(Layer::digest).collect();
        json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Entrypoint": self.entrypoint,
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "User": self.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": diffs},
        })
        .to_string()
    }
}

fn descriptor(media_type: &str, document: &str) -> Value {
    let digest = format!("sha256:{}", digest::of_bytes(document.as_bytes()));
    json!({"mediaType": media_type, "digest": digest, "size": document.len()})
}

fn blob(digest: &str) -> String {
    format!("blobs/sha256/{digest}")
}

fn append(tar: &mut tar::Builder<File>, name: &str, document: &str) -> io::Result<()> {
    let mut header = layer::header(document.len() as u64, 0o644);
    tar.append_data(&mut header, name, document.as_bytes())
}
