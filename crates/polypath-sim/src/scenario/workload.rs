//! `[workload]` and `[[association]]`: who sends what to whom.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Key;
use super::error::Problem;
use crate::units::{Probability, Rate, Size, Span};

/// What the applications do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// As many bytes as fast as possible: `size`.
    #[default]
    Bulk,
    /// A message each `interval`: `messages` of them.
    Periodic,
    /// A request, its reply, the next request: `messages` requests, `interval` after each reply.
    RequestReply,
}

/// A direction of a path, a link or an association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the sender to the receiver (of a link: from the first end to the second).
    Forward,
    /// The other way.
    Back,
    /// Both ways.
    #[default]
    Both,
}

impl Direction {
    /// Forward is included.
    pub const fn is_forward(self) -> bool {
        matches!(self, Self::Forward | Self::Both)
    }

    /// Back is included.
    pub const fn is_back(self) -> bool {
        matches!(self, Self::Back | Self::Both)
    }
}

/// Sizes of messages: all the same ("1452 B") or uniform in a range ("1 B .. 200 kB").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest, in bytes.
    pub min: Size,
    /// The largest, in bytes.
    pub max: Size,
}

impl SizeRange {
    /// Always this size.
    pub const fn fixed(size: Size) -> Self {
        Self { min: size, max: size }
    }
}

impl FromStr for SizeRange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let one = |text: &str| text.parse::<Size>().map_err(|error| error.to_string());
        let range = match text.split_once("..") {
            Some((min, max)) => Self { min: one(min)?, max: one(max)? },
            None => Self::fixed(one(text)?),
        };
        if range.min.0 == 0 || range.min > range.max {
            return Err(format!(
                "\"{text}\" is not a size of messages; allowed: a size from 1 B, such as \
                 \"1452 B\", or a range such as \"1 B .. 200 kB\""
            ));
        }
        Ok(range)
    }
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            return self.min.fmt(f);
        }
        write!(f, "{} .. {}", self.min, self.max)
    }
}

impl Serialize for SizeRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SizeRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `[workload]`: what the applications of an association send and how they read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// What they do; "bulk" by default.
    pub kind: WorkloadKind,
    /// Who sends: "forward" (default), "back" or "both". Requests go forward, replies back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// bulk: bytes to send in each direction that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// periodic, request-reply: messages or requests to send. bulk: in place of `size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Size of a message, or of a request; "1452 B" by default, which fills a packet of 1500 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_size: Option<SizeRange>,
    /// request-reply: size of a reply; that of a request by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_size: Option<SizeRange>,
    /// periodic: time between messages. request-reply: time from a reply to the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Streams to send on, one after the other; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u16>,
    /// Share of messages that are sent unordered; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unordered: Option<Probability>,
    /// When the association is opened; at once by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Span>,
    /// A slow reader: the receiving application reads at this rate; at once by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<Rate>,
    /// After so many messages, a sending application asks for a reset; never by default. Needs
    /// `stream_reconfiguration`; what is refused, since another request is in progress, is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_every: Option<u32>,
    /// What is reset; "outgoing" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
}

/// What an application asks to be reset (RFC 6525).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reset {
    /// Its own streams.
    #[default]
    Outgoing,
    /// The peer's streams.
    Incoming,
    /// All streams of both.
    Both,
    /// All numbers of the association, TSNs too.
    Association,
}

impl Workload {
    /// `size` bytes from the sender to the receiver.
    pub fn bulk(size: Size) -> Self {
        Self { size: Some(size), ..Self::default() }
    }

    /// Which directions carry messages.
    pub fn direction(&self) -> Direction {
        match self.kind {
            WorkloadKind::RequestReply => Direction::Both,
            _ => self.direction.unwrap_or(Direction::Forward),
        }
    }

    pub(crate) fn check(&self, at: &Key) -> Result<(), Problem> {
        let problem = |field: &str, text: String| Err(Problem::new(at.field(field), text));
        let kind = match self.kind {
            WorkloadKind::Bulk => "bulk",
            WorkloadKind::Periodic => "periodic",
            WorkloadKind::RequestReply => "request-reply",
        };
        let foreign = |field| problem(field, format!("does not belong to kind \"{kind}\""));
        let missing = |field| problem(field, format!("missing; kind \"{kind}\" needs it"));
        match self.kind {
            WorkloadKind::Bulk => {
                match (self.size, self.messages) {
                    (Some(_), Some(_)) => {
                        return problem("messages", "allowed: either this or size".to_owned());
                    }
                    (None, None) => return missing("size"),
                    (Some(Size(0)), None) => {
                        return problem("size", "found 0 B; allowed: at least 1 B".to_owned());
                    }
                    _ => {}
                }
                if self.interval.is_some() {
                    return foreign("interval");
                }
            }
            WorkloadKind::Periodic | WorkloadKind::RequestReply => {
                if self.size.is_some() {
                    return foreign("size");
                }
                if self.messages.is_none() {
                    return missing("messages");
                }
            }
        }
        if self.kind == WorkloadKind::Periodic && self.interval.is_none_or(|i| i == Span(0)) {
            return problem("interval", format!("kind \"{kind}\" needs one above 0 s"));
        }
        if self.kind == WorkloadKind::RequestReply && self.direction.is_some() {
            return foreign("direction");
        }
        if self.kind != WorkloadKind::RequestReply && self.reply_size.is_some() {
            return foreign("reply_size");
        }
        if self.messages == Some(0) {
            return problem("messages", "found 0; allowed: at least 1".to_owned());
        }
        if self.streams == Some(0) {
            return problem("streams", "found 0; allowed: from 1 to 65535".to_owned());
        }
        if self.reset_every == Some(0) {
            return problem("reset_every", "found 0; allowed: at least 1".to_owned());
        }
        if self.reset.is_some() && self.reset_every.is_none() {
            return problem("reset", "needs reset_every".to_owned());
        }
        if self.read_rate == Some(Rate(0)) {
            return problem("read_rate", "found 0 bit/s; allowed: above 0".to_owned());
        }
        Ok(())
    }
}

/// `[[association]]`: one of several associations. A scenario without any has one, from the first
/// host to the second, with `[workload]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssociationSpec {
    /// Its name; "association0", ... by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The host that opens it.
    pub from: String,
    /// The host that accepts it.
    pub to: String,
    /// SCTP port on both sides; 5001 by default. Two hosts need another one for each association
    /// between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What it carries.
    pub workload: Workload,
}
