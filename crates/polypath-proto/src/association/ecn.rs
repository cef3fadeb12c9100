//! Explicit congestion notification (RFC 4960 Appendix A, RFC 3168): packets with new data say that they
//! may be marked; a mark is echoed by ECNE beside each SACK until CWR answers; the window of the path
//! that the marked packet took is reduced once a round trip, as after a loss.

use super::Association;
use super::control::Control;
use crate::policy::PathsView;
use crate::transmit::Ecn;
use crate::wire::PacketWriter;
use crate::{Extension, PathId, Tsn};

/// What is known of marks, in both directions.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The lowest TSN of the last packet that came marked; echoed until CWR answers.
    echo: Option<Tsn>,
    /// For each path, the highest TSN that had left when its window was last reduced.
    reduced: Vec<Option<Tsn>>,
}

impl Association {
    /// What the IP header of a packet says that begins with new data.
    pub(super) fn ect(&self) -> Ecn {
        if self.extensions.contains(Extension::Ecn) { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// A packet that came marked had data, from this TSN on.
    pub(super) fn note_mark(&mut self, path: PathId, lowest: Tsn) {
        if self.extensions.contains(Extension::Ecn) {
            self.paths[path.index()].stats.congestion_experienced += 1;
            self.marks.echo = Some(lowest);
            // The sender should hear of it soon.
            self.ack.demand();
        }
    }

    /// Before each SACK, while it is not answered.
    pub(super) fn write_ecne(&self, w: &mut PacketWriter<'_>) {
        if let Some(tsn) = self.marks.echo {
            // Without room for it here, the next SACK has it.
            let _ = w.ecne(tsn);
        }
    }

    pub(super) fn handle_cwr(&mut self, lowest: Tsn) {
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
        if !matches!(self.control.front(), Some((_, Control::Cwr(_)))) {
            self.control.push(path, Control::Cwr(lowest));
        }
    }
}
