//! Invariants of an association; simulations check them after every event.

use super::Association;
use super::state::State;
use crate::budget;
use crate::ids::PathId;
use crate::path::Path;
use crate::send::{Fate, WindowProbe};

/// Memory in use, in bytes, and work. Bookkeeping counts as well as payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// All memory in use.
    pub memory: usize,
    /// Memory of messages that are queued or not acknowledged.
    pub sent: usize,
    /// Memory of received data that has not been read.
    pub received: usize,
    /// Upper bound of `memory`, whatever the peer does: twice the buffers, the largest message that
    /// was sent, and a constant part.
    pub most_memory: usize,
    /// Number of stored items examined without being removed; bounded for each packet.
    pub operations: u64,
}

impl Association {
    /// Checks the association's own accounting: the flight of each path is the sum of its
    /// unacknowledged chunks, T3-rtx runs if and only if something is outstanding, the RTO and the
    /// buffers are within their bounds. Takes time in proportion to the number of chunks in flight.
    ///
    /// # Errors
    ///
    /// A description of the violated invariant.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.sending.check()?;
        self.receiving.check()?;
        let mut bytes = vec![0u32; self.paths.len()];
        let mut chunks = vec![0u32; self.paths.len()];
        let mut lost = vec![0u32; self.paths.len()];
        for (_, chunk) in self.sending.flight.iter() {
            if chunk.fate == Fate::InFlight {
                bytes[chunk.path.index()] += chunk.size();
                chunks[chunk.path.index()] += 1;
            } else if matches!(chunk.fate, Fate::Lost(_)) {
                lost[chunk.path.index()] += chunk.size();
            }
        }
        for (i, p) in self.paths.iter().enumerate() {
            let id = PathId(i as u8);
            if (p.in_flight(), p.chunks_in_flight()) != (bytes[i], chunks[i]) {
                return Err(format!(
                    "path {id}: {} bytes in {} chunks counted in flight, but there are {} in {}",
                    p.in_flight(),
                    p.chunks_in_flight(),
                    bytes[i],
                    chunks[i]
                ));
            }
            if p.lost() != lost[i] {
                return Err(format!(
                    "path {id}: {} bytes counted lost, but there are {}",
                    p.lost(),
                    lost[i]
                ));
            }
            let allowed = !self.model.rules.stops_t3_without_flight;
            let in_flight = p.chunks_in_flight() > 0;
            if p.t3().is_some() != in_flight && (in_flight || !allowed) {
                return Err(format!(
                    "path {id}: T3-rtx is {}, but {} chunks are outstanding",
                    if p.t3().is_some() { "running" } else { "stopped" },
                    p.chunks_in_flight()
                ));
            }
            let rto = p.rto();
            if rto < self.config.rto_min() || rto > self.config.rto_max() {
                return Err(format!("path {id}: RTO {rto:?} is out of bounds"));
            }
            if p.window().cwnd < p.max_chunk() {
                return Err(format!("path {id}: cwnd {} is below one chunk", p.window().cwnd));
            }
            // RFC 9260 6.1 B: the window may be exceeded by less than a packet. It may also have
            // shrunk below the bytes in flight, so it is checked where data is sent, and not here.
        }
        self.paths.check()?;
        let waiting = !self.sending.is_done();
        let alive = self.state.may_send_data();
        if alive && waiting && self.poll_timeout().is_none() && self.outbox.is_empty() {
            return Err("data waits, but no timer runs".into());
        }
        // Without a confirmed path, probes or an ASCONF must confirm one or end the association.
        let alone = self.model.rules.verifies_addresses && !self.paths.any_may_carry();
        let asks = |p: &Path| p.heartbeat_due().is_some() || p.heartbeat_deadline().is_some();
        let waits = self.addresses.as_ref().is_some_and(|a| a.next_timeout().is_some())
            || self.paths.iter().any(asks);
        if alive && alone && !waits {
            return Err("no path is confirmed, and none is probed".into());
        }
        self.check_progress()?;
        if matches!(self.state, State::Closed(_)) && self.poll_timeout().is_some() {
            return Err("closed, but a timer runs".into());
        }
        if alive && self.sending.flight.has_abandoned() && self.poll_timeout().is_none() {
            return Err("the peer waits for what was given up, but no timer runs".into());
        }
        self.events.check()?;
        self.check_budget()
    }

    /// T3-rtx runs for data in flight. Without any, all data that may be sent has been sent, or the
    /// timer of a pacer, of the window probe or of the FORWARD TSN runs.
    fn check_progress(&self) -> Result<(), String> {
        let sender = &self.sending;
        let waits = sender.flight.has_lost()
            || sender.next_new_size(self.sending.largest_payload).is_some();
        let confirmed = self.paths.any_may_carry() && !self.paths.awaited;
        let settled = self.sending.burst.is_over() && self.outbox.is_empty();
        let strict = self.model.rules.stops_t3_without_flight;
        let may_send = self.state.may_send_data() && confirmed && strict;
        let held = self.paths.iter().any(Path::awaits_release);
        let probe = matches!(sender.probe, WindowProbe::At(_));
        let timer = probe || held || sender.forward.is_some();
        if may_send && settled && waits && sender.flight.bytes() == 0 && !timer {
            return Err(format!("data waits and nothing is in flight, but {:?}", sender.probe));
        }
        Ok(())
    }

    /// Checks that memory and work are within their bounds; see [`budget`].
    fn check_budget(&self) -> Result<(), String> {
        let Budget { memory, most_memory, .. } = self.budget();
        if memory > most_memory {
            return Err(format!("{memory} bytes of memory, but at most {most_memory} are allowed"));
        }
        if self.sending.overwork > 0 {
            return Err(format!("a packet caused {} operations too many", self.sending.overwork));
        }
        Ok(())
    }

    /// Memory and work of the association, and the bounds.
    pub fn budget(&self) -> Budget {
        let (sent, received) = (self.sending.memory(), self.receiving.memory());
        Budget {
            memory: sent + received + self.events.memory() + self.outbox.memory(),
            sent,
            received,
            most_memory: budget::most_memory(
                &self.config,
                self.receiving.size() + self.sending.tuning.size(),
                self.sending.largest_message,
            ),
            operations: self.work(),
        }
    }

    /// Number of operations so far.
    pub(super) const fn work(&self) -> u64 {
        self.sending.flight.looked()
    }
}
