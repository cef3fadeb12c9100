//! Paths that come and go with their addresses.

use std::net::{IpAddr, SocketAddr};

use super::Association;
use crate::association::control::Control;
use crate::event::Event;
use crate::path::Path;
use crate::policy::PathState;
use crate::policy::retransmission::LossCause;
use crate::{FourTuple, PathId, Time};

impl Association {
    /// Paths from a new local address: to the peer's addresses that are reached from there, or to the one
    /// in use. Only ASCONF may leave on them for now (RFC 5061 5.3 F1).
    pub(super) fn add_paths_from(&mut self, now: Time, local: IpAddr) {
        let shared = std::sync::Arc::clone(&self.shared);
        let config = &shared.config;
        let locals = config.host_addresses.as_ref().unwrap_or(&config.addresses);
        let mut remotes: Vec<SocketAddr> = Vec::new();
        for path in self.paths.iter().filter(|p| p.state() != PathState::Removed) {
            let remote = path.remote();
            if remote.is_ipv4() == local.is_ipv4() && !remotes.iter().any(|r| r.ip() == remote.ip())
            {
                remotes.push(remote);
            }
        }
        let current = self.paths[self.current.index()].remote();
        let mut any = self.reach_from(now, local);
        for (index, remote) in remotes.iter().enumerate() {
            let routed = shared.config.routes.local_for(remote.ip(), index, locals) == Some(local);
            if self.config.full_mesh() || routed {
                any |= self.add_path(now, local, *remote).is_some();
            }
        }
        // Not the nearest one to any; but not where the host knows that no way leads.
        remotes.retain(|r| shared.config.routes.local_for(r.ip(), 0, &[local]).is_some());
        if !any {
            let other = remotes.iter().find(|r| r.ip() == current.ip()).or_else(|| remotes.first());
            if let Some(remote) = other {
                self.add_path(now, local, *remote);
            }
        }
        let untold = self.addresses.as_ref().is_some_and(|a| !a.told.contains(&local));
        for path in self.paths.iter_mut().filter(|p| untold && p.is_from(local)) {
            path.schedule_heartbeat(None);
        }
    }

    /// True if addresses of the peer that nothing reached are reached from a new local one.
    fn reach_from(&mut self, now: Time, local: IpAddr) -> bool {
        let shared = std::sync::Arc::clone(&self.shared);
        let locals = &shared.config.addresses;
        let mut any = false;
        for (index, remote) in std::mem::take(&mut self.pathless).into_iter().enumerate() {
            let routed = shared.config.routes.local_for(remote.ip(), index, locals) == Some(local);
            let meshed = self.config.full_mesh() && remote.is_ipv4() == local.is_ipv4();
            let reached = (routed || meshed) && self.add_path(now, local, remote).is_some();
            if !reached && !self.knows(remote.ip()) {
                self.remember_pathless(remote);
            }
            any |= reached;
        }
        any
    }

    /// There is no path to this address of the peer. Where addresses come and go, there may be one later.
    pub(in crate::association) fn remember_pathless(&mut self, remote: SocketAddr) {
        // As many as a handshake lists at most.
        const MOST: usize = 65;
        if !self.is_peer_address(remote.ip()) && self.pathless.len() < MOST {
            self.pathless.push(remote);
            self.path_changes += 1;
        }
    }

    /// True if it was an address of the peer without a path.
    pub(super) fn forget_pathless(&mut self, ip: IpAddr) -> bool {
        let before = self.pathless.len();
        self.pathless.retain(|remote| remote.ip() != ip);
        let gone = self.pathless.len() != before;
        self.path_changes += u64::from(gone);
        gone
    }

    /// The host has this address, as far as the endpoint has been told.
    pub(in crate::association) fn is_here(&self, local: IpAddr) -> bool {
        let config = &self.shared.config;
        match &config.host_addresses {
            Some(there) => local.is_loopback() || there.contains(&local),
            None => config.addresses.iter().any(|ip| ip.is_unspecified() || *ip == local),
        }
    }

    /// No path is from an address that the host still has: there are some from new ones then, although the
    /// peer cannot be told of them yet.
    pub(super) fn find_source(&mut self, now: Time) {
        let there = |p: &Path| p.state() != PathState::Removed;
        if self.paths.iter().any(|p| there(p) && self.is_here(p.local())) {
            return;
        }
        self.wanted_addresses().into_iter().for_each(|ip| self.add_paths_from(now, ip));
    }

    /// The peer knows a local address now: the paths from it are asked whether they work.
    pub(super) fn open_paths_from(&mut self, now: Time, local: IpAddr) {
        for path in self.paths.iter_mut().filter(|p| p.is_from(local)) {
            if path.state() == PathState::Unconfirmed {
                path.schedule_heartbeat(Some(now));
            }
        }
    }

    /// A local address goes. Remote addresses that were reached from there alone are from now on reached
    /// from another one.
    pub(super) fn remove_paths_from(&mut self, now: Time, local: IpAddr) {
        let gone: Vec<PathId> =
            self.paths.iter().filter(|p| p.is_from(local)).map(|p| p.id()).collect();
        let remotes: Vec<SocketAddr> =
            gone.iter().map(|id| self.paths[id.index()].remote()).collect();
        self.remove_paths(now, &gone);
        for remote in remotes {
            if !self.knows(remote.ip()) {
                self.learn_addresses(now, &[remote.ip()], remote.port());
            }
        }
    }

    /// An address of the peer's goes.
    pub(in crate::association) fn remove_paths_to(&mut self, now: Time, remote: IpAddr) {
        let gone: Vec<PathId> =
            self.paths.iter().filter(|p| p.is_to(remote)).map(|p| p.id()).collect();
        self.remove_paths(now, &gone);
    }

    /// Their data goes elsewhere; their numbers are free for other paths. The last path stays.
    fn remove_paths(&mut self, now: Time, gone: &[PathId]) {
        let stays = |p: &Path| p.state() != PathState::Removed && !gone.contains(&p.id());
        if !self.paths.iter().any(stays) {
            return;
        }
        for &path in gone {
            let i = path.index();
            for sent in self.paths[i].take_sent_here() {
                let Some(chunk) = self.sender.flight.get(sent.tsn) else { continue };
                let here = chunk.path == path && chunk.transmissions == sent.transmissions;
                let size = chunk.size();
                if here && self.sender.flight.mark_lost(sent.tsn, LossCause::Timeout) {
                    self.sender.peer_rwnd = self.sender.peer_rwnd.saturating_add(size);
                    self.paths[i].data_lost(size);
                }
            }
            self.paths[i].retire();
            let from = self.paths[i].set_state(now, PathState::Removed);
            let to = PathState::Removed;
            self.tell(Event::PathState { path, from, to, at: now });
        }
        self.path_changes += 1;
        if gone.contains(&self.primary) {
            let path = self.stand_in();
            self.primary = path;
            self.tell(Event::PrimaryChanged { path });
        }
        self.choose_current(now);
        self.update_largest_payload();
        // One of those that never answered has to: without heartbeats, or after its last probe, nothing else
        // probes it. During the handshake, RFC 9260 5.1 C: "MUST NOT send any other packets to the peer".
        if self.state.is_synchronised() && !self.paths.iter().any(|p| self.may_carry(p.id())) {
            for path in (0..self.paths.len() as u8).map(PathId) {
                let asks = self.paths[path.index()].state() == PathState::Unconfirmed
                    && !self.is_untold(path);
                if asks {
                    self.paths[path.index()].schedule_heartbeat(Some(now));
                }
            }
        }
        self.end_confirmation(now);
    }

    /// The association is ending, and the peer is told of no more changes: it ends over the addresses that are
    /// there.
    pub(super) fn leave_gone_addresses(&mut self, now: Time) {
        let mut gone: Vec<IpAddr> = Vec::new();
        for path in self.paths.iter().filter(|p| p.state() != PathState::Removed) {
            if !self.is_here(path.local()) && !gone.contains(&path.local()) {
                gone.push(path.local());
            }
        }
        gone.into_iter().for_each(|ip| self.remove_paths_from(now, ip));
    }

    /// Some path that is there, an active one if there is.
    pub(in crate::association) fn stand_in(&self) -> PathId {
        let there = |state: PathState| self.paths.iter().find(|p| p.state() == state);
        let best = there(PathState::Active)
            .or_else(|| there(PathState::PotentiallyFailed))
            .or_else(|| there(PathState::Inactive))
            .or_else(|| there(PathState::Unconfirmed));
        best.map_or(self.primary, |p| p.id())
    }

    /// A local address that this host has, and that the peer is not being told to forget; any, if addresses do
    /// not come and go.
    pub(in crate::association) fn stays(&self, local: IpAddr) -> bool {
        self.addresses.as_ref().is_none_or(|a| {
            self.is_here(local) && !a.ours.as_ref().is_some_and(|ours| ours.deletes(local))
        })
    }

    /// An ABORT with a reflected tag says that the peer does not know the address that it saw, or was sent to:
    /// packets that were on their way when an address went are strangers' to it (RFC 5061 5.3.1). Where it
    /// concerns an address that stays, the path is given up; only the last one ends the association.
    pub(in crate::association) fn is_abort_of_a_change(&mut self, from: &FourTuple) -> bool {
        if self.addresses.is_none() {
            return false;
        }
        if !self.stays(from.local.ip()) {
            return true;
        }
        let Some(path) = self.path_for(from) else { return true };
        let works = |p: &Path| p.state() == PathState::Active && p.id() != path;
        if !self.paths.iter().any(works) {
            return false;
        }
        self.give_up_refused(path);
        true
    }

    /// Data may go there: it has been shown to reach the peer, and is still there.
    pub(in crate::association) fn may_carry(&self, path: PathId) -> bool {
        let state = self.paths[path.index()].state();
        !matches!(state, PathState::Unconfirmed | PathState::Removed)
    }

    /// SACKs and DATA may leave there: not to an address that has yet to be confirmed (RFC 9260 5.4),
    /// nor from one that has (RFC 5061 5.3 F1).
    pub(in crate::association) fn may_answer(&self, path: PathId) -> bool {
        match self.addresses {
            None => self.is_ns2() || self.is_confirmed(path),
            Some(_) => self.may_carry(path),
        }
    }

    /// The chunk must not be sent to the path's address, which has yet to be confirmed (RFC 9260 5.4).
    pub(in crate::association) fn is_forbidden(&self, path: PathId, control: &Control) -> bool {
        !control.verifies() && !self.is_ns2() && !self.is_confirmed(path)
    }

    /// The peer does not know yet that this path's address is ours.
    pub(in crate::association) fn is_untold(&self, path: PathId) -> bool {
        let p = &self.paths[path.index()];
        // Asked for every packet: the rest concerns few.
        if p.state() != PathState::Unconfirmed {
            return false;
        }
        let Some(addresses) = &self.addresses else { return false };
        // Of an endpoint that is bound to all addresses, any may be the source; but one that is to be told.
        let config = &self.shared.config;
        let any = config.addresses.iter().any(IpAddr::is_unspecified);
        (!any || config.host_addresses.is_some())
            && !addresses.told.contains(&p.local())
            && !addresses.idle.contains(&p.local())
    }

    /// Where something goes that was meant for `path`: elsewhere, if that is gone. `None` if there is
    /// nothing that it may leave on.
    pub(in crate::association) fn redirected(&self, path: PathId) -> Option<PathId> {
        let usable = |path: &PathId| {
            self.paths[path.index()].state() != PathState::Removed
                && !self.is_untold(*path)
                && (self.is_ns2() || self.is_confirmed(*path))
        };
        let first = [path, self.path_for_control(), self.stand_in()];
        first.into_iter().chain(self.paths.iter().map(Path::id)).find(usable)
    }
}
