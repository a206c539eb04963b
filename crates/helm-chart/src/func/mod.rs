//! The functions templates call: Go's builtins, Helm's own, and sprig's.
//!
//! Left out are the functions whose result differs from run to run or depends on the machine: clock, randomness, key
//! generation, environment, DNS. A chart that names one does not load.

mod builtin;
mod dict;
mod encode;
mod list;
mod math;
mod regexp;
mod semver_range;
mod strings;
mod types;

pub(crate) use encode::base64;
pub(crate) use semver_range::matches as semver_matches;

use crate::engine::value::{MapObj, Value};
use crate::engine::{Engine, Fail};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

/// The most arguments of a variadic function.
const ANY: usize = usize::MAX;

type Run = fn(&mut Call<'_>) -> Result<Value, Fail>;

/// Name, fewest and most arguments, implementation.
type Row = (&'static str, usize, usize, Run);

/// A function and its arity.
#[derive(Clone, Copy)]
pub(crate) struct Func {
    min: usize,
    max: usize,
    pub(crate) run: Run,
}

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Func>> = LazyLock::new(|| {
    [
        builtin::TABLE,
        dict::TABLE,
        encode::TABLE,
        list::TABLE,
        math::TABLE,
        regexp::TABLE,
        semver_range::TABLE,
        strings::TABLE,
        types::TABLE,
    ]
    .into_iter()
    .flatten()
    .map(|&(name, min, max, run)| (name, Func { min, max, run }))
    .collect()
});

pub(crate) fn lookup(name: &str) -> Option<Func> {
    FUNCTIONS.get(name).copied()
}

/// Whether a template may name the function; `and` and `or` are part of the evaluator.
pub(crate) fn exists(name: &str) -> bool {
    name == "and" || name == "or" || FUNCTIONS.contains_key(name)
}

impl Func {
    pub(crate) fn check_arity(self, name: &str, given: usize) -> Result<(), Fail> {
        if given < self.min && self.max > self.min {
            return Err(Fail::message(format!(
                "wrong number of args for {name}: want at least {} got {given}",
                self.min
            )));
        }
        if given < self.min || given > self.max {
            let wanted = if given < self.min { self.min } else { self.max };
            return Err(Fail::message(format!(
                "wrong number of args for {name}: want {wanted} got {given}"
            )));
        }
        Ok(())
    }
}

/// A call under way. The arity has been checked.
pub(crate) struct Call<'e> {
    pub(crate) engine: &'e mut Engine,
    pub(crate) args: Vec<Value>,
}

fn wrong_type(value: &Value, expected: &str) -> Fail {
    if value.is_nil() {
        return Fail::message(format!("invalid value; expected {expected}"));
    }
    Fail::message(format!(
        "wrong type for value; expected {expected}; got {}",
        value.go_type()
    ))
}

pub(crate) fn expect_str(value: &Value) -> Result<Rc<str>, Fail> {
    match value {
        Value::Str(text) => Ok(Rc::clone(text)),
        other => Err(wrong_type(other, "string")),
    }
}

impl Call<'_> {
    fn arg(&self, i: usize) -> &Value {
        self.args.get(i).unwrap_or(&Value::Nil)
    }

    fn str(&self, i: usize) -> Result<Rc<str>, Fail> {
        expect_str(self.arg(i))
    }

    fn int(&self, i: usize) -> Result<i64, Fail> {
        match self.arg(i) {
            Value::Int(n) => Ok(*n),
            other => Err(wrong_type(other, "int")),
        }
    }

    /// A length or count; negative ones, which Go panics on, are errors.
    fn size(&self, i: usize) -> Result<usize, Fail> {
        let n = self.int(i)?;
        usize::try_from(n).map_err(|_| Fail::call(format!("negative count {n}")))
    }

    fn bool(&self, i: usize) -> Result<bool, Fail> {
        match self.arg(i) {
            Value::Bool(b) => Ok(*b),
            other => Err(wrong_type(other, "bool")),
        }
    }

    fn map(&self, i: usize) -> Result<Rc<MapObj>, Fail> {
        match self.arg(i) {
            Value::Map(map) => Ok(Rc::clone(map)),
            other => Err(wrong_type(other, "map[string]interface {}")),
        }
    }

    /// The items of a list (or the bytes of a byte slice).
    fn items(&self, i: usize, verb: &str) -> Result<Vec<Value>, Fail> {
        match self.arg(i) {
            Value::List(list) => {
                self.engine.budget.list(list.0.len())?;
                Ok(list.0.clone())
            }
            Value::Bytes(bytes) => Ok(bytes.iter().map(|b| Value::Int(i64::from(*b))).collect()),
            other => Err(Fail::call(format!(
                "Cannot {verb} on type {}",
                other.go_kind()
            ))),
        }
    }

    /// `strval`: strings as they are, everything else as it prints.
    fn text(&self, value: &Value) -> Result<String, Fail> {
        Ok(match value {
            Value::Str(text) => text.to_string(),
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => crate::engine::format::text(other, &self.engine.budget)?,
        })
    }
}
