//! Configuration of a link.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::loss::LossModel;
use super::rate_trace::RateTrace;
use crate::units::{Probability, QueueLimit, Rate, Size, Span};

/// Initial configuration of a one-directional link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Bits per second of whole packets, IP header included; `None` transmits in no time.
    pub rate: Option<Rate>,
    /// Recorded times of transmission, instead of a rate.
    pub trace: Option<RateTrace>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Limit of the transmission queue.
    pub queue: QueueLimit,
    /// Largest packet in bytes, IP header included; larger ones are dropped.
    pub mtu: Option<u32>,
    /// Queue length in packets from which ECN-capable packets are marked with congestion
    /// experienced (RFC 3168); `None` never marks.
    pub mark_at: Option<u32>,
    /// Token bucket that drops packets beyond its rate instead of delaying them. It applies before
    /// the queue and after the loss model.
    pub policer: Option<Policer>,
    /// Loss model. It applies before the queue, as ns-2's error model before a link: a lost packet
    /// takes no room in the queue.
    pub loss: LossModel,
    /// Random extra delay, which reorders packets.
    pub reorder: Option<Reordering>,
    /// Probability that a packet arrives twice. The copy is made at the far end: it takes none of
    /// the rate.
    pub duplicate: Probability,
    /// Probability that one bit of the SCTP packet arrives inverted.
    pub corrupt: Probability,
}

/// A token bucket: a packet passes if the bucket holds as many bytes as the packet has, and takes
/// them out; otherwise it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Rate at which the bucket fills, of whole packets.
    pub rate: Rate,
    /// Size of the bucket, which is full at first.
    pub burst: Size,
}

/// Delays some packets, so that later ones overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability that a packet is delayed.
    pub probability: Probability,
    /// Longest extra delay; the actual one is uniform from 0 to this.
    pub delay: Span,
}
