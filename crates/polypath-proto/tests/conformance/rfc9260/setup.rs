//! Endpoints with a hand-built peer.

use bytes::Bytes;
use polypath_proto::{Config, ConfigBuilder, Message, PathId, PathState, PathView, StreamId};

use crate::common::*;

/// PMDCS over IPv4 with an MTU of 1500 (RFC 9260 1.3).
pub(super) const PMDCS: u32 = 1468;
/// User data of a DATA chunk that fills a packet.
pub(super) const FULL: usize = 1452;

/// The default configuration without HEARTBEATs, which would also measure RTTs and back off.
pub(super) fn quiet() -> ConfigBuilder {
    Config::rfc9260().to_builder().heartbeat_interval(None)
}

/// Host 1, which sends data to a hand-built peer.
pub(super) struct Flow {
    pub(super) net: Net,
    pub(super) hand: Hand,
}

impl Flow {
    pub(super) fn new(config: ConfigBuilder) -> Self {
        Self::to(Hand { rwnd: 1 << 24, ..Hand::new(1) }, config)
    }

    pub(super) fn to(hand: Hand, config: ConfigBuilder) -> Self {
        let mut net = pair(1, config.build().unwrap());
        let hand = hand.open(&mut net);
        Self { net, hand }
    }

    /// Sends `count` messages of `len` bytes at once; returns the data packets sent.
    pub(super) fn give(&mut self, count: usize, len: usize) -> Vec<Vec<u32>> {
        let (now, mark) = (self.net.now, self.net.log.len());
        let payload = Bytes::from(vec![1; len]);
        for _ in 0..count {
            self.net.am(1).send(now, Message::new(StreamId(0), payload.clone())).unwrap();
        }
        self.net.settle();
        data_numbers(&self.net.sent_since(1, mark))
    }

    pub(super) fn sack(&mut self, cumulative: u32, gaps: &[(u16, u16)]) -> Vec<Vec<u32>> {
        data_numbers(&self.hand.sack(&mut self.net, cumulative, gaps))
    }

    pub(super) fn sack_rwnd(&mut self, cumulative: u32, rwnd: u32) -> Vec<Vec<u32>> {
        data_numbers(&self.hand.sack_rwnd(&mut self.net, cumulative, &[], rwnd))
    }

    /// The data packets sent within the next `ms` milliseconds.
    pub(super) fn wait(&mut self, ms: u64) -> Vec<Vec<u32>> {
        let mark = self.net.log.len();
        self.net.run(MS(ms));
        data_numbers(&self.net.sent_since(1, mark))
    }

    pub(super) fn path(&self) -> PathView {
        self.net.path(1, 0)
    }

    /// The congestion window in PMDCS.
    pub(super) fn cwnd(&self) -> u32 {
        self.path().window.cwnd / PMDCS
    }

    /// Times of the data packets, in milliseconds.
    pub(super) fn times(&self) -> Vec<u64> {
        self.net.times(1, "DATA")
    }

    pub(super) fn timeouts(&self) -> u64 {
        self.net.a(1).path_stats(PathId(0)).unwrap().timeouts
    }
}

/// Host 1, which receives the data of a hand-built peer; even its first SACK is delayed.
pub(super) fn receiver(config: ConfigBuilder) -> (Net, Hand) {
    let mut net = pair(1, config.first_sack_at_once(false).build().unwrap());
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// As [`receiver`], with a receive buffer of `buffer` bytes and an application that does not read.
pub(super) fn small_receiver(buffer: u32) -> (Net, Hand) {
    let (mut net, hand) = receiver(Config::rfc9260().to_builder().receive_buffer(buffer));
    net.hosts[1].reads = false;
    (net, hand)
}

/// A state of RFC 9260, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
}

impl State {
    pub(super) const ALL: [Self; 7] = [
        Self::CookieWait,
        Self::CookieEchoed,
        Self::Established,
        Self::ShutdownPending,
        Self::ShutdownSent,
        Self::ShutdownReceived,
        Self::ShutdownAckSent,
    ];

    /// Host 0 in this state; chunk 1 of its data is outstanding in SHUTDOWN-PENDING and
    /// SHUTDOWN-RECEIVED.
    pub(super) fn reach(self) -> (Net, Hand) {
        let mut net = pair(1, quiet().first_sack_at_once(false).build().unwrap());
        let hand = Hand::new(0);
        let hand = match self {
            Self::CookieWait | Self::CookieEchoed => hand.be_called(&mut net),
            _ => hand.accept(&mut net),
        };
        match self {
            Self::CookieWait | Self::Established => {}
            Self::CookieEchoed => drop(hand.init_ack(&mut net)),
            Self::ShutdownPending => {
                net.send(0, 0, payload(1, 100)).unwrap();
                net.shutdown(0);
            }
            Self::ShutdownSent => net.shutdown(0),
            Self::ShutdownReceived => {
                net.send(0, 0, payload(1, 100)).unwrap();
                assert!(hand.shutdown(&mut net, 0).is_empty());
            }
            Self::ShutdownAckSent => {
                assert_eq!(hand.shutdown(&mut net, 0)[0].text(), "SHUTDOWN ACK");
            }
        }
        (net, hand)
    }
}

/// The chunks of these packets, one text per packet.
pub(super) fn texts(packets: &[Sent]) -> Vec<String> {
    packets.iter().map(Sent::text).collect()
}

/// No packet with data.
pub(super) const NONE: [[u32; 0]; 0] = [];

/// Host 1 with a peer that has two confirmed addresses: the peer as it sends from each of them.
pub(super) fn two_homed(config: ConfigBuilder) -> (Net, Hand, Hand) {
    let mut net = pair(2, config.first_sack_at_once(false).build().unwrap());
    let second = v4(1, 98);
    let mut hand = Hand { rwnd: 1 << 24, ..Hand::new(1) };
    let answer = hand.init(&mut net, &|p| p.ipv4([10, 1, 0, 99].into()).unwrap());
    hand.learn(&answer[0]);
    let mark = net.log.len();
    hand.echo(&mut net);
    net.run(MS(1));
    let other = Hand { ip: second, ..hand.clone() };
    let asked: Vec<Sent> = net.log[mark..].to_vec();
    other.answer_heartbeats(&mut net, &asked);
    assert_eq!(net.states(1), [PathState::Active; 2]);
    (net, hand, other)
}
