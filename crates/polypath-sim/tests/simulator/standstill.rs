//! The profile `modern` over two paths, one of which fails, flaps, or only looks as if it did.
//! docs/paths.md has more cells.

use polypath_sim::units::Span;
use polypath_sim::{Outcome, RunOptions, Scenario};

/// A path: rate in Mbit/s, round-trip time in milliseconds.
type Link = (u32, u32);

/// A transfer over paths with queues of one bandwidth-delay product; `faults` is TOML.
fn run(links: &[Link], faults: &str, secs: f64, seed: u64) -> Outcome {
    let mut text = "schema = 1\n".to_owned();
    for (i, (rate, rtt)) in links.iter().enumerate() {
        text += &format!(
            "[[path]]\nname = \"p{i}\"\nrate = \"{rate} Mbit/s\"\ndelay = \"{} us\"\n\
             queue = \"{} B\"\n",
            rtt * 500,
            (rate * 125 * rtt).max(15_000)
        );
    }
    text += faults;
    text += "\n[workload]\nkind = \"bulk\"\nsize = \"8 GB\"\n[run]\ncheck_content = false\n\
             check_checksums = false\ncheck_every = \"end\"\n";
    let mut scenario = Scenario::from_toml(&text).unwrap();
    scenario.run.limit = Span::millis((secs * 1e3) as u64);
    scenario.run.blackout = Span::millis(1);
    scenario.run(&RunOptions { seed: Some(seed), ..RunOptions::default() }).unwrap()
}

/// The longest time in milliseconds without delivered data until `secs` seconds after a fault of
/// `path` at `at` ms.
fn standstill(links: &[Link], (path, at): (usize, u32), fault: &str, secs: f64, seed: u64) -> f64 {
    let fault = format!("[[fault]]\nat = \"{at} ms\"\npath = \"p{path}\"\n{fault}");
    let from = f64::from(at) / 1e3;
    let outcome = run(links, &fault, from + secs, seed);
    let flow = &outcome.associations[0].forward;
    let gaps = flow.blackouts.iter().filter(|gap| gap.start + gap.length >= from);
    let last = flow.last_delivered.map_or(secs, |last| from + secs - last);
    gaps.map(|gap| gap.length).fold(last, f64::max) * 1e3
}

/// How often and when the sender has left a path.
fn left(outcome: &Outcome) -> Vec<(u8, f64)> {
    let changes = outcome.associations[0].changes.iter();
    let leaves =
        changes.filter(|c| c.side == "sender" && c.to.as_deref() == Some("potentially failed"));
    leaves.map(|change| (change.path, change.at)).collect()
}

/// The path was paused for a third of a second, because the peer's window was closed, and is cut
/// when its queue has become empty: the round-trip time that it had before the pause is not
/// that of the data sent since.
#[test]
fn a_cut_after_a_pause_is_noticed_within_a_round_trip_without_the_queue() {
    for seed in [2, 3] {
        let at = 4400 + 37 * seed as u32;
        let time = standstill(&[(20, 300); 2], (1, at), "kind = \"down\"", 2.0, seed);
        assert!(time < 500.0, "{time:.0} ms");
    }
}

/// Hundreds of packets are in flight on both paths. SACKs are missing soon after a cut.
#[test]
fn a_path_with_many_packets_in_flight_is_left_soon() {
    let time = standstill(&[(20, 600); 2], (0, 6911), "kind = \"down\"", 1.5, 3);
    assert!(time < 1210.0, "{time:.0} ms");
}

/// The other path's window is full, as always while a file is sent. A chunk that the path with
/// losses has lost goes to it all the same, not again to the path with losses.
#[test]
fn a_full_window_of_the_other_path_does_not_keep_a_chunk_on_a_path_with_losses() {
    let half = "kind = \"loss\"\nloss = \"50 %\"";
    for (rtt, path, at, seed) in [(600, 1, 6874, 2), (300, 0, 4474, 2)] {
        let time = standstill(&[(20, rtt); 2], (path, at), half, 2.5, seed);
        assert!(time < f64::from(2 * rtt + 10), "{rtt} ms: {time:.0} ms");
    }
}

/// The last transmission of a chunk is the only packet in flight on a short path that loses half of
/// its packets. Data on the longer path makes the receiver send SACKs all the time (RFC 9260 6.2),
/// so that the chunk does not wait for the 200 ms by which a SACK may be delayed.
#[test]
fn a_single_packet_on_a_path_with_losses_does_not_wait_for_a_delayed_sack() {
    let half = "kind = \"loss\"\nloss = \"50 %\"";
    for (short, long, at, seed) in [(4, 40, 3533, 9), (10, 100, 3281, 13)] {
        let time = standstill(&[(20, short), (20, long)], (0, at), half, 6.0, seed);
        assert!(time < f64::from(2 * long + 10), "{short} and {long} ms: {time:.0} ms");
    }
}

/// A path that flaps faster than it can be of use costs nothing.
#[test]
fn a_flapping_path_is_no_worse_than_none() {
    let mut flaps = String::new();
    for at in (600..12_000).step_by(600) {
        flaps += &format!(
            "[[fault]]\nat = \"{at} ms\"\nfor = \"300 ms\"\npath = \"p1\"\nkind = \"down\"\n"
        );
    }
    let delivered = |links: &[Link], faults| {
        run(links, faults, 12.0, 1).associations[0].forward.bytes_delivered
    };
    let alone = delivered(&[(20, 100)], "");
    let both = delivered(&[(20, 100), (20, 20)], &flaps);
    assert!(both > alone, "{both} bytes with it, {alone} without");
}

/// The SACKs for the longer path return on the shorter one and on itself in turn; after the window
/// of the peer was closed, bursts overfill both queues twice. Neither is a failure of a path.
#[test]
fn nothing_fails_while_nothing_is_cut() {
    for links in [[(20, 100), (20, 200)], [(20, 200), (50, 200)]] {
        let outcome = run(&links, "", 9.0, 1);
        assert_eq!(left(&outcome), [], "{links:?}");
    }
}
