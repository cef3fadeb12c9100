//! Out of the blue packets and verification tags (RFC 9260 8.4, 8.5).

use std::net::SocketAddr;

use crate::common::*;
use polypath_proto::wire::PacketWriter;
use polypath_proto::*;

const TAG: u32 = 0x1234_5678;

/// Packets with which a listening endpoint without associations answers a packet with this tag.
fn answers(tag: u32, chunks: &dyn Fn(&mut PacketWriter<'_>)) -> Vec<Sent> {
    let mut net = pair(1, Config::rfc9260());
    let answers = Hand::new(1).say_with_tag(&mut net, tag, chunks);
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    answers
}

fn one_answer(tag: u32, chunks: &dyn Fn(&mut PacketWriter<'_>)) -> (String, u32) {
    let answers = answers(tag, chunks);
    assert_eq!(answers.len(), 1);
    (answers[0].text(), answers[0].tag)
}

fn data(w: &mut PacketWriter<'_>) {
    w.data(&Hand::new(1).chunk(1, b"x")).unwrap();
}

/// RFC 9260 8.4 (8): anything else is answered by an ABORT with the T bit and the packet's tag.
#[test]
fn strangers_get_an_abort_with_their_own_tag() {
    let abort = ("ABORT T".to_owned(), TAG);
    assert_eq!(one_answer(TAG, &data), abort);
    assert_eq!(one_answer(TAG, &|w| w.heartbeat(b"?").unwrap()), abort);
    assert_eq!(one_answer(TAG, &|w| w.heartbeat_ack(b"?").unwrap()), abort);
    assert_eq!(one_answer(TAG, &|w| w.shutdown(Tsn(1)).unwrap()), abort);
    assert_eq!(one_answer(TAG, &|w| w.error(|c| c.out_of_resource()).unwrap()), abort);
    let sack = one_answer(TAG, &|w| {
        w.sack(Tsn(1), 9, 0, std::iter::empty(), std::iter::empty()).unwrap();
    });
    assert_eq!(sack, abort);
    assert_eq!(one_answer(TAG, &|w| w.typed_chunk(0xc3, 0, b"?").unwrap()), abort);
}

/// RFC 9260 8.4 (2), (6), (7): discarded, wherever these chunks are in the packet.
#[test]
fn some_strangers_get_no_answer() {
    type Write = fn(&mut PacketWriter<'_>);
    let silent: [Write; 5] = [
        |w| w.abort(false, |_| Ok(())).unwrap(),
        |w| w.abort(true, |_| Ok(())).unwrap(),
        |w| w.shutdown_complete(false).unwrap(),
        |w| w.cookie_ack().unwrap(),
        |w| w.error(|c| c.stale_cookie(7)).unwrap(),
    ];
    for write in silent {
        assert!(answers(TAG, &write).is_empty());
        assert!(
            answers(TAG, &|w| {
                data(w);
                write(w);
            })
            .is_empty()
        );
    }
    // A packet without chunks.
    assert!(answers(TAG, &|_| {}).is_empty());
}

/// RFC 9260 8.4 (5): "If the packet contains a SHUTDOWN ACK chunk".
#[test]
fn a_strange_shutdown_ack_is_completed() {
    let complete = ("SHUTDOWN COMPLETE T".to_owned(), TAG);
    assert_eq!(one_answer(TAG, &|w| w.shutdown_ack().unwrap()), complete);
    let company = one_answer(TAG, &|w| {
        w.heartbeat_ack(b"?").unwrap();
        w.shutdown_ack().unwrap();
    });
    assert_eq!(company, complete);
    // (5) takes precedence over (6) and (7).
    let company = one_answer(TAG, &|w| {
        w.cookie_ack().unwrap();
        w.error(|c| c.stale_cookie(7)).unwrap();
        w.shutdown_ack().unwrap();
    });
    assert_eq!(company, complete);
}

/// RFC 9260 8.4 (3), (8): an INIT "with a Verification Tag set to 0" is processed; one with another
/// tag is answered by an ABORT that reflects it.
#[test]
fn an_init_with_a_tag_is_out_of_the_blue() {
    let hand = Hand::new(1);
    let init = |w: &mut PacketWriter<'_>| w.init(&hand.fields(), |_| Ok(())).unwrap();
    assert_eq!(one_answer(TAG, &init), ("ABORT T".to_owned(), TAG));
    // RFC 9260 8.5: an association discards it as a packet with a wrong tag.
    let mut net = pair(1, Config::rfc9260());
    let hand = hand.clone().open(&mut net);
    for tag in [TAG, hand.peer_tag] {
        assert!(hand.say_with_tag(&mut net, tag, &init).is_empty());
    }
    assert!(net.a(1).is_established());
}

/// RFC 9260 3.1: "Source Port Number 0 MUST NOT be used"; the same holds for the destination port.
#[test]
fn port_zero_is_not_used() {
    let mut net = pair(1, Config::rfc9260());
    let now = net.now;
    let remotes = net.remotes(1);
    let refused = net.hosts[0].endpoint.connect(now, 0, &remotes);
    assert_eq!(refused, Err(ConnectError::NoPort));
    let hand = Hand { port: 0, ..Hand::new(1) };
    assert!(hand.init(&mut net, &|_| {}).is_empty());
    assert!(hand.say_with_tag(&mut net, TAG, &data).is_empty());
    let hand = Hand::new(1);
    let mut packet = hand.packet(TAG, &data);
    packet[2..4].fill(0);
    packet[8..12].fill(0);
    let crc = wire::checksum(&packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
    assert!(hand.raw(&mut net, &packet).is_empty());
    assert_eq!(net.hosts[1].endpoint.stats().malformed, 3);
}

/// RFC 9260 8.4 (2): "If the OOTB packet contains an ABORT chunk, the receiver MUST silently
/// discard the OOTB packet"; 8.5.1 B: so it does if the tag is not the association's.
#[test]
fn a_cookie_echo_with_an_abort_is_discarded() {
    for restart in [false, true] {
        let mut net = pair(1, Config::rfc9260());
        let mut hand = Hand::new(1);
        if restart {
            hand = Hand { tag: 99, ..hand.open(&mut net) };
        }
        let answer = hand.init(&mut net, &|_| {});
        hand.learn(&answer[0]);
        let events = net.hosts[1].events.len();
        let answers = hand.say(&mut net, &|w| {
            w.cookie_echo(&hand.cookie).unwrap();
            w.abort(false, |_| Ok(())).unwrap();
        });
        assert!(answers.is_empty());
        assert_eq!(net.hosts[1].events.len(), events);
        assert_eq!(net.hosts[1].endpoint.associations().count(), usize::from(restart));
        // The cookie is still valid.
        assert_eq!(hand.echo(&mut net)[0].text(), "COOKIE ACK");
    }
}

/// RFC 9260 8.4 (4): a cookie that this endpoint did not issue is discarded.
#[test]
fn strange_cookies_are_discarded() {
    assert!(answers(TAG, &|w| w.cookie_echo(&[1; 100]).unwrap()).is_empty());
    assert!(answers(TAG, &|w| w.cookie_echo(&[]).unwrap()).is_empty());
}

/// RFC 9260 8.5.1 A: a packet with tag 0 consists of a single INIT, or is silently discarded.
#[test]
fn tag_zero_is_for_inits_alone() {
    assert!(answers(0, &data).is_empty());
    assert!(answers(0, &|w| w.shutdown_ack().unwrap()).is_empty());
    assert!(answers(0, &|w| w.cookie_echo(b"no cookie of ours at all").unwrap()).is_empty());
}

/// RFC 9260 8.4 (1): packets from addresses that are not unicast get no answer.
#[test]
fn groups_are_not_answered() {
    let mut net = pair(1, Config::rfc9260());
    for ip in ["224.0.0.1", "0.0.0.0", "255.255.255.255"] {
        let hand = Hand { ip: ip.parse().unwrap(), ..Hand::new(1) };
        assert!(hand.say_with_tag(&mut net, TAG, &data).is_empty(), "{ip}");
    }
}

/// RFC 9260 8.4 (3): the ABORT for an INIT to an unused port has the INIT's initiate tag.
#[test]
fn an_init_to_a_port_without_endpoint_is_aborted() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let mut packet = hand.packet(0, &|w| w.init(&hand.fields(), |_| Ok(())).unwrap());
    packet[2..4].copy_from_slice(&4242u16.to_be_bytes());
    let crc = wire::checksum(&packet);
    packet[8..12].copy_from_slice(&crc.to_le_bytes());
    let answers = hand.raw(&mut net, &packet);
    assert_eq!((answers[0].text(), answers[0].tag), ("ABORT".into(), hand.tag));
}

/// RFC 9260 6.8: a packet with a wrong CRC32c is discarded.
#[test]
fn damaged_packets_are_counted_and_dropped() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let mut packet = hand.packet(TAG, &data);
    let last = packet.len() - 4;
    packet[last] ^= 1;
    assert!(hand.raw(&mut net, &packet).is_empty());
    assert!(hand.raw(&mut net, &packet[..20]).is_empty());
    assert!(hand.raw(&mut net, &packet[..11]).is_empty());
    assert!(hand.raw(&mut net, &packet[..13]).is_empty());
    let stats = net.hosts[1].endpoint.stats();
    assert_eq!((stats.bad_checksum, stats.malformed, stats.out_of_the_blue), (2, 2, 0));
}

/// The checksum of a packet that the lower layer has verified is not computed again, except in
/// debug builds; its length is checked all the same.
#[test]
fn verified_packets_are_checked_in_debug_builds_only() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let mut packet = hand.packet(TAG, &data);
    packet[8] ^= 1;
    let local = SocketAddr::new(net.hosts[1].endpoint.config().addresses[0], 0);
    let from = FourTuple { local, remote: SocketAddr::new(hand.ip, 0) };
    let endpoint = &mut net.hosts[1].endpoint;
    endpoint.handle_verified(net.now, from, Ecn::NotEct, &packet);
    endpoint.handle_verified(net.now, from, Ecn::NotEct, &packet[..13]);
    let (checked, stats) = (u64::from(cfg!(debug_assertions)), endpoint.stats());
    assert_eq!((stats.bad_checksum, stats.out_of_the_blue), (checked, 1 - checked));
    assert_eq!(stats.malformed, 1);
}

/// RFC 9260 8.5: "If the received Verification Tag ... does not match the receiver's own tag value,
/// the receiver MUST silently discard the packet".
#[test]
fn a_wrong_tag_is_counted_and_dropped() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    for tag in [hand.peer_tag ^ 1, hand.tag, 0] {
        assert!(hand.say_with_tag(&mut net, tag, &data).is_empty());
        assert!(hand.say_with_tag(&mut net, tag, &|w| w.shutdown_ack().unwrap()).is_empty());
    }
    assert!(net.hosts[1].received.is_empty());
    assert_eq!(net.hosts[1].endpoint.stats().bad_tag, 6);
    assert!(net.a(1).is_established());
}

/// RFC 9260 8.5.1 B: the receiver's tag without the T bit, or the sender's with it; no other
/// combination.
#[test]
fn an_abort_counts_with_the_right_tag_and_t_bit() {
    for (own, t_bit, counts) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        let tag = if own { hand.peer_tag } else { hand.tag };
        let abort: &dyn Fn(&mut PacketWriter<'_>) = &|w| w.abort(t_bit, |_| Ok(())).unwrap();
        assert!(hand.say_with_tag(&mut net, tag ^ 1, abort).is_empty());
        assert!(net.a(1).is_established());
        assert!(hand.say_with_tag(&mut net, tag, abort).is_empty(), "never answered");
        assert_eq!(net.a(1).is_closed(), counts, "own tag {own}, T bit {t_bit}");
    }
}

/// RFC 9260 8.5.1 C: the same rule as for an ABORT, and only in SHUTDOWN-ACK-SENT.
#[test]
fn a_shutdown_complete_counts_with_the_right_tag_and_t_bit() {
    for (own, t_bit, counts) in
        [(true, false, true), (false, true, true), (true, true, false), (false, false, false)]
    {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        let tag = if own { hand.peer_tag } else { hand.tag };
        let complete: &dyn Fn(&mut PacketWriter<'_>) = &|w| w.shutdown_complete(t_bit).unwrap();
        hand.say_with_tag(&mut net, tag, complete);
        assert!(net.a(1).is_established());
        hand.shutdown(&mut net, 0);
        assert!(hand.say_with_tag(&mut net, tag, complete).is_empty());
        assert_eq!(net.a(1).is_closed(), counts, "own tag {own}, T bit {t_bit}");
    }
}

/// RFC 9260 8.5.1 E, 9.2: while an association is being opened, a SHUTDOWN ACK of an old one is
/// answered by a SHUTDOWN COMPLETE, and the attempt continues.
#[test]
fn a_shutdown_ack_of_an_old_association_is_completed_while_opening() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    for echoed in [false, true] {
        if echoed {
            hand.init_ack(&mut net);
        }
        let answers = hand.say_with_tag(&mut net, TAG, &|w| w.shutdown_ack().unwrap());
        assert_eq!(answers.len(), 1, "in {}", if echoed { "COOKIE-ECHOED" } else { "COOKIE-WAIT" });
        assert_eq!((answers[0].text(), answers[0].tag), ("SHUTDOWN COMPLETE T".into(), TAG));
        // This holds wherever the chunk is in the packet, and if the tags happen to be the same.
        for tag in [TAG, hand.peer_tag] {
            let answers = hand.say_with_tag(&mut net, tag, &|w| {
                w.heartbeat_ack(b"?").unwrap();
                w.shutdown_ack().unwrap();
            });
            assert_eq!(answers.len(), 1);
            assert_eq!((answers[0].text(), answers[0].tag), ("SHUTDOWN COMPLETE T".into(), tag));
        }
    }
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    assert!(net.a(0).is_established());
}

/// RFC 9260 9.2, 8.4 (5): the peer restarts at the end of a shutdown and connects again.
#[test]
fn a_peer_that_restarts_during_the_shutdown_gets_through() {
    let mut net = pair(1, Config::rfc9260());
    net.establish();
    net.drop_all("SHUTDOWN COMPLETE");
    net.shutdown(0);
    net.run(MS(100));
    assert!(net.closed(0).is_some() && net.closed(1).is_none());
    net.no_filters();
    let old = net.id(1);
    net.hosts[0] = Setup { seed: 50, ..Setup::default() }.host(0, &Config::rfc9260(), false);
    net.connect(0);
    net.drive_until(S(3), |net| net.a(0).is_established());
    let old = net.hosts[1].endpoint.association(old).unwrap().close_reason().cloned();
    assert_eq!(old, Some(CloseReason::Graceful));
}

/// RFC 9260 8.4: a closed association counts as none, and its peer gets an ABORT.
#[test]
fn packets_for_a_closed_association_are_out_of_the_blue() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    net.abort(1, b"enough");
    assert_eq!(net.log.last().unwrap().tag, hand.tag);
    let answers = hand.data(&mut net, 1);
    assert_eq!((answers[0].text(), answers[0].tag), ("ABORT T".into(), hand.peer_tag));
}

/// RFC 9260 8.5: the tag, along with the ports, selects the association; the address need not.
#[test]
fn every_association_has_tags_of_its_own() {
    let mut net = pair(1, Config::rfc9260());
    let first = Hand::new(1).open(&mut net);
    let second = Hand { port: 4000, tag: 4000, ..Hand::new(1) }.open(&mut net);
    let third = Hand { ip: v4(0, 70), tag: 70, ..Hand::new(1) }.open(&mut net);
    let tags = std::collections::BTreeSet::from([first.peer_tag, second.peer_tag, third.peer_tag]);
    assert_eq!(tags.len(), 3);
    for hand in [&first, &second, &third] {
        hand.data(&mut net, 1);
    }
    assert_eq!(net.hosts[1].received.len(), 3);
    // The right tag from the wrong port matches no association.
    let mixed = Hand { port: 4000, ..first };
    mixed.data(&mut net, 2);
    assert_eq!(net.hosts[1].received.len(), 3);
}

/// A packet that arrives between the application's abort and the sending of the ABORT is not out of
/// the blue: an answer with the T bit would be sent first, without the reason.
#[test]
fn an_abort_is_not_overtaken_by_an_answer_to_strangers() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let now = net.now;
    net.am(1).abort(now, b"why");
    let said =
        |answers: Vec<Sent>| -> Vec<_> { answers.iter().map(|p| (p.text(), p.causes())).collect() };
    assert_eq!(
        said(hand.sack(&mut net, 0, &[])),
        [("ABORT (User-Initiated Abort)".to_owned(), vec![12])]
    );
    assert_eq!(said(hand.sack(&mut net, 0, &[])), [("ABORT T".to_owned(), vec![])], "it has left");
}
