//! Outages of all paths: probing them until one answers, and sending again what waits for a T3-rtx
//! that has been backed off.

use std::time::Duration;

use super::Sender;
use crate::ids::PathId;
use crate::path::{Path, PathState};
use crate::policy::retransmission::LossCause;
use crate::send::Fate;
use crate::time::Time;

/// Shortest silence of a peer that has sent a stream of data before it is asked whether it is still
/// reachable.
const PATIENCE: Duration = Duration::from_secs(1);

impl Sender<'_> {
    /// T3-rtx has expired on a path: probes the paths unless another one works.
    pub(super) fn search_after_timeout(&mut self, now: Time, path: PathId) {
        if self.paths.watches_silence
            && !self.paths.search.is_searching()
            && !self.paths.another_is_active(path)
            && let Some(wait) = self.search_interval(Duration::ZERO)
        {
            self.paths.search.search(now, now + wait);
        }
    }

    /// A packet of the peer has been processed, with DATA or not: a stream of data that stops may
    /// have met an outage. Its sender will notice that; but if a NAT has lost its mapping, or
    /// has another address now, only packets from the inside end the outage.
    pub(super) fn note_packet(&mut self, now: Time, data: bool) {
        if self.paths.watches_silence {
            self.paths.search.packet_arrived(now, data);
            if data && self.paths.search.should_listen() && self.phase.may_send_data {
                let patience = self.search_patience();
                self.paths.search.listen(now + patience);
            }
        }
    }

    /// Sends the HEARTBEATs that are due because no path answers, if they are.
    ///
    /// They do not count as errors if they are not answered: those of RFC 9260 8.3 and T3-rtx are
    /// as many as without them.
    pub(super) fn handle_search(&mut self, now: Time) {
        if self.paths.search.deadline().is_none_or(|at| at > now) || self.is_over() {
            return;
        }
        let patience = self.search_patience();
        let Some(since) = self.paths.search.due_since(now, patience) else { return };
        let Some(wait) = self.search_interval(now.since(since)) else {
            return self.paths.search.stop();
        };
        for path in self.paths.ids() {
            let p = &self.paths[path];
            let probed = !p.is_idle_since(now - p.base_rto());
            let usable =
                self.paths.may_carry(path) && !self.paths.is_unannounced(path, self.shared);
            if usable && !probed {
                self.send_further_heartbeat(path);
            }
        }
        self.paths.search.search(since, now + wait);
    }

    /// Time until the next HEARTBEATs, after no path has answered for this time; `None` if the
    /// failover policy does not ask for them or heartbeats are off.
    fn search_interval(&self, silent: Duration) -> Option<Duration> {
        self.config.heartbeat_interval()?;
        let confirmed = self.paths.iter().filter(|p| self.paths.may_carry(p.id()));
        let waits = confirmed.filter_map(|p| {
            let wait = self.paths.failover.search_interval(silent, &p.view())?;
            // RFC 9260 8.3: "not acknowledged within one RTO". The back-off is in the interval.
            Some(wait.max(p.base_rto()))
        });
        waits.max()
    }

    fn search_patience(&self) -> Duration {
        let rtos = self.paths.present().map(Path::base_rto);
        rtos.max().unwrap_or_default().max(PATIENCE)
    }

    /// A path has answered, and works: data in flight that waits for a T3-rtx which has been backed
    /// off is lost, on this path and on those that do not work, and is sent again now.
    ///
    /// The back-off of T3-rtx protects a network that may be congested (RFC 9260 6.3.3, E2). The
    /// answer ends it: the RTO is computed anew (RFC 9260 6.3.1; RFC 9002 6.2.1: "The PTO backoff
    /// factor is reset when an acknowledgment is received"), and data that has been in flight for
    /// longer would have been sent again by now. The window stays as the timeout has left it, so
    /// that one packet leaves (RFC 9260 7.2.3, RFC 5681 3.1). This is no further timeout: the path
    /// has just shown that it works.
    pub(super) fn send_again(&mut self, now: Time, alive: PathId) {
        if !self.sending.loss.watches_time() || self.paths[alive].state() != PathState::Active {
            return;
        }
        for path in self.paths.ids() {
            let p = &self.paths[path];
            let fails = match path == alive {
                true => p.recovery.timed_out_at().is_some(),
                false => p.state() != PathState::Active,
            };
            if fails && p.chunks_in_flight() > 0 {
                self.lose_overdue(now, path);
            }
        }
        if self.sending.flight.has_lost() {
            self.paths[alive].send_credit = true;
        }
    }

    /// Marks data lost that has been in flight on this path for longer than the RTO without its
    /// back-off. T3-rtx covers the rest from when that was sent.
    fn lose_overdue(&mut self, now: Time, path: PathId) {
        let rto = self.paths[path].base_rto();
        let mut expires = None;
        for sent in self.paths[path].take_sent_here() {
            let Some(chunk) = self.sending.flight.get(sent.tsn) else { continue };
            let here = chunk.path == path && chunk.transmissions == sent.transmissions;
            if !here || (chunk.fate != Fate::InFlight && !chunk.is_watched()) {
                continue;
            }
            let (size, at) = (chunk.size(), chunk.sent);
            if at + rto > now {
                expires = Some(expires.map_or(at + rto, |first: Time| first.min(at + rto)));
                self.paths[path].still_here(sent);
            } else if self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout) {
                self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                self.paths[path].data_lost(size);
                self.paths[path].drop_rtt_probe(sent.tsn);
                self.report_loss(now, path, at, size);
            }
        }
        self.paths[path].bring_forward_t3(expires);
        self.pass_timeout_to_loss_detector(now, path);
    }
}
