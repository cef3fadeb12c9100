//! Queues that drop or mark packets before they are full.

use polypath_sim::outcome::Outcome;
use polypath_sim::scenario::{CheckEvery, Series};
use polypath_sim::units::Span;
use polypath_sim::{RunOptions, Scenario};

use crate::congestion::mean_srtt;

/// A flow over 10 Mbit/s with a round-trip time of 40 ms, which are 33 packets. `more` are further
/// keys of the direction with data, `transport` of `[transport]`.
fn flow(more: &str, transport: &str) -> Outcome {
    let text = format!(
        r#"
        schema = 1
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "100 packets"
        forward = {{ {more} }}
        [transport]
        {transport}
        [workload]
        kind = "bulk"
        size = "1 GB"
        [run]
        limit = "60 s"
        "#
    );
    let series = Some(Series { interval: Some(Span::millis(20)) });
    let options =
        RunOptions { series, check_every: Some(CheckEvery::End), ..RunOptions::default() };
    Scenario::from_toml(&text).unwrap().run(&options).unwrap()
}

/// The mean smoothed round-trip time from the twentieth second on, in milliseconds.
fn round_trip(outcome: &Outcome) -> f64 {
    mean_srtt(outcome, 20.0)
}

/// The share of the link that carried data.
fn share(outcome: &Outcome) -> f64 {
    outcome.associations[0].forward.bytes_delivered as f64 * 8.0 / 60.0 / 1e7 * 1500.0 / 1452.0
}

const RED: &str = "red = { min = 10, max = 30 }";
const RENO: &str = r#"profile = "rfc9260""#;

/// The window of RFC 9260 fills a drop-tail queue of 100 packets and is then halved: between 33 and
/// 100 packets wait, 120 ms. Random early detection keeps its average between the thresholds, which
/// are 12 and 36 ms. With ns-2's RED, TCP that acknowledges every packet has 0.93 of the link and
/// 53 ms, and drop-tail 129 ms.
#[test]
fn random_early_detection_keeps_the_queue_short() {
    let (full, short) = (flow("", RENO), flow(RED, RENO));
    assert!(round_trip(&full) > 40.0 + 40.0, "{}", round_trip(&full));
    assert!((42.0..40.0 + 36.0).contains(&round_trip(&short)), "{}", round_trip(&short));
    assert!(share(&full) > 0.95 && share(&short) > 0.8, "{} {}", share(&full), share(&short));
}

/// Where ECN allows it, packets are marked instead, and fewer have to be sent again.
#[test]
fn a_sender_with_ecn_is_slowed_down_by_marks() {
    let lost = |transport| {
        let outcome = flow(RED, transport);
        let share = share(&outcome);
        assert!(share > 0.8, "{share}");
        let forward = outcome.links.iter().find(|link| link.name == "path0/forward").unwrap();
        (forward.counts.dropped_queue, round_trip(&outcome))
    };
    let (without, _) = lost(RENO);
    let (with, round_trip) = lost("profile = \"rfc9260\"\necn = true");
    assert!(with * 3 < without * 2, "{with} of {without}");
    assert!(round_trip < 40.0 + 36.0, "{round_trip}");
}
