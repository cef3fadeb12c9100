//! What must be true of an association at any time; simulations ask after every event.

use super::Association;
use super::state::State;
use crate::PathId;
use crate::event::Event;
use crate::policy::PathState;
use crate::send::Fate;

impl Association {
    /// Checks the association's own accounting: the flight of each path is the sum of what is
    /// unacknowledged there, T3-rtx runs if and only if something is outstanding, the RTO is within its
    /// bounds, buffers are within theirs. Costs time in proportion to what is in flight.
    ///
    /// # Errors
    ///
    /// What does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.sender.check()?;
        self.receiver.check()?;
        let mut bytes = vec![0u32; self.paths.len()];
        let mut chunks = vec![0u32; self.paths.len()];
        let mut lost = vec![0u32; self.paths.len()];
        for (_, chunk) in self.sender.flight.iter() {
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
            // By ns-2's procedures it also runs for what waits for its retransmission, and until the
            // next SACK when that has left over another path.
            let allowed = self.is_ns2();
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
            // shrunk below what is in flight, so this is checked where data leaves; here only that
            // the flight does not exceed everything the peer has ever allowed.
        }
        for (what, id) in [("primary", self.primary), ("current", self.current)] {
            if self.paths.get(id.index()).is_some_and(|p| p.state() == PathState::Removed) {
                return Err(format!("the {what} path, {id}, has been removed"));
            }
        }
        let waiting = !self.sender.is_done();
        let alive = self.state.may_send_data();
        if alive && waiting && self.poll_timeout().is_none() && self.control.is_empty() {
            return Err("data waits, but no timer runs".into());
        }
        if matches!(self.state, State::Closed(_)) && self.poll_timeout().is_some() {
            return Err("closed, but a timer runs".into());
        }
        if alive && self.sender.flight.has_abandoned() && self.poll_timeout().is_none() {
            return Err("the peer waits for what was given up, but no timer runs".into());
        }
        let failed = |e: &&Event| matches!(e, Event::SendFailed { .. });
        if self.events.len() - self.events.iter().filter(failed).count() > 4096 {
            return Err(format!("{} events wait to be taken", self.events.len()));
        }
        Ok(())
    }
}
