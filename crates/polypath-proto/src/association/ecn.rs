//! Explicit congestion notification (RFC 4960 Appendix A, RFC 3168): packets with new data say that they
//! may be marked; a mark is echoed by ECNE behind each SACK until CWR answers; the window of the path
//! that the marked packet took is reduced once a round trip, as after a loss.

use super::Association;
use crate::policy::PathsView;
use crate::transmit::Ecn;
use crate::wire::PacketWriter;
use crate::{Extension, PathId, Tsn};

/// What is known of marks, in both directions.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The lowest TSN of the last packet that came marked; echoed until CWR answers.
    echo: Option<Tsn>,
    /// The peer has answered an echo.
    answered: bool,
    /// For each path, the highest TSN that had left when its window was last reduced.
    reduced: Vec<Option<Tsn>>,
}

impl Marks {
    /// DATA may stand behind an ECNE. usrsctp and FreeBSD expect four bytes more than RFC 4960 gives it, and
    /// drop what follows it in its packet: the SACK stands before, and DATA elsewhere until a CWR shows that
    /// the peer has read one.
    pub(super) const fn may_precede_data(&self) -> bool {
        self.answered
    }
}

impl Association {
    /// What the IP header of a packet with new data says.
    pub(super) fn ect(&self) -> Ecn {
        if self.extensions.contains(Extension::Ecn) { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// What that of the packet says which has just been written for `path`, when so many new chunks had left
    /// there before: it has new data, or has not.
    pub(super) fn ect_beyond(&self, path: PathId, new_chunks: u64) -> Ecn {
        let sent = self.paths[path.index()].stats.data_chunks_sent;
        if sent == new_chunks { Ecn::NotEct } else { self.ect() }
    }

    /// A packet that came marked had data, from this TSN on.
    #[cold]
    pub(super) fn note_mark(&mut self, path: PathId, lowest: Tsn) {
        if self.extensions.contains(Extension::Ecn) {
            self.paths[path.index()].stats.congestion_experienced += 1;
            self.marks.echo = Some(lowest);
            // The sender should hear of it soon.
            self.ack.demand();
        }
    }

    /// Behind each SACK, while it is not answered; tells whether there was something to write. Without
    /// room for it here, the next SACK has it.
    pub(super) fn write_ecne(&self, w: &mut PacketWriter<'_>) -> bool {
        self.marks.echo.is_some_and(|tsn| w.ecne(tsn).is_ok())
    }

    pub(super) fn handle_cwr(&mut self, lowest: Tsn) {
        self.marks.answered |= self.marks.echo.is_some();
        self.marks.echo = self.marks.echo.filter(|echo| echo.is_after(lowest));
    }

    /// A packet of ours was marked on its way.
    pub(super) fn handle_ecne(&mut self, path: PathId, lowest: Tsn) {
        let flight = &self.sender.flight;
        if lowest.is_after(flight.highest()) {
            // Never sent.
            self.stats.dropped += 1;
            return;
        }
        // What has been acknowledged meanwhile went to the path in use, as far as is known.
        let marked = flight.get(lowest).map_or(self.current, |chunk| chunk.path);
        self.marks.reduced.resize(self.paths.len(), None);
        let reduced = &mut self.marks.reduced[marked.index()];
        // On this path: what leaves ahead in CMT has TSNs below it that leave later.
        let highest = self.paths[marked.index()].highest_sent().unwrap_or_else(|| flight.highest());
        if reduced.is_none_or(|last| lowest.is_after(last)) {
            *reduced = Some(highest);
            let paths =
                PathsView { paths: &self.paths, primary: self.primary, current: self.current };
            let window = self.policies.congestion.on_fast_retransmit(&paths.path(marked), paths);
            let p = &mut self.paths[marked.index()];
            p.set_window(window);
            p.stats.congestion_notified += 1;
        }
        self.control.push_cwr(path, lowest);
    }
}
