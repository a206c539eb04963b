//! Laws, and that no input panics.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod common;

use common::{load, options};
use helm_chart::values::{layer, merge, set};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..5).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn table() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-c]", value(), 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>()))
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k.clone(), without_nulls(v)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// Pieces of templates, well-formed or not.
fn template() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{ ".to_owned()),
        Just("{{- ".to_owned()),
        Just(" }}".to_owned()),
        Just(" -}}".to_owned()),
        Just("/* c */".to_owned()),
        Just("{{ if ".to_owned()),
        Just("{{ range $i, $e := ".to_owned()),
        Just("{{ with ".to_owned()),
        Just("{{ else }}".to_owned()),
        Just("{{ else if ".to_owned()),
        Just("{{ end }}".to_owned()),
        Just("{{ define \"d\" }}".to_owned()),
        Just("{{ template \"d\" . }}".to_owned()),
        Just("{{ break }}".to_owned()),
        Just("include \"d\" ".to_owned()),
        Just(".Values.a.b ".to_owned()),
        Just("$ ".to_owned()),
        Just("$x := ".to_owned()),
        Just("| quote ".to_owned()),
        Just("| trunc 3 ".to_owned()),
        Just("(dict \"a\" 1) ".to_owned()),
        Just("printf \"%5.2q|%-+#x\" ".to_owned()),
        Just("`raw".to_owned()),
        Just("\"str\\".to_owned()),
        Just("'c'".to_owned()),
        Just("0x".to_owned()),
        Just("1e9999 ".to_owned()),
        "[ -~\\n]{0,8}",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_template_panics(text in template()) {
        if let Ok(chart) = load(&[("templates/t.txt", &text)]) {
            let mut options = options();
            options.limits.steps = 10_000;
            let _ = chart.render(&json!({"a": {"b": [1, "x", null]}}), &options);
        }
    }

    #[test]
    fn no_call_panics(name in prop::sample::select(FUNCTIONS), args in proptest::collection::vec(prop::sample::select(ARGUMENTS), 0..4)) {
        let text = format!("{{{{ {name} {} }}}}", args.join(" "));
        if let Ok(chart) = load(&[("templates/t.txt", &text)]) {
            let mut options = options();
            options.limits.steps = 100_000;
            options.limits.output_bytes = 100_000;
            let _ = chart.render(&json!({}), &options);
        }
    }

    #[test]
    fn merging_nothing_changes_nothing(base in table()) {
        prop_assert_eq!(merge(base.clone(), &json!({})), base.clone());
        prop_assert_eq!(merge(base.clone(), &Value::Null), base);
    }

    #[test]
    fn merging_twice_is_merging_once(base in table(), overlay in table()) {
        let base = without_nulls(&base);
        let overlay = without_nulls(&overlay);
        let once = merge(base.clone(), &overlay);
        prop_assert_eq!(merge(base, &once), once.clone());
        prop_assert_eq!(merge(once.clone(), &overlay), once);
    }

    #[test]
    fn merging_is_associative_without_nulls(a in table(), b in table(), c in table()) {
        let (a, b, c) = (without_nulls(&a), without_nulls(&b), without_nulls(&c));
        let left = merge(merge(a.clone(), &b), &c);
        let right = merge(a, &merge(b, &c));
        // A map against a scalar keeps whichever is on top, so only maps that agree in shape are compared.
        if same_shape(&left, &right) {
            prop_assert_eq!(left, right);
        }
    }

    #[test]
    fn the_overlay_wins_at_every_leaf(base in table(), overlay in table()) {
        let merged = merge(base, &overlay);
        for (key, value) in overlay.as_object().unwrap() {
            if !value.is_object() && !value.is_null() {
                prop_assert_eq!(merged.get(key), Some(value));
            }
        }
    }

    #[test]
    fn layering_and_merging_agree_without_nulls(base in table(), over in table()) {
        let (base, over) = (without_nulls(&base), without_nulls(&over));
        let mut layered = base.clone();
        layer(&mut layered, over.clone());
        prop_assert_eq!(layered, merge(base, &over));
    }

    #[test]
    fn no_set_expression_panics(text in "[a-c.,=\\[\\]{}\\\\0-9]{0,20}", start in table()) {
        let mut values = start;
        let _ = set(&mut values, &text);
    }
}

fn same_shape(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.iter().all(|(key, value)| same_shape(value, &b[key]))
        }
        (a, b) => a.is_object() == b.is_object(),
    }
}

const ARGUMENTS: &[&str] = &[
    "nil",
    "true",
    "0",
    "-1",
    "3",
    "99999999999",
    "1.5",
    "\"\"",
    "\"a\"",
    "\"é\"",
    "\"a,b\"",
    "\"%d %s %\"",
    "(list)",
    "(list 1 \"a\" nil)",
    "(dict)",
    "(dict \"a\" (dict \"b\" 1))",
    ".Files",
    ".Capabilities",
    ".",
    "$.Values",
    "\"[\"",
    "\"(a|b)*\"",
    "\"-9223372036854775808\"",
    "\">=1.2 <3\"",
];

const FUNCTIONS: &[&str] = &[
    "abbrev",
    "add",
    "all",
    "and",
    "any",
    "append",
    "atoi",
    "b64dec",
    "b64enc",
    "base",
    "camelcase",
    "cat",
    "ceil",
    "chunk",
    "coalesce",
    "compact",
    "concat",
    "contains",
    "deepCopy",
    "deepEqual",
    "default",
    "dict",
    "dig",
    "div",
    "divf",
    "empty",
    "eq",
    "ext",
    "fail",
    "first",
    "float64",
    "floor",
    "fromJson",
    "fromJsonArray",
    "fromYaml",
    "fromYamlArray",
    "ge",
    "get",
    "gt",
    "has",
    "hasKey",
    "hasPrefix",
    "html",
    "include",
    "indent",
    "index",
    "initial",
    "initials",
    "int",
    "join",
    "js",
    "kebabcase",
    "keys",
    "kindIs",
    "kindOf",
    "last",
    "le",
    "len",
    "list",
    "lookup",
    "lower",
    "lt",
    "max",
    "merge",
    "mergeOverwrite",
    "min",
    "mod",
    "mul",
    "mustMergeOverwrite",
    "ne",
    "nindent",
    "nospace",
    "not",
    "omit",
    "or",
    "pick",
    "pluck",
    "plural",
    "prepend",
    "print",
    "printf",
    "println",
    "quote",
    "regexFind",
    "regexFindAll",
    "regexMatch",
    "regexQuoteMeta",
    "regexReplaceAll",
    "regexReplaceAllLiteral",
    "regexSplit",
    "repeat",
    "replace",
    "required",
    "rest",
    "reverse",
    "round",
    "semver",
    "semverCompare",
    "seq",
    "set",
    "sha256sum",
    "slice",
    "snakecase",
    "sortAlpha",
    "split",
    "splitList",
    "splitn",
    "squote",
    "sub",
    "substr",
    "ternary",
    "title",
    "toDecimal",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toString",
    "toStrings",
    "toYaml",
    "tpl",
    "trim",
    "trimAll",
    "trimPrefix",
    "trimSuffix",
    "trunc",
    "typeIs",
    "typeOf",
    "uniq",
    "unset",
    "until",
    "untilStep",
    "untitle",
    "upper",
    "urlquery",
    "values",
    "without",
];
