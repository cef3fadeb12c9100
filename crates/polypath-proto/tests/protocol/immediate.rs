//! When the sender requests an immediate SACK (RFC 7053), and the time that this saves.

use crate::common::*;
use polypath_proto::wire::Chunk;
use polypath_proto::{Config, Message, StreamId};

/// TSNs of host `h`'s DATA chunks that have the I bit.
fn asked(net: &Net, h: usize) -> Vec<u32> {
    let urgent = |p: &Sent| {
        let asks = |c: &Chunk<'_>| matches!(c, Chunk::Data(d) if d.immediate);
        let bits: Vec<bool> =
            p.parsed().iter().filter(|c| matches!(c, Chunk::Data(_))).map(asks).collect();
        p.data().iter().zip(bits).filter(|(_, asks)| *asks).map(|(d, _)| d.n).collect::<Vec<_>>()
    };
    net.sent(h).iter().flat_map(urgent).collect()
}

fn first_message_sent() -> Net {
    let mut net = established(1, Config::rfc9260());
    // The first chunk is acknowledged at once in any case.
    net.send(0, 0, payload(0, 100)).unwrap();
    net.run(S(1));
    net
}

#[test]
fn the_application_asks() {
    let mut net = first_message_sent();
    let plain = Message::new(StreamId(0), payload(1, 3000));
    let start = net.now;
    net.send_message(0, Message { sack_immediately: true, ..plain.clone() }).unwrap();
    net.drive_until(MS(25), |net| net.a(0).buffered() == 0);
    // There are three fragments, and the last one has the I bit.
    assert_eq!(asked(&net, 0), [4]);
    net.send_message(0, plain).unwrap();
    net.run(S(1));
    assert_eq!(asked(&net, 0), [4], "only what was asked for");
    assert!(net.times(1, "SACK").last().unwrap() - start.as_nanos() / 1_000_000 > 200);
}

/// RFC 7053 5: in SHUTDOWN-PENDING. The SHUTDOWN is sent one round trip after the data, not 200 ms
/// later.
#[test]
fn the_last_chunk_before_a_shutdown_asks() {
    let mut net = first_message_sent();
    let (now, mark) = (net.now, net.log.len());
    net.am(0).send(now, Message::new(StreamId(0), payload(1, 100))).unwrap();
    net.am(0).send(now, Message::new(StreamId(0), payload(2, 100))).unwrap();
    net.shutdown(0);
    assert_eq!(asked(&net, 0), [3]);
    net.run(S(1));
    assert_eq!(
        net.script_since(mark),
        ["A DATA 2 + DATA 3", "B SACK 3", "A SHUTDOWN 0", "B SHUTDOWN ACK", "A SHUTDOWN COMPLETE"]
    );
    assert_eq!(net.sent_since(0, mark)[1].ms() - net.sent_since(0, mark)[0].ms(), 20);
}

/// After a timeout the window holds one packet: the next one waits for its SACK.
#[test]
fn a_retransmission_that_fills_the_window_asks() {
    let mut net = first_message_sent();
    let before = net.log.len();
    net.cuts.insert(0);
    for n in 1..4 {
        net.send(0, 0, payload(n, 1452)).unwrap();
    }
    net.run(MS(500));
    net.cuts.clear();
    net.run(S(3));
    assert_eq!(asked(&net, 0)[..1], [2], "{}", net.tail(20));
    let again = net.sent_since(0, before).iter().rfind(|p| p.has("DATA 2")).unwrap().ms();
    let next = net.sent_since(0, before).iter().rfind(|p| p.has("DATA 3")).unwrap().ms();
    assert_eq!(next - again, 20, "one round trip later");
}

/// An application whose send buffer is full does not have to wait for the delayed SACK.
#[test]
fn a_full_send_buffer_asks() {
    let config = Config::rfc9260().to_builder().send_buffer(1000).build().unwrap();
    let mut net = established(1, config);
    for n in 0..10 {
        let sent = net.now;
        net.send(0, 0, payload(n, 1000)).unwrap();
        net.drive_until(S(1), |net| net.a(0).send_room() > 0);
        assert_eq!(net.now.since(sent).as_millis(), 20);
    }
    assert_eq!(asked(&net, 0), (1..=10).collect::<Vec<_>>());
}

/// In a bulk transfer the window is always full: the I bit would only double the number of SACKs.
#[test]
fn a_bulk_transfer_does_not_ask() {
    let mut net = established(1, Config::rfc9260());
    for n in 0..300 {
        net.send(0, 0, payload(n, 1452)).unwrap();
    }
    net.drive_until(S(5), |net| net.a(0).buffered() == 0);
    assert_eq!(asked(&net, 0), [0; 0]);
    assert!(net.a(1).stats().sacks_sent < 160, "{:?}", net.a(1).stats());
}
