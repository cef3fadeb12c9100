//! The profile `modern` fills today's links without any other setting.

use polypath_sim::units::Span;
use polypath_sim::{RunOptions, Scenario};

/// 1452 bytes of each packet of 1500 are payload.
const PAYLOAD: f64 = 1452.0 / 1500.0;

/// A link for one flow: rate in Mbit/s, round-trip time in milliseconds, loss in percent in each
/// direction, queue in bandwidth-delay products.
type Link = (u32, u32, f64, f64);

/// Payload delivered over a link by each of these seconds, with these constants.
fn delivered<const N: usize>(link: Link, secs: [u64; N], constants: &str) -> [f64; N] {
    bytes(&scenario(link, "", constants), secs, &RunOptions::default())
}

fn bytes<const N: usize>(scenario: &Scenario, secs: [u64; N], options: &RunOptions) -> [f64; N] {
    let delivered = scenario.delivered_by(options, &secs.map(Span::secs)).unwrap();
    std::array::from_fn(|time| delivered[time][0] as f64)
}

/// A transfer that outlasts all of these runs, over a link with these further parameters.
fn scenario((rate, rtt, loss, queue): Link, path: &str, constants: &str) -> Scenario {
    let queue = (f64::from(rate * 125 * rtt) * queue) as u64;
    let text = format!(
        r#"
        schema = 1
        [[path]]
        rate = "{rate} Mbit/s"
        delay = "{} us"
        queue = "{} B"
        loss = "{loss} %"
        {path}
        [transport]
        profile = "modern"
        {constants}
        [workload]
        kind = "bulk"
        size = "4 GB"
        message_size = "58080 B"
        [run]
        check_content = false
        check_checksums = false
        "#,
        rtt * 500,
        queue.max(3000),
    );
    Scenario::from_toml(&text).unwrap()
}

/// The share of the link that payload could use, from the second second to the sixth.
fn share(link: Link, path: &str, policy: &str, seed: u64) -> f64 {
    let options = RunOptions { seed: Some(seed), ..RunOptions::default() };
    let [first, all] = bytes(&scenario(link, path, policy), [1, 6], &options);
    (all - first) / (5.0 * f64::from(link.0) * 1e6 / 8.0 * PAYLOAD)
}

/// The share of the link that payload could use, from the second second to the eleventh, and from
/// the first to the eleventh.
fn shares(link: Link) -> (f64, f64) {
    let [first, all] = delivered(link, [1, 11], "");
    let full = f64::from(link.0) * 1e6 / 8.0 * PAYLOAD;
    ((all - first) / 10.0 / full, all / 11.0 / full)
}

#[test]
fn links_without_loss_are_filled() {
    for rate in [20, 100] {
        for rtt in [10, 20, 100] {
            let link = (rate, rtt, 0.0, 1.0);
            let (after, overall) = shares(link);
            assert!(after >= 0.95, "{link:?}: {after:.3}");
            // Slow start takes longer than a tenth of eleven seconds otherwise.
            assert!(overall >= 0.9 || rtt > 20, "{link:?}: {overall:.3}");
        }
    }
}

/// The buffers grow with the window: 25 MB are in flight, and slow start is as fast as with buffers
/// that have their largest size from the beginning. Then the link stays full: SACKs report what
/// they have room for, and no limit on TSNs stops the sender while losses of slow start are
/// repaired.
#[test]
fn a_long_fat_link_is_filled() {
    let link = (1000, 200, 0.0, 1.0);
    let fixed = "initial_receive_buffer = \"off\"\ninitial_send_buffer = \"off\"";
    let [at_first, ends @ ..] = delivered(link, [3, 4, 6, 8, 10, 12], "");
    let [without_tuning] = delivered(link, [3], fixed);
    assert!(at_first >= 0.99 * without_tuning, "{at_first} instead of {without_tuning} bytes");
    let full = f64::from(link.0) * 1e6 / 8.0 * PAYLOAD;
    let shares: Vec<f64> = ends.windows(2).map(|e| (e[1] - e[0]) / 2.0 / full).collect();
    assert!(shares.iter().all(|share| *share >= 0.9), "{shares:.3?} after slow start");
    let share = (ends[4] - ends[0]) / 8.0 / full;
    assert!(share >= 0.95, "{share:.3} after slow start: {shares:.3?}");
}

/// At 1 % each round trip has a chunk that is lost twice, so that three of them pass until it is
/// acknowledged: the buffers hold all that is sent meanwhile, 75 MB.
#[test]
fn a_long_fat_link_that_loses_packets_is_filled() {
    let link = (1000, 200, 1.0, 1.0);
    let [begin, end] = delivered(link, [4, 10], "");
    let share = (end - begin) / (6.0 * f64::from(link.0) * 1e6 / 8.0 * PAYLOAD);
    assert!(share >= 0.85, "{share:.3} after slow start");
}

/// Two round trips pass until a lost chunk is acknowledged, in which 10^5 others are sent: more
/// than gap ack blocks of 16 bits count.
#[test]
fn a_window_of_more_than_2_16_packets_is_filled() {
    let link = (1000, 600, 0.01, 1.0);
    let [begin, end] = delivered(link, [12, 18], "");
    let share = (end - begin) / (6.0 * f64::from(link.0) * 1e6 / 8.0 * PAYLOAD);
    assert!(share >= 0.85, "{share:.3} after slow start");
}

/// ProbeRTT does not halve the window of a path whose queue each DOWN drains. Slow start leaves
/// 0.94 of the minute.
#[test]
fn a_link_with_a_long_round_trip_time_is_filled() {
    let link = (20, 600, 0.0, 1.0);
    let [first, all] = delivered(link, [1, 60], "");
    let share = (all - first) / (59.0 * f64::from(link.0) * 1e6 / 8.0 * PAYLOAD);
    assert!(share >= 0.9, "{share:.3}");
}

/// In slow start, data that waits for a retransmission makes the receive buffer grow as if it were
/// read, so that the window does not hold back the sender. From buffers that have their largest
/// size at first nearly as much arrives.
#[test]
fn losses_in_slow_start_do_not_close_the_window() {
    let link = (100, 200, 1.0, 1.0);
    let fixed = "initial_receive_buffer = \"off\"\ninitial_send_buffer = \"off\"";
    let [tuned] = delivered(link, [4], "");
    let [without_tuning] = delivered(link, [4], fixed);
    assert!(tuned >= 0.9 * without_tuning, "{tuned} instead of {without_tuning} bytes");
}

/// The marks of DOWN are for the queue of the probe before: CRUISE is not as slow as DOWN for them.
#[test]
fn links_with_codel_are_filled() {
    for (rate, rtt) in [(10, 40), (20, 20)] {
        for ecn in [true, false] {
            let link = (rate, rtt, 0.0, 20.0);
            let constants = format!("ecn = {ecn}");
            let scenario = scenario(link, "codel = {}", &constants);
            let [first, all] = bytes(&scenario, [1, 16], &RunOptions::default());
            let share = (all - first) / (15.0 * f64::from(rate) * 1e6 / 8.0 * PAYLOAD);
            assert!(share >= 0.96, "{link:?}, ECN {ecn}: {share:.3}");
        }
    }
}

#[test]
fn links_with_a_short_queue_are_filled() {
    for link in [(20, 20, 0.0, 0.25), (100, 20, 0.0, 0.25), (100, 100, 0.0, 0.25)] {
        let (after, _) = shares(link);
        assert!(after >= 0.9, "{link:?}: {after:.3}");
    }
}

#[test]
fn links_that_lose_packets_are_filled() {
    for (loss, least) in [(0.01, 0.9), (0.1, 0.9), (1.0, 0.85)] {
        for (rate, rtt) in [(20, 20), (20, 100), (100, 20), (100, 100)] {
            let link = (rate, rtt, loss, 1.0);
            let (after, _) = shares(link);
            assert!(after >= least, "{link:?}: {after:.3}");
        }
    }
    for (rate, rtt) in [(20, 20), (20, 100), (100, 100)] {
        let (after, _) = shares((rate, rtt, 3.0, 1.0));
        assert!(after >= 0.8, "{rate} Mbit/s, {rtt} ms, 3 %: {after:.3}");
    }
}

/// Random losses are not taken for congestion, whatever their order: neither in Startup, nor while
/// bandwidth is probed.
#[test]
fn lossy_links_are_filled_with_any_seed() {
    for seed in [1, 2, 4, 5] {
        for link in [(20, 20, 1.0, 1.0), (20, 20, 3.0, 1.0), (20, 100, 3.0, 1.0)] {
            let share = share(link, "", "", seed);
            assert!(share >= 0.9, "{link:?}, seed {seed}: {share:.3}");
        }
    }
    for (link, seed) in [((100, 100, 3.0, 1.0), 4), ((100, 100, 3.0, 0.25), 4)] {
        let share = share(link, "", "", seed);
        assert!(share >= 0.85, "{link:?}, seed {seed}: {share:.3}");
    }
}

/// One packet in ten is late by up to 20 ms. Before the reordering is known, later packets make it
/// look lost, again and again in slow start: each of these reactions is undone.
#[test]
fn reordering_does_not_end_slow_start() {
    let reordered = "reorder = { probability = \"10 %\", delay = \"20 ms\" }";
    let cubic = "[policy]\ncongestion = \"cubic\"";
    for seed in 1..=4 {
        let link = (50, 100, 0.0, 1.0);
        let share = share(link, reordered, cubic, seed);
        assert!(share >= 0.8, "seed {seed}: {share:.3}");
    }
}

/// The outcome on a link of 20 Mbit/s and 20 ms, whose queue of four bandwidth-delay products marks
/// packets beyond a fourth of it: retransmissions, and the share of the link.
fn with_marks(congestion: &str, ecn: bool) -> (u64, f64) {
    let text = format!(
        r#"
        schema = 1
        path = [{{ rate = "20 Mbit/s", delay = "10 ms", queue = "200 kB", mark_at = 34 }}]
        transport = {{ profile = "modern", ecn = {ecn} }}
        policy = {{ congestion = "{congestion}" }}
        workload = {{ kind = "bulk", size = "4 GB" }}
        run = {{ limit = "11 s", check_content = false }}
        "#
    );
    let outcome = Scenario::from_toml(&text).unwrap().run(&RunOptions::default()).unwrap();
    let association = &outcome.associations[0];
    let counts = association.sender.paths[0].counts;
    let share = association.forward.bytes_delivered as f64 / (11.0 * 2.5e6 * PAYLOAD);
    (counts.fast_retransmissions + counts.timeout_retransmissions, share)
}

#[test]
fn marks_take_the_place_of_losses() {
    assert!(with_marks("cubic", false).0 > 10, "it fills the queue");
    for congestion in ["bbr", "cubic"] {
        let (again, share) = with_marks(congestion, true);
        // The last chunk may be probed.
        assert!(again <= 1 && share >= 0.9, "{congestion}: {again} retransmissions, {share:.3}");
    }
}
