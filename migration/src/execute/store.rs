//! Plan and backup in `ConfigMap`s, compressed and in parts that the API server takes.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use kube_apply::{Object, ObjectRef};
use serde_json::{Value, json};

use super::Failure;
use super::journal::NAMESPACE;
use crate::api::{Api, MANAGER};
use crate::plan::Plan;

/// Bytes in one part; the API server takes 1 MiB, of them a third more as text.
const PART: usize = 700 * 1024;
/// More than this is no record of ours.
const LARGEST: u64 = 512 << 20;
const RECORD: &str = "istio-migrate/record";

/// Stores a plan and what it wants backed up.
pub(super) async fn write(api: &impl Api, plan: &Plan) -> Result<(), Failure> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    api.apply(&Object::new(namespace)?, MANAGER).await?;
    let mut kept = Vec::new();
    for id in &plan.backup {
        // Secrets are never read for a backup.
        if id.kind != "Secret" {
            kept.extend(api.get(id).await?.map(Object::into_value));
        }
    }
    write_parts(
        api,
        "backup",
        &serde_json::to_vec(&kept).unwrap_or_default(),
    )
    .await?;
    write_parts(api, "plan", &serde_json::to_vec(plan).unwrap_or_default()).await
}

async fn write_parts(api: &impl Api, record: &str, bytes: &[u8]) -> Result<(), Failure> {
    let unwritable = |_| Failure::Record {
        what: record.to_owned(),
    };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).map_err(unwritable)?;
    let packed = encoder.finish().map_err(unwritable)?;
    let parts: Vec<&[u8]> = packed.chunks(PART).collect();
    for (number, part) in parts.iter().enumerate() {
        let part = serde_json::to_value(ByteString(part.to_vec())).unwrap_or_default();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("{record}-{number}"), "namespace": NAMESPACE,
                "labels": {RECORD: record},
                "annotations": {"istio-migrate/parts": parts.len().to_string()},
            },
            "binaryData": {"part": part},
        });
        api.apply(&Object::new(map)?, MANAGER).await?;
    }
    Ok(())
}

async fn read_parts(api: &impl Api, record: &str) -> Result<Vec<u8>, Failure> {
    let unreadable = || Failure::Record {
        what: record.to_owned(),
    };
    let part = |number: usize| {
        ObjectRef::namespaced("v1", "ConfigMap", NAMESPACE, &format!("{record}-{number}"))
    };
    let first = api.get(&part(0)).await?.ok_or_else(unreadable)?;
    let count = first.annotation("istio-migrate/parts");
    let count: usize = count
        .and_then(|count| count.parse().ok())
        .ok_or_else(unreadable)?;
    let mut packed = Vec::new();
    let mut next = Some(first);
    for number in 0..count {
        let map = match next.take() {
            Some(map) => map,
            None => api.get(&part(number)).await?.ok_or_else(unreadable)?,
        };
        let text = map
            .pointer("/binaryData/part")
            .cloned()
            .unwrap_or(Value::Null);
        let bytes: ByteString = serde_json::from_value(text).map_err(|_| unreadable())?;
        packed.extend(bytes.0);
    }
    let mut bytes = Vec::new();
    let read = GzDecoder::new(packed.as_slice())
        .take(LARGEST)
        .read_to_end(&mut bytes);
    read.map_err(|_| unreadable())?;
    Ok(bytes)
}

/// The stored plan.
pub(super) async fn plan(api: &impl Api) -> Result<Plan, Failure> {
    let bytes = read_parts(api, "plan").await?;
    serde_json::from_slice(&bytes).map_err(|_| Failure::Record {
        what: "plan".to_owned(),
    })
}

/// The stored backup.
pub(super) async fn backup(api: &impl Api) -> Result<Vec<Object>, Failure> {
    let bytes = read_parts(api, "backup").await?;
    let values: Vec<Value> = serde_json::from_slice(&bytes).map_err(|_| Failure::Record {
        what: "backup".to_owned(),
    })?;
    Ok(Object::all(values)?)
}
