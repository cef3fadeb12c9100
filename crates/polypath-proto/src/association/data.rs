//! Received DATA, and the SACKs for it (RFC 9260 6.2, 6.5 to 6.9).

use std::time::Duration;

use super::procedures::Stamps;
use super::reconfig::Reconfig;
use super::{Receiver, Violation};
use crate::extension::Extension;
use crate::ids::{PathId, StreamId, Tsn};
use crate::outbox::{Control, OwnedCause};
use crate::path::Path;
use crate::paths::Paths;
use crate::policy::ack::Arrival;
use crate::receive::{Outcome, Receiving};
use crate::time::Time;
use crate::transmit::Ecn;
use crate::wire::{Data, DoesNotFit, IData, PacketWriter, SACK_HEADER_LEN, Sack};

/// Summary of the DATA chunks of one packet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DataSeen {
    any: bool,
    first: bool,
    duplicate: bool,
    immediate: bool,
    dropped: bool,
    retransmission: bool,
    /// TSNs were missing when a chunk was counted that is no DATA.
    gap: bool,
    /// The packet was marked with congestion experienced, and its lowest TSN.
    marked: bool,
    lowest: Option<Tsn>,
    /// Gap blocks before the packet.
    runs: usize,
    /// The packet's TIMESTAMP chunk, if that was agreed on.
    pub(super) stamps: Option<Stamps>,
}

/// Fields that DATA and I-DATA chunks have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    tsn: Tsn,
    stream: StreamId,
    immediate: bool,
    unordered: bool,
    retransmission: bool,
    bytes: usize,
}

impl From<&Data<'_>> for Head {
    fn from(d: &Data<'_>) -> Self {
        Self {
            tsn: d.tsn,
            stream: d.stream,
            immediate: d.immediate,
            unordered: d.unordered,
            retransmission: d.retransmission,
            bytes: d.payload.len(),
        }
    }
}

impl From<&IData<'_>> for Head {
    fn from(d: &IData<'_>) -> Self {
        Self {
            tsn: d.tsn,
            stream: d.stream,
            immediate: d.immediate,
            unordered: d.unordered,
            retransmission: d.retransmission,
            bytes: d.payload.len(),
        }
    }
}

impl DataSeen {
    /// For a packet that arrived with this ECN codepoint.
    pub(super) fn new(ecn: Ecn) -> Self {
        Self { marked: ecn == Ecn::Ce, ..Self::default() }
    }

    /// Whether the packet carried DATA or a FORWARD TSN.
    pub(super) const fn any(&self) -> bool {
        self.any
    }

    /// Counts a chunk that is no DATA as DATA with a TSN that had been received before; `gap` if
    /// TSNs are missing now.
    pub(super) const fn repeated(&mut self, gap: bool) {
        self.any = true;
        self.duplicate = true;
        self.gap |= gap;
    }

    /// The echo in the packet, if it has one.
    pub(super) fn echo(&self) -> Option<u32> {
        self.stamps.and_then(|stamps| stamps.echo)
    }

    /// Counts a FORWARD TSN; `out_of_date` if it did not move the cumulative TSN.
    pub(super) const fn forwarded(&mut self, out_of_date: bool) {
        self.any = true;
        self.duplicate |= out_of_date;
    }
}

impl Receiver<'_> {
    /// Processes a DATA chunk.
    pub(super) fn handle_data(
        &mut self,
        path: PathId,
        data: &Data<'_>,
        seen: &mut DataSeen,
    ) -> Result<(), Violation> {
        let head = data.into();
        self.check_kind(false)?;
        if self.note_data(path, head, seen) {
            let outcome = self.receiving.handle_data(data);
            self.note_outcome(path, head, outcome, seen)?;
        }
        Ok(())
    }

    /// Notes a received chunk of user data; false if it is dropped because of the association's
    /// state.
    pub(super) fn note_data(&mut self, path: PathId, chunk: Head, seen: &mut DataSeen) -> bool {
        let drops = |r: &Reconfig| r.is_blind() || r.is_deferred(chunk.stream, chunk.tsn);
        if !self.may_receive_data || self.reconfig.is_some_and(drops) {
            self.stats.dropped += 1;
            return false;
        }
        if !seen.any {
            seen.runs = self.receiving.tsns().runs();
        }
        seen.any = true;
        let tsn = chunk.tsn;
        seen.lowest = seen.lowest.filter(|t| !t.is_after(tsn)).or(Some(tsn));
        seen.immediate |= chunk.immediate;
        seen.first |= self.receiving.tsns().is_first(tsn);
        seen.retransmission |= chunk.retransmission && self.has(Extension::RetransmissionFlag);
        self.paths[path].stats.data_chunks_received += 1;
        self.stats.unordered_chunks_received += u64::from(chunk.unordered);
        true
    }

    /// Processes the receiver's verdict on a chunk.
    pub(super) fn note_outcome(
        &mut self,
        path: PathId,
        chunk: Head,
        outcome: Outcome,
        seen: &mut DataSeen,
    ) -> Result<(), Violation> {
        match outcome {
            Outcome::New => {
                self.paths[path].stats.data_bytes_received += chunk.bytes as u64;
                // RFC 9260 6.2: another chunk was dropped to make room, and "the receiver MUST
                // immediately send back a SACK chunk".
                seen.dropped |= self.receiving.take_reneged() && self.model.rules.reports_reneging;
            }
            Outcome::Duplicate => {
                self.stats.duplicates_received += 1;
                seen.duplicate = true;
            }
            Outcome::NoBuffer => {
                self.stats.dropped_no_buffer += 1;
                seen.dropped = true;
            }
            Outcome::OutOfWindow => {
                self.stats.dropped += 1;
                seen.dropped = true;
            }
            Outcome::InvalidStream => {
                // RFC 9260 6.5: acknowledge and report it.
                self.stats.dropped += 1;
                let cause = OwnedCause::InvalidStream(chunk.stream);
                self.outbox.push(path, Control::Error(cause));
            }
            // The peer has reset the association, and its response is still in flight on another
            // path.
            Outcome::Violation(_) if self.reconfig.is_some_and(Reconfig::awaits_renumbering) => {
                self.stats.dropped += 1;
            }
            Outcome::Violation(what) => return Err(what),
        }
        Ok(())
    }

    /// All chunks of a packet have been processed: lets the policy decide when the SACK is sent.
    pub(super) fn decide_sack(
        &mut self,
        now: Time,
        path: PathId,
        seen: DataSeen,
        round_trip: Option<Duration>,
    ) {
        if let Some(lowest) = seen.lowest.filter(|_| seen.marked) {
            self.note_mark(path, lowest);
        }
        if self.receiving.has_news() {
            self.events.push_readable();
        }
        self.receiving.ack.echo =
            self.receiving.ack.echo.or_else(|| seen.stamps.and_then(|stamps| stamps.sent));
        self.receiving.ack.retransmission |= seen.retransmission;
        let arrival = Arrival {
            now,
            path,
            packets: self.receiving.ack.count(path),
            first: seen.first,
            gap: self.receiving.tsns().has_gap() || seen.gap,
            new_gap: self.receiving.tsns().runs() > seen.runs,
            rtt: self.paths[path].srtt().or(round_trip),
            duplicate: seen.duplicate,
            // A SACK that reports a retransmission has no other cause, and no delay that would be
            // measured.
            immediate: seen.immediate || seen.retransmission,
            dropped: seen.dropped,
        };
        let when = self.receiving.ack_policy.when(&arrival);
        self.receiving.ack.decide(now, &arrival, when);
    }

    /// Notes that a packet was marked; `lowest` is the lowest TSN of its data.
    #[cold]
    fn note_mark(&mut self, path: PathId, lowest: Tsn) {
        if self.has(Extension::Ecn) {
            self.paths[path].stats.congestion_experienced += 1;
            self.marks.note(lowest);
            // Report it to the sender soon.
            self.receiving.ack.demand();
        }
    }

    pub(super) fn write_sack(&mut self, w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let a_rwnd = self.receiving.announce(largest_chunk(self.receiving, self.paths));
        let mut flags = if self.receiving.ack.retransmission { Sack::RETRANSMISSION } else { 0 };
        if self.has(Extension::PacketCount) {
            flags |= Sack::packets_flags(self.receiving.ack.packets());
        }
        if self.has(Extension::NrSack) {
            self.write_nr_sack(a_rwnd, flags, w)?;
        } else {
            let tsns = self.receiving.tsns();
            let (cumulative, duplicates) = (tsns.cumulative(), tsns.duplicates());
            let wide = tsns.needs_wide_gaps();
            let room = w.remaining().saturating_sub(SACK_HEADER_LEN) / 4;
            let most = room.saturating_sub(duplicates.len()) / if wide { 2 } else { 1 };
            let selected = self.has(Extension::PartialSacks) && tsns.runs() > most;
            flags |= if selected { Sack::PARTIAL } else { 0 };
            let some = if selected { tsns.selected_gaps(most) } else { Vec::new() };
            let all = (!selected).then(|| tsns.gaps()).into_iter().flatten();
            let gaps = some.into_iter().chain(all);
            if wide {
                w.wide_sack(cumulative, a_rwnd, flags, gaps, duplicates)?;
            } else {
                w.sack(cumulative, a_rwnd, flags, gaps, duplicates)?;
            }
        }
        self.receiving.duplicates_reported();
        self.receiving.ack.sent();
        self.stats.sacks_sent += 1;
        Ok(())
    }
}

/// Size of the largest chunk on the path of the last DATA.
pub(super) fn largest_chunk(receiving: &Receiving, paths: &Paths) -> u32 {
    paths[receiving.ack.last_path].max_chunk()
}

/// The path for the SACK; `verifies` if the sender verifies addresses (RFC 9260 5.4).
pub(super) fn ack_path(receiving: &Receiving, paths: &Paths, verifies: bool) -> PathId {
    let path = receiving.ack_policy.path(receiving.ack.last_path, paths.view());
    if paths.may_answer(path, verifies) {
        return path;
    }
    let others = [paths.current(), paths.fallback()].into_iter();
    let mut others = others.chain(paths.iter().map(Path::id));
    others.find(|path| paths.may_answer(*path, verifies)).unwrap_or_else(|| paths.current())
}
