//! `[run]`, `[series]` and `[emulator]`: limits, checks, samples, real addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// How often the invariants are checked. They are checked at the end in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEvery {
    /// After this number of events (at least 1).
    Events(u64),
    /// Only at the end.
    End,
}

impl Default for CheckEvery {
    fn default() -> Self {
        Self::Events(10_000)
    }
}

impl FromStr for CheckEvery {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let events = match text.trim() {
            "end" => return Ok(Self::End),
            "event" => Some(1),
            text => text.strip_suffix("events").and_then(|n| n.trim().parse().ok()),
        };
        events.filter(|&n| n > 0).map(Self::Events).ok_or_else(|| {
            format!("\"{text}\" is not known; allowed: \"event\", \"1000 events\" or \"end\"")
        })
    }
}

impl fmt::Display for CheckEvery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Events(1) => f.write_str("event"),
            Self::Events(n) => write!(f, "{n} events"),
            Self::End => f.write_str("end"),
        }
    }
}

impl Serialize for CheckEvery {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CheckEvery {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `[run]`: limits of the run, and its checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Simulated time at which the run ends in any case; "24 h" by default.
    pub limit: Span,
    /// Events after which the run ends in any case; 10^10 by default.
    pub max_events: u64,
    /// Invariants are checked after each "event", after every "10000 events" (default), or at the
    /// "end".
    pub check_every: CheckEvery,
    /// Compare every byte received with what was sent; true by default. Otherwise only counts,
    /// sizes and order are checked.
    pub check_content: bool,
    /// Compute the CRC32c of every packet, and verify it; true by default. Both are left out in any
    /// case where nothing can show it: if there is no capture and no link corrupts packets.
    pub check_checksums: bool,
    /// A gap between newly delivered data at least this long is listed as a blackout; "1 s" by
    /// default.
    pub blackout: Span,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            limit: Span::secs(24 * 3600),
            max_events: 10_000_000_000,
            check_every: CheckEvery::default(),
            check_content: true,
            check_checksums: true,
            blackout: Span::secs(1),
        }
    }
}

/// `[series]`: samples of every path's variables over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Series {
    /// Time between samples; without it, a sample is taken at every change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// `[emulator]`: addresses and ports of paths between real UDP sockets.
///
/// For each path the emulator is placed between a sender at `senders[n]` and a receiver at
/// `receivers[n]`: the sender sends to `receivers[n]:front_port`, and the receiver, listening on
/// `receiver_port`, sees its peer at `senders[n]:back_port`. So the IP addresses are real, and only
/// the UDP encapsulation ports differ, which an RFC 6951 endpoint learns per path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmulatorSpec {
    /// The sender's address of each path; 127.0.n.1 for path n, counted from 1, by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<IpAddr>,
    /// The receiver's address of each path; 127.0.n.2 for path n, counted from 1, by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<IpAddr>,
    /// UDP port on the receiver's addresses to which the sender sends; 0 lets the system choose.
    pub front_port: u16,
    /// UDP port on the sender's addresses that the receiver sees; 0 lets the system choose.
    pub back_port: u16,
    /// UDP port on which the receiver listens.
    pub receiver_port: u16,
}

impl Default for EmulatorSpec {
    fn default() -> Self {
        Self {
            senders: Vec::new(),
            receivers: Vec::new(),
            front_port: 9900,
            back_port: 9901,
            receiver_port: 9899,
        }
    }
}
