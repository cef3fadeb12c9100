//! Writes DATA chunks, and records what was sent (RFC 9260 6.1, 6.3.2, 6.10).

use super::Sender;
use super::choose::Content;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::policy::retransmission::LossCause;
use crate::time::Time;
use crate::wire::PacketWriter;

impl Sender<'_> {
    /// Writes the DATA chunks of a packet.
    pub(super) fn write_data(
        &mut self,
        now: Time,
        path: PathId,
        content: &Content,
        w: &mut PacketWriter<'_>,
    ) {
        match *content {
            Content::Probe(tsn) => {
                match tsn {
                    Some(tsn) => self.write_probe(now, path, tsn, w),
                    None => self.write_new_data(now, path, (0, true), w),
                }
                self.paths[path].recovery.probe = false;
            }
            Content::Copies => self.write_copies(now, path, w),
            Content::NewData(ahead) => self.write_new_data(now, path, (ahead, false), w),
            Content::Retransmission(_) | Content::BundledRetransmissions => {
                self.model.procedures.write_retransmissions(self, now, path, *content, w);
            }
        }
    }

    /// Writes the lowest lost chunks, as many as fit one packet (RFC 9260 6.3.3 (E3), 7.2.4 (3)).
    #[inline(never)]
    pub(super) fn write_retransmissions(
        &mut self,
        now: Time,
        path: PathId,
        content: Content,
        w: &mut PacketWriter<'_>,
    ) {
        let concurrent = self.sending.is_concurrent();
        let forced = self.paths[path].send_credit;
        let (mut from, chosen) = match content {
            Content::Retransmission(tsn) => (tsn, Some(tsn)),
            _ => (self.sending.flight.ack_point().next(), None),
        };
        let mut first = true;
        while let Some((tsn, chunk, cause)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let size = chunk.size();
            if w.remaining() < size as usize {
                break;
            }
            let lost = chunk.as_lost(tsn, cause);
            // The policy has chosen for this chunk already; if it draws lots, it may choose
            // differently now.
            let to = if chosen == Some(tsn) { path } else { self.path_for_lost(&lost) };
            let allowed = (forced || chosen == Some(tsn))
                || (self.may_burst(now, path)
                    && !(first && self.paths[path].awaits_delivery())
                    && self.sending.peer_has_room_for(tsn, size));
            if to != path && concurrent {
                continue;
            }
            if to != path || !allowed {
                break;
            }
            self.retransmit(now, path, tsn, cause, w);
            first = false;
        }
        if !first {
            if concurrent {
                self.paths[path].send_credit = false;
            } else {
                self.paths.clear_send_credit();
            }
            self.outbox.release();
        }
    }

    /// Retransmits a lost chunk on `path`. The packet has room for it.
    fn retransmit(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        cause: LossCause,
        w: &mut PacketWriter<'_>,
    ) {
        // In CMT each path recovers by itself.
        let cmt = self.sending.is_concurrent();
        let own = if cmt { self.paths[path].highest_sent() } else { None };
        let highest = own.unwrap_or_else(|| self.sending.flight.highest());
        let old = self.sending.flight.get(tsn).map_or(path, |chunk| chunk.path);
        for p in self.paths.iter_mut().filter(|p| !cmt || p.id() == old) {
            p.drop_rtt_probe_from(tsn);
        }
        self.write_again(now, path, tsn, cause, highest, w);
    }

    /// Writes a lost chunk again, and accounts for it; `highest` is its recover point if this is a
    /// fast retransmission.
    pub(super) fn write_again(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        cause: LossCause,
        highest: Tsn,
        w: &mut PacketWriter<'_>,
    ) {
        let retransmission = self.has(Extension::RetransmissionFlag);
        let (old, chunk) = self.sending.flight.resend(tsn, path, highest);
        let (transmissions, size) = (chunk.transmissions, chunk.size());
        let still = self.stalls_after(path, size);
        if let Some(chunk) = self.sending.flight.get(tsn) {
            // The room was checked.
            let _ = chunk.write(tsn, still, retransmission, w);
        }
        self.sending.cwnd_update.on_retransmit(old, path);
        self.paths[old].lost_gone(size);
        self.paths[old].recovery.retransmitted(tsn);
        let p = &mut self.paths[path];
        match cause {
            LossCause::FastRetransmit => p.stats.fast_retransmissions += 1,
            LossCause::Timeout => p.stats.timeout_retransmissions += 1,
        }
        self.sending.charge_window(tsn, size);
        self.record_sent(now, path, tsn, transmissions, size);
    }

    /// Writes a chunk in flight again, to probe its path.
    fn write_probe(&mut self, now: Time, path: PathId, tsn: Tsn, w: &mut PacketWriter<'_>) {
        let size = self.sending.flight.get(tsn).map_or(0, crate::send::Outstanding::size);
        if w.remaining() >= size as usize && self.mark_probed(path, tsn) {
            self.retransmit(now, path, tsn, LossCause::FastRetransmit, w);
        }
    }

    /// Writes new data beyond the first `ahead` queued bytes, as much as the windows allow; as a
    /// `probe`, whatever the window of the path.
    pub(super) fn write_new_data(
        &mut self,
        now: Time,
        path: PathId,
        (ahead, probe): (usize, bool),
        w: &mut PacketWriter<'_>,
    ) {
        let mut written = false;
        let bundles = self.sending.queue.begin_packet();
        let first = self.sending.queue.next_stream();
        let header = self.sending.data_header();
        loop {
            let room = w.remaining() / 4 * 4;
            let Some(room) = room.checked_sub(header) else { break };
            if !bundles && self.sending.queue.next_stream() != first {
                break;
            }
            let Some((n, reserved)) = self.next_new_chunk(path, ahead, room) else { break };
            let size = self.sending.flight.counted(n + header);
            let overtakes = self.may_overtake(path);
            let allowed = probe || self.may_burst(now, path);
            if !allowed || !self.sending.peer_has_room(size) || !overtakes {
                break;
            }
            let sender = &mut *self.sending;
            let tsn = if let Some(tsn) = reserved {
                sender.flight.send_reserved(tsn, path, self.paths[path].highest_sent());
                tsn
            } else {
                if sender.flight.is_full() {
                    break;
                }
                let Some(chunk) = sender.queue.take(n) else { break };
                sender.flight.push(chunk, path).0
            };
            let still = self.stalls_after(path, size);
            let Some(out) = self.sending.flight.get(tsn) else { break };
            // The room was checked.
            let _ = out.write(tsn, still, false, w);
            self.stats.unordered_chunks_sent += u64::from(out.content.unordered);
            self.sending.charge_window(tsn, size);
            let stats = &mut self.paths[path].stats;
            stats.data_chunks_sent += 1;
            stats.data_bytes_sent += n as u64;
            self.record_sent(now, path, tsn, 1, size);
            if self.sending.queue.any_urgent() {
                self.note_new_chunk(now, path, tsn);
            }
            written = true;
        }
        if written {
            self.model.procedures.on_new_data_written(self, now, path);
        }
    }

    /// Size of the next new chunk for `path` if `room` bytes are left for its payload, and its TSN
    /// if it has one.
    fn next_new_chunk(
        &mut self,
        path: PathId,
        ahead: usize,
        room: usize,
    ) -> Option<(usize, Option<Tsn>)> {
        let largest = self.sending.largest_payload;
        let sender = &mut *self.sending;
        let tsn = if ahead > 0 {
            sender.next_ahead(ahead, self.paths[path].highest_sent(), largest)
        } else {
            sender.flight.first_reserved().map(|(tsn, _)| tsn)
        };
        let Some(tsn) = tsn else { return Some((sender.queue.next_size(largest, room)?, None)) };
        let n = sender.flight.get(tsn)?.content.payload.len();
        (n <= room).then_some((n, Some(tsn)))
    }

    /// Accounts for a chunk sent on `path`: flight, round-trip time, T3-rtx.
    pub(super) fn record_sent(
        &mut self,
        now: Time,
        path: PathId,
        tsn: Tsn,
        transmissions: u32,
        size: u32,
    ) {
        self.sending.flight.set_sent(tsn, now);
        let p = &mut self.paths[path];
        p.data_sent(now, tsn, transmissions, size);
        if p.rtt_probe().is_none() && self.sending.rtt_sampling.may_start(transmissions) {
            p.start_rtt_probe(now, tsn);
        }
        // RFC 9260 6.3.2 (R1).
        self.model.procedures.on_chunk_sent(self, now, path, tsn, transmissions);
        self.note_sent(now, path, tsn, transmissions);
        self.watch_sent(now, path);
    }
}
