//! Adding and removing paths when addresses change.

use std::net::{IpAddr, SocketAddr};

use crate::association::Association;
use crate::ids::PathId;
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::policy::retransmission::LossCause;
use crate::time::Time;
use crate::transmit::FourTuple;

impl Association {
    /// Adds paths from a new local address to those of the peer's addresses that the routes reach
    /// from it, or else to the one in use. Only ASCONF may be sent on them for now (RFC 5061 5.3
    /// F1).
    pub(super) fn add_paths_from(&mut self, now: Time, local: IpAddr) {
        let shared = std::sync::Arc::clone(&self.shared);
        let config = &shared.config;
        let locals = config.host_addresses.as_ref().unwrap_or(&config.addresses);
        let mut remotes: Vec<SocketAddr> = Vec::new();
        for path in self.paths.present() {
            let remote = path.remote();
            if remote.is_ipv4() == local.is_ipv4() && !remotes.iter().any(|r| r.ip() == remote.ip())
            {
                remotes.push(remote);
            }
        }
        let current = self.paths[self.paths.current()].remote();
        let mut any = self.reach_from(now, local);
        for (index, remote) in remotes.iter().enumerate() {
            let routed = shared.config.routes.local_for(remote.ip(), index, locals) == Some(local);
            if self.config.full_mesh() || routed {
                any |= self.add_path(now, local, *remote).is_some();
            }
        }
        // The routes prefer this address for none of them: add one path all the same, but only to a
        // remote address that has a route from it.
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

    /// Adds paths from a new local address to the peer's addresses that had none; true if it added
    /// any.
    fn reach_from(&mut self, now: Time, local: IpAddr) -> bool {
        let shared = std::sync::Arc::clone(&self.shared);
        let locals = &shared.config.addresses;
        let mut any = false;
        for (index, remote) in self.paths.take_pathless().into_iter().enumerate() {
            let routed = shared.config.routes.local_for(remote.ip(), index, locals) == Some(local);
            let meshed = self.config.full_mesh() && remote.is_ipv4() == local.is_ipv4();
            let reached = (routed || meshed) && self.add_path(now, local, remote).is_some();
            if !reached && !self.paths.lead_to(remote.ip()) {
                self.paths.remember_pathless(remote);
            }
            any |= reached;
        }
        any
    }

    /// Whether the host has this local address, according to the endpoint's configuration.
    pub(in crate::association) fn is_here(&self, local: IpAddr) -> bool {
        let config = &self.shared.config;
        match &config.host_addresses {
            Some(there) => local.is_loopback() || there.contains(&local),
            None => config.addresses.iter().any(|ip| ip.is_unspecified() || *ip == local),
        }
    }

    /// If the host has lost the local addresses of all paths, adds paths from new ones, although
    /// they cannot be announced to the peer yet.
    pub(super) fn find_source(&mut self, now: Time) {
        if self.paths.present().any(|p| self.is_here(p.local())) {
            return;
        }
        self.wanted_addresses().into_iter().for_each(|ip| self.add_paths_from(now, ip));
    }

    /// The peer has learned a local address: probe the paths from it.
    pub(super) fn open_paths_from(&mut self, now: Time, local: IpAddr) {
        for path in self.paths.iter_mut().filter(|p| p.is_from(local)) {
            if path.state() == PathState::Unconfirmed {
                path.schedule_heartbeat(Some(now));
            }
        }
    }

    /// Removes the paths from a local address. Remote addresses that only this one reached get a
    /// path from another one.
    pub(super) fn remove_paths_from(&mut self, now: Time, local: IpAddr) {
        let gone: Vec<PathId> =
            self.paths.iter().filter(|p| p.is_from(local)).map(|p| p.id()).collect();
        let remotes: Vec<SocketAddr> = gone.iter().map(|id| self.paths[*id].remote()).collect();
        self.remove_paths(now, &gone);
        for remote in remotes {
            if !self.paths.lead_to(remote.ip()) {
                self.learn_addresses(now, &[remote.ip()], remote.port());
            }
        }
    }

    /// Removes the paths to an address of the peer.
    pub(in crate::association) fn remove_paths_to(&mut self, now: Time, remote: IpAddr) {
        let gone: Vec<PathId> =
            self.paths.iter().filter(|p| p.is_to(remote)).map(|p| p.id()).collect();
        self.remove_paths(now, &gone);
    }

    /// Marks outstanding data of these paths lost, so that other paths retransmit it, and frees
    /// their ids for new paths. Does nothing if no other path would remain.
    fn remove_paths(&mut self, now: Time, gone: &[PathId]) {
        if self.paths.present().all(|p| gone.contains(&p.id())) {
            return;
        }
        for &path in gone {
            for sent in self.paths[path].take_sent_here() {
                let Some(chunk) = self.sending.flight.get(sent.tsn) else { continue };
                let here = chunk.path == path && chunk.transmissions == sent.transmissions;
                let size = chunk.size();
                if here && self.sending.flight.mark_lost(sent.tsn, LossCause::Timeout) {
                    self.sending.peer_rwnd = self.sending.peer_rwnd.saturating_add(size);
                    self.paths[path].data_lost(size);
                }
            }
        }
        self.paths.remove(now, gone, &mut self.events);
        self.update_largest_payload();
        // If no remaining path may carry data, probe the unconfirmed ones: without heartbeats, or
        // after their last probe, nothing else does. During the handshake, RFC 9260 5.1 C: "MUST
        // NOT send any other packets to the peer".
        if self.state.is_synchronised() && !self.paths.any_may_carry() {
            for path in self.paths.ids() {
                let asks =
                    self.paths[path].state() == PathState::Unconfirmed && !self.is_untold(path);
                if asks {
                    self.paths[path].schedule_heartbeat(Some(now));
                }
            }
        }
        self.end_confirmation(now);
    }

    /// Removes the paths from addresses that the host has lost. The association is ending and
    /// announces no more changes to the peer.
    pub(super) fn leave_gone_addresses(&mut self, now: Time) {
        let mut gone: Vec<IpAddr> = Vec::new();
        for path in self.paths.present() {
            if !self.is_here(path.local()) && !gone.contains(&path.local()) {
                gone.push(path.local());
            }
        }
        gone.into_iter().for_each(|ip| self.remove_paths_from(now, ip));
    }

    /// Whether a local address remains: the host has it, and no outstanding ASCONF deletes it.
    /// Always true without dynamic addresses.
    pub(in crate::association) fn stays(&self, local: IpAddr) -> bool {
        self.addresses.as_ref().is_none_or(|a| {
            self.is_here(local) && !a.ours.as_ref().is_some_and(|ours| ours.deletes(local))
        })
    }

    /// True if an ABORT with a reflected tag must not end the association. It means that the peer
    /// does not know one of the packet's addresses: packets in flight when an address was removed
    /// are out of the blue to it (RFC 5061 5.3.1). If the local address remains, the path is given
    /// up; without another active path the ABORT ends the association.
    pub(in crate::association) fn is_abort_of_a_change(&mut self, from: &FourTuple) -> bool {
        if self.addresses.is_none() {
            return false;
        }
        if !self.stays(from.local.ip()) {
            return true;
        }
        let Some(path) = self.paths.path_for(from) else { return true };
        if !self.paths.another_is_active(path) {
            return false;
        }
        self.give_up_refused(path);
        true
    }

    /// Whether SACKs and DATA may be sent on the path: neither to an address that has yet to be
    /// confirmed (RFC 9260 5.4), nor from one that the peer has yet to acknowledge (RFC 5061 5.3
    /// F1).
    pub(in crate::association) fn may_answer(&self, path: PathId) -> bool {
        match self.addresses {
            None => !self.procedures.verifies_addresses() || self.paths.is_confirmed(path),
            Some(_) => self.paths.may_carry(path),
        }
    }

    /// Whether the chunk must not be sent to the path's address, which has yet to be confirmed (RFC
    /// 9260 5.4).
    pub(in crate::association) fn is_forbidden(&self, path: PathId, control: &Control) -> bool {
        !control.verifies()
            && self.procedures.verifies_addresses()
            && !self.paths.is_confirmed(path)
    }

    /// Whether the peer has yet to acknowledge the path's local address.
    pub(in crate::association) fn is_untold(&self, path: PathId) -> bool {
        let p = &self.paths[path];
        // This runs for every packet; the checks below concern few.
        if p.state() != PathState::Unconfirmed {
            return false;
        }
        let Some(addresses) = &self.addresses else { return false };
        // An endpoint bound to all addresses may send from any of them, unless it announces the
        // host's addresses.
        let config = &self.shared.config;
        let any = config.addresses.iter().any(IpAddr::is_unspecified);
        (!any || config.host_addresses.is_some())
            && !addresses.told.contains(&p.local())
            && !addresses.idle.contains(&p.local())
    }

    /// The path for a packet meant for `path`: another one if that is removed or must not be used.
    /// `None` if there is no usable path.
    pub(in crate::association) fn redirected(&self, path: PathId) -> Option<PathId> {
        let usable = |path: &PathId| {
            self.paths[*path].state() != PathState::Removed
                && !self.is_untold(*path)
                && (!self.procedures.verifies_addresses() || self.paths.is_confirmed(*path))
        };
        let first = [path, self.paths.for_control(), self.paths.fallback()];
        first.into_iter().chain(self.paths.iter().map(Path::id)).find(usable)
    }
}
