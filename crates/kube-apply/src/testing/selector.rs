//! Label selectors.

use std::collections::BTreeMap;

/// Whether labels match a selector such as `a=b,c!=d,e,!f,g in (h,i),j notin (k)`.
pub(super) fn matches(selector: &str, labels: &BTreeMap<&str, &str>) -> bool {
    requirements(selector)
        .into_iter()
        .all(|requirement| holds(requirement, labels))
}

/// Splits at the commas that are not inside parentheses.
fn requirements(selector: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in selector.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[start..]);
    parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

fn holds(requirement: &str, labels: &BTreeMap<&str, &str>) -> bool {
    let listed = |values: &str, value: &str| {
        values
            .trim_matches(['(', ')', ' '])
            .split(',')
            .any(|listed| listed.trim() == value)
    };
    if let Some((key, values)) = requirement.split_once(" notin ") {
        return labels
            .get(key.trim())
            .is_none_or(|value| !listed(values, value));
    }
    if let Some((key, values)) = requirement.split_once(" in ") {
        return labels
            .get(key.trim())
            .is_some_and(|value| listed(values, value));
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return labels.get(key.trim()) != Some(&value.trim());
    }
    if let Some((key, value)) = requirement.split_once('=') {
        return labels.get(key.trim()) == Some(&value.trim_start_matches('=').trim());
    }
    match requirement.strip_prefix('!') {
        Some(key) => !labels.contains_key(key.trim()),
        None => labels.contains_key(requirement),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_select() {
        let labels = BTreeMap::from([("app", "istiod"), ("rev", "1-31")]);
        let check = |selector, expect| assert_eq!(matches(selector, &labels), expect, "{selector}");
        check("", true);
        check("app=istiod,rev", true);
        check("app==istiod", true);
        check("app!=istiod", false);
        check("!tag", true);
        check("!app", false);
        check("rev in (1-30,1-31),app", true);
        check("rev notin (1-30, 1-31)", false);
        check("tag notin (prod)", true);
    }
}
