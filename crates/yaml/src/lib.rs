//! The one place that reads and writes YAML.
//!
//! *Reading* follows what Kubernetes tooling does (`sigs.k8s.io/yaml`, used by Helm, kubectl and the API
//! server): YAML 1.1 scalars, so that a plain `yes`, `on` or `y` is a boolean, `0755` is octal and `1_000` is a
//! number, while a date stays a string; keys that are numbers or booleans become strings; a float
//! without fraction is an integer, as in JSON. What JSON cannot hold (`.nan`, null keys, `!!binary`) is an error.
//!
//! *Writing* quotes every string that a YAML 1.1 or 1.2 reader would take for something else.
//! [`emit`] keeps the order of keys and is meant for people; [`emit_go`] reproduces, byte for byte, the layout of Go's
//! `yaml.Marshal`, because Helm charts embed that text in objects.
//!
//! Input is untrusted: nesting is bounded by [`MAX_DEPTH`] and the size of the result, aliases expanded, by
//! [`MAX_NODES`].

mod compose;
mod go_style;
mod quick;
mod resolve;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use compose::{Duplicates, MAX_DEPTH, MAX_NODES};
pub use go_style::{emit_go, go_float};
pub use quick::parts;

/// Why a text is not the YAML that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text breaks YAML's syntax.
    #[error("invalid yaml at line {line} column {column}: {message}")]
    Syntax {
        /// 1-based line.
        line: usize,
        /// 1-based column, in characters.
        column: usize,
        /// What the scanner objects to.
        message: String,
    },
    /// The text is YAML, but JSON has nothing like it.
    #[error("unsupported yaml at line {line}: {message}")]
    Unsupported {
        /// 1-based line.
        line: usize,
        /// What was found.
        message: String,
    },
    /// The same key twice in one mapping.
    #[error("duplicate key {key:?} at line {line}")]
    Duplicate {
        /// 1-based line of the second occurrence.
        line: usize,
        /// The key, as a string.
        key: String,
    },
    /// A limit of the reader was passed.
    #[error("yaml exceeds the limit of {limit} {what}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A single document was asked for.
    #[error("expected one yaml document, found {0}")]
    Documents(usize),
    /// The document does not have the shape of the wanted type.
    #[error("yaml of an unexpected shape")]
    Shape(#[source] serde_json::Error),
    /// The value cannot be written.
    #[error("value cannot be written as yaml")]
    Emit(#[source] serde_saphyr::SerializeError),
}

/// Reads a text of at most one document; an empty text is `null`. Duplicate keys are errors.
pub fn parse(text: &str) -> Result<Value, Error> {
    let mut documents = documents(text, Duplicates::Reject)?;
    match documents.len() {
        0 => Ok(Value::Null),
        1 => Ok(documents.swap_remove(0)),
        n => Err(Error::Documents(n)),
    }
}

/// Reads a text of at most one document into a type.
///
/// Numbers and booleans are not coerced to strings: `port: 80` is no `String`.
pub fn parse_as<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_value(parse(text)?).map_err(Error::Shape)
}

/// Reads every document of a text, in order, without the empty ones. Duplicate keys are errors.
pub fn parse_all(text: &str) -> Result<Vec<Value>, Error> {
    parse_all_with(text, Duplicates::Reject)
}

/// Like [`parse_all`], with a choice about duplicate keys.
pub fn parse_all_with(text: &str, duplicates: Duplicates) -> Result<Vec<Value>, Error> {
    let mut documents = documents(text, duplicates)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// Reads the first document of a text and ignores the rest, the last of two equal keys winning: what Helm's
/// `fromYaml` and values files do. An empty text is `null`.
pub fn parse_first(text: &str) -> Result<Value, Error> {
    match quick::first_document(text, Duplicates::LastWins) {
        Some(document) => Ok(document),
        None => compose::first_document(text, Duplicates::LastWins).map(Option::unwrap_or_default),
    }
}

/// As [`parse_all_with`], by the scanner alone, without the quicker reader before it: slower, and what tests hold the
/// quicker one to.
pub fn scan_all(text: &str, duplicates: Duplicates) -> Result<Vec<Value>, Error> {
    let mut documents = compose::documents(text, duplicates)?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

fn documents(text: &str, duplicates: Duplicates) -> Result<Vec<Value>, Error> {
    match quick::documents(text, duplicates) {
        Some(documents) => Ok(documents),
        None => compose::documents(text, duplicates),
    }
}

/// Writes a value in block style; keys stay in the order in which they are serialised.
pub fn emit<T: Serialize>(value: &T) -> Result<String, Error> {
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
    };
    serde_saphyr::to_string_with_options(value, options).map_err(Error::Emit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expect: &Value) {
        assert_eq!(&parse(text).unwrap(), expect, "{text:?}");
    }

    #[test]
    fn scalars_are_read_as_helm_reads_them() {
        for (text, expect) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("y", json!(true)),
            ("n", json!(false)),
            ("'y'", json!("y")),
            ("yEs", json!("yEs")),
            ("0755", json!(493)),
            ("0o17", json!(15)),
            ("0x1F", json!(31)),
            ("0b101", json!(5)),
            ("-0b101", json!(-5)),
            ("1_000", json!(1000)),
            ("089", json!(89)),
            ("1e3", json!(1000)),
            ("1.50", json!(1.5)),
            ("1.0", json!(1)),
            (".5", json!(0.5)),
            ("1e400", json!("1e400")),
            (
                "18446744073709551615",
                json!(18_446_744_073_709_551_615_u64),
            ),
            ("2001-01-01", json!("2001-01-01")),
            ("12:30:45", json!("12:30:45")),
            ("1.2.3", json!("1.2.3")),
            ("+5", json!(5)),
            ("--5", json!("--5")),
            ("!!str 5", json!("5")),
            ("!!int '5'", json!(5)),
            ("!!float 5", json!(5)),
            ("!custom text", json!("text")),
            ("=", json!("=")),
        ] {
            check(text, &expect);
        }
    }

    #[test]
    fn keys_become_strings() {
        check(
            "{1: a, 1.5: b, yes: c, 0x10: d, 1e20: e}",
            &json!({"1": "a", "1.5": "b", "true": "c", "16": "d", "1e+20": "e"}),
        );
        assert!(matches!(
            parse("null: a"),
            Err(Error::Unsupported { line: 1, .. })
        ));
        assert!(matches!(parse("[a]: b"), Err(Error::Unsupported { .. })));
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        check(
            "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\nc: *x\n",
            &json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}, "c": {"p": 1, "q": 2}}),
        );
        check(
            "- &x {p: 1}\n- &y {p: 2, r: 3}\n- {<<: [*x, *y]}\n",
            &json!([{"p": 1}, {"p": 2, "r": 3}, {"p": 1, "r": 3}]),
        );
    }

    #[test]
    fn duplicate_keys_are_errors_unless_helm_reads_them() {
        assert!(matches!(
            parse("a: 1\nb: 2\na: 3\n"),
            Err(Error::Duplicate { line: 3, key }) if key == "a"
        ));
        assert_eq!(
            parse_all_with("a: 1\na: 2\n", Duplicates::LastWins).unwrap(),
            [json!({"a": 2})]
        );
    }

    #[test]
    fn documents_are_read_in_order_without_empty_ones() {
        let text = "---\n# nothing\n---\na: 1\n---\n---\n- b\n";
        assert_eq!(parse_all(text).unwrap(), [json!({"a": 1}), json!(["b"])]);
        assert!(matches!(
            parse("a: 1\n---\nb: 2\n"),
            Err(Error::Documents(2))
        ));
        assert_eq!(parse_first("a: 1\n---\nb: 2\n").unwrap(), json!({"a": 1}));
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        for text in [".nan", "-.inf", "!!binary aGk=", "!!int x"] {
            assert!(
                matches!(parse(text), Err(Error::Unsupported { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn broken_text_names_the_line() {
        assert!(matches!(parse("a: 1\nb: [1\n"), Err(Error::Syntax { .. })));
        assert!(matches!(
            parse("a: *nowhere\n"),
            Err(Error::Syntax { line: 1, .. })
        ));
    }

    #[test]
    fn depth_and_expansion_are_bounded() {
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        assert!(matches!(
            parse(&deep),
            Err(Error::TooLarge { .. } | Error::Syntax { .. })
        ));
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..12 {
            let alias = format!("*a{},", i - 1).repeat(10);
            bomb.extend([format!("a{i}: &a{i} [{alias}]\n")]);
        }
        assert!(matches!(parse(&bomb), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn a_type_can_be_read() {
        #[derive(serde::Deserialize, PartialEq, Debug)]
        struct Point {
            x: i32,
            label: String,
        }
        let point: Point = parse_as("x: 3\nlabel: 'on'\n").unwrap();
        assert_eq!(
            point,
            Point {
                x: 3,
                label: "on".to_owned()
            }
        );
        assert!(matches!(
            parse_as::<Point>("x: 3\nlabel: on\n"),
            Err(Error::Shape(_))
        ));
    }

    #[test]
    fn emitted_strings_stay_strings() {
        let strings = [
            "yes",
            "y",
            "on",
            "null",
            "~",
            "",
            "0755",
            "1_000",
            "1e3",
            "0x1F",
            "12:30",
            "2001-01-01",
            "=",
            "<<",
            "a: b",
            "- a",
            "#c",
            "a #b",
            " lead",
            "trail ",
            "tab\there",
            "two\nlines",
            "\nlead",
            "trail\n\n",
            "\u{7f}",
            "it's",
            "\"q\"",
            "a\u{2028}b",
            "é",
            "!x",
            "*x",
            "&x",
            "%x",
            "@x",
            "`x",
            "{a}",
            "[a]",
            "?",
            "-",
            "---",
            "...",
            "a\r\nb",
            "  two\n lines",
        ];
        for string in strings {
            let value = json!({"k": string, "l": [string]});
            assert_eq!(
                parse(&emit(&value).unwrap()).unwrap(),
                value,
                "emit {string:?}"
            );
            // go-yaml writes U+2028 as a line break, which only a YAML 1.1 scanner undoes, and a plain `<<`.
            if !string.contains('\u{2028}') && string != "<<" {
                assert_eq!(
                    parse(&emit_go(&value)).unwrap(),
                    value,
                    "emit_go {string:?}"
                );
            }
        }
    }

    #[test]
    fn emitted_structs_keep_their_order() {
        #[derive(Serialize)]
        struct Ordered {
            z: u8,
            a: &'static str,
        }
        assert_eq!(
            emit(&Ordered { z: 1, a: "no" }).unwrap(),
            "z: 1\na: \"no\"\n"
        );
    }
}
