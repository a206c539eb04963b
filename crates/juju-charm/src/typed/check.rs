//! Whether a struct and `charmcraft.yaml` agree.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::shape::{Field, Wanted, fields};
use super::{Texts, TypedError};
use crate::metadata::{Metadata, OptionKind, ParamKind};

/// What is declared about one option or parameter.
struct Declared<'a> {
    /// What may read it; `None` if the declaration names no type.
    fits: Option<&'static [Wanted]>,
    default: Option<&'a Value>,
    required: bool,
}

impl Metadata {
    /// Where the struct `T` and the declared config options disagree: fields and options without
    /// each other, other types, options that may be unset for fields that need a value, defaults
    /// that do not fit. Empty if they agree; what a test of the charm asserts.
    pub fn config_disagreements<T: DeserializeOwned>(&self) -> Vec<String> {
        let options = self.options.iter().map(|(name, option)| {
            let declared = Declared {
                fits: option.kind.map(|kind| match kind {
                    OptionKind::String | OptionKind::Secret => &[Wanted::Text][..],
                    OptionKind::Int => &[Wanted::Integer, Wanted::Float],
                    OptionKind::Float => &[Wanted::Float],
                    OptionKind::Boolean => &[Wanted::Boolean],
                }),
                default: option.default.as_ref(),
                required: false,
            };
            (name.as_str(), declared)
        });
        disagreements::<T>("option", &options.collect())
    }

    /// As [`Self::config_disagreements`], for the parameters of an action.
    pub fn action_disagreements<T: DeserializeOwned>(&self, action: &str) -> Vec<String> {
        let Some(spec) = self.actions.get(action) else {
            return vec![format!("action {action} is not declared")];
        };
        let params = spec.params.iter().map(|(name, param)| {
            let declared = Declared {
                fits: param.kind.map(|kind| match kind {
                    ParamKind::String => &[Wanted::Text][..],
                    ParamKind::Integer => &[Wanted::Integer, Wanted::Float],
                    ParamKind::Number => &[Wanted::Float],
                    ParamKind::Boolean => &[Wanted::Boolean],
                    ParamKind::Array => &[Wanted::List],
                    ParamKind::Object => &[Wanted::Map],
                }),
                default: param.default.as_ref(),
                required: spec.required.contains(name),
            };
            (name.as_str(), declared)
        });
        disagreements::<T>("parameter", &params.collect())
    }
}

fn disagreements<T: DeserializeOwned>(
    what: &str,
    declared: &BTreeMap<&str, Declared<'_>>,
) -> Vec<String> {
    let Some(fields) = fields::<T>() else {
        return vec!["the type is no struct with named fields".to_owned()];
    };
    let mut wrong = Vec::new();
    for name in declared.keys() {
        if !fields.iter().any(|field| field.name == *name) {
            wrong.push(format!("{what} {name} has no field"));
        }
    }
    for field in &fields {
        let name = field.name;
        let Some(known) = declared.get(name) else {
            wrong.push(format!("field {name} is no declared {what}"));
            continue;
        };
        match known.fits {
            None => wrong.push(format!("{what} {name} has no type")),
            Some(fits) if field.wanted != Wanted::Anything && !fits.contains(&field.wanted) => {
                wrong.push(format!(
                    "{what} {name} is declared otherwise than its field, which reads {:?}",
                    field.wanted
                ));
            }
            Some(_) => {}
        }
        let given = known.required || known.default.is_some_and(|value| !value.is_null());
        if !given && !field.optional && is_needed::<T>(&fields, name) {
            wrong.push(format!("{what} {name} may be unset, its field may not"));
        }
        if let Some(default) = known.default.filter(|value| !value.is_null())
            && let Err(error) = with::<T>(&fields, name, default)
            && error.key.as_deref() == Some(name)
        {
            wrong.push(format!("the default of {what} {error}"));
        }
    }
    wrong
}

/// Whether a value for the field must be there: no `#[serde(default)]` stands in for it.
fn is_needed<T: DeserializeOwned>(fields: &[Field], name: &str) -> bool {
    let mut values = samples(fields);
    values.remove(name);
    let missing = T::deserialize(Texts(values)).err();
    missing.is_some_and(|error| error.key.as_deref() == Some(name))
}

fn with<T: DeserializeOwned>(fields: &[Field], name: &str, value: &Value) -> Result<T, TypedError> {
    let mut values = samples(fields);
    values.insert(name.to_owned(), value.clone());
    T::deserialize(Texts(values))
}

/// A value of its kind for each field that needs one. A type with a grammar of its own may refuse
/// its sample; then nothing can be said about the others, and nothing is.
fn samples(fields: &[Field]) -> Map<String, Value> {
    let sample = |field: &Field| (field.name.to_owned(), sample(field));
    fields
        .iter()
        .filter(|field| !field.optional)
        .map(sample)
        .collect()
}

fn sample(field: &Field) -> Value {
    match field.wanted {
        Wanted::Anything => Value::Null,
        Wanted::Text => Value::from(field.variant.unwrap_or("x")),
        Wanted::Integer | Wanted::Float => Value::from(1),
        Wanted::Boolean => Value::from(true),
        Wanted::List => Value::Array(Vec::new()),
        Wanted::Map => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Loud,
        Quiet,
    }

    #[expect(dead_code, reason = "its shape is what is tested")]
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    struct Settings {
        host_name: Option<String>,
        count: u32,
        ratio: f64,
        #[serde(default)]
        flag: bool,
        mode: Mode,
        token: Option<juju_hooks::SecretId>,
    }

    const AGREES: &str = "\
name: meshy
config:
  options:
    host-name: {type: string}
    count: {type: int, default: 3}
    ratio: {type: float, default: 1}
    flag: {type: boolean}
    mode: {type: string, default: loud}
    token: {type: secret}
actions:
  grow:
    params:
      by: {type: integer}
      names: {type: array, default: []}
    required: [by]
";

    fn check(change: (&str, &str), expect: &[&str]) {
        let metadata = Metadata::parse(&AGREES.replace(change.0, change.1)).unwrap();
        assert_eq!(
            metadata.config_disagreements::<Settings>(),
            expect,
            "{change:?}"
        );
    }

    #[test]
    fn a_struct_that_agrees_is_told_nothing() {
        check(("", ""), &[]);
    }

    #[test]
    fn each_way_to_disagree_is_told() {
        check(
            ("    flag: {type: boolean}\n", ""),
            &["field flag is no declared option"],
        );
        check(
            ("    token:", "    more: {type: string}\n    token:"),
            &["option more has no field"],
        );
        check(
            ("flag: {type: boolean}", "flag: {type: string}"),
            &["option flag is declared otherwise than its field, which reads Boolean"],
        );
        check(
            ("count: {type: int,", "count: {type: float,"),
            &["option count is declared otherwise than its field, which reads Integer"],
        );
        check(
            ("{type: int, default: 3}", "{type: int}"),
            &["option count may be unset, its field may not"],
        );
        check(("{type: boolean}", "{}"), &["option flag has no type"]);
        check(
            ("default: 3", "default: -3"),
            &[
                "the default of option count: -3 does not fit: invalid value: integer `-3`, \
                 expected u32",
            ],
        );
        check(
            ("default: loud", "default: silent"),
            &["the default of option mode: the text does not fit: expected one of loud, quiet"],
        );
    }

    #[test]
    fn parameters_of_an_action_are_held_to_the_same() {
        #[expect(dead_code, reason = "its shape is what is tested")]
        #[derive(Deserialize)]
        struct Grow {
            by: i64,
            names: Vec<String>,
        }
        #[expect(dead_code, reason = "its shape is what is tested")]
        #[derive(Deserialize)]
        struct Shrink {
            by: String,
        }
        let metadata = Metadata::parse(AGREES).unwrap();
        let none: [&str; 0] = [];
        assert_eq!(metadata.action_disagreements::<Grow>("grow"), none);
        assert_eq!(
            metadata.action_disagreements::<Shrink>("grow"),
            [
                "parameter names has no field",
                "parameter by is declared otherwise than its field, which reads Text",
            ]
        );
        assert_eq!(
            metadata.action_disagreements::<Grow>("shrink"),
            ["action shrink is not declared"]
        );
        assert_eq!(
            metadata.action_disagreements::<Vec<String>>("grow"),
            ["the type is no struct with named fields"]
        );
    }
}
