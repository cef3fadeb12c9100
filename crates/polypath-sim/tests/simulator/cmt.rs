//! Concurrent multipath transfer: its total goodput, the effect of its parts, and that reordering
//! between paths causes no retransmissions (Iyengar 2004, 2006).

use polypath_sim::link::LossModel;
use polypath_sim::outcome::Outcome;
use polypath_sim::units::Probability;
use polypath_sim::{RunOptions, Scenario};
use proptest::prelude::*;

/// A bulk transfer over paths of (rate in kbit/s, one-way delay in ms, queue in packets).
fn scenario(paths: &[(u32, u32, u32)], transport: &str, policy: &str, bytes: u64) -> Scenario {
    let mut text = String::from("schema = 1\n");
    for (rate, delay, queue) in paths {
        text += &format!(
            "[[path]]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay} ms\"\nqueue = \"{queue} packets\"\n"
        );
    }
    text += &format!("[transport]\n{transport}\n");
    if !policy.is_empty() {
        text += &format!("[policy]\n{policy}\n");
    }
    text += &format!("[workload]\nkind = \"bulk\"\nsize = \"{bytes} B\"\n");
    text += "[run]\ncheck_every = \"200 events\"\n";
    Scenario::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = scenario.run(&RunOptions::default()).unwrap();
    assert!(outcome.associations[0].complete, "{outcome:#?}");
    outcome
}

/// Goodput in bytes per second.
fn goodput(paths: &[(u32, u32, u32)], transport: &str, bytes: u64) -> f64 {
    let outcome = run(&scenario(paths, transport, "", bytes));
    bytes as f64 / outcome.associations[0].forward.time_from_first_data.unwrap()
}

/// Sum of the goodputs of each path alone, in transfers that take as long as one over all paths.
fn sum_alone(paths: &[(u32, u32, u32)], transport: &str, bytes: u64) -> f64 {
    let total: u32 = paths.iter().map(|p| p.0).sum();
    let share = |rate: u32| bytes * u64::from(rate) / u64::from(total);
    paths.iter().map(|&p| goodput(&[p], transport, share(p.0))).sum()
}

const CMT: &str = "profile = \"cmt\"\nreceive_buffer = \"4 MiB\"\nsend_buffer = \"8 MiB\"";

#[test]
fn two_and_three_clean_paths_add_up() {
    for n in [2, 3] {
        let paths = vec![(10_000, 45, 100); n];
        let bytes = 20_000_000 * n as u64;
        let (together, alone) = (goodput(&paths, CMT, bytes), sum_alone(&paths, CMT, bytes));
        assert!(together >= 0.97 * alone, "{n} paths: {together:.0} of {alone:.0} bytes/s");
    }
}

/// Slow start overshoots two paths of 100 Mbit/s and 100 ms whose queues hold a bandwidth-delay
/// product each: about every other packet of a window is lost, in more runs than a SACK has room
/// for gap ack blocks (RFC 9260 6.2: "as many Gap Ack Blocks as can fit"), so most of the data
/// received is not acknowledged until the cumulative TSN is close to it. With any buffer, and over
/// one path or two, the transfer takes at most twice the time of the bits and three seconds.
#[test]
fn more_losses_than_gap_blocks_cost_no_more_than_a_timeout() {
    const BYTES: u64 = 50_000_000;
    for (paths, transport) in [
        (2, "profile = \"cmt\"\nreceive_buffer = \"16 MiB\"\nsend_buffer = \"16 MiB\""),
        (2, "profile = \"cmt\"\nreceive_buffer = \"64 MiB\"\nsend_buffer = \"64 MiB\""),
        (1, "profile = \"rfc9260\"\nreceive_buffer = \"16 MiB\"\nsend_buffer = \"16 MiB\""),
        (2, "profile = \"rfc9260\"\nreceive_buffer = \"16 MiB\"\nsend_buffer = \"16 MiB\""),
    ] {
        let links = vec![(100_000, 50, 833); paths];
        let outcome = run(&scenario(&links, transport, "", BYTES));
        let seconds = outcome.associations[0].forward.time_from_first_data.unwrap();
        let used = if transport.contains("cmt") { paths as f64 } else { 1.0 };
        let bits = BYTES as f64 * 8.0 / (1e8 * used);
        // Slow start, the timeout, and the second slow start take a second each.
        assert!(seconds < 2.0 * bits + 3.0, "{paths} paths, {transport}: {seconds:.1} s");
    }
}

/// Paths of 10 and 2 Mbit/s whose delays differ by a factor of ten, 20 and 200 ms one way or there
/// and back, with a receive buffer of twice the sum of their bandwidth-delay products, and with one
/// of twice the total bandwidth times the longer round-trip time.
#[test]
fn paths_of_unequal_rate_and_delay_add_up() {
    for (delays, buffers) in [([20, 200], [300, 1200]), ([10, 100], [150, 600])] {
        let paths = [(10_000, delays[0], 100), (2_000, delays[1], 100)];
        for buffer in buffers {
            let transport = |scheduler: &str| {
                format!(
                    "profile = \"cmt\"\nreceive_buffer = \"{buffer} kB\"\nsend_buffer = \"8 MiB\"\n\
                     [policy]\nscheduler = \"{scheduler}\""
                )
            };
            let bytes = 30_000_000;
            let alone = sum_alone(&paths, &transport("delay-aware"), bytes);
            let together = goodput(&paths, &transport("delay-aware"), bytes);
            let place = format!("{delays:?} ms, {buffer} kB");
            assert!(together >= 0.95 * alone, "{place}: {together:.0} of {alone:.0} bytes/s");
            // If data is scheduled in the order of TSNs, the slower path holds up the faster one.
            let in_order = goodput(&paths, &transport("concurrent"), bytes);
            let small = buffer == buffers[0];
            assert!(!small || in_order < 0.5 * alone, "{place}: {in_order:.0} in order");
        }
    }
}

/// A busy host or a busy link pauses for a moment now and then. Data sent in a burst after a pause
/// must not arrive later than its turn: otherwise the receive window fills up and opens only to the
/// next burst, from then on.
#[test]
fn what_a_pause_has_disordered_comes_to_order_again() {
    let paths = [(10_000, 20, 100), (2_000, 200, 100)];
    let transport = "profile = \"cmt\"\nreceive_buffer = \"300 kB\"\nsend_buffer = \"8 MiB\"";
    let bytes = 30_000_000;
    let alone = sum_alone(&paths, transport, bytes);
    // A program that sends a file sends large messages. The receiver holds all of a message until
    // it is complete.
    let mut text = scenario(&paths, transport, "", bytes).to_toml();
    text = text.replace("[workload]", "[workload]\nmessage_size = \"64 KiB\"");
    // A packet on each path takes 40 or 100 ms, seven times within two of the transfer's 21
    // seconds.
    for (at, rate) in
        [2000, 2400, 2700, 3000, 3200, 3500, 3800].into_iter().zip([300, 120].into_iter().cycle())
    {
        for (path, length) in [(0, 2), (1, 8)] {
            text += &format!(
                "[[fault]]\nat = \"{at} ms\"\nfor = \"{length} ms\"\npath = {path}\nkind = \"rate\"\n\
                 rate = \"{rate} kbit/s\"\n"
            );
        }
    }
    let outcome = run(&Scenario::from_toml(&text).unwrap());
    let goodput = bytes as f64 / outcome.associations[0].forward.time_from_first_data.unwrap();
    assert!(goodput >= 0.93 * alone, "{goodput:.0} of {alone:.0} bytes/s");
    assert_eq!(retransmissions(&outcome), 0);
}

/// Bounded buffers and data in the order of TSNs: splitting the receive buffer lets the faster path
/// continue, and NR-SACK frees the send buffer of data that waits at the receiver for the slower
/// path.
#[test]
fn split_buffers_and_nr_sack_help_unequal_paths() {
    let goodput = |buffers: &str, choice: &str| {
        let transport =
            format!("profile = \"cmt\"\n{buffers}\n{choice}\n[policy]\nscheduler = \"concurrent\"");
        goodput(&[(10_000, 20, 100), (2_000, 200, 100)], &transport, 15_000_000)
    };
    let small_receiver = "receive_buffer = \"300 kB\"\nsend_buffer = \"8 MiB\"";
    let plain = goodput(small_receiver, "");
    let split = goodput(small_receiver, "buffer_splitting = \"receive\"");
    assert!(split > 1.25 * plain, "{split:.0} bytes/s split, {plain:.0} not");
    let small_sender = "receive_buffer = \"4 MB\"\nsend_buffer = \"300 kB\"";
    let plain = goodput(small_sender, "");
    let both = goodput(small_sender, "nr_sack = true\nbuffer_splitting = \"send\"");
    assert!(both > 2.0 * plain, "{both:.0} bytes/s with NR-SACK and split, {plain:.0} without");
}

/// The gain of MFR over CMT, which the paper left open (2004, IV.B): a lost fast retransmission
/// need not wait for a timeout.
#[test]
fn multiple_fast_retransmit_saves_timeouts() {
    let timeouts = |loss: &str| -> u64 {
        (1..=8)
            .map(|seed| {
                let paths = [(10_000, 45, 100); 2];
                let policy = format!("loss = \"{loss}\"\nretransmission = \"same\"");
                let mut scenario = scenario(&paths, CMT, &policy, 4_000_000);
                for path in &mut scenario.paths {
                    path.loss = Some(LossModel::bernoulli(Probability::percent(8)));
                }
                scenario.seed = seed;
                let outcome = run(&scenario);
                outcome.associations[0].sender.paths.iter().map(|p| p.counts.timeouts).sum::<u64>()
            })
            .sum()
    };
    let (once, again) =
        (timeouts("split-fast-retransmit"), timeouts("split-multiple-fast-retransmit"));
    assert!(again * 3 < once * 2, "{again} timeouts with MFR, {once} without");
}

/// Retransmissions of the sender on all paths.
fn retransmissions(outcome: &Outcome) -> u64 {
    let counts = outcome.associations[0].sender.paths.iter().map(|p| &p.counts);
    counts.map(|c| c.fast_retransmissions + c.timeout_retransmissions).sum()
}

/// Retransmissions to each path.
fn retransmissions_by_path(outcome: &Outcome) -> Vec<u64> {
    let counts = outcome.associations[0].sender.paths.iter().map(|p| &p.counts);
    counts.map(|c| c.fast_retransmissions + c.timeout_retransmissions).collect()
}

/// Iyengar 2004, II: RTX-LOSSRATE knows the loss rates from the first retransmission on, and when
/// they change.
#[test]
fn the_network_tells_rtx_lossrate_which_path_loses_least() {
    let lossy = |first, second, rest: &str| {
        let mut s =
            scenario(&[(10_000, 45, 100); 2], CMT, "retransmission = \"loss-rate\"", 4_000_000);
        for (path, percent) in s.paths.iter_mut().zip([first, second]) {
            path.loss = Some(LossModel::bernoulli(Probability::percent(percent)));
        }
        Scenario::from_toml(&(s.to_toml() + rest)).unwrap()
    };
    let to = |scenario: &Scenario| retransmissions_by_path(&run(scenario));
    let (first, second) = (lossy(2, 3, ""), lossy(3, 2, ""));
    assert!(matches!(to(&first)[..], [n, 0] if n > 20));
    assert!(matches!(to(&second)[..], [0, n] if n > 20));
    // Between equal loss rates, the path is drawn at random.
    assert!(to(&lossy(3, 3, "")).into_iter().all(|n| n > 20));
    let swapped = "[[fault]]\nat = \"4 s\"\npath = 1\nkind = \"loss\"\nloss = \"1 %\"\n";
    let both = to(&lossy(2, 3, swapped));
    assert!(both.iter().all(|n| *n > 10), "{both:?}");
}

/// Iyengar 2004, IV.B: chunks sent within the last round trip do not count as lost when T3-rtx
/// expires; also with the papers' procedures.
#[test]
fn the_srtt_heuristic_saves_spurious_retransmissions() {
    for procedures in ["rfc9260", "ns2"] {
        let duplicates = |heuristic: bool| -> u64 {
            let transport = format!(
                "{CMT}\nprocedures = \"{procedures}\"\nsrtt_heuristic = {heuristic}\n\
                 burst_rule = \"after-retransmission\""
            );
            let policy = "loss = \"split-fast-retransmit\"\nretransmission = \"asap\"";
            let of = |seed: u64| {
                let mut scenario = scenario(&[(10_000, 45, 100); 2], &transport, policy, 4_000_000);
                for path in &mut scenario.paths {
                    path.loss = Some(LossModel::bernoulli(Probability::percent(5)));
                }
                scenario.seed = seed;
                run(&scenario).associations[0].receiver.counts.duplicates_received
            };
            (1..=6).map(of).sum()
        };
        let (with, without) = (duplicates(true), duplicates(false));
        assert!(with * 2 < without, "{procedures}: {with} with it, {without} without");
    }
}

/// The purpose of each of the three algorithms: without it, reordering between paths has the cost
/// that the paper reports (Iyengar 2006, III). Paths of unequal delay, no loss.
#[test]
fn without_its_algorithms_reordering_costs_retransmissions_growth_and_acks() {
    let paths = [(50_000, 100, 10_000), (50_000, 160, 10_000)];
    let buffers = "receive_buffer = \"8 MiB\"\nsend_buffer = \"8 MiB\"";
    let of = |policy: &str| {
        // Scheduling in the order of TSNs causes reordering.
        let policy = format!("scheduler = \"concurrent\"\n{policy}");
        run(&scenario(&paths, &format!("profile = \"cmt\"\n{buffers}"), &policy, 5_000_000))
    };
    let all = of("");
    let sacks = |outcome: &Outcome| outcome.associations[0].receiver.counts.sacks_sent;
    let seconds = |o: &Outcome| o.associations[0].forward.time_from_first_data.unwrap();
    assert_eq!(retransmissions(&all), 0);
    // Without SFR: spurious fast retransmissions.
    let without_sfr = of("loss = \"standard\"");
    assert!(retransmissions(&without_sfr) > 20, "{}", retransmissions(&without_sfr));
    // Without CUC: windows that grow only with the cumulative TSN. It advances whenever data
    // arrives in order, so windows still grow, but later.
    let without_cuc = of("cwnd_update = \"standard\"");
    assert!(seconds(&without_cuc) > seconds(&all), "{} {}", seconds(&without_cuc), seconds(&all));
    // Without DAC: a SACK for nearly every packet.
    let without_dac = of("ack = \"delayed\"");
    assert!(sacks(&without_dac) > sacks(&all) * 4 / 3, "{} {}", sacks(&without_dac), sacks(&all));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Without loss nothing is retransmitted, whatever the rates, delays and buffers, with any
    /// policy.
    #[test]
    fn nothing_is_retransmitted_without_loss(
        first in (500u32..50_000, 0u32..300),
        second in (500u32..50_000, 0u32..300),
        third in prop::option::of((500u32..50_000, 0u32..300)),
        buffer in 64u32..4096,
        policy in 0usize..5,
        cuc in 0usize..2,
        scheduler in 0usize..2,
        nr_sack in any::<bool>(),
        splitting in 0usize..4,
    ) {
        let paths: Vec<_> = [Some(first), Some(second), third].into_iter().flatten().map(|(r, d)| (r, d, 100_000)).collect();
        let splitting = ["off", "send", "receive", "both"][splitting];
        let transport = format!(
            "profile = \"cmt\"\nreceive_buffer = \"{buffer} KiB\"\nrto_initial = \"3 s\"\nnr_sack = {nr_sack}\n\
             buffer_splitting = \"{splitting}\""
        );
        let policy = format!(
            "retransmission = \"{}\"\ncwnd_update = \"{}\"\nscheduler = \"{}\"",
            ["same", "asap", "cwnd", "ssthresh", "loss-rate"][policy],
            ["cuc", "cuc-v2"][cuc],
            ["concurrent", "delay-aware"][scheduler],
        );
        let outcome = run(&scenario(&paths, &transport, &policy, 2_000_000));
        prop_assert_eq!(retransmissions(&outcome), 0);
    }
}
