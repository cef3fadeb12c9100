//! Packetization layer path MTU discovery (RFC 9260 7.3; RFC 8899, for SCTP: 6.2): HEARTBEATs in
//! packets that PAD chunks (RFC 4820) fill up to the probed size. The search itself is part of the
//! path (`path/mtu.rs`).
//!
//! Messages are cut for the smallest of all paths, because a fragment cannot be cut again (RFC 9260
//! 6.9): its retransmission may need another path. If the MTU of a path has decreased meanwhile, IP
//! may fragment the packet.

use super::Sender;
use crate::ids::PathId;
use crate::outbox::Control;
use crate::path::PathState;
use crate::paths::Paths;
use crate::time::Time;

impl Paths {
    /// Starts the search on all paths that are confirmed and work: data may be sent.
    pub(super) fn start_mtu_searches(&mut self, now: Time) {
        for path in self.ids() {
            self.start_mtu_search(now, path);
        }
    }

    /// Starts the search on a path if it is confirmed and works.
    pub(super) fn start_mtu_search(&mut self, now: Time, path: PathId) {
        let p = &mut self[path];
        if !matches!(p.state(), PathState::Unconfirmed | PathState::Removed)
            && let Some(search) = &mut p.mtu_search
        {
            search.start(now);
        }
    }
}

impl Sender<'_> {
    pub(super) fn handle_mtu_timer(&mut self, now: Time, path: PathId) {
        let p = &mut self.paths[path];
        let (rto, before) = (p.rto(), p.max_packet());
        let Some(search) = &mut p.mtu_search else { return };
        if search.next_timeout().is_none_or(|t| t > now) {
            return;
        }
        let probe = search.expire(now, rto);
        if search.size() != before {
            self.mtu_changed(path);
            // Chunks that were too large are known to be lost.
            self.paths[path].hasten_t3(now);
        }
        if let Some(size) = probe {
            self.outbox.push(path, Control::MtuProbe(None, now));
            self.outbox.push(path, Control::MtuProbe(Some(size), now));
        }
    }

    /// Processes the answer to a packet of a probe.
    pub(super) fn handle_mtu_answer(&mut self, now: Time, path: PathId, sent: Time, small: bool) {
        let p = &mut self.paths[path];
        let Some(search) = p.mtu_search.as_mut().filter(|s| s.awaits(sent)) else {
            self.stats.dropped += 1;
            return;
        };
        if search.answered(now, sent, small) {
            self.mtu_changed(path);
        }
        // The answer is a HEARTBEAT ACK too (RFC 9260 8.3).
        self.paths[path].sample_rtt(now.since(sent));
        self.paths.answered(now, path, self.events);
    }

    /// A packet to `remote` was too large for the network. The ICMP message quotes one of this
    /// association's packets (RFC 8899 4.6.1), or this host itself reports it.
    pub(super) fn handle_too_big(&mut self, now: Time, remote: std::net::IpAddr, mtu: u16) {
        for path in self.paths.ids() {
            let p = &mut self.paths[path];
            let packet = usize::from(mtu).saturating_sub(p.headers());
            if p.is_to(remote)
                && p.mtu_search.as_mut().is_some_and(|search| search.too_big(now, packet))
            {
                self.mtu_changed(path);
            }
        }
    }

    fn mtu_changed(&mut self, path: PathId) {
        self.paths[path].adopt_mtu();
        self.sending.fit(self.paths);
    }
}
