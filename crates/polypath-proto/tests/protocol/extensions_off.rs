//! The cost of an extension that is not in use: parameters in the handshake, and not a byte more.

use crate::common::*;
use polypath_proto::wire::{Chunk, InitFields};
use polypath_proto::{Config, ConfigBuilder, Ecn, Message, Rng, Seed, StreamId, Time};

type Settings = (fn(ConfigBuilder) -> ConfigBuilder, bool);

/// Extensions that need both sides, and whether checksums may be left out.
const EXTENSIONS: [(&str, Settings); 7] = [
    ("partial reliability", (|c| c.partial_reliability(true), false)),
    ("stream reconfiguration", (|c| c.stream_reconfiguration(true), false)),
    ("interleaving", (|c| c.interleaving(true), false)),
    ("ecn", (|c| c.ecn(true), false)),
    ("zero checksum", (|c| c, true)),
    ("timestamps", (|c| c.rtt_sampling(&polypath_proto::policy::rtt_sampling::TIMESTAMPS), false)),
    (
        "all",
        (
            |c| {
                c.partial_reliability(true)
                    .stream_reconfiguration(true)
                    .interleaving(true)
                    .ecn(true)
            },
            true,
        ),
    ),
];

const NONE: Settings = (|c| c, false);

/// A packet: time, source and destination, bytes, ECN codepoint.
type Packet = (Time, String, Vec<u8>, Ecn);

#[derive(Debug, PartialEq)]
struct Run {
    /// The fixed fields of INIT and INIT ACK.
    handshake: Vec<InitFields>,
    rest: Vec<Packet>,
}

/// Data in both directions over two paths with losses, one of them cut for a time, and a shutdown.
fn run(settings: [Settings; 2]) -> Run {
    let config =
        |(set, _): Settings| set(Config::rfc9260().to_builder().heartbeat_interval(Some(S(2))));
    let mut net = Setup {
        paths: 2,
        configs: settings.map(|s| config(s).build().unwrap()),
        zero_checksum: settings.map(|s| s.1),
        ..Setup::default()
    }
    .build();
    net.establish();
    let mut dice = Rng::new(&Seed::from_u64(9));
    net.filter(move |_| if dice.below(12) == 0 { Fate::Drop } else { Fate::Pass });
    for i in 0..40 {
        for h in 0..2 {
            let plain =
                Message::new(StreamId(i % 5), payload(i.into(), 100 + 400 * usize::from(i)));
            net.send_message(h, Message { unordered: i % 7 == 0, ..plain }).unwrap();
        }
    }
    net.run(MS(400));
    net.cuts.insert(0);
    net.run(S(20));
    net.cuts.clear();
    net.run(S(60));
    net.shutdown(0);
    net.run(S(60));
    assert!(net.closed(0).unwrap().is_graceful() && net.closed(1).unwrap().is_graceful());
    assert_eq!(net.hosts[0].received.len() + net.hosts[1].received.len(), 80);
    let mut run = Run { handshake: Vec::new(), rest: Vec::new() };
    for p in &net.log {
        match p.parsed().first() {
            Some(Chunk::Init(init) | Chunk::InitAck(init)) => run.handshake.push(InitFields {
                initiate_tag: init.initiate_tag,
                a_rwnd: init.a_rwnd,
                outbound_streams: init.outbound_streams,
                inbound_streams: init.inbound_streams,
                initial_tsn: init.initial_tsn,
            }),
            _ => {
                let way = format!("{} {}", p.from, p.to);
                run.rest.push((p.at, way, p.bytes.clone(), p.ecn));
            }
        }
    }
    run
}

/// An extension that one side alone offers has no effect.
#[test]
fn what_one_side_offers_alone_changes_no_packet() {
    let plain = run([NONE, NONE]);
    assert!(plain.rest.len() > 400);
    for (name, settings) in EXTENSIONS {
        for both in [[settings, NONE], [NONE, settings]] {
            let offered = run(both);
            let first = plain.rest.iter().zip(&offered.rest).position(|(a, b)| a != b);
            assert!(offered == plain, "{name}: packet {first:?} differs");
        }
    }
}

/// Both sides offer an extension and the application does not use it: all packets are the same but
/// the COOKIE ECHO, as the cookie contains the agreed extensions.
#[test]
fn what_nobody_uses_changes_no_packet() {
    let cookie = |run: &Run| run.rest.iter().map(|p| p.2[12]).position(|ty| ty == 10).unwrap();
    let mut plain = run([NONE, NONE]);
    plain.rest.remove(cookie(&plain));
    for (name, settings) in &EXTENSIONS[..2] {
        let mut agreed = run([*settings; 2]);
        agreed.rest.remove(cookie(&agreed));
        assert!(agreed == plain, "{name}");
    }
}
