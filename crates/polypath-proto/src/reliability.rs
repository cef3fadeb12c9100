//! Partial reliability: when to abandon a message (RFC 3758, RFC 7496).

use std::time::Duration;

/// When a message is abandoned. This applies if both sides offer partial reliability; otherwise all
/// messages are reliable.
///
/// An abandoned message is reported by [`Event::SendFailed`](crate::Event::SendFailed), and the
/// peer skips it. If a part of it has been sent, the peer may still have received it: its
/// acknowledgement may have been lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// Never (SCTP_PR_SCTP_NONE).
    #[default]
    Reliable,
    /// Neither sent nor retransmitted after this time (SCTP_PR_SCTP_TTL; RFC 3758 4.1, timed
    /// reliability).
    Lifetime(Duration),
    /// Maximum number of retransmissions of each chunk; 0 is like UDP (SCTP_PR_SCTP_RTX; RFC 7496
    /// 3.1).
    Retransmissions(u32),
    /// Abandoned in favour of a message with a smaller number if the send buffer has no room for
    /// both; a smaller number is a higher priority (SCTP_PR_SCTP_PRIO; RFC 7496 3.2).
    Priority(u32),
}

/// Numbers of abandoned messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedCounts {
    /// Abandoned before any part was sent (sprstat_abandoned_unsent).
    pub unsent: u64,
    /// Abandoned after a part or all was sent (sprstat_abandoned_sent).
    pub sent: u64,
}

/// Numbers of abandoned messages by [`Reliability`] (RFC 7496 4.3, 4.4: SCTP_PR_STREAM_STATUS,
/// SCTP_PR_ASSOC_STATUS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Messages with a lifetime.
    pub lifetime: AbandonedCounts,
    /// Messages with a limit on retransmissions.
    pub retransmissions: AbandonedCounts,
    /// Messages with a priority.
    pub priority: AbandonedCounts,
}

impl Abandoned {
    /// The sum over all policies (SCTP_PR_SCTP_ALL).
    pub const fn total(&self) -> AbandonedCounts {
        let (a, b, c) = (self.lifetime, self.retransmissions, self.priority);
        AbandonedCounts { unsent: a.unsent + b.unsent + c.unsent, sent: a.sent + b.sent + c.sent }
    }
}
