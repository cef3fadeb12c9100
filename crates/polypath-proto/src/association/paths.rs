//! Learning, confirming, losing and choosing paths (RFC 9260 5.4, 6.4, 8.1, 8.2).

use std::net::{IpAddr, SocketAddr};

use super::Association;
use super::state::State;
use crate::config::refused_thresholds;
use crate::constants::Thresholds;
use crate::error::PathError;
use crate::event::{CloseReason, Event};
use crate::ids::PathId;
use crate::path::{Path, PathState, PathView, PathsView};
use crate::policy::failover::PathErrorKind;
use crate::policy::retransmission::LostChunk;
use crate::shared::Encapsulation;
use crate::stats::PathStats;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{Chunk, Packet};

/// Bytes of an IPv4, an IPv6 and a UDP header.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

impl Association {
    /// The state of every path, in the order of their ids.
    pub fn paths(&self) -> impl Iterator<Item = PathView> + '_ {
        self.paths.iter().map(Path::view)
    }

    /// The state of one path.
    pub fn path(&self, id: PathId) -> Option<PathView> {
        self.paths.get(id.index()).map(Path::view)
    }

    /// A path's counters.
    pub fn path_stats(&self, id: PathId) -> Option<PathStats> {
        self.paths.get(id.index()).map(|p| p.stats)
    }

    /// The primary path (RFC 9260 6.4).
    pub const fn primary(&self) -> PathId {
        self.primary
    }

    /// The path for new data: the primary, or the one that the failover policy has chosen instead.
    pub const fn current_path(&self) -> PathId {
        self.current
    }

    /// Makes another path the primary (RFC 9260 11.1.5, SETPRIMARY).
    ///
    /// # Errors
    ///
    /// There is no such path, or it is not confirmed yet.
    pub fn set_primary(&mut self, now: Time, path: PathId) -> Result<(), PathError> {
        let p = self.paths.get(path.index()).ok_or(PathError::NoSuchPath(path))?;
        if p.state() == PathState::Removed {
            return Err(PathError::NoSuchPath(path));
        }
        if p.state() == PathState::Unconfirmed {
            return Err(PathError::Unconfirmed(path));
        }
        self.change_primary(now, path);
        Ok(())
    }

    /// Sets the error thresholds of one path, or with `None` of all present and future ones. They
    /// apply from the next error on.
    ///
    /// # Errors
    ///
    /// There is no such path, or the failover mechanism would ignore `change_primary` or must
    /// refuse it (RFC 7829 5).
    pub fn set_thresholds(
        &mut self,
        path: Option<PathId>,
        thresholds: Thresholds,
    ) -> Result<(), PathError> {
        if let Some(error) = refused_thresholds(self.config.failover(), thresholds) {
            return Err(error.into());
        }
        match path {
            Some(id) => {
                let p = self.paths.get_mut(id.index()).ok_or(PathError::NoSuchPath(id))?;
                p.set_thresholds(thresholds);
            }
            None => {
                self.config.constants.set_thresholds(thresholds);
                self.paths.iter_mut().for_each(|p| p.set_thresholds(thresholds));
            }
        }
        Ok(())
    }

    /// Sets Association.Max.Retrans: more than `errors` consecutive errors over all paths end the
    /// association (RFC 9260 8.1). It applies from the next error on.
    pub const fn set_association_max_retrans(&mut self, errors: u32) {
        self.config.constants.association_max_retrans = errors;
    }

    /// Sets the share of lost packets on a path, per billion packets: the oracle of RTX-LOSSRATE
    /// (Iyengar 2004, II), which a simulator can provide. Without it, the policy uses the loss
    /// observed on the path.
    ///
    /// # Errors
    ///
    /// There is no such path.
    pub fn set_loss_rate(&mut self, path: PathId, per_billion: u32) -> Result<(), PathError> {
        let p = self.paths.get_mut(path.index()).ok_or(PathError::NoSuchPath(path))?;
        p.set_known_loss(per_billion);
        Ok(())
    }

    pub(super) fn change_primary(&mut self, now: Time, path: PathId) {
        if self.primary != path {
            self.primary = path;
            self.tell(Event::PrimaryChanged { path });
            self.choose_current(now);
        }
    }

    pub(super) fn paths_view(&self) -> PathsView<'_> {
        PathsView { paths: &self.paths, primary: self.primary, current: self.current }
    }

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
        let there = self.paths.iter().filter(|p| p.state() != PathState::Removed).count();
        if there >= usize::from(self.config.max_paths()) {
            return None;
        }
        let free = self.paths.iter().position(Path::is_free);
        // The path id in a HEARTBEAT has six bits.
        let index = free.or_else(|| (self.paths.len() < 64).then_some(self.paths.len()))?;
        let id = PathId(index as u8);
        let ip = if remote.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        let udp = match self.shared.config.encapsulation {
            Encapsulation::Udp { .. } => UDP_HEADER,
            Encapsulation::RawIp => 0,
        };
        let headers = ip + udp + self.shared.config.overhead;
        let max_packet = (usize::from(self.config.path_mtu()) - headers) / 4 * 4;
        let overhead = self.overhead();
        let window = |max_chunk, ssthresh, remote| {
            self.policies.congestion.initial(max_chunk, ssthresh, remote)
        };
        let sizes = (max_packet, headers);
        let mut path = Path::new(id, local, remote, sizes, self.config.constants(), window, now);
        path.reserve(overhead, window);
        if self.policies.scheduler.measures_delivery() {
            path.measure_delivery();
        }
        if self.paths.iter().any(|p| p.is_to(remote.ip()) && p.is_confirmed()) {
            path.confirm_address();
        }
        if self.ssthresh > 0 && self.config.initial_ssthresh().is_none() {
            path.set_initial_ssthresh(self.ssthresh);
        }
        match self.paths.get_mut(index) {
            Some(slot) => *slot = path,
            None => self.paths.push(path),
        }
        self.path_changes += 1;
        self.update_largest_payload();
        self.tell(Event::PathAdded { path: id });
        if self.state.is_synchronised() {
            self.paths[id.index()].schedule_heartbeat(Some(now));
        }
        Some(id)
    }

    /// Adopts the addresses that the peer has listed in the handshake (RFC 9260 5.1.2 C): "The
    /// receiver SHOULD use only these transport addresses". One of them has a path. `port` as in
    /// [`learn_addresses`](Self::learn_addresses).
    pub(super) fn set_peer_addresses(&mut self, now: Time, addresses: &[IpAddr], port: u16) {
        let others: Vec<IpAddr> = self.remotes().filter(|ip| !addresses.contains(ip)).collect();
        others.into_iter().for_each(|ip| self.remove_paths_to(now, ip));
        self.pathless.clear();
        self.path_changes += 1;
        self.learn_addresses(now, addresses, port);
        for ip in addresses.iter().filter(|ip| !self.knows(**ip)).copied().collect::<Vec<_>>() {
            self.remember_pathless(SocketAddr::new(ip, port));
        }
    }

    /// Whether this is one of the peer's addresses, with a path or without.
    pub(super) fn is_peer_address(&self, ip: IpAddr) -> bool {
        self.peer_addresses().any(|known| known == ip)
    }

    /// Updates the path's addresses from a packet that has arrived on it.
    #[inline]
    pub(super) fn hear_from(&mut self, path: PathId, from: &FourTuple) {
        let p = &self.paths[path.index()];
        if p.remote().ip() != from.remote.ip() {
            return;
        }
        // If the host has lost the path's local address, the address that received the packet
        // replaces it.
        let here = p.local() == from.local.ip();
        if here && p.remote().port() == from.remote.port() {
            return;
        }
        let moves = !here && !self.is_here(p.local());
        self.paths[path.index()].heard_from(from.local, from.remote, moves);
    }

    /// The path of an INIT ACK from an address that the application did not pass, but that lists
    /// one that it did (RFC 9260 5.1.2 D).
    #[cold]
    pub(super) fn path_of_init_ack(&self, packet: &Packet<'_>) -> Option<PathId> {
        let Some(Ok(Chunk::InitAck(init))) = packet.chunks().next() else { return None };
        if !matches!(self.state, State::CookieWait(_)) {
            return None;
        }
        let mut listed = init.parameters.iter().filter_map(|p| p.ok()?.address());
        listed
            .find_map(|ip| self.paths.iter().find(|p| p.is_confirmed() && p.is_to(ip)))
            .map(Path::id)
    }

    /// Adds paths to addresses that the peer has listed (RFC 9260 5.1.2). `port` is the UDP port of
    /// the address that packets have arrived from; it is used for the others until they send from
    /// another one (RFC 6951 5.4).
    pub(super) fn learn_addresses(&mut self, now: Time, addresses: &[IpAddr], port: u16) {
        for (index, ip) in addresses.iter().enumerate() {
            let known = self.knows(*ip);
            if known && !self.config.full_mesh() {
                continue;
            }
            let remote = SocketAddr::new(*ip, port);
            let shared = std::sync::Arc::clone(&self.shared);
            let locals = &shared.config.addresses;
            let by_route = shared.config.routes.local_for(*ip, index, locals);
            if !known && let Some(local) = by_route {
                self.add_path(now, local, remote);
            }
            if self.config.full_mesh() {
                let others: Vec<IpAddr> =
                    locals.iter().filter(|l| l.is_ipv4() == ip.is_ipv4()).copied().collect();
                for local in others {
                    self.add_path(now, local, remote);
                }
            }
            if by_route.is_none() && !self.knows(*ip) {
                self.remember_pathless(remote);
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
        if !asks || !self.peer_lists_none || !self.state.is_synchronised() {
            return None;
        }
        self.add_path(now, from.local.ip(), from.remote)
    }

    /// The path that a packet arrived on, if it has never worked while another one does. An ABORT
    /// with a reflected tag then means that the peer does not know the address that it sees this
    /// side with on that path (behind a NAT, or bound to an unspecified address): it finds its
    /// associations by address. RFC 9260 8.5.1 B would end the association, which still works.
    pub(super) fn refused_path(&self, from: &FourTuple) -> Option<PathId> {
        let path = self.path_for(from)?;
        let works = self.paths.iter().any(|p| p.state() == PathState::Active);
        (works && self.paths[path.index()].state() == PathState::Unconfirmed).then_some(path)
    }

    /// The path that a packet arrived on: the one with its pair of addresses, or else one with its
    /// remote address, because the peer may have paired them differently.
    pub(super) fn path_for(&self, from: &FourTuple) -> Option<PathId> {
        let (local, remote) = (from.local.ip(), from.remote.ip());
        let pair = |p: &&Path| p.is_to(remote) && p.local() == local;
        let same_remote = |p: &&Path| p.is_to(remote);
        self.paths.iter().find(pair).or_else(|| self.paths.iter().find(same_remote)).map(Path::id)
    }

    /// Marks the path confirmed: the peer can be reached over it (RFC 9260 5.4).
    pub(super) fn confirm(&mut self, now: Time, path: PathId) {
        if self.paths[path.index()].state() == PathState::Unconfirmed {
            self.paths[path.index()].clear_errors();
            self.set_path_state(now, path, PathState::Active);
            if self.state.is_synchronised() {
                self.schedule_heartbeat(now, path);
                self.verify_next(now);
                self.measure_bandwidth(now, path);
            }
            self.grant_wish(now);
        }
        self.start_mtu_search(now, path);
    }

    pub(super) fn set_path_state(&mut self, now: Time, path: PathId, to: PathState) {
        let p = &mut self.paths[path.index()];
        let from = p.set_state(now, to);
        if from == to {
            return;
        }
        if to == PathState::Inactive {
            p.stats.failures += 1;
        }
        self.tell(Event::PathState { path, from, to, at: now });
        self.choose_current(now);
    }

    /// Lets the failover policy choose the path for new data.
    pub(super) fn choose_current(&mut self, now: Time) {
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let mut path = self.policies.failover.current(view);
        if self.paths[path.index()].state() == PathState::Removed {
            path = self.stand_in();
        }
        if path != self.current {
            self.current = path;
            self.tell(Event::CurrentPath { path, at: now });
        }
    }

    /// Clears the errors of `path`: the peer has acknowledged something that was sent on it (RFC
    /// 9260 8.1, 8.2).
    pub(super) fn answered(&mut self, now: Time, path: PathId) {
        self.error_count = 0;
        let p = &mut self.paths[path.index()];
        p.clear_errors();
        // RFC 9260 5.4: only a HEARTBEAT ACK or the handshake confirms a path.
        if matches!(p.state(), PathState::Unconfirmed | PathState::Active | PathState::Removed) {
            return;
        }
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let state = self.policies.failover.after_answer(&view.path(path), view);
        let primary = self.policies.failover.primary_after_answer(view);
        self.change_primary(now, primary);
        self.set_path_state(now, path, state);
    }

    /// Counts an error on `path` (RFC 9260 8.1, 8.2).
    pub(super) fn count_error(&mut self, now: Time, path: PathId, error: PathErrorKind) {
        if self.paths[path.index()].state() == PathState::Removed {
            return self.count_association_error();
        }
        let p = &mut self.paths[path.index()];
        p.count_error();
        let counts = if self.is_ns2() {
            // An association in the dormant state never ends (Caro 2006, failover).
            self.paths[path.index()].state() != PathState::Inactive
        } else {
            // RFC 9260 8.1: "Unacknowledged HEARTBEAT chunks observed on paths different from the
            // path currently used for data transfer SHOULD NOT increment the association error
            // counter".
            error == PathErrorKind::DataTimeout || path == self.current
        };
        self.error_count += u32::from(counts);
        if error == PathErrorKind::DataTimeout {
            self.verify_others(now);
        }
        if self.error_count > self.config.association_max_retrans() {
            self.send_abort(None);
            return self.become_closed(CloseReason::PeerUnreachable);
        }
        self.apply_failover(now, path, error);
    }

    /// Applies the failover policy after an error on `path`: to its state, the path for new data
    /// and the primary.
    pub(super) fn apply_failover(&mut self, now: Time, path: PathId, error: PathErrorKind) {
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let state = self.policies.failover.after_error(&view.path(path), error, view);
        self.set_path_state(now, path, state);
        self.choose_current(now);
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let primary = self.policies.failover.primary(view);
        self.change_primary(now, primary);
    }

    /// The path for a retransmission.
    pub(super) fn path_for_lost(&mut self, lost: &LostChunk) -> PathId {
        let view = PathsView { paths: &self.paths, primary: self.primary, current: self.current };
        let path = if view.iter().any(|p| p.state == PathState::Active) {
            self.policies.retransmission.path(lost, view, &mut self.rng)
        } else {
            self.policies.failover.retransmission(lost.last_path, view)
        };
        // The path it was last sent on may have been removed.
        if self.may_carry(path) { path } else { self.current }
    }

    /// The path for a control chunk that is not a reply: the one for new data, or an active path
    /// with fewer errors. The chunks that end an association follow its last data, whose
    /// retransmissions may have left a path that is about to fail.
    pub(super) fn path_for_control(&self) -> PathId {
        let errors = self.path(self.current).map_or(0, |p| p.error_count);
        let better = |p: &PathView| p.state == PathState::Active && p.error_count < errors;
        let best = self.paths().filter(better).min_by_key(|p| p.error_count);
        best.map_or(self.current, |p| p.id)
    }

    /// Whether the path's remote address is CONFIRMED (RFC 9260 5.4).
    pub(super) fn is_confirmed(&self, path: PathId) -> bool {
        let p = &self.paths[path.index()];
        let remote = p.remote().ip();
        p.is_confirmed() || self.paths.iter().any(|p| p.is_to(remote) && p.is_confirmed())
    }

    /// The path for a control chunk that was not answered on `old`.
    pub(super) fn alternate_for_control(&self, old: PathId) -> PathId {
        let path = crate::policy::retransmission::alternate(old, self.paths_view());
        self.redirected(path).unwrap_or(path)
    }
}
