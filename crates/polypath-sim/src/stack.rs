//! A protocol endpoint on a host of the simulated network.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_proto::{AssociationId, Endpoint, PathId, RouteTable, Time};

use crate::network::{HostId, Network};
use crate::scenario::StackPlan;

/// An endpoint of the protocol core, unchanged, and its driver.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) endpoint: Endpoint,
    pub(crate) host: HostId,
    pub(crate) port: u16,
    /// The host's addresses that it uses, the primary's first.
    pub(crate) addresses: Vec<IpAddr>,
    /// UDP port of the encapsulation; 0 on raw IP.
    pub(crate) udp_port: u16,
    /// Its associations, with their conversations and sides.
    pub(crate) associations: Vec<Membership>,
    /// Times of its timer events in the queue, the earliest last. A new event is scheduled only if
    /// it is earlier than all of these, so there are few.
    timers: Vec<Time>,
    instant: Time,
    timeouts_at_instant: u32,
    packets_at_instant: u32,
    timeouts: BTreeMap<(AssociationId, PathId), Timeouts>,
}

/// The timeouts of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Timeouts {
    /// Expirations of T3-rtx so far.
    seen: u64,
    /// Those that were the second, third, fourth and fifth in a row, without an answer in between.
    in_a_row: [u64; 4],
}

/// The conversation and side that an association belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) id: AssociationId,
    pub(crate) conversation: usize,
    pub(crate) side: usize,
}

/// Maximum number of timeouts at one instant: more are a timer storm, from a deadline that is never
/// cleared.
const MOST_TIMEOUTS: u32 = 1_000;
/// Maximum number of packets at one instant: more are a busy loop, because no window is that large.
const MOST_PACKETS: u32 = 200_000;

impl Stack {
    pub(crate) fn new(endpoint: Endpoint, plan: &StackPlan, udp_port: u16) -> Self {
        Self {
            endpoint,
            host: plan.host,
            port: plan.port,
            addresses: plan.addresses.clone(),
            udp_port,
            associations: Vec::new(),
            timers: Vec::new(),
            instant: Time::ZERO,
            timeouts_at_instant: 0,
            packets_at_instant: 0,
            timeouts: BTreeMap::new(),
        }
    }

    pub(crate) fn membership(&self, id: AssociationId) -> Option<Membership> {
        self.associations.iter().find(|m| m.id == id).copied()
    }

    /// Follows a change of the host's addresses: as on a real host, all addresses are checked
    /// again, and additions are reported before removals.
    pub(crate) fn follow_addresses(&mut self, now: Time, network: &Network<'_>) {
        for &ip in self.addresses.iter().filter(|ip| network.has(**ip)) {
            self.endpoint.add_local_address(now, ip);
        }
        for &ip in self.addresses.iter().filter(|ip| !network.has(**ip)) {
            self.endpoint.remove_local_address(now, ip);
        }
    }

    /// Whether the endpoint has a socket with this address.
    pub(crate) fn is_bound(&self, ip: IpAddr) -> bool {
        self.endpoint.config().addresses.contains(&ip)
    }

    /// Time of the timer event to schedule for the endpoint's deadline, if one is needed.
    #[inline]
    pub(crate) fn arm(&mut self, now: Time, due: Time) -> Option<Time> {
        let due = due.max(now);
        if due == Time::FAR_FUTURE || self.timers.last().is_some_and(|&armed| armed <= due) {
            return None;
        }
        self.timers.push(due);
        Some(due)
    }

    /// Handles a timer event: true if a deadline of the endpoint has expired.
    pub(crate) fn fire(&mut self, now: Time) -> bool {
        // Events are handled in the order of their times, and the earliest is last.
        let armed = self.timers.pop();
        debug_assert_eq!(armed, Some(now), "timer events and their record differ");
        self.endpoint.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Handles the expired timers of the endpoint.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        for member in &self.associations {
            let Some(association) = self.endpoint.association(member.id) else { continue };
            for view in association.paths() {
                let expired = association.path_stats(view.id).map_or(0, |stats| stats.timeouts);
                if expired == 0 {
                    continue;
                }
                let path = self.timeouts.entry((member.id, view.id)).or_default();
                if std::mem::replace(&mut path.seen, expired) != expired
                    && let Some(at) = view.timeouts_in_a_row.checked_sub(2)
                    && let Some(count) = path.in_a_row.get_mut(at as usize)
                {
                    *count += 1;
                }
            }
        }
    }

    /// How many timeouts of a path were the second, third, fourth and fifth in a row.
    pub(crate) fn timeout_runs(&self, association: AssociationId, path: PathId) -> [u64; 4] {
        self.timeouts.get(&(association, path)).map_or([0; 4], |path| path.in_a_row)
    }

    /// Counts a timeout.
    ///
    /// # Errors
    /// There were too many at this instant.
    pub(crate) fn count_timeout(&mut self, now: Time) -> Result<(), String> {
        self.at_instant(now);
        self.timeouts_at_instant += 1;
        if self.timeouts_at_instant <= MOST_TIMEOUTS {
            return Ok(());
        }
        Err(format!("timer storm: {MOST_TIMEOUTS} timeouts at one instant"))
    }

    /// Counts a packet sent.
    ///
    /// # Errors
    /// There were too many at this instant.
    #[inline]
    pub(crate) fn count_packet(&mut self, now: Time) -> Result<(), String> {
        self.at_instant(now);
        self.packets_at_instant += 1;
        if self.packets_at_instant <= MOST_PACKETS {
            return Ok(());
        }
        Err(format!("busy loop: {MOST_PACKETS} packets sent at one instant"))
    }

    fn at_instant(&mut self, now: Time) {
        if self.instant != now {
            (self.instant, self.timeouts_at_instant, self.packets_at_instant) = (now, 0, 0);
        }
    }
}

/// Selects the local address for a destination: among the host's addresses, one with a shortest
/// route.
#[derive(Debug)]
pub(crate) struct HostRoutes {
    /// For each address of another host: the number of links and the local address of each route to
    /// it.
    ways: Vec<(IpAddr, Vec<(u32, IpAddr)>)>,
}

impl HostRoutes {
    pub(crate) fn new(network: &Network<'_>, host: HostId) -> Self {
        let own = network.topology.addresses(host);
        let others = (0..network.topology.hosts.len() as u32).map(HostId).filter(|&h| h != host);
        let external = network.topology.nats.iter().flat_map(|nat| nat.addresses.iter().copied());
        let remotes = others.flat_map(|other| network.topology.addresses(other)).chain(external);
        let ways = remotes.map(|remote| {
            let way = |&local: &IpAddr| network.hops(local, remote).map(|hops| (hops, local));
            (remote, own.iter().filter_map(way).collect())
        });
        Self { ways: ways.collect() }
    }
}

impl RouteTable for HostRoutes {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        let (_, ways) = self.ways.iter().find(|(address, _)| *address == remote)?;
        let there = || ways.iter().filter(|(_, local)| locals.contains(local));
        let shortest = there().map(|(hops, _)| hops).min()?;
        let best: Vec<IpAddr> =
            there().filter(|(hops, _)| hops == shortest).map(|(_, local)| *local).collect();
        let usable: Vec<IpAddr> = locals.iter().filter(|a| best.contains(a)).copied().collect();
        // Among equally near interfaces, successive addresses of the peer use each in turn.
        (!usable.is_empty()).then(|| usable[index % usable.len()])
    }
}
