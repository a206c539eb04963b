//! What the cluster remembers of each revision: the objects with which it last ran well.
//!
//! A record is a Secret in istiod's namespace, of the charm's own inventory, written once every gate
//! of a reconcile has held. From it a failed upgrade is rolled back, though the payload of the release
//! before is gone, and from it the revision beside a new one is kept. Its objects are what to delete
//! when a revision goes: accounts and roles carry no label of their revision.
//!
//! It is a Secret because whoever may write Secrets in istiod's namespace holds the mesh's CA anyway.
//! Rights (RBAC) are never granted from it: of those objects it only says that they are kept.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use kube_apply::{Inventory, Object, ObjectRef};
use mesh::Revision;
use mesh::control_plane::ControlPlane;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Label of every record.
pub const LABEL: &str = "charms.istio-operators.dev/record";
/// Annotation: digest of what was tried and did not run.
const FAILED: &str = "charms.istio-operators.dev/failed-digest";
/// Annotation: why it did not.
const FAILED_WHY: &str = "charms.istio-operators.dev/failed-why";
/// Annotation: version of what was tried.
const FAILED_VERSION: &str = "charms.istio-operators.dev/failed-version";
/// A record unpacks to at most this much.
const LARGEST: u64 = 16 << 20;

/// A revision as it last ran well.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// The revision's label, `default` for the default revision.
    pub revision: String,
    /// Namespace of istiod.
    pub namespace: String,
    /// Version of the release.
    pub version: String,
    /// Digest of what makes istiod what it is, see [`digest`].
    pub digest: String,
    /// Its objects; no definitions.
    pub control_plane: ControlPlane,
    /// What was tried since and did not run.
    #[serde(skip)]
    pub failed: Option<Failed>,
}

/// An attempt that did not run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failed {
    /// Its digest.
    pub digest: String,
    /// Its version.
    pub version: String,
    /// Why.
    pub why: String,
}

impl Record {
    /// The record of a control plane that runs.
    pub fn of(
        revision: &Revision,
        namespace: &str,
        version: &str,
        control_plane: &ControlPlane,
    ) -> Self {
        Self {
            revision: revision.label().to_owned(),
            namespace: namespace.to_owned(),
            version: version.to_owned(),
            digest: digest(control_plane, version),
            control_plane: ControlPlane {
                crds: Vec::new(),
                ..control_plane.clone()
            },
            failed: None,
        }
    }

    /// The revision; the default one if the record's is none.
    pub fn revision(&self) -> Revision {
        self.revision.parse().unwrap_or_default()
    }

    /// The object that holds it. Equal records give equal objects.
    pub fn object(&self, app: &str) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": name(app, &self.revision), "namespace": self.namespace,
                "labels": {LABEL: "revision", "istio.io/rev": self.revision},
            },
            "data": {"record": packed(self)},
        });
        if let Some(Failed {
            digest,
            version,
            why,
        }) = &self.failed
        {
            object["metadata"]["annotations"] =
                json!({FAILED: digest, FAILED_VERSION: version, FAILED_WHY: why});
        }
        object
    }

    /// Reads a live record of the inventory's owner; none if it is foreign or damaged.
    pub fn read(live: &Object, inventory: &Inventory) -> Option<Self> {
        if !inventory.owns(live) || live.label(LABEL).is_none() {
            return None;
        }
        let data: ByteString =
            serde_json::from_value(live.pointer("/data/record")?.clone()).ok()?;
        let mut json = Vec::new();
        GzDecoder::new(data.0.as_slice())
            .take(LARGEST)
            .read_to_end(&mut json)
            .ok()?;
        let mut record: Self = serde_json::from_slice(&json).ok()?;
        record.failed = live.annotation(FAILED).map(|digest| Failed {
            digest: digest.to_owned(),
            version: live
                .annotation(FAILED_VERSION)
                .unwrap_or_default()
                .to_owned(),
            why: live.annotation(FAILED_WHY).unwrap_or_default().to_owned(),
        });
        // One that was copied elsewhere is not the record of what is there.
        (live.namespace() == Some(&record.namespace)).then_some(record)
    }
}

/// Marks the record's object with why an attempt failed, where that shows only later.
pub fn mark(object: &mut Object, failed: &Failed) {
    object.set_annotation(FAILED, &failed.digest);
    object.set_annotation(FAILED_VERSION, &failed.version);
    object.set_annotation(FAILED_WHY, &failed.why);
}

/// Name of the record of the revision with this label.
pub fn name(app: &str, revision: &str) -> String {
    format!("{app}.revision.{revision}")
}

/// Tells one istiod from another: its version, its objects and its webhooks. Gateways do not count:
/// one that does not start is no fault of istiod.
pub fn digest(control_plane: &ControlPlane, version: &str) -> String {
    let ControlPlane {
        crds: _,
        config,
        injector_config,
        istiod,
        cni: _,
        ztunnel: _,
        gateways: _,
        node_namespaces: _,
        webhook_sources,
    } = control_plane;
    let parts = json!([version, config, injector_config, istiod, webhook_sources]);
    let digest = Sha256::digest(parts.to_string().as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether the object grants rights: such are never written from a record.
pub fn grants_rights(object: &Value) -> bool {
    object["apiVersion"]
        .as_str()
        .is_some_and(|version| version.starts_with("rbac.authorization.k8s.io/"))
}

/// What an object is.
pub fn id(object: &Value) -> Option<ObjectRef> {
    Object::new(object.clone()).ok().map(|object| object.id())
}

fn packed(record: &Record) -> Value {
    let json = serde_json::to_vec(record).unwrap_or_default();
    // The encoder writes no time, so equal records are equal bytes.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    serde_json::to_value(ByteString(written.unwrap_or_default())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_apply::Owner;

    fn inventory() -> Inventory {
        Inventory {
            owner: Owner {
                charm: "istio-k8s".to_owned(),
                model_uuid: "1-2".to_owned(),
                app: "meshy".to_owned(),
            },
            name: "control-plane".to_owned(),
        }
    }

    fn record() -> Record {
        let control_plane = ControlPlane {
            crds: vec![json!({"kind": "CustomResourceDefinition"})],
            config: vec![json!({"kind": "ConfigMap", "metadata": {"name": "istio"}})],
            ..ControlPlane::default()
        };
        Record::of(&Revision::Default, "istio-lab", "1.31.0", &control_plane)
    }

    fn live(record: &Record) -> Object {
        let mut object = Object::new(record.object("meshy")).unwrap();
        for (key, value) in inventory().labels() {
            object.set_label(key, value);
        }
        object
    }

    #[test]
    fn a_record_reads_back_without_definitions() {
        let record = Record {
            failed: Some(Failed {
                digest: "abc".to_owned(),
                version: "1.32.0".to_owned(),
                why: "ImagePullBackOff".to_owned(),
            }),
            ..record()
        };
        let read = Record::read(&live(&record), &inventory()).unwrap();
        assert_eq!(read.version, "1.31.0");
        assert_eq!(read.control_plane.config, record.control_plane.config);
        assert!(read.control_plane.crds.is_empty());
        assert_eq!(read.failed, record.failed);
        assert_eq!(read.object("meshy"), record.object("meshy"));
    }

    #[test]
    fn a_foreign_copied_or_damaged_record_is_none() {
        let mut foreign = live(&record());
        foreign.set_label("charms.istio-operators.dev/app", "other");
        assert!(Record::read(&foreign, &inventory()).is_none());
        let mut copied = live(&record()).into_value();
        copied["metadata"]["namespace"] = "other-lab".into();
        assert!(Record::read(&Object::new(copied).unwrap(), &inventory()).is_none());
        let mut damaged = live(&record()).into_value();
        damaged["data"]["record"] = "AAAA".into();
        assert!(Record::read(&Object::new(damaged).unwrap(), &inventory()).is_none());
    }

    #[test]
    fn a_gateway_makes_no_other_istiod() {
        let (one, mut two) = (record().control_plane, record().control_plane);
        two.gateways.push(mesh::control_plane::render::Gateway {
            namespace: "edge-lab".to_owned(),
            name: "edge".to_owned(),
            objects: Vec::new(),
        });
        assert_eq!(digest(&one, "1.31.0"), digest(&two, "1.31.0"));
        assert_ne!(digest(&one, "1.31.0"), digest(&one, "1.31.1"));
    }
}
