//! Estimates of bandwidth, delay and queue on links of known rate, and the path selection based on
//! them (Qiao 2008, 5.2).

use polypath_sim::outcome::PathOutcome;
use polypath_sim::{RunOptions, Scenario};

/// The network of Qiao 2008 (rates in kbit/s), with the policy that selects paths by the model.
fn scenario(primary: u32, secondary: u32, profile: &str, limit: &str) -> Scenario {
    let text = format!(
        r#"
        schema = 1
        [[path]]
        name = "primary"
        rate = "{primary} kbit/s"
        delay = "50 ms"
        queue = "49 packets"
        [[path]]
        name = "secondary"
        rate = "{secondary} kbit/s"
        delay = "300 ms"
        queue = "49 packets"
        [transport]
        profile = "{profile}"
        receive_buffer = "1 MB"
        send_buffer = "4 MB"
        initial_ssthresh = "1 MB"
        [policy]
        retransmission = "receive-buffer"
        [workload]
        kind = "bulk"
        size = "20 MB"
        [run]
        check_content = false
        limit = "{limit}"
        "#
    );
    Scenario::from_toml(&text).unwrap()
}

fn paths(scenario: &Scenario) -> Vec<PathOutcome> {
    let outcome = scenario.run(&RunOptions::default()).unwrap();
    outcome.associations[0].sender.paths.clone()
}

#[test]
fn the_estimates_are_those_of_the_links() {
    for profile in ["rfc9260", "paper-2006"] {
        for (primary, secondary, limit) in
            [(1000, 36, "30 s"), (5000, 384, "10 s"), (15_000, 2000, "6 s")]
        {
            let paths = paths(&scenario(primary, secondary, profile, limit));
            let near = |measured: Option<f64>, kbits: u32, within: f64| {
                let share = measured.unwrap() * 8.0 / 1000.0 / f64::from(kbits);
                assert!((share - 1.0).abs() < within, "{profile} {primary}/{secondary}: {share}");
            };
            near(paths[0].bandwidth, primary, 0.05);
            near(paths[1].pair_bandwidth, secondary, 0.01);
            // Transmission times of the pair's packets of 1500 bytes, there and back.
            let kbits = 3.0 * 12.0 / f64::from(secondary);
            let rtt = paths[1].rtt_min.unwrap();
            assert!(rtt >= 0.6 && rtt <= 0.6 + kbits, "{profile}: {rtt}");
        }
    }
}

/// The queue of 50 packets, estimated from the range of the round-trip times.
#[test]
fn the_queue_is_that_of_the_bottleneck() {
    for profile in ["rfc9260", "paper-2006"] {
        let paths = paths(&scenario(2000, 36, profile, "60 s"));
        let spread = paths[0].rtt_max.unwrap() - paths[0].rtt_min.unwrap();
        let packets = paths[0].bandwidth.unwrap() * spread / 1500.0;
        assert!((40.0..=60.0).contains(&packets), "{profile}: {packets}");
    }
}

/// Tables 1 and 2: nothing is retransmitted on the secondary path where it would block the receive
/// buffer.
#[test]
fn fast_retransmissions_take_the_path_that_equation_8_says() {
    let counts = |primary, secondary| {
        let paths = paths(&scenario(primary, secondary, "paper-2006", "30 s"));
        (paths[0].counts.fast_retransmissions, paths[1].counts.fast_retransmissions)
    };
    for (primary, secondary) in [(10_000, 36), (2000, 36), (10_000, 384), (6000, 384)] {
        let (same, other) = counts(primary, secondary);
        assert!(same > 20 && other == 0, "{primary}/{secondary}: {same}, {other}");
    }
    for (primary, secondary) in [(2000, 384), (1000, 384), (512, 384)] {
        let (same, other) = counts(primary, secondary);
        assert!(other > 20 && same == 0, "{primary}/{secondary}: {same}, {other}");
    }
}
