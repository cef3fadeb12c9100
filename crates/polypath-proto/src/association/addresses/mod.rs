//! Dynamic addresses (RFC 5061): the ASCONF chunks of both sides.
//!
//! The endpoint supplies the local addresses. If both sides have agreed on the extension, the
//! association announces changes to the peer, one ASCONF at a time ([`requests`]). [`answers`]
//! processes the peer's ASCONFs. [`paths`] adds and removes paths.
//!
//! A path from a new local address sends nothing but ASCONF before the peer has acknowledged the
//! address (5.3 F1). A path to a new address of the peer carries no data before it has answered a
//! HEARTBEAT (F14), so that an attacker cannot direct the association at a third host. If the
//! handshake listed no local address because there was only one, the peer may see it through a NAT:
//! requests then use the wildcard, which means the source address that the peer sees (4.2.1,
//! 4.2.2).

mod answers;
mod paths;
mod requests;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::Association;
use crate::event::CloseReason;
use crate::extension::Extension;
use crate::ids::{PathId, Tsn};
use crate::init;
use crate::outbox::{Control, OwnedCause};
use crate::path::PathState;
use crate::policy::failover::PathErrorKind;
use crate::shared::Shared;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{AddressRefusal, Chunk, Packet};

use requests::Ours;

/// Address state of both sides.
#[derive(Debug)]
pub(super) struct Addresses {
    /// Local addresses that the peer has learned: from the handshake, an acknowledged ASCONF, or by
    /// sending to them.
    told: Vec<IpAddr>,
    /// Addresses that the host had at the start and the association does not use, if it follows the
    /// host's addresses.
    idle: Vec<IpAddr>,
    /// The handshake listed no local address: the peer knows only the one it saw.
    unlisted: bool,
    /// Serial number of the next ASCONF.
    next: u32,
    correlation: u32,
    ours: Option<Ours>,
    /// Addresses whose addition or deletion the peer has refused.
    refused: Vec<IpAddr>,
    /// The peer does not support address changes, or ASCONF at all (5.3 F3a, 5.1 A9).
    deaf: bool,
    /// The peer does not support changes of its primary path (F3b).
    keeps_primary: bool,
    /// Local address that the peer is to use as its primary; `None` once it has answered.
    primary: Option<IpAddr>,
    /// Serial number of the peer's next ASCONF.
    expected: u32,
    /// The last ASCONF-ACK, with its serial number.
    answer: Option<(u32, Bytes)>,
    /// Address that the peer has requested as this side's primary, until it is confirmed.
    wished: Option<IpAddr>,
}

impl Association {
    /// Initialises the address state from both initial TSNs, where the serial numbers begin (RFC
    /// 5061 5.1 A2).
    pub(super) fn start_addresses(&mut self, peer_initial: Tsn) {
        let agreed = self.handshake.has(Extension::DynamicAddresses);
        // The accepting side calls this again once it has its paths.
        let Some(path) = self.paths.get(self.paths.primary()) else { return };
        let (local, remote) = (path.local(), path.remote().ip());
        let listed: Vec<IpAddr> = init::listed(&self.shared, remote).copied().collect();
        let followed = self.shared.config.host_addresses.iter().flatten().copied();
        self.addresses = agreed.then(|| {
            Box::new(Addresses {
                unlisted: listed.is_empty(),
                idle: followed.filter(|ip| *ip != local && !listed.contains(ip)).collect(),
                told: if listed.is_empty() { vec![local] } else { listed },
                next: self.handshake.local_initial_tsn.0,
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

    /// Adopts the endpoint's new addresses, after the handshake if it is still going on.
    pub(crate) fn set_shared(&mut self, now: Time, shared: Arc<Shared>) {
        if self.is_opening() {
            self.handshake.shared_later = Some(shared);
            return;
        }
        self.shared = shared;
        if let (Some(there), Some(addresses)) =
            (&self.shared.config.host_addresses, &mut self.addresses)
        {
            // An address that the host regains counts as new.
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

    /// Records a local address that the peer has sent to, listed or not.
    pub(super) fn peer_knows(&mut self, local: IpAddr) {
        if let Some(addresses) = self.addresses.as_mut().filter(|a| !a.told.contains(&local)) {
            addresses.told.push(local);
            // It uses a second address, so it knows more than the one it saw first.
            addresses.unlisted = false;
        }
    }

    /// Retransmits the outstanding ASCONF at once if the host has lost the address it was sent
    /// from.
    fn hasten_asconf(&mut self, now: Time) {
        let Some(ours) = self.addresses.as_ref().and_then(|a| a.ours.as_ref()) else { return };
        let away = !self.is_here(self.paths[ours.path].local());
        if let Some(ours) = self.addresses.as_mut().and_then(|a| a.ours.as_mut()).filter(|_| away) {
            ours.timer = ours.timer.min(now);
        }
    }

    /// The handshake is complete: adopt new addresses that arrived during it, and announce them.
    pub(super) fn take_shared(&mut self, now: Time) {
        if let Some(shared) = self.handshake.shared_later.take() {
            self.shared = shared;
        }
        self.advance_addresses(now);
    }

    /// Processes the ASCONFs in a packet that matches no path: it may be from a new address (RFC
    /// 5061 5.2). The verification tag has identified the association; other chunks are ignored.
    /// True if there was an ASCONF.
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
                    if !authenticated && self.auth.are_agreed() {
                        self.stats.unauthenticated += 1;
                        return any;
                    }
                    any = true;
                    self.handle_asconf(now, from, &asconf);
                }
                // Some stacks bundle a SACK before it.
                Some(_) => {}
                None => return any,
            }
        }
    }

    /// Deadline of the T-4 RTO timer.
    pub(super) fn addresses_timeout(&self) -> Option<Time> {
        self.addresses.as_ref()?.ours.as_ref().map(|ours| ours.timer)
    }

    /// T-4 RTO has expired (RFC 5061 5.1 B1 to B5): retransmit the chunk, over another path if
    /// there is one.
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
        self.paths[old].back_off(now);
        self.count_asconf_error(now, old);
        if self.is_closed() {
            return;
        }
        let path = self.path_for_asconf(Some(old));
        let timer = now + self.paths[path].rto();
        let Some(ours) = self.addresses.as_mut().and_then(|a| a.ours.as_mut()) else { return };
        (ours.path, ours.timer) = (path, timer);
        let raw = ours.raw.clone();
        self.outbox.push(path, Control::Asconf(raw));
    }

    /// Counts an unanswered ASCONF as an error, on an unconfirmed or removed path for the
    /// association alone: errors do not change those states.
    fn count_asconf_error(&mut self, now: Time, path: PathId) {
        let state = self.paths[path].state();
        if !matches!(state, PathState::Unconfirmed | PathState::Removed) {
            return self.count_error(now, path, PathErrorKind::DataTimeout);
        }
        self.count_association_error();
    }

    pub(super) fn count_association_error(&mut self) {
        self.paths.count_association_error();
        if self.paths.association_errors() > self.config.association_max_retrans() {
            self.send_abort(None);
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    /// The peer has reported that it does not recognise ASCONF chunks (RFC 5061 5.1 A9).
    pub(super) fn asconf_unknown(&mut self) {
        if let Some(addresses) = &mut self.addresses {
            addresses.deaf = true;
            addresses.ours = None;
            self.end_if_cut_off();
        }
    }

    /// Ends the association if no ASCONF is outstanding and the peer knows the local address of no
    /// path: nothing may be sent any more (RFC 5061 5.3 F1).
    fn end_if_cut_off(&mut self) {
        let asks = self.addresses.as_ref().is_some_and(|a| a.ours.is_some());
        if !asks && self.paths.present().all(|p| self.is_untold(p.id())) {
            self.become_closed(CloseReason::PeerUnreachable);
        }
    }

    /// Aborts after an ASCONF-ACK with a serial number that was never sent (RFC 5061 5.3 F0).
    fn refuse_asconf_ack(&mut self) {
        let cause = OwnedCause::AddressRefused(AddressRefusal::IllegalAck, Bytes::new());
        self.send_abort(Some(cause));
        let what = "an ASCONF-ACK that answers nothing";
        self.become_closed(CloseReason::ProtocolViolation { what });
    }
}
