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

use bytes::Bytes;

use super::Sender;
use crate::handshake::Handshake;
use crate::ids::{PathId, Tsn};
use crate::init;
use crate::outbox::Control;
use crate::path::PathState;
use crate::paths::{Locals, Paths};
use crate::policy::failover::PathErrorKind;
use crate::shared::Shared;
use crate::time::Time;

pub(super) use requests::AckOutcome;
use requests::Ours;

/// The ASCONFs of both sides.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The handshake listed no local address: the peer knows only the one it saw.
    unlisted: bool,
    /// Serial number of the next ASCONF.
    next: u32,
    correlation: u32,
    ours: Option<Ours>,
    /// Addresses whose addition or deletion the peer has refused.
    refused: Vec<IpAddr>,
    /// The peer does not support address changes, or ASCONF at all (5.3 F3a, 5.1 A9).
    unsupported: bool,
    /// The peer does not support changes of its primary path (F3b).
    fixed_primary: bool,
    /// Local address that the peer is to use as its primary; `None` once it has answered.
    primary: Option<IpAddr>,
    /// Serial number of the peer's next ASCONF.
    expected: u32,
    /// The last ASCONF-ACK, with its serial number.
    answer: Option<(u32, Bytes)>,
}

impl Addresses {
    /// Initialises the state from both initial TSNs, where the serial numbers begin (RFC 5061 5.1
    /// A2), and `paths.locals`.
    pub(super) fn begin(
        paths: &mut Paths,
        shared: &Shared,
        handshake: &Handshake,
        peer_initial: Tsn,
    ) -> Self {
        let path = &paths[paths.primary()];
        let (local, remote) = (path.local(), path.remote().ip());
        let listed: Vec<IpAddr> = init::listed(shared, remote).copied().collect();
        let followed = shared.config.host_addresses.iter().flatten().copied();
        let idle = followed.filter(|ip| *ip != local && !listed.contains(ip)).collect();
        let unlisted = listed.is_empty();
        let announced = if unlisted { vec![local] } else { listed };
        paths.locals = Some(Locals { announced, idle });
        paths.requested_primary = None;
        Self {
            unlisted,
            next: handshake.local_initial_tsn.0,
            correlation: 0,
            ours: None,
            refused: Vec::new(),
            unsupported: false,
            fixed_primary: false,
            primary: None,
            expected: peer_initial.0,
            answer: None,
        }
    }

    /// The host's addresses have changed.
    pub(super) fn host_changed(&mut self, s: &mut Sender<'_>, now: Time) {
        self.find_source(s, now);
        if s.phase.may_send_data {
            self.advance(s, now);
            self.hasten(s, now);
        } else {
            s.remove_lost_addresses(now);
        }
    }

    /// Records a local address that the peer has sent to, listed or not.
    pub(super) fn record_announced(&mut self, paths: &mut Paths, local: IpAddr) {
        if let Some(locals) = paths.locals.as_mut().filter(|l| !l.announced.contains(&local)) {
            locals.announced.push(local);
            // It uses a second address, so it knows more than the one it saw first.
            self.unlisted = false;
        }
    }

    /// Retransmits the outstanding ASCONF at once if the host has lost the address it was sent
    /// from.
    fn hasten(&mut self, s: &Sender<'_>, now: Time) {
        if let Some(ours) = &mut self.ours
            && !s.shared.has_address(s.paths[ours.path].local())
        {
            ours.timer = ours.timer.min(now);
        }
    }

    /// Deadline of the T-4 RTO timer.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.ours.as_ref().map(|ours| ours.timer)
    }

    /// T-4 RTO may have expired (RFC 5061 5.1 B1 to B5): retransmits the chunk, over another path
    /// if there is one. `may_change` if ASCONF may be sent.
    pub(super) fn handle_timeout(&mut self, s: &mut Sender<'_>, now: Time, may_change: bool) {
        let Some(ours) = self.ours.as_ref().filter(|ours| ours.timer <= now) else { return };
        let old = ours.path;
        if !may_change {
            self.ours = None;
            return;
        }
        s.paths[old].back_off(now);
        count_error(s, now, old);
        if s.is_over() {
            return;
        }
        let Some(ours) = &mut self.ours else { return };
        let path = ours.path_for(s, Some(old));
        let timer = now + s.paths[path].rto();
        (ours.path, ours.timer) = (path, timer);
        s.outbox.push(path, Control::Asconf(ours.raw.clone()));
    }

    /// The peer has reported that it does not recognise ASCONF chunks (RFC 5061 5.1 A9).
    pub(super) fn handle_unrecognized(&mut self) {
        self.unsupported = true;
        self.ours = None;
    }

    /// Whether no ASCONF is outstanding and the peer knows the local address of no path: nothing
    /// may be sent any more (RFC 5061 5.3 F1).
    pub(super) fn is_cut_off(&self, paths: &Paths, shared: &Shared) -> bool {
        self.ours.is_none() && paths.present().all(|p| paths.is_unannounced(p.id(), shared))
    }

    /// Whether the outstanding ASCONF deletes this local address.
    pub(super) fn deletes(&self, local: IpAddr) -> bool {
        self.ours.as_ref().is_some_and(|ours| ours.deletes(local))
    }
}

/// Counts an unanswered ASCONF as an error, on an unconfirmed or removed path for the association
/// alone: errors do not change those states.
fn count_error(s: &mut Sender<'_>, now: Time, path: PathId) {
    if matches!(s.paths[path].state(), PathState::Unconfirmed | PathState::Removed) {
        s.count_association_error();
    } else {
        s.count_error(now, path, PathErrorKind::DataTimeout);
    }
}
