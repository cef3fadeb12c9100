//! `[[fault]]`: links break, recover and change at given times.

use std::fmt;
use std::net::IpAddr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::workload::Direction;
use crate::link::LossModel;
use crate::units::{Rate, Size, Span};

/// Kind of change of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The link breaks; packets queued and on the wire are lost.
    Down,
    /// The link works again.
    Up,
    /// The rate changes.
    Rate,
    /// The propagation delay changes.
    Delay,
    /// The loss model changes.
    Loss,
    /// The MTU changes.
    Mtu,
    /// The link's NAT loses its mappings.
    NatReset,
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

/// `[[fault]]`: a change of a link at a given time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Time of the change, from the beginning of the run.
    pub at: Span,
    /// Duration, after which the link is again as the scenario describes it. Without it, the change
    /// is permanent.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// The path whose middle link changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathRef>,
    /// The link of the general graph that changes, by its name or as "a->b" for one direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Direction that changes; both by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Kind of the change.
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
    /// kind "nat-reset": the NAT's new external address; it keeps the old one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

impl Fault {
    /// A permanent change of the n-th path in both directions.
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
            address: None,
        }
    }

    /// Takes the n-th path down.
    pub fn down(path: usize, at: Span) -> Self {
        Self::new(path, at, FaultKind::Down)
    }

    /// Changes the rate of the n-th path.
    pub fn rate(path: usize, at: Span, rate: Rate) -> Self {
        Self { rate: Some(rate), ..Self::new(path, at, FaultKind::Rate) }
    }

    /// Changes the propagation delay of the n-th path.
    pub fn delay(path: usize, at: Span, delay: Span) -> Self {
        Self { delay: Some(delay), ..Self::new(path, at, FaultKind::Delay) }
    }

    /// Changes the loss model of the n-th path.
    pub fn loss(path: usize, at: Span, loss: LossModel) -> Self {
        Self { loss: Some(loss), ..Self::new(path, at, FaultKind::Loss) }
    }

    /// Changes the MTU of the n-th path.
    pub fn mtu(path: usize, at: Span, mtu: Size) -> Self {
        Self { mtu: Some(mtu), ..Self::new(path, at, FaultKind::Mtu) }
    }

    /// The NAT of the n-th path loses its mappings.
    pub fn nat_reset(path: usize, at: Span) -> Self {
        Self::new(path, at, FaultKind::NatReset)
    }

    /// Limits the change to this duration.
    #[must_use]
    pub fn lasting(mut self, span: Span) -> Self {
        self.lasts = Some(span);
        self
    }

    /// Limits the change to this direction.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> Self {
        self.direction = Some(direction);
        self
    }
}
