//! The peer's ASCONF requests, and the answers to them (RFC 5061 5.2, 5.3).

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use super::Addresses;
use crate::association::Sender;
use crate::ids::{PathId, VerificationTag};
use crate::init;
use crate::path::PathState;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{
    AddressRefusal, Asconf, AsconfItem, AsconfParameter, AsconfWriter, CommonHeader, DoesNotFit,
    PacketWriter, Parameters,
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

impl Addresses {
    /// Processes an ASCONF chunk of the peer, and returns the ASCONF-ACK chunk; `None` if the
    /// ASCONF is dropped. `authenticated` if it had to be authenticated, `may_change` if ASCONF-ACK
    /// may be sent.
    pub(in crate::association) fn handle_asconf(
        &mut self,
        s: &mut Sender<'_>,
        now: Time,
        from: FourTuple,
        asconf: &Asconf<'_>,
        (authenticated, may_change): (bool, bool),
    ) -> Option<Bytes> {
        let lookup = asconf.lookup;
        // RFC 5061 4.1.1: the lookup address is one of the peer's, or the wildcard. Behind a NAT
        // the peer cannot know the address that this side sees; authentication identifies it
        // instead.
        let listed = |ip: IpAddr| ip.is_unspecified() || s.paths.lead_to(ip);
        let named = lookup.is_some_and(|ip| authenticated || listed(ip));
        if !named || !may_change {
            s.stats.dropped += 1;
            return None;
        }
        if asconf.serial != self.expected {
            // 5.2 E2: repeat the answer unchanged. E5: drop a stale ASCONF or an attacker's.
            let last = self.answer.as_ref().filter(|(serial, _)| *serial == asconf.serial);
            let Some((_, answer)) = last else {
                s.stats.dropped += 1;
                return None;
            };
            // Before this answer the peer could not answer a HEARTBEAT from its new address (5.3
            // F1): probe again.
            let new = s.paths.path_for(&from);
            let unconfirmed = |path: &PathId| s.paths[*path].state() == PathState::Unconfirmed;
            if let Some(path) = new.filter(unconfirmed) {
                s.send_heartbeat(now, path);
            }
            return Some(answer.clone());
        }
        self.expected = asconf.serial.wrapping_add(1);
        let mut answers: Vec<(AsconfItem<'_>, Option<Refusal>)> = Vec::new();
        // F11: "once a receiver begins failing any ADD or DELETE request, it must fail all
        // subsequent ADD or DELETE requests contained in that single ASCONF."
        let mut failed = false;
        for item in asconf.parameters.iter() {
            let Ok(item) = item else {
                s.stats.dropped += 1;
                break;
            };
            if answers.len() == MOST_REQUESTS {
                let shortage = Refusal::Address(AddressRefusal::ResourceShortage);
                answers.push((item, Some(shortage)));
                break;
            }
            let refusal = change_peer_address(s, now, from, &item, failed).err();
            let changes =
                matches!(item.parameter, AsconfParameter::Add(_) | AsconfParameter::Delete(_));
            failed |= changes && refusal.is_some();
            let stops = matches!(refusal, Some(Refusal::Unrecognized))
                && crate::wire::Action::of_parameter(item.ty).stops();
            answers.push((item, refusal));
            if stops {
                break;
            }
        }
        let mut buf = [0; MOST_BYTES];
        let header = CommonHeader {
            source_port: 0,
            destination_port: 0,
            verification_tag: VerificationTag(0),
        };
        let mut w = PacketWriter::new(&mut buf, header);
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
        self.answer = Some((asconf.serial, raw.clone()));
        Some(raw)
    }
}

fn change_peer_address(
    s: &mut Sender<'_>,
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
            add_peer_address(s, now, from, ip)
        }
        AsconfParameter::Delete(ip) if ip.is_unspecified() => {
            if !s.paths.lead_to(source) {
                return Err(Refusal::Address(LastAddress));
            }
            let others: Vec<IpAddr> = s.paths.remotes().filter(|ip| *ip != source).collect();
            others.into_iter().for_each(|ip| s.remove_paths_to(now, ip));
            s.paths.clear_pathless();
            Ok(())
        }
        AsconfParameter::Delete(ip) if s.paths.remove_pathless(ip) => Ok(()),
        AsconfParameter::Delete(ip) => {
            if !s.paths.lead_to(ip) {
                return Err(Refusal::Unresolvable);
            }
            // F7, F8.
            if s.paths.remotes().all(|known| known == ip) {
                return Err(Refusal::Address(LastAddress));
            }
            if ip == source {
                return Err(Refusal::Address(SourceAddress));
            }
            s.remove_paths_to(now, ip);
            Ok(())
        }
        AsconfParameter::SetPrimary(ip) => {
            let ip = if ip.is_unspecified() { source } else { ip };
            if !s.paths.lead_to(ip) {
                return Err(Refusal::Unresolvable);
            }
            s.paths.requested_primary = Some(ip);
            s.paths.apply_requested_primary(now, s.events);
            Ok(())
        }
        // These are answers, not requests.
        AsconfParameter::Error(_) | AsconfParameter::Success | AsconfParameter::Unknown => {
            Err(Refusal::Unrecognized)
        }
    }
}

fn add_peer_address(
    s: &mut Sender<'_>,
    now: Time,
    from: FourTuple,
    ip: IpAddr,
) -> Result<(), Refusal> {
    if !init::can_pair(ip, from.remote.ip()) {
        return Err(Refusal::Unresolvable);
    }
    if s.paths.lead_to(ip) {
        return Ok(());
    }
    if ip == from.remote.ip() {
        s.add_path(now, from.local.ip(), SocketAddr::new(ip, from.remote.port()));
    } else {
        s.learn_addresses(now, &[ip], from.remote.port());
    }
    // F9.
    let shortage = Refusal::Address(AddressRefusal::ResourceShortage);
    if s.paths.is_peer_address(ip) { Ok(()) } else { Err(shortage) }
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
