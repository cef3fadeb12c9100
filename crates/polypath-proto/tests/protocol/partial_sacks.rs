//! SACKs that have no room for all gap ack blocks.

use std::collections::BTreeSet;

use crate::common::*;
use polypath_proto::Config;
use polypath_proto::wire::{Chunk, Sack};
use proptest::prelude::*;

fn small(config: Config) -> Config {
    config.to_builder().path_mtu(576).build().unwrap()
}

/// The DATA chunks of a packet.
fn tsns(p: &Sent) -> Vec<u32> {
    let parsed = p.parsed();
    parsed
        .iter()
        .filter_map(|c| if let Chunk::Data(d) = c { Some(d.tsn.0) } else { None })
        .collect()
}

/// Drops the first transmission of the chunks that `loses` selects by their place.
fn lose(net: &mut Net, loses: impl Fn(u32) -> bool + 'static) {
    let (mut first, mut sent) = (None, BTreeSet::new());
    net.filter(move |p| {
        let tsns = tsns(p);
        let Some(tsn) = tsns.first() else { return Fate::Pass };
        let first = *first.get_or_insert(*tsn);
        let new = sent.insert(*tsn);
        if new && loses(tsn.wrapping_sub(first)) { Fate::Drop } else { Fate::Pass }
    });
}

fn partial(net: &Net) -> usize {
    let sacks = net.sent_with(1, "SACK");
    let flags = sacks.iter().flat_map(Sent::parsed).filter_map(|c| match c {
        Chunk::Sack(sack) => Some(sack.flags),
        _ => None,
    });
    flags.filter(|flags| flags & Sack::PARTIAL != 0).count()
}

/// Every second packet of a window of hundreds is lost: more gaps than a SACK can report. Only lost
/// chunks are sent again.
#[test]
fn what_was_left_out_is_not_sent_again() {
    let mut net = established(1, small(Config::modern()));
    lose(&mut net, |place| (300..1500).contains(&place) && place % 2 == 1);
    net.send(0, 0, payload(1, 2_000_000)).unwrap();
    net.run(S(20));
    assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(20));
    assert!(partial(&net) > 10);
    let (mut once, mut again) = (BTreeSet::new(), BTreeSet::new());
    for tsn in net.sent(0).iter().flat_map(tsns) {
        if !once.insert(tsn) {
            again.insert(tsn);
        }
    }
    // The last chunk may be probed, because its SACK is delayed.
    let (first, last) = (*once.first().unwrap(), *once.last().unwrap());
    again.remove(&last);
    assert!(again.iter().all(|tsn| (300..1500).contains(&(tsn - first)) && (tsn - first) % 2 == 1));
    assert_eq!(again.len(), 600);
}

/// A sender that counts missing reports gets the lowest blocks.
#[test]
fn others_get_complete_lists() {
    let configs = [small(Config::rfc9260()), small(Config::modern())];
    let mut net = Setup { configs, ..Setup::default() }.build();
    net.establish();
    lose(&mut net, |place| (300..1500).contains(&place) && place % 2 == 1);
    net.send(0, 0, payload(1, 2_000_000)).unwrap();
    net.run(S(60));
    assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(20));
    assert_eq!(partial(&net), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    /// With any losses in large windows, and lost SACKs, all data arrives.
    #[test]
    fn data_arrives_with_any_losses(seed in any::<u64>(), loss in 1u64..40, back in 0u64..30) {
        let patient = Config::modern().to_builder().association_max_retrans(100);
        let mut net = established(1, small(patient.build().unwrap()));
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        let mut count = 0u32;
        net.filter(move |p| {
            count += 1;
            let likely = if p.has("DATA") { loss } else { back };
            let hit = (600..2000).contains(&count) && dice.below(100) < likely;
            if hit { Fate::Drop } else { Fate::Pass }
        });
        net.send(0, 0, payload(1, 1_000_000)).unwrap();
        net.run(S(600));
        prop_assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(20));
        let got: usize = net.hosts[1].received.iter().map(|r| r.payload.len()).sum();
        prop_assert_eq!(got, 1_000_000);
    }
}
