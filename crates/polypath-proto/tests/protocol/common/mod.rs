//! Endpoints on a network whose clock jumps from event to event.
//!
//! Host `h` has the address `10.p.0.(h + 1)` on network `p` (and `fd00:p::(h + 1)`), so that path
//! `p` of an association runs over network `p`. Everything sent is in [`Net::log`]. Packets to any
//! other address are logged and dropped; a [`Hand`] sends packets built by hand from such an
//! address. After every step the endpoints check their invariants, and a timer that expires again
//! and again without the clock moving fails the test.

mod hand;
mod packet;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use polypath_proto::{
    AddressChange, Association, AssociationId, AuthKeys, CloseReason, Config, Ecn, Encapsulation,
    Endpoint, EndpointConfig, Event, FourTuple, Message, PathId, PathState, PathView, PrefixRoutes,
    Received, Remote, RouteTable, Seed, SendError, StreamId, Time, Transmit,
};

pub(crate) use hand::{Hand, data_numbers};
pub(crate) use packet::{DataSeen, SackSeen, Sent};
use packet::{Tags, net_of};

pub(crate) const PORT: u16 = 9260;
pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;
pub(crate) const S: fn(u64) -> Duration = Duration::from_secs;

/// How the network treats a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Drop,
    Twice,
    /// Delayed by this much more.
    Late(Duration),
    /// Delivered with these bytes instead.
    Changed(Vec<u8>),
    /// Delivered with Congestion Experienced, if the packet is ECN-capable.
    Marked,
}

type Filter = Box<dyn FnMut(&Sent) -> Fate>;

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) events: Vec<(Time, Event)>,
    pub(crate) received: Vec<Received>,
    /// Whether the host receives messages as soon as they are reported readable.
    pub(crate) reads: bool,
    udp: u16,
}

pub(crate) struct Setup {
    pub(crate) paths: u8,
    /// Number of paths each host has; `paths` if `None`.
    pub(crate) own_paths: [Option<u8>; 2],
    pub(crate) configs: [Config; 2],
    pub(crate) listens: [bool; 2],
    pub(crate) udp: bool,
    pub(crate) v6: bool,
    /// Both families on each network.
    pub(crate) dual: bool,
    pub(crate) delay: Duration,
    pub(crate) seed: u64,
    pub(crate) max_associations: usize,
    pub(crate) zero_checksum: [bool; 2],
    pub(crate) auth_keys: [AuthKeys; 2],
    /// Every local address reaches every remote one over a network of its own.
    pub(crate) routed_everywhere: bool,
}

/// The routes of a host whose interfaces all lead to the Internet.
#[derive(Debug)]
struct Everywhere;

impl RouteTable for Everywhere {
    fn local_for(&self, remote: IpAddr, index: usize, locals: &[IpAddr]) -> Option<IpAddr> {
        PrefixRoutes.local_for(remote, index, locals)
    }

    fn all_for(&self, remote: IpAddr, locals: &[IpAddr]) -> Vec<IpAddr> {
        locals.iter().filter(|local| local.is_ipv4() == remote.is_ipv4()).copied().collect()
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            paths: 1,
            own_paths: [None; 2],
            configs: [Config::rfc9260(), Config::rfc9260()],
            listens: [false, true],
            udp: false,
            v6: false,
            dual: false,
            delay: MS(10),
            seed: 1,
            max_associations: 4096,
            zero_checksum: [false; 2],
            auth_keys: Default::default(),
            routed_everywhere: false,
        }
    }
}

pub(crate) fn v4(net: u8, host: usize) -> IpAddr {
    IpAddr::from([10, net, 0, host as u8 + 1])
}

pub(crate) fn v6(net: u8, host: usize) -> IpAddr {
    IpAddr::from([0xfd00, net.into(), 0, 0, 0, 0, 0, host as u16 + 1])
}

impl Setup {
    pub(crate) fn build(self) -> Net {
        let hosts = (0..2).map(|h| self.host(h, &self.configs[h], self.listens[h])).collect();
        Net {
            now: Time::ZERO,
            hosts,
            log: Vec::new(),
            delay: self.delay,
            delays: BTreeMap::new(),
            cuts: BTreeSet::new(),
            nat: None,
            filters: Vec::new(),
            wire: BTreeMap::new(),
            sequence: 0,
            tags: Tags::default(),
            arrival: None,
            expiries: 0,
        }
    }

    /// Builds host `h`: a third host, or another incarnation of a host.
    pub(crate) fn host(&self, h: usize, config: &Config, listen: bool) -> Host {
        let paths = self.own_paths.get(h).copied().flatten().unwrap_or(self.paths);
        let mut addresses = Vec::new();
        for net in 0..paths {
            if !self.v6 || self.dual {
                addresses.push(v4(net, h));
            }
            if self.v6 || self.dual {
                addresses.push(v6(net, h));
            }
        }
        let udp = if self.udp { 9899 } else { 0 };
        let encapsulation =
            if self.udp { Encapsulation::Udp { port: udp } } else { Encapsulation::RawIp };
        let config = EndpointConfig {
            listen,
            association: config.clone(),
            max_associations: self.max_associations,
            zero_checksum: self.zero_checksum[h.min(1)],
            auth_keys: self.auth_keys[h.min(1)].clone(),
            ..EndpointConfig::new(PORT, addresses.clone(), encapsulation)
        };
        let config = if self.routed_everywhere {
            EndpointConfig { routes: Arc::new(Everywhere), ..config }
        } else {
            config
        };
        let endpoint = Endpoint::new(config, Seed::from_u64(self.seed * 100 + h as u64));
        Host { endpoint, addresses, events: Vec::new(), received: Vec::new(), reads: true, udp }
    }
}

/// Source, destination, ECN codepoint and bytes.
type OnTheWire = (SocketAddr, SocketAddr, Ecn, Vec<u8>);

pub(crate) struct Net {
    pub(crate) now: Time,
    pub(crate) hosts: Vec<Host>,
    pub(crate) log: Vec<Sent>,
    pub(crate) delay: Duration,
    /// Delays that replace `delay`, by source host and destination network.
    pub(crate) delays: BTreeMap<(usize, u8), Duration>,
    /// Networks that drop every packet.
    pub(crate) cuts: BTreeSet<u8>,
    /// A local address behind a NAT, and its UDP port as seen from outside.
    pub(crate) nat: Option<(IpAddr, u16)>,
    filters: Vec<Filter>,
    wire: BTreeMap<(Time, u64), OnTheWire>,
    sequence: u64,
    tags: Tags,
    /// The packet that arrived in the last step.
    pub(crate) arrival: Option<Sent>,
    /// Calls of `handle_timeout` since the clock last moved.
    expiries: u32,
}

/// Two hosts with this number of paths between them and this configuration.
pub(crate) fn pair(paths: u8, config: Config) -> Net {
    Setup { paths, configs: [config.clone(), config], ..Setup::default() }.build()
}

/// As [`pair`], with host 0's association to host 1 established and its paths confirmed.
pub(crate) fn established(paths: u8, config: Config) -> Net {
    let mut net = pair(paths, config);
    net.establish();
    net
}

/// Pseudorandom bytes that depend on `kind`.
pub(crate) fn payload(kind: u64, len: usize) -> Bytes {
    let mut x = kind.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..len).map(|_| next()).collect()
}

impl Net {
    // The network.

    /// Adds a rule for every packet; the first rule that does not pass it decides.
    pub(crate) fn filter(&mut self, rule: impl FnMut(&Sent) -> Fate + 'static) {
        self.filters.push(Box::new(rule));
    }

    pub(crate) fn no_filters(&mut self) {
        self.filters.clear();
    }

    /// Applies `fate` to the packets with a `what` chunk whose numbers, counted from 1, are in
    /// `numbers`.
    pub(crate) fn nth(&mut self, what: &str, numbers: &[u32], fate: Fate) {
        let (what, numbers) = (what.to_owned(), numbers.to_vec());
        let mut count = 0;
        self.filter(move |p| {
            count += u32::from(p.has(&what));
            if p.has(&what) && numbers.contains(&count) { fate.clone() } else { Fate::Pass }
        });
    }

    /// Drops the first packet with each of these chunks.
    pub(crate) fn drop_once(&mut self, what: &[&str]) {
        for what in what {
            self.nth(what, &[1], Fate::Drop);
        }
    }

    pub(crate) fn drop_all(&mut self, what: &str) {
        let what = what.to_owned();
        self.filter(move |p| if p.has(&what) { Fate::Drop } else { Fate::Pass });
    }

    fn owner(&self, ip: IpAddr) -> Option<usize> {
        self.hosts.iter().position(|h| h.addresses.contains(&ip))
    }

    fn launch(&mut self, from: SocketAddr, t: &Transmit, bytes: &[u8]) {
        let to = t.destination;
        let from = match self.nat {
            Some((ip, port)) if ip == from.ip() => SocketAddr::new(ip, port),
            _ => from,
        };
        let mut sent = self.tags.read(self.now, from, to, bytes);
        (sent.fragmentation, sent.ecn) = (t.fragmentation, t.ecn);
        let fates = self.filters.iter_mut().map(|f| f(&sent));
        // Every rule sees every packet, so that all of them can count.
        let fates: Vec<Fate> = fates.collect();
        let mut fate = fates.into_iter().find(|f| *f != Fate::Pass).unwrap_or(Fate::Pass);
        let cut = self.cuts.contains(&net_of(&to)) || self.cuts.contains(&net_of(&from));
        let owner = self.owner(to.ip());
        let wrong_port = self.nat.is_some_and(|(ip, port)| ip == to.ip() && port != to.port());
        if cut || wrong_port || owner.is_none() {
            fate = Fate::Drop;
        }
        sent.delivered = fate != Fate::Drop;
        let key = (self.owner(from.ip()).unwrap_or(usize::MAX), net_of(&to));
        let delay = self.delays.get(&key).copied().unwrap_or(self.delay);
        self.log.push(sent);
        let times: &[Duration] = match fate {
            Fate::Drop => &[],
            Fate::Twice => &[delay, delay],
            Fate::Late(more) => &[delay + more],
            Fate::Pass | Fate::Changed(_) | Fate::Marked => &[delay],
        };
        let marked = fate == Fate::Marked && t.ecn != Ecn::NotEct;
        let ecn = if marked { Ecn::Ce } else { t.ecn };
        let bytes = if let Fate::Changed(other) = fate { other } else { bytes.to_vec() };
        for delay in times {
            self.sequence += 1;
            self.wire.insert((self.now + *delay, self.sequence), (from, to, ecn, bytes.clone()));
        }
    }

    /// Delivers a datagram that no host sent, at once.
    pub(crate) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.inject_all(from, to, &[bytes]);
    }

    /// Delivers several datagrams as a socket does in one call: nothing is sent in between.
    pub(crate) fn inject_all(&mut self, from: SocketAddr, to: SocketAddr, train: &[&[u8]]) {
        for bytes in train {
            let sent = self.tags.read(self.now, from, to, bytes);
            self.log.push(sent);
            self.deliver(from, to, Ecn::NotEct, bytes);
        }
        self.settle();
    }

    fn deliver(&mut self, from: SocketAddr, to: SocketAddr, ecn: Ecn, bytes: &[u8]) {
        let Some(h) = self.owner(to.ip()) else { return };
        let host = &mut self.hosts[h];
        let four_tuple = FourTuple { local: SocketAddr::new(to.ip(), host.udp), remote: from };
        host.endpoint.handle_datagram(self.now, four_tuple, ecn, bytes);
    }

    // Time.

    /// Sends all packets and reads all events that are due now.
    pub(crate) fn settle(&mut self) {
        let mut buf = vec![0; 65_536];
        for round in 0.. {
            assert!(round < 1000, "the endpoints never come to rest at {}", self.now);
            let mut quiet = true;
            for h in 0..self.hosts.len() {
                quiet &= !self.flush(h, &mut buf);
            }
            if quiet {
                break;
            }
        }
        for (h, host) in self.hosts.iter().enumerate() {
            if let Err(what) = host.endpoint.check_invariants() {
                panic!("host {h} at {}: {what}\n{}", self.now, self.tail(20));
            }
        }
    }

    /// Returns true if host `h` had a packet to send or an event.
    fn flush(&mut self, h: usize, buf: &mut [u8]) -> bool {
        let mut any = false;
        for count in 0.. {
            let host = &mut self.hosts[h];
            // A driver may look at the timers at any time, also between packets.
            host.endpoint.poll_timeout();
            let Some(t) = host.endpoint.poll_transmit(self.now, buf) else { break };
            assert!(count < 10_000, "host {h} sends without end at {}", self.now);
            any = true;
            let from = SocketAddr::new(t.source, host.udp);
            if !host.addresses.contains(&t.source) {
                continue;
            }
            let segment = t.segment_size.unwrap_or(t.size).max(1);
            for datagram in buf[..t.size].chunks(segment) {
                self.launch(from, &t, datagram);
            }
        }
        let host = &mut self.hosts[h];
        while let Some((id, event)) = host.endpoint.poll_event() {
            any = true;
            if event == Event::Readable && host.reads {
                let a = host.endpoint.association_mut(id).expect("an association that told");
                host.received.extend(std::iter::from_fn(|| a.recv(self.now)));
            }
            host.events.push((self.now, event));
        }
        any
    }

    fn next_event(&mut self) -> Option<Time> {
        let timers = self.hosts.iter_mut().filter_map(|h| h.endpoint.poll_timeout()).min();
        let arrival = self.wire.first_key_value().map(|(key, _)| key.0);
        timers.into_iter().chain(arrival).min()
    }

    /// Runs the next event, or moves the clock to `limit`. Returns false if no event is due by
    /// then.
    pub(crate) fn step(&mut self, limit: Time) -> bool {
        self.settle();
        let next = self.next_event().filter(|t| *t <= limit);
        let to = next.unwrap_or(limit).max(self.now);
        if to > self.now {
            self.expiries = 0;
        }
        self.now = to;
        if next.is_none() {
            return false;
        }
        let arrived = self.wire.first_entry().filter(|e| e.key().0 <= to).map(|e| e.remove());
        self.arrival =
            arrived.as_ref().map(|(f, t, _, bytes)| self.tags.read(self.now, *f, *t, bytes));
        if let Some((from, to, ecn, bytes)) = arrived {
            self.deliver(from, to, ecn, &bytes);
        } else {
            self.expiries += 1;
            assert!(self.expiries < 100, "a timer storm at {}\n{}", self.now, self.tail(20));
            for host in &mut self.hosts {
                if host.endpoint.poll_timeout().is_some_and(|t| t <= to) {
                    host.endpoint.handle_timeout(to);
                }
            }
        }
        self.settle();
        true
    }

    pub(crate) fn run_until(&mut self, limit: Time) {
        for steps in 0.. {
            assert!(steps < 1_000_000, "more steps than a test needs");
            if !self.step(limit) {
                return;
            }
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Runs until `what` holds; fails if it does not within `limit`.
    #[track_caller]
    pub(crate) fn drive_until(&mut self, limit: Duration, what: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        self.settle();
        let mut steps = 0;
        while !what(self) {
            steps += 1;
            let goes_on = steps < 1_000_000 && self.step(end);
            assert!(goes_on || what(self), "not so by {}\n{}", self.now, self.tail(40));
        }
    }

    /// Adds a local address to a host.
    pub(crate) fn comes(&mut self, h: usize, ip: IpAddr) {
        let now = self.now;
        self.hosts[h].addresses.push(ip);
        self.hosts[h].endpoint.add_local_address(now, ip);
        self.settle();
    }

    /// Removes a local address from a host: nothing more is sent from it or arrives at it.
    pub(crate) fn goes(&mut self, h: usize, ip: IpAddr) {
        let now = self.now;
        self.hosts[h].addresses.retain(|known| *known != ip);
        self.hosts[h].endpoint.remove_local_address(now, ip);
        self.settle();
    }

    // Associations. These methods use a host's last association, usually its only one.

    pub(crate) fn id(&self, h: usize) -> AssociationId {
        self.hosts[h].endpoint.associations().last().expect("an association")
    }

    pub(crate) fn a(&self, h: usize) -> &Association {
        self.hosts[h].endpoint.association(self.id(h)).expect("an association")
    }

    pub(crate) fn am(&mut self, h: usize) -> &mut Association {
        let id = self.id(h);
        self.hosts[h].endpoint.association_mut(id).expect("an association")
    }

    pub(crate) fn path(&self, h: usize, path: u8) -> PathView {
        self.a(h).path(PathId(path)).expect("a path")
    }

    /// The states of all paths.
    pub(crate) fn states(&self, h: usize) -> Vec<PathState> {
        self.a(h).paths().map(|p| p.state).collect()
    }

    pub(crate) fn remotes(&self, h: usize) -> Vec<Remote> {
        let host = &self.hosts[h];
        let remote = |ip: &IpAddr| Remote { address: (*ip, host.udp).into(), local: None };
        host.addresses.iter().map(remote).collect()
    }

    /// Host `h` opens an association with the other host, of which it knows the first address.
    pub(crate) fn connect(&mut self, h: usize) -> AssociationId {
        let remotes = self.remotes(1 - h);
        let id = self.hosts[h].endpoint.connect(self.now, PORT, &remotes[..1]).expect("connects");
        self.settle();
        id
    }

    #[track_caller]
    pub(crate) fn establish(&mut self) {
        self.connect(0);
        self.drive_until(S(10), |net| net.all_active());
        // Wait for the acknowledgements of the last HEARTBEATs.
        let quiet = self.now + self.delay * 2;
        self.run_until(quiet);
    }

    /// Both sides are established and all their paths confirmed.
    pub(crate) fn all_active(&self) -> bool {
        (0..2).all(|h| {
            self.hosts[h].endpoint.associations().count() > 0
                && self.a(h).is_established()
                && self.states(h).iter().all(|s| *s == PathState::Active)
        })
    }

    pub(crate) fn send(&mut self, h: usize, stream: u16, payload: Bytes) -> Result<(), SendError> {
        self.send_message(h, Message::new(StreamId(stream), payload))
    }

    pub(crate) fn send_message(&mut self, h: usize, message: Message) -> Result<(), SendError> {
        let now = self.now;
        let sent = self.am(h).send(now, message);
        self.settle();
        sent
    }

    /// Receives all messages that are ready.
    pub(crate) fn read(&mut self, h: usize) -> Vec<Received> {
        let now = self.now;
        let a = self.am(h);
        let got: Vec<_> = std::iter::from_fn(|| a.recv(now)).collect();
        self.settle();
        got
    }

    pub(crate) fn shutdown(&mut self, h: usize) {
        let now = self.now;
        self.am(h).shutdown(now);
        self.settle();
    }

    pub(crate) fn abort(&mut self, h: usize, reason: &[u8]) {
        let now = self.now;
        self.am(h).abort(now, reason);
        self.settle();
    }

    pub(crate) fn closed(&self, h: usize) -> Option<CloseReason> {
        self.a(h).close_reason().cloned()
    }

    // What was seen.

    pub(crate) fn saw(&self, h: usize, event: &Event) -> bool {
        self.hosts[h].events.iter().any(|(_, e)| e == event)
    }

    pub(crate) fn events(&self, h: usize, what: impl Fn(&Event) -> bool) -> Vec<(u64, Event)> {
        let events = self.hosts[h].events.iter().filter(|(_, e)| what(e));
        events.map(|(at, e)| (at.as_nanos() / 1_000_000, e.clone())).collect()
    }

    /// The local address changes that host `h` reported: address, and whether the peer accepted it.
    pub(crate) fn address_changes(&self, h: usize) -> Vec<(AddressChange, IpAddr, bool)> {
        let changes = self.hosts[h].events.iter().filter_map(|(_, event)| match event {
            Event::LocalAddress { address, change, granted } => Some((*change, *address, *granted)),
            _ => None,
        });
        changes.collect()
    }

    /// Packets that host `h` sent since the log had `mark` entries.
    pub(crate) fn sent_since(&self, h: usize, mark: usize) -> Vec<Sent> {
        let ours = |p: &&Sent| self.hosts[h].addresses.contains(&p.from.ip());
        self.log[mark..].iter().filter(ours).cloned().collect()
    }

    pub(crate) fn sent(&self, h: usize) -> Vec<Sent> {
        self.sent_since(h, 0)
    }

    /// Packets that host `h` sent with a `what` chunk.
    pub(crate) fn sent_with(&self, h: usize, what: &str) -> Vec<Sent> {
        self.sent(h).into_iter().filter(|p| p.has(what)).collect()
    }

    /// Times at which host `h` sent a `what` chunk, in milliseconds.
    pub(crate) fn times(&self, h: usize, what: &str) -> Vec<u64> {
        self.sent_with(h, what).iter().map(Sent::ms).collect()
    }

    /// The log since `mark` as lines: "A INIT", "B INIT ACK", "X .." for a sender that is not a
    /// host.
    pub(crate) fn script_since(&self, mark: usize) -> Vec<String> {
        let who = |p: &Sent| match self.owner(p.from.ip()) {
            Some(h) => char::from(b'A' + h as u8),
            None => 'X',
        };
        self.log[mark..].iter().map(|p| format!("{} {}", who(p), p.text())).collect()
    }

    pub(crate) fn script(&self) -> Vec<String> {
        self.script_since(0)
    }

    /// The last lines of the log, for failure messages.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let mark = self.log.len().saturating_sub(lines);
        let script = self.script_since(mark);
        let line = |(p, text): (&Sent, &String)| {
            let lost = if p.delivered { "" } else { "  (lost)" };
            format!("{} {} -> {} {text}{lost}\n", p.at, p.from.ip(), p.to.ip())
        };
        self.log[mark..].iter().zip(&script).map(line).collect()
    }
}
