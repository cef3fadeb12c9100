//! Abandoning messages: the sender's side of partial reliability (RFC 3758 3.5, 4.1; RFC 7496 3).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::Sender;
use crate::constants::Delivery;
use crate::event::Event;
use crate::extension::Extension;
use crate::ids::Tsn;
use crate::send::{Fate, Limit, NewChunk, Outstanding, Partial, Parts};
use crate::time::Time;

impl Sender<'_> {
    /// Abandons queued messages that have expired, and messages of lost chunks that must not be
    /// retransmitted; then sends a FORWARD TSN. Chunks in flight are not abandoned.
    pub(super) fn abandon_hopeless(&mut self, now: Time) {
        // This runs for every packet, and there is nearly always nothing to abandon.
        if self.sending.may_abandon(self.agreed) && self.phase.may_send_data {
            self.abandon_all_hopeless(now);
        }
    }

    #[inline(never)]
    fn abandon_all_hopeless(&mut self, now: Time) {
        // RFC 3758 4.1 TR3, TR5.
        while let Some(message) = self.sending.queue.expired(now) {
            self.abandon(now, &message, None);
        }
        // TR4; RFC 7496 3.1. Retransmissions are counted when a chunk is lost; lifetimes end later.
        if self.sending.flight.take_partly_lost()
            || self.sending.lost_until.is_some_and(|t| t <= now)
        {
            self.abandon_lost(now);
        }
        self.forward(now);
    }

    fn abandon_lost(&mut self, now: Time) {
        self.sending.lost_until = None;
        let mut from = self.sending.flight.ack_point().next();
        while let Some((tsn, chunk, _)) = self.sending.flight.lost_from(from) {
            from = tsn.next();
            let reached = |p: &&Arc<Partial>| p.limit.is_reached(now, chunk.transmissions);
            if let Some(message) = chunk.content.partial.as_ref().filter(reached).cloned() {
                self.abandon(now, &message, Some(tsn));
            } else if let Some(Limit::Until(end)) = chunk.content.partial.as_ref().map(|p| p.limit)
            {
                self.sending.lost_until = Time::earliest(&[self.sending.lost_until, Some(end)]);
            }
        }
    }

    /// RFC 7496 3.2: abandons messages with a lower priority to make room for a message of `size`
    /// bytes, unsent ones first.
    pub(super) fn make_send_room(&mut self, now: Time, size: usize, priority: u32) {
        while self.sending.room_beside(self.events) < size {
            let Some(message) = self.sending.queue.below(priority) else { break };
            self.abandon(now, &message, None);
        }
        if self.sending.room_beside(self.events) >= size {
            return;
        }
        let mut sent = BTreeMap::new();
        for (_, chunk) in self.sending.flight.iter() {
            if let Some(message) = chunk.content.partial.as_ref().filter(|_| !chunk.is_abandoned())
                && let Limit::Priority(p) = message.limit
                && p > priority
            {
                sent.entry((Reverse(p), message.number)).or_insert_with(|| message.clone());
            }
        }
        for message in sent.into_values() {
            if self.sending.room_beside(self.events) >= size {
                break;
            }
            self.abandon(now, &message, None);
        }
        self.forward(now);
    }

    /// RFC 3758 3.5 A2, A3: treats all of a message as finally acknowledged. `lost` is one of its
    /// chunks.
    fn abandon(&mut self, now: Time, message: &Partial, lost: Option<Tsn>) {
        let was_done = self.sending.is_done();
        let interleaves = self.has(Extension::Interleaving);
        let (mut out, mut sent, mut paths) = (0, false, 0u64);
        let removed = self.sending.queue.remove(message);
        // No part of the message has a TSN if all of it is queued.
        let begun = removed.as_ref().is_none_or(|removed| removed.begun.is_some());
        let first = self.sending.flight.ack_point().next();
        let keeps = self.sending.undelivered.is_some();
        let mut chunks = BTreeMap::new();
        let mut each = |tsn: Tsn, chunk: &Outstanding, fate| {
            sent = true;
            if keeps {
                let mut part = Parts::default();
                part.add_chunk(chunk, fate);
                chunks.insert(tsn.offset_from(first), part);
            }
            let path = &mut self.paths[chunk.path];
            match fate {
                Fate::InFlight => {
                    path.data_gone(chunk.size());
                    path.drop_rtt_probe(tsn);
                    paths |= 1 << chunk.path.index();
                    out += chunk.size();
                }
                Fate::Lost(_) => path.lost_gone(chunk.size()),
                Fate::Acked | Fate::Abandoned | Fate::Reserved => {}
            }
        };
        let mut freed = 0;
        if begun {
            freed += self.sending.flight.abandon(message, lost, &mut each);
        }
        if let Some(kept) = &mut self.sending.undelivered {
            let mut all = Parts::default();
            chunks.into_values().for_each(|part| all.append(part));
            if let Some(removed) = &removed {
                all.add_rest(&removed.message, removed.message.payload.len() - removed.bytes);
            }
            kept.abandon(all, self.sending.tuning.size());
        }
        if let Some(removed) = removed {
            freed += removed.bytes;
            if let Some(mid) = removed.begun {
                sent = true;
                let rest = NewChunk {
                    stream: message.stream,
                    mid,
                    fsn: interleaves.then_some(u32::MAX),
                    ppid: message.ppid,
                    context: message.context,
                    unordered: message.unordered,
                    beginning: false,
                    end: true,
                    immediate: false,
                    delivery: Delivery::Standard,
                    payload: Bytes::new(),
                    partial: None,
                };
                self.sending.flight.push_abandoned(rest, self.paths.current());
            }
        }
        self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(out);
        self.sending.buffered -= freed;
        for path in self.paths.ids().filter(|path| paths & 1 << path.index() != 0) {
            self.update_t3(now, path);
        }
        self.sending.abandonments.count(message, sent);
        self.events.push_always(Event::SendFailed {
            stream: message.stream,
            ppid: message.ppid,
            context: message.context,
            unordered: message.unordered,
            bytes: message.bytes,
            sent,
        });
        self.sending.report_room(self.events);
        self.sending.report_drained(was_done, self.events);
    }
}
