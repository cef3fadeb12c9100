//! The peer's ASCONF requests, and the answers to them (RFC 5061 5.2, 5.3).

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use crate::association::Association;
use crate::ids::PathId;
use crate::init;
use crate::path::PathState;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{
    AddressRefusal, Asconf, AsconfItem, AsconfParameter, AsconfWriter, DoesNotFit, PacketWriter,
    Parameters, seal,
};

/// Most requests processed in one ASCONF; the next one is refused, and with it all after it.
const MOST_REQUESTS: usize = 24;

/// Most bytes of an ASCONF-ACK, so that it fits any path (RFC 5061 5.2 E7).
const MOST_BYTES: usize = 1180;

/// Reason to refuse a request.
enum Refusal {
    Address(AddressRefusal),
    /// Nothing can be sent to the address, or it is not the peer's.
    Unresolvable,
    /// The parameter is unknown: RFC 5061 5.2 V2.
    Unrecognized,
}

impl Association {
    /// Processes an ASCONF chunk of the peer.
    pub(in crate::association) fn handle_asconf(
        &mut self,
        now: Time,
        from: FourTuple,
        asconf: &Asconf<'_>,
    ) {
        let authenticated = self.auth.are_agreed();
        let lookup = asconf.lookup;
        // RFC 5061 4.1.1: the lookup address is one of the peer's, or the wildcard. Behind a NAT
        // the peer cannot know the address that this side sees; authentication identifies it
        // instead.
        let ours = |ip: IpAddr| ip.is_unspecified() || self.paths.lead_to(ip);
        let named = lookup.is_some_and(|ip| authenticated || ours(ip));
        let named = named && self.state.may_change_addresses();
        let Some(addresses) = self.addresses.as_mut().filter(|_| named) else {
            self.stats.dropped += 1;
            return;
        };
        if asconf.serial != addresses.expected {
            // 5.2 E2: repeat the answer unchanged. E5: drop a stale ASCONF or an attacker's.
            match &addresses.answer {
                Some((serial, answer)) if *serial == asconf.serial => {
                    let answer = answer.clone();
                    self.send_asconf_ack(from, &answer);
                    // Before this answer the peer could not answer a HEARTBEAT from its new address
                    // (5.3 F1): probe again.
                    let new = self.paths.path_for(&from);
                    let unconfirmed =
                        |path: &PathId| self.paths[*path].state() == PathState::Unconfirmed;
                    if let Some(path) = new.filter(unconfirmed) {
                        self.send_heartbeat(now, path);
                    }
                }
                _ => self.stats.dropped += 1,
            }
            return;
        }
        addresses.expected = asconf.serial.wrapping_add(1);
        let mut answers: Vec<(AsconfItem<'_>, Option<Refusal>)> = Vec::new();
        // F11: "once a receiver begins failing any ADD or DELETE request, it must fail all
        // subsequent ADD or DELETE requests contained in that single ASCONF."
        let mut failed = false;
        for item in asconf.parameters.iter() {
            let Ok(item) = item else {
                self.stats.dropped += 1;
                break;
            };
            if answers.len() == MOST_REQUESTS {
                let shortage = Refusal::Address(AddressRefusal::ResourceShortage);
                answers.push((item, Some(shortage)));
                break;
            }
            let refusal = self.change_peer_address(now, from, &item, failed).err();
            let changes =
                matches!(item.parameter, AsconfParameter::Add(_) | AsconfParameter::Delete(_));
            failed |= changes && refusal.is_some();
            let stops = matches!(refusal, Some(Refusal::Unrecognized))
                && crate::wire::Action::of_parameter(item.ty).stops();
            answers.push((item, refusal));
            if stops || self.is_closed() {
                break;
            }
        }
        let mut buf = [0; MOST_BYTES];
        let mut w = PacketWriter::new(&mut buf, self.reply_header(self.handshake.peer_tag));
        let start = w.len();
        let written = w.asconf_ack(asconf.serial, |p| {
            let mut refused = false;
            for (item, refusal) in &answers {
                refused |= refusal.is_some();
                let written = match refusal {
                    Some(refusal) => refusal.write(item, p),
                    // A7: after a refusal, report successes explicitly.
                    None if refused => p.success(item.correlation),
                    None => Ok(()),
                };
                if written.is_err() {
                    break;
                }
            }
            Ok(())
        });
        debug_assert!(written.is_ok(), "an ASCONF-ACK without parameters always fits");
        let end = w.len();
        let raw = Bytes::copy_from_slice(&buf[start..end]);
        if let Some(addresses) = &mut self.addresses {
            addresses.answer = Some((asconf.serial, raw.clone()));
        }
        self.send_asconf_ack(from, &raw);
    }

    /// Sends the ASCONF-ACK to the source of the ASCONF (RFC 5061 5.2 E6).
    fn send_asconf_ack(&mut self, to: FourTuple, raw: &[u8]) {
        let header = self.reply_header(self.handshake.peer_tag);
        let mut buf = vec![0; MOST_BYTES + 64];
        let mut w = PacketWriter::new(&mut buf, header);
        let written = w.raw_chunk(raw);
        debug_assert!(written.is_ok(), "it was bounded");
        let len = w.len();
        let len = self.authenticate(&mut buf, len);
        buf.truncate(len);
        seal(&mut buf, self.checksum());
        self.reply(to, buf);
    }

    fn change_peer_address(
        &mut self,
        now: Time,
        from: FourTuple,
        item: &AsconfItem<'_>,
        failed: bool,
    ) -> Result<(), Refusal> {
        use AddressRefusal::{LastAddress, ResourceShortage, SourceAddress};
        let source = from.remote.ip();
        let shortage = Refusal::Address(ResourceShortage);
        match item.parameter {
            AsconfParameter::Add(_) | AsconfParameter::Delete(_) if failed => Err(shortage),
            AsconfParameter::Add(ip) => {
                let ip = if ip.is_unspecified() { source } else { ip };
                self.add_peer_address(now, from, ip)
            }
            AsconfParameter::Delete(ip) if ip.is_unspecified() => {
                if !self.paths.lead_to(source) {
                    return Err(Refusal::Address(LastAddress));
                }
                let others: Vec<IpAddr> = self.paths.remotes().filter(|ip| *ip != source).collect();
                others.into_iter().for_each(|ip| self.remove_paths_to(now, ip));
                self.paths.forget_all_pathless();
                Ok(())
            }
            AsconfParameter::Delete(ip) if self.paths.forget_pathless(ip) => Ok(()),
            AsconfParameter::Delete(ip) => {
                if !self.paths.lead_to(ip) {
                    return Err(Refusal::Unresolvable);
                }
                // F7, F8.
                if self.paths.remotes().all(|known| known == ip) {
                    return Err(Refusal::Address(LastAddress));
                }
                if ip == source {
                    return Err(Refusal::Address(SourceAddress));
                }
                self.remove_paths_to(now, ip);
                Ok(())
            }
            AsconfParameter::SetPrimary(ip) => {
                let ip = if ip.is_unspecified() { source } else { ip };
                if !self.paths.lead_to(ip) {
                    return Err(Refusal::Unresolvable);
                }
                if let Some(addresses) = &mut self.addresses {
                    addresses.wished = Some(ip);
                }
                self.grant_wish(now);
                Ok(())
            }
            // These are answers, not requests.
            AsconfParameter::Error(_) | AsconfParameter::Success | AsconfParameter::Unknown => {
                Err(Refusal::Unrecognized)
            }
        }
    }

    fn add_peer_address(&mut self, now: Time, from: FourTuple, ip: IpAddr) -> Result<(), Refusal> {
        if !init::can_pair(ip, from.remote.ip()) {
            return Err(Refusal::Unresolvable);
        }
        if self.paths.lead_to(ip) {
            return Ok(());
        }
        if ip == from.remote.ip() {
            self.add_path(now, from.local.ip(), SocketAddr::new(ip, from.remote.port()));
        } else {
            self.learn_addresses(now, &[ip], from.remote.port());
        }
        // F9.
        let shortage = Refusal::Address(AddressRefusal::ResourceShortage);
        if self.paths.is_peer_address(ip) { Ok(()) } else { Err(shortage) }
    }

    /// Makes the address that the peer has requested the primary, once a path to it is confirmed.
    pub(in crate::association) fn grant_wish(&mut self, now: Time) {
        let Some(wished) = self.addresses.as_ref().and_then(|a| a.wished) else { return };
        let fits = |p: &&crate::path::Path| p.is_to(wished) && p.state() != PathState::Unconfirmed;
        let Some(path) = self.paths.iter().find(fits).map(|p| p.id()) else { return };
        if let Some(addresses) = &mut self.addresses {
            addresses.wished = None;
        }
        self.paths.set_primary(now, path, &mut self.events);
    }
}

impl Refusal {
    fn write(&self, item: &AsconfItem<'_>, p: &mut AsconfWriter<'_>) -> Result<(), DoesNotFit> {
        // Long parameters are cut off.
        let raw = item.raw.get(..item.raw.len().min(64)).unwrap_or_default();
        p.refusal(item.correlation, |c| match self {
            Self::Address(refusal) => c.address_refused(*refusal, raw),
            Self::Unresolvable => c.unresolvable_address(raw.get(8..).unwrap_or_default()),
            Self::Unrecognized => {
                let whole = if raw.len() == item.raw.len() { raw } else { &[] };
                c.unrecognized_parameters(|p| p.append(Parameters::new(whole)))
            }
        })
    }
}
