//! What is written can be read, and no text panics.

use proptest::prelude::*;
use serde_json::{Map, Value};
use yaml::{Duplicates, emit, emit_go, parse, parse_all_with, parse_first};

/// Strings that look like something else, and strings of any characters a document may hold.
fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(
            &[
                "yes",
                "NO",
                "on",
                "y",
                "null",
                "~",
                "",
                "0755",
                "0o7",
                "0x1F",
                "1_0",
                "1e3",
                ".5",
                "-1",
                ".inf",
                "=",
                "2001-01-01",
                "12:30",
                "-",
                "- a",
                "a: b",
                "a #b",
                "#",
                " a",
                "a ",
                "---",
                "...",
                "? a",
                "|",
                ">",
                "*a",
                "&a",
                "!a",
                "%a",
                "@a",
                "`a",
                "{a}",
                "[a]",
                "'",
                "\"",
                "\\",
                "a\n",
                "\na",
                " a\nb",
                "a \nb",
                "a\n\n",
                "a\tb",
                "\u{a0}",
                "\u{1F600}",
                "true",
                "True",
            ][..]
        )
        .prop_map(str::to_owned),
        "[ -~\\n]{0,12}",
        "(word ){0,30}word",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(|f| Value::from((f * 64.0).round() / 64.0 + 1.0 / 128.0)),
        string().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(string(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(value in value()) {
        prop_assert_eq!(parse(&emit(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn what_is_laid_out_like_go_is_read_back(value in value()) {
        prop_assert_eq!(parse(&emit_go(&value)).unwrap(), value);
    }

    #[test]
    fn a_json_text_reads_as_json(value in value()) {
        prop_assert_eq!(parse(&value.to_string()).unwrap(), value);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_soup_of_syntax_panics(pieces in proptest::collection::vec(prop::sample::select(SYNTAX), 0..30)) {
        let text = pieces.concat();
        let _ = parse_all_with(&text, Duplicates::LastWins);
        let _ = parse_first(&text);
    }
}

const SYNTAX: &[&str] = &[
    "a",
    "b: ",
    "- ",
    "? ",
    ": ",
    "\n",
    "  ",
    "    ",
    "\t",
    "&x ",
    "*x",
    "!!str ",
    "!!int ",
    "!<tag:x> ",
    "<<: ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "|\n",
    "|2-\n",
    ">+\n",
    "'",
    "\"",
    "\\",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "%TAG ! x\n",
    "0x",
    "1e9",
    "~",
    "é",
    "\u{feff}",
];
