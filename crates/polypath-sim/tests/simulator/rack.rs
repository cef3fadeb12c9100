//! Losses found by time (RFC 8985), compared with what the network did to each packet.

use std::collections::BTreeMap;

use polypath_sim::trace::{FATES, PacketTrace};
use polypath_sim::{RunOptions, Scenario};

const DATA: u8 = 0;

/// Round-trip time without a queue, in seconds.
const RTT: f64 = 0.02;

/// A transmission of a chunk: when it was sent, and whether it arrived.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    sent: f64,
    arrives: bool,
}

/// The transmissions of each TSN on the only path, in their order.
fn transmissions(trace: &PacketTrace) -> BTreeMap<u32, Vec<Transmission>> {
    let delivered = FATES.iter().position(|fate| *fate == "delivered").unwrap() as u8;
    let mut all: BTreeMap<u32, Vec<Transmission>> = BTreeMap::new();
    for hop in 0..trace.hops.time.len() {
        let packet = trace.hops.packet[hop] as usize;
        if trace.packets.direction[packet] != 0 {
            continue;
        }
        let (sent, arrives) = (trace.hops.time[hop], trace.hops.fate[hop] == delivered);
        let [first, end] = [packet, packet + 1].map(|p| trace.packets.first_chunk[p] as usize);
        for chunk in (first..end).filter(|&chunk| trace.chunks.kind[chunk] == DATA) {
            all.entry(trace.chunks.tsn[chunk]).or_default().push(Transmission { sent, arrives });
        }
    }
    all
}

/// A transfer over a link that delays one packet in ten by up to `delay` ms.
fn trace(congestion: &str, delay: u32, loss: &str, seed: u64) -> PacketTrace {
    let text = format!(
        r#"
        schema = 1
        [[path]]
        rate = "50 Mbit/s"
        delay = "10 ms"
        queue = "125000 B"
        loss = "{loss}"
        reorder = {{ probability = "10 %", delay = "{delay} ms" }}
        [policy]
        congestion = "{congestion}"
        [workload]
        kind = "bulk"
        size = "10 MB"
        "#
    );
    let options = RunOptions { packets: true, seed: Some(seed), ..RunOptions::default() };
    let outcome = Scenario::from_toml(&text).unwrap().run(&options).unwrap();
    assert!(outcome.associations[0].complete);
    outcome.packets.unwrap()
}

/// RFC 8985 6.2: the reordering window is a quarter of the shortest round-trip time once reordering
/// was seen. A packet that is on the wire is not found lost before that, nor before a round-trip
/// time in any case.
#[test]
fn no_packet_in_flight_is_retransmitted_within_its_reordering_window() {
    for (congestion, delay, loss, seed) in [
        ("bbr", 5, "0 %", 1),
        ("bbr", 4, "1 %", 2),
        ("bbr", 20, "0 %", 3),
        ("cubic", 5, "0.1 %", 4),
    ] {
        let mut spurious = 0;
        let mut chunks = 0;
        for (tsn, sent) in transmissions(&trace(congestion, delay, loss, seed)) {
            chunks += 1;
            for pair in sent.windows(2) {
                let [before, again] = [pair[0], pair[1]];
                if !before.arrives {
                    continue;
                }
                spurious += 1;
                let age = again.sent - before.sent;
                // Reordering is seen in the first round trips.
                let window = if before.sent > 0.2 { RTT / 4.0 } else { 0.0 };
                assert!(
                    age >= RTT + window,
                    "{congestion}, {delay} ms, {loss}: TSN {tsn}, sent at {:.4} s, again after {age:.4} s",
                    before.sent
                );
            }
        }
        // The window grows until it covers the reordering.
        assert!(spurious * 50 <= chunks, "{congestion}, {delay} ms: {spurious} of {chunks}");
    }
}
