//! Losses that SACKs show, and their consequences (RFC 9260 7.2.4).

use super::Sender;
use crate::ids::{PathId, Tsn};
use crate::policy::congestion::Congestion;
use crate::policy::loss::SackView;
use crate::policy::retransmission::LossCause;
use crate::send::Sending;
use crate::time::Time;

impl Sender<'_> {
    /// Counts missing reports, and marks the chunks that they find lost for fast retransmission
    /// (RFC 9260 7.2.4).
    pub(super) fn count_missing_reports(&mut self, now: Time, view: &SackView<'_>) {
        let Sending { flight, loss, cwnd_update, sack, .. } = &mut self.sending;
        let missing = &mut sack.missing;
        missing.clear();
        let (horizon, lost) = (loss.horizon(view), loss.includes_lost());
        flight.for_each_missing(horizon, lost, |tsn, chunk| {
            let mut c = chunk.as_missing(tsn, cwnd_update.recover(chunk.path));
            c.reports += loss.reports(&c, view);
            chunk.reports = c.reports;
            if loss.is_lost(&c) {
                missing.push((tsn, chunk.path, chunk.size()));
            }
        });
        if missing.is_empty() {
            return;
        }
        let lost = std::mem::take(missing);
        self.mark_lost(now, &lost);
        self.sending.sack.missing = lost;
    }

    /// Marks chunks as lost, and cuts the windows of their paths.
    pub(super) fn mark_lost(&mut self, now: Time, lost: &[(Tsn, PathId, u32)]) {
        // The paths with a loss that may cut their windows, as bits.
        let mut with_losses = 0u64;
        for &(tsn, path, size) in lost {
            let sent = self.sending.flight.get(tsn).map_or(now, |chunk| chunk.sent);
            let was_in_flight = self.sending.flight.mark_lost(tsn, LossCause::FastRetransmit);
            let p = &mut self.paths[path];
            p.drop_rtt_probe(tsn);
            if was_in_flight {
                p.data_lost(size);
                p.count_loss();
                self.report_loss(now, path, sent, size);
            }
            let p = &mut self.paths[path];
            // RFC 3758 3.5 F5: "the appropriate congestion adjustment MUST be made" for a chunk
            // that was abandoned in flight as well.
            //
            // A chunk sent before T3-rtx expired belongs to the flight for which the timeout has
            // cut the window (RFC 6675 5.1: no new recovery for it).
            let cut_for = p.last_timeout().is_some_and(|timeout| sent < timeout);
            let bit = 1 << path.index();
            if with_losses & bit == 0 && !cut_for {
                with_losses |= bit;
                self.cut_for_loss(now, path, tsn);
            }
        }
    }

    /// Cuts the window of a path for the loss of a chunk, unless it was cut for the same losses.
    pub(super) fn cut_for_loss(&mut self, now: Time, path: PathId, tsn: Tsn) {
        // In CMT each path recovers by itself.
        let concurrent = self.sending.is_concurrent();
        let own = if concurrent { self.paths[path].highest_sent() } else { None };
        let exit = own.unwrap_or_else(|| self.sending.flight.highest());
        if self.sending.cwnd_update.on_fast_retransmit(path, tsn, exit) {
            // RFC 9260 7.2.4 (2): the windows of those paths are cut once per window.
            self.begin_recovery(path);
            self.cut_window(now, path, Congestion::Loss);
            // RFC 9260 7.2.4 (3): the first packet is sent regardless of the window.
            self.grant_send_credit(path);
        }
    }
}
