//! How fields are written: defaults are left out, and seeds may be strings.

/// Whether a field has its default, which is not written.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Serializes seeds, which have 64 bits; TOML's integers have 63.
pub(super) mod seed {
    use std::fmt;

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(*seed) {
            Ok(seed) => serializer.serialize_i64(seed),
            Err(_) => serializer.collect_str(&format_args!("{seed:#x}")),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        struct Forms;
        impl serde::de::Visitor<'_> for Forms {
            type Value = u64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer from 0, or a string such as \"0x1f\"")
            }
            fn visit_u64<E>(self, seed: u64) -> Result<u64, E> {
                Ok(seed)
            }
            fn visit_i64<E: serde::de::Error>(self, seed: i64) -> Result<u64, E> {
                u64::try_from(seed)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(seed), &self))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
                let hex = text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                hex.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}
