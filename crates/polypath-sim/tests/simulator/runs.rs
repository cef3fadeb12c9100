//! Whole runs: that they are reproducible, the papers' transfer time, and captures that other tools
//! read.

use std::process::Command;

use polypath_sim::link::{LossModel, LossScript, PacketKind, RateTrace, Reordering};
use polypath_sim::outcome::{End, Outcome};
use polypath_sim::scenario::{
    CheckEvery, Direction, EncapsulationSpec, Fault, LinkSpec, PathSpec, Series, SizeRange,
    Workload, WorkloadKind,
};
use polypath_sim::units::{Probability, QueueLimit, Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};

fn file(name: &str) -> Scenario {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::from_file(path).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> Outcome {
    scenario.run(&RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Two paths with all impairments, checked at every event.
fn rough() -> Scenario {
    let mut path = PathSpec::new(Rate::mbit(10), Span::millis(20));
    path.loss = Some(LossModel::bernoulli(Probability::percent(3)));
    path.reorder =
        Some(Reordering { probability: Probability::percent(3), delay: Span::millis(30) });
    path.duplicate = Some(Probability::percent(2));
    path.corrupt = Some(Probability::percent(1));
    let mut scenario = Scenario::new("rough")
        .path(path.clone())
        .path(path)
        .workload(Workload {
            streams: Some(8),
            message_size: Some(SizeRange { min: Size(1), max: Size(20_000) }),
            unordered: Some(Probability::percent(20)),
            direction: Some(Direction::Both),
            ..Workload::bulk(Size(1_000_000))
        })
        .fault(Fault::down(0, Span::secs(2)).lasting(Span::secs(10)));
    scenario.series = Some(Series::default());
    scenario.run.check_every = CheckEvery::Events(1);
    scenario
}

#[test]
fn the_same_scenario_and_seed_give_the_same_bytes() {
    let scenario = rough();
    let once = || {
        let mut capture = Vec::new();
        let outcome = scenario.run_captured(&RunOptions::default(), &mut capture).unwrap();
        (serde_json::to_string(&outcome).unwrap(), capture)
    };
    let (first, second) = (once(), once());
    assert!(first.0 == second.0, "two outcomes");
    assert!(first.1 == second.1, "two captures");
    let other = scenario.run(&RunOptions { seed: Some(2), ..RunOptions::default() }).unwrap();
    assert_ne!(first.0, serde_json::to_string(&other).unwrap());
    // The outcome is data: it survives the conversion to JSON and back.
    let read: Outcome = serde_json::from_str(&first.0).unwrap();
    assert!(read.associations[0].complete);
    assert_eq!(serde_json::to_string(&read).unwrap(), first.0);
    assert!(!read.series.is_empty());
    for series in &read.series {
        assert_eq!(series.time.len(), series.cwnd.len());
        assert!(series.time.is_sorted());
    }
}

#[test]
fn captures_and_checks_change_nothing() {
    let mut scenario = rough();
    scenario.series = None;
    let mut reference = run(&scenario);
    scenario.run.check_every = CheckEvery::End;
    scenario.run.check_content = false;
    assert_eq!(run(&scenario), reference);
    let with_series = RunOptions { series: Some(Series::default()), ..RunOptions::default() };
    let mut recorded = scenario.run(&with_series).unwrap();
    recorded.series.clear();
    reference.series.clear();
    assert_eq!(recorded, reference);
}

#[test]
fn eighty_megabytes_take_what_the_papers_state() {
    let scenario = file("f01-80mb");
    let outcome = run(&scenario);
    let association = &outcome.associations[0];
    assert!(association.complete);
    let time = association.forward.time_from_first_data.unwrap();
    assert!((time - 122.3).abs() < 0.3, "{time} s, but the papers have 122.3 s");
    assert!(outcome.links.iter().all(|link| link.counts.delivered == link.counts.offered));
}

#[test]
fn the_example_scenarios_complete() {
    for name in ["caro2006-two-paths", "bulk-3-percent", "two-uplinks", "demo", "dual-dumbbell"] {
        let outcome = run(&file(name));
        assert!(outcome.associations[0].complete, "{name}: {outcome:#?}");
        assert_eq!(outcome.end, End::Closed);
    }
}

#[test]
fn the_demo_goes_on_over_the_other_path_and_comes_back() {
    let outcome = run(&file("demo"));
    let association = &outcome.associations[0];
    let changes: Vec<_> = association.changes.iter().filter(|c| c.side == "sender").collect();
    let change = |to| changes.iter().find(|c| c.path == 0 && c.at > 5.0 && c.to.as_deref() == to);
    let left = change(Some("potentially failed")).expect("the first path is left").at;
    assert!(left < 5.5, "{left}");
    let before = changes.iter().filter(|c| c.at < 5.0 && c.from.as_deref() == Some("active"));
    assert_eq!(before.count(), 0, "{changes:?}");
    let back = change(Some("active")).expect("the first path comes back").at;
    assert!((15.0..16.3).contains(&back), "{back}");
    // Both paths before the cut, one during it, both again at the end.
    let last = association.forward.time_from_first_data.unwrap();
    assert!(last < 20.0, "{last}");
    let gap = association.forward.longest_gap.unwrap();
    assert!(gap.length < 0.5, "{gap:?}");
}

#[test]
fn a_slow_reader_sets_the_pace() {
    let mut scenario = Scenario::new("slow reader")
        .path(PathSpec::new(Rate::mbit(10), Span::millis(10)).queue(QueueLimit::Unlimited))
        .workload(Workload { read_rate: Some(Rate(800_000)), ..Workload::bulk(Size(500_000)) });
    scenario.run.check_every = CheckEvery::Events(1);
    scenario.transport.both.receive_buffer = Some(20_000);
    let outcome = run(&scenario);
    assert!(outcome.associations[0].complete, "{outcome:#?}");
    let time = outcome.associations[0].forward.time_from_start.unwrap();
    assert!((5.0..5.2).contains(&time), "{time} s for 500 kB at 100 kB/s");
}

#[test]
fn messages_by_the_clock_and_replies_to_requests() {
    let path = PathSpec::new(Rate::mbit(10), Span::millis(10));
    let periodic = Workload {
        kind: WorkloadKind::Periodic,
        messages: Some(50),
        interval: Some(Span::millis(100)),
        ..Workload::default()
    };
    let outcome = run(&Scenario::new("periodic").path(path.clone()).workload(periodic));
    let forward = &outcome.associations[0].forward;
    assert_eq!(forward.messages_delivered, 50);
    let span = forward.last_delivered.unwrap() - forward.first_delivered.unwrap();
    assert!((span - 4.9).abs() < 1e-6, "{span}");

    let requests = Workload {
        kind: WorkloadKind::RequestReply,
        messages: Some(20),
        interval: Some(Span::millis(50)),
        reply_size: Some(SizeRange::fixed(Size(5_000))),
        ..Workload::default()
    };
    let outcome = run(&Scenario::new("requests").path(path).workload(requests));
    let association = &outcome.associations[0];
    assert!(association.complete);
    assert_eq!(association.forward.messages_delivered, 20);
    assert_eq!(association.back.bytes_delivered, 100_000);
}

#[test]
fn policies_see_the_same_weather() {
    // With another receive window, the same packets are lost, by their numbers.
    let lost = |buffer: u32| {
        let mut scenario = file("caro2006-two-paths");
        scenario.workload = Some(Workload::bulk(Size(200_000)));
        scenario.transport.both.receive_buffer = Some(buffer);
        let mut capture = Vec::new();
        scenario.run_captured(&RunOptions::default(), &mut capture).unwrap();
        dropped(&capture, 1, 100)
    };
    let first = lost(65_536);
    assert_eq!(first, lost(20_000));
    assert!(!first.is_empty());
}

#[test]
fn a_script_by_chunk_type_takes_the_nth_packet_with_it() {
    let mut path = PathSpec::new(Rate::mbit(10), Span::millis(20));
    let link = |kind, numbers: &[u64]| {
        let script = LossScript::default().and(kind, numbers.iter().copied());
        Some(LinkSpec::default().loss(LossModel::Script(script)))
    };
    path.forward = link(PacketKind::Data, &[10, 20]);
    path.back = link(PacketKind::CookieAck, &[1]);
    let scenario = Scenario::new("script").path(path).workload(Workload::bulk(Size(200_000)));
    let outcome = run(&scenario);
    let association = &outcome.associations[0];
    assert!(association.complete);
    let [forward, back] = [0, 1].map(|n| outcome.links[n].counts.lost);
    assert_eq!((forward, back), (2, 1));
    let path = association.sender.paths[0].counts;
    let sent = path.data_chunks_sent + path.fast_retransmissions + path.timeout_retransmissions;
    let arrived = association.receiver.paths[0].counts.data_chunks_received;
    assert_eq!(sent - arrived, 2, "each lost packet had one DATA chunk");
    // The lost COOKIE ACK is sent again when the COOKIE ECHO is retransmitted.
    assert!(association.sender.established_at.unwrap() > 1.0);
}

/// Numbers of the packets with a comment among the first `n` of an interface, found by a minimal
/// reader.
fn dropped(mut capture: &[u8], interface: u32, n: usize) -> Vec<usize> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut found, mut seen) = (Vec::new(), 0);
    while !capture.is_empty() {
        let length = word(capture, 4) as usize;
        if word(capture, 0) == 6 && word(capture, 8) == interface {
            let data = word(capture, 20).next_multiple_of(4) as usize;
            if length > 28 + data + 4 && seen < n {
                found.push(seen);
            }
            seen += 1;
        }
        capture = &capture[length..];
    }
    found
}

#[test]
#[allow(clippy::disallowed_methods)] // in CI nothing may be skipped
fn tshark_finds_nothing_wrong() {
    if Command::new("tshark").arg("--version").output().is_err() {
        assert!(std::env::var("CI").is_err(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    }
    let mut v6 = rough();
    v6.paths[1].addresses = Some(["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()]);
    let mut udp = v6.clone();
    udp.transport.encapsulation = Some(EncapsulationSpec::Udp);
    // tshark skips TIMESTAMP chunks, as RFC 9260 3.2 requires for their type.
    let mut timestamps = rough();
    timestamps.policy.both.rtt_sampling = Some("timestamps".into());
    for (n, scenario) in [rough(), v6, udp, timestamps].iter().enumerate() {
        let path = std::env::temp_dir().join(format!("polypath-{}-{n}.pcapng", std::process::id()));
        let mut capture = Vec::new();
        scenario.run_captured(&RunOptions::default(), &mut capture).unwrap();
        std::fs::write(&path, &capture).unwrap();
        let tshark = |filter: &str| {
            let output = Command::new("tshark")
                .args(["-o", "sctp.checksum:CRC 32c", "-Y", filter, "-r"])
                .arg(&path)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let wrong = tshark(
            "sctp.checksum.status == \"Bad\" || _ws.malformed || _ws.expert.severity == error",
        );
        assert_eq!(wrong, "");
        let good = tshark("sctp.checksum.status == \"Good\"").lines().count();
        assert!(good > 1000, "{good}");
        let headers = tshark("ip.checksum.status == \"Bad\" || udp.checksum.status == \"Bad\"");
        assert_eq!(headers, "");
        std::fs::remove_file(&path).unwrap();
    }
}

/// A trace with a chance in each millisecond is a rate of 1504 bytes per millisecond. One that has
/// all its chances in the first half of each second has the same mean.
#[test]
fn a_trace_carries_what_its_mean_rate_carries() {
    let took = |rate: Option<Rate>, trace: Option<Vec<u64>>| {
        let mut path =
            PathSpec::new(Rate::mbit(10), Span::millis(20)).queue(QueueLimit::Packets(200));
        path.forward = Some(LinkSpec {
            rate,
            trace: trace.map(|times| RateTrace::new(times).unwrap()),
            ..LinkSpec::default()
        });
        let scenario = Scenario::new("trace").path(path).workload(Workload::bulk(Size(15_000_000)));
        let outcome = run(&scenario);
        assert!(outcome.associations[0].complete);
        outcome.associations[0].forward.time_from_start.unwrap()
    };
    let steady = took(Some(Rate(12_032_000)), None);
    let even = took(None, Some((1..=1000).collect()));
    assert!((0.97..1.03).contains(&(even / steady)), "{even} s, {steady} s");
    let bursts = (0..1000).map(|n| n / 2).chain([1000]).collect();
    let uneven = took(None, Some(bursts));
    assert!((0.9..1.5).contains(&(uneven / steady)), "{uneven} s, {steady} s");
}

#[test]
fn what_is_delivered_by_several_times_is_what_runs_until_then_deliver() {
    let scenario = rough();
    // The last two are after the end.
    let times = [0, 250, 500, 1000, 90_000, 90_001].map(Span::millis);
    let found = scenario.delivered_by(&RunOptions::default(), &times).unwrap();
    let expected = times.map(|limit| {
        let mut until = scenario.clone();
        until.run.limit = limit;
        vec![run(&until).associations[0].forward.bytes_delivered]
    });
    assert_eq!(found, expected);
    assert!(found[1] > found[0] && found[3] > found[1], "{found:?}");
    assert_eq!(found[4..], [[1_000_000], [1_000_000]]);
}
