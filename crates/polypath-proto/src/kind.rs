//! The types of parameters, with units and ranges, and their values in text.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::auth::ChunkTypes;
use crate::quantity::{SIZE, TIME, size, time};

/// The type of a parameter, with its unit and its range.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A span of time.
    Time(RangeInclusive<Duration>),
    /// A number of bytes.
    Bytes(RangeInclusive<u64>),
    /// A whole number without a unit.
    Count(RangeInclusive<u64>),
    /// A number without a unit.
    Real(RangeInclusive<f64>),
    /// True or false.
    Flag,
    /// One of these names.
    Choice(&'static [&'static str]),
    /// A set of chunk types.
    ChunkTypes,
    /// A policy of a [`Registry`](crate::Registry): its name, with values for its parameters where
    /// they differ from the defaults, such as `aimd:increase=2,decrease=0.5`.
    Policy,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a parameter that is switched off.
    Off,
    /// Of [`Kind::Time`].
    Time(Duration),
    /// Of [`Kind::Bytes`] and [`Kind::Count`].
    Number(u64),
    /// Of [`Kind::Real`].
    Real(f64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Choice`], [`Kind::ChunkTypes`] and [`Kind::Policy`].
    Name(String),
}

impl Kind {
    /// The allowed values: "from 0 ns to 24 h". Empty for policies, which a registry lists.
    pub fn allowed(&self) -> String {
        match self {
            Self::Time(range) => format!("from {} to {}", time(*range.start()), time(*range.end())),
            Self::Bytes(range) => {
                format!("from {} to {}", size(*range.start()), size(*range.end()))
            }
            Self::Count(range) => format!("from {} to {}", range.start(), range.end()),
            Self::Real(range) => format!("from {} to {}", range.start(), range.end()),
            Self::Flag => "true or false".to_owned(),
            Self::ChunkTypes => {
                "chunk types that can be authenticated, separated by commas, such as \
                 data,cookie-echo, or none"
                    .to_owned()
            }
            Self::Choice(names) => names.join(", "),
            Self::Policy => String::new(),
        }
    }

    /// How to write a value that has a unit.
    pub(crate) const fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Time(_) => Some(TIME.notation),
            Self::Bytes(_) => Some(SIZE.notation),
            _ => None,
        }
    }

    /// The names of a choice; empty for other kinds.
    pub(crate) const fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Choice(names) => names,
            _ => &[],
        }
    }

    /// The value that `text` denotes, in range or not; `None` if it is of another type. Bytes may
    /// be without a unit. The text of a policy is not checked.
    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        let name = || Value::Name(text.to_owned());
        match self {
            Self::Time(_) => TIME.read(text).map(|n| Value::Time(Duration::from_nanos(n))),
            Self::Bytes(_) => text.parse().ok().or_else(|| SIZE.read(text)).map(Value::Number),
            Self::Count(_) => text.parse().ok().map(Value::Number),
            Self::Real(_) => {
                text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Real)
            }
            Self::Flag => text.parse().ok().map(Value::Flag),
            Self::ChunkTypes => text.parse::<ChunkTypes>().ok().map(|_| name()),
            Self::Choice(names) => names.contains(&text).then(name),
            Self::Policy => Some(name()),
        }
    }

    /// A value in text, as it is read.
    pub fn write(&self, value: &Value) -> String {
        match value {
            Value::Off => "off".to_owned(),
            Value::Time(span) => time(*span),
            Value::Number(bytes) if matches!(self, Self::Bytes(_)) => size(*bytes),
            Value::Number(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Name(name) => name.clone(),
        }
    }

    /// Whether a value of this kind is in range.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Time(range), Value::Time(time)) => range.contains(time),
            (Self::Bytes(range) | Self::Count(range), Value::Number(n)) => range.contains(n),
            (Self::Real(range), Value::Real(n)) => range.contains(n),
            _ => true,
        }
    }
}
