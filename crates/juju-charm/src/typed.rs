//! Config, action parameters, results and databags as the charm's own types, by serde.
//!
//! A struct says what is read: one field per option or parameter, renamed to Juju's names with
//! `#[serde(rename_all = "kebab-case")]`. Whether the struct and `charmcraft.yaml` agree is asked by
//! `Metadata::config_disagreements` and `Metadata::action_disagreements`, in a test.
//!
//! Invariant: an integer is an integer however Juju wrote it, `5` or `5.0`; nothing else is
//! converted.

mod check;
mod shape;

use std::fmt;

use juju_hooks::{Databag, check_results, flatten_results};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess, Visitor,
};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use crate::action::ActionOutcome;
use crate::problem::Problem;
use crate::view::{ActionCall, Config};

/// A value that does not fit the charm's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedError {
    /// The option, parameter or key, if it is one's fault.
    pub key: Option<String>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for TypedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for TypedError {}

impl de::Error for TypedError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self {
            key: None,
            reason: message.to_string(),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            key: Some(field.to_owned()),
            reason: "not set".to_owned(),
        }
    }
}

impl TypedError {
    /// The problem to show for a config option of `app`: a person has to set it.
    pub fn config_problem(&self, app: &str) -> Problem {
        let problem = Problem::blocked(format!("option {self}"));
        match &self.key {
            Some(key) => problem.with_hint(format!("juju config {app} {key}=VALUE")),
            None => problem,
        }
    }
}

impl Config {
    /// The options as a struct of the charm's. Options that are not set count as missing: their
    /// fields are `Option`s or have a `#[serde(default)]`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TypedError> {
        T::deserialize(Texts(self.values().clone()))
    }
}

impl ActionCall {
    /// The parameters as a struct of the charm's.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TypedError> {
        T::deserialize(Texts(self.params.clone()))
    }
}

impl ActionOutcome {
    /// Success, with a value's fields as results; nested ones are joined by dots.
    pub fn of(results: &impl Serialize) -> Result<Self, TypedError> {
        let value = serde_json::to_value(results).map_err(de::Error::custom)?;
        let results = flatten_results(&value);
        check_results(&results).map_err(de::Error::custom)?;
        Ok(Self::ok(results))
    }
}

/// A databag whose values are JSON, as a struct; the convention of `ops`' typed relation data.
/// Keys Juju itself writes into unit databags are no JSON and are left out.
pub fn read_databag<T: DeserializeOwned>(data: &Databag) -> Result<T, TypedError> {
    let read = |(key, text): (&String, &String)| {
        let value = serde_json::from_str(text).ok()?;
        Some((key.clone(), value))
    };
    T::deserialize(Texts(data.iter().filter_map(read).collect()))
}

/// A struct as a databag whose values are JSON. What is `None` deletes its key.
pub fn write_databag(data: &impl Serialize) -> Result<Databag, TypedError> {
    let value = serde_json::to_value(data).map_err(de::Error::custom)?;
    let Value::Object(fields) = value else {
        return Err(de::Error::custom("a databag is made of a struct or a map"));
    };
    let text = |value: Value| match value {
        Value::Null => String::new(),
        value => value.to_string(),
    };
    Ok(fields.into_iter().map(|(k, v)| (k, text(v))).collect())
}

/// A map of JSON values that names the key that is at fault.
struct Texts(Map<String, Value>);

impl<'de> Deserializer<'de> for Texts {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_map(Entries {
            rest: self.0.into_iter(),
            current: None,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

struct Entries {
    rest: serde_json::map::IntoIter,
    current: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TypedError> {
        self.current = self.rest.next();
        let Some((key, _)) = &self.current else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, TypedError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, TypedError> {
        let (key, value) = self.current.take().unwrap_or_default();
        let given = value.clone();
        seed.deserialize(whole(value)).map_err(|error| TypedError {
            reason: format!("{given} does not fit: {error}"),
            key: Some(key),
        })
    }
}

/// A number without fraction as an integer, which reads as a float as well.
fn whole(value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Some(float) = value.as_f64().filter(|_| value.is_f64()) else {
        return value;
    };
    if float.fract() == 0.0 && float.abs() <= EXACT {
        serde_json::from_str(&format!("{float:.0}")).unwrap_or(value)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, Serialize)]
    #[serde(rename_all = "kebab-case")]
    struct Settings {
        host_name: Option<String>,
        port: u16,
        ratio: f64,
        #[serde(default)]
        loud: bool,
    }

    fn config(value: Value) -> Config {
        serde_json::from_value(value).map(Config::new).unwrap()
    }

    #[test]
    fn options_become_a_struct_however_juju_writes_numbers() {
        let read = |value| config(value).read::<Settings>();
        let expect = Settings {
            host_name: None,
            port: 80,
            ratio: 5.0,
            loud: false,
        };
        assert_eq!(read(json!({"port": 80.0, "ratio": 5})), Ok(expect));
        let named = read(json!({"port": 1, "ratio": 0.5, "host-name": "", "later": 1})).unwrap();
        assert_eq!(named.host_name.as_deref(), Some(""));
    }

    #[test]
    fn the_option_at_fault_is_named_with_its_cure() {
        let check = |value: Value, expect: &str| {
            let error = config(value).read::<Settings>().unwrap_err();
            assert_eq!(error.config_problem("meshy").to_string(), expect);
        };
        check(
            json!({"ratio": 1}),
            "option port: not set; run: juju config meshy port=VALUE",
        );
        check(
            json!({"port": 70_000, "ratio": 1}),
            "option port: 70000 does not fit: invalid value: integer `70000`, expected u16; \
             run: juju config meshy port=VALUE",
        );
        check(
            json!({"port": 1.5, "ratio": 1}),
            "option port: 1.5 does not fit: invalid type: floating point `1.5`, expected u16; \
             run: juju config meshy port=VALUE",
        );
    }

    #[test]
    fn a_struct_becomes_the_results_of_an_action() {
        let answer = ActionOutcome::of(&json!({"total": 3, "by": {"web": "2"}})).unwrap();
        let expect = [("by.web", "2"), ("total", "3")];
        let expect = expect.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(answer.results, BTreeMap::from(expect));
    }

    #[test]
    fn a_struct_and_a_databag_of_json_are_the_same() {
        let settings = Settings {
            host_name: Some("a: b".to_owned()),
            port: 1,
            ratio: 0.5,
            loud: true,
        };
        let mut bag = write_databag(&settings).unwrap();
        assert_eq!(
            (bag["host-name"].as_str(), bag["port"].as_str()),
            ("\"a: b\"", "1")
        );
        bag.insert("ingress-address".to_owned(), "10.1.2.3".to_owned());
        assert_eq!(read_databag::<Settings>(&bag), Ok(settings));
        let error = read_databag::<Settings>(&Databag::new()).unwrap_err();
        assert_eq!(error.to_string(), "port: not set");
    }
}
