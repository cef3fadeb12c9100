//! Loss recovery with the detector "rack": probes (RFC 8985 7), proportional rate reduction (RFC
//! 6937), undo of spurious recoveries (RFC 3708, RFC 5682).

use std::time::Duration;

use crate::common::*;
use polypath_proto::policy::loss;
use polypath_proto::*;

const PMDCS: u32 = 1468;
const RTT: Duration = Duration::from_millis(100);

/// Host 1 sends full chunks to a hand.
struct Flow {
    net: Net,
    hand: Hand,
    /// Chunks given to the host, and those that the hand has acknowledged.
    given: u32,
    acked: u32,
}

impl Flow {
    fn new() -> Self {
        let config =
            Config::rfc9260().to_builder().loss(&loss::RACK).heartbeat_interval(None).max_burst(64);
        let mut net = pair(1, config.build().unwrap());
        let hand = Hand { rwnd: 1 << 24, ..Hand::new(1) }.open(&mut net);
        Self { net, hand, given: 0, acked: 0 }
    }

    fn give(&mut self, chunks: u32) {
        let now = self.net.now;
        self.given += chunks;
        for _ in 0..chunks {
            let message = Message::new(StreamId(0), vec![1; PMDCS as usize - 16]);
            self.net.am(1).send(now, message).unwrap();
        }
        self.net.settle();
    }

    /// The TSNs of the packets that a SACK releases.
    fn sack(&mut self, cumulative: u32, gaps: &[(u16, u16)]) -> Vec<u32> {
        self.acked = cumulative;
        data_numbers(&self.hand.sack(&mut self.net, cumulative, gaps)).concat()
    }

    /// The same, with TSNs that the hand has received twice.
    fn sack_twice(&mut self, cumulative: u32, duplicates: &[u32]) -> Vec<u32> {
        let duplicates: Vec<Tsn> =
            duplicates.iter().map(|&n| Tsn(self.hand.peer_tsn.wrapping_add(n - 1))).collect();
        let cumulative = Tsn(self.hand.peer_tsn.wrapping_add(cumulative).wrapping_sub(1));
        let (rwnd, none) = (self.hand.rwnd, std::iter::empty());
        let duplicates = duplicates.into_iter();
        let write = |w: &mut wire::PacketWriter<'_>| {
            w.sack(cumulative, rwnd, 0, none.clone(), duplicates.clone()).unwrap();
        };
        data_numbers(&self.hand.say(&mut self.net, &write)).concat()
    }

    /// TSNs sent since the log had `mark` entries, with the time in milliseconds.
    fn sent_since(&self, mark: usize) -> Vec<(u64, u32)> {
        let packets = self.net.sent_since(1, mark);
        packets.iter().flat_map(|p| p.data().into_iter().map(|d| (p.ms(), d.n))).collect()
    }

    fn window(&self) -> Window {
        self.net.path(1, 0).window
    }

    fn stats(&self) -> PathStats {
        self.net.a(1).path_stats(PathId(0)).unwrap()
    }

    /// A flow with a round-trip time of 100 ms and this number of packets in flight, sent just now;
    /// nothing waits. Returns it and the last TSN acknowledged.
    fn flying(chunks: u32) -> (Self, u32) {
        let mut flow = Self::new();
        // Each round grows the window by a packet for each SACK.
        while flow.window().cwnd / PMDCS < chunks {
            let before = flow.given;
            // The window grows only if it is used up.
            flow.give(flow.window().cwnd.div_ceil(PMDCS));
            assert!(flow.given < 10 * chunks, "{:?}", flow.window());
            flow.net.run(RTT);
            for n in before + 1..=flow.given {
                flow.sack(n, &[]);
            }
        }
        let acked = flow.given;
        flow.give(chunks);
        assert_eq!(flow.net.path(1, 0).in_flight, chunks * PMDCS);
        (flow, acked)
    }
}

/// RFC 8985 7.2, 7.3: 2 * SRTT after the last packet the highest TSN is sent again, and T3-rtx
/// starts anew.
#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let (mut flow, acked) = Flow::flying(4);
    let (mark, start) = (flow.net.log.len(), flow.net.now);
    // The last packet is lost.
    flow.net.run(RTT);
    flow.sack(acked + 3, &[]);
    flow.net.run(MS(1000));
    let start = start.as_nanos() / 1_000_000;
    // One packet is in flight: TLP.max_ack_delay is added.
    assert_eq!(flow.sent_since(mark), [(start + 100 + 200 + 200, acked + 4)]);
    flow.net.run(MS(398));
    assert_eq!(flow.stats().timeouts, 0);
    flow.net.run(MS(3));
    assert_eq!(flow.stats().timeouts, 1, "an RTO of 1 s after the probe");
}

/// RFC 8985 7.3: "the sender SHOULD transmit a previously unsent data segment, if one exists and
/// the receive window allows [...] the FlightSize could be one packet greater than the congestion
/// window".
#[test]
fn new_data_is_the_better_probe() {
    let (mut flow, acked) = Flow::flying(4);
    let mark = flow.net.log.len();
    flow.give(10);
    assert_eq!(flow.sent_since(mark), [], "the window is full");
    flow.net.run(MS(201));
    assert_eq!(data_numbers(&flow.net.sent_since(1, mark)), [[acked + 5]]);
    let path = flow.net.path(1, 0);
    assert!(path.in_flight > path.window.cwnd);
}

/// RFC 8985 7.4.2: the window is cut for a loss that a probe has repaired, unless a duplicate
/// report shows that there was none.
#[test]
fn a_repaired_loss_cuts_the_window() {
    for (duplicate, cut) in [(false, true), (true, false)] {
        let (mut flow, acked) = Flow::flying(8);
        let before = flow.window();
        flow.net.run(RTT);
        flow.sack(acked + 7, &[]);
        flow.net.run(MS(400));
        assert_eq!(flow.stats().fast_retransmissions, 1);
        flow.net.run(RTT);
        flow.sack(acked + 8, &[]);
        if duplicate {
            flow.sack_twice(acked + 8, &[acked + 8]);
        }
        flow.give(1);
        flow.net.run(RTT);
        flow.sack(acked + 9, &[]);
        assert_eq!(flow.window().cwnd < before.cwnd, cut, "{:?} {before:?}", flow.window());
    }
}

/// RFC 6937 3: in fast recovery, packets leave in the ratio of ssthresh to the flight before the
/// loss, from the first SACK on; without it, nothing would leave during half a round trip.
#[test]
fn recovery_sends_at_half_the_rate() {
    let (mut flow, acked) = Flow::flying(20);
    flow.give(100);
    flow.net.run(RTT);
    // The first packet is lost, the others arrive one by one.
    let mut released = Vec::new();
    for n in 1..20 {
        released.push(flow.sack(acked, &[(2, n + 1)]).len());
    }
    let ssthresh = flow.window().ssthresh / PMDCS;
    assert_eq!(ssthresh, 10);
    // Two packets fill the window that slow start has left, and the third SACK shows the loss.
    let in_recovery = &released[2..];
    assert_eq!(in_recovery[0], 1, "the retransmission");
    for k in 2..=in_recovery.len() {
        let sent: usize = in_recovery[..k].iter().sum();
        assert!(sent.abs_diff(k / 2) <= 1, "{k} SACKs: {released:?}");
    }
}

/// RFC 5682 3.1: after a delay spike, the first late acknowledgement of a chunk that was not
/// retransmitted shows that T3-rtx was spurious; RFC 4015: the window is restored.
#[test]
fn late_acknowledgements_undo_a_timeout() {
    let (mut flow, acked) = Flow::flying(20);
    let before = flow.window();
    // Nothing arrives for longer than a PTO and an RTO.
    flow.net.run(MS(1300));
    assert_eq!((flow.stats().timeouts, flow.window().cwnd), (1, PMDCS));
    assert!(flow.stats().timeout_retransmissions <= 1);
    let mark = flow.net.log.len();
    flow.sack(acked + 2, &[]);
    assert_eq!(flow.stats().recoveries_undone, 1);
    assert!(flow.window().cwnd >= before.cwnd && flow.window().ssthresh == before.ssthresh);
    assert_eq!(flow.net.path(1, 0).lost, 0);
    for n in (4..20).step_by(2) {
        flow.net.run(MS(1));
        flow.sack(acked + n, &[]);
    }
    assert_eq!(flow.sent_since(mark), [], "nothing is retransmitted");
    assert!(flow.net.path(1, 0).rto > MS(1300), "the RTO adapts to the spike");
}

/// RFC 5682 3.1, step 2 a: an acknowledgement of everything that was sent before the timeout shows
/// nothing, and genuine timeouts keep their window.
#[test]
fn a_genuine_timeout_is_not_undone() {
    let (mut flow, acked) = Flow::flying(4);
    flow.net.run(MS(1300));
    assert_eq!(flow.stats().timeouts, 1);
    // The first retransmission arrives.
    flow.sack(acked + 1, &[]);
    flow.net.run(RTT);
    flow.sack(acked + 3, &[]);
    assert_eq!(flow.stats().recoveries_undone, 0);
    assert!(flow.window().cwnd < 4 * PMDCS);
}

/// RFC 3708 3: when the receiver reports every retransmission as a duplicate, the loss was none.
#[test]
fn duplicate_reports_undo_a_fast_retransmission() {
    let (mut flow, acked) = Flow::flying(10);
    let before = flow.window();
    flow.net.run(RTT);
    // Packet 1 is late: three others overtake it.
    assert_eq!(flow.sack(acked, &[(2, 4)]), [acked + 1]);
    assert!(flow.window().cwnd < before.cwnd);
    flow.net.run(RTT);
    flow.sack(acked + 10, &[]);
    assert_eq!(flow.stats().recoveries_undone, 0);
    flow.sack_twice(acked + 10, &[acked + 1]);
    assert_eq!(flow.stats().recoveries_undone, 1);
    assert!(flow.window().cwnd >= before.cwnd && flow.window().ssthresh >= before.ssthresh);
}

/// RFC 8985 6.2, step 2: a retransmission that is acknowledged in less than the shortest round-trip
/// time was unnecessary, because its original has arrived. The duplicate, reported later, counts
/// once.
#[test]
fn an_early_acknowledgement_undoes_a_fast_retransmission() {
    for (after, undone) in [(MS(99), 1), (RTT, 0)] {
        let (mut flow, acked) = Flow::flying(10);
        let before = flow.window();
        flow.net.run(RTT);
        assert_eq!(flow.sack(acked, &[(2, 4)]), [acked + 1]);
        flow.net.run(after);
        flow.sack(acked + 10, &[]);
        assert_eq!(flow.stats().recoveries_undone, undone, "{after:?}");
        flow.sack_twice(acked + 10, &[acked + 1]);
        assert_eq!(flow.stats().recoveries_undone, 1);
        assert!(flow.window().cwnd >= before.cwnd);
    }
}

/// RFC 3708 3: one of two retransmissions was needed.
#[test]
fn one_duplicate_of_two_undoes_nothing() {
    let (mut flow, acked) = Flow::flying(10);
    flow.net.run(RTT);
    flow.sack(acked, &[(3, 6)]);
    flow.sack(acked, &[(3, 10)]);
    assert_eq!(flow.stats().fast_retransmissions, 2);
    flow.net.run(RTT);
    flow.sack_twice(acked + 10, &[acked + 1]);
    assert_eq!(flow.stats().recoveries_undone, 0);
}

/// RFC 9002 6.2.1: "The PTO backoff factor is reset when an acknowledgment is received".
#[test]
fn an_acknowledgement_ends_the_back_off() {
    let (mut flow, acked) = Flow::flying(4);
    flow.net.run(MS(1300));
    assert_eq!(flow.net.path(1, 0).rto, MS(2000));
    flow.sack(acked + 1, &[]);
    assert_eq!(flow.net.path(1, 0).rto, MS(1000));
}
