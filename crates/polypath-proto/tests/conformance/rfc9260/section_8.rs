//! RFC 9260, section 8: Fault Management.

use super::setup::{State, quiet, texts, two_homed};
use crate::common::*;
use polypath_proto::wire::{self, Chunk, PacketWriter};
use polypath_proto::*;

/// Two hosts with two paths; HB.interval is 5 s.
fn two_paths(config: ConfigBuilder) -> Net {
    let mut net = established(2, config.heartbeat_interval(Some(S(5))).build().unwrap());
    net.log.clear();
    net
}

/// Times of host 0's HEARTBEATs on this path, in milliseconds.
fn heartbeats(net: &Net, path: u8) -> Vec<u64> {
    net.sent_with(0, "HEARTBEAT").iter().filter(|p| p.net() == path).map(Sent::ms).collect()
}

/// The changes of this path's state that host 0 has reported.
fn changes(net: &Net, path: u8) -> Vec<(PathState, PathState)> {
    let events = net.hosts[0].events.iter().filter_map(|(_, event)| match event {
        Event::PathState { path: p, from, to, .. } if p.0 == path => Some((*from, *to)),
        _ => None,
    });
    events.filter(|(from, _)| *from != PathState::Unconfirmed).collect()
}

const FAILED: (PathState, PathState) = (PathState::Active, PathState::Inactive);
const BACK: (PathState, PathState) = (PathState::Inactive, PathState::Active);

#[test]
fn s8_1_r1_r3_r4_the_association_ends_when_its_errors_exceed_the_limit() {
    let config = quiet().association_max_retrans(4).path_max_retrans(9);
    let mut net = established(2, config.build().unwrap());
    net.log.clear();
    net.cuts.extend([0, 1]);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(600));
    // Retransmissions on all paths count: the first transmission and four more.
    let data = net.sent_with(0, "DATA");
    assert_eq!(data.iter().map(Sent::net).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
    assert!(net.saw(0, &Event::Closed(CloseReason::PeerUnreachable)));
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed));
    // An unanswered HEARTBEAT on the path in use counts, too.
    let config =
        Config::rfc9260().to_builder().association_max_retrans(2).heartbeat_interval(Some(S(5)));
    let mut net = established(1, config.build().unwrap());
    net.cuts.insert(0);
    net.run(S(300));
    assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
}

#[test]
fn s8_1_r2_heartbeats_on_paths_without_data_do_not_count() {
    let mut net =
        two_paths(Config::rfc9260().to_builder().association_max_retrans(3).path_max_retrans(9));
    net.cuts.insert(1);
    net.run(S(1000));
    assert!(net.a(0).path_stats(PathId(1)).unwrap().heartbeats_lost > 6);
    assert_eq!(net.closed(0), None);
}

#[test]
fn s8_1_r5_an_acknowledgement_resets_the_associations_errors() {
    let mut net = established(1, quiet().association_max_retrans(3).build().unwrap());
    for n in 0..10 {
        net.nth("DATA", &[1, 2, 3], Fate::Drop);
        net.send(0, 0, payload(n, 100)).unwrap();
        net.drive_until(S(400), |net| net.a(0).buffered() == 0 || net.a(0).is_closed());
        net.no_filters();
        assert_eq!(net.closed(0), None, "three errors are not more than three: message {n}");
    }
}

#[test]
fn s8_1_r6_a_heartbeat_ack_resets_the_associations_errors() {
    let config = Config::rfc9260().to_builder().path_max_retrans(9).heartbeat_interval(Some(S(5)));
    let strict = config.clone().association_max_retrans(3).build().unwrap();
    let configs = [strict, config.association_max_retrans(99).build().unwrap()];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    for _ in 0..5 {
        let lost = net.a(0).path_stats(PathId(0)).unwrap().heartbeats_lost;
        net.cuts.insert(0);
        net.drive_until(S(400), |net| {
            net.a(0).path_stats(PathId(0)).unwrap().heartbeats_lost == lost + 3
        });
        net.cuts.clear();
        net.drive_until(S(200), |net| net.path(0, 0).error_count == 0);
    }
    assert_eq!(net.closed(0), None);
}

#[test]
fn s8_2_r1_each_destination_has_its_error_counter() {
    let mut net = two_paths(Config::rfc9260().to_builder());
    net.cuts.insert(1);
    net.drive_until(S(100), |net| net.path(0, 1).error_count == 2);
    assert_eq!(net.path(0, 0).error_count, 0);
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(20), |net| net.path(0, 0).error_count == 1);
}

#[test]
fn s8_2_r2_too_many_errors_make_a_path_inactive() {
    for limit in [0, 1, 3] {
        let mut net = two_paths(quiet().path_max_retrans(limit));
        let heartbeats = net.a(0).path_stats(PathId(0)).unwrap().heartbeats_lost;
        net.cuts.insert(0);
        let mut n = 0;
        while net.path(0, 0).state == PathState::Active {
            n += 1;
            assert!(net.path(0, 0).error_count <= limit);
            assert!(changes(&net, 0).is_empty());
            net.send(0, 0, payload(n, 100)).unwrap();
            net.drive_until(S(200), |net| net.a(0).buffered() == 0);
        }
        let stats = net.a(0).path_stats(PathId(0)).unwrap();
        let errors = stats.timeouts + stats.heartbeats_lost - heartbeats;
        assert_eq!((errors, changes(&net, 0)), (u64::from(limit) + 1, vec![FAILED]));
    }
}

#[test]
fn s8_2_r3_an_answer_clears_the_errors_and_brings_a_path_back() {
    // By a HEARTBEAT ACK.
    let mut net = two_paths(Config::rfc9260().to_builder().path_max_retrans(1));
    net.cuts.insert(1);
    net.drive_until(S(100), |net| net.path(0, 1).state == PathState::Inactive);
    net.cuts.clear();
    net.drive_until(S(100), |net| net.path(0, 1).state == PathState::Active);
    assert_eq!((net.path(0, 1).error_count, changes(&net, 1)), (0, vec![FAILED, BACK]));
    // By an acknowledged DATA chunk.
    let mut net = established(1, quiet().path_max_retrans(1).build().unwrap());
    net.nth("DATA", &[1, 2], Fate::Drop);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(100), |net| net.path(0, 0).state == PathState::Inactive);
    net.drive_until(S(100), |net| net.a(0).buffered() == 0);
    assert_eq!((net.path(0, 0).error_count, changes(&net, 0)), (0, vec![FAILED, BACK]));
}

#[test]
fn s8_2_r4_one_path_takes_the_place_of_the_primary() {
    let config = Config::rfc9260().to_builder().path_max_retrans(0).heartbeat_interval(Some(S(5)));
    let mut net = established(4, config.build().unwrap());
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.drive_until(S(100), |net| net.path(0, 0).state == PathState::Inactive);
    net.run(S(1));
    let mark = net.log.len();
    net.send(0, 0, payload(1, 200_000)).unwrap();
    net.run(S(20));
    let data: Vec<u8> =
        net.sent_since(0, mark).iter().filter(|p| p.has("DATA")).map(Sent::net).collect();
    assert!(data.len() > 100 && data[0] != 0 && data.iter().all(|n| *n == data[0]), "{data:?}");
}

#[test]
fn s8_3_r1_idle_paths_are_monitored_by_default() {
    let mut net = established(3, Config::rfc9260());
    net.log.clear();
    net.run(S(100));
    for path in 0..3 {
        assert!((2..=3).contains(&heartbeats(&net, path).len()), "30 s and an RTO each");
    }
    // A path with data is not idle.
    net.log.clear();
    for n in 0..100 {
        net.send(0, 0, payload(n, 3000)).unwrap();
        net.run(S(1));
    }
    assert_eq!(heartbeats(&net, 0), [0u64; 0]);
    assert!(heartbeats(&net, 1).len() >= 2);
}

#[test]
fn s8_3_r2_heartbeats_are_answered_while_the_association_lasts() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        let answers = hand.say(&mut net, &|w| w.heartbeat(b"are you there?").unwrap());
        let answered = answers.iter().any(|p| p.has("HEARTBEAT ACK"));
        match state {
            // 5.1 C: until the COOKIE ACK is received, only the COOKIE ECHO is sent.
            State::CookieWait | State::CookieEchoed => assert!(!answered, "{state:?}"),
            // "up until reaching": both are correct.
            State::ShutdownSent | State::ShutdownAckSent => {}
            _ => assert!(answered, "{state:?}"),
        }
    }
}

#[test]
fn s8_3_r3_r4_lost_heartbeats_count_until_the_path_is_inactive() {
    let mut net = two_paths(Config::rfc9260().to_builder().path_max_retrans(2));
    net.cuts.insert(1);
    for errors in 1..=3 {
        let sent = heartbeats(&net, 1).len();
        net.drive_until(S(100), |net| heartbeats(net, 1).len() > sent);
        let rto = net.path(0, 1).rto;
        assert_eq!(net.path(0, 1).error_count, errors - 1);
        net.run(rto - MS(1));
        assert_eq!(net.path(0, 1).error_count, errors - 1, "not before one RTO");
        net.run(MS(2));
        assert_eq!(net.path(0, 1).error_count, errors);
    }
    assert_eq!((net.path(0, 1).state, changes(&net, 1)), (PathState::Inactive, vec![FAILED]));
}

#[test]
fn s8_3_r6_a_heartbeat_tells_its_time_and_destination() {
    let (mut net, hand, other) = two_homed(quiet());
    let now = net.now;
    net.am(1).request_heartbeat(now, PathId(1)).unwrap();
    net.settle();
    let asked = net.sent_with(1, "HEARTBEAT").pop().unwrap();
    assert_eq!(asked.to.ip(), other.ip);
    let Chunk::Heartbeat(h) = asked.parsed()[0] else { unreachable!() };
    // The answer arrives from the other address 70 ms later: it counts for the HEARTBEAT's
    // destination.
    let before = [0, 1].map(|p| net.a(1).path_stats(PathId(p)).unwrap().heartbeats_acked);
    net.run(MS(70));
    let srtt = net.path(1, 1).srtt.unwrap();
    hand.say(&mut net, &|w| w.heartbeat_ack(h.info).unwrap());
    let after = [0, 1].map(|p| net.a(1).path_stats(PathId(p)).unwrap().heartbeats_acked);
    assert_eq!(after, [before[0], before[1] + 1]);
    assert_eq!(net.path(1, 1).srtt, Some(srtt * 7 / 8 + MS(70) / 8));
}

#[test]
fn s8_3_r8_a_heartbeat_comes_back_unchanged_and_at_once() {
    let (mut net, hand) = State::Established.reach();
    for len in [1, 2, 3, 4, 40, 555, 1400] {
        let info = payload(len as u64, len);
        let answers = hand.say(&mut net, &|w| w.heartbeat(&info).unwrap());
        let echoed: Vec<u8> = answers
            .iter()
            .find_map(|p| match p.parsed()[..] {
                [Chunk::HeartbeatAck(h)] => Some(h.info.to_vec()),
                _ => None,
            })
            .expect("a HEARTBEAT ACK");
        assert_eq!(echoed, info);
    }
    // Another TLV follows the information.
    let value = [0, 1, 0, 8, 1, 2, 3, 4, 0x80, 0x99, 0, 8, 5, 6, 7, 8];
    let answers = hand.say(&mut net, &|w| w.typed_chunk(4, 0, &value).unwrap());
    assert_eq!((answers[0].bytes[12], &answers[0].bytes[16..]), (5, &value[..]));
}

#[test]
fn s8_3_r9_r10_a_heartbeat_ack_brings_a_path_back() {
    let mut net = two_paths(Config::rfc9260().to_builder().path_max_retrans(1));
    net.cuts.insert(1);
    net.drive_until(S(100), |net| net.path(0, 1).state == PathState::Inactive);
    net.cuts.clear();
    let acked = net.a(0).path_stats(PathId(1)).unwrap().heartbeats_acked;
    net.drive_until(S(100), |net| net.a(0).path_stats(PathId(1)).unwrap().heartbeats_acked > acked);
    assert_eq!((net.path(0, 1).state, net.path(0, 1).error_count), (PathState::Active, 0));
    assert_eq!(changes(&net, 1).last(), Some(&BACK));
}

#[test]
fn s8_3_r12_a_heartbeat_ack_measures_the_rtt() {
    let config = Config::rfc9260().to_builder().build().unwrap();
    let mut net = Setup { paths: 2, configs: [config.clone(), config], ..Setup::default() }.build();
    net.delays.insert((0, 1), MS(30));
    net.delays.insert((1, 1), MS(50));
    net.establish();
    assert_eq!(net.path(0, 1).srtt, Some(MS(80)));
}

#[test]
fn s8_3_r13_a_heartbeat_per_hb_interval_and_rto_with_jitter() {
    let mut net = two_paths(Config::rfc9260().to_builder());
    net.run(S(2000));
    let gaps = |times: &[u64]| times.windows(2).map(|w| w[1] - w[0]).collect::<Vec<u64>>();
    let regular = gaps(&heartbeats(&net, 1));
    // HB.interval is 5 s and the RTO is 1 s: 5.5 to 6.5 s.
    assert!(regular.len() > 250 && regular.iter().all(|g| (5500..=6500).contains(g)));
    assert!(regular.iter().any(|g| *g < 5700) && regular.iter().any(|g| *g > 6300), "jitter");
    net.cuts.insert(1);
    let mark = net.now.as_nanos() / 1_000_000;
    net.run(S(600));
    let late: Vec<u64> = heartbeats(&net, 1).into_iter().filter(|t| *t >= mark).collect();
    let late = gaps(&late);
    // Each unanswered HEARTBEAT doubles the RTO, up to 60 s, and the interval adds 5 s; the jitter
    // was chosen when the last HEARTBEAT was sent.
    for (i, gap) in late.iter().enumerate() {
        let (before, rto) = ((1000u64 << i).min(60_000), (1000u64 << (i + 1)).min(60_000));
        assert!((5000 + before / 2..=5000 + rto * 3 / 2).contains(gap), "{late:?}");
    }
    assert!(late.len() >= 9, "{late:?}");
}

#[test]
fn s8_3_r14_one_heartbeat_for_each_expiry() {
    let mut net = established(
        4,
        Config::rfc9260().to_builder().heartbeat_interval(Some(S(5))).build().unwrap(),
    );
    net.log.clear();
    net.run(S(600));
    let mut times: Vec<u64> = (0..4).flat_map(|p| heartbeats(&net, p)).collect();
    times.sort_unstable();
    let together = times.windows(2).filter(|w| w[0] == w[1]).count();
    assert!(times.len() > 300 && together < 10, "{together} of {}", times.len());
    assert!(net.sent_with(0, "HEARTBEAT").iter().all(|p| p.chunks.len() == 1));
}

const TAG: u32 = 0x1234_5678;

type Chunks<'f> = &'f dyn Fn(&mut PacketWriter<'_>);

/// Answers of an endpoint without associations to a packet with this tag.
fn strange(tag: u32, chunks: Chunks<'_>) -> Vec<(String, u32)> {
    let mut net = pair(1, Config::rfc9260());
    let answers = Hand::new(1).say_with_tag(&mut net, tag, chunks);
    net.run(S(100));
    assert_eq!(net.sent(1).len(), answers.len(), "no further action");
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    answers.iter().map(|p| (p.text(), p.tag)).collect()
}

fn data(w: &mut PacketWriter<'_>) {
    w.data(&Hand::new(1).chunk(1, b"x")).unwrap();
}

fn nothing() -> Vec<(String, u32)> {
    Vec::new()
}

#[test]
fn s8_4_r1_packets_from_groups_are_discarded() {
    for ip in ["224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0", "ff02::1", "::"] {
        let mut net = Setup { dual: true, ..Setup::default() }.build();
        let ip: std::net::IpAddr = ip.parse().unwrap();
        let to = if ip.is_ipv4() { v4(0, 1) } else { v6(0, 1) };
        let packet = Hand::new(1).packet(TAG, &data);
        net.inject((ip, 0).into(), (to, 0).into(), &packet);
        assert!(net.sent(1).is_empty(), "{ip}");
    }
}

#[test]
fn s8_4_r2_an_abort_out_of_the_blue_is_discarded() {
    for t_bit in [false, true] {
        assert_eq!(strange(TAG, &|w| w.abort(t_bit, |_| Ok(())).unwrap()), nothing());
        let bundled = strange(TAG, &|w| {
            data(w);
            w.abort(t_bit, |_| Ok(())).unwrap();
        });
        assert_eq!(bundled, nothing());
    }
}

#[test]
fn s8_4_r3_an_init_with_tag_zero_opens_an_association() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    assert_eq!((texts(&answers), answers[0].tag), (vec!["INIT ACK".to_owned()], hand.tag));
}

#[test]
fn s8_4_r4_an_init_that_cannot_be_processed_is_aborted_with_its_own_tag() {
    let listens = [false, false];
    let mut net = Setup { listens, ..Setup::default() }.build();
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|_| {});
    assert_eq!((texts(&answers), answers[0].tag), (vec!["ABORT".to_owned()], hand.tag));
}

#[test]
fn s8_4_r5_a_cookie_echo_out_of_the_blue_opens_an_association() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    assert!(net.a(1).is_established());
    // With DATA after it.
    let mut other = Hand { port: 7, tag: 7, ..hand };
    let answer = other.init(&mut net, &|_| {});
    other.learn(&answer[0]);
    let (cookie, chunk) = (other.cookie.clone(), other.chunk(1, b"early"));
    other.say(&mut net, &|w| {
        w.cookie_echo(&cookie).unwrap();
        w.data(&chunk).unwrap();
    });
    assert_eq!(net.hosts[1].received.len(), 1);
    assert_eq!(strange(TAG, &|w| w.cookie_echo(&[9; 200]).unwrap()), nothing());
}

#[test]
fn s8_4_r6_r7_a_shutdown_ack_out_of_the_blue_is_completed() {
    let complete = vec![("SHUTDOWN COMPLETE T".to_owned(), TAG)];
    assert_eq!(strange(TAG, &|w| w.shutdown_ack().unwrap()), complete);
    let bundled = strange(TAG, &|w| {
        w.heartbeat(b"?").unwrap();
        w.shutdown_ack().unwrap();
    });
    assert_eq!(bundled, complete);
}

#[test]
fn s8_4_r8_a_shutdown_complete_out_of_the_blue_is_discarded() {
    for t_bit in [false, true] {
        assert_eq!(strange(TAG, &|w| w.shutdown_complete(t_bit).unwrap()), nothing());
    }
}

#[test]
fn s8_4_r9_stale_cookies_and_cookie_acks_out_of_the_blue_are_discarded() {
    assert_eq!(strange(TAG, &|w| w.error(|c| c.stale_cookie(7)).unwrap()), nothing());
    assert_eq!(strange(TAG, &|w| w.cookie_ack().unwrap()), nothing());
}

#[test]
fn s8_4_r10_r11_r12_anything_else_out_of_the_blue_is_aborted() {
    let abort = vec![("ABORT T".to_owned(), TAG)];
    assert_eq!(strange(TAG, &data), abort);
    assert_eq!(strange(TAG, &|w| w.heartbeat(b"?").unwrap()), abort);
    assert_eq!(strange(TAG, &|w| w.heartbeat_ack(b"?").unwrap()), abort);
    assert_eq!(strange(TAG, &|w| w.shutdown(Tsn(1)).unwrap()), abort);
    assert_eq!(strange(TAG, &|w| w.error(|c| c.out_of_resource()).unwrap()), abort);
    assert_eq!(strange(TAG, &|w| w.typed_chunk(0xc3, 0, b"?").unwrap()), abort);
}

#[test]
fn s8_5_r1_packets_hold_the_tag_that_the_peer_chose() {
    let mut net = pair(1, quiet().build().unwrap());
    // As the called and as the calling side.
    let one = Hand { tag: 0x7777_0001, ..Hand::new(1) }.open(&mut net);
    one.data(&mut net, 1);
    net.send(1, 0, payload(1, 100)).unwrap();
    one.say(&mut net, &|w| w.heartbeat(b"?").unwrap());
    let two = Hand { port: 7, tag: 0x7777_0002, ..Hand::new(0) }.accept(&mut net);
    two.data(&mut net, 1);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(1));
    for (host, tag) in [(0, two.tag), (1, one.tag)] {
        let sent = net.sent(host);
        let others: Vec<&Sent> = sent.iter().filter(|p| !p.has("INIT")).collect();
        assert!(others.len() >= 3 && others.iter().all(|p| p.tag == tag), "{:?}", texts(&sent));
    }
}

#[test]
fn s8_5_r2_r3_packets_with_another_tag_are_discarded() {
    let (mut net, hand) = State::Established.reach();
    for tag in [hand.peer_tag ^ 1, hand.peer_tag.swap_bytes(), hand.tag, TAG] {
        let chunk = hand.chunk(1, b"x");
        let forged: [Chunks<'_>; 5] = [
            &|w| w.data(&chunk).unwrap(),
            &|w| w.heartbeat(b"?").unwrap(),
            &|w| w.shutdown(Tsn(hand.peer_tsn.wrapping_sub(1))).unwrap(),
            &|w| w.error(|c| c.out_of_resource()).unwrap(),
            &|w| w.typed_chunk(0xc3, 0, b"?").unwrap(),
        ];
        for chunks in forged {
            assert!(hand.say_with_tag(&mut net, tag, chunks).is_empty());
        }
    }
    net.run(S(1));
    assert!(net.a(0).is_established() && net.hosts[0].received.is_empty());
    assert!(!net.saw(0, &Event::PeerShutdown));
}

#[test]
fn s8_5_1_r1_an_init_has_tag_zero() {
    let mut net = pair(1, Config::rfc9260());
    net.drop_all("INIT");
    net.connect(0);
    net.run(S(20));
    let inits = net.sent_with(0, "INIT");
    assert!(inits.len() > 2 && inits.iter().all(|p| p.tag == 0 && p.chunks.len() == 1));
}

#[test]
fn s8_5_1_r2_r3_tag_zero_is_for_an_init_alone() {
    let hand = Hand::new(1);
    let init = |w: &mut PacketWriter<'_>| w.init(&hand.fields(), |_| Ok(())).unwrap();
    let bundles: [Chunks<'_>; 6] = [
        &data,
        &|w| w.shutdown_ack().unwrap(),
        &|w| w.cookie_echo(b"a cookie").unwrap(),
        &|w| w.heartbeat(b"?").unwrap(),
        &|w| {
            init(w);
            data(w);
        },
        &|w| {
            data(w);
            init(w);
        },
    ];
    for chunks in bundles {
        assert_eq!(strange(0, chunks), nothing());
    }
    // The same when an association exists.
    let (mut net, hand) = State::Established.reach();
    assert!(hand.say_with_tag(&mut net, 0, &|w| w.heartbeat(b"?").unwrap()).is_empty());
}

#[test]
fn s8_5_1_r4_an_abort_holds_the_peers_tag_if_it_is_known() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        let mark = net.log.len();
        net.abort(0, b"why");
        let sent = net.sent_since(0, mark);
        if state == State::CookieWait {
            assert!(sent.is_empty(), "nobody knows the tag yet");
        } else {
            assert_eq!((sent.len(), sent[0].tag), (1, hand.tag), "{state:?}");
            assert!(sent[0].text().starts_with("ABORT ("), "without the T bit: {}", sent[0].text());
        }
    }
}

#[test]
fn s8_5_1_r6_r7_an_abort_counts_with_its_tag_and_t_bit() {
    for (own, t_bit, counts) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let (mut net, hand) = State::Established.reach();
        let tag = if own { hand.peer_tag } else { hand.tag };
        let abort: Chunks<'_> = &|w| w.abort(t_bit, |_| Ok(())).unwrap();
        assert!(hand.say_with_tag(&mut net, tag ^ 1, abort).is_empty());
        assert_eq!(net.closed(0), None);
        assert!(hand.say_with_tag(&mut net, tag, abort).is_empty());
        assert_eq!(net.a(0).is_closed(), counts, "own tag {own}, T bit {t_bit}");
    }
}

#[test]
fn s8_5_1_r8_a_shutdown_complete_of_an_association_holds_the_peers_tag() {
    let (mut net, hand) = State::ShutdownSent.reach();
    let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!((answers[0].text(), answers[0].tag), ("SHUTDOWN COMPLETE".to_owned(), hand.tag));
}

#[test]
fn s8_5_1_r10_a_shutdown_complete_counts_with_its_tag_and_t_bit() {
    for (own, t_bit, counts) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let (mut net, hand) = State::ShutdownAckSent.reach();
        let tag = if own { hand.peer_tag } else { hand.tag };
        let complete: Chunks<'_> = &|w| w.shutdown_complete(t_bit).unwrap();
        assert!(hand.say_with_tag(&mut net, tag ^ 1, complete).is_empty());
        assert_eq!(net.closed(0), None);
        assert!(hand.say_with_tag(&mut net, tag, complete).is_empty());
        assert_eq!(net.a(0).is_closed(), counts, "own tag {own}, T bit {t_bit}");
    }
}

#[test]
fn s8_5_1_r11_a_shutdown_complete_in_other_states_is_ignored() {
    for state in State::ALL.into_iter().filter(|s| *s != State::ShutdownAckSent) {
        for (tag, t_bit) in [(0, false), (1, true)] {
            let (mut net, hand) = state.reach();
            let tag = [hand.peer_tag, hand.tag][tag];
            let complete: Chunks<'_> = &|w| w.shutdown_complete(t_bit).unwrap();
            assert!(hand.say_with_tag(&mut net, tag, complete).is_empty(), "{state:?}");
            assert_eq!(net.closed(0), None, "{state:?}");
        }
    }
}

#[test]
fn s8_5_1_r12_a_cookie_echo_holds_the_tag_of_the_init_ack() {
    let mut net = pair(1, quiet().build().unwrap());
    let hand = Hand { tag: 0x0102_0304, ..Hand::new(0) }.be_called(&mut net);
    hand.init_ack(&mut net);
    net.run(S(20));
    let echoes = net.sent_with(0, "COOKIE ECHO");
    assert!(echoes.len() > 2 && echoes.iter().all(|p| p.tag == 0x0102_0304));
}

/// A packet of the peer to another port of the host.
#[test]
fn s8_5_1_r5_an_abort_out_of_the_blue_reflects_the_tag() {
    let (mut net, hand) = State::Established.reach();
    let mut packet = hand.packet(hand.peer_tag, &data);
    packet[2..4].copy_from_slice(&4242u16.to_be_bytes());
    let crc = wire::checksum(&packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
    let answers = hand.raw(&mut net, &packet);
    assert_eq!((answers[0].text(), answers[0].tag), ("ABORT T".to_owned(), hand.peer_tag));
    assert!(net.a(0).is_established());
}

#[test]
fn s8_5_1_r13_a_shutdown_ack_while_opening_is_out_of_the_blue() {
    for state in [State::CookieWait, State::CookieEchoed] {
        let (mut net, hand) = state.reach();
        for tag in [TAG, hand.peer_tag] {
            let answers = hand.say_with_tag(&mut net, tag, &|w| w.shutdown_ack().unwrap());
            let complete = ("SHUTDOWN COMPLETE T".to_owned(), tag);
            assert_eq!((answers[0].text(), answers[0].tag), complete, "{state:?}");
        }
        assert_eq!(net.closed(0), None);
    }
}
