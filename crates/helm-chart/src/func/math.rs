//! Numbers. Whole-number functions convert their arguments as sprig does: what is no number counts as 0.

use super::{ANY, Call, Row};
use crate::engine::Fail;
use crate::engine::value::Value;

pub(super) const TABLE: &[Row] = &[
    ("int", 1, 1, |c| Ok(Value::Int(to_int(c.arg(0))))),
    ("int64", 1, 1, |c| Ok(Value::Int(to_int(c.arg(0))))),
    ("float64", 1, 1, |c| Ok(Value::Float(to_float(c.arg(0))))),
    ("atoi", 1, 1, |c| {
        Ok(Value::Int(c.str(0)?.parse().unwrap_or(0)))
    }),
    ("toDecimal", 1, 1, |c| {
        let text = c.text(c.arg(0))?;
        Ok(Value::Int(i64::from_str_radix(&text, 8).unwrap_or(0)))
    }),
    ("add", 0, ANY, |c| Ok(fold(c, 0, i64::wrapping_add))),
    ("add1", 1, 1, |c| {
        Ok(Value::Int(to_int(c.arg(0)).wrapping_add(1)))
    }),
    ("sub", 2, 2, |c| {
        Ok(Value::Int(to_int(c.arg(0)).wrapping_sub(to_int(c.arg(1)))))
    }),
    ("mul", 1, ANY, |c| Ok(fold(c, 1, i64::wrapping_mul))),
    ("div", 2, 2, |c| divide(c, i64::wrapping_div)),
    ("mod", 2, 2, |c| divide(c, i64::wrapping_rem)),
    ("max", 1, ANY, |c| Ok(fold(c, i64::MIN, i64::max))),
    ("biggest", 1, ANY, |c| Ok(fold(c, i64::MIN, i64::max))),
    ("min", 1, ANY, |c| Ok(fold(c, i64::MAX, i64::min))),
    ("addf", 0, ANY, |c| Ok(fold_float(c, 0.0, |a, b| a + b))),
    ("add1f", 1, 1, |c| {
        Ok(Value::Float(to_float(c.arg(0)) + 1.0))
    }),
    ("subf", 1, ANY, |c| Ok(reduce_float(c, |a, b| a - b))),
    ("mulf", 1, ANY, |c| Ok(reduce_float(c, |a, b| a * b))),
    ("divf", 1, ANY, |c| Ok(reduce_float(c, |a, b| a / b))),
    ("maxf", 1, ANY, |c| Ok(reduce_float(c, f64::max))),
    ("minf", 1, ANY, |c| Ok(reduce_float(c, f64::min))),
    ("ceil", 1, 1, |c| {
        Ok(Value::Float(to_float(c.arg(0)).ceil()))
    }),
    ("floor", 1, 1, |c| {
        Ok(Value::Float(to_float(c.arg(0)).floor()))
    }),
    ("round", 2, 3, round),
    ("until", 1, 1, |c| {
        let stop = c.int(0)?;
        steps(c, 0, stop, if stop < 0 { -1 } else { 1 })
    }),
    ("untilStep", 3, 3, |c| {
        steps(c, c.int(0)?, c.int(1)?, c.int(2)?)
    }),
    ("seq", 0, 3, seq),
];

/// The library `cast`: numbers are truncated, strings parsed with Go's prefixes, booleans are 0 and 1.
#[expect(
    clippy::cast_possible_truncation,
    reason = "saturating, like most of Go's platforms"
)]
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(i) => *i,
        Value::Float(f) => *f as i64,
        Value::Bool(b) => i64::from(*b),
        Value::Str(text) => parse_int(text).unwrap_or(0),
        _ => 0,
    }
}

/// `strconv.ParseInt(s, 0, 0)` after cutting off `.000`.
fn parse_int(text: &str) -> Option<i64> {
    let text = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    let digits = digits.replace('_', "");
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i64::from_str_radix(&digits, radix).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what a conversion to float64 does"
)]
fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(i) => *i as f64,
        Value::Float(f) => *f,
        Value::Bool(b) => f64::from(u8::from(*b)),
        Value::Str(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}

fn fold(c: &Call<'_>, start: i64, op: fn(i64, i64) -> i64) -> Value {
    Value::Int(c.args.iter().map(to_int).fold(start, op))
}

fn divide(c: &Call<'_>, op: fn(i64, i64) -> i64) -> Result<Value, Fail> {
    let (a, b) = (to_int(c.arg(0)), to_int(c.arg(1)));
    if b == 0 {
        return Err(Fail::call("runtime error: integer divide by zero"));
    }
    Ok(Value::Int(op(a, b)))
}

fn fold_float(c: &Call<'_>, start: f64, op: fn(f64, f64) -> f64) -> Value {
    Value::Float(c.args.iter().map(to_float).fold(start, op))
}

fn reduce_float(c: &Call<'_>, op: fn(f64, f64) -> f64) -> Value {
    Value::Float(c.args.iter().map(to_float).reduce(op).unwrap_or(0.0))
}

fn round(c: &mut Call<'_>) -> Result<Value, Fail> {
    let places = i32::try_from(c.int(1)?.clamp(-300, 300)).unwrap_or(0);
    let round_on = c.args.get(2).map_or(0.5, to_float);
    let power = 10_f64.powi(places);
    let digit = power * to_float(c.arg(0));
    let rounded = if digit.fract() >= round_on {
        digit.ceil()
    } else {
        digit.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn range(c: &Call<'_>, start: i64, end: i64, step: i64) -> Result<Vec<i64>, Fail> {
    let mut numbers = Vec::new();
    let (forward, backward) = (start < end && step > 0, end < start && step < 0);
    if !forward && !backward {
        return Ok(numbers);
    }
    let len = end.abs_diff(start).div_ceil(step.unsigned_abs());
    c.engine
        .budget
        .list(usize::try_from(len).unwrap_or(usize::MAX))?;
    let mut at = start;
    while if forward { at < end } else { at > end } {
        numbers.push(at);
        let Some(next) = at.checked_add(step) else {
            break;
        };
        at = next;
    }
    Ok(numbers)
}

fn steps(c: &Call<'_>, start: i64, end: i64, step: i64) -> Result<Value, Fail> {
    Ok(Value::list(
        range(c, start, end, step)?
            .into_iter()
            .map(Value::Int)
            .collect(),
    ))
}

fn seq(c: &mut Call<'_>) -> Result<Value, Fail> {
    let mut params = Vec::new();
    for i in 0..c.args.len() {
        params.push(c.int(i)?);
    }
    let numbers = match *params.as_slice() {
        [end] => {
            let step = if end < 1 { -1 } else { 1 };
            range(c, 1, end.saturating_add(step), step)?
        }
        [start, end] => {
            let step = if end < start { -1 } else { 1 };
            range(c, start, end.saturating_add(step), step)?
        }
        [start, step, end] if end < start => {
            if step > 0 {
                Vec::new()
            } else {
                range(c, start, end.saturating_sub(1), step)?
            }
        }
        [start, step, end] => range(c, start, end.saturating_add(1), step)?,
        _ => Vec::new(),
    };
    let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    Ok(Value::str(&texts.join(" ")))
}
