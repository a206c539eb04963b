//! The quick reader against the scanner.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// What is read quickly is what the scanner reads.
fn agrees(text: &str) -> Result<(), TestCaseError> {
    for duplicates in [Duplicates::Reject, Duplicates::LastWins] {
        let mut nodes = 0;
        let quick: Result<Vec<_>, _> = parts(text)
            .map(|part| Reader::read(part, duplicates, &mut nodes))
            .collect();
        if let Ok(quick) = quick {
            let quick: Vec<Value> = quick.into_iter().flatten().collect();
            let scanned = compose::counted_documents(text, duplicates);
            prop_assert!(
                scanned.is_ok(),
                "{:?} reads as {:?}, the scanner says {:?}",
                text,
                quick,
                scanned
            );
            prop_assert_eq!(Some((quick, nodes)), scanned.ok(), "{:?}", text);
        }
        if let Some(quick) = first_document(text, duplicates) {
            let scanned = compose::first_document(text, duplicates).map(Option::unwrap_or_default);
            prop_assert_eq!(Some(quick), scanned.ok(), "first of {:?}", text);
        }
        if let Some(quick) = documents(text, duplicates) {
            let scanned = compose::documents(text, duplicates);
            prop_assert_eq!(Some(quick), scanned.ok(), "all of {:?}", text);
        }
    }
    Ok(())
}

const PIECES: &[&str] = &[
    "a",
    "b",
    "a: ",
    "b:",
    "'c': ",
    "\"d\": ",
    "- ",
    "-",
    "1",
    "yes",
    "~",
    "x y",
    "'q'",
    "'it''s",
    "'",
    "\"e\\n\"",
    "\"",
    "\\\n",
    "\\ ",
    "|",
    "|-",
    "|+",
    "|2",
    "|2-",
    "|+1",
    "|-3 # c",
    "\"\\x41\"",
    "\"\\u00e9\\uD800\"",
    "\"\\U0001f980\"",
    "\\x4",
    "\\u2028",
    "\\U00110000",
    ">",
    ">-",
    "{}",
    "[]",
    "[a, 'b', 1]",
    "{a: 1, \"b\": [c]}",
    "{",
    "]",
    " # c",
    "#",
    "? ",
    ": ",
    ":",
    "---",
    "---\n",
    "...",
    "%",
    "&x ",
    "*x",
    "!!str ",
    "<<: ",
    "\t",
    "é",
    ".",
    "0755",
    "1.50",
    ",",
    "http://x:80/#y",
    "-1",
    "--",
    "a:b",
    " ",
    "  ",
    "   ",
];

/// Lines of some indentation and a few pieces each.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    let line = (0_usize..6, proptest::collection::vec(piece, 0..5));
    proptest::collection::vec(line, 0..8).prop_map(|lines| {
        let line = |(indent, pieces): (usize, Vec<&str>)| " ".repeat(indent) + &pieces.concat();
        lines.into_iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

/// Texts that are nearly right: nested blocks with scalars of every style.
fn nearly() -> impl Strategy<Value = String> {
    let scalar = prop::sample::select(
        &[
            "x",
            "1",
            "'a b'",
            "\"a\"",
            "|\n@  l1\n@\n@    l2",
            "|-\n@  l1\n@ ",
            "|+\n@ l1\n\n",
            "|2\n@   l1\n@  l2",
            "|1-\n@ l1\n@   \n@  l2\n",
            "|+3\n@    l1\n@\n",
            "|-2\n@  l1\n@   l2\n\n",
            "\"\\x7e\\u00A0\\U0001F980\"",
            "\"a\\x20\n@  \\u0020b\"",
            "'\\x41 \\u'",
            "x\n@  y\n\n@   z",
            "x\n@  'y' `z`",
            "x\n@  [z, {\n@  &a *b !c @d | > \"",
            "'a\n@  b\n\n@ c '",
            "\"a \n@  b\\\n@  \\ c\"",
            "",
            "# c",
            "x # c",
            "{}",
            "[]",
            "\n@  k: v",
            "\n@- i",
            "\n@  - i\n@  - j: 1\n@    k: 2",
            "- 1",
            "- a: 1\n@   b: 2",
        ][..],
    );
    let entry = (
        0_usize..4,
        prop::sample::select(&["a: ", "b:", "- ", "- c: ", "'d': ", "a:  "][..]),
        scalar,
    );
    proptest::collection::vec(entry, 0..7).prop_map(|entries| {
        let mut text = String::new();
        for (level, head, scalar) in entries {
            let indent = "  ".repeat(level);
            text.push_str(&indent);
            text.push_str(head);
            text.push_str(&scalar.replace('@', &indent));
            text.push('\n');
        }
        text
    })
}

/// Long texts as keys and values, whose ends are around the scanner's limits.
fn long() -> impl Strategy<Value = String> {
    let place = prop::sample::select(
        &[
            "@: 1\n",
            "a:\n  @: 1\n",
            "- @: 1\n",
            "- @\n",
            "a: @\n",
            "a: {@: 1}\n",
            "a: {b: @}\n",
            "a: [@, 1]\n",
            "- {@: {@: 1}}\n",
            "@\n",
            "{a: @}\n",
            "[@]\n",
        ][..],
    );
    let around = prop::sample::select(&[0_usize, 120, 500, 1010, 1020, 2030][..]);
    let unit = prop::sample::select(&["x", "é", "''", "\\x41", " y"][..]);
    let quote = prop::sample::select(&["", "'", "\""][..]);
    (place, around, 0_usize..20, unit, quote).prop_map(|(place, around, more, unit, quote)| {
        let count = (around / unit.chars().count()) + more;
        let text = format!("{quote}x{}{quote}", unit.repeat(count));
        place.replace('@', &text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn soup_is_read_as_by_the_scanner(text in soup()) {
        agrees(&text)?;
    }

    #[test]
    fn long_texts_are_read_as_by_the_scanner(text in long()) {
        agrees(&text)?;
    }

    #[test]
    fn blocks_are_read_as_by_the_scanner(text in nearly()) {
        agrees(&text)?;
    }
}

#[test]
fn the_usual_is_read_quickly() {
    let text = "\
apiVersion: v1
kind: ConfigMap # said
metadata:
  name: \"a\\tb\"
  labels: {app: x, 'n': 1}
  list:
  - a: 'it''s'
    b: |
      line

        deeper
    c: []
  - - 1
    - yes
  - long plain
    text

    goes on
  empty:
last: 'quoted

  text'
";
    let expect = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a\tb", "labels": {"app": "x", "n": 1},
            "list": [
                {"a": "it's", "b": "line\n\n  deeper\n", "c": []},
                [1, true],
                "long plain text\ngoes on",
            ],
            "empty": null,
        },
        "last": "quoted\ntext",
    });
    let read = Reader::read(text, Duplicates::Reject, &mut 0);
    assert_eq!(read, Ok(Some(expect)));
}

#[test]
fn a_key_in_a_flow_that_is_too_long_for_the_scanner_is_an_error() {
    for quote in ["", "'", "\""] {
        let map = |len: usize| format!("a: {{{quote}{}{quote}: 1}}\n", "x".repeat(len));
        let read = |len: usize| Reader::read(&map(len), Duplicates::Reject, &mut 0);
        assert!(read(MAX_KEY - 2).is_ok(), "{quote}");
        assert_eq!(read(MAX_KEY + 1), Err(Unsure), "{quote}");
        assert!(crate::parse(&map(2_000)).is_err(), "{quote}");
    }
}

#[test]
fn what_is_unusual_is_left_to_the_scanner() {
    for text in [
        "a: &x 1\n",
        "a: *x\n",
        "a: !!str 1\n",
        "<<: {}\n",
        "a:\tb\n",
        "a: >\n  x\n",
        "? a\n",
        "a: 1\na: 2\n",
        "a: b: c\n",
        "a: [1\n",
        "a: .nan\n",
        "~: 1\n",
        "a: 1\n...\n",
        "%YAML 1.2\n",
        "a: 'x\n",
    ] {
        let read = Reader::read(text, Duplicates::Reject, &mut 0);
        assert_eq!(read, Err(Unsure), "{text:?}");
    }
}
