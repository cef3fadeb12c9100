//! Explicit congestion notification (RFC 4960 Appendix A, RFC 3168). Packets with new data are
//! ECN-capable; an ECNE after each SACK echoes a mark until a CWR answers it; the window of the
//! marked packet's path is reduced once per round trip, as after a loss.

use super::Association;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::policy::congestion::Congestion;
use crate::transmit::Ecn;
use crate::wire::PacketWriter;

/// State of the marks in both directions.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The lowest TSN of the last marked packet; echoed until a CWR answers.
    echo: Option<Tsn>,
    /// The peer has answered an echo.
    answered: bool,
    /// For each path, the highest TSN sent when its window was last reduced.
    reduced: Vec<Option<Tsn>>,
}

impl Marks {
    /// Whether DATA may follow an ECNE. usrsctp and FreeBSD expect four bytes more than RFC 4960
    /// defines, and drop what follows it in the packet: the SACK precedes it, and DATA uses other
    /// packets until a CWR shows that the peer has read an ECNE.
    pub(super) const fn may_precede_data(&self) -> bool {
        self.answered
    }
}

impl Association {
    /// ECN codepoint of a packet with new data.
    pub(super) fn ect(&self) -> Ecn {
        if self.handshake.has(Extension::Ecn) { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// ECN codepoint of the packet just written for `path`: ECN-capable if new data was added to
    /// the `new_chunks` chunks sent there before.
    pub(super) fn ect_beyond(&self, path: PathId, new_chunks: u64) -> Ecn {
        let sent = self.paths[path].stats.data_chunks_sent;
        if sent == new_chunks { Ecn::NotEct } else { self.ect() }
    }

    /// Notes that a packet was marked; `lowest` is the lowest TSN of its data.
    #[cold]
    pub(super) fn note_mark(&mut self, path: PathId, lowest: Tsn) {
        if self.handshake.has(Extension::Ecn) {
            self.paths[path].stats.congestion_experienced += 1;
            self.marks.echo = Some(lowest);
            // Report it to the sender soon.
            self.receiving.ack.demand();
        }
    }

    /// Writes an ECNE after each SACK until a CWR answers; true if it was written. If it does not
    /// fit, the next SACK carries it.
    pub(super) fn write_ecne(&self, w: &mut PacketWriter<'_>) -> bool {
        self.marks.echo.is_some_and(|tsn| w.ecne(tsn).is_ok())
    }

    pub(super) fn handle_cwr(&mut self, lowest: Tsn) {
        self.marks.answered |= self.marks.echo.is_some();
        self.marks.echo = self.marks.echo.filter(|echo| echo.is_after(lowest));
    }

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
        self.marks.reduced.resize(self.paths.len(), None);
        let reduced = &mut self.marks.reduced[marked.index()];
        // The highest TSN on this path: below what CMT sends ahead, there are TSNs that are sent
        // later.
        let highest = self.paths[marked].highest_sent().unwrap_or_else(|| flight.highest());
        if reduced.is_none_or(|last| lowest.is_after(last)) {
            *reduced = Some(highest);
            self.cut_window(self.now, marked, Congestion::Ecn);
            let p = &mut self.paths[marked];
            p.recovery.forget_undo();
            p.stats.congestion_notified += 1;
        }
        self.outbox.push_cwr(path, lowest);
    }
}
