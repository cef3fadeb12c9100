//! Loss recovery with the detector "rack" (RFC 8985), judged by what the network knows.

use std::collections::{BTreeMap, BTreeSet};

use polypath_sim::trace::{FATES, PacketTrace};
use polypath_sim::{Outcome, RunOptions, Scenario};
use proptest::prelude::*;

const DATA: u8 = 0;
const SACK: u8 = 3;

/// A scenario of the profile `rfc9260` unless it names another one: the detectors are compared on
/// the standard's windows and timers.
fn scenario(text: &str) -> Scenario {
    let mut scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    scenario.transport.profile.get_or_insert_with(|| "rfc9260".to_owned());
    scenario
}

fn run(text: &str) -> Outcome {
    scenario(text).run(&RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn traced(text: &str, seed: u64) -> (Outcome, PacketTrace) {
    let options = RunOptions { packets: true, seed: Some(seed), ..RunOptions::default() };
    let mut outcome = scenario(text).run(&options).unwrap_or_else(|error| panic!("{error}"));
    let trace = outcome.packets.take().unwrap();
    (outcome, trace)
}

fn seconds(outcome: &Outcome) -> f64 {
    outcome.associations[0].forward.time_from_first_data.unwrap()
}

/// One transmission of a DATA chunk on the only link to the receiver.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    tsn: u32,
    sent: f64,
    /// When it arrived; `None` if it was lost.
    arrived: Option<f64>,
}

/// The transmissions of all DATA chunks, in the order in which they were sent.
fn transmissions(trace: &PacketTrace) -> Vec<Transmission> {
    let delivered = FATES.iter().position(|fate| *fate == "delivered").unwrap() as u8;
    let (packets, chunks) = (&trace.packets, &trace.chunks);
    let mut all = Vec::new();
    for hop in 0..trace.hops.time.len() {
        let packet = trace.hops.packet[hop] as usize;
        if packets.direction[packet] != 0 {
            continue;
        }
        let of_it = packets.first_chunk[packet]..packets.first_chunk[packet + 1];
        for chunk in of_it.map(|c| c as usize).filter(|&c| chunks.kind[c] == DATA) {
            let arrived = trace.hops.arrival[hop];
            all.push(Transmission {
                tsn: chunks.tsn[chunk],
                sent: trace.hops.time[hop],
                arrived: (trace.hops.fate[hop] == delivered).then_some(arrived),
            });
        }
    }
    all
}

/// When the sender gets the first SACK that newly acknowledges a chunk below one that an earlier
/// SACK acknowledged. Only chunks that were sent once count.
fn reordering_learned(trace: &PacketTrace, all: &[Transmission]) -> Option<f64> {
    let delivered = FATES.iter().position(|fate| *fate == "delivered").unwrap() as u8;
    let mut times: BTreeMap<u32, u32> = BTreeMap::new();
    for t in all {
        *times.entry(t.tsn).or_default() += 1;
    }
    let (packets, chunks, hops) = (&trace.packets, &trace.chunks, &trace.hops);
    let mut sacks: Vec<(f64, usize)> = Vec::new();
    for hop in (0..hops.time.len()).filter(|&hop| hops.fate[hop] == delivered) {
        let packet = hops.packet[hop] as usize;
        let of_it = packets.first_chunk[packet]..packets.first_chunk[packet + 1];
        let of_it = of_it.map(|c| c as usize).filter(|&c| chunks.kind[c] == SACK);
        sacks.extend(
            of_it.filter(|_| packets.direction[packet] == 1).map(|c| (hops.arrival[hop], c)),
        );
    }
    sacks.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let (mut acked, mut point) = (BTreeSet::new(), 0);
    for (at, sack) in sacks {
        if chunks.tsn[sack] < point {
            continue;
        }
        point = chunks.tsn[sack];
        let gaps = chunks.first_gap[sack] as usize..chunks.first_gap[sack + 1] as usize;
        let gaps = gaps.flat_map(|gap| chunks.gap_first[gap]..=chunks.gap_last[gap]);
        let highest = acked.last().copied();
        for tsn in (1..=point).chain(gaps).filter(|tsn| times.get(tsn) == Some(&1)) {
            if acked.insert(tsn) && highest.is_some_and(|highest| tsn < highest) {
                return Some(at);
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// RFC 8985 6.2: a packet that was not lost is never sent again before its round-trip time has
    /// passed; and once reordering has been seen, not before the reordering window of a quarter of
    /// the shortest round-trip time has passed as well. Every loss is repaired without T3-rtx,
    /// unless a retransmission or a probe is lost, too.
    #[test]
    fn packets_within_the_reordering_window_are_not_sent_again(
        seed in any::<u64>(),
        delay in 5u32..60,
        mbit in 2u32..50,
        loss in 0u32..30,
        reorder in 0u32..30,
        share in 0u32..120,
    ) {
        // The longest extra delay: up to 1.2 reordering windows.
        let extra = f64::from(2 * delay) / 4.0 * f64::from(share) / 100.0;
        let text = format!(r#"
            schema = 1
            name = "recovery"
            path = [{{ name = "a", rate = "{mbit} Mbit/s", delay = "{delay} ms", queue = "1 MB",
                       loss = "{} %", reorder = {{ probability = "{reorder} %", delay = "{extra:.3} ms" }} }}]
            workload = {{ kind = "bulk", size = "400 kB" }}
            policy = {{ loss = "rack" }}
            "#, f64::from(loss) / 10.0);
        let (outcome, trace) = traced(&text, seed);
        prop_assert!(outcome.associations[0].complete);
        let all = transmissions(&trace);
        let rtt = f64::from(2 * delay) / 1000.0;
        let learned = reordering_learned(&trace, &all);
        let mut last: BTreeMap<u32, Transmission> = BTreeMap::new();
        for t in &all {
            if let Some(before) = last.insert(t.tsn, *t)
                && before.arrived.is_some()
            {
                let age = t.sent - before.sent;
                prop_assert!(age >= rtt, "{before:?} {t:?}");
                // A chunk that was marked lost before may have waited for the window.
                if learned.is_some_and(|learned| learned < before.sent + rtt) {
                    prop_assert!(age >= rtt * 1.25, "{before:?} {t:?}");
                }
            }
        }
    }
}

/// RFC 8985 7: the loss of the last packet is repaired after 2 SRTT, instead of an RTO of at least
/// 1 s (RFC 9260 16).
#[test]
fn a_lost_tail_is_repaired_in_about_two_round_trips() {
    let text = |detector: &str, packets: u32| {
        format!(
            r#"
            schema = 1
            name = "tail"
            path = [{{ name = "a", rate = "100 Mbit/s", delay = "50 ms" }}]
            workload = {{ kind = "bulk", size = "{} B", message_size = "1452 B" }}
            policy = {{ loss = "{detector}" }}
            transport = {{ sack_delay = "10 ms" }}
            "#,
            packets * 1452
        )
    };
    // A number of packets with which the last one leaves alone, with others in flight.
    let alone = |packets: &u32| {
        let sent: Vec<f64> =
            transmissions(&traced(&text("rack", *packets), 1).1).iter().map(|t| t.sent).collect();
        let [.., before, last] = sent[..] else { return false };
        before < last && last - before < 0.05
    };
    let packets = (20..60).find(alone).expect("a number of packets");
    let (whole, trace) = traced(&text("rack", packets), 1);
    let last = transmissions(&trace).last().unwrap().sent;
    // The link loses the last packet, and only that one.
    let fault = |detector: &str| {
        let from = ((last - 0.000_02) * 1e9) as u64;
        let fault = format!(
            r#"fault = [{{ at = "{from} ns", for = "40 us", path = "a", kind = "loss", loss = "100 %", direction = "forward" }}]"#
        );
        run(&format!("{}\n{fault}", text(detector, packets)))
    };
    let (rack, standard) = (fault("rack"), fault("standard"));
    for outcome in [&rack, &standard] {
        assert_eq!(outcome.links[0].counts.lost, 1, "{:?}", outcome.links[0].counts);
    }
    let delay = |outcome: &Outcome| seconds(outcome) - seconds(&whole);
    assert!((0.2..0.35).contains(&delay(&rack)), "{}", delay(&rack));
    assert!(delay(&standard) > 0.95, "{}", delay(&standard));
}

/// RFC 5682: a delay spike longer than the RTO leaves the window as it was.
#[test]
fn a_delay_spike_is_survived() {
    let text = |detector: &str| {
        format!(
            r#"
            schema = 1
            name = "spike"
            path = [{{ name = "a", rate = "20 Mbit/s", delay = "20 ms", queue = "2 MB" }}]
            workload = {{ kind = "bulk", size = "10 MB" }}
            transport = {{ receive_buffer = "150 kB", send_buffer = "150 kB" }}
            policy = {{ loss = "{detector}" }}
            fault = [{{ at = "1 s", for = "1400 ms", path = "a", kind = "delay", delay = "1500 ms", direction = "forward" }}]
            "#
        )
    };
    let (rack, standard) = (run(&text("rack")), run(&text("standard")));
    let counts = |outcome: &Outcome| outcome.associations[0].sender.paths[0].counts;
    assert!(counts(&rack).timeouts >= 1 && counts(&standard).timeouts >= 1);
    assert_eq!(counts(&rack).recoveries_undone, 1);
    let again =
        |c: polypath_sim::outcome::PathCounts| c.timeout_retransmissions + c.fast_retransmissions;
    assert!(again(counts(&rack)) <= 3, "{:?}", counts(&rack));
    assert!(again(counts(&standard)) > again(counts(&rack)), "{:?}", counts(&standard));
    assert!(seconds(&rack) < seconds(&standard), "{} {}", seconds(&rack), seconds(&standard));
}

/// Two paths of 100 Mbit/s and 100 ms with large buffers: slow start drops thousands of packets of
/// both at once, more than the gap blocks of a SACK can report. Without rack the transfer takes
/// hours; the ideal time is 4 s.
#[test]
fn a_flood_of_losses_is_repaired_in_time() {
    for profile in ["cmt", "modern"] {
        for buffer in [4, 16, 64] {
            let outcome = run(&format!(
                r#"
                schema = 1
                name = "wedge"
                path = [
                    {{ name = "a", rate = "100 Mbit/s", delay = "50 ms", queue = "1250000 B" }},
                    {{ name = "b", rate = "100 Mbit/s", delay = "50 ms", queue = "1250000 B" }},
                ]
                workload = {{ kind = "bulk", size = "100 MB" }}
                policy = {{ loss = "rack" }}
                [transport]
                profile = "{profile}"
                receive_buffer = "{buffer} MiB"
                send_buffer = "{buffer} MiB"
                "#
            ));
            let took = seconds(&outcome);
            assert!(outcome.associations[0].complete, "{profile}, {buffer} MiB");
            assert!(took <= 8.0, "{profile}, {buffer} MiB: {took} s");
        }
    }
}

/// RFC 8985 7.2: "when the FlightSize is one segment, the sender MAY inflate the PTO by
/// TLP.max_ack_delay to accommodate a potentially delayed acknowledgment". The receiver waits 200
/// ms, which is RTO.Min, before it acknowledges the odd last packet of a message: neither the probe
/// nor T3-rtx comes first.
#[test]
fn an_odd_last_packet_is_sent_once() {
    for rtt in [2, 20, 150] {
        for packets in [1, 2, 3, 5] {
            let text = format!(
                r#"
                schema = 1
                path = [{{ rate = "20 Mbit/s", delay = "{} us" }}]
                transport = {{ profile = "modern" }}
                workload = {{ kind = "periodic", interval = "1 s", message_size = "{} B", messages = 20 }}
                "#,
                rtt * 500,
                packets * 1452
            );
            let outcome = run(&text);
            assert!(outcome.associations[0].complete);
            let counts = outcome.associations[0].sender.paths[0].counts;
            let again = counts.fast_retransmissions + counts.timeout_retransmissions;
            assert_eq!((again, counts.timeouts), (0, 0), "{packets} packets, {rtt} ms");
        }
    }
}
