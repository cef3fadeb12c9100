//! The packet trace: it agrees with the counters of links and associations, and is kept only if it
//! is requested.

use polypath_sim::scenario::{Fault, PathSpec, Workload};
use polypath_sim::trace::{FATES, PacketTrace};
use polypath_sim::units::{Probability, Rate, Size, Span};
use polypath_sim::{Outcome, RunOptions, Scenario};

const DATA: u8 = 0;
const SACK: u8 = 3;

fn scenario() -> Scenario {
    let mut path = PathSpec::new(Rate::mbit(10), Span::millis(20));
    path.loss = Some(polypath_sim::link::LossModel::bernoulli(Probability::new(0.03).unwrap()));
    path.duplicate = Some(Probability::new(0.02).unwrap());
    Scenario::new("traced")
        .path(path.clone())
        .path(path)
        .workload(Workload::bulk(Size(1_000_000)))
        .fault(Fault::down(0, Span::millis(600)))
        .seed(9)
}

fn traced() -> (Outcome, PacketTrace) {
    let options = RunOptions { packets: true, ..RunOptions::default() };
    let mut outcome = scenario().run(&options).unwrap();
    let trace = outcome.packets.take().unwrap();
    (outcome, trace)
}

#[test]
fn the_trace_changes_nothing_and_is_not_kept_unasked() {
    let plain = scenario().run(&RunOptions::default()).unwrap();
    assert_eq!(plain.packets, None);
    assert_eq!(plain, traced().0);
}

#[test]
fn every_packet_at_every_link_is_in_the_trace_with_its_fate() {
    let (outcome, trace) = traced();
    let fate = |name: &str| FATES.iter().position(|fate| *fate == name).unwrap() as u8;
    assert_eq!(trace.links.len(), outcome.links.len());
    for (number, link) in outcome.links.iter().enumerate() {
        let hops: Vec<usize> = (0..trace.hops.time.len())
            .filter(|&hop| trace.hops.link[hop] as usize == number)
            .collect();
        let count = |name: &str| {
            hops.iter().filter(|&&hop| trace.hops.fate[hop] == fate(name)).count() as u64
        };
        let counts = link.counts;
        assert_eq!(hops.len() as u64, counts.offered, "{}", link.name);
        assert_eq!(count("lost"), counts.lost);
        assert_eq!(count("queue"), counts.dropped_queue);
        // A copy arrives, or is lost, in addition.
        assert!(count("delivered") + counts.duplicated >= counts.delivered);
        assert!(count("down") <= counts.lost_outage);
        assert!(hops.iter().all(|&hop| {
            (trace.hops.fate[hop] == fate("delivered")) != trace.hops.arrival[hop].is_nan()
        }));
    }
    assert!(trace.hops.time.is_sorted());
}

#[test]
fn tsns_count_from_one_and_retransmissions_are_marked() {
    let (outcome, trace) = traced();
    let chunks = &trace.chunks;
    let data: Vec<usize> = (0..chunks.kind.len()).filter(|&c| chunks.kind[c] == DATA).collect();
    let first: Vec<u32> =
        data.iter().filter(|&&c| !chunks.retransmission[c]).map(|&c| chunks.tsn[c]).collect();
    // 1 MB in messages of 1452 bytes: 689 chunks.
    assert_eq!(first, (1..=689).collect::<Vec<u32>>());
    let paths = &outcome.associations[0].sender.paths;
    let again = data.len() - first.len();
    let counted: u64 = paths
        .iter()
        .map(|path| path.counts.fast_retransmissions + path.counts.timeout_retransmissions)
        .sum();
    assert_eq!(again as u64, counted);
    let sacks = (0..chunks.kind.len()).filter(|&c| chunks.kind[c] == SACK);
    for sack in sacks {
        let gaps = chunks.first_gap[sack] as usize..chunks.first_gap[sack + 1] as usize;
        let mut last = chunks.tsn[sack];
        for gap in gaps {
            assert!(chunks.gap_first[gap] > last + 1 && chunks.gap_last[gap] <= 689);
            last = chunks.gap_last[gap];
        }
        assert!(chunks.a_rwnd[sack] > 0);
    }
}
