//! How long a message is worth sending: partial reliability (RFC 3758, RFC 7496).

use std::time::Duration;

/// When a message is given up. Heeded if both sides offered partial reliability; else everything is
/// reliable.
///
/// A message that was given up is reported by [`Event::SendFailed`](crate::Event::SendFailed), and the
/// peer goes on behind it. Where a part of it has been sent, the peer may have it nevertheless: its
/// acknowledgement may have been lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reliability {
    /// Never (SCTP_PR_SCTP_NONE).
    #[default]
    Reliable,
    /// It is not sent, or sent again, after so much time (SCTP_PR_SCTP_TTL; RFC 3758 4.1, timed
    /// reliability).
    Lifetime(Duration),
    /// None of its chunks is sent again more often than this; 0 is as UDP (SCTP_PR_SCTP_RTX;
    /// RFC 7496 3.1).
    Retransmissions(u32),
    /// It gives way to a message of a smaller number where the send buffer has no room for both; a
    /// smaller number is a higher priority (SCTP_PR_SCTP_PRIO; RFC 7496 3.2).
    Priority(u32),
}

/// Messages that were given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedCounts {
    /// Before anything of them was sent (sprstat_abandoned_unsent).
    pub unsent: u64,
    /// When a part of them or all had been sent (sprstat_abandoned_sent).
    pub sent: u64,
}

/// Messages that were given up, by their [`Reliability`] (RFC 7496 4.3, 4.4: SCTP_PR_STREAM_STATUS,
/// SCTP_PR_ASSOC_STATUS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Those with a lifetime.
    pub lifetime: AbandonedCounts,
    /// Those with a limit of retransmissions.
    pub retransmissions: AbandonedCounts,
    /// Those with a priority.
    pub priority: AbandonedCounts,
}

impl Abandoned {
    /// All together (SCTP_PR_SCTP_ALL).
    pub const fn total(&self) -> AbandonedCounts {
        let (a, b, c) = (self.lifetime, self.retransmissions, self.priority);
        AbandonedCounts { unsent: a.unsent + b.unsent + c.unsent, sent: a.sent + b.sent + c.sent }
    }
}
