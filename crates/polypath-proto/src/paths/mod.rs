//! The paths of an association: their list, the primary, the path for new data, and the errors that
//! the failover policy judges (RFC 9260 5.4, 6.4, 8.1, 8.2).

use std::net::{IpAddr, SocketAddr};
use std::ops::{Index, IndexMut};

use crate::config::Config;
use crate::constants::Thresholds;
use crate::error::PathError;
use crate::event::Event;
use crate::events::Events;
use crate::ids::PathId;
use crate::path::{Path, PathState, PathView, PathsView};
use crate::policy::failover::PathErrorKind;
use crate::policy::{FailoverPolicy, ProbingPolicy};
use crate::preference::Preference;
use crate::time::Time;
use crate::transmit::FourTuple;

mod heartbeat_info;
mod locals;
mod search;

pub(crate) use heartbeat_info::{HEARTBEAT_CHUNK_LEN, HeartbeatInfo, HeartbeatKind};
pub(crate) use locals::Locals;
use search::Search;

/// The path id in a HEARTBEAT has six bits.
pub(crate) const MOST_PATHS: usize = 64;

/// The most addresses that a handshake lists.
const MOST_ADDRESSES: usize = 65;

/// All paths of an association, and the addresses of the peer.
#[derive(Debug)]
pub(crate) struct Paths {
    list: Vec<Path>,
    /// Addresses of the peer without a path, with their UDP ports: no local address reaches them,
    /// or there are `max_paths` paths.
    pathless: Vec<SocketAddr>,
    primary: PathId,
    current: PathId,
    /// Consecutive errors over all paths (RFC 9260 8.1).
    errors: u32,
    /// The error count has exceeded Association.Max.Retrans: the association ends.
    unreachable: bool,
    /// Number of changes to the paths and the peer's addresses so far.
    changes: u64,
    /// No new data before every path has been confirmed or has exhausted its probes.
    pub(crate) awaited: bool,
    /// Paths on which the network has refused an INIT, a bit for each.
    refused: u64,
    /// The peer's first window, if new paths start with it as ssthresh; 0 while it is not known.
    pub(crate) ssthresh: u32,
    pub(crate) heartbeat_info: HeartbeatInfo,
    /// The local addresses that the peer knows; `None` without dynamic addresses (RFC 5061).
    pub(crate) locals: Option<Locals>,
    /// Local addresses that paths may begin at, for an endpoint bound to an unspecified address.
    pub(crate) sources: Vec<IpAddr>,
    /// Address that the peer has requested as this side's primary, until a path to it is confirmed
    /// (RFC 5061 4.2.4).
    pub(crate) requested_primary: Option<IpAddr>,
    /// Bytes that every packet with DATA needs besides DATA.
    pub(crate) overhead: usize,
    pub(crate) failover: Box<dyn FailoverPolicy>,
    /// Whether `failover` watches for paths that do not answer.
    pub(crate) watches_silence: bool,
    pub(crate) search: Search,
    probing: Box<dyn ProbingPolicy>,
}

impl Index<PathId> for Paths {
    type Output = Path;

    #[inline]
    fn index(&self, path: PathId) -> &Path {
        &self.list[path.index()]
    }
}

impl IndexMut<PathId> for Paths {
    #[inline]
    fn index_mut(&mut self, path: PathId) -> &mut Path {
        &mut self.list[path.index()]
    }
}

impl Paths {
    /// `key` signs the HEARTBEATs.
    pub(crate) fn new(config: &Config, key: [u8; 32]) -> Self {
        let setup = &config.setup();
        Self {
            list: Vec::new(),
            pathless: Vec::new(),
            primary: PathId(0),
            current: PathId(0),
            errors: 0,
            unreachable: false,
            changes: 0,
            awaited: false,
            refused: 0,
            ssthresh: 0,
            heartbeat_info: HeartbeatInfo::new(key),
            locals: None,
            sources: Vec::new(),
            requested_primary: None,
            overhead: 0,
            failover: config.failover().make(setup),
            watches_silence: config.failover().needs.silence,
            search: Search::default(),
            probing: config.probing().make(setup),
        }
    }

    /// All paths as policies see them.
    #[inline]
    pub(crate) fn view(&self) -> PathsView<'_> {
        PathsView { paths: &self.list, primary: self.primary, current: self.current }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ids of all paths, removed ones included.
    #[inline]
    pub(crate) fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.list.len() as u8).map(PathId)
    }

    #[inline]
    pub(crate) fn get(&self, path: PathId) -> Option<&Path> {
        self.list.get(path.index())
    }

    pub(crate) fn get_mut(&mut self, path: PathId) -> Option<&mut Path> {
        self.list.get_mut(path.index())
    }

    /// All paths, removed ones included.
    #[inline]
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Path> {
        self.list.iter()
    }

    #[inline]
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Path> {
        self.list.iter_mut()
    }

    /// The paths that have not been removed.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Path> {
        self.list.iter().filter(|p| p.state() != PathState::Removed)
    }

    /// The primary path (RFC 9260 6.4).
    pub(crate) const fn primary(&self) -> PathId {
        self.primary
    }

    /// The path for new data: the primary, or the one that the failover policy has chosen instead.
    pub(crate) const fn current(&self) -> PathId {
        self.current
    }

    /// Number of changes to the paths and the peer's addresses so far.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The path that a packet arrived on: the one with its pair of addresses, or else one with its
    /// remote address, because the peer may have paired them differently.
    pub(crate) fn path_for(&self, from: &FourTuple) -> Option<PathId> {
        let (local, remote) = (from.local.ip(), from.remote.ip());
        let pair = |p: &&Path| p.is_to(remote) && p.local() == local;
        let same_remote = |p: &&Path| p.is_to(remote);
        self.list.iter().find(pair).or_else(|| self.list.iter().find(same_remote)).map(Path::id)
    }

    /// Whether the path may carry data: it is confirmed and not removed.
    pub(crate) fn may_carry(&self, path: PathId) -> bool {
        let state = self[path].state();
        !matches!(state, PathState::Unconfirmed | PathState::Removed)
    }

    /// Whether any path may carry data.
    pub(crate) fn any_may_carry(&self) -> bool {
        self.ids().any(|path| self.may_carry(path))
    }

    pub(crate) fn any_is_active(&self) -> bool {
        self.list.iter().any(|p| p.state() == PathState::Active)
    }

    /// Whether a path other than this one is active.
    pub(crate) fn another_is_active(&self, path: PathId) -> bool {
        self.list.iter().any(|p| p.state() == PathState::Active && p.id() != path)
    }

    /// Whether the path's remote address is CONFIRMED (RFC 9260 5.4).
    pub(crate) fn is_confirmed(&self, path: PathId) -> bool {
        let p = &self[path];
        p.is_confirmed() || self.is_confirmed_address(p.remote().ip())
    }

    /// Whether a path shows that this address is CONFIRMED.
    fn is_confirmed_address(&self, remote: IpAddr) -> bool {
        self.list.iter().any(|p| p.is_to(remote) && p.is_confirmed())
    }

    /// A path to this address, if the address is CONFIRMED.
    pub(crate) fn confirmed_to(&self, remote: IpAddr) -> Option<&Path> {
        self.list.iter().find(|p| p.is_confirmed() && p.is_to(remote))
    }

    /// A path that is not removed, preferably an active one.
    pub(crate) fn fallback(&self) -> PathId {
        let there = |state: PathState| self.list.iter().find(|p| p.state() == state);
        let best = there(PathState::Active)
            .or_else(|| there(PathState::PotentiallyFailed))
            .or_else(|| there(PathState::Inactive))
            .or_else(|| there(PathState::Unconfirmed));
        best.map_or(self.primary, Path::id)
    }

    /// The path for a control chunk that is not a reply: the one for new data, or an active path
    /// with fewer errors. The chunks that end an association follow its last data, whose
    /// retransmissions may have left a path that is about to fail.
    pub(crate) fn for_control(&self) -> PathId {
        let errors = self.get(self.current).map_or(0, Path::error_count);
        let better = |p: &&Path| p.state() == PathState::Active && p.error_count() < errors;
        let best = self.list.iter().filter(better).min_by_key(|p| p.error_count());
        best.map_or(self.current, Path::id)
    }

    // The peer's addresses.

    /// The peer's addresses that there are paths to.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.present().map(|p| p.remote().ip())
    }

    /// Whether a path leads to this address.
    pub(crate) fn lead_to(&self, ip: IpAddr) -> bool {
        self.list.iter().any(|p| p.is_to(ip))
    }

    /// All addresses of the peer, with paths or without: each of them identifies the association
    /// (RFC 9260 5.1.2 D).
    pub(crate) fn peer_addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.remotes().chain(self.pathless.iter().map(SocketAddr::ip))
    }

    /// Whether this is one of the peer's addresses, with a path or without.
    pub(crate) fn is_peer_address(&self, ip: IpAddr) -> bool {
        self.peer_addresses().any(|known| known == ip)
    }

    /// Stores an address of the peer that has no path: a local address added later may reach it.
    pub(crate) fn add_pathless(&mut self, remote: SocketAddr) {
        if !self.is_peer_address(remote.ip()) && self.pathless.len() < MOST_ADDRESSES {
            self.pathless.push(remote);
            self.changes += 1;
        }
    }

    /// Drops an address of the peer that has no path; false if it was not stored.
    pub(crate) fn remove_pathless(&mut self, ip: IpAddr) -> bool {
        let before = self.pathless.len();
        self.pathless.retain(|remote| remote.ip() != ip);
        let gone = self.pathless.len() != before;
        self.changes += u64::from(gone);
        gone
    }

    /// Drops all addresses of the peer that have no path.
    pub(crate) fn clear_pathless(&mut self) {
        self.pathless.clear();
        self.changes += 1;
    }

    /// Takes the addresses of the peer that have no path.
    pub(crate) fn take_pathless(&mut self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.pathless)
    }

    // The list.

    /// The id for a new path: that of a removed path, or the next one. `None` if there are `most`
    /// paths.
    pub(crate) fn free_id(&self, most: u8) -> Option<PathId> {
        if self.present().count() >= usize::from(most) {
            return None;
        }
        let free = self.list.iter().position(Path::is_free);
        let index = free.or_else(|| (self.list.len() < MOST_PATHS).then_some(self.list.len()))?;
        Some(PathId(index as u8))
    }

    /// Adds a path with an id that [`free_id`](Self::free_id) has returned.
    pub(crate) fn insert(&mut self, mut path: Path, events: &mut Events) {
        let id = path.id();
        if self.is_confirmed_address(path.remote().ip()) {
            path.confirm_address();
        }
        match self.list.get_mut(id.index()) {
            Some(slot) => *slot = path,
            None => self.list.push(path),
        }
        self.changes += 1;
        events.push(Event::PathAdded { path: id });
    }

    /// Marks paths as removed, after their data in flight has been marked lost, and chooses others
    /// in their place.
    pub(crate) fn remove(&mut self, now: Time, gone: &[PathId], events: &mut Events) {
        for &path in gone {
            self[path].retire();
            let to = PathState::Removed;
            let from = self[path].set_state(now, to);
            events.push(Event::PathState { path, from, to, at: now });
        }
        self.changes += 1;
        if gone.contains(&self.primary) {
            let path = self.fallback();
            self.primary = path;
            events.push(Event::PrimaryChanged { path });
        }
        self.choose_current(now, events);
    }

    // States and errors.

    pub(crate) fn set_state(
        &mut self,
        now: Time,
        path: PathId,
        to: PathState,
        events: &mut Events,
    ) {
        let p = &mut self[path];
        let from = p.set_state(now, to);
        if from == to {
            return;
        }
        if to == PathState::Inactive {
            p.stats.failures += 1;
        }
        events.push(Event::PathState { path, from, to, at: now });
        self.choose_current(now, events);
    }

    /// Makes another path the primary.
    pub(crate) fn set_primary(&mut self, now: Time, path: PathId, events: &mut Events) {
        if self.primary != path {
            self.primary = path;
            events.push(Event::PrimaryChanged { path });
            self.choose_current(now, events);
        }
    }

    /// Makes the address that the peer has requested the primary, once a path to it is confirmed.
    pub(crate) fn apply_requested_primary(&mut self, now: Time, events: &mut Events) {
        let Some(ip) = self.requested_primary else { return };
        let fits = |p: &&Path| p.is_to(ip) && p.state() != PathState::Unconfirmed;
        let Some(path) = self.list.iter().find(fits).map(Path::id) else { return };
        self.requested_primary = None;
        self.set_primary(now, path, events);
    }

    /// Sets how much a path is preferred.
    pub(crate) fn set_preference(
        &mut self,
        now: Time,
        path: PathId,
        preference: Preference,
        events: &mut Events,
    ) {
        self[path].set_preference(preference);
        self.choose_current(now, events);
    }

    /// Holds back the paths to which another one that works is preferred.
    fn hold(&mut self) {
        let active = self.list.iter().filter(|p| p.state() == PathState::Active);
        let best = active.map(Path::rank).min().unwrap_or_default();
        self.list.iter_mut().for_each(|p| p.held = p.rank() > best);
    }

    /// Lets the failover policy choose the path for new data, of those that carry data.
    pub(crate) fn choose_current(&mut self, now: Time, events: &mut Events) {
        self.hold();
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        let mut path = self.failover.current(view);
        if self[path].state() == PathState::Removed {
            path = self.fallback();
        }
        if path != self.current {
            self.current = path;
            events.push(Event::CurrentPath { path, at: now });
        }
    }

    /// Clears the errors of `path`: the peer has acknowledged something that was sent on it (RFC
    /// 9260 8.1, 8.2).
    pub(crate) fn answered(&mut self, now: Time, path: PathId, events: &mut Events) {
        self.errors = 0;
        self.search.end();
        let p = &mut self[path];
        p.clear_errors();
        // RFC 9260 5.4: only a HEARTBEAT ACK or the handshake confirms a path.
        if matches!(p.state(), PathState::Unconfirmed | PathState::Active | PathState::Removed) {
            return;
        }
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        let state = self.failover.after_answer(&view.path(path), view);
        let primary = self.failover.primary_after_answer(view);
        self.set_primary(now, primary, events);
        self.set_state(now, path, state, events);
    }

    /// Applies the failover policy after an error on `path`: to its state, the path for new data
    /// and the primary.
    pub(crate) fn apply_failover(
        &mut self,
        now: Time,
        path: PathId,
        error: PathErrorKind,
        events: &mut Events,
    ) {
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        let state = self.failover.after_error(&view.path(path), error, view);
        self.set_state(now, path, state, events);
        self.choose_current(now, events);
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        let primary = self.failover.primary(view);
        self.set_primary(now, primary, events);
    }

    /// The state that the failover policy gives to a path that does not answer.
    pub(crate) fn state_after_silence(&mut self, path: PathId) -> PathState {
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        self.failover.after_silence(&view.path(path), view)
    }

    /// The state that the failover policy gives to a path while its data is acknowledged or lost.
    pub(crate) fn state_after_losses(&mut self, now: Time, path: PathId) -> PathState {
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        self.failover.after_losses(now, &view.path(path), view)
    }

    /// Whether the probing policy asks for a HEARTBEAT after a heartbeat period.
    pub(crate) fn probes_after_period(&mut self, path: PathId, idle: bool) -> bool {
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        self.probing.after_period(&view.path(path), idle, view)
    }

    /// Whether the probing policy asks for a HEARTBEAT after T3-rtx has expired.
    pub(crate) fn probes_after_timeout(&mut self, path: PathId) -> bool {
        let view = PathsView { paths: &self.list, primary: self.primary, current: self.current };
        self.probing.after_timeout(&view.path(path), view)
    }

    /// Counts an error of the association (RFC 9260 8.1).
    pub(crate) const fn count_association_error(&mut self) {
        self.errors += 1;
    }

    /// Whether the error count exceeds `most`, Association.Max.Retrans: the association ends after
    /// the current event (RFC 9260 8.1).
    pub(crate) const fn exceed(&mut self, most: u32) -> bool {
        self.unreachable |= self.errors > most;
        self.unreachable
    }

    /// Whether the association ends because the peer is unreachable.
    pub(crate) const fn are_unreachable(&self) -> bool {
        self.unreachable
    }

    /// Clears the error count of the association (RFC 9260 8.1).
    pub(crate) const fn clear_association_errors(&mut self) {
        self.errors = 0;
    }

    /// The network has refused an INIT on this path; true if it has on every path.
    pub(crate) fn refuse(&mut self, path: PathId) -> bool {
        self.refused |= 1 << path.index();
        self.ids().all(|path| self.refused & 1 << path.index() != 0)
    }

    // Settings of the application.

    /// A path that has not been removed.
    pub(crate) fn known(&self, path: PathId) -> Result<&Path, PathError> {
        let present = self.get(path).filter(|p| p.state() != PathState::Removed);
        present.ok_or(PathError::NoSuchPath(path))
    }

    /// Sets the error thresholds of one path, or with `None` of all.
    pub(crate) fn set_thresholds(
        &mut self,
        path: Option<PathId>,
        thresholds: Thresholds,
    ) -> Result<(), PathError> {
        match path {
            Some(id) => {
                self.get_mut(id).ok_or(PathError::NoSuchPath(id))?.set_thresholds(thresholds);
            }
            None => self.list.iter_mut().for_each(|p| p.set_thresholds(thresholds)),
        }
        Ok(())
    }

    pub(crate) fn views(&self) -> impl Iterator<Item = PathView> + '_ {
        self.list.iter().map(Path::view)
    }

    /// Stops the timers of all paths.
    pub(crate) fn stop_timers(&mut self) {
        self.list.iter_mut().for_each(Path::stop_timers);
        self.search.stop();
    }

    /// Withdraws the send credit of all paths.
    pub(crate) fn clear_send_credit(&mut self) {
        self.list.iter_mut().for_each(|p| p.send_credit = false);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        for (what, id) in [("primary", self.primary), ("current", self.current)] {
            if self.get(id).is_some_and(|p| p.state() == PathState::Removed) {
                return Err(format!("the {what} path, {id}, has been removed"));
            }
        }
        Ok(())
    }
}
