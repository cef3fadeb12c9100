//! More TSNs above the cumulative TSN ack than the 16 bits of a gap ack block count.

use std::collections::BTreeSet;

use crate::common::*;
use polypath_proto::Config;
use polypath_proto::wire::{Chunk, Sack};

/// Chunks of four bytes each, with headers 20.
const CHUNKS: u32 = 90_000;

/// A window for all of the chunks, and large packets: a few of them have all.
fn wide(config: Config) -> Config {
    let config = config.to_builder().path_mtu(60_000).initial_cwnd(40);
    let config = config.send_buffer(1 << 26).initial_send_buffer(None);
    config.receive_buffer(1 << 26).initial_receive_buffer(None).build().unwrap()
}

/// Sends the chunks, of which the first packet is lost once. Returns the largest distance between
/// a TSN and the cumulative TSN ack, the TSNs that were sent again, and the number of wide SACKs.
fn first_packet_lost(configs: [Config; 2]) -> (u32, BTreeSet<u32>, usize) {
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    let mut lost = false;
    net.filter(move |p| {
        let hit = p.has("DATA") && !std::mem::replace(&mut lost, true);
        if hit { Fate::Drop } else { Fate::Pass }
    });
    net.am(0).set_max_fragment(Some(4));
    net.send(0, 0, payload(1, 4 * CHUNKS as usize)).unwrap();
    net.run(S(20));
    assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(20));
    let received = net.hosts[1].received.iter().map(|r| r.payload.len());
    assert_eq!(received.sum::<usize>(), 4 * CHUNKS as usize);
    let (mut sent, mut again) = (BTreeSet::new(), BTreeSet::new());
    let (mut first, mut most) = (None, 0);
    for packet in net.sent(0) {
        for chunk in packet.parsed() {
            let Chunk::Data(data) = chunk else { continue };
            if !sent.insert(data.tsn.0) {
                again.insert(data.tsn.0.wrapping_sub(*first.get_or_insert(data.tsn.0)));
            } else if again.is_empty() {
                most = most.max(data.tsn.0.wrapping_sub(*first.get_or_insert(data.tsn.0)));
            }
        }
    }
    let sacks = net.sent_with(1, "SACK");
    let chunks = sacks.iter().flat_map(Sent::parsed);
    let wide = chunks.filter(|c| matches!(c, Chunk::Sack(s) if s.flags & Sack::WIDE != 0));
    (most, again, wide.count())
}

/// Only what was lost is sent again, although it is further below the highest TSN than 16 bits
/// count.
#[test]
fn all_of_a_wide_window_is_acknowledged() {
    let (most, again, wide_sacks) =
        first_packet_lost([wide(Config::modern()), wide(Config::modern())]);
    assert!(most > 70_000 && wide_sacks > 3, "{most}, {wide_sacks}");
    assert!(again.iter().all(|tsn| *tsn < 4000 || *tsn == CHUNKS - 1), "{again:?}");
}

/// RFC 9260 3.3.4: gap ack blocks have 16 bits, between all others.
#[test]
fn a_peer_without_wide_sacks_gets_no_more_tsns_than_16_bits_reach() {
    let (most, again, wide_sacks) =
        first_packet_lost([wide(Config::modern()), wide(Config::rfc9260())]);
    assert_eq!((most, wide_sacks), (65_535 - 1, 0));
    assert!(again.iter().all(|tsn| *tsn < 4000 || *tsn == CHUNKS - 1), "{again:?}");
}
