//! Probabilities and loads, written in percent.

use std::fmt;
use std::str::FromStr;

use super::UnitError;

macro_rules! share {
    ($(#[$doc:meta])* $name:ident, $reader:ident, up to $most:literal, $what:literal, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// The share, if it is in range.
            pub fn new(share: f64) -> Option<Self> {
                (0.0..=$most).contains(&share).then_some(Self(share))
            }

            /// `n` percent, but at most the upper bound.
            pub fn percent(n: u8) -> Self {
                Self((f64::from(n) / 100.0).min($most))
            }

            /// The share as a number.
            pub const fn get(self) -> f64 {
                self.0
            }
        }

        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let number = match text.trim().strip_suffix('%') {
                    Some(percent) => percent.trim_end().parse::<f64>().map(|p| p / 100.0),
                    None => text.trim().parse::<f64>(),
                };
                number.ok().and_then(Self::new).ok_or_else(|| UnitError {
                    text: text.to_owned(),
                    what: $what,
                    allowed: $allowed,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // The shortest percentage that gives the same number back, or else the number
                // itself.
                let percent = self.0 * 100.0;
                let shortest = (0..=12)
                    .map(|digits| format!("{percent:.digits$}"))
                    .find(|text| text.parse::<f64>().is_ok_and(|p| p / 100.0 == self.0));
                match shortest {
                    Some(text) => write!(f, "{text} %"),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any($reader)
            }
        }

        /// Deserializes both notations.
        pub(crate) struct $reader;

        impl serde::de::Visitor<'_> for $reader {
            type Value = $name;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($allowed)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$name, E> {
                $name::new(number).ok_or_else(|| {
                    E::custom(UnitError { text: number.to_string(), what: $what, allowed: $allowed })
                })
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$name, E> {
                self.visit_f64(number as f64)
            }
        }
    };
}

share!(
    /// A probability from 0 to 1, written "8 %" or as a plain number such as 0.08.
    Probability, Reader, up to 1.0,
    "a probability", "\"0 %\" to \"100 %\", or a number from 0 to 1"
);

share!(
    /// A load as a share of a link's rate, from 0 to 2, written "80 %" or as a plain number.
    Load, LoadReader, up to 2.0,
    "a load", "\"0 %\" to \"200 %\", or a number from 0 to 2"
);

impl Probability {
    /// Probability 0.
    pub const ZERO: Self = Self(0.0);
    /// Probability 1.
    pub const ONE: Self = Self(1.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_and_back() {
        assert_eq!("8 %".parse::<Probability>().unwrap().get(), 0.08);
        assert_eq!("0.08".parse::<Probability>().unwrap().get(), 0.08);
        assert!("101 %".parse::<Probability>().is_err());
        assert!("nan".parse::<Probability>().is_err());
        assert!("-1".parse::<Probability>().is_err());
        assert_eq!("110 %".parse::<Load>().unwrap().get(), 1.1);
        assert!("201 %".parse::<Load>().is_err());
        for n in 0..=1000 {
            let p = Probability(f64::from(n) / 1000.0);
            assert_eq!(p.to_string().parse::<Probability>().unwrap(), p);
            let p = Probability(1.0 / f64::from(n + 1));
            assert_eq!(p.to_string().parse::<Probability>().unwrap(), p);
        }
        assert_eq!(Probability::percent(7).to_string(), "7 %");
        assert_eq!(Probability(0.125).to_string(), "12.5 %");
    }
}
