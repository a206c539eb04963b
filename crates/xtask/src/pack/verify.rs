//! The last look at a packed charm, with a reader's eyes.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read as _},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use zip::ZipArchive;

use super::elf;

/// Entries that Juju or this project asks for.
const REQUIRED: &[&str] = &[
    "LICENSE",
    "dispatch",
    "manifest.yaml",
    "metadata.yaml",
    "version",
];
/// Entries that may be there too. Nothing else may.
const OPTIONAL: &[&str] = &["README.md", "actions.yaml", "config.yaml", "icon.svg"];

/// Checks that a charm's bytes are what `juju deploy` and the charm's machine expect.
pub(super) fn verify(bytes: &[u8], glibc: (u32, u32)) -> Result<()> {
    let entries = entries(bytes)?;
    for name in REQUIRED {
        ensure!(entries.contains_key(*name), "{name} is missing");
    }
    for name in entries.keys() {
        let known = REQUIRED.contains(&name.as_str()) || OPTIONAL.contains(&name.as_str());
        ensure!(known, "{name} does not belong into a charm");
    }
    let (mode, program) = &entries["dispatch"];
    ensure!(
        mode & 0o777 == 0o755,
        "dispatch has mode {mode:o}, so it cannot be run"
    );
    let program = elf::read(program).context("dispatch is not a 64-bit program")?;
    ensure!(program.stripped, "dispatch still has its symbols");
    if let Some(asked) = program.glibc.filter(|asked| *asked > glibc) {
        bail!(
            "dispatch asks for glibc {}.{}, which the base does not have",
            asked.0,
            asked.1
        );
    }

    let metadata = yaml_entry(&entries, "metadata.yaml")?;
    for key in ["name", "summary", "description"] {
        ensure!(metadata[key].is_string(), "metadata.yaml has no {key}");
    }
    let manifest = yaml_entry(&entries, "manifest.yaml")?;
    for key in ["charmcraft-version", "charmcraft-started-at"] {
        ensure!(manifest[key].is_string(), "manifest.yaml has no {key}");
    }
    let base = &manifest["bases"][0];
    for key in ["/name", "/channel", "/architectures/0"] {
        ensure!(
            base.pointer(key).is_some_and(Value::is_string),
            "manifest.yaml has no base {key}"
        );
    }
    if entries.contains_key("config.yaml") {
        let config = yaml_entry(&entries, "config.yaml")?;
        ensure!(config["options"].is_object(), "config.yaml has no options");
    }
    if entries.contains_key("actions.yaml") {
        let actions = yaml_entry(&entries, "actions.yaml")?;
        ensure!(
            actions.get("actions").is_none(),
            "actions.yaml has an outer key"
        );
    }
    Ok(())
}

type Entries = BTreeMap<String, (u32, Vec<u8>)>;

/// Mode and bytes by name; the names have to be sorted in the file.
fn entries(bytes: &[u8]) -> Result<Entries> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).context("it is not a zip file")?;
    let mut entries = Entries::new();
    for index in 0..zip.len() {
        let mut file = zip.by_index(index)?;
        let name = file.name()?.into_owned();
        ensure!(
            entries
                .last_key_value()
                .is_none_or(|(last, _)| *last < name),
            "{name} is out of order"
        );
        let mode = file
            .unix_mode()
            .with_context(|| format!("{name} has no mode"))?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        entries.insert(name, (mode, content));
    }
    Ok(entries)
}

fn yaml_entry(entries: &Entries, name: &str) -> Result<Value> {
    let (_, bytes) = entries
        .get(name)
        .with_context(|| format!("{name} is missing"))?;
    yaml::parse(std::str::from_utf8(bytes)?).with_context(|| format!("{name} is not YAML"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::archive::{Entry, write};

    fn charm() -> Vec<Entry> {
        vec![
            Entry::file("metadata.yaml", "name: meshy\nsummary: s\ndescription: d\n"),
            Entry::file(
                "manifest.yaml",
                "charmcraft-version: '1'\ncharmcraft-started-at: '2026-01-02T03:04:05Z'\n\
                 bases: [{name: ubuntu, channel: '24.04', architectures: [amd64]}]\n",
            ),
            Entry::file("config.yaml", "options: {}\n"),
            Entry::file("actions.yaml", "plan: {description: Show it.}\n"),
            Entry::file("version", "1\n"),
            Entry::file("LICENSE", "free\n"),
            Entry::program("dispatch", elf::sample(1, b"\0GLIBC_2.34\0")),
        ]
    }

    #[test]
    fn a_whole_charm_passes() {
        verify(&write(charm()).unwrap(), (2, 39)).unwrap();
    }

    #[test]
    fn what_is_wrong_is_named() {
        #[track_caller]
        fn check(change: impl FnOnce(&mut Vec<Entry>), expect: &str) {
            let mut entries = charm();
            change(&mut entries);
            let error = verify(&write(entries).unwrap(), (2, 39))
                .unwrap_err()
                .to_string();
            assert!(error.contains(expect), "{error}");
        }
        let replace = |name: &'static str, bytes: Vec<u8>| {
            move |entries: &mut Vec<Entry>| {
                let entry = entries.iter_mut().find(|entry| entry.name == name).unwrap();
                entry.bytes = bytes;
            }
        };
        check(
            |entries| entries.retain(|entry| entry.name != "LICENSE"),
            "LICENSE is missing",
        );
        check(
            |entries| entries.push(Entry::file("src/charm.py", "")),
            "does not belong",
        );
        check(
            |entries| entries[6].mode = 0o644,
            "dispatch has mode 100644",
        );
        check(
            replace("dispatch", b"#!/bin/sh\n".to_vec()),
            "not a 64-bit program",
        );
        check(
            replace("dispatch", elf::sample(2, b"")),
            "still has its symbols",
        );
        check(
            replace("dispatch", elf::sample(1, b"\0GLIBC_2.40\0")),
            "glibc 2.40",
        );
        check(
            replace("metadata.yaml", b"name: meshy\n".to_vec()),
            "no summary",
        );
        check(
            replace(
                "manifest.yaml",
                b"charmcraft-version: '1'\ncharmcraft-started-at: x\nbases: []\n".to_vec(),
            ),
            "no base /name",
        );
        check(
            replace("manifest.yaml", b"charmcraft-version: '1'\n".to_vec()),
            "no charmcraft-started-at",
        );
        check(replace("config.yaml", b"hub: {}\n".to_vec()), "no options");
        check(
            replace("actions.yaml", b"actions: {}\n".to_vec()),
            "outer key",
        );
    }

    #[test]
    fn half_a_file_is_no_charm() {
        let bytes = write(charm()).unwrap();
        assert!(verify(&bytes[..bytes.len() / 2], (2, 39)).is_err());
    }
}
