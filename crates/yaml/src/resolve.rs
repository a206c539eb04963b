//! Gives a plain scalar its type, by the YAML 1.1 rules of go-yaml v2 (`resolve.go`), which Helm and
//! Kubernetes read with.

use serde_json::{Number, Value};

/// What a scalar is.
#[derive(Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// A string because nothing else fits, or a date, which readers of untyped values get as text.
    Str,
}

impl Scalar {
    /// The value in JSON, `None` if JSON has none (`.nan`, `.inf`). A float without fraction is an
    /// integer, since that is how Go writes it as JSON.
    pub(crate) fn into_json(self, text: &str) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Int(i) => Value::from(i),
            Self::Uint(u) => Value::from(u),
            Self::Float(f) => float(f)?,
            Self::Str => Value::String(text.to_owned()),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "guarded: integral and well inside i64"
)]
fn float(f: f64) -> Option<Value> {
    if f.fract() == 0.0 && f.abs() < 9.0e18 {
        return Some(Value::from(f as i64));
    }
    Number::from_f64(f).map(Value::Number)
}

/// The type of an untagged plain scalar.
pub(crate) fn resolve(text: &str) -> Scalar {
    let Some(first) = text.bytes().next() else {
        return Scalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => special_float(text).unwrap_or_else(|| go_float(text, true)),
        b'0'..=b'9' | b'+' | b'-' => special_float(text).unwrap_or_else(|| number(text)),
        _ => Scalar::Str,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::Str,
    }
}

fn special_float(text: &str) -> Option<Scalar> {
    Some(Scalar::Float(match text {
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        _ => return None,
    }))
}

fn number(text: &str) -> Scalar {
    if is_timestamp(text) {
        return Scalar::Str;
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if let Some(int) = go_int(&plain) {
        return int;
    }
    go_float(&plain, false)
}

/// `strconv.ParseInt(s, 0, 64)`, then `ParseUint`, on a text without underscores.
fn go_int(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int)
    } else {
        Some(i64::try_from(magnitude).map_or(Scalar::Uint(magnitude), Scalar::Int))
    }
}

/// Decimal floats: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`. A leading dot goes to Go's own, laxer
/// parser, which differs in nothing that occurs.
fn go_float(text: &str, leading_dot: bool) -> Scalar {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        None => digits(mantissa),
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    let exponent_ok = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    if !(mantissa_ok && exponent_ok) || (leading_dot && text.starts_with(['+', '-'])) {
        return Scalar::Str;
    }
    match text.parse::<f64>() {
        Ok(f) if f.is_finite() => Scalar::Float(f),
        _ => Scalar::Str,
    }
}

/// Whether go-yaml would take the text for a date: `2006-1-2`, optionally with a time.
pub(crate) fn is_timestamp(text: &str) -> bool {
    fn take(text: &str, min: usize, max: usize, high: u32) -> Option<&str> {
        let n = text
            .bytes()
            .take(max)
            .take_while(u8::is_ascii_digit)
            .count();
        let value: u32 = text[..n].parse().ok()?;
        (n >= min && value <= high).then_some(&text[n..])
    }
    fn date_and_time(text: &str) -> Option<()> {
        let rest = take(text, 4, 4, 9999)?.strip_prefix('-')?;
        let rest = take(rest, 1, 2, 12)?.strip_prefix('-')?;
        let rest = take(rest, 1, 2, 31)?;
        if rest.is_empty() {
            return Some(());
        }
        let zoned = rest.starts_with(['T', 't']);
        let rest = rest.strip_prefix(['T', 't', ' '])?;
        let rest = take(rest, 1, 2, 23)?.strip_prefix(':')?;
        let rest = take(rest, 1, 2, 59)?.strip_prefix(':')?;
        let rest = take(rest, 1, 2, 59)?;
        let rest = match rest.strip_prefix('.') {
            Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => rest,
        };
        if !zoned {
            return rest.is_empty().then_some(());
        }
        if rest == "Z" {
            return Some(());
        }
        let rest = rest.strip_prefix(['+', '-'])?;
        let rest = take(rest, 2, 2, 24)?.strip_prefix(':')?;
        take(rest, 2, 2, 60)?.is_empty().then_some(())
    }
    date_and_time(text).is_some()
}
