//! A serde deserializer over TOML values that tracks its position: its errors carry the full key,
//! including that of an unknown or missing field.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Value;

use super::error::{Problem, allowed};
use super::key::{Key, Segment};

/// An error, with its key relative to the value being read.
#[derive(Debug)]
pub(super) struct Error {
    key: Key,
    text: String,
}

impl Error {
    fn new(text: String) -> Self {
        Self { key: Key::root(), text }
    }

    fn under(self, segment: Segment) -> Self {
        Self { key: self.key.under(segment), text: self.text }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::new(error.key, error.text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(text.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("found {found}; allowed: {}", in_words(&expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let text = format!("no such key{}", allowed(field, expected.iter().copied()));
        Self { key: Key::root().field(field), text }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let known = allowed(variant, expected.iter().copied());
        Self::new(format!("\"{variant}\" is not known{known}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self { key: Key::root().field(field), text: "missing".to_owned() }
    }
}

/// Replaces serde's names of Rust types with words for users.
fn in_words(expected: &str) -> &str {
    match expected {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer from 0",
        "a boolean" => "true or false",
        _ => expected.strip_prefix("struct ").map_or(expected, |_| "a table"),
    }
}

/// A value to deserialize.
pub(super) struct Reader(pub(super) Value);

impl<'de> Deserializer<'de> for Reader {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_string(text),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f64(number),
            Value::Boolean(value) => visitor.visit_bool(value),
            // No key takes a date: the visitor's error lists the allowed types.
            Value::Datetime(date) => visitor.visit_string(date.to_string()),
            Value::Array(values) => {
                visitor.visit_seq(Elements { values: values.into_iter(), index: 0 })
            }
            Value::Table(table) => {
                visitor.visit_map(Entries { entries: table.into_iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(name) => {
                let name: StringDeserializer<Error> = name.into_deserializer();
                visitor.visit_enum(name)
            }
            other => Err(Error::new(format!(
                "found {}; allowed: {}",
                other.type_str(),
                variants.join(", ")
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Elements {
    values: std::vec::IntoIter<Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = Error;
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.values.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader(value)).map(Some).map_err(|e| e.under(Segment::Index(index)))
    }
}

struct Entries {
    entries: toml::map::IntoIter<String, Value>,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some((key.clone(), value));
        let key: StringDeserializer<Error> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((key, value)) = self.value.take() else {
            return Err(Error::new("a value was asked for before its key".to_owned()));
        };
        seed.deserialize(Reader(value)).map_err(|e| e.under(Segment::Field(key)))
    }
}
