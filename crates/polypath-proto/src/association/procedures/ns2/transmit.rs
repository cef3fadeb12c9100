//! Retransmissions and new data (RtxMarkedChunks, SendMuch).

use super::{Own, Retransmit};
use crate::association::Sender;
use crate::constants::BurstRule;
use crate::ids::{PathId, Tsn};
use crate::policy::failover::NoActivePath;
use crate::policy::retransmission::LossCause;
use crate::policy::scheduler::Turn;
use crate::send::Sending;
use crate::time::Time;
use crate::wire::PacketWriter;

impl Sender<'_> {
    /// The path for the next packet of new data, if it may be sent now (SendMuch).
    pub(super) fn ns2_next_new_data(&mut self, now: Time) -> Option<Turn> {
        let cmt = self.is_ns2_cmt();
        if cmt {
            self.ns2_cmt_before_new_data();
        }
        self.sending.next_new_chunk_size(self.paths)?;
        if cmt && !self.ns2_may_send_new() {
            // The scheduler counts only turns that are used.
            return None;
        }
        if cmt && self.without_active_path(now) == Some(NoActivePath::Wait) {
            return None;
        }
        let dormant = cmt && !self.paths.any_is_active();
        let (share, data) = (self.path_share(), self.sending.new_data(now));
        let Self { config, side, paths, sending, .. } = self;
        let side = side.own();
        let Sending { scheduler, burst, .. } = sending;
        let view = paths.view();
        let room = |path: PathId| {
            let p = &view.paths[path.index()];
            if p.in_flight() >= share {
                return false;
            }
            if cmt {
                return Self::ns2_cmt_has_room(&side.cmt, config.max_burst(), dormant, p);
            }
            burst.has_room(p, config.max_burst(), now) && !p.awaits_delivery()
        };
        let turn = scheduler.next(view, &data, &room)?;
        (cmt || self.ns2_may_send_new()).then_some(turn)
    }

    /// Retransmits a lost chunk on `path`. The packet has room for it.
    pub(super) fn ns2_retransmit(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        cause: LossCause,
        w: &mut PacketWriter<'_>,
    ) {
        let highest = self.sending.flight.highest();
        self.write_again(now, path, tsn, cause, highest, w);
    }

    /// The lowest lost chunk and its path, if it may be sent now.
    pub(super) fn ns2_next_retransmission(&mut self) -> Option<(PathId, Tsn)> {
        if self.side.own().retransmit == Retransmit::Nothing {
            return None;
        }
        let (tsn, chunk, cause) = self.sending.flight.first_lost()?;
        let lost = chunk.as_lost(tsn, cause);
        let path = match self.side.own().destination {
            Some(path) => path,
            None => self.path_for_lost(&lost),
        };
        let allowed = match self.side.own().retransmit {
            Retransmit::OnePacket => true,
            _ => self.paths[path].has_room(),
        };
        allowed.then_some((path, tsn))
    }

    /// Whether new data may be sent now, as far as the windows allow.
    pub(super) fn ns2_may_send_new(&mut self) -> bool {
        if self.sending.flight.is_empty() {
            // No packet would arrive that allows it.
            return true;
        }
        if self.ns2_limits_burst() && self.side.own().burst >= self.config.max_burst() {
            self.side.own().limited = false;
            self.side.own().new_data = false;
            self.side.own().burst = 0;
        }
        self.side.own().new_data && self.side.own().answering
    }

    /// Everything that the current event allows has been sent.
    pub(super) fn ns2_burst_over(&mut self) {
        self.side.own().retransmit = Retransmit::Nothing;
        let cmt = self.is_ns2_cmt();
        if cmt {
            self.ns2_cmt_burst_over();
        }
        let waits = self.config.new_data_waits() && self.sending.flight.has_lost();
        if self.side.own().answering && self.side.own().new_data && (cmt || !waits) {
            self.side.own().new_data = false;
            self.side.own().burst = 0;
        }
        self.side.own().answering = false;
    }

    /// Writes the lowest lost chunks, as many as fit one packet.
    pub(super) fn ns2_write_retransmissions(
        &mut self,
        now: Time,
        path: PathId,
        w: &mut PacketWriter<'_>,
    ) {
        let mut written = false;
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let (size, old) = (chunk.size(), chunk.path);
            if w.remaining() < size as usize {
                break;
            }
            written = true;
            self.side.own().destination = Some(path);
            self.side.own().path(old).void_rtt_probe(&mut self.paths[old], tsn);
            if self.side.own().first[old.index()] == Some(tsn) && self.paths[old].in_flight() > 0 {
                self.side.own().start_t3(self.paths, now, old);
            }
            if self.side.own().first[path.index()].is_none_or(|lowest| tsn.is_before(lowest)) {
                self.side.own().first[path.index()] = Some(tsn);
                self.side.own().start_t3(self.paths, now, path);
            }
            self.ns2_retransmit(now, path, tsn, cause, w);
        }
        if !written {
            return;
        }
        self.side.own().schedule_decay(self.paths, now, path);
        if self.side.own().retransmit == Retransmit::OnePacket {
            self.side.own().retransmit = Retransmit::Nothing;
        }
        if self.ns2_limits_burst() {
            if self.side.own().burst >= self.config.max_burst() {
                self.side.own().limited = false;
                self.side.own().retransmit = Retransmit::Nothing;
            }
            self.side.own().burst += 1;
        }
    }

    /// A packet of new data has been written.
    pub(super) fn ns2_new_data_sent(&mut self, now: Time, path: PathId) {
        self.side.own().schedule_decay(self.paths, now, path);
        self.side.own().path(path).used(now);
        if self.is_ns2_cmt() {
            return self.ns2_cmt_new_data_sent(path);
        }
        if self.ns2_limits_burst() {
            self.side.own().burst += 1;
        }
    }

    /// Whether Max.Burst applies to the current event.
    fn ns2_limits_burst(&self) -> bool {
        self.side.notes().limited || self.config.burst_rule() == BurstRule::PacketCount
    }

    pub(super) fn applies_max_burst(&self) -> bool {
        self.config.burst_rule() == BurstRule::AfterRetransmission
    }
}
