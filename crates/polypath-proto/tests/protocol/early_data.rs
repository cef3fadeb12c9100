//! Data in the packet of the COOKIE ECHO (RFC 9260 5.1 C), with `data_with_cookie`.

use crate::common::*;
use polypath_proto::{Config, StreamId};

/// A network on which host 0 has begun to connect and has data to send.
fn begun(messages: usize) -> Net {
    let setup = Setup { configs: [Config::modern(), Config::modern()], ..Setup::default() };
    let mut net = setup.build();
    net.connect(0);
    for n in 0..messages {
        net.send(0, 0, payload(n as u64, 1000)).unwrap();
    }
    net
}

/// RFC 9260 5.1 C: "until the COOKIE ACK chunk is returned, the sender MUST NOT send any other
/// packets to the peer".
#[test]
fn one_packet_has_data_behind_the_cookie_echo() {
    let mut net = begun(5);
    net.run(MS(25));
    let sent = net.sent(0);
    assert_eq!(sent.len(), 2, "{}", net.tail(5));
    assert!(sent[1].text().starts_with("COOKIE ECHO"), "{}", sent[1].text());
    assert!(!sent[1].data().is_empty(), "{}", sent[1].text());
    net.run(MS(6));
    // The cookie is all that the other side has waited for.
    assert_eq!(net.hosts[1].received.len(), 1);
    let answer = net.sent(1).remove(1);
    assert!(
        answer.text().starts_with("COOKIE ACK") && answer.sack().is_some(),
        "{}",
        answer.text()
    );
    net.run(S(1));
    assert_eq!(net.hosts[1].received.len(), 5);
    assert_eq!(net.a(0).buffered(), 0);
    let received: Vec<_> = net.hosts[1].received.iter().map(|r| r.payload.clone()).collect();
    assert_eq!(received, (0..5).map(|n| payload(n, 1000)).collect::<Vec<_>>());
}

#[test]
fn other_profiles_send_data_after_the_cookie_ack() {
    let mut net = pair(1, Config::rfc9260());
    net.connect(0);
    net.send(0, 0, payload(1, 100)).unwrap();
    net.run(S(1));
    assert_eq!(net.sent(0)[1].text(), "COOKIE ECHO");
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// T1-cookie takes the place of T3-rtx: the COOKIE ECHO is sent again alone, the data right after
/// the COOKIE ACK.
#[test]
fn a_lost_cookie_echo_costs_its_data_no_further_timeout() {
    for lost in ["COOKIE ECHO", "COOKIE ACK"] {
        let mut net = begun(3);
        net.drop_once(&[lost]);
        net.run(MS(1_100));
        assert_eq!(net.sent_with(0, "COOKIE ECHO").len(), 2, "{lost}: {}", net.tail(9));
        assert_eq!(net.hosts[1].received.len(), 3, "{lost}: {}", net.tail(9));
        assert_eq!(net.a(0).path_stats(polypath_proto::PathId(0)).unwrap().timeouts, 0);
        net.run(S(1));
        assert_eq!(net.a(0).buffered(), 0, "{lost}");
    }
}

/// RFC 9260 5.2.4: both sides open the association, and both send data with their cookies.
#[test]
fn colliding_handshakes_deliver_the_data_of_both() {
    let setup = Setup {
        configs: [Config::modern(), Config::modern()],
        listens: [true, true],
        ..Setup::default()
    };
    let mut net = setup.build();
    for h in [0, 1] {
        net.connect(h);
        net.send(h, 0, payload(h as u64, 700)).unwrap();
    }
    net.run(S(5));
    for h in [0, 1] {
        assert_eq!(net.hosts[h].received.len(), 1, "{}", net.tail(20));
        assert_eq!(net.hosts[h].received[0].payload, payload(1 - h as u64, 700));
        assert_eq!(net.hosts[h].received[0].stream, StreamId(0));
        assert_eq!(net.a(h).buffered(), 0);
    }
}
