//! Explicit congestion notification (RFC 4960 Appendix A, RFC 3168). Packets with new data are
//! ECN-capable; an ECNE after each SACK echoes a mark until a CWR answers it; the window of the
//! marked packet's path is reduced once per round trip, as after a loss. Each path is validated
//! (path/ecn.rs).

use super::Sender;
use crate::ids::{PathId, Tsn};
use crate::policy::congestion::Congestion;
use crate::wire::PacketWriter;

/// State of the marks of the peer's packets.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The lowest TSN of the last marked packet; echoed until a CWR answers.
    echo: Option<Tsn>,
    /// The peer has answered an echo.
    answered: bool,
}

impl Marks {
    /// Whether DATA may follow an ECNE. usrsctp and FreeBSD expect four bytes more than RFC 4960
    /// defines, and drop what follows it in the packet: the SACK precedes it, and DATA uses other
    /// packets until a CWR shows that the peer has read an ECNE.
    pub(super) const fn may_precede_data(&self) -> bool {
        self.answered
    }

    /// Echoes a mark from now on; `lowest` is the lowest TSN of the marked packet's data.
    pub(super) const fn note(&mut self, lowest: Tsn) {
        self.echo = Some(lowest);
    }

    /// Writes an ECNE after each SACK until a CWR answers; true if it was written. If it does not
    /// fit, the next SACK carries it.
    pub(super) fn write_ecne(&self, w: &mut PacketWriter<'_>) -> bool {
        self.echo.is_some_and(|tsn| w.ecne(tsn).is_ok())
    }

    pub(super) fn handle_cwr(&mut self, lowest: Tsn) {
        self.answered |= self.echo.is_some();
        self.echo = self.echo.filter(|echo| echo.is_after(lowest));
    }
}

impl Sender<'_> {
    /// Processes an ECNE: a packet of this side was marked.
    pub(super) fn handle_ecne(&mut self, path: PathId, lowest: Tsn) {
        let flight = &self.sending.flight;
        if lowest.is_after(flight.highest()) {
            // The TSN was never sent.
            self.stats.dropped += 1;
            return;
        }
        // The path of a chunk that has been acknowledged meanwhile is unknown: assume the current
        // one.
        let marked = flight.get(lowest).map_or_else(|| self.paths.current(), |chunk| chunk.path);
        // The highest TSN on this path: below what CMT sends ahead, there are TSNs that are sent
        // later.
        let highest = self.paths[marked].highest_sent().unwrap_or_else(|| flight.highest());
        let p = &mut self.paths[marked];
        let round_trip = p.srtt().unwrap_or_default();
        if p.marks.is_to_be_answered(lowest, self.now, round_trip) {
            self.outbox.push_cwr(path, lowest);
        }
        if self.paths[marked].marks.notified(lowest, highest) {
            self.cut_window(self.now, marked, Congestion::Ecn);
            let p = &mut self.paths[marked];
            p.recovery.clear_undo();
            p.stats.congestion_notified += 1;
        }
    }
}
