//! Rules about the shape of source files.

use super::{Facts, Findings, Tree};

/// Aim for the length of a source file, in lines.
const AIM: usize = 300;
/// Limit for it.
const LIMIT: usize = 800;
/// Limit for any file, in bytes.
const BYTES: usize = 1 << 20;
/// Endings of what people write and read as source.
const SOURCES: &[&str] = &[".rs", ".go", ".py", ".sh"];

fn sources(tree: &Tree) -> impl Iterator<Item = (&str, usize)> {
    tree.texts()
        .filter(|(path, _)| SOURCES.iter().any(|ending| path.ends_with(ending)))
        .map(|(path, text)| (path, text.lines().count()))
}

/// No source file over the limit.
pub(super) fn length(facts: &Facts) -> Findings {
    let long = sources(&facts.tree).filter(|(_, lines)| *lines > LIMIT);
    long.map(|(path, lines)| format!("{path} has {lines} lines, over {LIMIT}"))
        .collect()
}

/// Files over the aim, longest first.
pub(super) fn long(tree: &Tree) -> Vec<String> {
    let mut long: Vec<_> = sources(tree).filter(|(_, lines)| *lines > AIM).collect();
    long.sort_by_key(|&(path, lines)| (std::cmp::Reverse(lines), path));
    long.into_iter()
        .map(|(path, lines)| format!("{path} has {lines} lines, over {AIM}"))
        .collect()
}

/// No large file.
pub(super) fn size(facts: &Facts) -> Findings {
    let large = facts.tree.files().filter(|(_, bytes)| bytes.len() > BYTES);
    large
        .map(|(path, bytes)| format!("{path} has {} bytes", bytes.len()))
        .collect()
}

/// Each Rust file begins by saying what it is.
pub(super) fn head(facts: &Facts) -> Findings {
    let bare = facts
        .tree
        .ending(".rs")
        .filter(|(_, text)| !text.starts_with("//!"));
    bare.map(|(path, _)| format!("{path} does not begin with `//!`"))
        .collect()
}

/// Each `expect` and `allow` attribute has a reason.
pub(super) fn reasons(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for (path, text) in facts.tree.ending(".rs") {
        for name in ["expect", "allow"] {
            for opening in [format!("#[{name}("), format!("#![{name}(")] {
                findings.extend(unreasoned(text, &opening).map(|line| format!("{path}:{line}")));
            }
        }
    }
    findings
}

/// Lines of attributes with this opening that have no reason. An attribute stands at the start of
/// its line; what stands elsewhere is text about attributes.
fn unreasoned<'t>(text: &'t str, opening: &'t str) -> impl Iterator<Item = usize> + 't {
    text.match_indices(opening).filter_map(move |(at, _)| {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        let attribute = &text[at..at + text[at..].find(")]")?];
        let reasoned = attribute.contains("reason =");
        let line = text[..at].matches('\n').count() + 1;
        (before.trim().is_empty() && !reasoned).then_some(line)
    })
}

/// Whether a library's documentation has examples that the compiler can run.
pub(super) fn examples(tree: &Tree) -> bool {
    tree.ending(".rs").any(|(_, text)| {
        let mut inside = false;
        text.lines().any(|line| {
            let line = line.trim_start();
            let body = line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!"));
            let Some(fence) = body.and_then(|body| body.trim().strip_prefix("```")) else {
                inside = inside && body.is_some();
                return false;
            };
            let opens = !inside;
            inside = opens;
            let plain = fence.split(',').all(|word| {
                matches!(
                    word,
                    "" | "rust" | "no_run" | "should_panic" | "compile_fail"
                )
            });
            opens && plain
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(files: &[(&str, &str)]) -> Facts {
        Facts {
            tree: Tree::of(files),
            ..Facts::default()
        }
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        let (fits, over) = ("x\n".repeat(LIMIT), "x\n".repeat(LIMIT + 1));
        let facts = facts(&[("a.rs", &fits), ("b.rs", &over), ("c.md", &over)]);
        assert_eq!(length(&facts), ["b.rs has 801 lines, over 800"]);
        assert_eq!(
            long(&facts.tree),
            [
                "b.rs has 801 lines, over 300",
                "a.rs has 800 lines, over 300"
            ]
        );
    }

    #[test]
    fn a_large_file_is_found() {
        let large = "x".repeat(BYTES + 1);
        assert_eq!(size(&facts(&[("a.bin", &large), ("b.bin", "x")])).len(), 1);
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        let facts = facts(&[("a.rs", "//! A.\n"), ("b.rs", "use std;\n"), ("c.py", "")]);
        assert_eq!(head(&facts), ["b.rs does not begin with `//!`"]);
    }

    #[test]
    fn an_attribute_without_a_reason_is_found() {
        let text = "#[expect(\n    lint,\n    reason = \"why\"\n)]\nfn a() {}\n    #[expect(lint)]\n// #[expect(lint)]\n";
        assert_eq!(reasons(&facts(&[("a.rs", text)])), ["a.rs:6"]);
        let text = "#![allow(lint)]\n";
        assert_eq!(reasons(&facts(&[("a.rs", text)])), ["a.rs:1"]);
    }

    #[test]
    fn only_examples_that_run_count() {
        let check =
            |text, expect| assert_eq!(examples(&Tree::of(&[("a.rs", text)])), expect, "{text}");
        check("/// ```\n/// a();\n/// ```\n", true);
        check("//! ```no_run\n//! a();\n//! ```\n", true);
        check("/// ```text\n/// a\n/// ```\n", false);
        check("let fence = \"```\";\n", false);
    }
}
