//! HEARTBEATs: confirming paths (RFC 9260 5.4), watching idle ones (8.3), answering the peer's.

use std::time::Duration;

use bytes::Bytes;

use super::Sender;
use crate::constants::PathConfirmation;
use crate::few;
use crate::ids::PathId;
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::paths::{HeartbeatKind, Paths};
use crate::policy::failover::PathErrorKind;
use crate::time::Time;

impl Paths {
    /// A path has been confirmed: probe those that HB.Max.Burst has delayed.
    pub(super) fn verify_next(&mut self, now: Time) {
        for p in self.iter_mut() {
            let waits = p.state() == PathState::Unconfirmed
                && p.heartbeat_deadline().is_none()
                && p.error_count() <= p.path_max_retrans();
            if waits && p.heartbeat_due().is_some() {
                p.schedule_heartbeat(Some(now));
            }
        }
    }
}

impl Sender<'_> {
    /// A HEARTBEAT on this path has been requested.
    pub(super) fn note_heartbeat(&mut self, now: Time, path: PathId) {
        self.paths[path].heartbeat_sent(now);
        self.model.procedures.on_heartbeat(self, now, path);
    }

    /// The association is established: probe unconfirmed paths at once, and start the timers of the
    /// others.
    pub(super) fn probe_paths(&mut self, now: Time) {
        let confirmation = self.config.path_confirmation();
        self.paths.awaited = confirmation == PathConfirmation::BeforeData;
        for path in self.paths.ids() {
            if confirmation == PathConfirmation::Off {
                self.confirm(now, path);
            }
            if self.paths.awaited {
                self.paths[path].schedule_heartbeat(Some(now));
            } else if path == self.paths.current() && self.paths[path].state() == PathState::Active
            {
                self.model.procedures.schedule_heartbeat(self, now, path);
            } else if confirmation != PathConfirmation::Off {
                // RFC 9260 5.4 would treat a path as confirmed if the application of the opening
                // side passed its address. This stack probes it like any other, so that its RTT is
                // known one round trip later, before it is needed.
                self.paths[path].schedule_heartbeat(Some(now));
            }
        }
    }

    /// RFC 9260 8.3: one heartbeat period from now, "RTO of that destination address plus the
    /// protocol parameter 'HB.interval', with jittering of +/- 50% of the RTO value".
    pub(super) fn schedule_heartbeat_of(&mut self, now: Time, path: PathId) {
        let period = self.heartbeat_period(path);
        let p = &mut self.paths[path];
        p.schedule_heartbeat(period.map(|period| now + period));
        // The shortest period: jitter only adds to it. A HEARTBEAT lost meanwhile doubles only the
        // next one.
        p.set_heartbeat_period(self.config.heartbeat_interval().unwrap_or_default() + p.rto() / 2);
    }

    /// HB.interval plus 50% to 150% of the path's RTO; `None` without heartbeats.
    pub(super) fn heartbeat_period(&mut self, path: PathId) -> Option<Duration> {
        let interval = self.config.heartbeat_interval()?;
        let rto = self.paths[path].rto().as_nanos() as u64;
        Some(interval + Duration::from_nanos(rto / 2 + self.rng.below(rto + 1)))
    }

    /// Lets data that waits for the paths to be confirmed be sent, once each path has answered, has
    /// exhausted its probes, or is removed. A path from an address that is not yet announced is not
    /// probed, and delays no data.
    pub(super) fn end_confirmation(&mut self, now: Time) {
        let waits = |p: &Path| {
            p.state() != PathState::Removed
                && !p.has_answered()
                && p.error_count() <= p.path_max_retrans()
                && !self.paths.is_unannounced(p.id(), self.shared)
        };
        if self.paths.awaited && !self.paths.iter().any(waits) {
            self.paths.awaited = false;
            self.model.procedures.on_paths_confirmed(self, now);
        }
    }

    /// Processes the expiry of a path's heartbeat timer. True if the heartbeat period of a
    /// confirmed path is over.
    pub(super) fn handle_heartbeat_timer(&mut self, now: Time, path: PathId) -> bool {
        if let Some(interval) = self.probe_interval(now, path) {
            if self.paths[path].heartbeat_deadline().is_none() {
                self.send_heartbeat(now, path);
            } else {
                self.send_further_heartbeat(path);
            }
            self.paths[path].schedule_heartbeat(Some(now + interval));
            return false;
        }
        let p = &mut self.paths[path];
        if let Some(deadline) = p.heartbeat_deadline() {
            // The last HEARTBEAT is still outstanding: send the next one when it counts as lost.
            p.schedule_heartbeat(Some(deadline));
            return false;
        }
        if p.state() == PathState::Unconfirmed {
            self.verify_address(now, path);
            return false;
        }
        let idle = p.is_idle_since(now - p.heartbeat_period());
        if self.paths.awaited || self.paths.probes_after_period(path, idle) {
            self.send_heartbeat(now, path);
        }
        self.model.procedures.schedule_heartbeat(self, now, path);
        if idle {
            self.sending.give_back();
        }
        true
    }

    /// Longest time between HEARTBEATs on a path that is not active, if the failover policy limits
    /// it: while another path is active and carries data.
    fn probe_interval(&self, now: Time, path: PathId) -> Option<Duration> {
        let p = &self.paths[path];
        if !matches!(p.state(), PathState::PotentiallyFailed | PathState::Inactive) {
            return None;
        }
        let interval = self.paths.failover.probe_interval(now, &p.view())?;
        let carries = |p: &Path| {
            p.state() == PathState::Active && p.last_data().is_some_and(|at| at + interval >= now)
        };
        self.paths.iter().any(carries).then_some(interval)
    }

    /// Sends the next HEARTBEAT on a path that is not active earlier, if the failover policy asks
    /// for that.
    pub(super) fn hasten_probe(&mut self, now: Time, path: PathId) {
        let Some(interval) = self.probe_interval(now, path) else { return };
        let p = &mut self.paths[path];
        let at = if p.is_idle_since(now - interval) { now } else { now + interval };
        if p.heartbeat_due().is_none_or(|due| due > at) {
            p.schedule_heartbeat(Some(at));
        }
    }

    /// Probes an unconfirmed path (RFC 9260 5.4), now or when HB.Max.Burst allows it, the one that
    /// has waited longest first.
    fn verify_address(&mut self, now: Time, path: PathId) {
        let rank = |p: &Path| (p.verified_at(), p.id());
        let own = rank(&self.paths[path]);
        let rto = self.paths[path].rto();
        // "The number of packets containing HEARTBEAT chunks sent at each RTO SHOULD be limited by
        // the 'HB.Max.Burst' parameter." A confirmed address no longer counts: it is the peer's,
        // and the limit protects other hosts.
        let limited = !self.paths.is_confirmed(path);
        let others = || self.paths.iter().filter(|p| limited && !self.paths.is_confirmed(p.id()));
        let due = |p: &&Path| p.heartbeat_due().is_some_and(|t| t <= now) && rank(p) < own;
        let before = others().filter(due).count();
        let mut sent: Vec<Time> =
            others().filter(|p| p.id() != path).filter_map(Path::verified_at).collect();
        sent.retain(|at| *at + rto > now);
        few::sort(&mut sent, Time::cmp);
        let most = self.config.hb_max_burst() as usize;
        if sent.len() + before < most {
            self.send_heartbeat(now, path);
            return self.model.procedures.schedule_heartbeat(self, now, path);
        }
        // Wait until enough of the earlier probes are older than the RTO.
        let too_many = sent.len() + before - most;
        let next = sent.get(too_many).or_else(|| sent.last()).copied().unwrap_or(now);
        self.paths[path].schedule_heartbeat(Some(next + rto));
    }

    /// Measures the bandwidth of a newly confirmed path before it is needed.
    pub(super) fn measure_bandwidth(&mut self, now: Time, path: PathId) {
        let needed = self.model.rules.verifies_addresses
            && self.config.retransmission().needs.pair_bandwidth;
        if needed && self.paths[path].is_pair_due(now) {
            self.send_heartbeat(now, path);
        }
    }

    /// A packet has arrived from an address that is not confirmed yet: replies must wait until it
    /// is (RFC 9260 5.4). Probes the path, even if its probes have been exhausted.
    pub(super) fn verify_source(&mut self, now: Time, path: PathId) {
        let verifies = self.model.rules.verifies_addresses;
        if !verifies || !self.phase.may_send_data || self.paths.is_unannounced(path, self.shared) {
            return;
        }
        // The packet shows that the path works in this direction at least: the back-off of probes
        // that were lost in an outage is over.
        let timely = self.paths.watches_silence;
        let p = &mut self.paths[path];
        let rto = if timely { p.base_rto() } else { p.rto() };
        let probed = p.verified_at().is_some_and(|at| at + rto > now);
        let soon = p.heartbeat_due().is_some_and(|due| due <= now + rto);
        if (timely || p.heartbeat_deadline().is_none()) && !probed && !soon {
            p.cancel_heartbeat();
            p.schedule_heartbeat(Some(now));
        }
    }

    /// Data on another path was not acknowledged: probes the unconfirmed paths whose probes are
    /// exhausted. Without heartbeats, nothing else does.
    pub(super) fn verify_others(&mut self, now: Time) {
        for path in self.paths.ids() {
            let p = &self.paths[path];
            if p.state() == PathState::Unconfirmed && p.heartbeat_due().is_none() {
                self.verify_source(now, path);
            }
        }
    }

    /// Sends the COOKIE ACK to the source of the COOKIE ECHO. RFC 9260 5.4: to an UNCONFIRMED
    /// address, "it MUST be bundled with a HEARTBEAT chunk including a nonce".
    pub(super) fn acknowledge_cookie(&mut self, now: Time, path: PathId) {
        let verifies = self.model.rules.verifies_addresses && !self.paths.is_confirmed(path);
        if verifies {
            self.paths[path].heartbeat_sent(now);
        }
        let ack = if verifies { Control::CookieAckVerifying } else { Control::CookieAck };
        self.outbox.push(path, ack);
    }

    /// T3-rtx has expired on a path, and the retransmission is about to be sent: adds a HEARTBEAT
    /// if a policy asks for one.
    pub(super) fn probe_after_timeout(&mut self, now: Time, path: PathId) {
        // A HEARTBEAT due at this instant counts as lost, although another follows.
        if self.paths[path].heartbeat_deadline().is_some_and(|t| t <= now) {
            self.model.procedures.handle_heartbeat_timeout(self, now, path);
        }
        let asked = self.paths.probes_after_timeout(path) || self.probes_at_once(path);
        if self.is_over() || !asked {
            return;
        }
        self.paths[path].heartbeat_sent(now);
        self.outbox.push_behind(path, Control::Heartbeat);
    }

    /// Whether the failover policy asks for a HEARTBEAT on this path now, and none is outstanding.
    pub(super) fn probes_at_once(&self, path: PathId) -> bool {
        let p = &self.paths[path];
        p.heartbeat_deadline().is_none() && self.paths.failover.probes_at_once(&p.view())
    }

    /// Sends a HEARTBEAT that is no error if it is not answered: one that is outstanding counts as
    /// lost after the RTO all the same.
    pub(super) fn send_further_heartbeat(&mut self, path: PathId) {
        self.paths[path].stats.heartbeats_sent += 1;
        self.outbox.push(path, Control::Heartbeat);
    }

    pub(super) fn send_heartbeat(&mut self, now: Time, path: PathId) {
        self.note_heartbeat(now, path);
        let paired = self.config.retransmission().needs.pair_bandwidth
            && self.model.procedures.may_pair_heartbeats(self.paths, now, path);
        if paired {
            self.paths[path].pair_sent(now);
            self.outbox.push(path, Control::PairedHeartbeat { second: false });
            self.outbox.push(path, Control::PairedHeartbeat { second: true });
        } else {
            self.outbox.push(path, Control::Heartbeat);
        }
    }

    /// RFC 9260 8.3: returns the peer's HEARTBEAT on the path it arrived on, "together with any
    /// other received TLVs, copied unchanged". Not before the COOKIE ACK: until then the sender of
    /// the COOKIE ECHO "MUST NOT send any other packets to the peer" (5.1 C).
    pub(super) fn handle_heartbeat(&mut self, path: PathId, parameters: &[u8]) {
        if self.phase.synchronised {
            self.outbox.push(path, Control::HeartbeatAck(Bytes::copy_from_slice(parameters)));
        }
    }

    /// RFC 9260 5.4, 8.3: a HEARTBEAT ACK shows that the path works.
    pub(super) fn handle_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let read = self.paths.heartbeat_info.read(self.now, info);
        let Some((path, sent, kind)) = read.filter(|(p, ..)| p.index() < self.paths.len()) else {
            self.stats.dropped += 1;
            return;
        };
        if kind != HeartbeatKind::Plain {
            return self.handle_mtu_answer(now, path, sent, kind == HeartbeatKind::SmallProbe);
        }
        if self.paths[path].is_second_of_pair(now, sent) {
            return;
        }
        let Some(rtt) = self.paths[path].heartbeat_acked(now, sent) else {
            self.stats.dropped += 1;
            return;
        };
        self.paths[path].sample_rtt(rtt);
        let was = self.paths[path].state();
        self.confirm(now, path);
        self.paths.answered(now, path, self.events);
        if was == PathState::PotentiallyFailed {
            self.restart_window(path);
        }
        self.note_proof(now, path);
        self.send_again(now, path);
        self.model.procedures.on_heartbeat_answered(self, now, path, was);
        self.end_confirmation(now);
    }

    /// A HEARTBEAT was not answered within the RTO (RFC 9260 8.3).
    pub(super) fn heartbeat_unanswered(&mut self, now: Time, path: PathId) {
        self.confirm_failure(now, path);
        let p = &mut self.paths[path];
        p.heartbeat_lost();
        p.back_off(now);
        if p.state() == PathState::Unconfirmed {
            p.count_error();
            // RFC 9260 5.4: probe once each RTO until the probes are exhausted, then at the normal
            // rate.
            let chances = p.error_count() <= p.path_max_retrans();
            // 5.4: "When probing UNCONFIRMED addresses, however, the association overall error
            // count is not incremented." So 8.1 counts only data and HEARTBEATs on confirmed paths.
            // Without a confirmed path nothing else is sent that could fail: the probes then
            // continue and count, or an association whose peer is unreachable would never end.
            let alone = !self.paths.iter().any(|p| self.paths.may_carry(p.id()));
            if chances || alone {
                self.paths[path].schedule_heartbeat(Some(now));
            }
            if alone {
                self.count_association_error();
            }
        } else {
            self.count_error(now, path, PathErrorKind::HeartbeatTimeout);
            if self.paths.awaited {
                self.paths[path].schedule_heartbeat(Some(now));
            } else if !self.is_over() && self.probes_at_once(path) {
                self.send_heartbeat(now, path);
            }
            self.hasten_probe(now, path);
        }
        self.end_confirmation(now);
    }
}
