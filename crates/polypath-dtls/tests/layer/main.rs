//! Two layers and the network between them.

mod first_byte;
mod hostile;
mod key_log;
mod older;
mod trust;
mod ways;

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use polypath_dtls::{
    Event, Fingerprint, Identity, Layer, OVERHEAD, Options, Trust, Upper, Version,
};
use polypath_proto::{FourTuple, Time};

/// A layer, with the packets and events that it has delivered.
pub(crate) struct Host {
    pub(crate) layer: Layer,
    pub(crate) received: Vec<(Fingerprint, Vec<u8>)>,
    pub(crate) events: Vec<Event>,
    /// Remote addresses and certificates of associations.
    pub(crate) in_use: BTreeSet<(SocketAddr, Fingerprint)>,
}

struct Inbox<'a> {
    received: &'a mut Vec<(Fingerprint, Vec<u8>)>,
    in_use: &'a BTreeSet<(SocketAddr, Fingerprint)>,
}

impl Upper for Inbox<'_> {
    fn deliver(&mut self, peer: Fingerprint, packet: &[u8]) {
        self.received.push((peer, packet.to_vec()));
    }

    fn in_use(&self) -> BTreeSet<(SocketAddr, Fingerprint)> {
        self.in_use.clone()
    }
}

impl Host {
    pub(crate) fn new(trust: Trust) -> Self {
        Self::with(Options::new(Identity::generate().unwrap(), trust))
    }

    pub(crate) fn with(options: Options) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an Instant has no other constructor")]
        let layer = Layer::new(options, &[9; 32], Instant::now());
        Self { layer, received: Vec::new(), events: Vec::new(), in_use: BTreeSet::new() }
    }

    /// A host that replaces a connection after 40 packets.
    pub(crate) fn often_rekeyed() -> Self {
        let mut options = Options::new(Identity::generate().unwrap(), Trust::Anyone);
        options.rekey_after = 40;
        Self::with(options.at_least(Version::Dtls12))
    }

    pub(crate) fn takes(&mut self, now: Time, way: FourTuple, datagram: &[u8]) {
        let mut inbox = Inbox { received: &mut self.received, in_use: &self.in_use };
        self.layer.handle_datagram(now, way, datagram, &mut inbox);
        while let Some(event) = self.layer.poll_event() {
            self.events.push(event);
        }
    }

    pub(crate) fn packets(&self) -> Vec<&[u8]> {
        self.received.iter().map(|(_, packet)| &packet[..]).collect()
    }
}

/// The path between the addresses with these last bytes, seen from one side; `back` is the other
/// side's view.
pub(crate) fn way(from: u8, to: u8) -> FourTuple {
    FourTuple { local: ([192, 0, 2, from], 9899).into(), remote: ([192, 0, 2, to], 9899).into() }
}

pub(crate) fn back(way: FourTuple) -> FourTuple {
    FourTuple { local: way.remote, remote: way.local }
}

/// Two hosts, and the datagrams between them.
pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) here: Host,
    pub(crate) there: Host,
    /// Datagrams that have been delivered, with their sender's path.
    pub(crate) carried: Vec<(FourTuple, Vec<u8>)>,
    /// Numbers of the datagrams that get lost, counted from the first one.
    pub(crate) lose: std::ops::Range<usize>,
    /// Whether an attacker on the path hides that ClientHellos offer DTLS 1.3.
    pub(crate) hide: bool,
    number: usize,
    on_the_way: VecDeque<(bool, FourTuple, Vec<u8>)>,
}

impl Pair {
    pub(crate) fn new(here: Host, there: Host) -> Self {
        Self {
            now: Time::from_secs(1000),
            here,
            there,
            carried: Vec::new(),
            lose: 0..0,
            hide: false,
            number: 0,
            on_the_way: VecDeque::new(),
        }
    }

    pub(crate) fn of_strangers() -> Self {
        Self::new(Host::new(Trust::Anyone), Host::new(Trust::Anyone))
    }

    /// Sends a packet from one of the hosts.
    pub(crate) fn send(&mut self, from_here: bool, way: FourTuple, packet: &[u8]) -> bool {
        self.send_to(from_here, way, None, packet)
    }

    pub(crate) fn send_to(
        &mut self,
        from_here: bool,
        way: FourTuple,
        expected: Option<Fingerprint>,
        packet: &[u8],
    ) -> bool {
        let host = if from_here { &mut self.here } else { &mut self.there };
        let mut out = Vec::new();
        let sealed = host.layer.seal(self.now, way, expected, packet, &mut out);
        if let Some(way) = sealed {
            self.on_the_way.push_back((from_here, way, out));
        }
        sealed.is_some()
    }

    /// Delivers datagrams until both hosts are silent.
    pub(crate) fn settle(&mut self) {
        loop {
            for (from_here, host) in [(true, &mut self.here), (false, &mut self.there)] {
                while let Some((way, datagram)) = host.layer.poll_transmit() {
                    self.on_the_way.push_back((from_here, way, datagram));
                }
            }
            let Some((from_here, way, mut datagram)) = self.on_the_way.pop_front() else { return };
            if self.hide {
                older::hide(&mut datagram);
            }
            self.number += 1;
            if self.lose.contains(&(self.number - 1)) {
                continue;
            }
            let host = if from_here { &mut self.there } else { &mut self.here };
            host.takes(self.now, back(way), &datagram);
            self.carried.push((way, datagram));
        }
    }

    /// Lets time pass, and handles timeouts.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let timeouts = [self.here.layer.poll_timeout(), self.there.layer.poll_timeout()];
            match timeouts.into_iter().flatten().min() {
                Some(next) if next <= end => {
                    self.now = self.now.max(next);
                    self.here.layer.handle_timeout(self.now);
                    self.there.layer.handle_timeout(self.now);
                }
                _ => break,
            }
        }
        self.now = end;
    }
}

#[test]
fn packets_go_both_ways_each_in_a_record() {
    let mut pair = Pair::of_strangers();
    assert!(!pair.send(true, way(1, 2), b"first"), "has to wait");
    pair.settle();
    assert_eq!(pair.there.packets(), [b"first"]);
    let size = pair.carried.len();
    for len in [1, 100, 1400, 9000] {
        assert!(pair.send(false, way(2, 1), &vec![7; len]));
        assert!(pair.send(true, way(1, 2), &vec![8; len]));
        pair.settle();
        let sizes: Vec<usize> = pair.carried.iter().rev().take(2).map(|(_, d)| d.len()).collect();
        assert_eq!(sizes, [len + OVERHEAD; 2]);
    }
    assert_eq!(pair.carried.len(), size + 8);
    assert_eq!(pair.here.packets().len(), 4);
    assert_eq!(pair.there.packets().len(), 5);
    let (here, there) = (pair.here.layer.fingerprint(), pair.there.layer.fingerprint());
    assert!(pair.here.received.iter().all(|(peer, _)| *peer == there));
    assert!(pair.there.received.iter().all(|(peer, _)| *peer == here));
    assert_eq!(pair.here.events, [Event::Opened { way: way(1, 2), peer: there }]);
    assert_eq!(pair.there.events, [Event::Opened { way: way(2, 1), peer: here }]);
}

fn what_gets_lost_of_the_handshake_comes_again(make: fn() -> Pair) {
    for lost in [0..1, 1..2, 2..3, 3..4, 4..5, 5..6, 0..3, 1..4, 2..5, 3..6] {
        let mut pair = make();
        pair.lose = lost.clone();
        pair.send(true, way(1, 2), b"first");
        pair.pass(Duration::from_secs(12));
        assert_eq!(pair.here.layer.stats().opened, 1, "{lost:?} lost");
        // The first packet may have been lost with the last flight; only SCTP would retransmit it.
        pair.send(true, way(1, 2), b"second");
        pair.settle();
        assert_eq!(pair.there.packets().last(), Some(&&b"second"[..]), "{lost:?} lost");
    }
}

#[test]
fn whatever_gets_lost_of_the_handshake_comes_again() {
    what_gets_lost_of_the_handshake_comes_again(Pair::of_strangers);
}

#[test]
fn nobody_there_is_given_up_and_tried_again() {
    let mut pair = Pair::of_strangers();
    pair.lose = 0..usize::MAX;
    pair.send(true, way(1, 2), b"first");
    pair.pass(Duration::from_secs(30));
    assert_eq!(pair.here.layer.ways(), 0);
    assert_eq!(pair.here.layer.stats().failed, 1);
    pair.lose = 0..0;
    pair.send(true, way(1, 2), b"second");
    pair.settle();
    assert_eq!(pair.there.packets(), [b"second"]);
}

#[test]
fn packets_that_a_handshake_does_not_send_are_counted() {
    for mut pair in [Pair::of_strangers(), older::pair()] {
        pair.lose = 0..usize::MAX;
        for _ in 0..10 {
            pair.send(true, way(1, 2), b"packet");
        }
        assert_eq!(pair.here.layer.stats().dropped, 2, "eight wait");
        pair.pass(Duration::from_secs(30));
        assert_eq!((pair.here.layer.stats().failed, pair.here.layer.stats().dropped), (1, 10));
        // The layer is closed during a handshake.
        pair.send(true, way(1, 2), b"packet");
        pair.here.layer.close(pair.now);
        assert_eq!(pair.here.layer.stats().dropped, 11);
    }
}

#[test]
fn keys_change_while_packets_go() {
    let mut pair = Pair::new(Host::often_rekeyed(), Host::often_rekeyed());
    rekeys(&mut pair);
}

/// Both send for a while, and their connection is replaced meanwhile.
pub(crate) fn rekeys(pair: &mut Pair) {
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    for number in 0..500u16 {
        pair.pass(Duration::from_millis(100));
        pair.send(true, way(1, 2), &number.to_be_bytes());
        pair.send(false, way(2, 1), &number.to_be_bytes());
        pair.settle();
    }
    let stats = (pair.here.layer.stats(), pair.there.layer.stats());
    assert_eq!(pair.here.received.len(), 500, "{stats:?}");
    assert_eq!(pair.there.received.len(), 501, "{stats:?}");
    // At most one replacement every ten seconds.
    assert!((4..=6).contains(&stats.0.opened), "{stats:?}");
    assert_eq!(stats.0.opened, stats.1.opened);
    assert_eq!((stats.0.failed, stats.1.failed), (0, 0));
}

#[test]
fn goodbye_is_said_and_taken() {
    for mut pair in [Pair::of_strangers(), older::pair()] {
        pair.send(true, way(1, 2), b"first");
        pair.settle();
        pair.send(false, way(2, 1), b"answer");
        pair.settle();
        pair.here.layer.close(pair.now);
        pair.settle();
        assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (0, 0));
        for host in [&pair.here, &pair.there] {
            let stats = host.layer.stats();
            assert_eq!((stats.opened, stats.refused, stats.failed), (1, 0, 0));
        }
        // A new handshake follows.
        pair.send(false, way(2, 1), b"again");
        pair.settle();
        assert_eq!(pair.here.packets(), [&b"answer"[..], b"again"]);
    }
}

/// The peer has sent its packets over a connection that was replaced since.
#[test]
fn goodbye_after_a_change_of_keys_is_no_refusal() {
    for here_closes in [true, false] {
        let mut pair = Pair::new(Host::often_rekeyed(), Host::often_rekeyed());
        pair.send(true, way(1, 2), b"first");
        pair.settle();
        pair.send(false, way(2, 1), b"answer");
        while pair.here.layer.stats().opened < 2 {
            pair.send(true, way(1, 2), b"packet");
            pair.settle();
        }
        let closing = if here_closes { &mut pair.here } else { &mut pair.there };
        closing.layer.close(pair.now);
        pair.settle();
        for host in [&pair.here, &pair.there] {
            let stats = host.layer.stats();
            assert_eq!((stats.opened, stats.refused, stats.failed), (2, 0, 0));
        }
    }
}

#[test]
fn what_is_not_used_is_closed() {
    let mut pair = Pair::of_strangers();
    pair.send(true, way(1, 2), b"first");
    pair.settle();
    pair.send(false, way(2, 1), b"answer");
    pair.pass(Duration::from_secs(1300));
    assert_eq!((pair.here.layer.ways(), pair.there.layer.ways()), (0, 0));
    assert_eq!(pair.here.layer.poll_timeout(), None);
}
