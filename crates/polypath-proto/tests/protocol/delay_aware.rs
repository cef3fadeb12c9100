//! The scheduler `delay-aware`: higher TSNs are sent first on the slower path (Sarwar 2013, Kuhn
//! 2014).

use std::collections::BTreeSet;

use crate::common::*;
use polypath_proto::Registry;
use polypath_proto::wire::{Checksum, Chunk, GapBlock, Packet, PacketWriter};
use polypath_proto::*;

/// Two paths with one-way delays of 10 and 100 ms; host 0 has this number of 1000-byte messages to
/// send.
fn unequal(scheduler: &str, messages: u64) -> Net {
    let answer = policy::find(Registry::standard().scheduler(), scheduler).unwrap();
    let config = Config::profile("cmt").unwrap().to_builder().scheduler(answer);
    // The windows hardly grow: the network itself has unlimited capacity.
    let config = config.send_buffer(1 << 24).initial_ssthresh(Some(20_000)).build().unwrap();
    let mut net = pair(2, config);
    net.delays.extend([(0, 1), (1, 1)].map(|key| (key, MS(100))));
    net.establish();
    net.run(S(1));
    for i in 0..messages {
        net.send(0, 0, payload(i, 1000)).unwrap();
    }
    net
}

/// Number of chunks that host 0 sent after a higher TSN.
fn overtaken(net: &Net) -> usize {
    let mut highest = 0;
    let sent = net.sent_with(0, "DATA");
    let numbers = sent.iter().flat_map(Sent::data).map(|d| d.n);
    let late = numbers.filter(|&n| {
        highest = highest.max(n);
        n < highest
    });
    late.count()
}

#[test]
fn data_leaves_out_of_order_and_arrives_once() {
    for (scheduler, leaves_in_order) in [("delay-aware", false), ("concurrent", true)] {
        let mut net = unequal(scheduler, 3000);
        net.run(S(20));
        let received = &net.hosts[1].received;
        assert_eq!(received.len(), 3000);
        assert!(received.iter().enumerate().all(|(i, r)| r.payload == payload(i as u64, 1000)));
        assert_eq!(net.a(0).buffered(), 0);
        assert_eq!(net.path(0, 0).in_flight + net.path(0, 1).in_flight, 0);
        let slow = net.sent_with(0, "DATA").iter().filter(|p| p.net() == 1).count();
        assert!(slow > 50, "{slow} packets over the slower path");
        let overtaken = overtaken(&net);
        assert_eq!(overtaken == 0, leaves_in_order, "{scheduler}: {overtaken} of 3000 overtaken");
    }
}

/// RFC 9260 6.2.1: TSNs that higher ones have overtaken are not sent yet, and cannot be
/// acknowledged.
#[test]
fn what_has_been_overtaken_and_not_sent_cannot_be_acknowledged() {
    for cumulatively in [true, false] {
        let mut net = unequal("delay-aware", 3000);
        let mut forged = false;
        let mut sent = BTreeSet::new();
        net.filter(move |p| {
            sent.extend(p.data().iter().map(|d| d.n));
            let highest = sent.last().copied().unwrap_or_default();
            let ours = p.from.ip() == v4(p.net(), 1);
            // Enough of them that some will still be unsent when the SACK arrives.
            let unsent = |s: &SackSeen| (s.cumulative + 2..highest).filter(|n| !sent.contains(n));
            let many = |s: &SackSeen| p.net() == 0 && unsent(s).count() > 60;
            let Some(sack) = p.sack().filter(|s| ours && many(s)) else {
                return Fate::Pass;
            };
            if std::mem::replace(&mut forged, true) {
                return Fate::Pass;
            }
            let last = (highest - sack.cumulative) as u16;
            let parsed = p.parsed();
            let Some(Chunk::Sack(s)) = parsed.iter().find(|c| matches!(c, Chunk::Sack(_))) else {
                return Fate::Pass;
            };
            let packet = Packet::parse(&p.bytes, Checksum::Ignore).unwrap();
            let mut buf = vec![0; 1500];
            let mut w = PacketWriter::new(&mut buf, packet.header());
            // Acknowledge every TSN up to the highest one sent.
            let ack = s.cumulative_tsn_ack;
            let whole = GapBlock { start: 2, end: last.into() };
            let (to, gaps) =
                if cumulatively { (ack.plus(last.into()), None) } else { (ack, Some(whole)) };
            w.sack(to, s.a_rwnd, 0, gaps.into_iter(), [].into_iter()).unwrap();
            let len = w.finish(Checksum::Verify);
            buf.truncate(len);
            Fate::Changed(buf)
        });
        net.run(S(5));
        let closed = net.closed(0).map(|reason| reason.to_string());
        let expected = "the peer broke the protocol: it acknowledged data that was never sent";
        assert_eq!(closed.as_deref(), Some(expected), "{}", net.tail(5));
    }
}
