//! Config, action parameters, results and databags as the charm's own types, by serde.
//!
//! A struct says what is read: one field per option or parameter, renamed to Juju's names with
//! `#[serde(rename_all = "kebab-case")]`. Whether the struct and `charmcraft.yaml` agree is asked by
//! `Metadata::config_disagreements` and `Metadata::action_disagreements`, in a test.
//!
//! Invariant: an integer is an integer however Juju wrote it, `5` or `5.0`; nothing else is
//! converted. A text that does not fit is in no error: it may be a secret in the wrong place, and
//! statuses and logs are read by many.

mod check;
mod given;
mod shape;

use std::fmt;

use juju_hooks::{Databag, check_results, flatten_results};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer as _, MapAccess,
    Unexpected, Visitor,
};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use self::given::Given;
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

    fn invalid_type(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match given {
            Unexpected::Str(_) => Self::custom(format_args!("expected {expected}")),
            given => Self::custom(format_args!("invalid type: {given}, expected {expected}")),
        }
    }

    fn invalid_value(given: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match given {
            Unexpected::Str(_) => Self::custom(format_args!("expected {expected}")),
            given => Self::custom(format_args!("invalid value: {given}, expected {expected}")),
        }
    }

    fn unknown_variant(_given: &str, expected: &'static [&'static str]) -> Self {
        match expected {
            [] => Self::custom("there is no value for it"),
            [one] => Self::custom(format_args!("expected {one}")),
            several => Self::custom(format_args!("expected one of {}", several.join(", "))),
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

/// What Juju itself writes into unit databags, not as JSON.
const JUJUS_KEYS: [&str; 3] = ["egress-subnets", "ingress-address", "private-address"];

/// A databag whose values are JSON, as a struct; the convention of `ops`' typed relation data.
/// Keys Juju itself writes into unit databags are left out; any other value that is no JSON is an
/// error, whether or not the struct has its key.
pub fn read_databag<T: DeserializeOwned>(data: &Databag) -> Result<T, TypedError> {
    let own = data
        .iter()
        .filter(|(key, _)| !JUJUS_KEYS.contains(&key.as_str()));
    let read = |(key, text): (&String, &String)| {
        let value = serde_json::from_str(text).map_err(|error| TypedError {
            key: Some(key.clone()),
            reason: format!("no JSON: {error}"),
        })?;
        Ok((key.clone(), value))
    };
    let values: Result<_, TypedError> = own.map(read).collect();
    T::deserialize(Texts(values?))
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
        visitor.visit_map(Entries::new(self.0))
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

impl Entries {
    fn new(fields: Map<String, Value>) -> Self {
        Self {
            rest: fields.into_iter(),
            current: None,
        }
    }
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
        let given = match &value {
            Value::String(_) => "the text".to_owned(),
            Value::Array(_) => "the list".to_owned(),
            Value::Object(_) => "the map".to_owned(),
            plain => plain.to_string(),
        };
        seed.deserialize(Given(value)).map_err(|error| TypedError {
            reason: format!("{given} does not fit: {error}"),
            key: Some(key),
        })
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
        check(
            json!({"port": "hunter2", "ratio": 1}),
            "option port: the text does not fit: expected u16; \
             run: juju config meshy port=VALUE",
        );
    }

    #[test]
    fn a_text_that_does_not_fit_is_not_repeated() {
        #[derive(Debug, PartialEq, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            Plain,
            Sized(u8),
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Inner {
            port: u16,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Params {
            kind: Option<Kind>,
            letter: Option<char>,
            list: Option<Vec<f64>>,
            inner: Option<Inner>,
        }
        let read = |params: Value| {
            let name = "set".to_owned();
            let params = params.as_object().cloned().unwrap();
            ActionCall { name, params }.read::<Params>()
        };
        let check = |params: Value, expect: &str| {
            assert_eq!(read(params).unwrap_err().to_string(), expect);
        };
        check(
            json!({"kind": "hunter2"}),
            "kind: the text does not fit: expected one of plain, sized",
        );
        check(
            json!({"letter": "hunter2"}),
            "letter: the text does not fit: expected a character",
        );
        check(
            json!({"list": [1, "hunter2"]}),
            "list: the list does not fit: expected f64",
        );
        check(
            json!({"inner": {"port": "hunter2"}}),
            "inner: the map does not fit: port: the text does not fit: expected u16",
        );
        let all = read(json!({
            "kind": {"sized": 3.0}, "letter": "x", "list": [1, 2.5], "inner": {"port": 80.0},
        }));
        let expect = Params {
            kind: Some(Kind::Sized(3)),
            letter: Some('x'),
            list: Some(vec![1.0, 2.5]),
            inner: Some(Inner { port: 80 }),
        };
        assert_eq!(all, Ok(expect));
        let plain = read(json!({"kind": "plain", "letter": null})).unwrap();
        assert_eq!((plain.kind, plain.letter), (Some(Kind::Plain), None));
    }

    #[test]
    fn a_value_in_a_databag_that_is_no_json_is_reported_with_its_key() {
        let check = |key: &str, expect: Result<BTreeMap<String, Value>, &str>| {
            let bag = Databag::from([(key.to_owned(), "10.1.2.3".to_owned())]);
            let read = read_databag(&bag).map_err(|error| error.to_string());
            assert_eq!(read, expect.map_err(str::to_owned));
        };
        check(
            "host",
            Err("host: no JSON: trailing characters at line 1 column 5"),
        );
        for key in JUJUS_KEYS {
            check(key, Ok(BTreeMap::new()));
        }
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
