//! This side's ASCONF requests (RFC 5061 5.1), and the peer's answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use super::Addresses;
use crate::association::Sender;
use crate::error::AddressError;
use crate::event::{AddressChange, Event};
use crate::ids::{PathId, VerificationTag};
use crate::init;
use crate::outbox::Control;
use crate::path::{Path, PathState};
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{
    AsconfAck, AsconfParameter, Cause, Checksum, CommonHeader, PacketWriter, asconf_type,
};

/// Most requests in one ASCONF, so that it and its answer fit any packet.
const MOST_REQUESTS: usize = 8;

/// The outstanding ASCONF.
#[derive(Debug)]
pub(in crate::association) struct Ours {
    serial: u32,
    /// Correlation ID, change and address of each request.
    requests: Vec<(u32, AddressChange, IpAddr)>,
    /// The whole chunk, which retransmissions repeat unchanged.
    pub(super) raw: Bytes,
    /// The only address that it may be sent from, if the wildcard means it.
    source: Option<IpAddr>,
    pub(super) path: PathId,
    /// T-4 RTO.
    pub(super) timer: Time,
}

impl Ours {
    pub(super) fn deletes(&self, ip: IpAddr) -> bool {
        self.requests.iter().any(|r| r.1 == AddressChange::Deleted && r.2 == ip)
    }

    /// The path for an ASCONF: never from an address that it deletes (RFC 5061 5.3 F6); from the
    /// new address if the wildcard means it; otherwise the path for new data. Avoids `old` if
    /// there is another one.
    pub(super) fn path_for(&self, s: &Sender<'_>, old: Option<PathId>) -> PathId {
        let goes = |ip| self.deletes(ip);
        // If the host has lost this address meanwhile, the wildcard may mean another one; a
        // later ASCONF corrects that.
        let source = self.source.filter(|source| s.shared.has_address(*source));
        let fits = |p: &&Path| {
            p.state() != PathState::Removed
                && !goes(p.local())
                && source.is_none_or(|source| p.local() == source)
        };
        let rank = |p: &&Path| {
            let unannounced = !s.paths.is_announced(p.local());
            let away = !s.shared.has_address(p.local());
            let idle = p.state() != PathState::Active;
            (away, Some(p.id()) == old, idle, unannounced, p.id() != s.paths.current())
        };
        let best = s.paths.iter().filter(fits).min_by_key(rank);
        best.map_or_else(|| s.paths.current(), Path::id)
    }
}

const fn wildcard(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

const fn type_of(change: AddressChange) -> u16 {
    match change {
        AddressChange::Added => asconf_type::ADD_ADDRESS,
        AddressChange::Deleted => asconf_type::DELETE_ADDRESS,
        AddressChange::Primary => asconf_type::SET_PRIMARY,
    }
}

/// Result of an ASCONF-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::association) enum AckOutcome {
    /// It answers the outstanding ASCONF.
    Applied,
    /// It answers an earlier one.
    Late,
    /// Its serial number was never sent (RFC 5061 5.3 F0).
    Illegal,
}

impl Addresses {
    /// Asks the peer to send to this local address (RFC 5061 4.2.4).
    pub(in crate::association) fn set_peer_primary(
        &mut self,
        s: &mut Sender<'_>,
        now: Time,
        local: IpAddr,
    ) -> Result<(), AddressError> {
        let remote = s.paths[s.paths.current()].remote().ip();
        let known = init::usable(s.shared, remote).any(|ip| *ip == local);
        if self.unsupported || self.fixed_primary {
            return Err(AddressError::NotAgreed);
        }
        if !known && !s.paths.is_announced(local) {
            return Err(AddressError::NoSuchAddress(local));
        }
        self.primary = Some(local);
        self.advance(s, now);
        Ok(())
    }

    /// Local addresses that the peer should know. If the association follows the host's addresses:
    /// the announced ones that the host still has, and new ones that the routes use as source
    /// towards the peer.
    fn wanted(s: &Sender<'_>) -> Vec<IpAddr> {
        let config = &s.shared.config;
        let (Some(present), Some(locals)) = (&config.host_addresses, &s.paths.locals) else {
            let remote = s.paths[s.paths.current()].remote().ip();
            return init::usable(s.shared, remote).copied().collect();
        };
        let announced = locals.announced.iter().filter(|ip| s.shared.has_address(**ip));
        let new = |ip: &&IpAddr| !locals.announced.contains(*ip) && !locals.idle.contains(*ip);
        let routed = |ip: &&IpAddr| s.paths.are_routed_from(**ip, present, s.shared);
        announced.chain(present.iter().filter(new).filter(routed)).copied().collect()
    }

    /// If the host has lost the local addresses of all paths, adds paths from new ones, although
    /// they cannot be announced to the peer yet.
    pub(super) fn find_source(&self, s: &mut Sender<'_>, now: Time) {
        if s.paths.present().any(|p| s.shared.has_address(p.local())) {
            return;
        }
        Self::wanted(s).into_iter().for_each(|ip| s.add_paths_from(now, ip));
    }

    /// Announces changed addresses to the peer, unless an ASCONF is outstanding.
    pub(in crate::association) fn advance(&mut self, s: &mut Sender<'_>, now: Time) {
        if !s.phase.may_send_data || self.ours.is_some() || self.unsupported {
            return;
        }
        let wanted = Self::wanted(s);
        let announced = announced(s);
        let open = |ip: &&IpAddr| !self.refused.contains(*ip);
        let mut adds: Vec<IpAddr> =
            wanted.iter().filter(|ip| !announced.contains(ip)).filter(open).copied().collect();
        let mut deletes: Vec<IpAddr> =
            announced.iter().filter(|ip| !wanted.contains(ip)).filter(open).copied().collect();
        if self.unlisted {
            // The wildcard means the packet's source, hence one address.
            adds.truncate(1);
        } else {
            adds.truncate(MOST_REQUESTS / 2);
        }
        deletes.truncate(MOST_REQUESTS / 2);
        // Drop the refusals of changes that are no longer due: the same change may be requested
        // again later.
        self.refused.retain(|ip| wanted.contains(ip) != announced.contains(ip));
        // RFC 5061 5.3 F5: never delete the last address before there is a new one.
        let stays = announced.iter().any(|ip| wanted.contains(ip)) || !adds.is_empty();
        if !stays {
            deletes.clear();
        }
        // Add paths from new addresses first, so that some remain when the others are removed.
        for ip in &adds {
            s.add_paths_from(now, *ip);
        }
        let remains = s
            .paths
            .iter()
            .any(|p| p.state() != PathState::Removed && !deletes.contains(&p.local()));
        if !remains {
            deletes.clear();
        }
        for ip in &deletes {
            s.remove_paths_from(now, *ip);
        }
        let mut requests: Vec<(AddressChange, IpAddr)> = Vec::new();
        requests.extend(adds.iter().map(|ip| (AddressChange::Added, *ip)));
        requests.extend(deletes.iter().map(|ip| (AddressChange::Deleted, *ip)));
        let known_soon = |ip: &IpAddr| adds.contains(ip) || s.paths.is_announced(*ip);
        if let Some(primary) = self.primary.filter(known_soon) {
            requests.push((AddressChange::Primary, primary));
        }
        if !requests.is_empty() {
            self.send(s, now, requests);
        }
    }

    fn send(&mut self, s: &mut Sender<'_>, now: Time, requests: Vec<(AddressChange, IpAddr)>) {
        let serial = self.next;
        let first = self.correlation;
        self.next = serial.wrapping_add(1);
        self.correlation = first.wrapping_add(requests.len() as u32);
        let numbered: Vec<(u32, AddressChange, IpAddr)> =
            requests.iter().zip(0..).map(|((c, ip), i)| (first.wrapping_add(i), *c, *ip)).collect();
        // An address that the peer knows, preferably one that this ASCONF does not delete.
        let goes = |ip: &IpAddr| requests.contains(&(AddressChange::Deleted, *ip));
        let announced = announced(s);
        let lookup = announced.iter().find(|ip| !goes(ip)).or_else(|| announced.first()).copied();
        // If the peer may see another address, the wildcard means the packet's source: it replaces
        // the address to add, and all addresses to delete if the source alone remains.
        let added = requests.iter().find(|(c, _)| *c == AddressChange::Added).map(|(_, ip)| *ip);
        // No packet can be sent from an address without a path.
        let reaches = |ip: &IpAddr| s.paths.iter().any(|p| p.is_from(*ip));
        let added = added.filter(|ip| self.unlisted && reaches(ip));
        let mut remaining: Vec<IpAddr> = announced.iter().filter(|ip| !goes(ip)).copied().collect();
        remaining.extend(added);
        let alone = self.unlisted && remaining.len() == 1;
        let source = added.or_else(|| remaining.first().copied().filter(|_| alone));
        let Some(lookup) = lookup else { return };
        let mut buf = [0; 1024];
        let header = CommonHeader {
            source_port: 0,
            destination_port: 0,
            verification_tag: VerificationTag(0),
        };
        let mut w = PacketWriter::new(&mut buf, header);
        let start = w.len();
        let written = w.asconf(serial, lookup, |p| {
            let mut all_gone = false;
            for (id, change, ip) in &numbered {
                let wild = match change {
                    AddressChange::Deleted => alone,
                    AddressChange::Added | AddressChange::Primary => added == Some(*ip),
                };
                if *change == AddressChange::Deleted && wild {
                    if all_gone {
                        continue;
                    }
                    all_gone = true;
                }
                p.request(type_of(*change), *id, if wild { wildcard(*ip) } else { *ip })?;
            }
            Ok(())
        });
        debug_assert!(written.is_ok(), "the requests were bounded");
        let end = w.finish(Checksum::Ignore);
        let raw = Bytes::copy_from_slice(&buf[start..end]);
        let mut ours = Ours {
            serial,
            requests: numbered,
            raw: raw.clone(),
            source,
            path: s.paths.current(),
            timer: now,
        };
        let path = ours.path_for(s, None);
        (ours.path, ours.timer) = (path, now + s.paths[path].rto());
        self.ours = Some(ours);
        s.outbox.push(path, Control::Asconf(raw));
    }

    /// Processes an ASCONF-ACK (RFC 5061 5.1 A5 to A8).
    pub(in crate::association) fn handle_ack(
        &mut self,
        s: &mut Sender<'_>,
        now: Time,
        from: FourTuple,
        ack: &AsconfAck<'_>,
    ) -> AckOutcome {
        let Some(ours) = self.ours.take_if(|ours| ours.serial == ack.serial) else {
            let ahead = ack.serial.wrapping_sub(self.next) < 1 << 31;
            let illegal = ahead && self.ours.is_none();
            return if illegal { AckOutcome::Illegal } else { AckOutcome::Late };
        };
        let mut outcomes: Vec<Option<bool>> = vec![None; ours.requests.len()];
        let mut failed_from = usize::MAX;
        for item in ack.parameters.iter().map_while(Result::ok) {
            let Some(at) = ours.requests.iter().position(|r| r.0 == item.correlation) else {
                continue;
            };
            match item.parameter {
                AsconfParameter::Success => outcomes[at] = Some(true),
                AsconfParameter::Error(causes) => {
                    outcomes[at] = Some(false);
                    failed_from = failed_from.min(at);
                    let unsupported =
                        causes.iter().any(|c| matches!(c, Ok(Cause::UnrecognizedParameters(_))));
                    if unsupported && ours.requests[at].1 == AddressChange::Primary {
                        self.fixed_primary = true;
                    } else if unsupported {
                        self.unsupported = true;
                    }
                }
                _ => {}
            }
        }
        let mut news = Vec::new();
        for (at, (_, change, ip)) in ours.requests.iter().enumerate() {
            // A7, A8: requests after a refused one were refused too, unless the peer reports
            // otherwise.
            let granted = outcomes[at].unwrap_or(at < failed_from);
            let locals = s.paths.locals.as_mut().map(|locals| &mut locals.announced);
            match (change, granted, locals) {
                (AddressChange::Added, true, Some(announced)) => announced.push(*ip),
                // This side no longer uses the address, granted or not.
                (AddressChange::Deleted, _, Some(announced)) => announced.retain(|a| a != ip),
                (AddressChange::Primary, ..) => {
                    self.primary.take_if(|wanted| wanted == ip);
                }
                (_, false, _) => self.refused.push(*ip),
                (_, true, None) => {}
            }
            news.push((*change, *ip, granted));
        }
        let p = &s.paths[ours.path];
        if p.state() == PathState::Unconfirmed
            && p.local() == from.local.ip()
            && p.remote().ip() == from.remote.ip()
        {
            // An answer over the path of the ASCONF shows that the path works in both directions.
            s.confirm(now, ours.path);
        }
        s.paths.answered(now, ours.path, s.events);
        for (change, address, granted) in news {
            if change == AddressChange::Added && granted {
                s.paths.probe_from(now, address);
            } else if change == AddressChange::Added {
                s.remove_paths_from(now, address);
            }
            s.events.push(Event::LocalAddress { address, change, granted });
        }
        self.advance(s, now);
        AckOutcome::Applied
    }
}

/// Local addresses that the peer has learned.
fn announced(s: &Sender<'_>) -> Vec<IpAddr> {
    s.paths.locals.as_ref().map_or_else(Vec::new, |locals| locals.announced.clone())
}
