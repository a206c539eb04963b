//! Defaults, emptiness and types.

use super::{ANY, Call, Row};
use crate::engine::Fail;
use crate::engine::value::Value;

pub(super) const TABLE: &[Row] = &[
    ("default", 1, ANY, |c| {
        Ok(match c.args.get(1) {
            Some(given) if given.truth() => given.clone(),
            _ => c.arg(0).clone(),
        })
    }),
    ("empty", 1, 1, |c| Ok(Value::Bool(!c.arg(0).truth()))),
    ("coalesce", 0, ANY, |c| {
        Ok(c.args
            .iter()
            .find(|arg| arg.truth())
            .cloned()
            .unwrap_or(Value::Nil))
    }),
    ("all", 0, ANY, |c| {
        Ok(Value::Bool(c.args.iter().all(Value::truth)))
    }),
    ("any", 0, ANY, |c| {
        Ok(Value::Bool(c.args.iter().any(Value::truth)))
    }),
    ("ternary", 3, 3, |c| {
        Ok(c.arg(usize::from(!c.bool(2)?)).clone())
    }),
    ("typeOf", 1, 1, |c| Ok(Value::str(c.arg(0).go_type()))),
    ("typeIs", 2, 2, |c| {
        Ok(Value::Bool(*c.str(0)? == *c.arg(1).go_type()))
    }),
    ("typeIsLike", 2, 2, type_is_like),
    ("kindOf", 1, 1, |c| Ok(Value::str(c.arg(0).go_kind()))),
    ("kindIs", 2, 2, |c| {
        Ok(Value::Bool(*c.str(0)? == *c.arg(1).go_kind()))
    }),
    ("deepEqual", 2, 2, |c| {
        Ok(Value::Bool(
            c.arg(0).deep_equal(c.arg(1), &c.engine.budget)?,
        ))
    }),
];

fn type_is_like(c: &mut Call<'_>) -> Result<Value, Fail> {
    let (target, actual) = (c.str(0)?, c.arg(1).go_type());
    Ok(Value::Bool(
        *target == *actual || actual.strip_prefix('*') == Some(&target),
    ))
}
