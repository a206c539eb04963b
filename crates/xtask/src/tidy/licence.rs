//! Licences of everything that is linked.

use super::{Facts, Findings};

/// Licences that Apache-2.0 code may link. The same list stands in `deny.toml`.
pub(super) const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Each package's licence expression can be met from the list.
pub(super) fn licences(facts: &Facts) -> Findings {
    let mut findings = Vec::new();
    for package in &facts.metadata.packages {
        let named = format!("{} {}", package.name, package.version);
        match package.licence.as_deref() {
            None => findings.push(format!("{named} names no licence")),
            Some(expression) if !allowed(expression) => {
                findings.push(format!("{named} is under {expression}"));
            }
            Some(_) => {}
        }
    }
    if let Some(deny) = facts.tree.text("deny.toml") {
        let missing = ALLOWED
            .iter()
            .filter(|name| !deny.contains(&format!("\"{name}\"")));
        findings.extend(missing.map(|name| format!("deny.toml does not allow {name}")));
    }
    findings
}

/// Whether an SPDX expression (`OR`, `AND`, `WITH`, parentheses, and the old `/` for `OR`) can be
/// met by allowed licences only. An expression that does not parse cannot.
fn allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest) == Some(true) && rest.is_empty()
}

fn either(words: &mut &[&str]) -> Option<bool> {
    let mut met = both(words)?;
    while take(words, "OR") {
        met |= both(words)?;
    }
    Some(met)
}

fn both(words: &mut &[&str]) -> Option<bool> {
    let mut met = one(words)?;
    while take(words, "AND") {
        met &= one(words)?;
    }
    Some(met)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    if take(words, "(") {
        let met = either(words)?;
        return take(words, ")").then_some(met);
    }
    let (name, rest) = words.split_first()?;
    *words = rest;
    if take(words, "WITH") {
        let (exception, rest) = words.split_first()?;
        *words = rest;
        return Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()));
    }
    Some(ALLOWED.contains(name))
}

fn take(words: &mut &[&str], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_met_or_not() {
        let check = |expression, expect| assert_eq!(allowed(expression), expect, "{expression}");
        check("MIT", true);
        check("MIT OR GPL-3.0", true);
        check("MIT AND GPL-3.0", false);
        check("MIT/Apache-2.0", true);
        check("(MIT OR GPL-3.0) AND Unicode-3.0", true);
        check("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
        check("Apache-2.0 AND ISC", true);
        check("", false);
        check("MIT OR", false);
        check("(MIT", false);
    }
}
