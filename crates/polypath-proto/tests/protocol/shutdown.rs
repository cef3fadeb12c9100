//! Graceful shutdown and abort (RFC 9260 9).

use crate::common::*;
use polypath_proto::wire::cause_code;
use polypath_proto::*;

const GRACEFUL: Option<CloseReason> = Some(CloseReason::Graceful);

fn open(paths: u8) -> Net {
    established(paths, Config::rfc9260())
}

fn both_closed(net: &Net) -> bool {
    (0..2).all(|h| net.closed(h).is_some())
}

/// RFC 9260 9.2.
#[test]
fn three_packets_end_an_association() {
    let mut net = open(1);
    let mark = net.log.len();
    net.shutdown(0);
    net.run(S(500));
    let script = ["A SHUTDOWN 0", "B SHUTDOWN ACK", "A SHUTDOWN COMPLETE"];
    assert_eq!(net.script_since(mark), script);
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
    assert!(net.saw(1, &Event::PeerShutdown) && !net.saw(0, &Event::PeerShutdown));
    for h in 0..2 {
        let closed = Event::Closed(CloseReason::Graceful);
        assert_eq!(net.hosts[h].events.last().unwrap().1, closed, "the last event");
        assert_eq!(net.hosts[h].endpoint.poll_timeout(), None);
    }
}

/// RFC 9260 4.
#[test]
fn each_state_of_a_shutdown_is_seen() {
    let mut net = open(1);
    let states = |net: &Net| [0, 1].map(|h| net.a(h).state());
    use AssociationState::{Established, ShutdownAckSent, ShutdownPending, ShutdownSent};
    assert_eq!(states(&net), [Established; 2]);
    net.nth("SHUTDOWN ACK", &[1], Fate::Drop);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.shutdown(0);
    assert_eq!(states(&net), [ShutdownPending, Established]);
    net.run(MS(500));
    assert_eq!(states(&net), [ShutdownSent, ShutdownAckSent]);
}

/// RFC 9260 9.2: all data queued before the shutdown is delivered first.
#[test]
fn what_is_outstanding_is_delivered_first() {
    let mut net = open(1);
    net.nth("DATA", &[2, 5], Fate::Drop);
    for i in 0..30 {
        net.send(0, 0, payload(i, 5000)).unwrap();
    }
    net.shutdown(0);
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed));
    net.drive_until(S(60), both_closed);
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
    let got = net.hosts[1].received.iter();
    assert!(got.map(|r| r.payload.clone()).eq((0..30).map(|i| payload(i, 5000))));
    assert_eq!(net.times(0, "SHUTDOWN").len(), 1);
    assert!(net.times(0, "DATA").last() < net.times(0, "SHUTDOWN").first());
}

/// RFC 9260 9.2: the side that receives the SHUTDOWN also delivers its queued data, and accepts no
/// new data.
#[test]
fn the_side_that_is_told_finishes_as_well() {
    let mut net = open(1);
    for i in 0..30 {
        net.send(1, 0, payload(i, 5000)).unwrap();
    }
    net.shutdown(0);
    net.drive_until(S(5), |net| net.saw(1, &Event::PeerShutdown));
    assert_eq!(net.send(1, 0, payload(1, 1)), Err(SendError::Closed));
    net.drive_until(S(60), both_closed);
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
    let got = net.hosts[0].received.iter();
    assert!(got.map(|r| r.payload.clone()).eq((0..30).map(|i| payload(i, 5000))));
}

/// RFC 9260 9.2: T2-shutdown recovers from a lost packet, and 8.4 (5) from the loss of the last
/// one.
#[test]
fn each_lost_packet_of_the_shutdown_is_made_up_for() {
    for (lost, shutdowns, acks) in
        [("SHUTDOWN", 2, 1..=1), ("SHUTDOWN ACK", 2, 2..=3), ("SHUTDOWN COMPLETE", 1, 2..=2)]
    {
        let mut net = open(1);
        net.drop_once(&[lost]);
        net.shutdown(0);
        let start = net.now;
        net.drive_until(S(5), both_closed);
        assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL), "{lost}");
        assert_eq!(net.times(0, "SHUTDOWN").len(), shutdowns, "{lost}");
        assert!(acks.contains(&net.times(1, "SHUTDOWN ACK").len()), "{lost}");
        let taken = net.now.since(start);
        assert!(taken > S(1) && taken < MS(1100), "{lost}: {taken:?}");
    }
}

/// RFC 9260 9.2: both sides begin the shutdown, at the same time or nearly so.
#[test]
fn both_sides_may_begin() {
    for offset in 0..10 {
        for late in 0u32..1 << 6 {
            let mut net = open(1);
            let mut packet = 0;
            net.filter(move |_| {
                packet += 1;
                let late = packet <= 6 && late >> (packet - 1) & 1 == 1;
                if late { Fate::Late(MS(13)) } else { Fate::Pass }
            });
            net.send(0, 0, payload(1, 1000)).unwrap();
            net.send(1, 0, payload(2, 1000)).unwrap();
            net.shutdown(0);
            net.run(MS(5 * offset));
            net.shutdown(1);
            net.drive_until(S(5), both_closed);
            let closed = (net.closed(0), net.closed(1));
            assert_eq!(closed, (GRACEFUL, GRACEFUL), "{offset} {late:b}\n{}", net.tail(12));
            for h in 0..2 {
                assert_eq!(net.hosts[h].received.len(), 1);
            }
        }
    }
}

/// RFC 9260 9.2: DATA in SHUTDOWN-SENT: "immediately respond with ... a SHUTDOWN chunk and restart
/// the T2-shutdown timer".
#[test]
fn data_after_our_shutdown_is_taken_and_answered_at_once() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    net.shutdown(1);
    assert_eq!(net.log.last().unwrap().text(), "SHUTDOWN 0");
    net.run(MS(900));
    let answers = hand.data(&mut net, 1);
    assert!(answers.iter().any(|p| p.has("SHUTDOWN 1")), "{}", net.tail(3));
    assert_eq!(net.hosts[1].received.len(), 1);
    // T2 restarts now: nothing is sent until 1900 ms.
    let mark = net.log.len();
    net.run(MS(950));
    assert!(net.sent_since(1, mark).iter().all(|p| !p.has("SHUTDOWN")));
    net.run(MS(100));
    assert_eq!(net.script_since(mark), ["B SHUTDOWN 1"]);
    // A gap requires a SACK in addition to the SHUTDOWN.
    let answers = hand.data(&mut net, 3);
    assert!(answers.iter().any(|p| p.has("SACK 1 [2-2]")), "{}", net.tail(3));
    assert!(answers.iter().any(|p| p.has("SHUTDOWN 1")), "{}", net.tail(3));
}

/// RFC 9260 9.2: the SHUTDOWN's cumulative TSN ack acknowledges data.
#[test]
fn a_shutdown_acknowledges_data() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    for i in 0..3 {
        net.send(1, 0, payload(i, 100)).unwrap();
    }
    assert!(hand.shutdown(&mut net, 2).is_empty(), "3 is outstanding");
    assert_eq!(net.path(1, 0).in_flight, 116);
    assert_eq!(hand.shutdown(&mut net, 3)[0].text(), "SHUTDOWN ACK");
    assert!(net.saw(1, &Event::Drained));
}

/// pion up to 1.8 puts its own ack point into the SHUTDOWN: such a SHUTDOWN acknowledges nothing,
/// and outstanding data is still delivered.
#[test]
fn a_shutdown_that_acknowledges_what_was_never_sent_is_a_shutdown() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    assert_eq!(hand.shutdown(&mut net, 1)[0].text(), "SHUTDOWN ACK");

    let hand = Hand { port: 7000, ..Hand::new(1) }.open(&mut net);
    net.send(1, 0, payload(0, 100)).unwrap();
    assert!(hand.shutdown(&mut net, 2).is_empty(), "1 is outstanding");
    assert_eq!(net.path(1, 0).in_flight, 116);
    let answers = hand.sack(&mut net, 1, &[]);
    assert_eq!(answers[0].text(), "SHUTDOWN ACK");
}

/// RFC 9260 9.2: chunks that are valid in other states only are ignored.
#[test]
fn shutdown_chunks_out_of_place_are_ignored() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    assert!(hand.say(&mut net, &|w| w.shutdown_ack().unwrap()).is_empty());
    assert!(hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap()).is_empty());
    assert!(net.a(1).is_established());

    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    for echoed in [false, true] {
        if echoed {
            hand.init_ack(&mut net);
        }
        assert!(hand.shutdown(&mut net, 0).is_empty());
        hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap());
        assert!(net.closed(0).is_none());
    }
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
}

/// RFC 9260 9.2: in SHUTDOWN-ACK-SENT, another SHUTDOWN gets another SHUTDOWN ACK.
#[test]
fn a_repeated_shutdown_is_acknowledged_again() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    for _ in 0..3 {
        assert_eq!(hand.shutdown(&mut net, 0)[0].text(), "SHUTDOWN ACK");
    }
    hand.say(&mut net, &|w| w.shutdown_complete(false).unwrap());
    assert_eq!(net.closed(1), GRACEFUL);
}

/// RFC 9260 9.2: T5-shutdown-guard, five times RTO.Max.
#[test]
fn a_shutdown_that_takes_too_long_is_aborted() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    net.shutdown(1);
    let mut mark = net.log.len();
    // The peer is alive and answers everything but the SHUTDOWN.
    while net.closed(1).is_none() && net.now < Time::from_secs(400) {
        net.run(MS(100));
        let news = net.sent_since(1, mark);
        mark = net.log.len();
        hand.answer_heartbeats(&mut net, &news);
    }
    assert_eq!(net.closed(1), Some(CloseReason::ShutdownTimeout));
    assert_eq!(net.events(1, |e| matches!(e, Event::Closed(_)))[0].0, 300_000);
    assert!(net.sent(1).iter().any(|p| p.has("ABORT") && p.tag == hand.tag));
}

/// RFC 9260 9.2: "The sender of the SHUTDOWN chunk MAY also start an overall guard timer"; the
/// SHUTDOWN ACK is limited by Association.Max.Retrans, and then the peer is reported unreachable.
#[test]
fn the_receiver_of_a_shutdown_has_no_guard_timer() {
    for collision in [false, true] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        if collision {
            net.shutdown(1);
        }
        assert!(hand.shutdown(&mut net, 0).iter().any(|p| p.has("SHUTDOWN ACK")));
        net.run(S(1000));
        if collision {
            assert_eq!(net.closed(1), Some(CloseReason::ShutdownTimeout));
            assert_eq!(net.events(1, |e| matches!(e, Event::Closed(_)))[0].0, 300_000);
        } else {
            assert_eq!(net.closed(1), Some(CloseReason::PeerUnreachable));
            assert_eq!(net.times(1, "SHUTDOWN ACK").len(), 1 + 10);
        }
    }
}

/// RFC 9260 9.2, 8.1: each expiry of T2 counts as an error.
#[test]
fn a_shutdown_without_answers_ends_with_the_error_count() {
    let config = Config::rfc9260().to_builder().association_max_retrans(3).build().unwrap();
    for sent in ["SHUTDOWN", "SHUTDOWN ACK"] {
        let mut net = pair(1, config.clone());
        let hand = Hand::new(1).open(&mut net);
        if sent == "SHUTDOWN" {
            net.shutdown(1);
        } else {
            hand.shutdown(&mut net, 0);
        }
        net.run(S(100));
        assert_eq!(net.times(1, sent), [0, 1000, 3000, 7000]);
        let closed = net.events(1, |e| matches!(e, Event::Closed(_)));
        assert_eq!(closed, [(15_000, Event::Closed(CloseReason::PeerUnreachable))]);
    }
}

/// RFC 9260 9.2, 6.4: retransmissions use another address.
#[test]
fn a_shutdown_gets_through_on_the_other_path() {
    let mut net = open(2);
    net.cuts.insert(0);
    net.shutdown(0);
    net.drive_until(S(10), both_closed);
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
}

/// RFC 9260 6.4: "... to the same destination transport address from which it received the control
/// chunk to which it is replying". A SHUTDOWN is not sent on a path with errors, even if it has not
/// failed yet: its retransmissions have moved to another path by then.
#[test]
fn a_shutdown_avoids_a_path_that_has_failed_or_is_about_to() {
    for path_max_retrans in [0, 5] {
        let config =
            Config::rfc9260().to_builder().path_max_retrans(path_max_retrans).build().unwrap();
        let mut net = established(2, config);
        net.cuts.insert(0);
        net.send(0, 0, payload(1, 1000)).unwrap();
        net.drive_until(S(5), |net| net.a(0).buffered() == 0);
        let (mark, start) = (net.log.len(), net.now);
        net.shutdown(0);
        net.drive_until(S(5), both_closed);
        assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
        let ways: Vec<(String, u8)> = net.log[mark..].iter().map(|p| (p.text(), p.net())).collect();
        let expected = ["SHUTDOWN 0", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"];
        assert_eq!(ways, expected.map(|text| (text.to_owned(), 1)), "PMR {path_max_retrans}");
        assert_eq!(net.now.since(start), MS(30));
    }
}

/// `Association::shutdown` before the association is established.
#[test]
fn a_shutdown_before_the_association_is_up_waits_for_it() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.shutdown(0);
    net.shutdown(0);
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed));
    net.drive_until(S(5), |net| {
        net.hosts[1].endpoint.associations().count() > 0 && both_closed(net)
    });
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 5000));
}

/// Data received before the end can be read after it.
#[test]
fn the_last_data_can_be_read_after_the_end() {
    for abort in [false, true] {
        let mut net = open(1);
        net.hosts[1].reads = false;
        for i in 0..5 {
            net.send(0, 0, payload(i, 1000)).unwrap();
        }
        net.run(S(1));
        if abort {
            net.abort(0, b"");
        } else {
            net.shutdown(0);
        }
        net.drive_until(S(5), both_closed);
        assert_eq!(net.read(1).len(), 5);
        assert_eq!(net.read(1).len(), 0);
        let (id, now) = (net.id(1), net.now);
        net.hosts[1].endpoint.release(now, id);
        net.settle();
        net.hosts[1].endpoint.poll_timeout();
        assert!(net.hosts[1].endpoint.association(id).is_none());
    }
}

/// RFC 9260 9.1, 3.3.10.12.
#[test]
fn an_abort_tells_its_reason() {
    let mut net = open(1);
    net.send(0, 0, payload(1, 100_000)).unwrap();
    net.run(MS(15));
    net.abort(0, b"out of coffee");
    let last = net.log.last().unwrap();
    assert_eq!(
        (last.text(), last.causes()),
        ("ABORT (User-Initiated Abort)".into(), vec![cause_code::USER_INITIATED_ABORT])
    );
    net.run(S(10));
    assert_eq!(net.closed(0), Some(CloseReason::LocalAbort));
    let Some(CloseReason::PeerAbort { cause }) = net.closed(1) else { panic!("not aborted") };
    assert!(cause.contains("out of coffee"), "{cause}");
    assert_eq!(net.send(0, 0, payload(1, 1)), Err(SendError::Closed));
    assert_eq!(net.send(1, 0, payload(1, 1)), Err(SendError::Closed));
    assert!(net.hosts.iter_mut().all(|h| h.endpoint.poll_timeout().is_none()));
}

/// RFC 9260 9.1: an ABORT fits into a packet, however long its reason is.
#[test]
fn a_long_reason_is_cut() {
    let mut net = open(1);
    net.abort(0, &[b'x'; 10_000]);
    assert!(net.log.last().unwrap().bytes.len() <= 1480);
    net.run(S(1));
    assert!(matches!(net.closed(1), Some(CloseReason::PeerAbort { .. })));
}

/// RFC 9260 9.1: an abort is possible in each state; no ABORT is sent before the peer's tag is
/// known.
#[test]
fn an_abort_is_possible_at_any_time() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    let mark = net.log.len();
    net.abort(0, b"");
    assert_eq!(net.script_since(mark), [""; 0]);
    net.run(S(100));
    assert_eq!(net.closed(0), Some(CloseReason::LocalAbort));

    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    hand.init_ack(&mut net);
    net.abort(0, b"");
    assert_eq!(
        (net.log.last().unwrap().text(), net.log.last().unwrap().tag),
        ("ABORT (User-Initiated Abort)".into(), hand.tag)
    );

    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    hand.shutdown(&mut net, 0);
    net.abort(1, b"");
    assert_eq!(net.log.last().unwrap().tag, hand.tag);
    assert_eq!(net.closed(1), Some(CloseReason::LocalAbort));
}

/// RFC 9260 9.1: releasing an association aborts it, and a new one can be opened at once.
#[test]
fn a_released_association_is_aborted() {
    let mut net = open(1);
    let (id, now) = (net.id(0), net.now);
    net.hosts[0].endpoint.release(now, id);
    net.connect(0);
    net.drive_until(S(5), |net| net.a(0).is_established());
    let aborted = |id| net.hosts[1].endpoint.association(id).unwrap().close_reason().cloned();
    let ids: Vec<AssociationId> = net.hosts[1].endpoint.associations().collect();
    assert_eq!(ids.len(), 2);
    assert!(matches!(aborted(ids[0]), Some(CloseReason::PeerAbort { .. })));
    assert_eq!(aborted(ids[1]), None);
}

/// The ABORT of a released association has yet to be sent, but the association is not visible any
/// more: no packet belongs to it, and it reports nothing.
#[test]
fn a_released_association_is_not_visible() {
    let mut net = open(1);
    net.drop_all("DATA");
    net.send(1, 0, payload(1, 100)).unwrap();
    net.settle();
    let data = net.sent_with(1, "DATA").pop().unwrap();
    let way = FourTuple { local: data.to, remote: data.from };
    let (id, now) = (net.id(0), net.now);
    let endpoint = &mut net.hosts[0].endpoint;
    assert_eq!(endpoint.owner(&way, &data.bytes), Some(id));
    endpoint.release(now, id);
    assert_eq!(endpoint.owner(&way, &data.bytes), None);
    endpoint.handle_datagram(now, way, Ecn::NotEct, &data.bytes);
    assert_eq!(endpoint.poll_event(), None);
    net.settle();
    assert_eq!(net.sent_with(0, "ABORT").len(), 1);
}

/// RFC 9260 9.2: a closed window does not delay a shutdown for ever.
#[test]
fn a_shutdown_with_a_slow_reader() {
    let config = Config::rfc9260().to_builder().receive_buffer(8000).build().unwrap();
    let mut net = established(1, config);
    net.hosts[1].reads = false;
    for i in 0..20 {
        net.send(0, 0, payload(i, 1500)).unwrap();
    }
    net.shutdown(0);
    let mut got = 0;
    for _ in 0..1000 {
        net.run(MS(200));
        got += net.read(1).len();
    }
    assert_eq!(got, 20);
    assert_eq!((net.closed(0), net.closed(1)), (GRACEFUL, GRACEFUL));
}

/// RFC 9260 11.1.14, 11.1.15: the application gets back what was sent in part, what was not sent,
/// and nothing that was acknowledged.
#[test]
fn lost_messages_are_returned_if_they_are_kept() {
    let message = |context: u32, len| Message {
        context,
        ppid: Ppid(context + 100),
        unordered: context == 3,
        ..Message::new(StreamId(context as u16), payload(context.into(), len))
    };
    for keeps in [true, false] {
        let mut net = open(1);
        if keeps {
            net.am(0).keep_undelivered();
        }
        net.send_message(0, message(1, 100)).unwrap();
        net.run(S(1));
        net.drop_all("DATA");
        // The second one is sent in part: the initial congestion window is smaller.
        for (context, len) in [(2, 9000), (3, 50)] {
            net.send_message(0, message(context, len)).unwrap();
        }
        net.run(MS(10));
        assert!(net.a(0).unsent() < 9050);
        assert!(net.am(0).take_undelivered().is_empty());
        net.abort(0, b"");
        let lost = |context: u32, len, sent| Undelivered {
            stream: StreamId(context as u16),
            ppid: Ppid(context + 100),
            context,
            unordered: context == 3,
            beginning: true,
            end: true,
            sent,
            payload: payload(context.into(), len),
        };
        let expected = [lost(2, 9000, true), lost(3, 50, false)];
        let expected = if keeps { &expected[..] } else { &[] };
        assert_eq!(net.am(0).take_undelivered(), expected);
        assert!(net.am(0).take_undelivered().is_empty(), "once");
    }
}

/// The peer had acknowledged everything.
#[test]
fn nothing_is_lost_by_a_graceful_end() {
    let mut net = open(1);
    net.am(0).keep_undelivered();
    net.send(0, 0, payload(1, 9000)).unwrap();
    net.shutdown(0);
    net.drive_until(S(60), both_closed);
    assert!(net.am(0).take_undelivered().is_empty());
}
