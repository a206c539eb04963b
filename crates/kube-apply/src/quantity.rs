//! Kubernetes quantities (`500m`, `2Gi`): the server stores them in a canonical spelling.

use serde_json::Value;

/// Whether both are quantities of the same amount.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => {
            (one - other).abs() <= f64::EPSILON * one.abs().max(other.abs()) * 4.0
        }
        _ => false,
    }
}

fn parse(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => parse_text(text),
        _ => None,
    }
}

fn parse_text(text: &str) -> Option<f64> {
    if let Ok(plain) = text.parse::<f64>() {
        return plain.is_finite().then_some(plain);
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, suffix) = text.split_at(split);
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn spellings_of_one_amount_are_the_same() {
        let check = |one: Value, other: Value, expect| {
            assert_eq!(same(&one, &other), expect, "{one} {other}");
        };
        check(json!("2048Mi"), json!("2Gi"), true);
        check(json!("0.5"), json!("500m"), true);
        check(json!(1), json!("1000m"), true);
        check(json!("1e3"), json!("1k"), true);
        check(json!("1G"), json!("1Gi"), false);
        check(json!("100m"), json!("100"), false);
        check(json!("lots"), json!("lots"), false);
        check(json!("1Xi"), json!("1Xi"), false);
    }
}
