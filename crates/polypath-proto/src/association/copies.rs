//! Messages that are to arrive as early as possible, and copies of chunks in flight.
//!
//! - A chunk of a redundant message is sent in several copies at once: on each other path that is
//!   expected to deliver it before a retransmission on the first one would, and for the rest again
//!   on the first one, in a packet of its own. Losses of single packets, and a path that fails,
//!   then cost no time (on one path: Flach and others, "Reducing Web Latency: the Virtue of Gentle
//!   Aggression", 2013, "Proactive"; on several: Frommgen and others, "ReMP TCP: Low Latency
//!   Multipath TCP", 2016).
//! - A chunk of an urgent message that was not acknowledged when it should have been gets one copy
//!   then, on the path that is expected to deliver it first: Dean and Barroso, "The Tail at Scale",
//!   2013, "hedged requests". The sender asks for its acknowledgement without delay (RFC 7053).
//!
//! All copies have one budget, and leave only where the window of their path has room.

use std::time::Duration;

use super::Sender;
use crate::constants::Delivery;
use crate::few;
use crate::ids::{PathId, Tsn};
use crate::policy::scheduler::earliest::delivery;
use crate::send::{Fate, Sending};
use crate::time::Time;
use crate::wire::PacketWriter;

/// Time after which an idle path is measured while urgent messages are sent.
const MEASURE: Duration = Duration::from_secs(1);

/// A chunk is overdue no sooner than this after its acknowledgement was expected.
const LEAST_MARGIN: Duration = Duration::from_millis(2);

impl Sender<'_> {
    /// A chunk was sent for the first time, on `path`.
    #[inline(never)]
    pub(super) fn note_new_chunk(&mut self, now: Time, path: PathId, tsn: Tsn) {
        let Some(chunk) = self.sending.flight.get(tsn) else { return };
        let (kind, size) = (chunk.content.delivery, chunk.size());
        self.sending.copies.earn(size);
        if !kind.is_urgent() || !self.sending.is_concurrent() {
            return;
        }
        self.measure_paths(now);
        if kind == Delivery::Redundant {
            self.request_copies(now, path, tsn, size);
        }
        let view = self.paths[path].view();
        if let Some(rtt) = view.srtt {
            let margin = (rtt / 8).max(4 * view.jitter.min(rtt / 4)).max(LEAST_MARGIN);
            self.sending.copies.watch(now + rtt + margin, tsn);
        }
    }

    /// Measures the active paths that nothing else has measured for a while. A path that does not
    /// answer twice is probed: acknowledgements of copies show nothing about it.
    fn measure_paths(&mut self, now: Time) {
        for path in self.paths.ids() {
            let p = &mut self.paths[path];
            let after = MEASURE.max(2 * p.srtt().unwrap_or_default());
            if !p.is_usable() {
                continue;
            }
            match p.periods_unmeasured(now, after) {
                0 => {}
                1 | 2 => self.send_further_heartbeat(path),
                _ if p.heartbeat_deadline().is_none() => self.send_heartbeat(now, path),
                _ => {}
            }
        }
    }

    /// Requests the copies of a chunk of a redundant message that was sent on `first`.
    fn request_copies(&mut self, now: Time, first: PathId, tsn: Tsn, size: u32) {
        let most = self.config.redundant_copies() as usize;
        let own = self.paths[first].view();
        // The first chunk measures the round-trip time, which a copy would prevent.
        if own.srtt.is_none() {
            return;
        }
        // A retransmission leaves when the loss is noticed, and takes as long once more.
        let late = delivery(&own).map(|time| time + own.srtt.unwrap_or_default().as_secs_f64());
        let mut others: Vec<(f64, PathId)> = self
            .paths
            .iter()
            .filter(|p| p.id() != first && p.is_usable())
            .filter_map(|p| Some((delivery(&p.view())?, p.id())))
            .filter(|(time, _)| late.is_none_or(|late| *time < late))
            .collect();
        few::sort(&mut others, |a, b| a.0.total_cmp(&b.0));
        let others = others.into_iter().map(|(_, path)| path);
        for path in others.chain(std::iter::repeat(first)).take(most) {
            self.sending.copies.request(now, tsn, path, size);
        }
    }

    /// The path of the next copy that may be sent now.
    pub(super) fn next_copy(&mut self, now: Time) -> Option<PathId> {
        if !self.sending.copies.wait() {
            return None;
        }
        self.paths.iter_mut().for_each(|p| p.expire_copies(now));
        let (paths, max_burst) = (&*self.paths, self.config.max_burst());
        let Sending { copies, flight, burst, .. } = &mut *self.sending;
        let fits = |tsn: Tsn, path: PathId| {
            let chunk = flight.get(tsn).filter(|chunk| chunk.fate == Fate::InFlight);
            let p = &paths[path];
            let suits = |size| size <= p.max_chunk() && p.has_room_for_copy(size);
            p.is_usable() && chunk.is_some_and(|chunk| suits(chunk.size()))
        };
        copies.next(fits, |path| burst.has_room(&paths[path], max_burst, now))
    }

    /// Writes the copies that wait for `path`, as many as fit.
    pub(super) fn write_copies(&mut self, now: Time, path: PathId, w: &mut PacketWriter<'_>) {
        let mut written: Vec<Tsn> = Vec::new();
        loop {
            // A second copy for the same path has a packet of its own.
            let Some(tsn) = self.sending.copies.take(path, |tsn| written.contains(&tsn)) else {
                return;
            };
            let Some(chunk) = self.sending.flight.get_mut(tsn) else { continue };
            let size = chunk.size();
            if !self.paths[path].has_room_for_copy(size) {
                continue;
            }
            if chunk.write(tsn, false, false, w).is_err() {
                return;
            }
            chunk.copies = chunk.copies.saturating_add(1);
            let payload = chunk.content.payload.len() as u64;
            self.sending.copies.sent(now, tsn, path);
            self.paths[path].copy_sent(now, size, payload);
            self.paths.iter_mut().for_each(|p| p.drop_rtt_probe(tsn));
            written.push(tsn);
        }
    }

    /// Requests copies of the urgent chunks that are overdue.
    pub(super) fn hedge(&mut self, now: Time) {
        while let Some(tsn) = self.sending.copies.overdue(now) {
            let Some(chunk) = self.sending.flight.get(tsn) else { continue };
            if chunk.fate != Fate::InFlight {
                continue;
            }
            let size = chunk.size();
            let active = self.paths.iter().filter(|p| p.is_usable());
            let timed = active.filter_map(|p| Some((delivery(&p.view())?, p.id())));
            if let Some((_, path)) = timed.min_by(|a, b| a.0.total_cmp(&b.0)) {
                self.sending.copies.request(now, tsn, path, size);
            }
        }
    }

    /// A SACK was processed: chunks that it acknowledges are not overdue.
    pub(super) fn settle_urgent(&mut self) {
        let flight = &self.sending.flight;
        let waits = |tsn| flight.get(tsn).is_some_and(|chunk| chunk.fate == Fate::InFlight);
        self.sending.copies.forget(waits);
    }
}
