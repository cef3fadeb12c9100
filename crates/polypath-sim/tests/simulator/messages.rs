//! Fifty messages of 1 kB a second over a path that loses a fifth of its packets in bursts and one
//! whose queue of a second a competitor fills. docs/paths.md has more cells.

use polypath_sim::units::Span;
use polypath_sim::{RunOptions, Scenario};

/// A network of both paths, and messages over those in `used`; without `loaded` nothing is lost and
/// there is no competitor. Returns the 99th percentile of the delivery times in milliseconds.
fn p99(used: &str, delivery: &str, loaded: bool, seed: u64) -> f64 {
    let loss = r#"loss = { good_to_bad = "0.01", bad_to_good = "0.04", loss_bad = "20 %" }"#;
    let competitor = r#"
        [[association]]
        name = "bulk"
        from = "sender"
        to = "receiver"
        paths = ["competitor"]
        workload = { size = "1 GB" }
        policy = { congestion = "cubic" }
        "#;
    let text = format!(
        r#"
        schema = 1
        [[path]]
        name = "bursts"
        rate = "20 Mbit/s"
        delay = "10 ms"
        edge = {{ rate = "1 Gbit/s", delay = "10 us" }}
        {}
        [[path]]
        name = "queue"
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "1250000 B"
        edge = {{ rate = "1 Gbit/s", delay = "10 us" }}
        [[path]]
        name = "competitor"
        shares = "queue"
        [[association]]
        name = "messages"
        from = "sender"
        to = "receiver"
        paths = {used}
        transport = {{ delivery = "{delivery}" }}
        workload = {{ kind = "periodic", messages = 2000, interval = "20 ms", message_size = "1 kB", unordered = "100 %", start = "5 s" }}
        {}
        [run]
        check_content = false
        check_checksums = false
        "#,
        if loaded { loss } else { "" },
        if loaded { competitor } else { "" },
    );
    let mut scenario = Scenario::from_toml(&text).unwrap();
    scenario.run.limit = Span::secs(60);
    let outcome = scenario.run(&RunOptions { seed: Some(seed), ..RunOptions::default() }).unwrap();
    let flow = &outcome.associations[0].forward;
    let times = flow.delivery_times.unwrap();
    if flow.messages_delivered < 2000 { f64::INFINITY } else { times.p99 * 1e3 }
}

#[test]
fn two_paths_deliver_messages_early_although_each_is_bad() {
    let both = r#"["bursts", "queue"]"#;
    let alone = [r#"["bursts"]"#, r#"["queue"]"#];
    let better = |loaded, seed| {
        alone
            .map(|used| p99(used, "standard", loaded, seed))
            .into_iter()
            .fold(f64::INFINITY, f64::min)
    };
    let unloaded = better(false, 1);
    for seed in 1..=3 {
        let redundant = p99(both, "redundant", true, seed);
        assert!(redundant <= 1.2 * unloaded, "{redundant:.1} ms, unloaded {unloaded:.1} ms");
        let (earliest, single) = (p99(both, "earliest", true, seed), better(true, seed));
        assert!(earliest < single, "{earliest:.1} ms, on one path {single:.1} ms");
        assert!(redundant < earliest, "{redundant:.1} ms, without copies {earliest:.1} ms");
    }
}
