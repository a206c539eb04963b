//! From `charmcraft.yaml` to the files that Juju reads inside a charm.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use super::archive::Entry;

/// Keys for Charmcraft alone, or packed under another name.
const NOT_METADATA: &[&str] = &[
    "actions",
    "adopt-info",
    "analysis",
    "base",
    "build-base",
    "charm-libs",
    "config",
    "links",
    "package-repositories",
    "parts",
    "platforms",
    "title",
    "type",
];

/// A parsed `charmcraft.yaml`.
#[derive(Debug, Clone)]
pub(super) struct Charm {
    name: String,
    keys: Map<String, Value>,
}

/// What the manifest says about its packing. Nothing of it depends on when or where that was.
#[derive(Debug, Clone)]
pub(super) struct Packer {
    /// Version of the program that packed, in the place of Charmcraft's.
    pub(super) version: String,
    /// The time of the sources, RFC 3339: that of packing would make other bytes each time.
    pub(super) started_at: String,
}

/// What a charm is packed for, such as Ubuntu 24.04 on amd64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Platform {
    distribution: String,
    channel: String,
    architecture: String,
}

impl Platform {
    /// As in the name of the charm's file.
    pub(super) fn file_part(&self) -> String {
        format!(
            "{}-{}-{}",
            self.distribution, self.channel, self.architecture
        )
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{}:{}",
            self.distribution, self.channel, self.architecture
        )
    }
}

impl Charm {
    /// Reads the description in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("charmcraft.yaml");
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is not a charm's", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let Value::Object(keys) = yaml::parse(text)? else {
            anyhow::bail!("it is not a mapping")
        };
        let name = keys
            .get("name")
            .and_then(Value::as_str)
            .context("`name` is missing")?
            .to_owned();
        Ok(Self { name, keys })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The platform for an architecture, from either way to write it: `ubuntu@24.04:amd64` among
    /// the platforms, or `base: ubuntu@24.04` and `amd64` among them.
    pub(super) fn platform(&self, architecture: &str) -> Result<Platform> {
        let platforms = self.keys.get("platforms").and_then(Value::as_object);
        let names = || platforms.into_iter().flat_map(|map| map.keys());
        let base = match self.keys.get("base").and_then(Value::as_str) {
            Some(base) if names().any(|name| name == architecture) => Some(base),
            Some(_) => None,
            None => names().find_map(|name| {
                let (base, found) = name.split_once(':')?;
                (found == architecture).then_some(base)
            }),
        };
        let (distribution, channel) = base
            .and_then(|base| base.split_once('@'))
            .with_context(|| format!("no platform for {architecture}"))?;
        Ok(Platform {
            distribution: distribution.to_owned(),
            channel: channel.to_owned(),
            architecture: architecture.to_owned(),
        })
    }

    /// The YAML files of the packed charm.
    pub(super) fn files(&self, platform: &Platform, packer: &Packer) -> Result<Vec<Entry>> {
        let mut files = vec![
            yaml_file("metadata.yaml", &self.metadata()?)?,
            yaml_file("manifest.yaml", &manifest(platform, packer))?,
        ];
        for (key, file) in [("config", "config.yaml"), ("actions", "actions.yaml")] {
            if let Some(value) = self.keys.get(key) {
                files.push(yaml_file(file, value)?);
            }
        }
        Ok(files)
    }

    fn metadata(&self) -> Result<Value> {
        for key in ["summary", "description"] {
            ensure!(
                self.keys.get(key).is_some_and(Value::is_string),
                "`{key}` is missing"
            );
        }
        let mut metadata = self.keys.clone();
        metadata.retain(|key, _| !NOT_METADATA.contains(&key.as_str()));
        for (link, value) in self
            .keys
            .get("links")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let key = match link.as_str() {
                "contact" => "maintainers",
                "documentation" => "docs",
                other => other,
            };
            let value = match value {
                Value::String(one) if key == "maintainers" => json!([one]),
                other => other.clone(),
            };
            metadata.insert(key.to_owned(), value);
        }
        if let Some(title) = self.keys.get("title") {
            metadata.insert("display-name".to_owned(), title.clone());
        }
        Ok(Value::Object(metadata))
    }
}

fn manifest(platform: &Platform, packer: &Packer) -> Value {
    json!({
        "charmcraft-version": packer.version,
        "charmcraft-started-at": packer.started_at,
        "analysis": {"attributes": [
            {"name": "language", "result": "unknown"},
            {"name": "framework", "result": "unknown"},
        ]},
        "bases": [{
            "name": platform.distribution,
            "channel": platform.channel,
            "architectures": [platform.architecture],
        }],
    })
}

fn yaml_file(name: &str, value: &Value) -> Result<Entry> {
    Ok(Entry::file(name, yaml::emit(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESHY: &str = "\
name: meshy
title: Meshy
type: charm
summary: A mesh.
description: |
  Two
  lines.
links:
  documentation: https://example.com/docs
  contact: mesh@example.com
  source: [https://example.com/src]
platforms:
  ubuntu@24.04:amd64:
parts:
  charm: {plugin: nil}
assumes: [k8s-api]
config:
  options:
    hub: {type: string, description: Where images are., default: ''}
actions:
  plan: {description: Show it.}
provides:
  info: {interface: istio-metadata}
";

    fn packer() -> Packer {
        Packer {
            version: "0.1.0+xtask".to_owned(),
            started_at: "2026-01-02T03:04:05Z".to_owned(),
        }
    }

    fn files(text: &str) -> Vec<(String, Value)> {
        let charm = Charm::parse(text).unwrap();
        let platform = charm.platform("amd64").unwrap();
        let entry = |entry: Entry| {
            let text = String::from_utf8(entry.bytes).unwrap();
            (entry.name, yaml::parse(&text).unwrap())
        };
        charm
            .files(&platform, &packer())
            .unwrap()
            .into_iter()
            .map(entry)
            .collect()
    }

    fn file(text: &str, name: &str) -> Value {
        files(text)
            .into_iter()
            .find(|(found, _)| found == name)
            .unwrap()
            .1
    }

    #[test]
    fn metadata_has_jujus_names_and_nothing_for_charmcraft() {
        assert_eq!(
            file(MESHY, "metadata.yaml"),
            json!({
                "name": "meshy", "display-name": "Meshy", "summary": "A mesh.",
                "description": "Two\nlines.\n", "assumes": ["k8s-api"],
                "docs": "https://example.com/docs", "maintainers": ["mesh@example.com"],
                "source": ["https://example.com/src"],
                "provides": {"info": {"interface": "istio-metadata"}},
            })
        );
    }

    #[test]
    fn config_keeps_its_options_key_and_actions_lose_theirs() {
        assert!(file(MESHY, "config.yaml")["options"]["hub"].is_object());
        assert_eq!(
            file(MESHY, "actions.yaml"),
            json!({"plan": {"description": "Show it."}})
        );
    }

    #[test]
    fn the_manifest_names_the_base() {
        let expect = json!([{"name": "ubuntu", "channel": "24.04", "architectures": ["amd64"]}]);
        let manifest = file(MESHY, "manifest.yaml");
        assert_eq!(manifest["bases"], expect);
        assert_eq!(manifest["charmcraft-version"], "0.1.0+xtask");
        assert_eq!(manifest["charmcraft-started-at"], "2026-01-02T03:04:05Z");
    }

    #[test]
    fn both_ways_to_write_a_platform_are_read() {
        let check = |text: &str, architecture, expect: Option<&str>| {
            let charm = Charm::parse(&format!("name: meshy\n{text}")).unwrap();
            let found = charm
                .platform(architecture)
                .ok()
                .map(|platform| platform.to_string());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        let long = "platforms: {'ubuntu@24.04:amd64': , 'ubuntu@24.04:arm64': }";
        check(long, "arm64", Some("ubuntu@24.04:arm64"));
        check(long, "riscv64", None);
        check(
            "base: ubuntu@24.04\nplatforms: {amd64: }",
            "amd64",
            Some("ubuntu@24.04:amd64"),
        );
        check("base: ubuntu@24.04\nplatforms: {amd64: }", "arm64", None);
        check("", "amd64", None);
    }

    #[test]
    fn a_charm_without_actions_gets_no_file_for_them() {
        let bare = "name: meshy\nsummary: s\ndescription: d\nplatforms: {'ubuntu@24.04:amd64': }\n";
        let names: Vec<String> = files(bare).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["metadata.yaml", "manifest.yaml"]);
    }

    #[test]
    fn a_description_without_summary_is_refused() {
        let charm = Charm::parse("name: meshy\ndescription: d\n").unwrap();
        assert!(
            charm
                .metadata()
                .unwrap_err()
                .to_string()
                .contains("summary")
        );
    }
}
