//! One value of Juju's, read with errors that do not repeat texts.

use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Number, Value};

use super::{Entries, Texts, TypedError};

/// As `serde_json` reads a value, but for numbers without fraction, which are integers.
pub(super) struct Given(pub(super) Value);

impl IntoDeserializer<'_, TypedError> for Given {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Given {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(yes) => visitor.visit_bool(yes),
            Value::Number(number) => visit(&number, visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                let mut items = SeqDeserializer::new(items.into_iter().map(Given));
                let value = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(value)
            }
            Value::Object(fields) => Texts(fields).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(Self(value)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        match self.0 {
            Value::String(text) => {
                StringDeserializer::new(text).deserialize_enum(name, variants, visitor)
            }
            Value::Object(fields) => MapAccessDeserializer::new(Entries::new(fields))
                .deserialize_enum(name, variants, visitor),
            other => Self(other).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A number without fraction is visited as an integer, which reads as a float as well.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked: no fraction, inside 2^53"
)]
fn visit<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, TypedError> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(whole) = number.as_u64() {
        return visitor.visit_u64(whole);
    }
    if let Some(whole) = number.as_i64() {
        return visitor.visit_i64(whole);
    }
    match number.as_f64().unwrap_or_default() {
        float if float.fract() != 0.0 || float.abs() > EXACT => visitor.visit_f64(float),
        float => visitor.visit_i64(float as i64),
    }
}
