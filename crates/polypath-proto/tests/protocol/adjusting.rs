//! Constants that the application changes while the association exists (RFC 9260 11.1.13).

use crate::common::*;
use polypath_proto::*;

fn config() -> Config {
    Config::rfc9260().to_builder().heartbeat_interval(None).build().unwrap()
}

/// Host 1, which has sent a message and had it acknowledged after 100 ms, and a hand.
fn measured() -> (Net, Hand) {
    let mut net = pair(1, config());
    let hand = Hand::new(1).open(&mut net);
    net.send(1, 0, payload(1, 1000)).unwrap();
    net.run(MS(100));
    hand.sack(&mut net, 1, &[]);
    (net, hand)
}

#[test]
fn the_rto_follows_its_new_limits() {
    let (mut net, hand) = measured();
    assert_eq!(net.path(1, 0).rto, S(1));
    net.am(1).set_rto_limits(S(3), S(2), S(60)).unwrap();
    assert_eq!(net.path(1, 0).rto, S(2));
    // It is used: the next retransmission comes after two seconds.
    net.send(1, 0, payload(2, 1000)).unwrap();
    let sent = net.now;
    net.run(MS(2500));
    assert_eq!(net.sent_with(1, "DATA").last().unwrap().at.since(sent), S(2));
    hand.sack(&mut net, 2, &[]);
    // Back to a shorter one, as far as the samples allow.
    net.am(1).set_rto_limits(MS(50), MS(10), MS(200)).unwrap();
    assert_eq!(net.path(1, 0).rto, MS(200));
    let refused = [(S(1), S(2), S(3)), (S(4), S(2), S(3)), (S(2), S(3), S(2))];
    for (initial, min, max) in refused {
        net.am(1).set_rto_limits(initial, min, max).unwrap_err();
    }
    assert_eq!(net.path(1, 0).rto, MS(200));
    assert_eq!(net.a(1).config().rto_max(), MS(200));
}

#[test]
fn sacks_have_the_new_delay() {
    let mut net = pair(1, config());
    let hand = Hand::new(1).open(&mut net);
    hand.data(&mut net, 1);
    net.am(1).set_sack_delay(MS(50), 3).unwrap();
    assert!(hand.data(&mut net, 2).is_empty() && hand.data(&mut net, 3).is_empty());
    assert_eq!(hand.data(&mut net, 4)[0].text(), "SACK 4");
    assert!(hand.data(&mut net, 5).is_empty());
    let (start, mark) = (net.now, net.log.len());
    net.run(S(1));
    assert_eq!(net.script_since(mark), ["B SACK 5"]);
    assert_eq!(net.log[mark].at.since(start), MS(50));
    net.am(1).set_sack_delay(MS(50), 1).unwrap();
    assert_eq!(hand.data(&mut net, 6)[0].text(), "SACK 6");
    // RFC 9260 6.2: not more than 500 ms.
    net.am(1).set_sack_delay(S(10), 2).unwrap_err();
}

#[test]
fn heartbeats_begin_and_end() {
    let mut net = established(1, config());
    let sent = |net: &Net| net.a(0).path_stats(PathId(0)).unwrap().heartbeats_sent;
    net.run(S(300));
    let before = sent(&net);
    let now = net.now;
    net.am(0).set_heartbeat_interval(now, Some(S(5))).unwrap();
    net.run(S(60));
    let begun = sent(&net) - before;
    assert!((8..=12).contains(&begun), "{begun}");
    let now = net.now;
    net.am(0).set_heartbeat_interval(now, None).unwrap();
    net.run(S(300));
    // One may have been outstanding.
    assert!(sent(&net) - before <= begun + 1);
}

#[test]
fn messages_are_sent_in_chunks_of_the_new_size() {
    let mut net = established(1, config());
    net.am(0).set_max_fragment(Some(300));
    let mark = net.log.len();
    net.send(0, 0, payload(7, 1000)).unwrap();
    net.run(S(1));
    let data = |net: &Net| {
        net.a(0).path_stats(PathId(0)).map(|stats| (stats.data_chunks_sent, stats.data_bytes_sent))
    };
    assert_eq!(data(&net), Some((4, 1000)), "{:?}", net.script_since(mark));
    net.am(0).set_max_fragment(None);
    net.send(0, 0, payload(8, 1000)).unwrap();
    net.run(S(1));
    assert_eq!(data(&net), Some((5, 2000)));
    // At least a byte.
    net.am(0).set_max_fragment(Some(0));
    net.send(0, 0, payload(9, 3)).unwrap();
    net.run(S(1));
    assert_eq!(data(&net), Some((8, 2003)));
}

/// RFC 9260 6.1 D: at most Max.Burst packets more than are in flight.
#[test]
fn bursts_have_the_new_limit() {
    let first = |limit: Option<u32>| {
        let mut net = pair(1, config());
        Hand::new(1).open(&mut net);
        if let Some(limit) = limit {
            net.am(1).set_max_burst(limit).unwrap();
        }
        let now = net.now;
        for i in 0..10 {
            net.am(1).send(now, Message::new(StreamId(0), payload(i, 1452))).unwrap();
        }
        net.settle();
        net.a(1).path_stats(PathId(0)).unwrap().data_chunks_sent
    };
    assert_eq!((first(Some(1)), first(Some(2))), (1, 2));
    assert!(first(None) > 2);
}
