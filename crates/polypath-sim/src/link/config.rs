//! Configuration of a link.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::loss::LossModel;
use super::middlebox::Middlebox;
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
    /// Random early detection before the queue; `None` drops packets only when it is full.
    pub red: Option<Red>,
    /// CoDel in place of a drop-tail queue; `None` drops packets only when the queue is full.
    pub codel: Option<Codel>,
    /// Token bucket that drops packets beyond its rate instead of delaying them. It applies before
    /// the queue and after the loss model.
    pub policer: Option<Policer>,
    /// Middlebox in front of the link, which sees the packets before the policer and the queue.
    pub middlebox: Option<Middlebox>,
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

/// Random early detection: a queue that has been long on average drops or marks some packets before
/// it is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average length in packets from which some are marked, or dropped if they must not be marked.
    pub min: u32,
    /// Average length from which some are dropped; all are from twice this length.
    pub max: u32,
    /// The paper's probability p_b at `max`; 10 % by default, as in ns-2. The gaps between chosen
    /// packets are uniform from 1 to 1/p_b, so that about 2 p_b of all packets are chosen.
    #[serde(default = "Red::default_probability")]
    pub probability: Probability,
    /// Weight of a packet in the average; 0.002 by default, as in the paper.
    #[serde(default = "Red::default_weight")]
    pub weight: f64,
}

impl Red {
    fn default_probability() -> Probability {
        Probability::percent(10)
    }

    const fn default_weight() -> f64 {
        0.002
    }
}

/// CoDel (RFC 8289), or with several flows FQ-CoDel (RFC 8290): the queue drops or marks packets
/// once all of them have waited for too long for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Codel {
    /// Time that packets may wait; 5 ms by default.
    pub target: Span,
    /// For how long all packets may wait longer than that; 100 ms by default.
    pub interval: Span,
    /// Number of queues, over which flows are spread, and which take turns; 1 by default, a single
    /// queue for all packets. RFC 8290 has 1024.
    pub flows: u32,
    /// Bytes that a queue sends in its turn; 1514 by default.
    pub quantum: u32,
}

impl Codel {
    /// Default limit of the queue (RFC 8290 5.2.3).
    pub(crate) const LIMIT: QueueLimit = QueueLimit::Packets(10_240);
}

impl Default for Codel {
    fn default() -> Self {
        Self { target: Span::millis(5), interval: Span::millis(100), flows: 1, quantum: 1514 }
    }
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
