//! This side's ASCONF requests (RFC 5061 5.1), and the peer's answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use crate::association::Association;
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

impl Association {
    /// Asks the peer to send to this local address (`SCTP_SET_PEER_PRIMARY_ADDR` of RFC 6458 8.3.6;
    /// RFC 5061 4.2.4). [`Event::LocalAddress`] reports the outcome.
    ///
    /// # Errors
    ///
    /// See [`AddressError`]; no request is sent then.
    pub fn set_peer_primary(&mut self, now: Time, local: IpAddr) -> Result<(), AddressError> {
        let remote = self.paths[self.paths.current()].remote().ip();
        let known = init::usable(&self.shared, remote).any(|ip| *ip == local);
        let addresses = self.addresses.as_mut().ok_or(AddressError::NotAgreed)?;
        if addresses.deaf || addresses.keeps_primary {
            return Err(AddressError::NotAgreed);
        }
        if !known && !addresses.told.contains(&local) {
            return Err(AddressError::NoSuchAddress(local));
        }
        addresses.primary = Some(local);
        self.advance_addresses(now);
        Ok(())
    }

    /// Local addresses that the peer has learned; without dynamic addresses, those of the paths.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        match &self.addresses {
            Some(addresses) => addresses.told.clone(),
            None => {
                let mut locals: Vec<IpAddr> = Vec::new();
                for path in self.paths.iter().filter(|p| p.state() != PathState::Removed) {
                    if !locals.contains(&path.local()) {
                        locals.push(path.local());
                    }
                }
                locals
            }
        }
    }

    /// Local addresses that the peer should know. If the association follows the host's addresses:
    /// the announced ones that the host still has, and new ones that the routes use as source
    /// towards the peer.
    pub(super) fn wanted_addresses(&self) -> Vec<IpAddr> {
        let config = &self.shared.config;
        let (Some(there), Some(addresses)) = (&config.host_addresses, &self.addresses) else {
            let remote = self.paths[self.paths.current()].remote().ip();
            return init::usable(&self.shared, remote).copied().collect();
        };
        let told = addresses.told.iter().filter(|ip| self.is_here(**ip));
        let new = |ip: &&IpAddr| !addresses.told.contains(*ip) && !addresses.idle.contains(*ip);
        told.chain(there.iter().filter(new).filter(|ip| self.is_routed(**ip, there)))
            .copied()
            .collect()
    }

    /// Whether the routes choose this one of the host's addresses as source towards the peer.
    pub(crate) fn is_routed(&self, local: IpAddr, there: &[IpAddr]) -> bool {
        let routes = &self.shared.config.routes;
        let leads = |p: &Path| routes.source_for(p.remote().ip(), there) == Some(local);
        self.paths.iter().any(|p| p.state() != PathState::Removed && leads(p))
    }

    /// Announces changed addresses to the peer, unless an ASCONF is outstanding.
    pub(in crate::association) fn advance_addresses(&mut self, now: Time) {
        let Some(addresses) = &self.addresses else { return };
        if !self.state.is_synchronised() || !self.state.may_send_data() {
            return;
        }
        if addresses.ours.is_some() || addresses.deaf {
            return;
        }
        let wanted = self.wanted_addresses();
        let told = &addresses.told;
        let open = |ip: &&IpAddr| !addresses.refused.contains(*ip);
        let mut adds: Vec<IpAddr> =
            wanted.iter().filter(|ip| !told.contains(ip)).filter(open).copied().collect();
        let mut deletes: Vec<IpAddr> =
            told.iter().filter(|ip| !wanted.contains(ip)).filter(open).copied().collect();
        if addresses.unlisted {
            // The wildcard means the packet's source, hence one address.
            adds.truncate(1);
        } else {
            adds.truncate(MOST_REQUESTS / 2);
        }
        deletes.truncate(MOST_REQUESTS / 2);
        // Drop the refusals of changes that are no longer due: the same change may be requested
        // again later.
        let refused: Vec<IpAddr> = addresses
            .refused
            .iter()
            .filter(|ip| wanted.contains(ip) != told.contains(ip))
            .copied()
            .collect();
        // RFC 5061 5.3 F5: never delete the last address before there is a new one.
        let stays = told.iter().any(|ip| wanted.contains(ip)) || !adds.is_empty();
        if !stays {
            deletes.clear();
        }
        let primary = addresses.primary;
        if let Some(addresses) = &mut self.addresses {
            addresses.refused = refused;
        }
        // Add paths from new addresses first, so that some remain when the others are removed.
        for ip in &adds {
            self.add_paths_from(now, *ip);
        }
        let remains = self
            .paths
            .iter()
            .any(|p| p.state() != PathState::Removed && !deletes.contains(&p.local()));
        if !remains {
            deletes.clear();
        }
        for ip in &deletes {
            self.remove_paths_from(now, *ip);
        }
        let mut requests: Vec<(AddressChange, IpAddr)> = Vec::new();
        requests.extend(adds.iter().map(|ip| (AddressChange::Added, *ip)));
        requests.extend(deletes.iter().map(|ip| (AddressChange::Deleted, *ip)));
        let told_soon = |ip: &IpAddr| adds.contains(ip) || self.is_told(*ip);
        if let Some(primary) = primary.filter(told_soon) {
            requests.push((AddressChange::Primary, primary));
        }
        if !requests.is_empty() {
            self.send_asconf(now, requests);
        }
    }

    fn is_told(&self, ip: IpAddr) -> bool {
        self.addresses.as_ref().is_some_and(|a| a.told.contains(&ip))
    }

    fn send_asconf(&mut self, now: Time, requests: Vec<(AddressChange, IpAddr)>) {
        let Some(addresses) = &mut self.addresses else { return };
        let serial = addresses.next;
        let first = addresses.correlation;
        addresses.next = serial.wrapping_add(1);
        addresses.correlation = first.wrapping_add(requests.len() as u32);
        let numbered: Vec<(u32, AddressChange, IpAddr)> =
            requests.iter().zip(0..).map(|((c, ip), i)| (first.wrapping_add(i), *c, *ip)).collect();
        // An address that the peer knows, preferably one that this ASCONF does not delete.
        let goes = |ip: &IpAddr| requests.contains(&(AddressChange::Deleted, *ip));
        let told = &addresses.told;
        let lookup = told.iter().find(|ip| !goes(ip)).or_else(|| told.first()).copied();
        // If the peer may see another address, the wildcard means the packet's source: it replaces
        // the address to add, and all addresses to delete if the source alone remains.
        let added = requests.iter().find(|(c, _)| *c == AddressChange::Added).map(|(_, ip)| *ip);
        // No packet can be sent from an address without a path.
        let reaches = |ip: &IpAddr| self.paths.iter().any(|p| p.is_from(*ip));
        let added = added.filter(|ip| addresses.unlisted && reaches(ip));
        let mut remaining: Vec<IpAddr> = told.iter().filter(|ip| !goes(ip)).copied().collect();
        remaining.extend(added);
        let alone = addresses.unlisted && remaining.len() == 1;
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
        let current = self.paths.current();
        if let Some(addresses) = &mut self.addresses {
            let ours = Ours {
                serial,
                requests: numbered,
                raw: raw.clone(),
                source,
                path: current,
                timer: now,
            };
            addresses.ours = Some(ours);
        }
        let path = self.path_for_asconf(None);
        let timer = now + self.paths[path].rto();
        if let Some(ours) = self.addresses.as_mut().and_then(|a| a.ours.as_mut()) {
            (ours.path, ours.timer) = (path, timer);
        }
        self.outbox.push(path, Control::Asconf(raw));
    }

    /// The path for an ASCONF: never from an address that it deletes (RFC 5061 5.3 F6); from the
    /// new address if the wildcard means it; otherwise the path for new data. Avoids `old` if
    /// there is another one.
    pub(super) fn path_for_asconf(&self, old: Option<PathId>) -> PathId {
        let Some(addresses) = &self.addresses else { return self.paths.current() };
        let Some(ours) = &addresses.ours else { return self.paths.current() };
        let goes = |ip| ours.deletes(ip);
        // If the host has lost this address meanwhile, the wildcard may mean another one; a
        // later ASCONF corrects that.
        let source = ours.source.filter(|source| self.is_here(*source));
        let fits = |p: &&Path| {
            p.state() != PathState::Removed
                && !goes(p.local())
                && source.is_none_or(|source| p.local() == source)
        };
        let rank = |p: &&Path| {
            let untold = !addresses.told.contains(&p.local());
            let away = !self.is_here(p.local());
            let idle = p.state() != PathState::Active;
            (away, Some(p.id()) == old, idle, untold, p.id() != self.paths.current())
        };
        self.paths
            .iter()
            .filter(fits)
            .min_by_key(rank)
            .map_or_else(|| self.paths.current(), |p| p.id())
    }

    /// Processes an ASCONF-ACK (RFC 5061 5.1 A5 to A8).
    pub(in crate::association) fn handle_asconf_ack(
        &mut self,
        now: Time,
        from: FourTuple,
        ack: &AsconfAck<'_>,
    ) {
        let Some(addresses) = &mut self.addresses else {
            self.stats.dropped += 1;
            return;
        };
        let Some(ours) = addresses.ours.take_if(|ours| ours.serial == ack.serial) else {
            let ahead = ack.serial.wrapping_sub(addresses.next) < 1 << 31;
            if ahead && addresses.ours.is_none() {
                return self.refuse_asconf_ack();
            }
            self.stats.dropped += 1;
            return;
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
                    let deaf =
                        causes.iter().any(|c| matches!(c, Ok(Cause::UnrecognizedParameters(_))));
                    if deaf && ours.requests[at].1 == AddressChange::Primary {
                        addresses.keeps_primary = true;
                    } else if deaf {
                        addresses.deaf = true;
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
            match (change, granted) {
                (AddressChange::Added, true) => addresses.told.push(*ip),
                // This side no longer uses the address, granted or not.
                (AddressChange::Deleted, _) => addresses.told.retain(|told| told != ip),
                (AddressChange::Primary, _) => {
                    addresses.primary.take_if(|wanted| wanted == ip);
                }
                (_, false) => addresses.refused.push(*ip),
            }
            news.push((*change, *ip, granted));
        }
        if self.paths[ours.path].state() == PathState::Unconfirmed {
            // An answer over the path of the ASCONF shows that the path works in both directions.
            let p = &self.paths[ours.path];
            if p.local() == from.local.ip() && p.remote().ip() == from.remote.ip() {
                self.confirm(now, ours.path);
            }
        }
        self.paths.answered(now, ours.path, &mut self.events);
        for (change, address, granted) in news {
            if change == AddressChange::Added && granted {
                self.open_paths_from(now, address);
            } else if change == AddressChange::Added {
                self.remove_paths_from(now, address);
            }
            self.events.push(Event::LocalAddress { address, change, granted });
        }
        self.advance_addresses(now);
        self.end_if_cut_off();
    }
}
