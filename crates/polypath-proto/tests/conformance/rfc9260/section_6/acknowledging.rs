//! RFC 9260, section 6.2: Acknowledgement on Reception of DATA Chunks.

use super::super::setup::{FULL, Flow, NONE, quiet, receiver, small_receiver, texts};
use crate::common::*;
use polypath_proto::wire::Data;
use polypath_proto::*;

/// The SACKs in these packets.
fn sacks(packets: &[Sent]) -> Vec<SackSeen> {
    packets.iter().filter_map(Sent::sack).collect()
}

/// Sends chunk `n` with 1000 bytes; returns the SACKs sent at once.
fn kilobyte(net: &mut Net, hand: &Hand, n: u32) -> Vec<SackSeen> {
    let chunk = hand.chunk(n, &[7; 1000]);
    sacks(&hand.say(net, &|w| w.data(&chunk).unwrap()))
}

/// The SACKs sent within SACK.Delay.
fn later(net: &mut Net) -> Vec<SackSeen> {
    let mark = net.log.len();
    net.run(MS(201));
    sacks(&net.sent_since(1, mark))
}

/// Sends chunks from `first` on until the receiver announces a closed window; returns the last
/// chunk.
fn close_window(net: &mut Net, hand: &Hand, first: u32) -> u32 {
    for n in first.. {
        let mut answers = kilobyte(net, hand, n);
        answers.extend(later(net));
        if answers.last().unwrap().rwnd == 0 {
            return n;
        }
    }
    unreachable!()
}

#[test]
fn s6_2_r1_each_valid_chunk_is_acknowledged() {
    let (mut net, hand) = receiver(quiet());
    for n in 1..=9 {
        let mut answers = kilobyte(&mut net, &hand, n);
        answers.extend(later(&mut net));
        assert_eq!(answers.last().unwrap().cumulative, n);
    }
    // Out of order, and a duplicate.
    assert_eq!(kilobyte(&mut net, &hand, 12)[0].gaps, [(3, 3)]);
    assert_eq!(kilobyte(&mut net, &hand, 12)[0].duplicates, [12]);
}

/// A window that is too small for a packet is announced as closed (6.2/6); data that the previous
/// window allowed may still be in flight, and is accepted as long as it fits. This buffer is full.
#[test]
fn s6_2_r2_r4_r5_new_data_beyond_a_closed_window_is_dropped() {
    let (mut net, hand) = small_receiver(8000);
    let last = close_window(&mut net, &hand, 1);
    for n in last + 1..last + 4 {
        let answers = kilobyte(&mut net, &hand, n);
        assert_eq!(answers.len(), 1, "a SACK at once");
        let SackSeen { cumulative, rwnd, gaps, .. } = &answers[0];
        assert_eq!((*cumulative, *rwnd, gaps.len()), (last, 0, 0));
    }
    assert_eq!(net.read(1).len() as u32, last, "none of them was kept");
}

#[test]
fn s6_2_r6_small_windows_are_announced_as_none() {
    let (mut net, hand) = small_receiver(16_000);
    let mut n = 0;
    let mut windows = Vec::new();
    // The application reads one message of 100 bytes at a time; the peer fills the announced
    // window.
    let text = [3; 100];
    let mut rwnd = 16_000;
    for _ in 0..400 {
        for _ in 0..rwnd / 120 {
            n += 1;
            let chunk = hand.chunk(n, &text);
            hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        }
        let now = net.now;
        net.am(1).recv(now);
        let mark = net.log.len();
        net.settle();
        net.run(MS(201));
        windows = sacks(&net.sent(1)).iter().map(|s| s.rwnd).collect();
        // A newly announced window is filled; one that was filled before is not filled again.
        rwnd = sacks(&net.sent_since(1, mark)).last().map_or(0, |s| s.rwnd);
    }
    // RFC 1122 4.2.3.3: the smaller of half the buffer and the maximum segment size.
    assert!(windows.iter().all(|w| *w == 0 || *w >= FULL as u32), "{windows:?}");
    assert!(windows.contains(&0));
}

#[test]
fn s6_2_r7_r8_r9_a_sack_for_every_second_packet_or_after_200_ms() {
    let (mut net, hand) = receiver(quiet());
    for n in [1, 3, 5] {
        assert!(kilobyte(&mut net, &hand, n).is_empty(), "the first packet waits");
        assert_eq!(kilobyte(&mut net, &hand, n + 1)[0].cumulative, n + 1);
    }
    // Packets are counted, not chunks.
    let chunks: Vec<Data<'_>> = (7..=10).map(|n| hand.chunk(n, b"x")).collect();
    assert!(hand.say(&mut net, &|w| chunks.iter().for_each(|c| w.data(c).unwrap())).is_empty());
    let (start, mark) = (net.now, net.log.len());
    net.run(MS(500));
    assert_eq!(texts(&net.sent_since(1, mark)), ["SACK 10"]);
    assert_eq!(net.log[mark].at.since(start), MS(200));
}

#[test]
fn s6_2_r10_one_sack_at_most_for_each_packet() {
    let (mut net, hand) = receiver(quiet());
    // New, missing and repeated chunks with the I bit: a packet gets one SACK, whatever the reasons
    // for it.
    let numbers = [1, 3, 3, 2, 9, 7, 7, 8, 4];
    let chunks = numbers.map(|n| Data { immediate: true, ..hand.chunk(n, b"x") });
    let answers = hand.say(&mut net, &|w| chunks.iter().for_each(|c| w.data(c).unwrap()));
    assert_eq!(sacks(&answers).len(), 1);
    for n in [20, 22, 20, 5, 6] {
        let before = net.times(1, "SACK").len();
        kilobyte(&mut net, &hand, n);
        assert!(net.times(1, "SACK").len() <= before + 1);
    }
    net.run(S(2));
    assert!(net.times(1, "SACK").len() <= 6);
}

#[test]
fn s6_2_r11_r22_a_window_that_opens_is_announced() {
    let (mut net, hand) = small_receiver(8000);
    let last = close_window(&mut net, &hand, 1);
    net.run(S(1));
    let mark = net.log.len();
    assert_eq!(net.read(1).len() as u32, last);
    let update = sacks(&net.sent_since(1, mark)).pop().expect("a SACK without new data, at once");
    assert!(update.cumulative == last && update.rwnd > 7000, "{update:?}");
}

#[test]
fn s6_2_r12_window_updates_are_few() {
    let (mut net, hand) = small_receiver(100_000);
    let text = [5; 100];
    for n in 1..=500 {
        let chunk = hand.chunk(n, &text);
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    net.run(S(1));
    let mark = net.log.len();
    for _ in 0..500 {
        let now = net.now;
        net.am(1).recv(now).unwrap();
        net.settle();
    }
    let updates = sacks(&net.sent_since(1, mark)).len();
    assert!(updates <= 4, "{updates}: not more than one for each quarter of the buffer");
}

#[test]
fn s6_2_r13_r14_the_sack_delay_is_500_ms_at_most() {
    let refused = Config::rfc9260().to_builder().sack_delay(MS(501)).build().unwrap_err();
    assert_eq!(refused.parameter, "sack_delay");
    let (mut net, hand) = receiver(quiet().sack_delay(MS(500)));
    hand.data(&mut net, 1);
    net.run(MS(499));
    assert!(net.times(1, "SACK").is_empty());
    net.run(MS(1));
    assert_eq!(net.times(1, "SACK").len(), 1);
}

#[test]
fn s6_2_r15_only_after_a_shutdown_request_may_a_shutdown_acknowledge() {
    let (mut net, hand) = receiver(quiet());
    net.send(1, 0, payload(1, 10)).unwrap();
    hand.data(&mut net, 1);
    net.run(MS(201));
    assert!(net.sent(1).iter().any(|p| p.has("SACK 1")) && net.times(1, "SHUTDOWN").is_empty());
    net.shutdown(1);
    // SHUTDOWN-PENDING: no SHUTDOWN is sent while chunk 1 is outstanding.
    hand.data(&mut net, 2);
    net.run(MS(201));
    assert!(net.sent(1).iter().any(|p| p.has("SACK 2")) && net.times(1, "SHUTDOWN").is_empty());
    hand.sack(&mut net, 1, &[]);
    assert!(hand.data(&mut net, 3).iter().any(|p| p.has("SHUTDOWN 3") || p.has("SACK 3")));
}

#[test]
fn s6_2_r16_the_cumulative_tsn_is_the_last_in_sequence() {
    let (mut net, hand) = receiver(quiet());
    let mut cumulative = |n| {
        let mut answers = kilobyte(&mut net, &hand, n);
        answers.extend(later(&mut net));
        answers.last().unwrap().cumulative
    };
    assert_eq!([2, 4, 1, 6, 5, 3, 7].map(&mut cumulative), [0, 0, 2, 2, 2, 6, 7]);
}

#[test]
fn s6_2_r17_as_many_gap_blocks_as_fit_the_packet() {
    for mtu in [576u16, 1500] {
        let (mut net, hand) = receiver(quiet().path_mtu(mtu));
        let mut last = Vec::new();
        for n in 1..600 {
            last = hand.data(&mut net, 2 * n);
        }
        let gaps = sacks(&last).pop().unwrap().gaps;
        // IP header, common header, and 16 bytes before the blocks of 4 bytes.
        assert_eq!(gaps.len(), (usize::from(mtu) - 20 - 12 - 16) / 4);
        assert!(last[0].bytes.len() + 20 <= usize::from(mtu));
    }
}

#[test]
fn s6_2_r18_gaps_are_reported_by_a_sack_after_a_shutdown() {
    let (mut net, hand) = receiver(quiet());
    net.shutdown(1);
    let answers = hand.data(&mut net, 3);
    assert!(answers.iter().any(|p| p.has("SACK 0 [3-3]")), "{:?}", texts(&answers));
}

#[test]
fn s6_2_r19_the_i_bit_is_answered_at_once() {
    let (mut net, hand) = receiver(quiet());
    for n in 1..4 {
        let chunk = Data { immediate: true, ..hand.chunk(n, b"x") };
        let answers = hand.say(&mut net, &|w| w.data(&chunk).unwrap());
        assert_eq!(sacks(&answers)[0].cumulative, n);
    }
}

#[test]
fn s6_2_r20_r21_duplicates_are_reported_at_once() {
    let (mut net, hand) = receiver(quiet());
    kilobyte(&mut net, &hand, 1);
    kilobyte(&mut net, &hand, 2);
    for n in [1, 2, 2] {
        let answers = kilobyte(&mut net, &hand, n);
        assert_eq!((answers[0].cumulative, &answers[0].duplicates[..]), (2, &[n][..]));
    }
    let again = hand.chunk(1, b"x");
    let answers = hand.say(&mut net, &|w| (0..3).for_each(|_| w.data(&again).unwrap()));
    assert_eq!(sacks(&answers)[0].duplicates, [1, 1, 1]);
}

#[test]
fn s6_2_r23_r24_the_window_does_not_grow_before_bytes_are_released() {
    let (mut net, hand) = small_receiver(20_000);
    let text = [9; 1000];
    let mut windows = Vec::new();
    for n in 1..=8 {
        // Fragments of one message, which is not complete yet.
        let chunk = Data { beginning: n == 1, end: n == 8, ssn: Ssn(0), ..hand.chunk(n, &text) };
        windows.extend(sacks(&hand.say(&mut net, &|w| w.data(&chunk).unwrap())));
        windows.extend(later(&mut net));
    }
    let windows: Vec<u32> = windows.iter().map(|s| s.rwnd).collect();
    assert!(windows.windows(2).all(|w| w[1] < w[0]), "{windows:?}");
    assert!(*windows.last().unwrap() <= 12_000);
    net.read(1);
    hand.data(&mut net, 9);
    assert!(later(&mut net).last().unwrap().rwnd > 19_000);
}

#[test]
fn s6_2_r25_a_sack_holds_the_current_window() {
    let (mut net, hand) = small_receiver(100_000);
    let mut held = 0;
    for n in 1..=20 {
        let mut answers = kilobyte(&mut net, &hand, n);
        answers.extend(later(&mut net));
        held += 1000;
        // The receiver may count a header for each chunk.
        let rwnd = answers.last().unwrap().rwnd;
        assert!((100_000 - held - 24 * n..=100_000 - held).contains(&rwnd), "{rwnd}");
        if n == 10 {
            net.read(1);
            held = 0;
        }
    }
}

#[test]
fn s6_2_r26_what_is_cumulatively_acknowledged_is_kept() {
    let (mut net, hand) = small_receiver(8000);
    let last = close_window(&mut net, &hand, 1);
    for n in last + 1..last + 30 {
        assert_eq!(kilobyte(&mut net, &hand, n)[0].cumulative, last);
    }
    let got = net.read(1);
    assert_eq!(got.len() as u32, last);
    assert!(got.iter().all(|r| r.payload[..] == [7; 1000]));
}

#[test]
fn s6_2_r27_r28_dropped_data_is_neither_reported_nor_charged() {
    let (mut net, hand) = small_receiver(8000);
    let last = close_window(&mut net, &hand, 3);
    let after = kilobyte(&mut net, &hand, 1).pop().unwrap();
    // Data that was dropped to make room for chunk 1 is not reported.
    let reported: Vec<u32> = after
        .gaps
        .iter()
        .flat_map(|g| g.0..=g.1)
        .map(|o| u32::from(o) + after.cumulative)
        .collect();
    assert!(!reported.contains(&last), "{reported:?}");
    net.read(1);
    hand.data(&mut net, 2);
    let got = 1 + net.read(1).len() as u32;
    assert_eq!(got, 2 + reported.len() as u32, "what is reported, and nothing else, is held");
    // Received again, it is reported again; when nothing is held, the window is fully open.
    for n in got + 1..=last {
        kilobyte(&mut net, &hand, n);
    }
    net.read(1);
    let mut answers = later(&mut net);
    answers.extend(kilobyte(&mut net, &hand, last));
    let answer = answers.pop().unwrap();
    assert!(answer.cumulative == last && answer.rwnd == 8000, "{answer:?}");
}

#[test]
fn s6_2_r31_data_without_user_data_is_aborted() {
    let (mut net, hand) = receiver(quiet());
    let empty = hand.chunk(1, b"");
    let answers = hand.say(&mut net, &|w| w.data(&empty).unwrap());
    assert_eq!((answers[0].text(), answers[0].causes()), ("ABORT (No User Data)".into(), vec![9]));
    assert!(net.a(1).is_closed());
}

#[test]
fn s6_2_r32_no_data_chunk_without_user_data_is_sent() {
    let mut flow = Flow::new(quiet());
    assert_eq!(flow.net.send(1, 0, payload(1, 0)), Err(SendError::Empty));
    // Messages that end with a packet leave no empty fragment.
    for len in [FULL, 2 * FULL, 3 * FULL] {
        flow.give(1, len);
        let sent = flow.net.sent(1).iter().flat_map(Sent::data).collect::<Vec<_>>();
        assert!(sent.iter().all(|d| d.len > 0));
        flow.sack(sent.last().unwrap().n, &[]);
    }
    assert_eq!(flow.net.a(1).buffered(), 0);
}

#[test]
fn s6_2_1_r1_the_peers_window_is_followed() {
    let mut flow = Flow::to(Hand { rwnd: 50_000, ..Hand::new(1) }, quiet());
    let rwnd = |flow: &Flow| flow.net.a(1).peer_rwnd();
    assert_eq!(rwnd(&flow), 50_000, "A: as in the INIT");
    flow.give(3, 1000);
    // B: subtract the sent data; a header may be counted for each chunk.
    assert!((50_000 - 3 * 1016..=47_000).contains(&rwnd(&flow)), "{}", rwnd(&flow));
    flow.sack_rwnd(1, 30_000);
    assert!((30_000 - 2 * 1016..=28_000).contains(&rwnd(&flow)), "D ii: less what is outstanding");
    let before = rwnd(&flow);
    assert_eq!(flow.sack_rwnd(0, 5), NONE);
    assert_eq!(rwnd(&flow), before, "D i: an older SACK is dropped");
    // C: chunks marked by T3-rtx are added, and subtracted when they are sent again.
    let rto = flow.path().rto.as_millis() as u64;
    assert_eq!(flow.wait(rto + 1), [[2]]);
    assert!((before..=30_000).contains(&rwnd(&flow)));
    // D iii: a chunk that is no longer reported is outstanding again, and the timer runs for it.
    flow.sack(3, &[]);
    flow.give(2, 1000);
    flow.sack(3, &[(2, 2)]);
    assert_eq!(flow.path().in_flight, 1016);
    flow.sack(4, &[]);
    assert_eq!(flow.path().in_flight, 1016, "chunk 5 was reported, and is not now");
    let rto = flow.path().rto.as_millis() as u64;
    assert_eq!(flow.wait(rto + 1), [[5]]);
}

#[test]
fn s6_2_r29_reported_data_is_not_discarded_while_there_is_room() {
    let (mut net, hand) = small_receiver(40_000);
    let mut reported = Vec::new();
    for n in [5, 9, 3, 12, 2, 20, 15, 7] {
        let answer = kilobyte(&mut net, &hand, n).pop().unwrap();
        reported.push(n);
        for seen in &reported {
            let covers = |g: &(u16, u16)| (u32::from(g.0)..=u32::from(g.1)).contains(seen);
            assert!(answer.gaps.iter().any(covers), "{seen} is no longer reported: {answer:?}");
        }
    }
}

#[test]
fn s6_2_r3_a_closed_window_makes_room_for_what_is_missing() {
    let (mut net, hand) = small_receiver(8000);
    let last = close_window(&mut net, &hand, 2);
    assert_eq!(sacks(&net.sent(1)).last().unwrap().gaps, [(2, last as u16)]);
    // Chunk 1 is below the largest TSN received: the largest one held for reordering is dropped.
    let answer = kilobyte(&mut net, &hand, 1).pop().unwrap();
    assert!((1..last).contains(&answer.cumulative) && answer.cumulative >= last - 1, "{answer:?}");
    assert_eq!(answer.gaps, []);
    let got = net.read(1).len() as u32;
    assert_eq!(got, answer.cumulative, "what is acknowledged is delivered");
}
