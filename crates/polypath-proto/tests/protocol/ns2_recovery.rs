//! Recovery after T3-rtx by the procedures of ns-2's SCTP module: the windows that a fast
//! retransmission cuts, and when they grow again (uiRecover, GetHighestOutstandingTsn in its
//! sctp.cc).

use crate::common::*;
use polypath_proto::policy::{loss, retransmission};
use polypath_proto::*;

const PACKET: u32 = 1468;

/// Chunks up to this one are acknowledged before the losses.
const ACKED: u32 = 40;

/// Host 1 sends to a hand with this number of addresses. At least twenty chunks above ACKED are
/// outstanding on path 0 when T3-rtx expires there, and the first of them has been retransmitted.
fn timed_out(paths: u8, config: ConfigBuilder) -> (Net, Hand) {
    let config = config.heartbeat_interval(None).build().unwrap();
    let mut net = Setup { paths, configs: [config.clone(), config], ..Setup::default() }.build();
    let mut hand = Hand { rwnd: 1 << 24, ..Hand::new(1) };
    let answers = hand.init(&mut net, &|p| {
        for path in 0..paths {
            p.address(v4(path, 98)).unwrap();
        }
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    for n in 0..200 {
        net.send(1, 0, payload(n, 1452)).unwrap();
    }
    for acked in 1..=ACKED {
        hand.sack(&mut net, acked, &[]);
    }
    assert!(net.path(1, 0).in_flight >= 20 * PACKET);
    net.drive_until(S(4), |net| net.a(1).path_stats(PathId(0)).unwrap().timeouts == 1);
    assert_eq!(net.path(1, 0).window.cwnd, PACKET);
    assert_eq!(sendings(&net, 1), 2);
    (net, hand)
}

/// Number of times this chunk above ACKED has been sent.
fn sendings(net: &Net, n: u32) -> usize {
    net.sent_with(1, &format!("DATA {}", ACKED + n)).len()
}

fn ns2() -> ConfigBuilder {
    Config::profile("ns2-2.35").unwrap().to_builder()
}

/// Chunk `n` above ACKED is lost again after its retransmission: three missing reports.
fn lose_again(net: &mut Net, hand: &Hand, n: u32) {
    for acked in 1..n {
        hand.sack(net, ACKED + acked, &[]);
    }
    for to in 2..=4 {
        assert_eq!(sendings(net, n), 2, "{}", net.tail(9));
        hand.sack(net, ACKED + n - 1, &[(2, to)]);
    }
    assert_eq!(sendings(net, n), 3, "{}", net.tail(9));
}

/// Chunks that T3-rtx has marked do not count as outstanding: chunk 5 above ACKED is the highest
/// that does, so its acknowledgement ends the recovery, although twenty had been sent.
#[test]
fn the_recover_point_is_the_highest_chunk_that_is_not_marked() {
    for config in [ns2(), ns2().loss(&loss::MULTIPLE_FAST_RETRANSMIT)] {
        let (mut net, hand) = timed_out(1, config);
        lose_again(&mut net, &hand, 2);
        assert_eq!(net.path(1, 0).window.cwnd, 4 * PACKET);
        hand.sack(&mut net, ACKED + 3, &[(2, 2)]);
        assert_eq!(net.path(1, 0).window.cwnd, 4 * PACKET, "in recovery");
        hand.sack(&mut net, ACKED + 5, &[]);
        assert_eq!(net.path(1, 0).window.cwnd, 5 * PACKET, "recovered");
    }
}

/// Chunks that timed out on another path wait above the new recover point: the window of that path
/// is set as well, from one packet to four.
#[test]
fn one_fast_retransmission_may_cut_several_windows() {
    let config = ns2().path_max_retrans(0).retransmission(&retransmission::SAME);
    let (mut net, hand) = timed_out(2, config);
    assert_eq!(net.states(1), [PathState::Inactive, PathState::Active]);
    lose_again(&mut net, &hand, 2);
    let cwnds: Vec<u32> = (0..2).map(|p| net.path(1, p).window.cwnd / PACKET).collect();
    assert_eq!(cwnds, [4, 4]);
}

/// A window is cut once only, however many of its chunks are lost.
#[test]
fn one_fast_retransmission_cuts_a_window_once() {
    let (mut net, hand) = timed_out(1, ns2().cwnd_floor(2));
    lose_again(&mut net, &hand, 9);
    // The window had grown from one packet by eight acknowledgements.
    assert_eq!(net.path(1, 0).window.cwnd, 9 * PACKET / 2);
}
