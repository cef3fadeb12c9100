//! The fuzz target `conversation`, without a fuzzer: its seeds, and random input.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use polypath_proto::wire::chunk_type;
use polypath_proto::{Rng, Seed};

#[path = "../../../../fuzz/shared/conversation.rs"]
mod conversation;

use conversation::converse;

#[test]
fn seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/conversation");
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    for name in &names {
        let outcome = converse(&fs::read(name).unwrap());
        match name.file_name().unwrap().to_str().unwrap() {
            "data" | "i_data" => assert!(outcome.received >= 2 && !outcome.closed, "{outcome:?}"),
            "forward_tsn" | "i_forward_tsn" => {
                assert!(outcome.received == 1 && !outcome.closed, "{outcome:?}");
            }
            "re_config" => assert!(outcome.reconfigured > 0 && !outcome.closed, "{outcome:?}"),
            "given_up" => assert!(outcome.given_up > 0, "{outcome:?}"),
            "wrong_kind" => assert!(outcome.received == 0 && outcome.closed, "{outcome:?}"),
            other => panic!("what comes of the seed {other}?"),
        }
    }
    assert_eq!(names.len(), 7);
}

/// Input that makes sense for the most part: what both sides offer, then steps.
fn script(dice: &mut Rng) -> Vec<u8> {
    let mut below = |n: u64| dice.below(n) as u8;
    let ours = below(64);
    let theirs = if below(4) > 0 { ours } else { below(16) };
    let mut script = vec![ours, theirs];
    // Data as it was agreed on, or anything.
    let agreed = u8::from(ours & theirs & 1 > 0);
    for _ in 0..8 + below(40) {
        match below(20) {
            0..=9 => {
                let chunks = below(3);
                script.push(chunks * 16);
                for _ in 0..=chunks {
                    let kind = match below(16) {
                        0..=7 => agreed,
                        8..=10 => 3 + agreed,
                        11..=13 => 5,
                        _ => below(16) | if below(8) == 0 { 0x80 } else { 0 },
                    };
                    let (flags, len) = match below(8) {
                        0..=4 => (3, 20),
                        5 | 6 => (below(8), 16 + below(40)),
                        _ => (below(256), below(80)),
                    };
                    script.extend([kind, flags, len]);
                    let first = if below(4) == 0 { below(256) } else { 0 };
                    script.extend((0..len).map(|i| match i {
                        0 => first,
                        2 | 3 => below(2),
                        _ => below(256),
                    }));
                }
            }
            10 => script.extend([8 + below(2), below(256), below(256)]),
            11 | 12 => script.extend([10, below(256)]),
            13 | 14 => script.push(11),
            15 => script.push(12),
            16 | 17 => script.extend([13, below(256), below(256)]),
            18 => script.extend([14, below(8), below(6)]),
            _ => script.extend([15, below(255), 0]),
        }
    }
    script
}

#[test]
fn random_conversations() {
    let mut dice = Rng::new(&Seed::from_u64(8260));
    let (mut said, mut received, mut given_up, mut reconfigured, mut closed) =
        (BTreeSet::new(), 0, 0, 0, 0);
    const CASES: u32 = 10_000;
    for _ in 0..CASES {
        let outcome = converse(&script(&mut dice));
        said.extend(outcome.said);
        received += outcome.received;
        given_up += outcome.given_up;
        reconfigured += outcome.reconfigured;
        closed += u32::from(outcome.closed);
    }
    let new = [
        chunk_type::I_DATA,
        chunk_type::FORWARD_TSN,
        chunk_type::I_FORWARD_TSN,
        chunk_type::RE_CONFIG,
        chunk_type::PAD,
        chunk_type::ECNE,
        chunk_type::CWR,
    ];
    assert!(new.iter().all(|ty| said.contains(ty)), "{said:?}");
    let seen = format!("{received} {given_up} {reconfigured} {closed}");
    assert!(received > 2_000 && given_up > 500 && reconfigured > 100, "{seen}");
    assert!((CASES / 10..CASES).contains(&closed), "{seen}");
}
