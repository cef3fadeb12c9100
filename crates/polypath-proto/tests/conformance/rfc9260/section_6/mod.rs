//! RFC 9260, section 6: User Data Transfer.

mod acknowledging;
mod multihoming;
mod packets;
mod sending;
mod streams;
mod timers;

use polypath_proto::wire::Data;
use polypath_proto::{Config, Event, Ssn};

use super::setup::{State, texts};
use crate::common::*;

#[test]
fn s6_r1_data_is_sent_in_three_states_only() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(MS(500));
    assert_eq!(texts(&net.sent(0)), ["INIT"], "COOKIE-WAIT");
    // "DATA chunks MAY be bundled with an outbound COOKIE ECHO chunk".
    hand.init_ack(&mut net);
    for n in 2..20 {
        net.send(0, 0, payload(n, 1000)).unwrap();
        net.run(MS(10));
    }
    let early = net.sent_with(0, "DATA");
    assert!(early.iter().all(|p| p.has("COOKIE ECHO")), "COOKIE-ECHOED: {:?}", texts(&early));
    let count = |net: &Net| data_numbers(&net.sent(0)).concat().into_iter().max().unwrap_or(0);
    let before = count(&net);
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    hand.sack(&mut net, before, &[]);
    let established = count(&net);
    assert!(established > before, "ESTABLISHED");
    net.shutdown(0);
    hand.sack(&mut net, established, &[]);
    let pending = count(&net);
    assert!(pending > established, "SHUTDOWN-PENDING");
    hand.shutdown(&mut net, pending);
    assert!(count(&net) > pending, "SHUTDOWN-RECEIVED");
    for state in [State::ShutdownSent, State::ShutdownAckSent] {
        let (mut net, _) = state.reach();
        let _ = net.send(0, 0, payload(1, 1000));
        net.run(S(5));
        assert!(net.sent_with(0, "DATA").is_empty(), "{state:?}");
    }
}

#[test]
fn s6_r2_r4_data_is_received_in_three_states_only() {
    for state in State::ALL {
        let (mut net, hand) = state.reach();
        let answers = hand.data(&mut net, 1);
        let takes =
            matches!(state, State::Established | State::ShutdownPending | State::ShutdownSent);
        net.run(MS(300));
        assert_eq!(net.hosts[0].received.len(), usize::from(takes), "{state:?}");
        let acked = |p: &Sent| p.has("SACK 1") || p.has("SHUTDOWN 1");
        assert_eq!(net.sent(0).iter().any(acked), takes, "{state:?}");
        assert!(takes || answers.is_empty(), "{state:?}: discarded");
        assert_eq!(net.closed(0), None, "{state:?}");
    }
}

#[test]
fn s6_r3_data_in_closed_is_out_of_the_blue() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { peer_tag: 77, ..Hand::new(1) };
    let answer = &hand.data(&mut net, 1)[0];
    assert_eq!((answer.text(), answer.tag), ("ABORT T".to_owned(), 77));
    assert!(net.hosts[1].received.is_empty());
}

#[test]
fn s6_r5_a_sack_is_processed_in_three_states() {
    let (mut net, hand) = State::Established.reach();
    net.send(0, 0, payload(1, 100)).unwrap();
    hand.sack(&mut net, 1, &[]);
    assert!(net.saw(0, &Event::Drained));
    let (mut net, hand) = State::ShutdownPending.reach();
    assert_eq!(texts(&hand.sack(&mut net, 1, &[])), ["SHUTDOWN 0"]);
    let (mut net, hand) = State::ShutdownReceived.reach();
    assert_eq!(texts(&hand.sack(&mut net, 1, &[])), ["SHUTDOWN ACK"]);
}

#[test]
fn s6_r6_a_sack_in_closed_is_out_of_the_blue() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { peer_tag: 78, ..Hand::new(1) };
    let answer = &hand.sack(&mut net, 1, &[])[0];
    assert_eq!((answer.text(), answer.tag), ("ABORT T".to_owned(), 78));
}

#[test]
fn s6_r7_a_sack_in_other_states_is_discarded() {
    // In ESTABLISHED, this acknowledgement of data that was never sent ends the association.
    let (mut net, hand) = State::Established.reach();
    hand.sack(&mut net, 9, &[]);
    assert!(net.closed(0).is_some());
    for state in [State::CookieWait, State::ShutdownSent, State::ShutdownAckSent] {
        let (mut net, hand) = state.reach();
        assert!(hand.sack(&mut net, 9, &[]).is_empty(), "{state:?}");
        assert_eq!(net.closed(0), None, "{state:?}");
    }
}

#[test]
fn s6_r8_large_messages_are_fragmented() {
    let mut net = established(1, Config::rfc9260());
    net.send(0, 0, payload(1, 5000)).unwrap();
    net.run(S(1));
    let chunks: Vec<DataSeen> = net.sent(0).iter().flat_map(Sent::data).collect();
    assert!(chunks.len() > 1 && chunks.iter().map(|c| c.len).sum::<usize>() == 5000);
    assert_eq!(net.hosts[1].received[0].payload, payload(1, 5000));
}

#[test]
fn s6_r11_bundled_and_fragmented_data_is_received() {
    let (mut net, hand) = State::Established.reach();
    let fragment = |n: u32, text: &'static [u8]| Data {
        beginning: n == 1,
        end: n == 3,
        ssn: Ssn(0),
        ..hand.chunk(n, text)
    };
    let (one, two, three) = (fragment(1, b"Bundled"), fragment(2, b" and "), fragment(3, b"cut"));
    let four = Data { ssn: Ssn(1), ..hand.chunk(4, b"whole") };
    hand.say(&mut net, &|w| [&one, &two].into_iter().for_each(|d| w.data(d).unwrap()));
    hand.say(&mut net, &|w| [&three, &four].into_iter().for_each(|d| w.data(d).unwrap()));
    let got: Vec<_> = net.hosts[0].received.iter().map(|r| &r.payload[..]).collect();
    assert_eq!(got, [&b"Bundled and cut"[..], b"whole"]);
}
