//! A range of times.

use std::fmt;
use std::str::FromStr;

use super::quantity::Span;
use super::{UnitError, serde_as_text};

/// A range of times: "5 ms .. 20 ms", or a single time: "10 ms".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRange {
    /// The shortest time.
    pub min: Span,
    /// The longest time.
    pub max: Span,
}

impl FromStr for SpanRange {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let range = match text.split_once("..") {
            Some((min, max)) => min.parse().and_then(|min| Ok(Self { min, max: max.parse()? })),
            None => text.parse().map(|span| Self { min: span, max: span }),
        };
        range.ok().filter(|range| range.min <= range.max).ok_or_else(|| UnitError {
            text: text.to_owned(),
            what: "a range of times",
            allowed: "\"5 ms .. 20 ms\", or one time such as \"10 ms\"",
        })
    }
}

impl fmt::Display for SpanRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            self.min.fmt(f)
        } else {
            write!(f, "{} .. {}", self.min, self.max)
        }
    }
}

serde_as_text!(SpanRange, "a range of times such as \"5 ms .. 20 ms\", or one time");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for text in ["5 ms .. 20 ms", "10 ms"] {
            assert_eq!(text.parse::<SpanRange>().unwrap().to_string(), text);
        }
        for wrong in ["20 ms .. 5 ms", "5 .. 20 ms", "", ".."] {
            assert!(wrong.parse::<SpanRange>().is_err(), "{wrong}");
        }
    }
}
