//! Writes a value exactly as Go's `sigs.k8s.io/yaml.Marshal` does: keys in natural order, sequences not indented
//! below their key, long scalars folded at column 80, and go-yaml v2's choice of quotes.
//!
//! The layout is libyaml's emitter reduced to what a JSON value needs: block collections, `{}` and `[]`, and
//! five scalar styles. Text produced here ends up inside objects, so a different
//! line break would be a different object.

use crate::resolve::{Scalar, is_timestamp, resolve};
use serde_json::{Number, Value};
use std::cmp::Ordering;

const WIDTH: usize = 80;
const STEP: usize = 2;
/// A longer key is written as `? key`.
const MAX_SIMPLE_KEY: usize = 128;

/// Writes a value in the layout of Go's `yaml.Marshal`, final line break included. Floats without fraction are
/// written as integers, since Go goes through JSON.
pub fn emit_go(value: &Value) -> String {
    let mut emitter = Emitter::default();
    emitter.value(
        value,
        Context {
            indent: None,
            mapping: false,
            simple_key: false,
        },
    );
    if emitter.column > 0 {
        emitter.put_break();
    }
    emitter.out
}

#[derive(Clone, Copy)]
struct Context {
    /// The indentation of the enclosing collection; `None` at the root.
    indent: Option<usize>,
    /// Whether the node is a key or value of a mapping.
    mapping: bool,
    simple_key: bool,
}

/// The emitter's view of the current line; the names are libyaml's.
struct Emitter {
    out: String,
    column: usize,
    /// Whether the last thing written separates tokens.
    whitespace: bool,
    /// Whether only indentation has been written on this line.
    indention: bool,
}

impl Default for Emitter {
    fn default() -> Self {
        Self {
            out: String::new(),
            column: 0,
            whitespace: true,
            indention: true,
        }
    }
}

impl Emitter {
    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_str(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(
        &mut self,
        text: &str,
        need_whitespace: bool,
        is_whitespace: bool,
        is_indention: bool,
    ) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn value(&mut self, value: &Value, at: Context) {
        match value {
            Value::Null => self.plain("null", at),
            Value::Bool(b) => self.plain(if *b { "true" } else { "false" }, at),
            Value::Number(n) => self.plain(&number(n), at),
            Value::String(s) => self.string(s, at),
            Value::Array(items) if items.is_empty() => self.flow("[", "]"),
            Value::Object(map) if map.is_empty() => self.flow("{", "}"),
            Value::Array(items) => {
                let indentless = at.mapping && !self.indention;
                let indent = deeper(at.indent, indentless);
                for item in items {
                    self.indent(indent);
                    self.indicator("-", true, false, true);
                    self.value(
                        item,
                        Context {
                            indent: Some(indent),
                            mapping: false,
                            simple_key: false,
                        },
                    );
                }
            }
            Value::Object(map) => {
                let indent = deeper(at.indent, false);
                let inside = Context {
                    indent: Some(indent),
                    mapping: true,
                    simple_key: false,
                };
                for key in sorted(map.keys()) {
                    self.indent(indent);
                    let simple = !key.contains(is_break) && key.len() <= MAX_SIMPLE_KEY;
                    if simple {
                        self.string(
                            key,
                            Context {
                                simple_key: true,
                                ..inside
                            },
                        );
                        self.indicator(":", false, false, false);
                    } else {
                        self.indicator("?", true, false, true);
                        self.string(key, inside);
                        self.indent(indent);
                        self.indicator(":", true, false, true);
                    }
                    if let Some(value) = map.get(key) {
                        self.value(value, inside);
                    }
                }
            }
        }
    }

    fn flow(&mut self, open: &str, close: &str) {
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    fn string(&mut self, text: &str, at: Context) {
        let analysis = Analysis::of(text);
        if text.contains('\n') && analysis.block_allowed && !at.simple_key {
            self.literal(text, at);
        } else if text.contains('\n') || !stays_a_string(text) {
            self.double_quoted(text, at);
        } else if analysis.plain_allowed && !(text.is_empty() && at.simple_key) {
            self.plain(text, at);
        } else if analysis.single_quoted_allowed {
            self.single_quoted(text, at);
        } else {
            self.double_quoted(text, at);
        }
    }

    /// Where a folded line continues.
    fn continuation(at: Context) -> usize {
        at.indent.unwrap_or(0) + STEP
    }

    fn plain(&mut self, text: &str, at: Context) {
        if !self.whitespace {
            self.put(' ');
        }
        self.folded(text, at, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, at: Context) {
        self.indicator("'", true, false, false);
        self.folded(text, at, true);
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// The common part of plain and single-quoted scalars without line breaks of the `\n` kind.
    fn folded(&mut self, text: &str, at: Context, quoted: bool) {
        let is_special = |c| is_break(c) || (quoted && c == '\'');
        if self.column + text.len() <= WIDTH && !text.contains(is_special) {
            // Nothing to fold, nothing to escape.
            self.put_str(text);
            return;
        }
        let mut spaces = false;
        let mut breaks = false;
        let mut chars = text.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            let next_is_space = chars.peek().is_some_and(|(_, c)| *c == ' ');
            let inside = !quoted || (i > 0 && i + 1 < text.len());
            if c == ' ' {
                if !at.simple_key && !spaces && self.column > WIDTH && inside && !next_is_space {
                    self.indent(Self::continuation(at));
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.indent(Self::continuation(at));
                }
                if quoted && c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
    }

    fn double_quoted(&mut self, text: &str, at: Context) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let mut chars = text.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            if !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                self.escape(c);
                spaces = false;
            } else if c == ' ' {
                if !at.simple_key && !spaces && self.column > WIDTH && i > 0 && i + 1 < text.len() {
                    self.indent(Self::continuation(at));
                    if chars.peek().is_some_and(|(_, c)| *c == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, c: char) {
        let short = match c {
            '\0' => '0',
            '\u{07}' => 'a',
            '\u{08}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{0b}' => 'v',
            '\u{0c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let text = match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                for c in text.chars() {
                    self.put(c);
                }
                return;
            }
        };
        self.put('\\');
        self.put(short);
    }

    fn literal(&mut self, text: &str, at: Context) {
        self.indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.indicator("2", false, false, false);
        }
        let mut from_end = text.chars().rev();
        let last_breaks = from_end.next().is_some_and(is_break);
        let hint = match (last_breaks, from_end.next()) {
            (false, _) => "-",
            (true, Some(c)) if !is_break(c) => "",
            (true, _) => "+",
        };
        self.indicator(hint, false, false, false);
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        for line in text.split_inclusive(is_break) {
            let content = line.trim_end_matches(is_break);
            if !content.is_empty() {
                self.indent(Self::continuation(at));
                self.put_str(content);
                self.indention = false;
            }
            if let Some(end) = line[content.len()..].chars().next() {
                self.write_break(end);
                self.indention = true;
            }
        }
    }
}

fn deeper(indent: Option<usize>, indentless: bool) -> usize {
    match indent {
        None => 0,
        Some(indent) if indentless => indent,
        Some(indent) => indent + STEP,
    }
}

/// Numbers pass through JSON on their way, which writes integral floats without exponent; what of that fits 64 bits is
/// an integer to the YAML side.
fn number(n: &Number) -> String {
    let Some(f) = n.as_f64().filter(|_| n.is_f64()) else {
        return n.to_string();
    };
    let text = f.to_string();
    let signed = text.parse::<i64>().map(|i| i.to_string());
    signed
        .or_else(|_| text.parse::<u64>().map(|u| u.to_string()))
        .unwrap_or_else(|_| go_float(f))
}

/// How Go prints a float by default (`strconv.FormatFloat(f, 'g', -1, 64)`): the shortest digits that read back, with an
/// exponent below 1e-4 and from 1e6 on.
pub fn go_float(f: f64) -> String {
    if f.is_nan() {
        return "NaN".to_owned();
    }
    if f.is_infinite() {
        return if f > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    laid_out(&format!("{f:e}"), || f.to_string())
}

/// The same for the 32-bit float, as which `sigs.k8s.io/yaml` writes a key.
#[expect(
    clippy::cast_possible_truncation,
    reason = "that is what the reference does"
)]
pub(crate) fn go_float_key(f: f64) -> String {
    let f = f as f32;
    laid_out(&format!("{f:e}"), || f.to_string())
}

fn laid_out(scientific: &str, plain: impl FnOnce() -> String) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return plain();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return plain();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn stays_a_string(text: &str) -> bool {
    resolve(text) == Scalar::Str && !is_timestamp(text) && !is_base60(text)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let rest: Vec<&str> = parts.collect();
    digits(first)
        && digits(fraction)
        && !rest.is_empty()
        && rest.iter().all(|part| match part.as_bytes() {
            [d] => d.is_ascii_digit(),
            [t, d] => (b'0'..=b'5').contains(t) && d.is_ascii_digit(),
            _ => false,
        })
}

struct Analysis {
    plain_allowed: bool,
    single_quoted_allowed: bool,
    block_allowed: bool,
}

impl Analysis {
    /// libyaml's `analyze_scalar`, for block context.
    fn of(text: &str) -> Self {
        if is_inert(text.as_bytes()) {
            return Self {
                plain_allowed: true,
                single_quoted_allowed: true,
                block_allowed: true,
            };
        }
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut line_breaks, mut special) = (false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut previous_space, mut previous_break) = (false, false);
        let mut preceded_by_whitespace = true;
        let mut chars = text.chars().peekable();
        let mut first = true;
        while let Some(c) = chars.next() {
            let followed_by_whitespace = chars.peek().is_none_or(|c| *c == ' ' || *c == '\t');
            indicators |= match c {
                '#' => first || preceded_by_whitespace,
                ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
                | '@' | '`' => first,
                '?' | '-' => first && followed_by_whitespace,
                ':' => followed_by_whitespace,
                _ => false,
            };
            special |= !is_printable(c);
            if c == ' ' {
                break_space |= previous_break;
                previous_space = true;
                previous_break = false;
            } else if is_break(c) {
                line_breaks = true;
                space_break |= previous_space;
                previous_space = false;
                previous_break = true;
            } else {
                previous_space = false;
                previous_break = false;
            }
            preceded_by_whitespace = matches!(c, ' ' | '\t' | '\0') || is_break(c);
            first = false;
        }
        let outer = |c: char| c == ' ' || is_break(c);
        let bad_edge = text.starts_with(outer) || text.ends_with(outer);
        Self {
            plain_allowed: !(bad_edge
                || break_space
                || space_break
                || special
                || line_breaks
                || indicators),
            single_quoted_allowed: !(break_space || space_break || special),
            block_allowed: !(text.is_empty() || text.ends_with(' ') || space_break || special),
        }
    }
}

/// Whether a text is of the usual kind, of which nothing need be found out: printable ASCII that begins with a letter, a
/// digit, `_` or `/`, ends with no space, and has no `#` and no `: `.
fn is_inert(text: &[u8]) -> bool {
    let (Some(first), Some(last)) = (text.first(), text.last()) else {
        return false;
    };
    let begins = first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/');
    let is_usual = |(at, byte): (usize, &u8)| match byte {
        b':' => text.get(at + 1).is_some_and(|next| *next != b' '),
        b'#' => false,
        byte => (b' '..=b'~').contains(byte),
    };
    begins && *last != b' ' && text.iter().enumerate().all(is_usual)
}

fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Sorts by [`natural`], which is no total order (`sort_by` may panic on such), by insertion.
fn sorted<'k>(keys: impl Iterator<Item = &'k String>) -> Vec<&'k String> {
    let mut sorted: Vec<&String> = Vec::new();
    for key in keys {
        let at = sorted.partition_point(|other| natural(other, key) != Ordering::Greater);
        sorted.insert(at, key);
    }
    sorted
}

/// go-yaml v2's order of keys: letters after other characters, runs of digits by value.
fn natural(a: &str, b: &str) -> Ordering {
    let differ = a.bytes().zip(b.bytes()).find(|(a, b)| a != b);
    match differ {
        Some((a, b)) if a.is_ascii_alphabetic() && b.is_ascii_alphabetic() => return a.cmp(&b),
        None => return a.len().cmp(&b.len()),
        Some(_) => {}
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for i in 0..a.len().min(b.len()) {
        let (ca, cb) = (a[i], b[i]);
        if ca == cb {
            continue;
        }
        match (ca.is_alphabetic(), cb.is_alphabetic()) {
            (true, true) => return ca.cmp(&cb),
            (false, false) => {}
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
        }
        let mut start = 0_i64;
        if ca == '0' || cb == '0' {
            let digits = a[..i].iter().rev().take_while(|c| c.is_ascii_digit());
            start = i64::from(digits.into_iter().any(|c| *c != '0'));
        }
        let run = |s: &[char]| {
            let digits = s[i..].iter().take_while(|c| c.is_ascii_digit());
            digits.fold((start, 0), |(n, len), c| {
                let digit = i64::from(c.to_digit(10).unwrap_or(0));
                (n.wrapping_mul(10).wrapping_add(digit), len + 1)
            })
        };
        let ((an, alen), (bn, blen)) = (run(&a), run(&b));
        return an.cmp(&bn).then(alen.cmp(&blen)).then(ca.cmp(&cb));
    }
    a.len().cmp(&b.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: &Value, expect: &str) {
        assert_eq!(emit_go(value), expect);
    }

    #[test]
    fn collections_are_laid_out_like_go() {
        check(&json!({}), "{}\n");
        check(&json!([]), "[]\n");
        check(&json!("a"), "a\n");
        check(&json!("a\nb"), "|-\n  a\n  b\n");
        check(&json!(null), "null\n");
        check(
            &json!({"b": [1, {"x": 1, "y": []}, [2, [3]]], "a": {"c": {}}}),
            "a:\n  c: {}\nb:\n- 1\n- x: 1\n  \"y\": []\n- - 2\n  - - 3\n",
        );
        check(&json!([{"a": 1, "b": 2}, "c"]), "- a: 1\n  b: 2\n- c\n");
    }

    #[test]
    fn strings_are_quoted_like_go() {
        for (text, expect) in [
            ("true", "\"true\"\n"),
            ("yes", "\"yes\"\n"),
            ("1.5", "\"1.5\"\n"),
            ("2001-01-01", "\"2001-01-01\"\n"),
            ("12:30", "\"12:30\"\n"),
            ("", "\"\"\n"),
            ("a: b", "'a: b'\n"),
            ("it's", "it's\n"),
            ("'it's", "'''it''s'\n"),
            (" a", "' a'\n"),
            ("a\tb", "\"a\\tb\"\n"),
            ("@a", "'@a'\n"),
            ("-", "'-'\n"),
            ("-a", "-a\n"),
            ("a\nb", "|-\n  a\n  b\n"),
            ("a\n", "|\n  a\n"),
            ("a\n\n", "|+\n  a\n\n"),
            (" a\nb", "|2-\n   a\n  b\n"),
            ("a \nb", "\"a \\nb\"\n"),
            ("é", "é\n"),
        ] {
            let layout = emit_go(&json!({"k": text}));
            let expect = format!("k: {expect}");
            assert_eq!(layout, expect, "{text:?}");
        }
    }

    #[test]
    fn long_scalars_fold_after_column_80() {
        let words = "word ".repeat(30);
        check(
            &json!({"k": words.trim_end()}),
            &format!(
                "k: {}word\n  {}word\n",
                "word ".repeat(15),
                "word ".repeat(13),
            ),
        );
    }

    #[test]
    fn keys_are_in_natural_order() {
        check(
            &json!({"a10": 1, "a2": 2, "B": 3, "-x": 4, "a": 5, "1": 6}),
            "-x: 4\n\"1\": 6\nB: 3\na: 5\na2: 2\na10: 1\n",
        );
    }

    #[test]
    fn numbers_are_written_like_go() {
        check(
            &json!([
                1.0,
                1.5,
                1e21,
                1e-7,
                -3,
                1e6,
                1_234_567.5,
                6.712_022_533_177_814e17,
                -0.0
            ]),
            "- 1\n- 1.5\n- 1e+21\n- 1e-07\n- -3\n- 1000000\n- 1.2345675e+06\n- 671202253317781400\n- 0\n",
        );
    }
}
