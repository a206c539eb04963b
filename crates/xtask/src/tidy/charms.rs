//! Rules about the descriptions of the charms.

use serde_json::Value;

use super::{Facts, Findings};

/// What Charmcraft requires at the top of a charm's description.
const REQUIRED: &[&str] = &[
    "name",
    "type",
    "summary",
    "description",
    "platforms",
    "parts",
];
/// Charmcraft's limit for a summary, in characters.
const SUMMARY: usize = 200;

/// Each charm has a description that parses, has what Charmcraft requires and bears its folder's
/// name. The descriptions that crates keep for their own tests only have to parse.
pub(super) fn charmcraft(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for package in facts.metadata.members() {
        let Some(parent) = package.folder.parent().and_then(|path| path.file_name()) else {
            continue;
        };
        let path = format!("charms/{}/charmcraft.yaml", package.name);
        if parent == "charms" && !facts.tree.has(&path) {
            findings.push(format!("{path} is missing"));
        }
    }
    for (path, text) in facts.tree.ending("charmcraft.yaml") {
        let found = match yaml::parse(text) {
            Ok(value) if is_packed(path) => judge(path, &value),
            Ok(_) => Vec::new(),
            Err(error) => vec![error.to_string()],
        };
        findings.extend(
            found
                .into_iter()
                .map(|finding| format!("{path}: {finding}")),
        );
    }
    findings
}

/// Whether a description is that of a charm that is built here, not of a crate's own tests.
fn is_packed(path: &str) -> bool {
    path.starts_with("charms/") || path.starts_with("tests/workload/")
}

fn judge(path: &str, charm: &Value) -> Vec<String> {
    let mut findings: Vec<String> = REQUIRED
        .iter()
        .filter(|key| charm.get(key).is_none_or(Value::is_null))
        .map(|key| format!("`{key}` is missing"))
        .collect();
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    if path.starts_with("charms/") && charm["name"] != folder {
        findings.push(format!("the name is not {folder}"));
    }
    if charm["type"] != "charm" {
        findings.push("the type is not `charm`".to_owned());
    }
    if charm["summary"]
        .as_str()
        .is_some_and(|summary| summary.chars().count() > SUMMARY)
    {
        findings.push(format!("the summary is longer than {SUMMARY} characters"));
    }
    for (name, option) in charm["config"]["options"].as_object().into_iter().flatten() {
        if option["description"].as_str().is_none_or(str::is_empty) {
            findings.push(format!("the option {name} has no description"));
        }
        let kind = option["type"].as_str().unwrap_or_default();
        if !["string", "int", "float", "boolean", "secret"].contains(&kind) {
            findings.push(format!("the option {name} has the type `{kind}`"));
        }
    }
    for (name, action) in charm["actions"].as_object().into_iter().flatten() {
        if action["description"].as_str().is_none_or(str::is_empty) {
            findings.push(format!("the action {name} has no description"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn charm() -> Value {
        json!({
            "name": "meshy", "type": "charm", "summary": "s", "description": "d",
            "platforms": {"ubuntu@24.04:amd64": null}, "parts": {},
            "config": {"options": {"hub": {"type": "string", "description": "Where images are."}}},
        })
    }

    #[test]
    fn a_whole_description_has_no_findings() {
        assert_eq!(
            judge("charms/meshy/charmcraft.yaml", &charm()),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |pointer: &str, value: Value, expect: &str| {
            let mut charm = charm();
            *charm.pointer_mut(pointer).unwrap() = value;
            assert_eq!(judge("charms/meshy/charmcraft.yaml", &charm), [expect]);
        };
        check("/platforms", Value::Null, "`platforms` is missing");
        check("/name", json!("other"), "the name is not meshy");
        check("/type", json!("bundle"), "the type is not `charm`");
        check(
            "/summary",
            json!("x".repeat(201)),
            "the summary is longer than 200 characters",
        );
        check(
            "/config/options/hub/type",
            json!("text"),
            "the option hub has the type `text`",
        );
        check(
            "/config/options/hub/description",
            json!(""),
            "the option hub has no description",
        );
    }
}
