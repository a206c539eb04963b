//! Values as templates see them. Maps are shared and mutable, because charts write through `set` and
//! `mustMergeOverwrite` into `$.Values`; lists and strings are shared and immutable.

use super::native::Native;
use crate::limits::{Budget, Exceeded};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The entries of a map.
pub(crate) type Entries = BTreeMap<Rc<str>, Value>;

/// A value. `Invalid` and `Nil` are Go's two kinds of nothing: a field of `Invalid` is `Invalid`, a field of `Nil` is
/// a nil pointer error. A pipeline turns `Nil` into `Invalid`, which makes `((.a).b).c` safe where `.a.b.c` is not.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Invalid,
    Nil,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    Bytes(Rc<[u8]>),
    List(Rc<List>),
    Map(Rc<MapObj>),
    Native(Native),
}

#[derive(Debug)]
pub(crate) struct List(pub(crate) Vec<Value>);

/// What a map's Go type decides: the value of a missing key, and whether it has methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapKind {
    /// `map[string]interface {}`
    Any,
    /// `map[string]string`, as `split` returns: a missing key is the empty string.
    Strings,
    /// Helm's `Values`, which has the method `AsMap`.
    Values,
}

#[derive(Debug)]
pub(crate) struct MapObj {
    pub(crate) kind: MapKind,
    pub(crate) entries: RefCell<Entries>,
}

impl Value {
    pub(crate) fn str(text: &str) -> Self {
        Self::Str(Rc::from(text))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(List(items)))
    }

    pub(crate) fn map(entries: Entries) -> Self {
        Self::Map(MapObj::new(MapKind::Any, entries))
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Invalid | Self::Nil)
    }

    /// What a pipeline makes of an interface that holds nothing.
    pub(crate) fn unwrapped(self) -> Self {
        match self {
            Self::Nil => Self::Invalid,
            other => other,
        }
    }

    /// Truth of `if`, `and`, `not`; also the opposite of sprig's `empty`.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Invalid | Self::Nil => false,
            Self::Bool(b) => *b,
            Self::Int(i) => *i != 0,
            Self::Float(f) => *f != 0.0,
            Self::Str(s) => !s.is_empty(),
            Self::Bytes(b) => !b.is_empty(),
            Self::List(l) => !l.0.is_empty(),
            Self::Map(m) => !m.entries.borrow().is_empty(),
            Self::Native(n) => n.truth(),
        }
    }

    /// The name of the Go type, for messages and `typeOf`.
    pub(crate) fn go_type(&self) -> &'static str {
        match self {
            Self::Invalid | Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(_) => "[]interface {}",
            Self::Map(m) => match m.kind {
                MapKind::Any => "map[string]interface {}",
                MapKind::Strings => "map[string]string",
                MapKind::Values => "common.Values",
            },
            Self::Native(n) => n.go_type(),
        }
    }

    /// The name of the Go kind, for `kindOf`.
    pub(crate) fn go_kind(&self) -> &'static str {
        match self {
            Self::Invalid | Self::Nil => "invalid",
            Self::Bytes(_) | Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Native(n) => n.go_kind(),
            other => other.go_type(),
        }
    }

    /// From JSON: all numbers become floats, as everything Helm reads from a file.
    pub(crate) fn from_json(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(b) => Self::Bool(*b),
            serde_json::Value::Number(n) => Self::Float(n.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(s) => Self::str(s),
            serde_json::Value::Array(items) => {
                Self::list(items.iter().map(Self::from_json).collect())
            }
            serde_json::Value::Object(map) => Self::map(entries_from_json(map)),
        }
    }

    /// To JSON, as Go's `json.Marshal` would see it. Fails for what has no JSON (and so, in Helm, for cycles).
    pub(crate) fn to_json(&self, budget: &Budget) -> Result<serde_json::Value, NoJson> {
        self.to_json_at(budget, 0)
    }

    fn to_json_at(&self, budget: &Budget, depth: usize) -> Result<serde_json::Value, NoJson> {
        Budget::value_depth(depth)?;
        budget.steps(1)?;
        Ok(match self {
            Self::Invalid | Self::Nil => serde_json::Value::Null,
            Self::Bool(b) => serde_json::Value::Bool(*b),
            Self::Int(i) => serde_json::Value::from(*i),
            Self::Float(f) => serde_json::Number::from_f64(*f)
                .map(serde_json::Value::Number)
                .ok_or(NoJson::Unsupported)?,
            Self::Str(s) => {
                budget.steps(s.len() / 64)?;
                serde_json::Value::String(s.to_string())
            }
            Self::Bytes(bytes) => serde_json::Value::String(crate::func::base64(bytes)),
            Self::List(list) => serde_json::Value::Array(
                list.0
                    .iter()
                    .map(|item| item.to_json_at(budget, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Map(map) => {
                let entries = map.entries.borrow();
                let mut object = serde_json::Map::new();
                for (key, value) in &*entries {
                    object.insert(key.to_string(), value.to_json_at(budget, depth + 1)?);
                }
                serde_json::Value::Object(object)
            }
            Self::Native(native) => native.to_json().ok_or(NoJson::Unsupported)?,
        })
    }

    /// A copy that shares no map.
    pub(crate) fn deep_copy(&self, budget: &Budget) -> Result<Self, Exceeded> {
        self.deep_copy_at(budget, 0)
    }

    fn deep_copy_at(&self, budget: &Budget, depth: usize) -> Result<Self, Exceeded> {
        Budget::value_depth(depth)?;
        budget.steps(1)?;
        Ok(match self {
            Self::List(list) => Self::list(
                list.0
                    .iter()
                    .map(|item| item.deep_copy_at(budget, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Map(map) => {
                let entries = map.entries.borrow();
                let mut copy = Entries::new();
                for (key, value) in &*entries {
                    copy.insert(Rc::clone(key), value.deep_copy_at(budget, depth + 1)?);
                }
                Self::Map(MapObj::new(map.kind, copy))
            }
            other => other.clone(),
        })
    }

    /// `reflect.DeepEqual`: no number equals one of another type.
    pub(crate) fn deep_equal(&self, other: &Self, budget: &Budget) -> Result<bool, Exceeded> {
        self.deep_equal_at(other, budget, 0)
    }

    fn deep_equal_at(&self, other: &Self, budget: &Budget, depth: usize) -> Result<bool, Exceeded> {
        Budget::value_depth(depth)?;
        budget.steps(1)?;
        Ok(match (self, other) {
            (Self::Invalid | Self::Nil, Self::Invalid | Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            #[expect(clippy::float_cmp, reason = "Go compares exactly")]
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::List(a), Self::List(b)) => {
                if a.0.len() != b.0.len() {
                    return Ok(false);
                }
                for (a, b) in a.0.iter().zip(&b.0) {
                    if !a.deep_equal_at(b, budget, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::Map(a), Self::Map(b)) => {
                if Rc::ptr_eq(a, b) {
                    return Ok(true);
                }
                let (a, b) = (a.entries.borrow(), b.entries.borrow());
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (key, a) in &*a {
                    match b.get(key) {
                        Some(b) if a.deep_equal_at(b, budget, depth + 1)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            _ => false,
        })
    }
}

/// Why a value has no JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoJson {
    Unsupported,
    Exceeded(Exceeded),
}

impl From<Exceeded> for NoJson {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

pub(crate) fn entries_from_json(map: &serde_json::Map<String, serde_json::Value>) -> Entries {
    map.iter()
        .map(|(key, value)| (Rc::from(key.as_str()), Value::from_json(value)))
        .collect()
}

impl MapObj {
    pub(crate) fn new(kind: MapKind, entries: Entries) -> Rc<Self> {
        Rc::new(Self {
            kind,
            entries: RefCell::new(entries),
        })
    }

    /// The value of a key; of a missing one, the zero value of the map's type.
    pub(crate) fn get(&self, key: &str) -> Value {
        match self.entries.borrow().get(key) {
            Some(value) => value.clone(),
            None if self.kind == MapKind::Strings => Value::str(""),
            None => Value::Nil,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    pub(crate) fn set(&self, key: &str, value: Value) {
        let old = self.entries.borrow_mut().insert(Rc::from(key), value);
        drop(old);
    }
}

// A template can nest values far deeper than the stack; dropping them level by level must not recurse.

impl Drop for MapObj {
    fn drop(&mut self) {
        drop_all(std::mem::take(self.entries.get_mut()).into_values());
    }
}

impl Drop for List {
    fn drop(&mut self) {
        drop_all(std::mem::take(&mut self.0).into_iter());
    }
}

fn drop_all(values: impl Iterator<Item = Value>) {
    let is_container = |value: &Value| matches!(value, Value::List(_) | Value::Map(_));
    let mut pending: Vec<Value> = values.filter(is_container).collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::Map(map) => {
                if let Ok(mut map) = Rc::try_unwrap(map) {
                    pending.extend(
                        std::mem::take(map.entries.get_mut())
                            .into_values()
                            .filter(is_container),
                    );
                }
            }
            Value::List(list) => {
                if let Ok(mut list) = Rc::try_unwrap(list) {
                    pending.extend(std::mem::take(&mut list.0).into_iter().filter(is_container));
                }
            }
            _ => {}
        }
    }
}
