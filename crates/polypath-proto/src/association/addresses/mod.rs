//! Addresses that come and go (RFC 5061): what this side tells by ASCONF chunks, and what the peer does.
//!
//! The endpoint says which local addresses there are; an association whose sides have agreed on it tells the
//! peer the difference to what the peer knows, one ASCONF at a time ([`requests`]). [`answers`] has what the
//! peer tells. [`paths`] brings paths and takes them away.
//!
//! A path from a new address sends nothing but ASCONF before the peer has acknowledged the address (5.3 F1);
//! a path to a new address of the peer carries no data before it has answered a HEARTBEAT (F14), so that
//! nobody can point the association at others. A peer that has been told no address, because there was but
//! one, may see it through a NAT: then the wildcard stands for whatever the peer sees (4.2.1, 4.2.2).

mod answers;
mod paths;
mod requests;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::Association;
use super::control::{Control, OwnedCause};
use crate::event::CloseReason;
use crate::init;
use crate::path::Path;
use crate::policy::PathState;
use crate::policy::failover::PathErrorKind;
use crate::shared::Shared;
use crate::wire::{AddressRefusal, Chunk, Packet};
use crate::{Extension, FourTuple, PathId, Time, Tsn};

use requests::Ours;

/// What both sides have told each other.
#[derive(Debug)]
pub(super) struct Addresses {
    /// Local addresses that the peer knows.
    told: Vec<IpAddr>,
    /// Those that the host had at the beginning and that the association does not use, where they are followed.
    idle: Vec<IpAddr>,
    /// It was told none in the handshake: it knows what it has seen.
    unlisted: bool,
    /// The number of the next ASCONF.
    next: u32,
    correlation: u32,
    ours: Option<Ours>,
    /// Addresses that the peer has refused to take or to let go.
    refused: Vec<IpAddr>,
    /// It does not understand changes, or nothing of this (5.3 F3a, 5.1 A9).
    deaf: bool,
    /// It does not understand that it is to change its primary path (F3b).
    keeps_primary: bool,
    /// The address that the peer is to send to.
    primary: Option<IpAddr>,
    /// The number of the peer's next ASCONF.
    expected: u32,
    /// The last ASCONF-ACK, with its number.
    answer: Option<(u32, Bytes)>,
    /// The address that the peer wants to be sent to, once it is confirmed.
    wished: Option<IpAddr>,
}

impl Association {
    /// Both sides' first TSNs are known: ASCONFs are counted from there (RFC 5061 5.1 A2).
    pub(super) fn start_addresses(&mut self, peer_initial: Tsn) {
        let agreed = self.extensions.contains(Extension::DynamicAddresses);
        // A side that accepts has its paths a moment later.
        let Some(path) = self.paths.get(self.primary.index()) else { return };
        let (local, remote) = (path.local(), path.remote().ip());
        let listed: Vec<IpAddr> = init::listed(&self.shared, remote).copied().collect();
        let followed = self.shared.config.host_addresses.iter().flatten().copied();
        self.addresses = agreed.then(|| {
            Box::new(Addresses {
                unlisted: listed.is_empty(),
                idle: followed.filter(|ip| *ip != local && !listed.contains(ip)).collect(),
                told: if listed.is_empty() { vec![local] } else { listed },
                next: self.local_initial_tsn.0,
                correlation: 0,
                ours: None,
                refused: Vec::new(),
                deaf: false,
                keeps_primary: false,
                primary: None,
                expected: peer_initial.0,
                answer: None,
                wished: None,
            })
        });
    }

    /// The endpoint has other addresses now. While the handshake lasts, the old ones hold.
    pub(crate) fn set_shared(&mut self, now: Time, shared: Arc<Shared>) {
        if self.is_opening() {
            self.shared_later = Some(shared);
            return;
        }
        self.shared = shared;
        if let (Some(there), Some(addresses)) =
            (&self.shared.config.host_addresses, &mut self.addresses)
        {
            // One that comes again is new.
            addresses.idle.retain(|ip| there.contains(ip));
        }
        if self.addresses.is_none() || !self.state.is_synchronised() {
            return;
        }
        self.find_source(now);
        if self.state.may_send_data() {
            self.advance_addresses(now);
            self.hasten_asconf(now);
        } else {
            self.leave_gone_addresses(now);
        }
    }

    /// The peer sends to this local address: it knows it, whatever is listed by now.
    pub(super) fn peer_knows(&mut self, local: IpAddr) {
        if let Some(addresses) = self.addresses.as_mut().filter(|a| !a.told.contains(&local)) {
            addresses.told.push(local);
            // It was told several.
            addresses.unlisted = false;
        }
    }

    /// What waits for its acknowledgement left from an address that has gone: it leaves again.
    fn hasten_asconf(&mut self, now: Time) {
        let Some(ours) = self.addresses.as_ref().and_then(|a| a.ours.as_ref()) else { return };
        let away = !self.is_here(self.paths[ours.path.index()].local());
        if let Some(ours) = self.addresses.as_mut().and_then(|a| a.ours.as_mut()).filter(|_| away) {
            ours.timer = ours.timer.min(now);
        }
    }

    /// The handshake is complete.
    pub(super) fn take_shared(&mut self, now: Time) {
        if let Some(shared) = self.shared_later.take() {
            self.shared = shared;
        }
        self.advance_addresses(now);
    }

    /// A packet that came over no path may bring an ASCONF from a new address (RFC 5061 5.2). The tag has
    /// found the association; nothing else in the packet is looked at.
    #[cold]
    pub(super) fn handle_from_nowhere(
        &mut self,
        now: Time,
        from: FourTuple,
        packet: &Packet<'_>,
    ) -> bool {
        if self.addresses.is_none() || !self.state.is_synchronised() {
            return false;
        }
        let mut chunks = packet.chunks();
        let mut authenticated = false;
        let mut any = false;
        loop {
            let rest = chunks.as_bytes();
            match chunks.next() {
                Some(Ok(Chunk::Auth(auth))) if !authenticated => {
                    authenticated = self.verify(None, &auth, rest);
                    if !authenticated {
                        return any;
                    }
                }
                Some(Ok(Chunk::Asconf(asconf))) => {
                    if !authenticated && self.auth.is_some() {
                        self.stats.unauthenticated += 1;
                        return any;
                    }
                    any = true;
                    self.handle_asconf(now, from, &asconf);
                }
                // Others send it with a SACK before it.
                Some(_) => {}
                None => return any,
            }
        }
    }

    /// The instant at which T-4 RTO expires.
    pub(super) fn addresses_timeout(&self) -> Option<Time> {
        self.addresses.as_ref()?.ours.as_ref().map(|ours| ours.timer)
    }

    /// T-4 RTO has expired (RFC 5061 5.1 B1 to B5): the same chunk again, over another path if there is one.
    pub(super) fn handle_addresses_timeout(&mut self, now: Time) {
        let Some(addresses) = &mut self.addresses else { return };
        if addresses.ours.as_ref().is_none_or(|ours| ours.timer > now) {
            return;
        }
        if !self.state.may_change_addresses() {
            addresses.ours = None;
            return;
        }
        let Some(old) = addresses.ours.as_ref().map(|ours| ours.path) else { return };
        self.paths[old.index()].back_off(now);
        self.count_asconf_error(now, old);
        if self.is_closed() {
            return;
        }
        let path = self.path_for_asconf(Some(old));
        let timer = now + self.paths[path.index()].rto();
        let Some(ours) = self.addresses.as_mut().and_then(|a| a.ours.as_mut()) else { return };
        (ours.path, ours.timer) = (path, timer);
        let raw = ours.raw.clone();
        self.control.push(path, Control::Asconf(raw));
    }

    /// An unconfirmed path has a state of its own, which errors do not change.
    fn count_asconf_error(&mut self, now: Time, path: PathId) {
        let state = self.paths[path.index()].state();
        if !matches!(state, PathState::Unconfirmed | PathState::Removed) {
            return self.count_error(now, path, PathErrorKind::DataTimeout);
        }
        self.count_association_error();
    }

    pub(super) fn count_association_error(&mut self) {
        self.error_count += 1;
        if self.error_count > self.config.association_max_retrans() {
            self.send_abort(None);
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    /// The peer has said that it does not know ASCONF chunks (RFC 5061 5.1 A9).
    pub(super) fn asconf_unknown(&mut self) {
        if let Some(addresses) = &mut self.addresses {
            addresses.deaf = true;
            addresses.ours = None;
            self.end_if_cut_off();
        }
    }

    /// No ASCONF is under way, and the peer knows no address of any path: nothing may leave any more (RFC 5061
    /// 5.3 F1).
    fn end_if_cut_off(&mut self) {
        let asks = self.addresses.as_ref().is_some_and(|a| a.ours.is_some());
        let usable = |p: &Path| p.state() != PathState::Removed && !self.is_untold(p.id());
        if !asks && !self.paths.iter().any(usable) {
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    /// An ASCONF-ACK that answers nothing that was ever sent (RFC 5061 5.3 F0).
    fn refuse_asconf_ack(&mut self) {
        let cause = OwnedCause::AddressRefused(AddressRefusal::IllegalAck, Bytes::new());
        self.send_abort(Some(cause));
        let what = "an ASCONF-ACK that answers nothing";
        self.become_closed(CloseReason::ProtocolViolation { what });
    }
}
