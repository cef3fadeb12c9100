//! `[workload]`: the data that the applications of an association send, and how they read it.

use std::fmt;
use std::str::FromStr;

use polypath_proto::Delivery;
use serde::{Deserialize, Serialize};

use super::error::Problem;
use super::key::Key;
use crate::units::{Probability, Rate, Size, Span};

/// Kind of workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// `size` bytes, as fast as possible.
    #[default]
    Bulk,
    /// `messages` messages, one each `interval`.
    Periodic,
    /// `messages` requests and their replies; the next request follows a reply after `interval`.
    RequestReply,
    /// As `application` decides, an application of one's own.
    Application,
}

/// A direction of a path, a link or an association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the sender to the receiver (of a link: from the first end to the second).
    Forward,
    /// From the receiver to the sender.
    Back,
    /// Both directions.
    #[default]
    Both,
}

impl Direction {
    /// Whether the forward direction is included.
    pub const fn is_forward(self) -> bool {
        matches!(self, Self::Forward | Self::Both)
    }

    /// Whether the direction back is included.
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
    /// Messages of this size only.
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

/// How the messages of an application are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliverySpec {
    /// As the scheduler decides.
    Standard,
    /// On the path that delivers first.
    Earliest,
    /// The same, in several copies.
    Redundant,
}

impl From<DeliverySpec> for Delivery {
    fn from(spec: DeliverySpec) -> Self {
        match spec {
            DeliverySpec::Standard => Self::Standard,
            DeliverySpec::Earliest => Self::Earliest,
            DeliverySpec::Redundant => Self::Redundant,
        }
    }
}

/// `[workload]`: the data that the applications of an association send, and how they read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Kind of workload; "bulk" by default.
    pub kind: WorkloadKind,
    /// Directions of data: "forward" (default), "back" or "both". Requests are sent forward,
    /// replies back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// bulk: bytes to send in each direction that is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// periodic, request-reply: messages or requests to send. bulk: messages to send, in place of
    /// `size`.
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
    /// application: name of an application that the program that runs the scenario provides
    /// ([`RunOptions::applications`](crate::RunOptions)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// Number of streams to send on, in turn; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u16>,
    /// Share of messages that are sent unordered; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unordered: Option<Probability>,
    /// How each message is sent: "standard", "earliest" or "redundant"; as the association's
    /// `delivery` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliverySpec>,
    /// Messages are abandoned after this time, if both sides have `partial_reliability` (RFC 3758
    /// 4.1). The alternatives are `retransmissions` and `priorities`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Span>,
    /// Messages are abandoned rather than retransmitted more often than this (RFC 7496 3.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmissions: Option<u32>,
    /// Number of priorities. Each message has a random one, and may be abandoned in favour of more
    /// important messages (RFC 7496 3.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<u32>,
    /// Share of messages that may be abandoned; the others are reliable. All by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreliable: Option<Probability>,
    /// Time at which the association is opened; the beginning of the run by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Span>,
    /// bulk: use one association per path in place of one over all paths, and send the next message
    /// over any association that has room for it (AppStripe; Iyengar 2004, III).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub striped: Option<bool>,
    /// Rate at which the receiving application reads; at once by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<Rate>,
    /// Number of messages after which a sending application requests a reset; never by default.
    /// Needs `stream_reconfiguration`. A request that is refused because another one is in progress
    /// is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_every: Option<u32>,
    /// Streams to reset; "outgoing" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
}

/// Reset that an application requests (RFC 6525).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reset {
    /// The application's outgoing streams.
    #[default]
    Outgoing,
    /// The peer's outgoing streams.
    Incoming,
    /// All streams of both sides.
    Both,
    /// All streams of both sides, and the TSNs.
    Association,
}

impl Workload {
    /// A transfer of `size` bytes from the sender to the receiver.
    pub fn bulk(size: Size) -> Self {
        Self { size: Some(size), ..Self::default() }
    }

    /// Messages from the sender to the receiver as the application of this name decides.
    pub fn application(name: impl Into<String>) -> Self {
        let application = Some(name.into());
        Self { kind: WorkloadKind::Application, application, ..Self::default() }
    }

    /// Directions that carry messages.
    pub fn direction(&self) -> Direction {
        match self.kind {
            WorkloadKind::RequestReply => Direction::Both,
            _ => self.direction.unwrap_or(Direction::Forward),
        }
    }

    /// Whether it is striped over associations of one path each.
    pub fn is_striped(&self) -> bool {
        self.striped == Some(true)
    }

    pub(crate) fn check(&self, at: &Key) -> Result<(), Problem> {
        let problem = |field: &str, text: String| Err(Problem::new(at.field(field), text));
        let kind = match self.kind {
            WorkloadKind::Bulk => "bulk",
            WorkloadKind::Periodic => "periodic",
            WorkloadKind::RequestReply => "request-reply",
            WorkloadKind::Application => "application",
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
            WorkloadKind::Application => {
                if self.application.is_none() {
                    return missing("application");
                }
                if let Some(field) = self.decided_by_application() {
                    return foreign(field);
                }
            }
        }
        if self.kind != WorkloadKind::Application && self.application.is_some() {
            return foreign("application");
        }
        if self.kind == WorkloadKind::Periodic && self.interval.is_none_or(|i| i == Span(0)) {
            return problem("interval", format!("kind \"{kind}\" needs one above 0 s"));
        }
        if self.kind != WorkloadKind::Bulk && self.striped.is_some() {
            return foreign("striped");
        }
        if self.kind == WorkloadKind::RequestReply && self.direction.is_some() {
            return foreign("direction");
        }
        if self.kind != WorkloadKind::RequestReply && self.reply_size.is_some() {
            return foreign("reply_size");
        }
        self.check_reliability(at)?;
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

impl Workload {
    /// A field that is set although an application decides about it.
    fn decided_by_application(&self) -> Option<&'static str> {
        let fields = [
            ("size", self.size.is_some()),
            ("messages", self.messages.is_some()),
            ("message_size", self.message_size.is_some()),
            ("interval", self.interval.is_some()),
            ("streams", self.streams.is_some()),
            ("unordered", self.unordered.is_some()),
            ("lifetime", self.lifetime.is_some()),
            ("retransmissions", self.retransmissions.is_some()),
            ("priorities", self.priorities.is_some()),
        ];
        fields.into_iter().find(|(_, set)| *set).map(|(name, _)| name)
    }

    fn check_reliability(&self, at: &Key) -> Result<(), Problem> {
        let problem = |field: &str, text: &str| Err(Problem::new(at.field(field), text.to_owned()));
        let limits = [
            ("lifetime", self.lifetime.is_some()),
            ("retransmissions", self.retransmissions.is_some()),
            ("priorities", self.priorities.is_some()),
        ];
        let mut given = limits.into_iter().filter(|(_, given)| *given).map(|(name, _)| name);
        match (given.next(), given.next()) {
            (Some(_), Some(other)) => {
                return problem(other, "allowed: one of lifetime, retransmissions and priorities");
            }
            (Some(name), None) if self.kind == WorkloadKind::RequestReply => {
                return problem(
                    name,
                    "a request that is given up has no reply; allowed: bulk, periodic",
                );
            }
            (Some(name), None) if self.is_striped() => {
                return problem(
                    name,
                    "a striped transfer lasts until everything has arrived; not with striped",
                );
            }
            (None, _) if self.unreliable.is_some() => {
                return problem("unreliable", "needs lifetime, retransmissions or priorities");
            }
            _ => {}
        }
        if self.priorities == Some(0) {
            return problem("priorities", "found 0; allowed: at least 1");
        }
        Ok(())
    }
}
