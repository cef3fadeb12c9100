use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::acked::Outside;
use super::*;
use crate::constants::Delivery;
use crate::ids::{Mid, Ppid, StreamId};
use crate::wire::GapBlock;

pub(super) fn chunk() -> NewChunk {
    NewChunk {
        stream: StreamId(0),
        mid: Mid(0),
        fsn: None,
        ppid: Ppid(0),
        context: 0,
        unordered: false,
        beginning: true,
        end: true,
        immediate: false,
        delivery: Delivery::Standard,
        payload: Bytes::from_static(b"1234"),
        partial: None,
    }
}

#[test]
fn gaps_come_and_go() {
    let mut f = InFlight::new(Tsn(u32::MAX - 1));
    for _ in 0..6 {
        f.push(chunk(), PathId(0));
    }
    let gap = |start, end| GapBlock { start, end };
    let (mut acked, mut reneged) = (vec![], vec![]);
    f.ack_gaps(
        [gap(2, 3), gap(5, 5)].into_iter(),
        Outside::Missing,
        |t, _, _| acked.push(t.0),
        |t, _| reneged.push(t.0),
    );
    assert_eq!((&acked[..], &reneged[..]), (&[u32::MAX, 0, 2][..], &[][..]));
    assert_eq!(f.bytes(), 60);
    let mut missing = vec![];
    f.for_each_missing(f.highest_acked(), false, |t, _| missing.push(t.0));
    assert_eq!(missing, [u32::MAX - 1, 1]);
    acked.clear();
    f.ack_gaps(
        [gap(3, 4)].into_iter(),
        Outside::Missing,
        |t, _, _| acked.push(t.0),
        |t, _| reneged.push(t.0),
    );
    assert_eq!((&acked[..], &reneged[..]), (&[1][..], &[u32::MAX, 2][..]));
    f.check().unwrap();
    let mut gone = 0;
    f.ack_cumulative(Tsn(1), |_, _, _| gone += 1);
    assert_eq!((gone, f.ack_point(), f.highest()), (4, Tsn(1), Tsn(3)));
    f.check().unwrap();
}

/// A SACK that left out blocks shows nothing about chunks outside of its blocks.
#[test]
fn a_partial_sack_reneges_nothing() {
    let mut f = InFlight::new(Tsn(0));
    for _ in 0..12 {
        f.push(chunk(), PathId(0));
    }
    let (mut acked, mut reneged) = (vec![], vec![]);
    for (blocks, outside) in [
        (vec![(2, 3), (6, 7), (10, 10)], Outside::Missing),
        (vec![(6, 6), (11, 12)], Outside::Unknown),
    ] {
        acked.clear();
        let gaps = blocks.into_iter().map(|(start, end)| GapBlock { start, end });
        f.ack_gaps(gaps, outside, |t, _, _| acked.push(t.0), |t, _| reneged.push(t.0));
        f.check().unwrap();
    }
    assert_eq!((&acked[..], &reneged[..]), (&[10, 11][..], &[][..]));
    assert_eq!(f.highest_acked(), Tsn(11));
}

/// A SACK without room for more blocks leaves the chunks above its last block as they are.
#[test]
fn a_full_sack_reneges_nothing_above_its_last_block() {
    let mut f = InFlight::new(Tsn(0));
    for _ in 0..12 {
        f.push(chunk(), PathId(0));
    }
    let gap = |start, end| GapBlock { start, end };
    f.ack_gaps([gap(3, 3), gap(6, 9)].into_iter(), Outside::Missing, |_, _, _| {}, |_, _| {});
    let (mut acked, mut reneged) = (vec![], vec![]);
    f.ack_gaps(
        [gap(5, 7)].into_iter(),
        Outside::MissingBelow,
        |t, _, _| acked.push(t.0),
        |t, _| reneged.push(t.0),
    );
    assert_eq!((&acked[..], &reneged[..]), (&[4][..], &[2][..]));
    assert_eq!(f.highest_acked(), Tsn(8));
    f.check().unwrap();
}

#[test]
fn an_overtaken_sack_leaves_out_what_is_acknowledged() {
    let mut f = InFlight::new(Tsn(0));
    for _ in 0..12 {
        f.push(chunk(), PathId(0));
    }
    let gap = |start, end| GapBlock { start, end };
    f.ack_gaps([gap(3, 5), gap(8, 9)].into_iter(), Outside::Missing, |_, _, _| {}, |_, _| {});
    let known =
        |cumulative, gaps: &[GapBlock]| f.reports_more_than(cumulative, gaps.iter().copied());
    assert!(!known(f.ack_point(), &[gap(3, 5), gap(8, 9)]), "a copy");
    assert!(!known(f.ack_point(), &[gap(3, 6)]), "it acknowledges one more");
    assert!(!known(Tsn(0), &[]), "it advances the ack point");
    for gaps in [&[gap(3, 4)][..], &[gap(8, 9)], &[]] {
        assert!(known(f.ack_point(), gaps), "{gaps:?}");
    }
}

proptest! {
    /// Compares random SACKs, losses and retransmissions with a plain map.
    #[test]
    fn agrees_with_a_map(start in any::<u32>(), steps in prop::collection::vec((0u8..5, any::<u16>(), any::<u32>()), 1..80)) {
        let mut f = InFlight::new(Tsn(start));
        let mut model: BTreeMap<u32, Fate> = BTreeMap::new();
        let (mut first, mut next) = (0u32, 0u32);
        for (what, a, bits) in steps {
            match what {
                0 | 1 => for _ in 0..a % 8 {
                    let (tsn, _) = f.push(chunk(), PathId(0));
                    prop_assert_eq!(tsn, Tsn(start).plus(next));
                    model.insert(next, Fate::InFlight);
                    next += 1;
                },
                2 => {
                    let n = u32::from(a) % (next - first + 1);
                    if n == 0 { continue; }
                    let mut seen = vec![];
                    f.ack_cumulative(Tsn(start).plus(first + n - 1), |t, _, fate| seen.push((t.offset_from(Tsn(start)), fate)));
                    let expected: Vec<_> = (first..first + n).map(|k| (k, model.remove(&k).unwrap())).collect();
                    prop_assert_eq!(seen, expected);
                    first += n;
                }
                3 => {
                    // A SACK that acknowledges the chunks whose bit is set, never the first.
                    let set: Vec<u32> = (first + 1..next).filter(|k| bits >> ((k - first) % 32) & 1 == 1).collect();
                    let gaps = set.iter().map(|k| { let o = k - first + 1; GapBlock { start: o, end: o } });
                    let (mut acked, mut reneged) = (vec![], vec![]);
                    f.ack_gaps(gaps, Outside::Missing, |t, _, fate| acked.push((t.offset_from(Tsn(start)), fate)), |t, _| reneged.push(t.offset_from(Tsn(start))));
                    let mut expected = (vec![], vec![]);
                    for (k, fate) in &mut model {
                        let now = set.contains(k);
                        if now && *fate != Fate::Acked { expected.0.push((*k, *fate)); *fate = Fate::Acked; }
                        else if !now && *fate == Fate::Acked { expected.1.push(*k); *fate = Fate::InFlight; }
                    }
                    prop_assert_eq!((acked, reneged), expected);
                }
                _ => {
                    if next == first { continue; }
                    let k = first + u32::from(a) % (next - first);
                    let tsn = Tsn(start).plus(k);
                    if f.mark_lost(tsn, LossCause::Timeout) {
                        prop_assert_eq!(model.insert(k, Fate::Lost(LossCause::Timeout)), Some(Fate::InFlight));
                    } else if matches!(model[&k], Fate::Lost(_)) {
                        f.resend(tsn, PathId(1), f.highest());
                        model.insert(k, Fate::InFlight);
                    }
                }
            }
            prop_assert_eq!(f.check(), Ok(()));
            let lowest = model.iter().find(|(_, v)| matches!(v, Fate::Lost(_))).map(|(k, _)| Tsn(start).plus(*k));
            prop_assert_eq!(f.first_lost().map(|l| l.0), lowest);
        }
    }
}
