//! The fuzz targets of state machines, without a fuzzer: their seeds, and random input.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use polypath_proto::wire::chunk_type;
use polypath_proto::{Rng, Seed};

#[path = "../../../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "it is a crate of its own for the fuzzer")]
mod fuzz;

use fuzz::conversation::Outcome;
use fuzz::{addresses, conversation};

fn seeds(target: &str, converse: fn(&[u8]) -> Outcome) -> Vec<(String, Outcome)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds").join(target);
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    let outcome = |name: std::path::PathBuf| {
        let outcome = converse(&fs::read(&name).unwrap());
        (name.file_name().unwrap().to_str().unwrap().to_owned(), outcome)
    };
    names.into_iter().map(outcome).collect()
}

/// Each new chunk has its effect once; repeated or truncated, it has no further effect.
#[test]
fn seeds_of_conversations() {
    let seeds = seeds("conversation", conversation::converse);
    for (name, o) in &seeds {
        // Messages received and abandoned, reconfigurations, unacknowledged bytes, closed.
        let expected = match name.as_str() {
            "data" => (3, 0, 0, 0, false),
            "i_data" => (2, 0, 0, 0, false),
            "given_up" => (0, 1, 0, 0, false),
            "re_config" => (1, 0, 2, 0, false),
            "re_config_answered" => (0, 0, 2, 0, false),
            "wrong_kind" => (0, 0, 0, 0, true),
            "zero_checksum_unasked" | "unauthenticated" => (0, 0, 0, 0, false),
            // Of 6001 bytes, one full chunk below the gap and one after it are released.
            "nr_sack" => (0, 0, 0, 6001 - 2 * 1452, false),
            // Profile `modern`: everything fits the first window.
            "packet_count" => (1, 0, 0, 0, false),
            "ecn" => (1, 0, 0, 6001 - 2 * 1452, false),
            "new_life" => (2, 0, 0, 0, false),
            // The message received before the restart was valid.
            "new_life_without_checksums" => (1, 0, 0, 0, false),
            "auth"
            | "forward_tsn"
            | "i_forward_tsn"
            | "path_mtu"
            | "retransmission_flag"
            | "timestamp"
            | "zero_checksum" => (1, 0, 0, 0, false),
            other => panic!("what comes of the seed {other}?"),
        };
        let t = &o.told;
        assert_eq!((o.received, t.given_up, t.reconfigured, o.kept, t.closed), expected, "{name}");
    }
    assert_eq!(seeds.len(), 20);
}

#[test]
fn seeds_of_addresses() {
    let seeds = seeds("addresses", addresses::converse);
    for (name, o) in &seeds {
        // Paths added, local address changes granted, messages received, closed.
        let expected = match name.as_str() {
            "asconf" | "asconf_without_auth" => (2, 0, 1, false),
            // The last one acknowledges an ASCONF that was never sent.
            "asconf_ack" => (3, 1, 0, true),
            "stranger" => (2, 0, 0, false),
            other => panic!("what comes of the seed {other}?"),
        };
        assert_eq!((o.told.added, o.told.moved, o.received, o.told.closed), expected, "{name}");
    }
    assert_eq!(seeds.len(), 4);
}

/// Mostly sensible input: the extensions of both sides, then steps with chunks of this number of
/// kinds.
fn script(dice: &mut Rng, kinds: u64) -> Vec<u8> {
    let mut below = |n: u64| dice.below(n) as u8;
    let ours = [below(256), below(128)];
    let theirs = if below(4) > 0 { ours } else { [below(16), below(64)] };
    let mut script = [ours, theirs].concat();
    // The agreed kind of data chunk, or any chunk.
    let agreed = u8::from(ours[0] & theirs[0] & 1 > 0);
    for _ in 0..8 + below(40) {
        match below(20) {
            0..=9 => {
                let chunks = below(3);
                let how = if below(4) == 0 { below(256) } else { 0 };
                script.extend([chunks * 16, how]);
                for _ in 0..=chunks {
                    let kind = match below(16) {
                        0..=6 => agreed,
                        7 | 8 => 3 + agreed,
                        9 | 10 => 5,
                        _ => below(kinds) | if below(8) == 0 { 0x80 } else { 0 },
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
            _ => {
                let what = if below(2) == 0 { below(244) } else { 244 + below(11) };
                script.extend([15, what, below(256)]);
            }
        }
    }
    script
}

/// The sum of the outcomes of random scripts, and the number of associations that closed.
fn random(seed: u64, cases: u32, kinds: u64, converse: fn(&[u8]) -> Outcome) -> (Outcome, u32) {
    let mut dice = Rng::new(&Seed::from_u64(seed));
    let (mut sum, mut closed) = (Outcome::default(), 0);
    for _ in 0..cases {
        let outcome = converse(&script(&mut dice, kinds));
        sum.said.extend(outcome.said);
        sum.received += outcome.received;
        sum.told.given_up += outcome.told.given_up;
        sum.told.reconfigured += outcome.told.reconfigured;
        sum.told.added += outcome.told.added;
        sum.told.moved += outcome.told.moved;
        closed += u32::from(outcome.told.closed);
    }
    (sum, closed)
}

#[test]
fn random_conversations() {
    const CASES: u32 = 6_000;
    let (sum, closed) = random(8260, CASES, 26, conversation::converse);
    let new = [
        chunk_type::I_DATA,
        chunk_type::FORWARD_TSN,
        chunk_type::I_FORWARD_TSN,
        chunk_type::RE_CONFIG,
        chunk_type::PAD,
        chunk_type::ECNE,
        chunk_type::CWR,
        chunk_type::NR_SACK,
        chunk_type::AUTH,
        chunk_type::ASCONF,
        chunk_type::ASCONF_ACK,
        chunk_type::TIMESTAMP,
        chunk_type::HEARTBEAT,
    ];
    assert_eq!(new.into_iter().collect::<BTreeSet<_>>().difference(&sum.said).next(), None);
    assert!(sum.received > 1_000 && sum.told.given_up > 200, "{sum:?}");
    assert!(sum.told.reconfigured > 50, "{sum:?}");
    assert!((CASES / 10..CASES).contains(&closed), "{closed}");
}

#[test]
fn random_changes_of_addresses() {
    let (sum, _) = random(5061, 3_000, 16, addresses::converse);
    assert!(sum.told.added > 4_000 && sum.told.moved > 100 && sum.received > 100, "{sum:?}");
}
