//! What a link is like.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::LossModel;
use crate::units::{Probability, QueueLimit, Rate, Span};

/// A one-directional link, as it is at the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// Bits per second of whole packets, IP header included; `None` transmits in no time.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What may wait for transmission.
    pub queue: QueueLimit,
    /// Largest packet in bytes, IP header included; larger ones are dropped.
    pub mtu: Option<u32>,
    /// From so many waiting packets on, one that knows ECN is marked with congestion experienced
    /// (RFC 3168); never if `None`.
    pub mark_at: Option<u32>,
    /// Which packets are lost. Decided before the queue, as ns-2's error model before a link:
    /// a lost packet takes no room there.
    pub loss: LossModel,
    /// Which packets are overtaken by later ones.
    pub reorder: Option<Reordering>,
    /// Probability that a packet arrives twice. The copy comes into being at the far end: it takes
    /// none of the rate.
    pub duplicate: Probability,
    /// Probability that one bit of the SCTP packet arrives inverted.
    pub corrupt: Probability,
}

/// Some packets take longer, so that later ones overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability that a packet is held up.
    pub probability: Probability,
    /// Longest hold-up; the actual one is uniform from 0 to this.
    pub delay: Span,
}
