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

const CUBIC: &str = "profile = \"modern\"\n[policy]\ncongestion = \"cubic\"";

/// RFC 8289: CoDel keeps the standing queue near its target, 5 ms, and the link busy. The window of
/// RFC 9260 is halved then, which costs it a part of the link: one bandwidth-delay product is more
/// than its queue.
#[test]
fn codel_keeps_the_queue_short() {
    for (transport, least) in [(RENO, 0.8), (CUBIC, 0.97)] {
        let (full, short) = (flow("", transport), flow("codel = {}", transport));
        assert!(round_trip(&full) > 40.0 + 40.0, "{}", round_trip(&full));
        assert!((41.0..50.0).contains(&round_trip(&short)), "{}", round_trip(&short));
        assert!(share(&short) > least, "{}", share(&short));
    }
}

#[test]
fn codel_marks_packets_where_ecn_allows_it() {
    let outcome = flow("codel = {}", "profile = \"rfc9260\"\necn = true");
    let forward = outcome.links.iter().find(|link| link.name == "path0/forward").unwrap();
    assert_eq!(forward.counts.dropped_queue, 0);
    assert!((41.0..50.0).contains(&round_trip(&outcome)), "{}", round_trip(&outcome));
    assert!(share(&outcome) > 0.8, "{}", share(&outcome));
}

/// Two transfers and messages over a link of 10 Mbit/s with the round-trip time 40 ms. `queue` are
/// keys of the link. Returns the shares of both transfers and the 99th percentile in milliseconds
/// of the times to the messages' delivery.
fn three_flows(queue: &str) -> (f64, f64, f64) {
    let text = format!(
        r#"
        schema = 1
        [[path]]
        name = "reno"
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "100 packets"
        edge = {{ rate = "1 Gbit/s", delay = "10 us" }}
        forward = {{ {queue} }}
        [[path]]
        name = "cubic"
        shares = "reno"
        [[path]]
        name = "messages"
        shares = "reno"
        [[association]]
        name = "reno"
        from = "sender"
        to = "receiver"
        paths = ["reno"]
        workload = {{ size = "1 GB" }}
        transport = {{ profile = "rfc9260" }}
        [[association]]
        name = "cubic"
        from = "sender"
        to = "receiver"
        paths = ["cubic"]
        workload = {{ size = "1 GB" }}
        policy = {{ congestion = "cubic" }}
        [[association]]
        name = "messages"
        from = "sender"
        to = "receiver"
        paths = ["messages"]
        workload = {{ kind = "periodic", messages = 1000, interval = "20 ms", message_size = "1 kB", start = "10 s" }}
        [run]
        limit = "60 s"
        "#
    );
    let options = RunOptions { check_every: Some(CheckEvery::End), ..RunOptions::default() };
    let outcome = Scenario::from_toml(&text).unwrap().run(&options).unwrap();
    let share = |n: usize| {
        outcome.associations[n].forward.bytes_delivered as f64 * 8.0 / 60.0 / 1e7 * 1500.0 / 1452.0
    };
    let times = outcome.associations[2].forward.delivery_times.unwrap();
    (share(0), share(1), times.p99 * 1e3)
}

/// RFC 8290 1.3: flows share the link equally, whatever their windows, and one that sends less than
/// its share does not wait behind the others.
#[test]
fn flows_take_turns_under_fq_codel() {
    let (reno, cubic, late) = three_flows("");
    assert!(late > 80.0 && cubic > 1.3 * reno, "{reno} {cubic} {late}");
    let (reno, cubic, soon) = three_flows("codel = { flows = 1024 }");
    // Before a message come the packet on the transmitter and one of each other flow, 1.2 ms each.
    // It takes 0.9 ms.
    assert!(soon < 20.0 + 0.9 + 3.0 * 1.2 + 0.1, "{soon}");
    // The window of RFC 9260 falls below its share after each mark.
    assert!(reno > 0.3 && (0.3..0.65).contains(&cubic), "{reno} {cubic}");
}

/// Background traffic waits in the same queue, an outage empties it, and the accounts stay right.
#[test]
fn outages_and_background_traffic_under_codel() {
    let text = r#"
        schema = 1
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        codel = { flows = 16 }
        queue = "40 packets"
        duplicate = "1 %"
        edge = { rate = "1 Gbit/s", delay = "10 us" }
        cross_traffic = { load = "80 %" }
        [[fault]]
        at = "3 s"
        for = "100 ms"
        kind = "down"
        path = "path0"
        [workload]
        size = "8 MB"
        "#;
    let options =
        RunOptions { check_every: Some(CheckEvery::Events(100)), ..RunOptions::default() };
    let outcome = Scenario::from_toml(text).unwrap().run(&options).unwrap();
    assert!(outcome.associations[0].complete);
    let forward = outcome.links.iter().find(|link| link.name == "path0/forward").unwrap();
    assert!(forward.counts.dropped_queue > 0 && forward.counts.lost_outage > 0);
}
