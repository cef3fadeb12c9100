//! Quantities with units, as scenario files write them: "10 Mbit/s", "45 ms", "64 KiB", "8 %".
//!
//! Each type parses with [`FromStr`](std::str::FromStr) and prints with
//! [`Display`](std::fmt::Display) to a text that parses to the same value.

mod probability;
mod quantity;
mod queue_limit;
mod span_range;

pub(crate) use probability::Reader as ProbabilityReader;
pub use probability::{Load, Probability};
pub use quantity::{Rate, Size, Span};
pub use queue_limit::QueueLimit;
pub use span_range::SpanRange;

use thiserror::Error;

/// A text that is not the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{text}\" is not {what}; allowed: {allowed}")]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// The expected quantity, with its article.
    pub what: &'static str,
    /// Notation of such a quantity.
    pub allowed: &'static str,
}

/// Serializes as text and deserializes with `FromStr`.
macro_rules! serde_as_text {
    ($name:ident, $what:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;
