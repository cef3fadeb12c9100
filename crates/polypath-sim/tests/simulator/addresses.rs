//! Dynamic addresses (RFC 5061) in whole runs.

use polypath_sim::link::{LossModel, LossScript, PacketKind};
use polypath_sim::outcome::{AssociationOutcome, Blackout};
use polypath_sim::scenario::{AddressEvent, LinkSpec, PathSpec, Workload};
use polypath_sim::trace::PacketTrace;
use polypath_sim::units::{Rate, Size, Span};
use polypath_sim::{RunOptions, Scenario};

/// Chunk types (RFC 5061 4.1).
const ASCONF: u8 = 193;
const ASCONF_ACK: u8 = 128;

fn laptop() -> Scenario {
    let path = format!("{}/../../scenarios/laptop.toml", env!("CARGO_MANIFEST_DIR"));
    Scenario::from_file(path).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> (AssociationOutcome, PacketTrace) {
    let options = RunOptions { packets: true, ..RunOptions::default() };
    let mut outcome = scenario.run(&options).unwrap_or_else(|error| panic!("{error}"));
    (outcome.associations.remove(0), outcome.packets.unwrap())
}

fn gap(association: &AssociationOutcome) -> Blackout {
    assert!(association.complete, "{association:#?}");
    association.forward.longest_gap.unwrap()
}

/// Times at which packets with a chunk of this type were sent, and their links.
fn chunks(trace: &PacketTrace, kind: u8) -> Vec<(f64, &str)> {
    let (hops, packets) = (&trace.hops, &trace.packets);
    let has = |packet: usize| {
        let rows = packets.first_chunk[packet] as usize..packets.first_chunk[packet + 1] as usize;
        trace.chunks.kind[rows].contains(&kind)
    };
    let all = (0..hops.time.len()).filter(|&hop| has(hops.packet[hop] as usize));
    all.map(|hop| (hops.time[hop], trace.links[hops.link[hop] as usize].as_str())).collect()
}

fn bytes(association: &AssociationOutcome, local: &str) -> u64 {
    let path = association.sender.paths.iter().find(|path| path.local == local);
    path.map_or(0, |path| path.counts.data_bytes_sent)
}

/// The new address is added before the old one is removed: the transfer does not stop.
#[test]
fn a_laptop_that_changes_its_network_goes_on() {
    let (association, trace) = run(&laptop());
    let gap = gap(&association);
    assert!(gap.length < 0.1, "{gap:?}");
    assert!(bytes(&association, "10.82.0.1") > 3_000_000);
    let removed =
        association.changes.iter().filter(|change| change.to.as_deref() == Some("removed"));
    let sides: Vec<_> = removed.map(|change| (change.side.as_str(), change.path)).collect();
    assert_eq!(sides, [("sender", 0), ("receiver", 0)]);
    // One ASCONF for each change of an address, without retransmissions: both are sent on the new
    // path.
    let told = chunks(&trace, ASCONF);
    let from_laptop: Vec<_> = told.iter().filter(|(_, link)| *link != "server/forward").collect();
    assert_eq!(from_laptop, [&(3.0, "mobile/forward"), &(4.0, "mobile/forward")]);
    assert_eq!(chunks(&trace, ASCONF_ACK).len(), 2 * from_laptop.len());
    // No packet is sent from an address that has been removed.
    let late = (0..trace.hops.time.len()).filter(|&hop| trace.hops.time[hop] > 4.0);
    let mut late = late.map(|hop| trace.links[trace.hops.link[hop] as usize].as_str());
    assert!(late.all(|link| link != "wifi/forward"));
}

/// Without RFC 5061 the same change ends the association.
#[test]
fn without_dynamic_addresses_the_transfer_ends() {
    let mut scenario = laptop();
    scenario.transport.both.dynamic_addresses = None;
    let (association, trace) = run(&scenario);
    assert!(!association.complete);
    assert_eq!(association.sender.close.as_deref(), Some("peer-unreachable"));
    assert!(chunks(&trace, ASCONF).is_empty());
}

/// The old network is removed before the new one is added: the gap is that time and the time for
/// the first packet from the new address and for the first data over it.
#[test]
fn a_gap_between_two_networks_is_bridged() {
    let mut scenario = laptop();
    scenario.addresses[0].at = Span::secs(6);
    let (association, _) = run(&scenario);
    let gap = gap(&association);
    assert!((2.0..2.3).contains(&gap.length), "{gap:?}");
}

/// Until the endpoint learns of the removal, packets that it sends from the old address are lost.
#[test]
fn a_late_notice_is_a_longer_gap() {
    let mut scenario = laptop();
    scenario.addresses[1].notice_delay = Span::millis(100);
    let (late, _) = run(&scenario);
    let (late, at_once) = (gap(&late), gap(&run(&laptop()).0));
    let longer = late.length - at_once.length;
    assert!((0.05..0.25).contains(&longer), "{late:?} {at_once:?}");
}

/// ASCONF and ASCONF-ACK are retransmitted (RFC 5061 5.1 B).
#[test]
fn lost_announcements_are_repeated() {
    let first = |kind| {
        let script = LossScript::default().and(kind, [1]);
        Some(LinkSpec::default().loss(LossModel::Script(script)))
    };
    let mut scenario = laptop();
    scenario.links[1].forward = first(PacketKind::Asconf);
    scenario.links[1].back = first(PacketKind::AsconfAck);
    let (association, trace) = run(&scenario);
    // After RTO.Initial, and twice that: two seconds after the old address was removed.
    let sent = chunks(&trace, ASCONF);
    let sent = sent.iter().filter(|(_, link)| *link != "server/forward").map(|(at, _)| *at);
    let sent: Vec<f64> = sent.collect();
    assert_eq!(sent[..3], [3.0, 4.0, 6.0], "{sent:?}");
    let gap = gap(&association);
    assert!((1.9..2.4).contains(&gap.length), "{gap:?}");
}

/// Two separate networks, each with an address of either host: the addresses of both hosts are
/// added and removed.
#[test]
fn both_hosts_move_from_one_path_to_another() {
    for (first, second) in [("sender", "receiver"), ("receiver", "sender")] {
        let path = || PathSpec::new(Rate::mbit(10), Span::millis(20));
        let mut scenario = Scenario::new("both move")
            .path(path())
            .path(path())
            .workload(Workload::bulk(Size(8_000_000)))
            .address(AddressEvent::comes(format!("{first}.1"), Span::secs(1)))
            .address(AddressEvent::comes(format!("{second}.1"), Span::secs(2)))
            .address(AddressEvent::goes(format!("{second}.0"), Span::secs(4)))
            .address(AddressEvent::goes(format!("{first}.0"), Span::millis(4_010)));
        scenario.transport.both.dynamic_addresses = Some(true);
        scenario.transport.both.unauthenticated_addresses = Some(true);
        let (association, _) = run(&scenario);
        assert!(gap(&association).length < 2.0, "{first}: {:?}", gap(&association));
        assert!(bytes(&association, "10.1.0.1") > 3_000_000);
    }
}

fn run_toml(text: &str) -> AssociationOutcome {
    let scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario).0
}

/// The first INIT takes longer than T1-init and arrives after the second one has opened the
/// association. Both list an address that the receiver cannot reach.
#[test]
fn a_late_init_does_not_end_the_association() {
    let association = run_toml(
        r#"
        schema = 1
        [[path]]
        forward = {rate = "10 Mbit/s", delay = "1050 ms"}
        back = {rate = "10 Mbit/s", delay = "50 ms"}
        [[path]]
        rate = "10 Mbit/s"
        delay = "10 ms"
        [[path]]
        rate = "10 Mbit/s"
        delay = "10 ms"
        [workload]
        kind = "bulk"
        size = "1 MB"
        [[address]]
        at = "1000 s"
        node = "receiver.2"
        kind = "comes"
        "#,
    );
    assert!(association.complete, "{association:#?}");
}

/// The address from which the receiver sent the INIT ACK is removed before the COOKIE ECHO arrives.
/// The COOKIE ECHO to its other address is answered from that address.
#[test]
fn an_address_that_goes_before_the_cookie_echo_arrives_is_not_needed() {
    let association = run_toml(
        r#"
        schema = 1
        [[node]]
        name = "sender"
        addresses = ["fd00::1"]
        [[node]]
        name = "receiver"
        addresses = ["fd00::2", "fd00:1::2"]
        [[node]]
        name = "router"
        [[link]]
        between = ["sender.0", "router"]
        rate = "2 Mbit/s"
        delay = "1 ms"
        [[link]]
        between = ["receiver.0", "router"]
        rate = "2 Mbit/s"
        delay = "5 ms"
        [[link]]
        between = ["receiver.1", "router"]
        rate = "2 Mbit/s"
        delay = "5 ms"
        [[association]]
        from = "sender"
        to = "receiver"
        workload = {kind = "bulk", direction = "back", size = "100 kB"}
        [[address]]
        at = "20 ms"
        node = "receiver.0"
        kind = "goes"
        "#,
    );
    assert!(association.complete, "{association:#?}");
}
