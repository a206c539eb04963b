//! What a struct wants to be read from, found out by letting it read.
//!
//! Serde tells a deserializer the names of a struct's fields, and each field tells which kind of
//! value it asks for. A value that only listens learns both without a macro of ours.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess, Visitor,
};
use serde::{Deserializer, forward_to_deserialize_any};

use super::TypedError;

/// What a field asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Whatever there is.
    #[default]
    Anything,
    Text,
    Integer,
    Float,
    Boolean,
    List,
    Map,
}

/// One field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) wanted: Wanted,
    /// An `Option`.
    pub(super) optional: bool,
    /// One of the names an enum reads.
    pub(super) variant: Option<&'static str>,
}

/// The fields of a struct; `None` for what is no plain struct.
pub(super) fn fields<T: DeserializeOwned>() -> Option<Vec<Field>> {
    let names = RefCell::new(None);
    // The answer is an error in any case: nothing is there to be read.
    drop(T::deserialize(Names(&names)));
    let names: &[&str] = names.into_inner()?;
    Some(names.iter().map(|name| field::<T>(name)).collect())
}

fn field<T: DeserializeOwned>(name: &'static str) -> Field {
    let heard = RefCell::new(Field {
        name,
        wanted: Wanted::Anything,
        optional: false,
        variant: None,
    });
    drop(T::deserialize(One(&heard)));
    heard.into_inner()
}

fn heard() -> TypedError {
    de::Error::custom("only listening")
}

/// Listens for the names of the fields.
struct Names<'a>(&'a RefCell<Option<&'static [&'static str]>>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, TypedError> {
        Err(heard())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, TypedError> {
        *self.0.borrow_mut() = Some(fields);
        Err(heard())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A struct with one field, which listens.
struct One<'a>(&'a RefCell<Field>);

impl<'de> Deserializer<'de> for One<'_> {
    type Error = TypedError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        visitor.visit_map(OneEntry {
            field: self.0,
            given: false,
        })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct OneEntry<'a> {
    field: &'a RefCell<Field>,
    given: bool,
}

impl<'de> MapAccess<'de> for OneEntry<'_> {
    type Error = TypedError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, TypedError> {
        if std::mem::replace(&mut self.given, true) {
            return Ok(None);
        }
        let name: StrDeserializer<'_, TypedError> = self.field.borrow().name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, TypedError> {
        seed.deserialize(Listens(self.field))
    }
}

/// A value that notes what it is asked for.
struct Listens<'a>(&'a RefCell<Field>);

macro_rules! notes {
    ($($method:ident => $wanted:ident),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, TypedError> {
            self.0.borrow_mut().wanted = Wanted::$wanted;
            Err(heard())
        })*
    };
}

impl<'de> Deserializer<'de> for Listens<'_> {
    type Error = TypedError;

    notes! {
        deserialize_any => Anything, deserialize_ignored_any => Anything,
        deserialize_bool => Boolean,
        deserialize_i8 => Integer, deserialize_i16 => Integer, deserialize_i32 => Integer,
        deserialize_i64 => Integer, deserialize_i128 => Integer,
        deserialize_u8 => Integer, deserialize_u16 => Integer, deserialize_u32 => Integer,
        deserialize_u64 => Integer, deserialize_u128 => Integer,
        deserialize_f32 => Float, deserialize_f64 => Float,
        deserialize_char => Text, deserialize_str => Text, deserialize_string => Text,
        deserialize_identifier => Text, deserialize_bytes => Text, deserialize_byte_buf => Text,
        deserialize_seq => List, deserialize_map => Map, deserialize_unit => Anything,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypedError> {
        self.0.borrow_mut().optional = true;
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, v: V) -> Result<V::Value, TypedError> {
        self.deserialize_seq(v)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.deserialize_map(visitor)
    }

    /// Only variants without data are read from an option, and those are texts.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypedError> {
        self.0.borrow_mut().variant = variants.first().copied();
        self.deserialize_str(visitor)
    }
}
