//! Plan and backup in `ConfigMap`s, compressed and in parts that the API server takes.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use kube_apply::{Object, ObjectRef};
use serde::Serialize;
use serde_json::{Value, json};

use super::Failure;
use super::journal::NAMESPACE;
use crate::api::{Api, MANAGER};
use crate::inventory::Snapshot;
use crate::plan::Plan;

/// Bytes in one part; the API server takes 1 MiB, of them a third more as text.
const PART: usize = 700 * 1024;
/// More than this is no record of ours.
const LARGEST: u64 = 512 << 20;
const RECORD: &str = "istio-migrate/record";

/// The namespace of everything that is recorded.
pub(super) async fn namespace(api: &impl Api) -> Result<(), Failure> {
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    api.apply(&Object::new(namespace)?, MANAGER).await?;
    Ok(())
}

/// Stores a plan and what it wants backed up. Each migration has records of its own: those of one that
/// began before it stay.
pub(super) async fn write(api: &impl Api, plan: &Plan, snapshot: &Snapshot) -> Result<(), Failure> {
    let mut kept = Vec::new();
    for id in &plan.backup {
        // Secrets are never read for a backup.
        if id.kind == "Secret" {
            continue;
        }
        // What the plan was made from; of some kinds the snapshot has no more than metadata.
        match snapshot.objects.find(id).filter(|object| is_whole(object)) {
            Some(object) => kept.push(object.value().clone()),
            None => kept.extend(api.get(id).await?.map(Object::into_value)),
        }
    }
    let (backup, steps) = (name("backup", &plan.id), name("plan", &plan.id));
    write_parts(api, &backup, &packed(&backup, &kept)?).await?;
    write_parts(api, &steps, &packed(&steps, plan)?).await
}

fn is_whole(object: &Object) -> bool {
    let fields = object.value().as_object().into_iter().flatten();
    fields
        .into_iter()
        .any(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str()))
}

fn name(record: &str, plan: &str) -> String {
    format!("{record}-{plan}")
}

/// A record of a plan that is not there or not ours.
pub(super) fn unreadable(record: &str, plan: &str) -> Failure {
    part_unreadable(&name(record, plan), 0)
}

fn part_unreadable(record: &str, number: usize) -> Failure {
    Failure::Record {
        what: format!("{record}-{number}"),
    }
}

fn packed(record: &str, value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|_| Failure::Record {
        what: record.to_owned(),
    })
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
        let part = serde_json::to_value(ByteString(part.to_vec()));
        let part = part.map_err(|_| Failure::Record {
            what: record.to_owned(),
        })?;
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
    let unreadable = || part_unreadable(record, 0);
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
        let map = if let Some(map) = next.take() {
            map
        } else {
            let part = api.get(&part(number)).await?;
            part.ok_or_else(|| part_unreadable(record, number))?
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

/// The stored plan of that name.
pub(super) async fn plan(api: &impl Api, id: &str) -> Result<Plan, Failure> {
    let record = name("plan", id);
    let bytes = read_parts(api, &record).await?;
    serde_json::from_slice(&bytes).map_err(|_| part_unreadable(&record, 0))
}

/// The stored backup of that plan.
pub(super) async fn backup(api: &impl Api, id: &str) -> Result<Vec<Object>, Failure> {
    let record = name("backup", id);
    let bytes = read_parts(api, &record).await?;
    let values: Result<Vec<Value>, _> = serde_json::from_slice(&bytes);
    let values = values.map_err(|_| part_unreadable(&record, 0))?;
    Ok(Object::all(values)?)
}
