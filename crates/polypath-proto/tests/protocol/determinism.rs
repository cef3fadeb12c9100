//! The same seed and the same calls give the same bytes at the same times.

use crate::common::*;
use polypath_proto::*;

/// Every packet with its time, over two paths with losses, an outage, data in both directions and a
/// shutdown.
fn run(seed: u64, dice: u64) -> Vec<(Time, String, Vec<u8>)> {
    let config = Config::rfc9260().to_builder().heartbeat_interval(Some(S(2))).build().unwrap();
    let mut net =
        Setup { paths: 2, configs: [config.clone(), config], seed, ..Setup::default() }.build();
    let mut dice = Rng::new(&Seed::from_u64(dice));
    net.filter(move |_| if dice.below(10) == 0 { Fate::Drop } else { Fate::Pass });
    net.connect(0);
    net.drive_until(S(60), |net| {
        net.hosts[1].endpoint.associations().count() == 1 && net.a(0).is_established()
    });
    for i in 0..20 {
        net.send(0, 1, payload(i, 10_000)).unwrap();
        net.send(1, 2, payload(i, 3000)).unwrap();
    }
    net.run(S(1));
    net.cuts.insert(0);
    net.run(S(20));
    net.cuts.clear();
    net.shutdown(0);
    net.run(S(200));
    net.log.iter().map(|p| (p.at, format!("{} {}", p.from, p.to), p.bytes.clone())).collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = run(7, 1);
    assert!(first.len() > 100);
    assert!(first == run(7, 1));
}

#[test]
fn another_seed_gives_other_tags() {
    let tags = |seed| -> std::collections::BTreeSet<Vec<u8>> {
        run(seed, 1).iter().map(|(_, _, bytes)| bytes[4..8].to_vec()).collect()
    };
    let common: Vec<_> = tags(7).intersection(&tags(8)).cloned().collect();
    assert_eq!(common, [[0; 4]], "that of the INIT alone");
}

/// The network's random numbers do not affect the endpoints' own: the first packet stays the same.
#[test]
fn the_first_packets_do_not_depend_on_what_happens_later() {
    let (one, other) = (run(7, 1), run(7, 2));
    assert!(one[0] == other[0] && one != other);
}

/// Polling more often than needed changes nothing.
#[test]
fn idle_calls_change_nothing() {
    let trace = |idle: bool| {
        let mut net = pair(2, Config::rfc9260());
        net.connect(0);
        net.send(0, 0, payload(1, 50_000)).unwrap();
        for _ in 0..200 {
            net.run(MS(7));
            if idle {
                let now = net.now;
                for host in &mut net.hosts {
                    host.endpoint.poll_timeout();
                    host.endpoint.handle_timeout(now);
                    host.endpoint.check_invariants().unwrap();
                    assert_eq!(host.endpoint.poll_event(), None);
                    assert_eq!(host.endpoint.poll_transmit(now, &mut [0; 1500]), None);
                }
            }
        }
        net.log.into_iter().map(|p| (p.at, p.bytes)).collect::<Vec<_>>()
    };
    assert!(trace(false) == trace(true));
}

/// One packet per buffer or several: the packets are the same if they are full.
#[test]
fn the_size_of_the_buffer_does_not_change_the_packets() {
    let packets = |room: usize| {
        let mut net = established(1, Config::rfc9260());
        let now = net.now;
        net.am(0).send(now, Message::new(StreamId(0), payload(1, 100_000))).unwrap();
        let mut buf = vec![0; room];
        let mut packets = Vec::new();
        while let Some(t) = net.hosts[0].endpoint.poll_transmit(now, &mut buf) {
            let segment = t.segment_size.unwrap_or(t.size);
            packets.extend(buf[..t.size].chunks(segment).map(<[u8]>::to_vec));
        }
        packets
    };
    let one = packets(1480);
    assert!(one.len() == 3 && one == packets(65_536) && one == packets(3000));
}
