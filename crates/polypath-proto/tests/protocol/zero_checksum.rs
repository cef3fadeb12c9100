//! Packets without a checksum, if the lower layer protects them (RFC 9653).

use crate::common::*;
use polypath_proto::CloseReason;
use polypath_proto::wire::checksum;

fn both(zero_checksum: [bool; 2]) -> Net {
    let mut net = Setup { zero_checksum, paths: 2, ..Setup::default() }.build();
    net.establish();
    net
}

/// Whether the checksum is zero; fails if it is neither zero nor right.
fn is_zero(p: &Sent) -> bool {
    let field = &p.bytes[8..12];
    let mut bytes = p.bytes.clone();
    bytes[8..12].fill(0);
    let right = checksum(&bytes).to_le_bytes();
    assert!(field == [0; 4] || field == right, "neither zero nor right");
    field == [0; 4]
}

#[test]
fn all_but_the_handshake_goes_without_if_both_agree() {
    let mut net = both([true, true]);
    for h in 0..2 {
        net.send(h, 0, payload(1, 20_000)).unwrap();
    }
    net.run(S(1));
    net.shutdown(0);
    net.run(S(1));
    assert!(net.closed(0).unwrap().is_graceful() && net.closed(1).unwrap().is_graceful());
    for p in &net.log {
        // The receiver of a chunk that ends the association may have discarded it already.
        let with =
            ["INIT", "INIT ACK", "COOKIE ECHO", "SHUTDOWN COMPLETE"].iter().any(|c| p.has(c));
        assert_eq!(is_zero(p), !with, "{}", p.text());
    }
    assert_eq!(net.hosts[0].received.len() + net.hosts[1].received.len(), 2);
}

#[test]
fn one_side_alone_changes_nothing() {
    for sides in [[true, false], [false, true], [false, false]] {
        let mut net = both(sides);
        net.send(0, 0, payload(1, 20_000)).unwrap();
        net.run(S(1));
        assert!(net.log.iter().all(|p| !is_zero(p)), "{sides:?}");
        assert_eq!(net.hosts[1].received.len(), 1);
    }
}

fn zeroed(mut packet: Vec<u8>) -> Vec<u8> {
    packet[8..12].fill(0);
    packet
}

/// RFC 9653 5.3: a host that has offered it in its INIT accepts an INIT ACK without a checksum, as
/// pion sends it, and later packets from a peer that has made no such offer itself.
#[test]
fn who_has_offered_it_takes_it_from_the_first_answer_on() {
    for offers in [true, false] {
        let mut net = Setup { zero_checksum: [offers, false], ..Setup::default() }.build();
        let hand = Hand::new(0).be_called(&mut net);
        let cookie = [7; 8];
        let answer = hand.packet(hand.peer_tag, &|w| {
            w.init_ack(&hand.fields(), |p| p.state_cookie(&cookie)).unwrap();
        });
        let answers = hand.raw(&mut net, &zeroed(answer.clone()));
        assert_eq!(answers.iter().any(|p| p.has("COOKIE ECHO")), offers);
        if !offers {
            assert!(hand.raw(&mut net, &answer)[0].has("COOKIE ECHO"));
        }
        hand.say(&mut net, &|w| w.cookie_ack().unwrap());
        let chunk = hand.chunk(1, b"data");
        let data = hand.packet(hand.peer_tag, &|w| w.data(&chunk).unwrap());
        let answers = hand.raw(&mut net, &zeroed(data));
        assert_eq!(answers.iter().any(|p| p.has("SACK")), offers);
        assert!(net.sent(0).iter().all(|p| !is_zero(p)), "the peer takes none");
    }
}

/// RFC 9653 5.3: a zero checksum is accepted only if it was offered, and never in a handshake; a
/// checksum that is neither zero nor right is an error.
#[test]
fn nobody_else_may_leave_it_out() {
    let mut net = Setup { zero_checksum: [true; 2], ..Setup::default() }.build();
    let hand = Hand::new(1);
    let init = hand.packet(0, &|w| w.init(&hand.fields(), |_| Ok(())).unwrap());
    assert!(hand.raw(&mut net, &zeroed(init)).is_empty());
    // A peer that has not offered it.
    let hand = hand.open(&mut net);
    let chunk = hand.chunk(1, b"data");
    let data = hand.packet(hand.peer_tag, &|w| w.data(&chunk).unwrap());
    assert!(hand.raw(&mut net, &zeroed(data.clone())).is_empty());
    assert_eq!(net.hosts[1].endpoint.stats().bad_checksum, 2);
    assert_eq!(hand.raw(&mut net, &data).len(), 1);

    let mut net = Setup { zero_checksum: [true; 2], ..Setup::default() }.build();
    let mut hand = Hand::new(1);
    // DTLS is the only supported error detection method.
    let answers = hand.init(&mut net, &|p| p.zero_checksum_acceptable(2).unwrap());
    assert!(!answers[0].bytes.windows(4).any(|w| w == [0x80, 1, 0, 8]));
    let answers = hand.init(&mut net, &|p| p.zero_checksum_acceptable(1).unwrap());
    hand.learn(&answers[0]);
    let echo = hand.packet(hand.peer_tag, &|w| w.cookie_echo(&hand.cookie).unwrap());
    assert!(hand.raw(&mut net, &zeroed(echo)).is_empty());
    hand.echo(&mut net);
    let chunk = hand.chunk(1, b"data");
    let data = hand.packet(hand.peer_tag, &|w| w.data(&chunk).unwrap());
    let mut wrong = data.clone();
    wrong[9] ^= 1;
    assert!(hand.raw(&mut net, &wrong).is_empty());
    let echo = hand.packet(hand.peer_tag, &|w| w.cookie_echo(&hand.cookie).unwrap());
    assert!(hand.raw(&mut net, &zeroed(echo)).is_empty(), "also later");
    assert!(hand.raw(&mut net, &zeroed(data))[0].has("SACK"));
    let stray = hand.packet(0xdead_beef, &|w| w.shutdown_ack().unwrap());
    assert!(hand.raw(&mut net, &zeroed(stray)).is_empty());
}

/// RFC 9653 5.3: out of the blue packets without checksum may be processed, for "faster SCTP
/// association failure detection". The answer has a checksum, because it belongs to no association.
#[test]
fn a_host_that_has_restarted_says_so_to_a_sender_without_checksums() {
    for protects in [true, false] {
        let mut net = both([true, true]);
        let again = Setup { zero_checksum: [protects; 2], paths: 2, seed: 77, ..Setup::default() };
        let config = net.hosts[1].endpoint.config().association.clone();
        net.hosts[1] = again.host(1, &config, true);
        let mark = net.log.len();
        net.send(0, 0, payload(1, 100)).unwrap();
        net.run(MS(50));
        let sent = net.sent_since(1, mark);
        if protects {
            assert!(is_zero(&net.log[mark]) && !is_zero(&sent[0]));
            assert_eq!(sent[0].text(), "ABORT T");
            assert!(matches!(net.closed(0), Some(CloseReason::PeerAbort { .. })));
        } else {
            assert!(sent.is_empty() && net.closed(0).is_none());
        }
    }
}
