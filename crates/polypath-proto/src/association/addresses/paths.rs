//! Adding and removing paths when addresses change.

use std::net::{IpAddr, SocketAddr};

use crate::association::Sender;
use crate::ids::PathId;
use crate::path::{Path, PathState};
use crate::paths::Paths;
use crate::policy::retransmission::LossCause;
use crate::time::Time;

impl Paths {
    /// The peer has learned a local address: probe the paths from it.
    pub(super) fn probe_from(&mut self, now: Time, local: IpAddr) {
        for path in self.iter_mut().filter(|p| p.is_from(local)) {
            if path.state() == PathState::Unconfirmed {
                path.schedule_heartbeat(Some(now));
            }
        }
    }
}

impl Sender<'_> {
    /// Adds paths from a new local address to those of the peer's addresses that the routes reach
    /// from it, or else to the one in use. Only ASCONF may be sent on them for now (RFC 5061 5.3
    /// F1).
    pub(super) fn add_paths_from(&mut self, now: Time, local: IpAddr) {
        let shared = self.shared;
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
        // The answer to an earlier ASCONF may have confirmed a path: it keeps its heartbeats.
        let unannounced = self.paths.locals.is_some() && !self.paths.is_announced(local);
        let quiet = |p: &&mut Path| p.is_from(local) && p.state() == PathState::Unconfirmed;
        for path in self.paths.iter_mut().filter(quiet).filter(|_| unannounced) {
            path.schedule_heartbeat(None);
        }
    }

    /// Adds paths from a new local address to the peer's addresses that had none; true if it added
    /// any.
    fn reach_from(&mut self, now: Time, local: IpAddr) -> bool {
        let shared = self.shared;
        let locals = &shared.config.addresses;
        let mut any = false;
        for (index, remote) in self.paths.take_pathless().into_iter().enumerate() {
            let routed = shared.config.routes.local_for(remote.ip(), index, locals) == Some(local);
            let meshed = self.config.full_mesh() && remote.is_ipv4() == local.is_ipv4();
            let reached = (routed || meshed) && self.add_path(now, local, remote).is_some();
            if !reached && !self.paths.lead_to(remote.ip()) {
                self.paths.add_pathless(remote);
            }
            any |= reached;
        }
        any
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
        self.paths.remove(now, gone, self.events);
        self.sending.fit(self.paths);
        // If no remaining path may carry data, probe the unconfirmed ones: without heartbeats, or
        // after their last probe, nothing else does. During the handshake, RFC 9260 5.1 C: "MUST
        // NOT send any other packets to the peer".
        if self.phase.synchronised && !self.paths.any_may_carry() {
            for path in self.paths.ids() {
                let asks = self.paths[path].state() == PathState::Unconfirmed
                    && !self.paths.is_unannounced(path, self.shared);
                if asks {
                    self.paths[path].schedule_heartbeat(Some(now));
                }
            }
        }
        self.end_confirmation(now);
    }

    /// Removes the paths from addresses that the host has lost. The association is ending and
    /// announces no more changes to the peer.
    pub(super) fn remove_lost_addresses(&mut self, now: Time) {
        let mut gone: Vec<IpAddr> = Vec::new();
        for path in self.paths.present() {
            if !self.shared.has_address(path.local()) && !gone.contains(&path.local()) {
                gone.push(path.local());
            }
        }
        gone.into_iter().for_each(|ip| self.remove_paths_from(now, ip));
    }
}
