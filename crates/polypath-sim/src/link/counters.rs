//! Counters of a link.

use serde::{Deserialize, Serialize};

/// Counters of one link, in packets; those whose names end in `_bytes` count bytes with IP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Packets that the node in front of the link offered.
    pub offered: u64,
    /// Bytes of the offered packets.
    pub offered_bytes: u64,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Packets that arrived, copies included.
    pub delivered: u64,
    /// Bytes of the delivered packets.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full or had been long, or the policer's bucket empty.
    pub dropped_queue: u64,
    /// Packets dropped because they were larger than the MTU.
    pub dropped_mtu: u64,
    /// Packets that a middlebox did not let pass.
    #[serde(default)]
    pub dropped_middlebox: u64,
    /// Packets lost by the loss model.
    pub lost: u64,
    /// Packets lost because the link was down, or went down while they were on it.
    pub lost_outage: u64,
    /// Packets queued or on the wire now, copies included.
    pub in_flight: u64,
    /// Packets that were delayed so that later ones could overtake them.
    pub reordered: u64,
    /// Packets that arrived or will arrive with an inverted bit.
    pub corrupted: u64,
}

impl LinkCounters {
    /// Adds the change from `before` to `after`.
    pub(super) const fn add_change(&mut self, before: &Self, after: &Self) {
        macro_rules! add {
            ($($field:ident)*) => { $( self.$field = self.$field + after.$field - before.$field; )* };
        }
        add!(offered offered_bytes duplicated delivered delivered_bytes dropped_queue dropped_mtu);
        add!(dropped_middlebox lost lost_outage in_flight reordered corrupted);
    }

    /// Checks that every packet that was offered or copied is accounted for.
    ///
    /// # Errors
    /// Both sides of the account, in words.
    pub fn check(&self) -> Result<(), String> {
        let entered = self.offered + self.duplicated;
        let accounted = self.delivered
            + self.dropped_queue
            + self.dropped_mtu
            + self.dropped_middlebox
            + self.lost
            + self.lost_outage
            + self.in_flight;
        if entered == accounted {
            return Ok(());
        }
        Err(format!(
            "{entered} packets went in or were copied, but {accounted} are accounted for: {self:?}"
        ))
    }
}
