//! Network address and port translators, NATs, for UDP (RFC 4787).
//!
//! A NAT is at the inner end of a link. A packet from inside gets an external address and port
//! before it is offered to the link; a packet from outside gets the internal ones back after the
//! link has delivered it, or is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use polypath_proto::Time;
use serde::{Deserialize, Serialize};

use super::packet::Packet;
use super::topology::{LinkId, NatBehavior, NatPlan};
use crate::random::Random;

/// What of an external endpoint matters to a mapping or a filter.
fn seen(behavior: NatBehavior, remote: SocketAddr) -> Option<(IpAddr, u16)> {
    match behavior {
        NatBehavior::EndpointIndependent => None,
        NatBehavior::AddressDependent => Some((remote.ip(), 0)),
        NatBehavior::AddressAndPortDependent => Some((remote.ip(), remote.port())),
    }
}

/// A NAT loses all mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NatReset {
    pub(crate) at: Time,
    /// Index of the NAT.
    pub(crate) nat: usize,
    /// External address that it has from then on; `None` keeps the address.
    pub(crate) address: Option<IpAddr>,
}

/// Counters of a NAT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatCounters {
    /// Mappings that were made.
    pub mappings: u64,
    /// Mappings that had ended when a packet from inside was to use them.
    pub expired: u64,
    /// Packets from outside that no mapping or filter let pass.
    pub refused: u64,
}

/// A NAT with its mappings.
#[derive(Debug)]
pub(super) struct Nat {
    plan: NatPlan,
    address: IpAddr,
    /// External ports by internal endpoint, and by what matters of the peer.
    by_inside: BTreeMap<Inside, u16>,
    /// All mappings, those that have ended included, by their external endpoint.
    mappings: BTreeMap<SocketAddr, Mapping>,
    next_port: u16,
    pub(super) counters: NatCounters,
}

type Inside = (SocketAddr, Option<(IpAddr, u16)>);

#[derive(Debug)]
struct Mapping {
    inside: Inside,
    /// When it was last refreshed; `None` once the NAT has lost it.
    refreshed: Option<Time>,
    /// What matters to the filter of the external endpoints to which it has sent.
    permits: BTreeSet<Option<(IpAddr, u16)>>,
}

/// External ports are at least this: "port assignment of ... 1024-65535" (RFC 4787 4.2.1).
const FIRST_PORT: u16 = 1024;

impl Mapping {
    fn is_alive(&self, now: Time, timeout: Duration) -> bool {
        self.refreshed.is_some_and(|at| now < at + timeout)
    }
}

impl Nat {
    pub(super) fn new(plan: NatPlan, seed: u64) -> Self {
        let mut dice = Random::named(seed, &format!("nat:{}", plan.name));
        let next_port = dice.between(FIRST_PORT.into(), u16::MAX.into()) as u16;
        Self {
            address: plan.addresses[0],
            plan,
            by_inside: BTreeMap::new(),
            mappings: BTreeMap::new(),
            next_port,
            counters: NatCounters::default(),
        }
    }

    /// Translates a packet that is about to enter `link`; false if it must be dropped.
    pub(super) fn leaves(&mut self, now: Time, link: LinkId, packet: &mut Packet) -> bool {
        if self.plan.links[0] != link {
            return true;
        }
        // It knows no transport protocol but UDP.
        let is_udp = packet.destination.port() != 0;
        match self.map(now, packet.source, packet.destination).filter(|_| is_udp) {
            Some(external) => packet.source = external,
            None => return false,
        }
        true
    }

    /// Translates a packet that has left `link`; false if it must be dropped.
    pub(super) fn enters(&mut self, now: Time, link: LinkId, packet: &mut Packet) -> bool {
        if self.plan.links[1] != link {
            return true;
        }
        match self.unmap(now, packet.source, packet.destination) {
            Some(internal) => packet.destination = internal,
            None => {
                self.counters.refused += 1;
                return false;
            }
        }
        true
    }

    /// The external endpoint of an internal one that sends to `remote`; `None` if all ports are in
    /// use.
    fn map(&mut self, now: Time, source: SocketAddr, remote: SocketAddr) -> Option<SocketAddr> {
        let timeout = self.plan.timeout;
        let inside = (source, seen(self.plan.mapping, remote));
        let permit = seen(self.plan.filtering, remote);
        if let Some(&port) = self.by_inside.get(&inside) {
            let external = SocketAddr::new(self.address, port);
            let known = self.mappings.get_mut(&external).filter(|m| m.is_alive(now, timeout));
            if let Some(known) = known {
                // RFC 4787 4.3: "NAT Outbound refresh behavior" of "True".
                known.refreshed = Some(now);
                known.permits.insert(permit);
                return Some(external);
            }
            self.counters.expired += 1;
        }
        let port = self.free_port(now)?;
        let external = SocketAddr::new(self.address, port);
        let permits = BTreeSet::from([permit]);
        self.by_inside.insert(inside, port);
        self.mappings.insert(external, Mapping { inside, refreshed: Some(now), permits });
        self.counters.mappings += 1;
        Some(external)
    }

    /// The next port: a new mapping does not get the port of the one that it replaces, as in the
    /// worst of NATs.
    fn free_port(&mut self, now: Time) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            let before = self.mappings.get(&SocketAddr::new(self.address, port));
            if !before.is_some_and(|mapping| mapping.is_alive(now, self.plan.timeout)) {
                if let Some(before) = before
                    && self.by_inside.get(&before.inside) == Some(&port)
                {
                    self.by_inside.remove(&before.inside);
                }
                return Some(port);
            }
        }
        None
    }

    /// The internal endpoint that a packet from `remote` to `external` is for.
    fn unmap(&mut self, now: Time, remote: SocketAddr, external: SocketAddr) -> Option<SocketAddr> {
        if external.ip() != self.address {
            return None;
        }
        let mapping = self.mappings.get_mut(&external)?;
        let permit = seen(self.plan.filtering, remote);
        if !mapping.is_alive(now, self.plan.timeout) || !mapping.permits.contains(&permit) {
            return None;
        }
        if self.plan.inbound_refresh {
            mapping.refreshed = Some(now);
        }
        Some(mapping.inside.0)
    }

    /// The internal endpoint that last had this external one.
    pub(super) fn inside_of(&self, external: SocketAddr) -> Option<SocketAddr> {
        self.mappings.get(&external).map(|mapping| mapping.inside.0)
    }

    /// Loses all mappings. The external address changes if there is a new one.
    pub(super) fn reset(&mut self, address: Option<IpAddr>) {
        self.by_inside.clear();
        for mapping in self.mappings.values_mut() {
            mapping.refreshed = None;
        }
        self.address = address.unwrap_or(self.address);
    }

    pub(super) fn name(&self) -> &str {
        &self.plan.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::topology::NodeId;

    fn nat(mapping: NatBehavior, filtering: NatBehavior) -> Nat {
        let plan = NatPlan {
            name: "home".to_owned(),
            inside: NodeId(0),
            links: [LinkId(0), LinkId(1)],
            addresses: vec![IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])],
            timeout: Duration::from_secs(30),
            mapping,
            filtering,
            inbound_refresh: false,
        };
        Nat::new(plan, 1)
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    const INSIDE: &str = "10.0.0.1:9899";
    use NatBehavior::{AddressAndPortDependent, AddressDependent, EndpointIndependent};

    /// RFC 4787 4.1: which packets from X:x to Y1:y1 and Y2:y2 have the same X':x'.
    #[test]
    fn mappings_are_shared_as_the_rfc_defines() {
        let table = [
            (EndpointIndependent, true, true),
            (AddressDependent, true, false),
            (AddressAndPortDependent, false, false),
        ];
        for (mapping, other_port, other_address) in table {
            let mut nat = nat(mapping, EndpointIndependent);
            let mut map = |remote| nat.map(Time::ZERO, at(INSIDE), at(remote)).unwrap();
            let first = map("198.51.100.1:1");
            assert_eq!(first, map("198.51.100.1:1"));
            assert_eq!(first == map("198.51.100.1:2"), other_port, "{mapping:?}");
            assert_eq!(first == map("198.51.100.2:1"), other_address, "{mapping:?}");
            assert_ne!(first, nat.map(Time::ZERO, at("10.0.0.2:9899"), at(INSIDE)).unwrap());
        }
    }

    /// RFC 4787 5: which external endpoints reach an internal one that has sent to Y1:y1.
    #[test]
    fn filters_let_pass_what_the_rfc_defines() {
        let table = [
            (EndpointIndependent, true, true),
            (AddressDependent, true, false),
            (AddressAndPortDependent, false, false),
        ];
        for (filtering, other_port, other_address) in table {
            let mut nat = nat(EndpointIndependent, filtering);
            let external = nat.map(Time::ZERO, at(INSIDE), at("198.51.100.1:1")).unwrap();
            let mut passes = |remote| nat.unmap(Time::ZERO, at(remote), external).is_some();
            assert!(passes("198.51.100.1:1"));
            assert_eq!(passes("198.51.100.1:2"), other_port, "{filtering:?}");
            assert_eq!(passes("198.51.100.2:1"), other_address, "{filtering:?}");
        }
    }

    /// RFC 4787 4.3: packets from inside refresh a mapping, and those from outside if so configured
    /// (REQ-6).
    #[test]
    fn mappings_end_after_a_time_without_refreshes() {
        let remote = at("198.51.100.1:1");
        for inbound in [false, true] {
            let mut nat = nat(EndpointIndependent, EndpointIndependent);
            nat.plan.inbound_refresh = inbound;
            let first = nat.map(Time::ZERO, at(INSIDE), remote).unwrap();
            assert_eq!(nat.map(Time::from_secs(29), at(INSIDE), remote), Some(first));
            assert_eq!(nat.unmap(Time::from_secs(58), remote, first), Some(at(INSIDE)));
            let after = nat.unmap(Time::from_secs(59), remote, first);
            assert_eq!(after.is_some(), inbound);
            let later = nat.map(Time::from_secs(60), at(INSIDE), remote).unwrap();
            assert_eq!(later == first, inbound);
            assert_eq!(nat.counters.expired, u64::from(!inbound));
            assert_eq!(nat.inside_of(first), Some(at(INSIDE)));
        }
    }

    #[test]
    fn a_reset_loses_every_mapping_and_may_change_the_address() {
        let remote = at("198.51.100.1:1");
        let mut nat = nat(EndpointIndependent, EndpointIndependent);
        let first = nat.map(Time::ZERO, at(INSIDE), remote).unwrap();
        nat.reset(None);
        assert_eq!(nat.unmap(Time::ZERO, remote, first), None);
        let second = nat.map(Time::ZERO, at(INSIDE), remote).unwrap();
        assert_eq!(second.ip(), first.ip());
        assert_ne!(second.port(), first.port());
        nat.reset(Some(IpAddr::from([192, 0, 2, 2])));
        let third = nat.map(Time::ZERO, at(INSIDE), remote).unwrap();
        assert_eq!(third.ip(), IpAddr::from([192, 0, 2, 2]));
        assert_eq!(nat.unmap(Time::ZERO, remote, second), None);
        assert_eq!(nat.unmap(Time::ZERO, remote, third), Some(at(INSIDE)));
    }

    /// Every port is in use: nothing more passes until one of them is free.
    #[test]
    fn ports_run_out_and_come_back() {
        let mut nat = nat(AddressAndPortDependent, EndpointIndependent);
        let remote =
            |n: u32| SocketAddr::new(IpAddr::from([198, 51, 100, (n >> 16) as u8]), n as u16);
        let ports = u32::from(u16::MAX - FIRST_PORT) + 1;
        let used: BTreeSet<_> =
            (0..ports).map(|n| nat.map(Time::ZERO, at(INSIDE), remote(n)).unwrap()).collect();
        assert_eq!(used.len() as u32, ports);
        assert_eq!(nat.map(Time::ZERO, at(INSIDE), remote(ports)), None);
        assert!(nat.map(Time::from_secs(30), at(INSIDE), remote(ports)).is_some());
        assert!(nat.by_inside.len() <= used.len());
    }
}
