//! `[[fault]]`: links break, heal and change at given times.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::workload::Direction;
use crate::link::LossModel;
use crate::units::{Rate, Size, Span};

/// What happens to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// It breaks; what is queued and on the wire is lost.
    Down,
    /// It works again.
    Up,
    /// Its rate changes.
    Rate,
    /// Its propagation delay changes.
    Delay,
    /// Its loss changes.
    Loss,
    /// Its MTU changes.
    Mtu,
}

/// A path by its number, counted from 0, or by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathRef {
    /// The n-th path of the scenario.
    Index(usize),
    /// The path of this name.
    Name(String),
}

impl fmt::Display for PathRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Serialize for PathRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Index(index) => serializer.serialize_u64(*index as u64),
            Self::Name(name) => serializer.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for PathRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl Visitor<'_> for Forms {
            type Value = PathRef;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a path, counted from 0, or its name")
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<PathRef, E> {
                let index = usize::try_from(number);
                index
                    .map(PathRef::Index)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
            }
            fn visit_str<E>(self, name: &str) -> Result<PathRef, E> {
                Ok(PathRef::Name(name.to_owned()))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

/// `[[fault]]`: something that happens to a link at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When, from the beginning of the run.
    pub at: Span,
    /// How long; then the link is again as the scenario describes it. Without it: for good.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// The path whose (middle) link it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathRef>,
    /// The link of the general graph, by its name or as "a->b" for one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Which direction; both by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// What happens.
    pub kind: FaultKind,
    /// kind "rate": the new rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// kind "delay": the new propagation delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// kind "loss": the new loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<LossModel>,
    /// kind "mtu": the new MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
}

impl Fault {
    /// Something happens to the n-th path at a time, in both directions and for good.
    fn new(path: usize, at: Span, kind: FaultKind) -> Self {
        Self {
            at,
            lasts: None,
            path: Some(PathRef::Index(path)),
            link: None,
            direction: None,
            kind,
            rate: None,
            delay: None,
            loss: None,
            mtu: None,
        }
    }

    /// The n-th path breaks.
    pub fn down(path: usize, at: Span) -> Self {
        Self::new(path, at, FaultKind::Down)
    }

    /// The n-th path gets another rate.
    pub fn rate(path: usize, at: Span, rate: Rate) -> Self {
        Self { rate: Some(rate), ..Self::new(path, at, FaultKind::Rate) }
    }

    /// The n-th path gets another delay.
    pub fn delay(path: usize, at: Span, delay: Span) -> Self {
        Self { delay: Some(delay), ..Self::new(path, at, FaultKind::Delay) }
    }

    /// The n-th path loses packets in another way.
    pub fn loss(path: usize, at: Span, loss: LossModel) -> Self {
        Self { loss: Some(loss), ..Self::new(path, at, FaultKind::Loss) }
    }

    /// The n-th path gets another MTU.
    pub fn mtu(path: usize, at: Span, mtu: Size) -> Self {
        Self { mtu: Some(mtu), ..Self::new(path, at, FaultKind::Mtu) }
    }

    /// For a while only.
    #[must_use]
    pub fn lasting(mut self, span: Span) -> Self {
        self.lasts = Some(span);
        self
    }

    /// In this direction only.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = Some(direction);
        self
    }
}
