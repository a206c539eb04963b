//! Go's `fmt`: how values print, and `printf`.

use super::value::Value;
use crate::limits::{Budget, Exceeded};
use std::fmt::Write as _;
use yaml::go_float;

/// A width or precision beyond this is an error in Go too.
const MAX_WIDTH: usize = 1_000_000;

/// `fmt.Sprint` of a single value (`%v`).
pub(crate) fn text(value: &Value, budget: &Budget) -> Result<String, Exceeded> {
    let mut out = String::new();
    write_value(&mut out, value, budget, 0)?;
    Ok(out)
}

/// What a template prints for a value: `%v`, but `<no value>` for nothing.
pub(crate) fn print(out: &mut String, value: &Value, budget: &Budget) -> Result<(), Exceeded> {
    match value {
        Value::Invalid | Value::Nil => {
            out.push_str("<no value>");
            Ok(())
        }
        value => write_value(out, value, budget, 0),
    }
}

fn write_value(
    out: &mut String,
    value: &Value,
    budget: &Budget,
    depth: usize,
) -> Result<(), Exceeded> {
    Budget::value_depth(depth)?;
    budget.steps(1)?;
    match value {
        Value::Invalid | Value::Nil => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&go_float(*f)),
        Value::Str(s) => {
            budget.fits(out.len().saturating_add(s.len()))?;
            budget.steps(s.len() / 256)?;
            out.push_str(s);
        }
        Value::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            out.extend(["[", &bytes.join(" "), "]"]);
        }
        Value::List(list) => {
            out.push('[');
            for (i, item) in list.0.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_value(out, item, budget, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (i, (key, item)) in map.entries.borrow().iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_value(out, item, budget, depth + 1)?;
            }
            out.push(']');
        }
        Value::Native(native) => out.push_str(&native.text()),
    }
    Ok(())
}

fn special(f: f64) -> Option<&'static str> {
    if f.is_nan() {
        Some("NaN")
    } else if f.is_infinite() {
        Some(if f > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

fn go_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `strconv.Quote`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0b}' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            c if c < ' ' || c == '\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if is_print(c) => out.push(c),
            c if u32::from(c) > 0xffff => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// Go's `strconv.IsPrint`, as near as the standard library comes to it.
fn is_print(c: char) -> bool {
    c.is_alphanumeric() || (c.escape_debug().count() == 1 && !c.is_whitespace())
}

struct Verb {
    /// Any of `-+# 0`.
    flags: Vec<char>,
    width: Option<usize>,
    precision: Option<usize>,
}

impl Verb {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(&flag)
    }

    fn pad(&self, text: String) -> String {
        let Some(width) = self.width else { return text };
        let fill = width.saturating_sub(text.chars().count());
        if self.has('-') {
            text + &" ".repeat(fill)
        } else {
            " ".repeat(fill) + &text
        }
    }

    /// Pads a number, with zeros between sign and digits if asked for.
    fn pad_number(&self, text: String) -> String {
        let sign_len = usize::from(text.starts_with(['-', '+', ' ']));
        match self.width {
            Some(width) if self.has('0') && !self.has('-') => {
                let fill = width.saturating_sub(text.chars().count());
                let (sign, digits) = text.split_at(sign_len);
                format!("{sign}{}{digits}", "0".repeat(fill))
            }
            _ => self.pad(text),
        }
    }

    fn signed(&self, text: String) -> String {
        if text.starts_with('-') {
            text
        } else if self.has('+') {
            format!("+{text}")
        } else if self.has(' ') {
            format!(" {text}")
        } else {
            text
        }
    }
}

/// `fmt.Sprintf`.
pub(crate) fn sprintf(format: &str, args: &[Value], budget: &Budget) -> Result<String, Exceeded> {
    let mut out = String::new();
    let mut next = 0;
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut verb = Verb {
            flags: Vec::new(),
            width: None,
            precision: None,
        };
        while let Some(flag) = chars.next_if(|c| "-+# 0".contains(*c)) {
            verb.flags.push(flag);
        }
        verb.width = number(&mut chars, args, &mut next);
        if chars.peek() == Some(&'.') {
            chars.next();
            verb.precision = Some(number(&mut chars, args, &mut next).unwrap_or(0));
        }
        let Some(letter) = chars.next() else {
            out.push_str("%!(NOVERB)");
            break;
        };
        if letter == '%' {
            out.push('%');
            continue;
        }
        let Some(arg) = args.get(next) else {
            let _ = write!(out, "%!{letter}(MISSING)");
            continue;
        };
        next += 1;
        out.push_str(&one(letter, &verb, arg, budget)?);
        budget.fits(out.len())?;
    }
    if next < args.len() {
        out.push_str("%!(EXTRA ");
        for (i, arg) in args.iter().enumerate().skip(next) {
            if i > next {
                out.push_str(", ");
            }
            match arg {
                Value::Invalid | Value::Nil => out.push_str("<nil>"),
                arg => {
                    let _ = write!(out, "{}={}", arg.go_type(), text(arg, budget)?);
                }
            }
        }
        out.push(')');
    }
    budget.string(out.len())?;
    Ok(out)
}

fn number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    args: &[Value],
    next: &mut usize,
) -> Option<usize> {
    if chars.peek() == Some(&'*') {
        chars.next();
        let arg = args.get(*next);
        *next += 1;
        return match arg {
            Some(Value::Int(n)) => usize::try_from(*n).ok().map(|n| n.min(MAX_WIDTH)),
            _ => None,
        };
    }
    let mut value = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        chars.next();
        value = Some((value.unwrap_or(0) * 10 + digit as usize).min(MAX_WIDTH));
    }
    value
}

fn one(letter: char, verb: &Verb, arg: &Value, budget: &Budget) -> Result<String, Exceeded> {
    if letter == 'T' {
        return Ok(verb.pad(arg.go_type().to_owned()));
    }
    Ok(match (letter, arg) {
        ('v', Value::Invalid | Value::Nil) => verb.pad("<nil>".to_owned()),
        (_, Value::Invalid | Value::Nil) => format!("%!{letter}(<nil>)"),
        ('v', Value::Str(s)) if verb.has('#') => verb.pad(quote(s)),
        ('v' | 's', Value::Str(s)) => verb.pad(cut(s, verb.precision)),
        ('q', Value::Str(s)) => verb.pad(quote(&cut(s, verb.precision))),
        ('x', Value::Str(s)) => verb.pad(hex(s)),
        ('X', Value::Str(s)) => verb.pad(hex(s).to_uppercase()),
        ('s', Value::Bytes(b)) => verb.pad(String::from_utf8_lossy(b).into_owned()),
        ('t' | 'v', Value::Bool(b)) => verb.pad(b.to_string()),
        ('d' | 'v', Value::Int(i)) => verb.pad_number(verb.signed(i.to_string())),
        ('b', Value::Int(i)) => verb.pad_number(radix(*i, |n| format!("{n:b}"))),
        ('o', Value::Int(i)) => verb.pad_number(radix(*i, |n| format!("{n:o}"))),
        ('x', Value::Int(i)) => verb.pad_number(radix(*i, |n| format!("{n:x}"))),
        ('X', Value::Int(i)) => verb.pad_number(radix(*i, |n| format!("{n:X}"))),
        ('c', Value::Int(i)) => {
            let c = u32::try_from(*i)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('\u{fffd}');
            verb.pad(c.to_string())
        }
        ('q', Value::Int(i)) => {
            let c = u32::try_from(*i)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('\u{fffd}');
            verb.pad(format!("'{}'", c.escape_debug()))
        }
        ('U', Value::Int(i)) => verb.pad(format!("U+{i:04X}")),
        ('v' | 'g' | 'G' | 'f' | 'F' | 'e' | 'E', Value::Float(f)) => {
            verb.pad_number(verb.signed(float(letter, verb.precision, *f)))
        }
        ('v', value) => verb.pad(text(value, budget)?),
        (_, Value::List(list)) => {
            let items: Vec<String> = list
                .0
                .iter()
                .map(|item| one(letter, verb, item, budget))
                .collect::<Result<_, _>>()?;
            format!("[{}]", items.join(" "))
        }
        (_, Value::Map(map)) => {
            let map = map.entries.borrow();
            let mut items = Vec::new();
            for (key, item) in &*map {
                let key = one(letter, verb, &Value::Str(std::rc::Rc::clone(key)), budget)?;
                items.push(format!("{key}:{}", one(letter, verb, item, budget)?));
            }
            format!("map[{}]", items.join(" "))
        }
        ('s', Value::Native(native)) => verb.pad(native.text()),
        (_, value) => format!("%!{letter}({}={})", value.go_type(), text(value, budget)?),
    })
}

fn hex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn radix(i: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if i < 0 { "-" } else { "" };
    format!("{sign}{}", digits(i.unsigned_abs()))
}

fn cut(text: &str, precision: Option<usize>) -> String {
    match precision {
        Some(n) => text.chars().take(n).collect(),
        None => text.to_owned(),
    }
}

fn float(letter: char, precision: Option<usize>, f: f64) -> String {
    if let Some(text) = special(f) {
        return text.to_owned();
    }
    match letter {
        'f' | 'F' => format!("{f:.*}", precision.unwrap_or(6)),
        'e' | 'E' => {
            let text = format!("{f:.*e}", precision.unwrap_or(6));
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let text = go_exponent(mantissa, exponent.parse().unwrap_or(0));
            if letter == 'E' {
                text.to_uppercase()
            } else {
                text
            }
        }
        _ => match precision {
            None => go_float(f),
            Some(p) => {
                let p = p.max(1);
                let text = format!("{f:.*e}", p - 1);
                let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let trim = |s: &str| {
                    if s.contains('.') {
                        s.trim_end_matches('0').trim_end_matches('.').to_owned()
                    } else {
                        s.to_owned()
                    }
                };
                let limit = i32::try_from(p).unwrap_or(i32::MAX);
                if (-4..limit).contains(&exponent) {
                    let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
                    trim(&format!("{f:.decimals$}"))
                } else {
                    go_exponent(&trim(mantissa), exponent)
                }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::RenderLimits;

    #[test]
    fn printf_formats_like_go() {
        let budget = Budget::new(RenderLimits::default());
        let s = |text: &str| Value::str(text);
        for (format, args, expect) in [
            ("%s-%s", vec![s("a"), s("b")], "a-b"),
            (
                "%d|%5d|%-5d|%05d|%+d",
                vec![7, 7, 7, -7, 7].into_iter().map(Value::Int).collect(),
                "7|    7|7    |-0007|+7",
            ),
            (
                "%v %v",
                vec![Value::Float(1e6), Value::Float(0.5)],
                "1e+06 0.5",
            ),
            (
                "%.2f %e %g",
                vec![
                    Value::Float(2.625),
                    Value::Float(1234.5),
                    Value::Float(1e-7),
                ],
                "2.62 1.234500e+03 1e-07",
            ),
            (
                "%q %t %%",
                vec![s("a\"b\n"), Value::Bool(true)],
                "\"a\\\"b\\n\" true %",
            ),
            ("%d", vec![s("x")], "%!d(string=x)"),
            ("%d", vec![Value::Float(3.0)], "%!d(float64=3)"),
            ("%s", vec![Value::Nil], "%!s(<nil>)"),
            ("%s", vec![], "%!s(MISSING)"),
            ("%", vec![], "%!(NOVERB)"),
            ("x", vec![Value::Int(1)], "x%!(EXTRA int=1)"),
            (
                "%x %X %o %b",
                vec![255, 255, 8, 5].into_iter().map(Value::Int).collect(),
                "ff FF 10 101",
            ),
            ("%s", vec![Value::list(vec![s("a"), s("b")])], "[a b]"),
            (
                "%5s|%-5s|%.1s",
                vec![s("ab"), s("ab"), s("ab")],
                "   ab|ab   |a",
            ),
            ("%T", vec![Value::Float(1.0)], "float64"),
        ] {
            assert_eq!(sprintf(format, &args, &budget).unwrap(), expect, "{format}");
        }
    }

    #[test]
    fn quote_escapes_like_go() {
        assert_eq!(
            quote("a\u{1}\u{7f}é\u{200b}\u{1F600}"),
            "\"a\\x01\\x7fé\\u200b\u{1F600}\""
        );
    }
}
