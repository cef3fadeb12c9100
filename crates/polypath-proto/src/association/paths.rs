//! Learning, confirming, losing and choosing paths (RFC 9260 5.4, 6.4, 8.1, 8.2).

use std::net::{IpAddr, SocketAddr};

use super::Sender;
use crate::event::Event;
use crate::ids::PathId;
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::paths::Paths;
use crate::policy::congestion::NewPath;
use crate::policy::failover::PathErrorKind;
use crate::policy::retransmission::LostChunk;
use crate::shared::{Encapsulation, Shared};
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{Chunk, Packet};

/// Bytes of an IPv4, an IPv6 and a UDP header.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

impl Paths {
    /// Updates the path's addresses from a packet that has arrived on it.
    #[inline]
    pub(super) fn adopt_source(&mut self, path: PathId, from: &FourTuple, shared: &Shared) {
        let p = &self[path];
        if p.remote() == from.remote && p.local() == from.local.ip() {
            return;
        }
        if p.remote().ip() != from.remote.ip() {
            return;
        }
        // If the host has lost the path's local address, the address that received the packet
        // replaces it.
        let here = p.local() == from.local.ip();
        let moves = !here && !shared.has_address(p.local());
        self[path].adopt_addresses(from.local, from.remote, moves);
    }

    /// The path of an INIT ACK from an address that the application did not pass, but that lists
    /// one that it did (RFC 9260 5.1.2 D).
    #[cold]
    pub(super) fn path_of_init_ack(&self, packet: &Packet<'_>) -> Option<PathId> {
        let Some(Ok(Chunk::InitAck(init))) = packet.chunks().next() else { return None };
        let mut listed = init.parameters.iter().filter_map(|p| p.ok()?.address());
        listed.find_map(|ip| self.confirmed_to(ip)).map(Path::id)
    }

    /// The path that a packet arrived on, if it has never worked while another one does. An ABORT
    /// with a reflected tag then means that the peer does not know the address that it sees this
    /// side with on that path (behind a NAT, or bound to an unspecified address): it finds its
    /// associations by address. RFC 9260 8.5.1 B would end the association, which still works.
    pub(super) fn refused_path(&self, from: &FourTuple) -> Option<PathId> {
        let path = self.path_for(from)?;
        let works = self.any_is_active();
        (works && self[path].state() == PathState::Unconfirmed).then_some(path)
    }
}

impl Sender<'_> {
    /// Adds a path unless it exists; `None` if there are too many.
    pub(super) fn add_path(
        &mut self,
        now: Time,
        local: IpAddr,
        remote: SocketAddr,
    ) -> Option<PathId> {
        let exists = |p: &&Path| p.is_to(remote.ip()) && p.local() == local;
        if let Some(path) = self.paths.iter().find(exists) {
            return Some(path.id());
        }
        let id = self.paths.free_id(self.config.max_paths())?;
        let ip = if remote.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        let udp = match self.shared.config.encapsulation {
            Encapsulation::Udp { .. } => UDP_HEADER,
            Encapsulation::RawIp => 0,
        };
        let headers = ip + udp + self.shared.config.overhead;
        let max_packet = (usize::from(self.config.path_mtu()) - headers) / 4 * 4;
        let overhead = self.paths.overhead;
        let congestion = &mut self.sending.congestion;
        let mut window = |max_chunk, ssthresh, remote| {
            congestion.initial(&NewPath::new(now, id, (max_chunk, ssthresh, remote)))
        };
        let (sizes, constants) = ((max_packet, headers), self.config.constants());
        let mut path = Path::new(id, local, remote, sizes, constants, &mut window, now);
        path.reserve(overhead, &mut window);
        if self.sending.needs.delivery_samples {
            path.sample_delivery();
        }
        if self.config.scheduler().needs.delivery_rate {
            path.measure_delivery();
        }
        if self.sending.loss.watches_time() {
            // RFC 8985 7.2: "when the FlightSize is one segment, the sender MAY inflate the PTO by
            // TLP.max_ack_delay". A T3-rtx that expires earlier would cut that short.
            path.allow_sack_delay(self.config.sack_delay());
        }
        if self.paths.ssthresh > 0 && self.config.initial_ssthresh().is_none() {
            path.set_initial_ssthresh(self.paths.ssthresh);
        }
        let preferences = &self.shared.config.preferences;
        if let Some((_, preference)) = preferences.iter().find(|(ip, _)| *ip == local) {
            path.set_preference(*preference);
        }
        self.paths.insert(path, self.events);
        self.sending.fit(self.paths);
        if self.phase.synchronised {
            self.paths[id].schedule_heartbeat(Some(now));
        }
        Some(id)
    }

    /// Adopts the addresses that the peer has listed in the handshake (RFC 9260 5.1.2 C): "The
    /// receiver SHOULD use only these transport addresses". One of them has a path. `port` as in
    /// [`learn_addresses`](Self::learn_addresses).
    pub(super) fn set_peer_addresses(&mut self, now: Time, addresses: &[IpAddr], port: u16) {
        let others: Vec<IpAddr> =
            self.paths.remotes().filter(|ip| !addresses.contains(ip)).collect();
        others.into_iter().for_each(|ip| self.remove_paths_to(now, ip));
        self.paths.clear_pathless();
        self.learn_addresses(now, addresses, port);
        for ip in
            addresses.iter().filter(|ip| !self.paths.lead_to(**ip)).copied().collect::<Vec<_>>()
        {
            self.paths.add_pathless(SocketAddr::new(ip, port));
        }
    }

    /// Adds paths to addresses that the peer has listed (RFC 9260 5.1.2). `port` is the UDP port of
    /// the address that packets have arrived from; it is used for the others until they send from
    /// another one (RFC 6951 5.4).
    pub(super) fn learn_addresses(&mut self, now: Time, addresses: &[IpAddr], port: u16) {
        for (index, ip) in addresses.iter().enumerate() {
            let known = self.paths.lead_to(*ip);
            if known && !self.config.full_mesh() {
                continue;
            }
            let remote = SocketAddr::new(*ip, port);
            let shared = self.shared;
            let locals = &shared.config.addresses;
            let by_route = shared.config.routes.local_for(*ip, index, locals);
            if !known && let Some(local) = by_route {
                let local = self.idle_local_for(*ip, local).unwrap_or(local);
                self.add_path(now, local, remote);
            }
            if self.config.full_mesh() {
                let others: Vec<IpAddr> =
                    locals.iter().filter(|l| l.is_ipv4() == ip.is_ipv4()).copied().collect();
                for local in others {
                    self.add_path(now, local, remote);
                }
            }
            if by_route.is_none() && !self.paths.lead_to(*ip) {
                self.paths.add_pathless(remote);
            }
        }
        self.use_idle_locals(now);
    }

    /// The local addresses that paths may begin at, and none does.
    fn idle_locals(&self) -> Vec<IpAddr> {
        let busy = |local: &IpAddr| self.paths.present().any(|p| p.local() == *local);
        let sources = self.paths.sources(self.shared).iter();
        sources.filter(|local| !local.is_unspecified() && !busy(local)).copied().collect()
    }

    /// A local address without a path that reaches `remote` over a network of its own, if the one
    /// that the routes prefer has a path already.
    fn idle_local_for(&self, remote: IpAddr, preferred: IpAddr) -> Option<IpAddr> {
        let idle = self.idle_locals();
        if idle.is_empty() || !self.paths.present().any(|p| p.local() == preferred) {
            return None;
        }
        let all = self.shared.config.routes.all_for(remote, self.paths.sources(self.shared));
        all.into_iter().find(|local| idle.contains(local))
    }

    /// Gives each local address that has no path one to an address of the peer that it reaches over
    /// a network of its own, if there is one: to that with the fewest paths.
    fn use_idle_locals(&mut self, now: Time) {
        let idle = self.idle_locals();
        // Nothing but the loopback interface leads to a peer on the same host.
        if idle.is_empty() || self.paths.remotes().any(|ip| ip.is_loopback()) {
            return;
        }
        let mut remotes: Vec<SocketAddr> = Vec::new();
        for remote in self.paths.present().map(Path::remote) {
            if !remotes.iter().any(|known| known.ip() == remote.ip()) {
                remotes.push(remote);
            }
        }
        let (shared, locals) = (self.shared, self.paths.sources(self.shared).to_vec());
        let reached =
            |remote: SocketAddr| (remote, shared.config.routes.all_for(remote.ip(), &locals));
        let reached: Vec<_> = remotes.into_iter().map(reached).collect();
        for local in idle {
            let paths_to = |ip| self.paths.present().filter(|p| p.is_to(ip)).count();
            let near = reached.iter().filter(|(_, all)| all.contains(&local));
            if let Some((remote, _)) = near.min_by_key(|(remote, _)| paths_to(remote.ip())) {
                self.add_path(now, local, *remote);
            }
        }
    }

    /// A peer behind a NAT cannot list its addresses, because other hosts see different ones. If it
    /// listed none, a HEARTBEAT with the local tag reveals another address. Like every unconfirmed
    /// path, it carries no data before it has answered a HEARTBEAT (RFC 9260 5.4).
    #[cold]
    pub(super) fn learn_from_heartbeat(
        &mut self,
        now: Time,
        from: &FourTuple,
        packet: &Packet<'_>,
    ) -> Option<PathId> {
        let asks = matches!(packet.chunks().next(), Some(Ok(Chunk::Heartbeat(_))));
        if !asks || !self.phase.synchronised {
            return None;
        }
        self.add_path(now, from.local.ip(), from.remote)
    }

    /// Marks the path confirmed: the peer can be reached over it (RFC 9260 5.4).
    pub(super) fn confirm(&mut self, now: Time, path: PathId) {
        if self.paths[path].state() == PathState::Unconfirmed {
            self.paths[path].clear_errors();
            self.paths.set_state(now, path, PathState::Active, self.events);
            if self.phase.synchronised {
                self.model.procedures.schedule_heartbeat(self, now, path);
                self.paths.verify_next(now);
                self.measure_bandwidth(now, path);
            }
            self.paths.apply_requested_primary(now, self.events);
        }
        if self.phase.may_send_data {
            self.paths.start_mtu_search(now, path);
        }
    }

    /// Counts an error on `path` (RFC 9260 8.1, 8.2).
    pub(super) fn count_error(&mut self, now: Time, path: PathId, error: PathErrorKind) {
        if self.paths[path].state() == PathState::Removed {
            return self.count_association_error();
        }
        let of_association = self.model.procedures.counts_for_association(self.paths, path, error);
        self.count_path_error(now, path, error, of_association);
    }

    /// Counts an error on `path`, and one of the association if it is `of_association`.
    pub(super) fn count_path_error(
        &mut self,
        now: Time,
        path: PathId,
        error: PathErrorKind,
        of_association: bool,
    ) {
        self.paths[path].count_error();
        if of_association {
            self.paths.count_association_error();
        }
        if error == PathErrorKind::DataTimeout {
            self.verify_others(now);
        }
        if self.gives_up() {
            return;
        }
        self.paths.apply_failover(now, path, error, self.events);
    }

    /// Counts an error of the association alone (RFC 9260 8.1).
    pub(super) fn count_association_error(&mut self) {
        self.paths.count_association_error();
        self.gives_up();
    }

    /// True if the error count of the association has exceeded Association.Max.Retrans: an ABORT
    /// replaces all chunks that wait, and the association ends after the current event (RFC 9260
    /// 8.1).
    fn gives_up(&mut self) -> bool {
        let over = self.paths.exceed(self.config.association_max_retrans());
        if over {
            self.outbox.clear();
            self.outbox.push(self.paths.for_control(), Control::Abort(None));
        }
        over
    }

    /// The path for a packet meant for `path`: another one if that is removed or must not be used.
    /// `None` if there is no usable path.
    pub(super) fn redirected(&self, path: PathId) -> Option<PathId> {
        self.paths.redirected(path, self.shared, self.model.rules.verifies_addresses)
    }

    /// The path for a retransmission.
    pub(super) fn path_for_lost(&mut self, lost: &LostChunk) -> PathId {
        let view = self.paths.view();
        let path = if view.iter().any(|p| p.state == PathState::Active) {
            self.sending.retransmission.path(lost, view, self.rng)
        } else {
            self.paths.failover.retransmission(lost.last_path, view)
        };
        // The path it was last sent on may have been removed.
        if self.paths.may_carry(path) { path } else { self.paths.current() }
    }

    /// The path for a control chunk that was not answered on `old`.
    pub(super) fn alternate_for_control(&self, old: PathId) -> PathId {
        let path = crate::policy::retransmission::alternate(old, self.paths.view());
        self.redirected(path).unwrap_or(path)
    }

    /// Gives up the path that a refused packet was sent on; false if no other one works.
    pub(super) fn leave_refused_path(&mut self, from: &FourTuple) -> bool {
        let Some(path) = self.paths.path_for(from) else { return true };
        if !self.paths.another_is_active(path) {
            return false;
        }
        self.give_up_refused(path);
        true
    }

    /// Gives up a path on which the peer does not know the association.
    pub(super) fn give_up_refused(&mut self, path: PathId) {
        if self.paths.may_carry(path) {
            self.paths.set_state(self.now, path, PathState::Inactive, self.events);
        }
        self.events.push(Event::PathRefused { path });
    }
}
