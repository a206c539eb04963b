//! Regular expressions of requirers, which stand in an object that all routes share: one that istiod
//! or Envoy refuses would take all of them down, so only what both surely take is let through.

use std::fmt;
use std::str::FromStr;

/// Longest expression, in bytes.
const MAX: usize = 256;
/// Most repetitions that RE2 and Go take.
const MAX_REPEAT: u32 = 1000;

/// Why a text is not a usable expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InvalidPattern {
    /// It is empty or longer than 256 bytes.
    #[error("must have 1 to 256 characters")]
    Length,
    /// It has something that is not in the common part of RE2 and Go's and Rust's syntax.
    #[error("has {0:?}, which is not supported")]
    Character(char),
    /// It does not parse.
    #[error("is no regular expression")]
    Syntax,
    /// It repeats more than 1000 times.
    #[error("must repeat at most 1000 times")]
    Repeat,
    /// It may match what is the charm's own.
    #[error("must begin with / and a letter or digit")]
    Beginning,
}

/// A checked expression over a whole path.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pattern {
    text: String,
    literal: String,
}

impl Pattern {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What everything that fits begins with.
    pub fn literal(&self) -> &str {
        &self.literal
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || text.len() > MAX {
            return Err(InvalidPattern::Length);
        }
        syntax(text)?;
        let literal = literal(text);
        // The charm's own paths begin with /. and are nobody else's.
        let first = literal
            .strip_prefix('/')
            .and_then(|rest| rest.chars().next());
        if !first.is_some_and(|c| c.is_ascii_alphanumeric()) {
            return Err(InvalidPattern::Beginning);
        }
        Ok(Self {
            text: text.to_owned(),
            literal,
        })
    }
}

/// A header's value, which has no beginning to look at.
///
/// # Errors
/// It is no usable expression.
pub(super) fn check_value(text: &str) -> Result<(), InvalidPattern> {
    if text.is_empty() || text.len() > MAX {
        return Err(InvalidPattern::Length);
    }
    syntax(text)
}

fn syntax(text: &str) -> Result<(), InvalidPattern> {
    let mut chars = text.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped) if "dwsDWS".contains(escaped) => {}
                Some(escaped) if escaped.is_ascii_punctuation() => {}
                Some(escaped) => return Err(InvalidPattern::Character(escaped)),
                None => return Err(InvalidPattern::Syntax),
            },
            // Nested classes and class operators are Rust's, posix classes have their own syntax.
            '[' if in_class => return Err(InvalidPattern::Character('[')),
            '[' => in_class = true,
            ']' => in_class = false,
            '&' | '~' if in_class => return Err(InvalidPattern::Character(c)),
            '(' if chars.peek() == Some(&'?') => return Err(InvalidPattern::Character('?')),
            '{' if !in_class => repeat(&mut chars)?,
            ' '..='~' => {}
            other => return Err(InvalidPattern::Character(other)),
        }
    }
    regex_of(text).map(drop)
}

fn repeat(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<(), InvalidPattern> {
    let mut number = String::new();
    for c in chars.by_ref() {
        match c {
            '0'..='9' => number.push(c),
            ',' | '}' => {
                if number.parse::<u32>().is_ok_and(|count| count > MAX_REPEAT) {
                    return Err(InvalidPattern::Repeat);
                }
                number.clear();
                if c == '}' {
                    return Ok(());
                }
            }
            _ => return Err(InvalidPattern::Syntax),
        }
    }
    Err(InvalidPattern::Syntax)
}

fn regex_of(text: &str) -> Result<regex::bytes::Regex, InvalidPattern> {
    regex::bytes::RegexBuilder::new(&format!("^(?:{text})$"))
        .unicode(false)
        .size_limit(1 << 18)
        .build()
        .map_err(|_| InvalidPattern::Syntax)
}

/// The characters before the first one that is not itself.
fn literal(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_~!&',=:@%".contains(c);
    let mut literal: String = text.chars().take_while(|c| plain(*c)).collect();
    let rest = &text[literal.len()..];
    if alternates(text) {
        return String::new();
    }
    if rest.starts_with(['?', '*', '{']) {
        literal.pop();
    }
    literal
}

/// Whether there is a `|` outside of groups.
fn alternates(text: &str) -> bool {
    let (mut depth, mut in_class, mut escaped) = (0i32, false, false);
    for c in text.chars() {
        if escaped {
            escaped = false;
            continue;
        }
        match c {
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            '|' if !in_class && depth == 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_reader_takes_is_let_through() {
        use InvalidPattern::{Beginning, Character, Length, Repeat, Syntax};
        let check = |text: &str, expect: Result<&str, InvalidPattern>| {
            let got = text.parse::<Pattern>();
            assert_eq!(
                got.as_ref().map(Pattern::literal),
                expect.as_ref().map(|s| *s),
                "{text}"
            );
        };
        check("/api/v[0-9]+/.*", Ok("/api/v"));
        check("/apis?/x", Ok("/api"));
        check("/api/(a|b)", Ok("/api/"));
        check("/a\\.b", Ok("/a"));
        check("", Err(Length));
        check(&"/a".repeat(200), Err(Length));
        check("/a(", Err(Syntax));
        check("/a\\", Err(Syntax));
        check("/a(?i)b", Err(Character('?')));
        check("/a[[:alpha:]]", Err(Character('[')));
        check("/a\\pL", Err(Character('p')));
        check("/a{1001}", Err(Repeat));
        check("/aé", Err(Character('é')));
        check(".*", Err(Beginning));
        check("/.*", Err(Beginning));
        check("/a|/.well-known/x", Err(Beginning));
        check("/a*", Err(Beginning));
    }
}
