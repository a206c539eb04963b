//! Rules about the documents.

use std::path::{Component, Path};

use super::{Facts, Findings};

/// Relative links in Markdown lead to files of the repository, and their anchors to headings.
pub(super) fn links(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for (path, text) in facts.tree.ending(".md") {
        for link in
            targets(text).filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                Some(path.to_owned())
            } else {
                resolve(path, file)
            };
            match target {
                Some(target) if facts.tree.has(&target) => {
                    let headings = facts.tree.text(&target).unwrap_or_default();
                    if !anchor.is_empty() && !anchors(headings).any(|found| found == anchor) {
                        findings.push(format!("{path}: no heading for {link}"));
                    }
                }
                _ => findings.push(format!("{path}: {link} leads nowhere")),
            }
        }
    }
    findings
}

/// Targets of `[text](target)`, outside of code.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    prose(text).flat_map(|line| {
        line.match_indices("](").filter_map(|(at, _)| {
            let rest = &line[at + 2..];
            let inside_code = line[..at].matches('`').count() % 2 == 1;
            let target = rest[..rest.find(')')?].split_whitespace().next()?;
            (!inside_code).then_some(target)
        })
    })
}

/// The lines outside of fenced code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// A link's path from the root; none when it leaves the repository.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in Path::new(link.trim_end_matches('/')).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The anchors that Markdown renderers make of headings.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

/// Decision records are numbered without doubles and have their three sections.
pub(super) fn decisions(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    let mut before = "";
    for (path, text) in facts.tree.ending(".md") {
        let Some(name) = path.strip_prefix("docs/adr/") else {
            continue;
        };
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            findings.push(format!("{path}: the name does not begin with four digits"));
        } else if number == before {
            findings.push(format!("{path}: the number {number} is taken"));
        }
        before = number;
        for section in ["## Context", "## Decision", "## Consequences"] {
            if !text.lines().any(|line| line == section) {
                findings.push(format!("{path}: no section `{section}`"));
            }
        }
    }
    findings
}

/// Kinds of change, as Keep a Changelog names them.
const KINDS: &[&str] = &[
    "Added",
    "Changed",
    "Deprecated",
    "Removed",
    "Fixed",
    "Security",
];

/// The changelog follows Keep a Changelog.
pub(super) fn changelog(facts: &Facts) -> Findings {
    match facts.tree.text("CHANGELOG.md") {
        Some(text) => judge_changelog(text),
        None => vec!["CHANGELOG.md is missing".to_owned()],
    }
}

fn judge_changelog(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if text.lines().next() != Some("# Changelog") {
        findings.push("the first line is not `# Changelog`".to_owned());
    }
    let releases: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    if releases.first() != Some(&"[Unreleased]") {
        findings.push("the first release is not `## [Unreleased]`".to_owned());
    }
    for release in releases
        .iter()
        .skip(1)
        .filter(|release| !is_release(release))
    {
        findings.push(format!("`## {release}` is not `## [1.2.3] - 2026-01-31`"));
    }
    for kind in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        if !KINDS.contains(&kind) {
            findings.push(format!("`### {kind}` is not one of {}", KINDS.join(", ")));
        }
    }
    findings
}

fn is_release(title: &str) -> bool {
    let Some((version, date)) = title.split_once(" - ") else {
        return false;
    };
    let version = version
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let numbers = |text: &str, between| text.split(between).all(|part| part.parse::<u32>().is_ok());
    version.is_some_and(|version| version.matches('.').count() == 2 && numbers(version, '.'))
        && date.len() == 10
        && date.matches('-').count() == 2
        && numbers(date, '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Tree;

    fn facts(files: &[(&str, &str)]) -> Facts {
        Facts {
            tree: Tree::of(files),
            ..Facts::default()
        }
    }

    #[test]
    fn a_link_has_to_lead_to_a_file_and_a_heading() {
        let check = |link: &str, expect: &[&str]| {
            let text = format!("see [there]({link})\n");
            let files = [
                ("docs/a.md", text.as_str()),
                ("docs/b/c.md", "# Two Words\n"),
                ("d.rs", ""),
            ];
            assert_eq!(links(&facts(&files)), expect, "{link}");
        };
        check("b/c.md", &[]);
        check("b/", &[]);
        check("../d.rs", &[]);
        check("b/c.md#two-words", &[]);
        check("https://example.com/x", &[]);
        check("c.md", &["docs/a.md: c.md leads nowhere"]);
        check("../../etc", &["docs/a.md: ../../etc leads nowhere"]);
        check("b/c.md#three", &["docs/a.md: no heading for b/c.md#three"]);
    }

    #[test]
    fn links_in_code_are_not_followed() {
        let text = "```\n[a](b)\n```\nand `[c](d)`\n[e](f)\n";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["f"]);
    }

    #[test]
    fn a_decision_needs_a_number_and_its_sections() {
        let whole = "## Context\n## Decision\n## Consequences\n";
        let check = |files: &[(&str, &str)], expect: usize| {
            assert_eq!(decisions(&facts(files)).len(), expect, "{files:?}");
        };
        check(
            &[("docs/adr/0001-a.md", whole), ("docs/adr/0002-b.md", whole)],
            0,
        );
        check(
            &[("docs/adr/0001-a.md", whole), ("docs/adr/0001-b.md", whole)],
            1,
        );
        check(&[("docs/adr/a.md", whole)], 1);
        check(&[("docs/adr/0001-a.md", "## Context\n")], 2);
    }

    #[test]
    fn the_changelog_is_judged_by_its_headings() {
        let check =
            |text: &str, expect: usize| assert_eq!(judge_changelog(text).len(), expect, "{text}");
        check(
            "# Changelog\n## [Unreleased]\n### Added\n- a\n## [0.1.0] - 2026-01-31\n",
            0,
        );
        check("# Changes\n## [Unreleased]\n", 1);
        check("# Changelog\n", 1);
        check("# Changelog\n## [Unreleased]\n### New\n", 1);
        check("# Changelog\n## [Unreleased]\n## 0.1.0\n", 1);
    }
}
