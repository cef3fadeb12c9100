//! A protocol endpoint on a host of the simulated network.

use std::net::IpAddr;

use polypath_proto::{AssociationId, Endpoint, RouteTable, Time};

use crate::network::{HostId, Network};
use crate::scenario::StackPlan;

/// An endpoint of the protocol core, unchanged, with what drives it.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) endpoint: Endpoint,
    pub(crate) host: HostId,
    pub(crate) port: u16,
    /// Of the host's addresses those that it uses, the primary's first.
    pub(crate) addresses: Vec<IpAddr>,
    /// UDP port of the encapsulation; 0 on raw IP.
    pub(crate) udp_port: u16,
    /// Its associations: which conversation they belong to, and which side of it they are.
    pub(crate) associations: Vec<Membership>,
    /// Times of the timer events that are in the queue, the earliest last. A new one is scheduled
    /// only if it is earlier than all of these, so there are few of them.
    timers: Vec<Time>,
    instant: Time,
    timeouts_at_instant: u32,
    packets_at_instant: u32,
}

/// An association's place in the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Membership {
    pub(crate) id: AssociationId,
    pub(crate) conversation: usize,
    pub(crate) side: usize,
}

/// More timeouts than this at one instant are a storm: a deadline that does not go away.
const MOST_TIMEOUTS: u32 = 1_000;
/// More packets than this at one instant are a storm: no window is that large.
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
        }
    }

    pub(crate) fn membership(&self, id: AssociationId) -> Option<Membership> {
        self.associations.iter().find(|m| m.id == id).copied()
    }

    /// The host's addresses have changed: as on a real one, all are looked at anew, and what comes is heard of
    /// before what goes.
    pub(crate) fn follow_addresses(&mut self, now: Time, network: &Network<'_>) {
        for &ip in self.addresses.iter().filter(|ip| network.has(**ip)) {
            self.endpoint.add_local_address(now, ip);
        }
        for &ip in self.addresses.iter().filter(|ip| !network.has(**ip)) {
            self.endpoint.remove_local_address(now, ip);
        }
    }

    /// It has a socket with this address.
    pub(crate) fn is_bound(&self, ip: IpAddr) -> bool {
        self.endpoint.config().addresses.contains(&ip)
    }

    /// The time of the timer event to schedule, if one is needed.
    #[inline]
    pub(crate) fn arm(&mut self, now: Time) -> Option<Time> {
        let due = self.endpoint.poll_timeout()?.max(now);
        if due == Time::FAR_FUTURE || self.timers.last().is_some_and(|&armed| armed <= due) {
            return None;
        }
        self.timers.push(due);
        Some(due)
    }

    /// A timer event has come: true if a deadline has.
    pub(crate) fn fire(&mut self, now: Time) -> bool {
        // Events come in the order of their time, and the earliest is the last.
        let armed = self.timers.pop();
        debug_assert_eq!(armed, Some(now), "timer events and their record differ");
        self.endpoint.poll_timeout().is_some_and(|due| due <= now)
    }

    /// Counts a timeout.
    ///
    /// # Errors
    /// There are too many at this instant.
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
    /// There are too many at this instant.
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

/// Which interface a host uses to an address: of those that it has, one with the shortest way to it.
#[derive(Debug)]
pub(crate) struct HostRoutes {
    /// For each address of another host: own addresses from which a way leads there, with its links.
    ways: Vec<(IpAddr, Vec<(u32, IpAddr)>)>,
}

impl HostRoutes {
    pub(crate) fn new(network: &Network<'_>, host: HostId) -> Self {
        let own = network.topology.addresses(host);
        let others = (0..network.topology.hosts.len() as u32).map(HostId).filter(|&h| h != host);
        let ways = others.flat_map(|other| network.topology.addresses(other)).map(|remote| {
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
        // Of several interfaces that are as near, successive addresses of the peer take turns.
        (!usable.is_empty()).then(|| usable[index % usable.len()])
    }
}
