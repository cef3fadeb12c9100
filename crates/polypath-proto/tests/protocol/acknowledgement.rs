//! SACKs sent and received, and the receive window (RFC 9260 6.1 A, 6.2, 6.2.1, 6.7).

use crate::common::*;
use polypath_proto::wire::Data;
use polypath_proto::*;

fn config(buffer: u32) -> Config {
    Config::rfc9260().to_builder().receive_buffer(buffer).build().unwrap()
}

fn sacks(packets: &[Sent]) -> Vec<SackSeen> {
    packets.iter().filter_map(Sent::sack).collect()
}

/// Host 1, which acknowledges the data of a hand.
fn receiver(config: Config) -> (Net, Hand) {
    let mut net = pair(1, config);
    let hand = Hand::new(1).open(&mut net);
    (net, hand)
}

/// Host 1, with this number of 1000-byte messages to send, and a hand that acknowledges them.
fn sender(config: Config, rwnd: u32, chunks: u64) -> (Net, Hand) {
    let mut net = pair(1, config);
    let hand = Hand { rwnd, ..Hand::new(1) }.open(&mut net);
    let now = net.now;
    for i in 0..chunks {
        net.am(1).send(now, Message::new(StreamId(0), payload(i, 1000))).unwrap();
    }
    net.settle();
    (net, hand)
}

/// RFC 9260 6.2: a SACK is sent for every second packet, or 200 ms after the first one.
#[test]
fn a_sack_is_delayed_for_a_second_packet_or_200_ms() {
    let (mut net, hand) = receiver(Config::rfc9260());
    hand.data(&mut net, 1);
    assert!(hand.data(&mut net, 2).is_empty());
    assert_eq!(hand.data(&mut net, 3)[0].text(), "SACK 3");
    net.run(S(1));
    assert!(hand.data(&mut net, 4).is_empty());
    let (start, mark) = (net.now, net.log.len());
    net.run(S(1));
    assert_eq!(net.script_since(mark), ["B SACK 4"]);
    assert_eq!(net.log[mark].at.since(start), MS(200));
}

/// RFC 9260 5.1: the first DATA chunk is acknowledged at once; RFC 2960 did not require this.
#[test]
fn the_first_chunk_is_acknowledged_at_once() {
    let (mut net, hand) = receiver(Config::rfc9260());
    assert_eq!(hand.data(&mut net, 1)[0].text(), "SACK 1");
    assert!(hand.data(&mut net, 2).is_empty());
    let without = Config::rfc9260().to_builder().first_sack_at_once(false).build().unwrap();
    let (mut net, hand) = receiver(without);
    assert!(hand.data(&mut net, 1).is_empty());
    assert_eq!(hand.data(&mut net, 2)[0].text(), "SACK 2");
}

/// RFC 9260 6.2: packets count, not chunks.
#[test]
fn many_chunks_in_one_packet_are_one_packet() {
    let (mut net, hand) = receiver(Config::rfc9260());
    hand.data(&mut net, 1);
    let chunks: Vec<Data<'_>> = (2..=9).map(|n| hand.chunk(n, b"x")).collect();
    let write = |from: usize, to: usize| {
        let chunks = chunks[from..to].to_vec();
        move |w: &mut wire::PacketWriter<'_>| chunks.iter().for_each(|c| w.data(c).unwrap())
    };
    assert!(hand.say(&mut net, &write(0, 4)).is_empty());
    assert_eq!(hand.say(&mut net, &write(4, 8))[0].text(), "SACK 9");
}

/// RFC 9260 6.2, 3.3.1: the I bit requests a SACK at once.
#[test]
fn the_immediate_bit_is_answered_at_once() {
    let (mut net, hand) = receiver(Config::rfc9260());
    let chunk = Data { immediate: true, ..hand.chunk(1, b"x") };
    assert_eq!(hand.say(&mut net, &|w| w.data(&chunk).unwrap())[0].text(), "SACK 1");
}

/// RFC 9260 16: SACK.Delay and the number of packets per SACK are parameters.
#[test]
fn the_delay_and_the_count_can_be_chosen() {
    let chosen = Config::rfc9260().to_builder().sack_delay(MS(50)).sack_every(4).build().unwrap();
    let (mut net, hand) = receiver(chosen);
    hand.data(&mut net, 1);
    assert!((2..=4).all(|n| hand.data(&mut net, n).is_empty()));
    assert_eq!(hand.data(&mut net, 5)[0].text(), "SACK 5");
    hand.data(&mut net, 6);
    let start = net.now;
    net.run(S(1));
    assert_eq!(net.log.last().unwrap().at.since(start), MS(50));
    let none = Config::rfc9260().to_builder().sack_delay(MS(0)).build().unwrap();
    let (mut net, hand) = receiver(none);
    assert_eq!(hand.data(&mut net, 1)[0].text(), "SACK 1");
}

/// RFC 9260 6.7: a SACK is sent for every packet while a TSN is missing.
#[test]
fn a_gap_is_reported_with_every_packet() {
    let (mut net, hand) = receiver(Config::rfc9260());
    let mut say = |n| hand.data(&mut net, n).iter().map(Sent::text).collect::<Vec<_>>();
    assert_eq!(say(2), ["SACK 0 [2-2]"]);
    assert_eq!(say(3), ["SACK 0 [2-3]"]);
    assert_eq!(say(7), ["SACK 0 [2-3] [7-7]"]);
    assert_eq!(say(5), ["SACK 0 [2-3] [5-5] [7-7]"]);
    assert_eq!(say(6), ["SACK 0 [2-3] [5-7]"]);
    assert_eq!(say(1), ["SACK 3 [2-4]"]);
    say(4);
    net.run(MS(200));
    assert_eq!(net.log.last().unwrap().text(), "SACK 7");
}

/// RFC 9260 6.2, 3.3.4: duplicates are reported at once, each arrival once.
#[test]
fn duplicates_are_reported_once() {
    let (mut net, hand) = receiver(Config::rfc9260());
    hand.data(&mut net, 1);
    hand.data(&mut net, 2);
    let answer = &sacks(&hand.data(&mut net, 1))[0];
    assert_eq!((answer.cumulative, answer.duplicates.clone()), (2, vec![1]));
    let chunk = hand.chunk(2, b"data");
    let answers = hand.say(&mut net, &|w| (0..3).for_each(|_| w.data(&chunk).unwrap()));
    assert_eq!(sacks(&answers)[0].duplicates, [2, 2, 2]);
    hand.data(&mut net, 4);
    assert_eq!(sacks(&hand.data(&mut net, 4))[0].duplicates, [4]);
    assert_eq!(sacks(&hand.data(&mut net, 5))[0].duplicates, [0u32; 0]);
    assert_eq!(net.a(1).stats().duplicates_received, 5);
    assert_eq!(net.hosts[1].received.len(), 2);
}

/// RFC 9260 6.4: a SACK is sent to the source address of the DATA.
#[test]
fn sacks_return_on_the_path_of_the_data() {
    let mut net = established(2, Config::rfc9260());
    for path in [1, 0, 1] {
        let now = net.now;
        net.am(0).set_primary(now, PathId(path)).unwrap();
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(S(1));
        assert_eq!(net.sent_with(1, "SACK").last().unwrap().net(), path);
    }
}

/// RFC 9260 6.2.1: a_rwnd shrinks by unread data, and grows again when it is read.
#[test]
fn the_window_follows_what_the_application_reads() {
    let config = config(20_000).to_builder().first_sack_at_once(false).build().unwrap();
    let (mut net, hand) = receiver(config);
    net.hosts[1].reads = false;
    let text = [7; 1000];
    let mut windows = Vec::new();
    for n in 1..=12 {
        let chunk = hand.chunk(n, &text);
        windows.extend(sacks(&hand.say(&mut net, &|w| w.data(&chunk).unwrap())));
    }
    assert_eq!(windows.len(), 6);
    for (i, sack) in windows.iter().enumerate() {
        let held = 1000 * (i as u32 + 1) * 2;
        assert!(sack.rwnd <= 20_000 - held, "{} with {held} bytes held", sack.rwnd);
        assert!(sack.rwnd >= 20_000 - held - 100 * 24, "headers may be charged, no more");
    }
    assert_eq!(net.read(1).len(), 12);
    net.run(S(1));
    hand.data(&mut net, 13);
    net.run(S(1));
    assert!(sacks(&net.sent(1)).last().unwrap().rwnd >= 19_900, "all is free again");
}

/// RFC 9260 6.1 A, 6.2.1: no more data is sent than the peer's window allows.
#[test]
fn the_sender_respects_the_window() {
    let (mut net, hand) = sender(Config::rfc9260(), 2600, 10);
    assert_eq!(data_numbers(&net.sent(1)), [[1], [2]]);
    assert!(net.a(1).peer_rwnd() < 600);
    // a_rwnd accounts for received data only: data still in flight has to be subtracted from it.
    assert!(hand.sack_rwnd(&mut net, 1, &[], 2000).is_empty(), "1016 of the 2000 are in flight");
    assert_eq!(data_numbers(&hand.sack_rwnd(&mut net, 2, &[], 2100)), [[3], [4]]);
}

/// RFC 9260 6.1 A: a closed window is probed; the association stays up as long as the peer answers.
#[test]
fn a_closed_window_is_probed_for_as_long_as_the_peer_answers() {
    // A HEARTBEAT ACK would end the backoff.
    let quiet = config(10_000).to_builder().heartbeat_interval(None).build().unwrap();
    let mut net = established(1, quiet);
    net.hosts[1].reads = false;
    for i in 0..20 {
        net.send(0, 0, payload(i, 2000)).unwrap();
    }
    net.run(S(1000));
    assert!(net.a(0).is_established() && net.a(1).is_established());
    assert_eq!(net.path(0, 0).error_count, 0);
    let mark = net.log.len();
    net.run(S(200));
    let probes = data_numbers(&net.sent_since(0, mark));
    assert!((3..=4).contains(&probes.len()), "with growing intervals: {probes:?}");
    assert!(probes.iter().all(|p| p.len() == 1), "one chunk each: {probes:?}");
    let before = net.now;
    let first = net.read(1);
    net.hosts[1].reads = true;
    net.drive_until(S(10), |net| net.a(0).buffered() == 0);
    assert!(net.now.since(before) < S(3), "the window update is told, not waited for");
    assert_eq!(first.len() + net.hosts[1].received.len(), 20);
}

/// RFC 9260 6.1 A: "the peer has no buffer space (i.e., rwnd is smaller than the size of the next
/// DATA chunk)": a window that is open, but not for the next chunk, is probed like a closed one.
#[test]
fn a_window_too_small_for_the_next_chunk_is_probed_for_as_long_as_the_peer_answers() {
    for (paths, rwnd) in [(1, 1), (1, 1015), (2, 500)] {
        let mut net = pair(paths, Config::rfc9260());
        let hand = Hand { rwnd: 20_000, ..Hand::new(1) }.open(&mut net);
        for i in 0..12 {
            net.send(1, 0, payload(i, 1000)).unwrap();
        }
        let highest = |net: &Net| data_numbers(&net.sent(1)).concat().into_iter().max().unwrap();
        let last = highest(&net);
        hand.sack_rwnd(&mut net, last, &[], rwnd);
        let mut probes = 0;
        for _ in 0..1200 {
            let mark = net.log.len();
            net.run(S(1));
            let sent = net.sent_since(1, mark);
            hand.answer_heartbeats(&mut net, &sent);
            let data = data_numbers(&sent);
            if !data.is_empty() {
                assert_eq!(data, [[last + 1]], "one chunk, which the peer waits for");
                probes += 1;
                hand.sack_rwnd(&mut net, last, &[], rwnd);
            }
        }
        assert!(probes > 15, "{probes} probes of a window of {rwnd}");
        assert!(net.a(1).is_established());
        assert!(net.a(1).paths().all(|p| p.error_count == 0));
        hand.sack_rwnd(&mut net, last, &[], 20_000);
        for _ in 0..12 {
            let last = highest(&net);
            hand.sack_rwnd(&mut net, last, &[], 20_000);
        }
        assert_eq!((highest(&net), net.a(1).buffered()), (12, 0));
    }
}

/// RFC 9260 6.1 A, 8.1: a peer that does not answer probes is unreachable.
#[test]
fn a_closed_window_without_answers_ends_the_association() {
    let (mut net, hand) = sender(Config::rfc9260(), 1500, 5);
    hand.sack_rwnd(&mut net, 1, &[], 0);
    net.run(S(2000));
    assert_eq!(net.closed(1), Some(CloseReason::PeerUnreachable));
}

/// RFC 9260 6.2: the window probe makes up for a lost window update.
#[test]
fn a_lost_window_update_does_not_stop_the_transfer() {
    let mut net = established(1, config(10_000));
    net.hosts[1].reads = false;
    for i in 0..20 {
        net.send(0, 0, payload(i, 2000)).unwrap();
    }
    net.run(S(10));
    let mut armed = true;
    net.filter(
        move |p| if p.has("SACK") && std::mem::take(&mut armed) { Fate::Drop } else { Fate::Pass },
    );
    net.read(1);
    net.hosts[1].reads = true;
    net.drive_until(S(70), |net| net.a(0).buffered() == 0);
}

/// RFC 9260 6.2: no silly windows are announced, however slowly the application reads.
#[test]
fn small_windows_are_announced_as_none() {
    let mut net = established(1, config(8_000));
    net.hosts[1].reads = false;
    let now = net.now;
    for i in 0..400 {
        net.am(0).send(now, Message::new(StreamId(0), payload(i, 100))).unwrap();
    }
    net.run(S(2));
    let mut got = 0;
    while got < 400 {
        let now = net.now;
        got += usize::from(net.am(1).recv(now).is_some());
        net.settle();
        net.run(MS(100));
        assert!(net.now < Time::from_secs(600), "{got} of 400");
    }
    let windows: Vec<u32> = sacks(&net.sent(1)).iter().map(|s| s.rwnd).collect();
    assert!(windows.iter().all(|w| *w == 0 || *w >= 1468), "{windows:?}");
    assert!(windows.contains(&0));
    let updates = windows.len();
    assert!(updates < 150, "{updates} SACKs for 400 messages");
}

/// RFC 9260 6.2.1 D i: an outdated SACK changes nothing.
#[test]
fn an_old_sack_is_dropped() {
    let (mut net, hand) = sender(Config::rfc9260(), 1 << 20, 20);
    hand.sack(&mut net, 3, &[]);
    let before = (net.path(1, 0).in_flight, net.a(1).peer_rwnd(), net.a(1).stats().dropped);
    assert!(hand.sack_rwnd(&mut net, 2, &[], 0).is_empty());
    let after = (net.path(1, 0).in_flight, net.a(1).peer_rwnd(), net.a(1).stats().dropped);
    assert_eq!((before.0, before.1, before.2 + 1), after);
}

/// RFC 9260 6.2.1: TSNs that were never sent cannot be acknowledged.
#[test]
fn acknowledging_what_was_never_sent_aborts_the_association() {
    type Lie = (u32, &'static [(u16, u16)]);
    let lies: [Lie; 4] = [(5, &[]), (0, &[(2, 5)]), (1 << 31, &[]), (3, &[(2, 2)])];
    for (cumulative, gaps) in lies {
        let (mut net, hand) = sender(Config::rfc9260(), 1 << 20, 4);
        let answers = hand.sack(&mut net, cumulative, gaps);
        if cumulative == 1 << 31 {
            // At a distance of 2^31 it is above or below, but never an acknowledgement.
            assert!(net.a(1).is_closed() || net.a(1).buffered() == 4000);
            continue;
        }
        assert_eq!(answers[0].chunks[0].name, "ABORT", "{cumulative} {gaps:?}");
        assert!(matches!(net.closed(1), Some(CloseReason::ProtocolViolation { .. })));
    }
}

/// RFC 9260 6.2.1 D iii: a TSN that a gap ack block acknowledged and a later SACK does not is
/// outstanding again.
#[test]
fn a_peer_that_reneges_gets_its_data_again() {
    let (mut net, hand) = sender(Config::rfc9260(), 1 << 20, 4);
    assert_eq!(net.path(1, 0).in_flight, 4 * 1016);
    hand.sack(&mut net, 0, &[(2, 4)]);
    assert_eq!(net.path(1, 0).in_flight, 1016);
    hand.sack(&mut net, 1, &[(2, 2)]);
    assert_eq!((net.path(1, 0).in_flight, net.a(1).stats().reneged), (2 * 1016, 2));
    let mark = net.log.len();
    net.run(S(3));
    // RFC 9260 7.2.3: only one packet is sent until it is acknowledged.
    hand.sack(&mut net, 3, &[]);
    let again: Vec<u32> = data_numbers(&net.sent_since(1, mark)).concat();
    assert!(again.contains(&2) && again.contains(&4) && !again.contains(&3), "{again:?}");
    hand.sack(&mut net, 4, &[]);
    assert_eq!((net.path(1, 0).in_flight, net.a(1).buffered()), (0, 0));
    assert!(net.saw(1, &Event::Drained));
}

/// RFC 9260 3.3.4: gap ack blocks out of order, overlapping or empty do no harm.
#[test]
fn unsound_gap_blocks_are_survived() {
    let strange: [&[(u16, u16)]; 6] = [
        &[(4, 4), (2, 2)],
        &[(2, 4), (3, 3)],
        &[(3, 2)],
        &[(0, 0)],
        &[(2, 2), (3, 3), (4, 4)],
        &[(2, 3), (2, 3), (2, 3)],
    ];
    for gaps in strange {
        let (mut net, hand) = sender(Config::rfc9260(), 1 << 20, 4);
        hand.sack(&mut net, 0, gaps);
        hand.sack(&mut net, 4, &[]);
        assert_eq!((net.path(1, 0).in_flight, net.a(1).buffered()), (0, 0), "{gaps:?}");
        assert!(net.a(1).is_established());
    }
}

/// RFC 9260 6.2: a receiver out of buffer drops chunks that are out of sequence first; no data is
/// lost.
#[test]
fn a_full_buffer_with_a_gap_makes_room_for_what_is_missing() {
    let (mut net, hand) = receiver(config(8_000));
    let text = [1; 1000];
    for n in 2..=20 {
        let chunk = hand.chunk(n, &text);
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert!(net.a(1).stats().dropped_no_buffer > 0);
    for n in 1..=20 {
        let chunk = hand.chunk(n, &text);
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    assert_eq!(net.hosts[1].received.len(), 20);
    net.run(S(1));
    assert_eq!(sacks(&net.sent(1)).last().unwrap().cumulative, 20);
}

/// RFC 9260 6.2.1: every message is reported, even if earlier ones are unread.
#[test]
fn readable_is_told_again_for_what_comes_later() {
    let (mut net, hand) = receiver(Config::rfc9260());
    net.hosts[1].reads = false;
    for n in 1..=5 {
        hand.data(&mut net, n);
    }
    assert_eq!(net.events(1, |e| *e == Event::Readable).len(), 5);
    assert_eq!(net.read(1).len(), 5);
    assert_eq!(net.a(1).stats().messages_received, 5);
}

/// RFC 9260 6.1 A, 9.2: a SHUTDOWN that acknowledges a window probe opens no window. The next probe
/// follows after an RTO.
#[test]
fn a_shutdown_acknowledges_a_window_probe() {
    let (mut net, hand) = sender(Config::rfc9260(), 1500, 5);
    hand.sack_rwnd(&mut net, 3, &[], 0);
    let probes = |net: &mut Net| {
        let mark = net.log.len();
        net.run(MS(1100));
        data_numbers(&net.sent_since(1, mark)).concat()
    };
    assert_eq!(probes(&mut net), [4]);
    hand.shutdown(&mut net, 4);
    assert_eq!(probes(&mut net), [5]);
}
