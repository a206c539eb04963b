//! What an action may answer.

use std::collections::BTreeMap;

use serde_json::Value;

/// An action result Juju would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultKeyError {
    /// Not dot-separated pieces of lower-case letters, digits and inner dashes.
    #[error("invalid action result key {0:?}")]
    Invalid(String),
    /// Juju fills this one in itself.
    #[error("action result key {0:?} is reserved by juju")]
    Reserved(String),
    /// One key is a value and a map at once, as in `a` beside `a.b`.
    #[error("action result key {0:?} is both a value and a map")]
    Ambiguous(String),
}

const RESERVED: [&str; 5] = [
    "stdout",
    "stdout-encoding",
    "stderr",
    "stderr-encoding",
    "return-code",
];

/// Checks the keys of action results as Juju will: each piece between dots is lower-case letters,
/// digits and inner dashes; the first piece is none of Juju's own.
pub fn check_results(results: &BTreeMap<String, String>) -> Result<(), ResultKeyError> {
    for key in results.keys() {
        if !key.split('.').all(valid_piece) {
            return Err(ResultKeyError::Invalid(key.clone()));
        }
        if key
            .split('.')
            .next()
            .is_some_and(|first| RESERVED.contains(&first))
        {
            return Err(ResultKeyError::Reserved(key.clone()));
        }
        let mut parent = key.as_str();
        while let Some((shorter, _)) = parent.rsplit_once('.') {
            if results.contains_key(shorter) {
                return Err(ResultKeyError::Ambiguous(shorter.to_owned()));
            }
            parent = shorter;
        }
    }
    Ok(())
}

fn valid_piece(piece: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !piece.is_empty()
        && piece.bytes().all(inner)
        && !piece.starts_with('-')
        && !piece.ends_with('-')
}

/// Any JSON as action results: nested keys joined by dots, list items by their index, texts as they
/// are, everything else as JSON. Empty maps and lists vanish; a value that is no map gets the key
/// `result`.
pub fn flatten_results(value: &Value) -> BTreeMap<String, String> {
    let mut results = BTreeMap::new();
    flatten(value, "", &mut results);
    results
}

fn flatten(value: &Value, at: &str, into: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if at.is_empty() {
            key.to_owned()
        } else {
            format!("{at}.{key}")
        }
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, v)| flatten(v, &below(key), into)),
        Value::Array(list) => {
            let indexed = list.iter().enumerate();
            indexed.for_each(|(index, v)| flatten(v, &below(&index.to_string()), into));
        }
        Value::String(text) => {
            into.insert(
                if at.is_empty() {
                    below("result")
                } else {
                    at.to_owned()
                },
                text.clone(),
            );
        }
        other => {
            let key = if at.is_empty() {
                below("result")
            } else {
                at.to_owned()
            };
            into.insert(key, other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_keys_juju_would_refuse_are_refused_here() {
        let check = |keys: &[&str], expect: Result<(), ResultKeyError>| {
            let results = keys
                .iter()
                .map(|key| ((*key).to_owned(), String::new()))
                .collect();
            assert_eq!(check_results(&results), expect, "{keys:?}");
        };
        check(&["plan", "a.b-c.0", "a.c", "9"], Ok(()));
        check(
            &["stdout"],
            Err(ResultKeyError::Reserved("stdout".to_owned())),
        );
        check(
            &["stderr-encoding"],
            Err(ResultKeyError::Reserved("stderr-encoding".to_owned())),
        );
        check(
            &["return-code"],
            Err(ResultKeyError::Reserved("return-code".to_owned())),
        );
        check(
            &["stdout.x"],
            Err(ResultKeyError::Reserved("stdout.x".to_owned())),
        );
        check(&["my.stdout"], Ok(()));
        for bad in [
            "", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a b", "é", "a=b",
        ] {
            check(&[bad], Err(ResultKeyError::Invalid(bad.to_owned())));
        }
        check(
            &["a", "a-x", "a.b"],
            Err(ResultKeyError::Ambiguous("a".to_owned())),
        );
        check(
            &["a.b.c.d", "a.b"],
            Err(ResultKeyError::Ambiguous("a.b".to_owned())),
        );
    }

    #[test]
    fn nested_results_become_dotted_keys() {
        let check = |value: Value, expect: &[(&str, &str)]| {
            let got = flatten_results(&value);
            let got: Vec<(&str, &str)> = got.iter().map(|(k, v)| (&**k, &**v)).collect();
            assert_eq!(got, expect);
        };
        check(
            serde_json::json!({"a": {"b": "x", "c": [1, true]}, "d": null, "e": {}}),
            &[
                ("a.b", "x"),
                ("a.c.0", "1"),
                ("a.c.1", "true"),
                ("d", "null"),
            ],
        );
        check(serde_json::json!("plain"), &[("result", "plain")]);
        check(serde_json::json!(7), &[("result", "7")]);
    }
}
