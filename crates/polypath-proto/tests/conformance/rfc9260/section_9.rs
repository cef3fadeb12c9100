//! RFC 9260, section 9: Termination of Association.

use super::setup::{State, quiet, receiver, texts};
use crate::common::*;
use polypath_proto::wire::PacketWriter;
use polypath_proto::*;
use std::net::IpAddr;

/// Packets that host 0 has sent since `mark`, and their times in milliseconds since `start`.
fn script(net: &Net, mark: usize, start: Time) -> Vec<(String, u128)> {
    let sent = net.sent_since(0, mark);
    sent.iter().map(|p| (p.text(), p.at.since(start).as_millis())).collect()
}

fn abort(w: &mut PacketWriter<'_>) {
    w.abort(false, |_| Ok(())).unwrap();
}

#[test]
fn s9_r1_an_association_that_leaves_service_is_terminated() {
    let mut net = established(1, quiet().build().unwrap());
    let (id, now) = (net.id(0), net.now);
    net.hosts[0].endpoint.release(now, id);
    net.run(S(1));
    assert!(matches!(net.closed(1), Some(CloseReason::PeerAbort { .. })));
}

#[test]
fn s9_1_r1_r2_r3_an_abort_tells_the_peer() {
    for reason in [&b""[..], b"out of coffee"] {
        let (mut net, hand) = State::Established.reach();
        // Data is waiting and would fit into the packet of the ABORT.
        for n in 0..9 {
            net.send(0, 0, payload(n, 1000)).unwrap();
        }
        let mark = net.log.len();
        net.abort(0, reason);
        let sent = net.sent_since(0, mark);
        assert_eq!(texts(&sent), ["ABORT (User-Initiated Abort)"]);
        assert_eq!((sent[0].tag, sent[0].causes()), (hand.tag, vec![12]));
        assert!(sent[0].bytes.ends_with(reason) || sent[0].bytes.windows(13).any(|w| w == reason));
        net.run(S(10));
        assert_eq!(net.sent_since(0, mark).len(), 1, "nothing follows");
    }
}

#[test]
fn s9_1_r4_an_abort_is_never_answered() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        for tag in [hand.peer_tag ^ 1, hand.peer_tag] {
            let chunk = hand.chunk(1, b"x");
            let answers = hand.say_with_tag(&mut net, tag, &|w| {
                w.data(&chunk).unwrap();
                abort(w);
            });
            assert!(answers.iter().all(|p| !p.has("ABORT") && !p.has("ERROR")), "{state:?}");
        }
        let mark = net.log.len();
        net.run(S(100));
        assert!(net.a(0).is_closed() && net.sent_since(0, mark).is_empty(), "{state:?}");
    }
}

#[test]
fn s9_1_r6_an_abort_ends_the_association_and_is_reported() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        hand.say(&mut net, &abort);
        let closed = CloseReason::PeerAbort { cause: String::new() };
        assert_eq!(net.closed(0), Some(closed.clone()), "{state:?}");
        assert_eq!(net.hosts[0].events.last().unwrap().1, Event::Closed(closed));
        // There is no association left to which a packet could belong.
        let answers = hand.data(&mut net, 1);
        assert_eq!(texts(&answers), ["ABORT T"], "{state:?}");
        assert_eq!(net.hosts[0].endpoint.poll_timeout(), None);
    }
}

#[test]
fn s9_1_r7_the_peers_reason_is_made_available() {
    let mut net = established(1, quiet().build().unwrap());
    net.abort(0, b"out of coffee");
    net.run(S(1));
    let Some(CloseReason::PeerAbort { cause }) = net.closed(1) else { panic!("not aborted") };
    assert!(cause.contains("out of coffee"), "{cause}");
}

#[test]
fn s9_2_r1_r3_t2_shutdown_starts_with_the_shutdown_and_runs_for_the_rto() {
    let (mut net, _) = State::Established.reach();
    net.run(S(1));
    let (start, mark) = (net.now, net.log.len());
    net.shutdown(0);
    net.run(S(16));
    let shutdown = |ms| ("SHUTDOWN 0".to_owned(), ms);
    // 6.3.1 C1: RTO.Initial is 1 s; 6.3.3 E2: doubled each time.
    assert_eq!(script(&net, mark, start), [0, 1000, 3000, 7000, 15_000].map(shutdown));
}

#[test]
fn s9_2_r2_the_shutdown_is_resent_with_the_updated_tsn() {
    let (mut net, hand) = State::ShutdownSent.reach();
    hand.data(&mut net, 1);
    hand.data(&mut net, 2);
    let mark = net.log.len();
    net.run(S(4));
    let sent = texts(&net.sent_since(0, mark));
    assert!(!sent.is_empty() && sent.iter().all(|t| t == "SHUTDOWN 2"), "{sent:?}");
}

#[test]
fn s9_2_r4_r5_r15_r16_repetitions_are_limited_and_their_end_is_reported() {
    for (chunk, by_peer) in [("SHUTDOWN", false), ("SHUTDOWN ACK", true)] {
        let config = quiet().association_max_retrans(3).build().unwrap();
        let mut net = pair(1, config);
        let hand = Hand::new(0).accept(&mut net);
        if by_peer {
            hand.shutdown(&mut net, 0);
        } else {
            net.shutdown(0);
        }
        net.run(S(200));
        assert_eq!(net.times(0, chunk).len(), 4, "{chunk}: the first and three more");
        assert_eq!(net.closed(0), Some(CloseReason::PeerUnreachable));
        assert!(net.saw(0, &Event::Closed(CloseReason::PeerUnreachable)));
        // The TCB has been removed.
        let answers = hand.say(&mut net, &|w| w.heartbeat(b"?").unwrap());
        assert_eq!(texts(&answers), ["ABORT T"]);
    }
}

#[test]
fn s9_2_r6_any_packet_of_the_peer_gives_it_more_time() {
    let config = quiet().association_max_retrans(2).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(0).accept(&mut net);
    net.shutdown(0);
    for _ in 0..20 {
        net.run(MS(3500));
        assert_eq!(net.closed(0), None, "at {}", net.now);
        let mark = net.log.len();
        hand.say(&mut net, &|w| w.heartbeat(b"I live").unwrap());
        // T2-shutdown is restarted.
        net.run(MS(900));
        assert!(net.sent_since(0, mark).iter().all(|p| !p.has("SHUTDOWN")), "{}", net.tail(9));
    }
}

#[test]
fn s9_2_r7_a_shutdown_request_after_the_peers_is_ignored() {
    let (mut net, hand) = State::ShutdownReceived.reach();
    let mark = net.log.len();
    net.shutdown(0);
    net.run(S(5));
    assert!(net.sent_since(0, mark).iter().all(|p| !p.has("SHUTDOWN")));
    // It still answers the peer's SHUTDOWN.
    assert_eq!(texts(&hand.shutdown(&mut net, 1)), ["SHUTDOWN ACK"]);
    assert_eq!(texts(&hand.shutdown(&mut net, 1)), ["SHUTDOWN ACK"]);
}

#[test]
fn s9_2_r8_outstanding_data_is_delivered_and_new_data_refused() {
    let (mut net, hand) = State::Established.reach();
    for n in 0..9 {
        net.send(0, 0, payload(n, 1452)).unwrap();
    }
    hand.shutdown(&mut net, 0);
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed));
    // A retransmission after T3-rtx, followed by the rest.
    let mark = net.log.len();
    net.run(MS(1100));
    assert_eq!(data_numbers(&net.sent_since(0, mark)), [[1]]);
    for n in 1..9 {
        assert!(hand.sack(&mut net, n, &[]).iter().all(|p| !p.has("SHUTDOWN ACK")), "{n}");
    }
    assert!(data_numbers(&net.sent(0)).concat().contains(&9));
    assert_eq!(texts(&hand.sack(&mut net, 9, &[])), ["SHUTDOWN ACK"]);
}

#[test]
fn s9_2_r9_data_is_answered_by_a_shutdown_at_once() {
    let (mut net, hand) = State::ShutdownSent.reach();
    for n in 1..=4 {
        net.run(MS(900));
        let answers = hand.data(&mut net, n);
        assert!(answers.iter().any(|p| p.has(&format!("SHUTDOWN {n}"))), "{:?}", texts(&answers));
    }
    let mark = net.log.len();
    net.run(MS(999));
    assert!(net.sent_since(0, mark).is_empty(), "T2 was restarted");
    net.run(MS(2));
    assert_eq!(texts(&net.sent_since(0, mark)), ["SHUTDOWN 4"]);
}

#[test]
fn s9_2_r10_gaps_and_duplicates_need_a_sack_beside_the_shutdown() {
    let (mut net, hand) = State::ShutdownSent.reach();
    let answers = hand.data(&mut net, 2);
    assert!(answers.iter().any(|p| p.has("SACK 0 [2-2]")), "{:?}", texts(&answers));
    assert!(answers.iter().any(|p| p.has("SHUTDOWN 0")));
    hand.data(&mut net, 1);
    let answers = hand.data(&mut net, 1);
    let sack = answers.iter().find_map(Sent::sack).expect("a SACK");
    assert_eq!((sack.cumulative, sack.duplicates), (2, vec![1]));
    assert!(answers.iter().any(|p| p.has("SHUTDOWN 2")));
}

#[test]
fn s9_2_r11_r12_the_guard_timer_aborts_after_five_rto_max() {
    for rto_max in [4, 60] {
        let (mut net, hand) = receiver(quiet().rto_max(S(rto_max)));
        net.shutdown(1);
        let start = net.now;
        let mut n = 0;
        // The peer is alive and continues to send, but does not answer the SHUTDOWN.
        while net.closed(1).is_none() {
            net.run(MS(700));
            n += 1;
            hand.data(&mut net, n);
            assert!(net.now.since(start) < S(1000));
        }
        let closed = net.events(1, |e| matches!(e, Event::Closed(_)));
        assert_eq!(closed, [(5000 * rto_max, Event::Closed(CloseReason::ShutdownTimeout))]);
        assert!(net.sent(1).iter().any(|p| p.tag == hand.tag && p.has("ABORT")));
    }
}

#[test]
fn s9_2_r13_r14_the_shutdown_ack_is_sent_and_resent() {
    let (mut net, hand) = State::Established.reach();
    let (start, mark) = (net.now, net.log.len());
    hand.shutdown(&mut net, 0);
    net.run(S(8));
    let ack = |ms| ("SHUTDOWN ACK".to_owned(), ms);
    assert_eq!(script(&net, mark, start), [0, 1000, 3000, 7000].map(ack));
}

#[test]
fn s9_2_r17_a_shutdown_ack_is_completed_and_ends_the_association() {
    let (mut net, hand) = State::ShutdownSent.reach();
    let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!((texts(&answers), answers[0].tag), (vec!["SHUTDOWN COMPLETE".to_owned()], hand.tag));
    assert_eq!(net.closed(0), Some(CloseReason::Graceful));
    assert_eq!(net.hosts[0].endpoint.poll_timeout(), None, "T2 has stopped");
    let answers = hand.say(&mut net, &|w| w.heartbeat(b"?").unwrap());
    assert_eq!(texts(&answers), ["ABORT T"], "no record of it");
}

#[test]
fn s9_2_r18_r19_a_shutdown_complete_counts_in_shutdown_ack_sent_only() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap());
        let ends = state == State::ShutdownAckSent;
        assert_eq!(net.closed(0), ends.then_some(CloseReason::Graceful), "{state:?}");
        if ends {
            assert_eq!(net.hosts[0].endpoint.poll_timeout(), None);
            assert_eq!(texts(&hand.data(&mut net, 1)), ["ABORT T"]);
        }
    }
}

#[test]
fn s9_2_r20_the_shutdown_waits_until_everything_is_acknowledged() {
    let (mut net, hand) = State::Established.reach();
    for n in 0..6 {
        net.send(0, 0, payload(n, 1452)).unwrap();
    }
    net.shutdown(0);
    for n in 1..6 {
        hand.sack(&mut net, n, &[]);
        net.run(MS(100));
        assert!(net.times(0, "SHUTDOWN").is_empty(), "{n}");
    }
    // Data reported by gap ack blocks is not yet acknowledged.
    hand.sack(&mut net, 5, &[]);
    assert_eq!(texts(&hand.sack(&mut net, 6, &[])), ["SHUTDOWN 0"]);
}

#[test]
fn s9_2_r21_no_new_data_is_taken_during_a_shutdown() {
    for state in [
        State::ShutdownPending,
        State::ShutdownSent,
        State::ShutdownReceived,
        State::ShutdownAckSent,
    ] {
        let (mut net, _) = state.reach();
        assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed), "{state:?}");
    }
}

#[test]
fn s9_2_r22_an_init_in_shutdown_ack_sent_gets_the_shutdown_ack_again() {
    let (mut net, hand) = State::ShutdownAckSent.reach();
    let again = Hand { tag: 0x4444, tsn: 1, ..hand.clone() };
    let answers = again.init(&mut net, &|_| {});
    assert_eq!((texts(&answers), answers[0].tag), (vec!["SHUTDOWN ACK".to_owned()], hand.tag));
    // The same for an INIT from another address that lists the peer's.
    let elsewhere = Hand { ip: v4(0, 70), tag: 0x5555, ..hand.clone() };
    let mark = net.log.len();
    let IpAddr::V4(listed) = hand.ip else { unreachable!() };
    elsewhere.init(&mut net, &|p| p.ipv4(listed).unwrap());
    let sent = net.sent_since(0, mark);
    assert_eq!(texts(&sent), ["SHUTDOWN ACK"]);
    assert_eq!(net.closed(0), None);
}

#[test]
fn s9_2_r23_a_shutdown_ack_while_opening_is_completed_alone() {
    for state in [State::CookieWait, State::CookieEchoed] {
        let (mut net, hand) = state.reach();
        let answers = hand.say_with_tag(&mut net, 0x0abc_def0, &|w| w.shutdown_ack().unwrap());
        assert_eq!(texts(&answers), ["SHUTDOWN COMPLETE T"], "{state:?}");
        assert_eq!(answers[0].tag, 0x0abc_def0);
        // T1 continues, and the attempt succeeds.
        net.run(S(2));
        if state == State::CookieWait {
            hand.init_ack(&mut net);
        }
        hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        assert!(net.a(0).is_established(), "{state:?}");
    }
}

#[test]
fn s9_2_r24_a_shutdown_while_opening_is_discarded() {
    for state in [State::CookieWait, State::CookieEchoed] {
        let (mut net, hand) = state.reach();
        assert!(hand.shutdown(&mut net, 0).is_empty(), "{state:?}");
        if state == State::CookieWait {
            hand.init_ack(&mut net);
        }
        hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        assert!(net.a(0).is_established() && !net.saw(0, &Event::PeerShutdown), "{state:?}");
    }
}

#[test]
fn s9_2_r25_shutdowns_that_meet_are_answered_by_a_shutdown_ack() {
    let (mut net, hand) = State::ShutdownSent.reach();
    net.run(MS(600));
    let (start, mark) = (net.now, net.log.len());
    assert_eq!(texts(&hand.shutdown(&mut net, 0)), ["SHUTDOWN ACK"]);
    net.run(MS(1100));
    // T2-shutdown has been restarted, and the SHUTDOWN ACK is retransmitted.
    assert_eq!(script(&net, mark, start).last(), Some(&("SHUTDOWN ACK".to_owned(), 1000)));
    hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap());
    assert_eq!(net.closed(0), Some(CloseReason::Graceful));
}

#[test]
fn s9_2_r26_a_shutdown_ack_in_shutdown_ack_sent_is_completed() {
    let (mut net, hand) = State::ShutdownAckSent.reach();
    let answers = hand.say(&mut net, &|w| w.shutdown_ack().unwrap());
    assert_eq!((texts(&answers), answers[0].tag), (vec!["SHUTDOWN COMPLETE".to_owned()], hand.tag));
    assert_eq!(net.closed(0), Some(CloseReason::Graceful));
    assert_eq!(net.hosts[0].endpoint.poll_timeout(), None);
}
