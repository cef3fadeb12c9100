//! Path MTU discovery (RFC 8899) over networks that silently drop packets that are too large.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::*;
use polypath_proto::wire::{Chunk, CommonHeader};
use polypath_proto::{
    Config, ConfigBuilder, FourTuple, Fragmentation, PathId, PathMtu, PathMtuState, Quoted,
    Registry, Unreachable, VerificationTag,
};
use proptest::prelude::*;

const IP: usize = 20;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().path_mtu_discovery(true)
}

/// Each path carries IP packets of up to this many bytes; larger ones as fragments, if allowed.
fn limits(net: &mut Net, limits: &[u16]) -> Vec<Rc<Cell<u16>>> {
    let cells: Vec<Rc<Cell<u16>>> = limits.iter().map(|l| Rc::new(Cell::new(*l))).collect();
    let known = cells.clone();
    net.filter(move |p| {
        let limit = usize::from(known[usize::from(p.net())].get());
        let too_large = p.bytes.len() + IP > limit;
        if too_large && p.fragmentation != Fragmentation::Allowed { Fate::Drop } else { Fate::Pass }
    });
    cells
}

fn over(paths: &[u16], config: Config) -> (Net, Vec<Rc<Cell<u16>>>) {
    let mut net = pair(paths.len() as u8, config);
    let cells = limits(&mut net, paths);
    net.establish();
    (net, cells)
}

fn mtu(net: &Net, h: usize, path: u8) -> PathMtu {
    net.a(h).path_mtu(PathId(path)).unwrap()
}

/// Sizes of the IP packets with DATA that host `h` sent since `mark`.
fn sizes(net: &Net, h: usize, mark: usize) -> Vec<usize> {
    let with_data = net.sent_since(h, mark).into_iter().filter(|p| p.has("DATA"));
    with_data.map(|p| p.bytes.len() + IP).collect()
}

#[test]
fn the_configured_size_is_confirmed_in_one_round_trip() {
    let (mut net, _) = over(&[1500], config().build().unwrap());
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.run(S(2));
    let found = PathMtu { mtu: 1500, state: PathMtuState::SearchComplete };
    assert_eq!((mtu(&net, 0, 0), mtu(&net, 1, 0)), (found, found));
    assert_eq!(sizes(&net, 0, 0).into_iter().max(), Some(1500));
    // Each host sends one probe, which has two chunks.
    let probes = net.sent(0).iter().filter(|p| p.has("PAD")).count();
    assert_eq!(probes, 1);
    let padded = net.sent(0).into_iter().find(|p| p.has("PAD")).unwrap();
    assert_eq!((padded.bytes.len() + IP, padded.fragmentation), (1500, Fragmentation::Never));
    assert!(matches!(padded.parsed()[..], [Chunk::Heartbeat(_), Chunk::Pad(_)]));
}

/// A driver may take time between the expiry of the timer and the sending of packets.
#[test]
fn a_probe_may_leave_later_than_it_was_begun() {
    let (mut net, cells) = over(&[1500], config().build().unwrap());
    net.run(S(2));
    cells[0].set(1400);
    let tuple = FourTuple { local: (v4(0, 0), 0).into(), remote: (v4(0, 1), 0).into() };
    let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
    let header = CommonHeader {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: VerificationTag(tag),
    };
    let quoted = Some(Quoted { header, init: None });
    let endpoint = &mut net.hosts[0].endpoint;
    endpoint.handle_unreachable(net.now, tuple, Unreachable::TooBig { mtu: 1400 }, quoted);
    let due = endpoint.poll_timeout().unwrap();
    endpoint.handle_timeout(due);
    net.now = due + MS(1);
    net.run(S(1));
    assert_eq!(mtu(&net, 0, 0).mtu, 1400);
}

#[test]
fn each_path_has_its_own_and_messages_are_cut_for_the_smallest() {
    let (mut net, _) = over(&[1500, 1280], config().build().unwrap());
    net.run(S(60));
    assert_eq!(mtu(&net, 0, 0).mtu, 1500);
    let narrow = mtu(&net, 0, 1);
    assert!((1273..=1280).contains(&narrow.mtu), "{narrow:?}");
    assert_eq!(narrow.state, PathMtuState::SearchComplete);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 30_000)).unwrap();
    net.run(S(2));
    let data: Vec<usize> =
        net.sent_since(0, mark).iter().flat_map(Sent::data).map(|d| d.len).collect();
    assert!(data.iter().all(|len| len + 16 + 12 + IP <= narrow.mtu as usize), "{data:?}");
    // Lost probes do not count as errors of the path.
    assert!(net.a(0).paths().all(|p| p.error_count == 0));
    assert_eq!(net.a(0).path_stats(PathId(1)).unwrap().heartbeats_lost, 0);
}

#[test]
fn a_path_that_becomes_narrower_is_a_black_hole_for_seconds_only() {
    for retransmission in ["same", "hybrid"] {
        let registry = Registry::standard();
        let answer =
            polypath_proto::policy::find(registry.retransmission(), retransmission).unwrap();
        let (mut net, cells) =
            over(&[1500, 1500], config().retransmission(answer).build().unwrap());
        net.run(S(5));
        cells.iter().for_each(|c| c.set(1280));
        let (mark, cut) = (net.log.len(), net.now);
        net.send(0, 0, payload(1, 100_000)).unwrap();
        net.drive_until(S(60), |net| net.a(0).buffered() == 0);
        let took = (net.now.as_nanos() - cut.as_nanos()) / 1_000_000;
        assert!(took < 25_000, "{took} ms");
        net.run(S(60));
        let carries = mtu(&net, 0, 0);
        assert!((1273..=1280).contains(&carries.mtu), "{carries:?}");
        // Packets built for 1500 bytes got through as fragments; no other large ones did.
        let large = |p: &Sent| p.bytes.len() + IP > 1280 && p.has("DATA") && p.delivered;
        let through: Vec<Sent> = net.sent_since(0, mark).into_iter().filter(large).collect();
        assert!(!through.is_empty());
        assert!(through.iter().all(|p| p.fragmentation == Fragmentation::Allowed));
        assert_eq!(net.hosts[1].received.iter().map(|r| r.payload.len()).sum::<usize>(), 100_000);
    }
}

#[test]
fn a_path_that_fails_or_loses_much_keeps_its_size() {
    let config = config().path_max_retrans(20).association_max_retrans(1000).build().unwrap();
    let (mut net, _) = over(&[1500], config);
    net.run(S(2));
    net.cuts.insert(0);
    net.send(0, 0, payload(1, 50_000)).unwrap();
    net.run(S(40));
    assert!(net.a(0).path_stats(PathId(0)).unwrap().timeouts > 3);
    assert_eq!(mtu(&net, 0, 0).mtu, 1500);
    net.cuts.clear();
    net.run(S(120));
    assert_eq!((mtu(&net, 0, 0).mtu, net.a(0).buffered()), (1500, 0));
    let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(3));
    net.filter(move |_| if dice.below(100) < 30 { Fate::Drop } else { Fate::Pass });
    for _ in 0..10 {
        net.send(0, 0, payload(1, 50_000)).unwrap();
        net.run(S(300));
    }
    assert!(net.a(0).path_stats(PathId(0)).unwrap().timeouts > 10);
    assert_eq!(mtu(&net, 0, 0).mtu, 1500);
}

#[test]
fn below_the_base_small_packets_go_on() {
    let (mut net, cells) = over(&[1500], config().build().unwrap());
    net.run(S(2));
    cells[0].set(800);
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.run(S(120));
    assert_eq!(mtu(&net, 0, 0), PathMtu { mtu: 576, state: PathMtuState::Error });
    assert_eq!(net.a(0).buffered(), 0);
    let mark = net.log.len();
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.run(S(10));
    assert!(sizes(&net, 0, mark).iter().all(|s| *s <= 576));
    cells[0].set(1500);
    net.run(S(200));
    assert_eq!(mtu(&net, 0, 0).mtu, 1500);
}

#[test]
fn the_network_is_believed_if_it_shows_our_packet() {
    let (mut net, cells) = over(&[1500], config().build().unwrap());
    net.run(S(2));
    cells[0].set(1400);
    let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
    let header = |tag| CommonHeader {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: VerificationTag(tag),
    };
    let tell = |net: &mut Net, header| {
        let tuple = FourTuple { local: (v4(0, 0), 0).into(), remote: (v4(0, 1), 0).into() };
        let what = Unreachable::TooBig { mtu: 1400 };
        let quoted = Some(Quoted { header, init: None });
        net.hosts[0].endpoint.handle_unreachable(net.now, tuple, what, quoted);
        net.settle();
    };
    tell(&mut net, header(tag ^ 1));
    assert_eq!(mtu(&net, 0, 0).mtu, 1500);
    tell(&mut net, header(tag));
    assert_eq!(mtu(&net, 0, 0), PathMtu { mtu: 1200, state: PathMtuState::Base });
    net.run(S(1));
    assert_eq!(mtu(&net, 0, 0).mtu, 1400);
}

#[test]
fn nothing_of_it_is_sent_where_it_is_off() {
    let (mut net, _) = over(&[1500, 1500], Config::rfc9260());
    net.send(0, 0, payload(1, 20_000)).unwrap();
    net.run(S(100));
    assert!(net.log.iter().all(|p| !p.has("PAD") && p.fragmentation == Fragmentation::System));
    assert_eq!(mtu(&net, 0, 0), PathMtu { mtu: 1500, state: PathMtuState::Disabled });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

    /// Whatever sizes the paths carry, however these change, and with other losses as well, all
    /// data arrives, and in the end each path's size is the right one.
    #[test]
    fn data_arrives_over_any_sizes(
        seed in any::<u64>(), loss in 0u64..10, path_mtu in 1500u16..9000,
        changes in prop::collection::vec((0usize..2, 1200u16..9100, 0u64..20_000), 0..5),
        sizes in prop::collection::vec(1usize..20_000, 1..8),
    ) {
        let config = config().path_mtu(path_mtu).association_max_retrans(1000).path_max_retrans(100).build().unwrap();
        let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
        let mut net = pair(2, config);
        let cells = limits(&mut net, &[1500, 1400]);
        let lossy = Rc::new(Cell::new(loss));
        let now_lossy = lossy.clone();
        net.filter(move |_| if dice.below(100) < now_lossy.get() { Fate::Drop } else { Fate::Pass });
        net.connect(0);
        let mut total = 0;
        for (i, size) in sizes.iter().enumerate() {
            let _ = net.send(0, 0, payload(1, *size));
            total += size;
            if let Some((path, limit, ms)) = changes.get(i) {
                cells[*path].set(*limit);
                net.run(MS(*ms));
            }
        }
        net.run(S(600));
        lossy.set(0);
        net.run(S(1500));
        prop_assert_eq!(net.a(0).buffered(), 0, "{}", net.tail(20));
        let got: usize = net.hosts[1].received.iter().map(|r| r.payload.len()).sum();
        prop_assert_eq!(got, total);
        for path in 0..2u8 {
            let carries = u32::from(cells[usize::from(path)].get().min(path_mtu));
            let found = mtu(&net, 0, path).mtu;
            // A path without data notices only what its probes detect.
            let used = net.a(0).path_stats(PathId(path)).unwrap().data_chunks_sent > 0;
            prop_assert!(found + 12 > carries, "{found} of {carries}");
            if used && path == 0 && total > 40_000 {
                prop_assert!(found <= u32::from(path_mtu));
            }
        }
    }
}
