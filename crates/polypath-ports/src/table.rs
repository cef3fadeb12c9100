//! The table of SCTP ports: which process has which addresses and ports.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;

/// Number of a UDP socket in the group, and so of the process that has it. 0 is the daemon's.
pub type Slot = u32;

/// Linux's default range of ports for sockets without a name (net.ipv4.ip_local_port_range).
const EPHEMERAL: Range<u16> = 32_768..61_000;

/// Ports that were freed lately are not chosen again: a peer may still send to them.
const RECENT: usize = 1024;

/// The addresses and the port of a socket, which it has or requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// SCTP port; 0 requests any that no process has.
    pub port: u16,
    /// All IPv4 addresses of the host, if there are no `addresses`.
    pub any_v4: bool,
    /// All IPv6 addresses of the host, if there are no `addresses`.
    pub any_v6: bool,
    /// Single addresses.
    pub addresses: Vec<IpAddr>,
    /// SO_REUSEADDR or SCTP_REUSE_PORT.
    pub reuses: bool,
    /// SO_REUSEPORT.
    pub shares: bool,
    /// The socket has an endpoint, which processes datagrams. The daemon replies to those for one
    /// that has only a name.
    pub opened: bool,
    /// The socket accepts associations.
    pub listens: bool,
}

/// Why a claim was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another process has the port at one of the addresses, or there is no free port.
    InUse,
}

/// The claims of all processes.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// By process and the number that the process has given.
    claims: BTreeMap<(Slot, u32), (u64, Claim)>,
    /// Age of the next claim.
    next: u64,
    recent: VecDeque<u16>,
}

/// The processes that have an SCTP port, for datagrams of one IP version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// That of the wildcard address.
    pub any: Option<Slot>,
    /// Those of single addresses.
    pub single: BTreeMap<IpAddr, Slot>,
}

/// Targets by SCTP port.
pub type Routes = BTreeMap<u16, Targets>;

impl Claim {
    fn is_any(&self, ip: &IpAddr) -> bool {
        if ip.is_ipv4() { self.any_v4 } else { self.any_v6 }
    }

    /// Whether a datagram may be for both.
    fn overlaps(&self, other: &Self) -> bool {
        let any = (self.any_v4 && other.any_v4) || (self.any_v6 && other.any_v6);
        let covers = |one: &Self, two: &Self| two.addresses.iter().any(|ip| one.is_any(ip));
        let same = self.addresses.iter().any(|ip| other.addresses.contains(ip));
        self.port == other.port && (any || same || covers(self, other) || covers(other, self))
    }

    /// Whether both may exist: each socket has SO_REUSEADDR and the other one does not listen, or
    /// each has SO_REUSEPORT. Two do not listen.
    fn permits(&self, other: &Self) -> bool {
        let both = (self.reuses && other.reuses && !other.listens) || (self.shares && other.shares);
        both && !(self.listens && other.listens)
    }
}

impl Table {
    /// Makes a claim, or replaces one with the same number. Returns the port. Those of one process
    /// do not exclude each other: the process compares its own. `random` is where the search for a
    /// free port begins.
    pub fn claim(
        &mut self,
        slot: Slot,
        id: u32,
        mut claim: Claim,
        random: u16,
    ) -> Result<u16, Refusal> {
        if claim.port == 0 {
            claim.port = self.free_port(random).ok_or(Refusal::InUse)?;
        }
        let excludes = |(of, other): (&(Slot, u32), &(u64, Claim))| {
            of.0 != slot && claim.overlaps(&other.1) && !claim.permits(&other.1)
        };
        if self.claims.iter().any(excludes) {
            return Err(Refusal::InUse);
        }
        let port = claim.port;
        let age = self.claims.get(&(slot, id)).map_or(self.next, |(age, _)| *age);
        self.next += 1;
        self.claims.insert((slot, id), (age, claim));
        Ok(port)
    }

    /// Removes a claim.
    pub fn release(&mut self, slot: Slot, id: u32) {
        if let Some((_, claim)) = self.claims.remove(&(slot, id)) {
            self.recent.truncate(RECENT - 1);
            self.recent.push_front(claim.port);
        }
    }

    /// Removes all claims of a process.
    pub fn release_all(&mut self, slot: Slot) {
        let ids: Vec<u32> =
            self.claims.range((slot, 0)..=(slot, u32::MAX)).map(|(k, _)| k.1).collect();
        for id in ids {
            self.release(slot, id);
        }
    }

    /// Claims of a process.
    pub fn count(&self, slot: Slot) -> usize {
        self.claims.range((slot, 0)..=(slot, u32::MAX)).count()
    }

    /// A port that no process has, and preferably none has had lately.
    fn free_port(&self, random: u16) -> Option<u16> {
        let start = random % (EPHEMERAL.end - EPHEMERAL.start);
        let used: std::collections::BTreeSet<u16> =
            self.claims.values().map(|(_, claim)| claim.port).collect();
        let mut all = (EPHEMERAL.start + start..EPHEMERAL.end)
            .chain(EPHEMERAL.start..EPHEMERAL.start + start)
            .filter(|port| !used.contains(port));
        all.clone().find(|port| !self.recent.contains(port)).or_else(|| all.next())
    }

    /// Where datagrams go. Of several processes with the same address and port, the one that
    /// listens has them, or else the newest.
    pub fn routes(&self, v6: bool) -> Routes {
        let mut all: Vec<(&Slot, &u64, &Claim)> =
            self.claims.iter().map(|((slot, _), (age, claim))| (slot, age, claim)).collect();
        // Later ones replace earlier ones.
        all.sort_by_key(|(_, age, claim)| (claim.listens, **age));
        let mut routes = Routes::new();
        for (slot, _, claim) in all {
            let fits = |ip: &&IpAddr| ip.is_ipv6() == v6;
            let any = if v6 { claim.any_v6 } else { claim.any_v4 };
            let single: Vec<&IpAddr> = claim.addresses.iter().filter(fits).collect();
            if claim.opened && (any || !single.is_empty()) {
                let targets = routes.entry(claim.port).or_default();
                targets.any = if any { Some(*slot) } else { targets.any };
                targets.single.extend(single.into_iter().map(|ip| (*ip, *slot)));
            }
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any(port: u16) -> Claim {
        Claim { port, any_v4: true, opened: true, ..Claim::default() }
    }

    fn at(port: u16, ip: &str) -> Claim {
        Claim { port, addresses: vec![ip.parse().unwrap()], ..Claim::default() }
    }

    #[test]
    fn a_port_of_another_process_is_in_use_where_addresses_overlap() {
        let mut table = Table::default();
        assert_eq!(table.claim(1, 1, any(7000), 0), Ok(7000));
        assert_eq!(table.claim(2, 1, any(7000), 0), Err(Refusal::InUse));
        assert_eq!(table.claim(2, 1, at(7000, "192.0.2.1"), 0), Err(Refusal::InUse));
        assert_eq!(table.claim(2, 1, at(7000, "2001:db8::1"), 0), Ok(7000));
        assert_eq!(table.claim(3, 1, at(7000, "2001:db8::2"), 0), Ok(7000));
        assert_eq!(table.claim(3, 2, at(7000, "2001:db8::1"), 0), Err(Refusal::InUse));
        let both = Claim { any_v6: true, ..any(7001) };
        assert_eq!(table.claim(1, 2, both, 0), Ok(7001));
        assert_eq!(table.claim(2, 2, at(7001, "2001:db8::1"), 0), Err(Refusal::InUse));
        // The same process decides on its own.
        assert_eq!(table.claim(1, 3, any(7000), 0), Ok(7000));
    }

    /// socket(7), RFC 6458 8.1.27: both have to permit it, and no socket may take the port of one
    /// that listens.
    #[test]
    fn sockets_that_permit_it_have_one_port() {
        let reuses = Claim { reuses: true, ..any(7000) };
        let shares = Claim { shares: true, ..any(7000) };
        let listens = |claim: &Claim| Claim { listens: true, ..claim.clone() };
        let second = |one: &Claim, two: &Claim| {
            let mut table = Table::default();
            table.claim(1, 1, one.clone(), 0).unwrap();
            table.claim(2, 1, two.clone(), 0).is_ok()
        };
        assert!(second(&reuses, &reuses));
        assert!(!second(&any(7000), &reuses));
        assert!(!second(&reuses, &any(7000)));
        assert!(!second(&listens(&reuses), &reuses));
        assert!(second(&reuses, &listens(&reuses)));
        assert!(second(&listens(&shares), &shares));
        assert!(!second(&listens(&shares), &listens(&shares)));
        assert!(!second(&shares, &reuses));
    }

    #[test]
    fn the_process_that_listens_has_the_datagrams() {
        let mut table = Table::default();
        let reuses = Claim { reuses: true, ..any(7000) };
        for slot in 1..4 {
            table.claim(slot, 1, reuses.clone(), 0).unwrap();
        }
        assert_eq!(table.routes(false)[&7000].any, Some(3), "the newest");
        table.claim(1, 1, Claim { listens: true, ..reuses }, 0).unwrap();
        assert_eq!(table.routes(false)[&7000].any, Some(1));
        assert_eq!(table.routes(true), Routes::new());
        table.release_all(1);
        assert_eq!(table.routes(false)[&7000].any, Some(3));
    }

    #[test]
    fn a_socket_that_has_only_a_name_has_no_datagrams() {
        let mut table = Table::default();
        let claim = Claim { opened: false, ..any(7000) };
        table.claim(1, 1, claim.clone(), 0).unwrap();
        assert_eq!(table.routes(false), Routes::new());
        assert_eq!(table.claim(2, 1, claim, 0), Err(Refusal::InUse));
        table.claim(1, 1, any(7000), 0).unwrap();
        assert_eq!(table.routes(false)[&7000].any, Some(1));
    }

    #[test]
    fn a_free_port_is_none_that_a_process_has_or_has_had_lately() {
        let mut table = Table::default();
        let first = table.claim(1, 1, any(0), 5).unwrap();
        assert_eq!(first, 32_773);
        assert_eq!(table.claim(2, 1, any(0), 5), Ok(32_774));
        table.release_all(2);
        assert_eq!(table.claim(2, 1, any(0), 5), Ok(32_775));
        assert_eq!(table.claim(2, 2, any(32_774), 0), Ok(32_774), "a port that is asked for");
    }

    #[test]
    fn there_are_as_many_free_ports_as_the_range_has() {
        let mut table = Table::default();
        let claims = EPHEMERAL.map(|port| ((1, u32::from(port)), (0, any(port))));
        table.claims = claims.collect();
        assert_eq!(table.claim(2, 1, any(0), 9), Err(Refusal::InUse));
        table.release(1, 40_000);
        assert_eq!(table.claim(2, 1, any(0), 9), Ok(40_000), "though it was freed lately");
    }

    fn claims() -> impl Strategy<Value = Claim> {
        let address = prop::sample::select(vec!["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
        let addresses = prop::collection::vec(address, 0..3);
        (0u16..4, addresses, prop::array::uniform4(prop::bool::ANY)).prop_map(
            |(port, ips, flags)| {
                let wildcard = ips.is_empty();
                Claim {
                    port,
                    any_v4: wildcard,
                    any_v6: wildcard && flags[3],
                    addresses: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
                    reuses: flags[0],
                    shares: flags[1],
                    opened: true,
                    listens: flags[2],
                }
            },
        )
    }

    proptest! {
        /// Claims of two processes that overlap permit each other, whatever was claimed and
        /// released before, and each route leads to a process that has claimed the port.
        #[test]
        fn no_two_processes_exclude_each_other(
            steps in prop::collection::vec((1u32..4, 0u32..3, claims(), 0u8..4), 1..40),
        ) {
            let mut table = Table::default();
            for (slot, id, claim, what) in steps {
                match what {
                    0 => table.release(slot, id),
                    _ => drop(table.claim(slot, id, claim, 0)),
                }
            }
            for ((one, _), (_, a)) in &table.claims {
                for ((two, _), (_, b)) in &table.claims {
                    let listen = a.listens && b.listens;
                    prop_assert!(one == two || !a.overlaps(b) || !listen);
                    let both = (a.reuses && b.reuses) || (a.shares && b.shares);
                    prop_assert!(one == two || !a.overlaps(b) || both);
                }
            }
            for v6 in [false, true] {
                for (port, targets) in table.routes(v6) {
                    for slot in targets.any.into_iter().chain(targets.single.into_values()) {
                        let has = |((of, _), (_, claim)): (&(Slot, u32), &(u64, Claim))|
                            *of == slot && claim.port == port;
                        prop_assert!(table.claims.iter().any(has));
                    }
                }
            }
        }
    }
}
