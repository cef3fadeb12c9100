//! Round-trip times and T3-rtx (RFC 9260 6.3).

use std::time::Duration;

use crate::common::*;
use polypath_proto::*;

/// Host 1 sends to a hand, without HEARTBEATs, which would also give samples and double the RTO.
struct Flow {
    net: Net,
    hand: Hand,
    sent: u64,
}

impl Flow {
    fn new(config: ConfigBuilder) -> Self {
        let config = config.heartbeat_interval(None).build().unwrap();
        let mut net = pair(1, config);
        let hand = Hand::new(1).open(&mut net);
        Self { net, hand, sent: 0 }
    }

    /// Sends one chunk in a packet of its own.
    fn send(&mut self) -> u32 {
        self.sent += 1;
        self.net.send(1, 0, payload(self.sent, 1452)).unwrap();
        self.sent as u32
    }

    fn sack(&mut self, cumulative: u32, gaps: &[(u16, u16)]) {
        self.hand.sack(&mut self.net, cumulative, gaps);
    }

    /// Sends one chunk, which is acknowledged after this time.
    fn round(&mut self, rtt: Duration) {
        let n = self.send();
        self.net.run(rtt);
        self.sack(n, &[]);
    }

    fn rto(&self) -> Duration {
        self.net.path(1, 0).rto
    }

    fn times(&self) -> Vec<u64> {
        self.net.times(1, "DATA")
    }
}

fn quick() -> ConfigBuilder {
    Config::rfc9260().to_builder().rto_min(MS(10))
}

/// RFC 9260 6.3.1 C1 to C3: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR; then 7/8, 1/8, 3/4, 1/4.
#[test]
fn the_first_and_the_second_sample() {
    let mut flow = Flow::new(quick());
    let estimate = |flow: &Flow| {
        let p = flow.net.path(1, 0);
        (p.srtt, p.rttvar, p.rto)
    };
    assert_eq!(estimate(&flow), (None, None, S(1)));
    flow.round(MS(100));
    assert_eq!(estimate(&flow), (Some(MS(100)), Some(MS(50)), MS(300)));
    flow.round(MS(180));
    // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
    let us = Duration::from_micros;
    assert_eq!(estimate(&flow), (Some(MS(110)), Some(us(57_500)), MS(340)));
    flow.round(MS(110));
    assert_eq!(estimate(&flow), (Some(MS(110)), Some(us(43_125)), us(282_500)));
}

/// RFC 9260 6.3.1 C6, C7.
#[test]
fn the_rto_has_bounds() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.round(MS(1));
    assert_eq!(flow.rto(), S(1), "RTO.Min");
    let mut flow = Flow::new(Config::rfc9260().to_builder().rto_initial(S(2)).rto_max(S(2)));
    flow.round(MS(1900));
    assert_eq!(flow.rto(), S(2), "RTO.Max");
}

/// RFC 9260 6.3.1 C4: one measurement per round trip.
#[test]
fn one_chunk_each_round_trip_is_measured() {
    let mut flow = Flow::new(quick());
    flow.send();
    flow.net.run(MS(50));
    flow.send();
    flow.net.run(MS(50));
    flow.sack(1, &[]);
    assert_eq!(flow.net.path(1, 0).srtt, Some(MS(100)));
    flow.net.run(MS(1));
    flow.sack(2, &[]);
    let samples = |flow: &Flow| flow.net.a(1).path_stats(PathId(0)).unwrap().rtt_samples;
    assert_eq!((samples(&flow), flow.net.path(1, 0).srtt), (1, Some(MS(100))));
    flow.round(MS(100));
    assert_eq!(samples(&flow), 2);
}

/// RFC 9260 6.3.1: a chunk acknowledged by a gap ack block gives a sample as well.
#[test]
fn a_gap_block_ends_the_measurement() {
    let mut flow = Flow::new(quick());
    flow.send();
    flow.net.run(MS(40));
    flow.sack(1, &[]);
    flow.send();
    flow.net.run(MS(80));
    flow.send();
    flow.sack(1, &[(3 - 1, 3 - 1)]);
    assert_eq!(flow.net.path(1, 0).srtt, Some(MS(40)), "chunk 2 is measured, and still missing");
    flow.sack(2, &[(1, 1)]);
    flow.sack(3, &[]);
    assert_eq!(flow.net.path(1, 0).srtt, Some(MS(45)));
}

/// RFC 9260 6.3.1 C5, Karn: a retransmitted chunk gives no sample, and the RTO stays backed off.
#[test]
fn a_retransmitted_chunk_is_not_measured() {
    let mut flow = Flow::new(quick());
    flow.round(MS(100));
    let n = flow.send();
    flow.net.run(MS(301));
    assert_eq!(flow.rto(), MS(600));
    flow.net.run(MS(20));
    flow.sack(n, &[]);
    let stats = flow.net.a(1).path_stats(PathId(0)).unwrap();
    assert_eq!((stats.rtt_samples, flow.rto()), (1, MS(600)));
    // 6.3.3: "after a new RTT measurement ... the computation ... may collapse the RTO back".
    flow.round(MS(100));
    assert!(flow.rto() < MS(300), "{:?}", flow.rto());
}

/// RFC 8961 4 (3): "The backoff SHOULD be removed after [...] an RTO passes without detecting
/// additional losses", although nothing was measured (RFC 9260 6.3.1 C5).
#[test]
fn the_rto_is_computed_anew_when_data_arrives_for_an_rto() {
    let mut flow = Flow::new(quick());
    flow.round(MS(100));
    for _ in 0..4 {
        flow.send();
    }
    flow.net.run(MS(301));
    assert_eq!((flow.rto(), flow.net.path(1, 0).in_flight), (MS(600), 1468));
    flow.net.run(MS(200));
    flow.sack(2, &[]);
    assert_eq!(flow.rto(), MS(600));
    flow.net.run(MS(400));
    flow.sack(4, &[]);
    let stats = flow.net.a(1).path_stats(PathId(0)).unwrap();
    assert_eq!((stats.rtt_samples, stats.timeouts, flow.rto()), (1, 1, MS(300)));
}

/// RFC 9260 6.1: "the sender MUST restart the timer if the earliest (i.e., lowest TSN) outstanding
/// DATA chunk sent to that address is being retransmitted".
#[test]
fn the_timer_restarts_when_the_earliest_chunk_is_sent_again() {
    let mut flow = Flow::new(Config::rfc9260().to_builder().initial_cwnd(10));
    for _ in 0..10 {
        flow.send();
    }
    for last in 4..=6 {
        flow.sack(0, &[(4, last)]);
    }
    assert_eq!(data_numbers(&flow.net.sent(1))[10..], [[1]], "2 and 3 wait for room");
    flow.net.run(MS(500));
    flow.sack(1, &[(3, 7)]);
    assert_eq!(data_numbers(&flow.net.sent(1))[11..], [[2], [3]]);
    flow.net.run(MS(900));
    assert_eq!(flow.net.a(1).path_stats(PathId(0)).unwrap().timeouts, 0);
    flow.net.run(MS(200));
    assert_eq!(flow.net.a(1).path_stats(PathId(0)).unwrap().timeouts, 1);
}

/// RFC 9260 6.3.3 E2, 8.1, 16: 1, 2, 4, .. up to RTO.Max, and the end after
/// Association.Max.Retrans.
#[test]
fn the_timer_backs_off_until_the_association_is_given_up() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.net.run(S(1000));
    let seconds: Vec<u64> = flow.times().iter().map(|ms| ms / 1000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303]);
    let closed = flow.net.events(1, |e| matches!(e, Event::Closed(_)));
    assert_eq!(closed, [(363_000, Event::Closed(CloseReason::PeerUnreachable))]);
    assert_eq!(flow.net.a(1).path_stats(PathId(0)).unwrap().timeouts, 11);
}

/// RFC 9260 6.3.2 R1: the timer starts with the first chunk, and later chunks do not restart it.
#[test]
fn new_data_does_not_restart_the_timer() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.net.run(MS(600));
    flow.send();
    flow.net.run(MS(600));
    assert_eq!(flow.times(), [0, 600, 1000]);
}

/// RFC 9260 6.3.2 R2: the timer stops when no data is outstanding.
#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.send();
    flow.net.run(MS(900));
    flow.sack(2, &[]);
    assert_eq!(flow.net.hosts[1].endpoint.poll_timeout(), None);
    flow.net.run(S(100));
    assert_eq!(flow.times().len(), 2);
}

/// RFC 9260 6.3.2 R3: the timer restarts when the earliest outstanding chunk is acknowledged.
#[test]
fn the_timer_restarts_when_the_earliest_chunk_is_acknowledged() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.send();
    flow.net.run(MS(900));
    flow.sack(1, &[]);
    assert_eq!(flow.rto(), MS(2700), "the first sample");
    flow.net.run(S(3));
    assert_eq!(flow.times(), [0, 0, 900 + 2700]);
}

/// RFC 9260 6.3.2 R3: the timer does not restart when a later chunk is acknowledged.
#[test]
fn the_timer_goes_on_when_a_later_chunk_is_acknowledged() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.send();
    flow.net.run(MS(900));
    flow.sack(0, &[(2, 2)]);
    flow.net.run(MS(500));
    assert_eq!(flow.times(), [0, 0, 1000]);
    assert_eq!(data_numbers(&flow.net.sent(1)), [[1], [2], [1]]);
}

/// RFC 9260 6.3.2 R4: the timer starts again for data that the peer reneged on.
#[test]
fn the_timer_starts_again_for_reneged_data() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    flow.send();
    flow.send();
    flow.sack(0, &[(2, 2)]);
    flow.net.run(MS(500));
    flow.sack(1, &[]);
    assert_eq!((flow.net.a(1).stats().reneged, flow.rto()), (1, MS(1500)));
    // R3 applies as well: the earliest outstanding chunk was acknowledged.
    flow.net.run(S(2));
    assert_eq!(flow.times(), [0, 0, 500 + 1500]);
}

/// RFC 9260 6.3.3 E3: a timeout retransmits the earliest chunks that fit one packet, and the others
/// as the window allows.
#[test]
fn a_timeout_sends_one_packet_of_the_earliest_chunks() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    let now = flow.net.now;
    // Four chunks fill a packet; three packets are the initial window.
    for len in [300, 300, 300, 504].into_iter().cycle().take(12) {
        flow.net.am(1).send(now, Message::new(StreamId(0), payload(1, len))).unwrap();
        flow.net.settle();
    }
    assert_eq!(flow.net.path(1, 0).in_flight, 4404);
    let mark = flow.net.log.len();
    flow.net.run(MS(1500));
    assert_eq!(data_numbers(&flow.net.sent_since(1, mark)), [[1, 2, 3, 4]]);
}

/// RFC 9260 6.3.3: chunks that were considered lost and are acknowledged late are not
/// retransmitted.
#[test]
fn late_acknowledgements_stop_the_retransmissions() {
    let mut flow = Flow::new(Config::rfc9260().to_builder());
    for _ in 0..3 {
        flow.send();
    }
    flow.net.run(MS(1500));
    assert_eq!(data_numbers(&flow.net.sent(1)), [[1], [2], [3], [1]]);
    flow.sack(3, &[]);
    assert_eq!(flow.net.path(1, 0).in_flight, 0);
    flow.net.run(S(20));
    assert_eq!(data_numbers(&flow.net.sent(1)).len(), 4);
    assert!(flow.net.saw(1, &Event::Drained));
}

/// RFC 9260 6.3.3 E3, 8.2: chunks that wait for their fast retransmission when T3-rtx expires are
/// outstanding as well, and given up with the rest: their earlier arrival proves nothing about the
/// path's present state.
#[test]
fn a_timeout_gives_up_what_waits_for_its_fast_retransmission() {
    let mut flow = Flow::new(Config::rfc9260().to_builder().initial_cwnd(10));
    for _ in 0..10 {
        flow.send();
    }
    for last in 4..=6 {
        flow.sack(0, &[(4, last)]);
    }
    let sent = data_numbers(&flow.net.sent(1));
    assert_eq!(sent[10..], [[1]], "2 and 3 wait for room");
    flow.net.run(MS(1500));
    assert_eq!(flow.net.path(1, 0).error_count, 1);
    flow.sack(0, &[(2, 2), (4, 6)]);
    assert_eq!(flow.net.path(1, 0).error_count, 1);
    // Chunks sent after the timeout do clear the error count.
    flow.sack(2, &[(2, 4)]);
    assert_eq!(flow.net.path(1, 0).error_count, 0);
}

/// RFC 9260 6.3.1: each path has its own measurement.
#[test]
fn every_path_has_its_own_rto() {
    let config = quick().build().unwrap();
    let mut net = Setup { paths: 2, configs: [config.clone(), config], ..Setup::default() }.build();
    net.delays.insert((0, 1), MS(100));
    net.delays.insert((1, 1), MS(100));
    net.establish();
    assert_eq!((net.path(0, 0).srtt, net.path(0, 1).srtt), (None, Some(MS(200))));
    net.send(0, 0, payload(1, 3000)).unwrap();
    net.run(S(1));
    assert_eq!((net.path(0, 0).srtt, net.path(0, 1).srtt), (Some(MS(20)), Some(MS(200))));
}

/// RFC 9260 6.3: nothing is retransmitted while the delay grows slowly.
#[test]
fn the_rto_follows_a_growing_delay() {
    let mut flow = Flow::new(quick());
    let mut rtt = MS(100);
    for _ in 0..40 {
        flow.round(rtt);
        rtt = rtt * 11 / 10;
    }
    assert_eq!(flow.net.a(1).path_stats(PathId(0)).unwrap().timeouts, 0);
    assert!(flow.rto() > rtt * 10 / 11);
}
