//! Associations through NATs, and middleboxes.

use std::net::SocketAddr;
use std::time::Duration;

use polypath_proto::{Ecn, Fragmentation, Time};
use polypath_sim::datagrams::{Datagram, DatagramNetwork};
use polypath_sim::outcome::{AssociationOutcome, Outcome};
use polypath_sim::{RunOptions, Scenario};

fn run(text: &str) -> Outcome {
    let scenario = Scenario::from_toml(text).unwrap_or_else(|error| panic!("{error}"));
    scenario.run(&RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// A path of 10 Mbit/s and 40 ms there and back behind a NAT. `rest` follows `[transport]`.
fn home(nat: &str, rest: &str) -> Outcome {
    run(&format!(
        r#"
        schema = 1
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        nat = {{ {nat} }}
        [transport]
        encapsulation = "udp"
        {rest}
        "#
    ))
}

fn reset(at: &str) -> String {
    format!("[[fault]]\nat = \"{at}\"\npath = 0\nkind = \"nat-reset\"\n")
}

fn only(outcome: &Outcome) -> &AssociationOutcome {
    let association = &outcome.associations[0];
    assert!(association.complete, "{association:#?}");
    association
}

const UPLOAD: &str = "[workload]\nsize = \"10 MB\"\n";
const DOWNLOAD: &str = "[workload]\nsize = \"10 MB\"\ndirection = \"back\"\n";

/// RFC 6951 5.4: the receiver sends to the port of the last packet with the right tag. The mapping
/// is lost while data flows: the next packet from inside shows the new port, and only the
/// acknowledgements of one round trip are lost.
#[test]
fn data_from_inside_goes_on_through_a_new_mapping() {
    let outcome = home("", &format!("{UPLOAD}{}", reset("4 s")));
    let gap = only(&outcome).forward.longest_gap.unwrap();
    assert!(gap.length < 0.1, "{gap:?}");
    let nat = &outcome.nats[0];
    assert_eq!((nat.name.as_str(), nat.counts.mappings, nat.counts.expired), ("path0", 2, 0));
    assert!(nat.counts.refused > 0);
    let state = only(&outcome).changes.iter().filter(|change| change.at > 1.0);
    assert_eq!(state.count(), 0, "the path stays active");
}

/// Data from outside cannot come in before something goes out: the acknowledgement that is due
/// (RFC 9260 6.2), which the lost mapping does not delay.
#[test]
fn data_from_outside_goes_on_once_something_goes_out() {
    let outcome = home("", &format!("{DOWNLOAD}{}", reset("4 s")));
    let gap = only(&outcome).back.longest_gap.unwrap();
    assert!(gap.length < 1.0, "{gap:?}");
    assert_eq!(outcome.nats[0].counts.mappings, 2);
}

/// A new external address is a new path to the peer, which learns it from a HEARTBEAT: the receiver
/// of a download sends one after a second of silence, the sender of an upload after T3-rtx. The
/// data that waits for T3-rtx of the old path leaves on the new one at once.
#[test]
fn a_new_external_address_is_learned_from_a_heartbeat() {
    for (workload, longest) in [(DOWNLOAD, 1.5), (UPLOAD, 1.0)] {
        let reset = format!("{}address = \"203.0.113.1\"\n", reset("4 s"));
        let outcome = home("", &format!("{workload}{reset}"));
        let association = only(&outcome);
        let remotes = association.receiver.paths.iter().map(|path| path.remote.as_str());
        assert_eq!(remotes.collect::<Vec<_>>(), ["192.0.2.1", "203.0.113.1"]);
        let flow = if workload == UPLOAD { &association.forward } else { &association.back };
        let gap = flow.longest_gap.unwrap();
        assert!((3.9..4.1).contains(&gap.start) && gap.length < longest, "{workload}: {gap:?}");
    }
}

/// An outage of the only path. T3-rtx alone notices its end up to as long after it as it lasts.
#[test]
fn a_transfer_goes_on_soon_after_an_outage() {
    for workload in [UPLOAD, DOWNLOAD] {
        for seconds in [2, 10, 30, 90] {
            let fault = format!(
                "[[fault]]\nat = \"4 s\"\nfor = \"{seconds} s\"\npath = 0\nkind = \"down\"\n"
            );
            let outcome = home("", &format!("{workload}{fault}"));
            let association = only(&outcome);
            let flow = if workload == UPLOAD { &association.forward } else { &association.back };
            let late = flow.longest_gap.unwrap().length - f64::from(seconds);
            assert!(late < (f64::from(seconds) / 3.0).clamp(0.5, 3.2), "{seconds} s: {late}");
        }
    }
}

/// A message from outside every 100 s. HEARTBEATs every 10 s refresh the mapping of 30 s
/// (RFC 6951 5.4 asks for nothing else); without them it ends, and nothing comes in any more.
#[test]
fn heartbeats_keep_a_mapping_alive() {
    let idle = |interval: &str| {
        let workload = "[workload]\nkind = \"periodic\"\nmessages = 10\ninterval = \"100 s\"\n\
            direction = \"back\"\n[run]\nlimit = \"20 min\"\n";
        home("", &format!("heartbeat_interval = \"{interval}\"\n{workload}"))
    };
    let kept = idle("10 s");
    assert!(only(&kept).back.delivery_times.unwrap().max < 0.1);
    let counts = kept.nats[0].counts;
    assert_eq!((counts.mappings, counts.expired, counts.refused), (1, 0, 0));
    let lost = idle("off");
    assert!(lost.associations[0].back.messages_delivered <= 1);
    assert!(lost.nats[0].counts.refused > 0);
}

/// A NAT with a mapping for each address of the server: RFC 4787 4.1. Each lets in only what comes
/// from its address, so that the server needs a path of its own for each of them.
#[test]
fn each_address_of_the_peer_has_a_mapping() {
    for (mapping, mappings) in [("endpoint-independent", 1), ("address-dependent", 2)] {
        let outcome = run(&format!(
            r#"
            schema = 1
            [[node]]
            name = "laptop"
            addresses = ["10.0.0.1"]
            [[node]]
            name = "router"
            [[node]]
            name = "server"
            addresses = ["198.51.100.1", "198.51.100.2"]
            [[link]]
            between = ["laptop", "router"]
            rate = "10 Mbit/s"
            delay = "5 ms"
            nat = {{ mapping = "{mapping}", filtering = "{mapping}" }}
            [[link]]
            between = ["router", "server.0"]
            delay = "5 ms"
            [[link]]
            between = ["router", "server.1"]
            delay = "5 ms"
            [transport]
            encapsulation = "udp"
            [[association]]
            from = "laptop"
            to = "server"
            workload = {{ size = "1 MB" }}
            "#
        ));
        let paths = &only(&outcome).sender.paths;
        assert_eq!(paths.len(), 2);
        assert!(paths.iter().all(|path| path.state == "active"), "{mapping}: {paths:?}");
        let paths = &only(&outcome).receiver.paths;
        assert_eq!((paths.len(), paths[0].local.as_str()), (mappings as usize, "198.51.100.1"));
        assert_eq!(outcome.nats[0].name, "laptop->router");
        assert_eq!(
            (outcome.nats[0].counts.mappings, outcome.nats[0].counts.refused),
            (mappings, 0)
        );
    }
}

/// Two uplinks behind NATs of their own: the handshake lists no address that a NAT translates
/// (RFC 6951 5.7), and the peer learns the second path from a HEARTBEAT.
#[test]
fn both_uplinks_work_behind_nats() {
    let outcome = run(r#"
        schema = 1
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        nat = {}
        edge = { delay = "1 ms" }
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        nat = {}
        [transport]
        encapsulation = "udp"
        [workload]
        size = "20 MB"
        [[fault]]
        at = "3 s"
        path = 0
        kind = "down"
        [[fault]]
        at = "1 s"
        path = 1
        kind = "nat-reset"
        "#);
    let association = only(&outcome);
    let mut remotes: Vec<_> =
        association.receiver.paths.iter().map(|path| path.remote.as_str()).collect();
    remotes.sort_unstable();
    assert_eq!(remotes, ["192.0.2.1", "192.0.2.2"]);
    let gap = association.forward.longest_gap.unwrap();
    assert!(gap.length < 2.0, "{gap:?}");
    assert_eq!(outcome.unroutable_packets, 0);
}

/// Two hosts behind one NAT, which gives each of them a port of its own.
#[test]
fn two_hosts_share_an_external_address() {
    let outcome = run(r#"
        schema = 1
        [[node]]
        name = "a"
        addresses = ["10.0.0.1"]
        [[node]]
        name = "b"
        addresses = ["10.0.0.2"]
        [[node]]
        name = "home"
        [[node]]
        name = "server"
        addresses = ["198.51.100.1"]
        [[link]]
        between = ["a", "home"]
        [[link]]
        between = ["b", "home"]
        [[link]]
        between = ["home", "server"]
        name = "uplink"
        rate = "10 Mbit/s"
        delay = "10 ms"
        nat = { address = "203.0.113.7" }
        [transport]
        encapsulation = "udp"
        [[association]]
        from = "a"
        to = "server"
        port = 5001
        workload = { size = "1 MB" }
        [[association]]
        from = "b"
        to = "server"
        port = 5002
        workload = { size = "1 MB", direction = "both" }
        "#);
    assert_eq!(outcome.nats[0].counts.mappings, 2);
    for association in &outcome.associations {
        assert!(association.complete, "{association:#?}");
        assert_eq!(association.receiver.paths[0].remote, "203.0.113.7");
    }
}

/// What is sent from outside finds no mapping before something has gone out.
#[test]
fn nothing_is_opened_from_outside() {
    let outcome = home(
        "",
        "[run]\nlimit = \"10 s\"\n[[association]]\nfrom = \"receiver\"\nto = \"sender\"\n\
         workload = { size = \"1 MB\" }\n",
    );
    assert_eq!(outcome.associations[0].sender.established_at, None);
    assert!(outcome.nats[0].counts.refused > 1);
}

/// Programs' datagrams are translated too: the peer sees the external address and replies to it.
#[test]
fn datagrams_of_programs_are_translated() {
    let scenario = Scenario::from_toml(
        "schema = 1\n[[path]]\nnat = {}\ndelay = \"10 ms\"\n[transport]\nencapsulation = \"udp\"\n\
         [workload]\nsize = \"1 B\"\n[[fault]]\nat = \"1 s\"\npath = 0\nkind = \"nat-reset\"\n",
    )
    .unwrap();
    let mut network = DatagramNetwork::new(&scenario).unwrap();
    let send = |network: &mut DatagramNetwork, at, source: SocketAddr, destination| {
        let datagram = Datagram {
            source,
            destination,
            ecn: Ecn::NotEct,
            fragmentation: Fragmentation::System,
            contents: b"hello".into(),
        };
        network.send(at, &datagram);
        while let Some(next) = network.next_time() {
            if next > at + Duration::from_millis(500) {
                break;
            }
            if let Some(arrived) = network.advance() {
                return Some(arrived);
            }
        }
        None
    };
    let [inside, outside] = ["10.0.0.1:7", "10.0.0.2:9"].map(|text| text.parse().unwrap());
    let there = send(&mut network, Time::ZERO, inside, outside).unwrap();
    assert_eq!(there.source.ip().to_string(), "192.0.2.1");
    assert_ne!(there.source.port(), 7);
    let reply = send(&mut network, Time::from_millis(100), outside, there.source).unwrap();
    assert_eq!((reply.source, reply.destination), (outside, inside));
    assert!(send(&mut network, Time::from_millis(200), outside, inside).is_none());
    // The NAT loses its mappings.
    assert!(send(&mut network, Time::from_millis(900), inside, outside).is_some());
    assert!(send(&mut network, Time::from_secs(2), outside, there.source).is_none());
    let again = send(&mut network, Time::from_secs(3), inside, outside).unwrap();
    assert_ne!(again.source, there.source);
}

fn through(middlebox: &str, transport: &str) -> Outcome {
    run(&format!(
        r#"
        schema = 1
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "150 packets"
        mark_at = 20
        middlebox = {{ {middlebox} }}
        [transport]
        {transport}
        [workload]
        size = "10 MB"
        [run]
        limit = "10 min"
        "#
    ))
}

/// A queue marks packets that are ECN-capable. A middlebox in front of it clears the field, so it
/// has to drop them; the transfer goes on without ECN.
#[test]
fn bleaching_takes_the_marks_away() {
    let dropped = |middlebox: &str| {
        let outcome = through(middlebox, "profile = \"rfc9260\"\necn = true");
        only(&outcome);
        outcome.links[0].counts.dropped_queue
    };
    assert_eq!(dropped(""), 0);
    assert!(dropped("clear_ecn = true") > 0);
}

/// RFC 9260's own chunks and parameters pass; an INIT with an extension does not. The profile of
/// the RFC makes no attempt without it; `modern` does with its third INIT, unless chunks have to be
/// authenticated.
#[test]
fn a_firewall_that_knows_rfc_9260_alone() {
    let firewall = |transport: &str| through("drop_extensions = true", transport);
    let outcome = firewall("profile = \"rfc9260\"");
    only(&outcome);
    assert_eq!(outcome.links[0].counts.dropped_middlebox, 0);
    for transport in [
        "profile = \"rfc9260\"\npartial_reliability = true",
        "authentication = true\nauthenticated_chunks = \"data\"",
    ] {
        let outcome = firewall(transport);
        assert_eq!(outcome.associations[0].sender.established_at, None, "{transport}");
        assert!(outcome.links[0].counts.dropped_middlebox > 1);
    }
    for transport in ["", "partial_reliability = true\ninterleaving = true"] {
        let outcome = firewall(transport);
        let at = only(&outcome).sender.established_at.unwrap();
        assert!((3.0..3.2).contains(&at), "{transport}: {at}");
        assert_eq!(outcome.links[0].counts.dropped_middlebox, 2);
    }
}

/// A narrow link that drops what does not fit, without an ICMP message: path MTU discovery finds
/// its MTU, whether or not fragments of its first packets pass.
#[test]
fn a_black_hole_for_large_packets_is_found() {
    for middlebox in ["", "drop_fragments = true"] {
        let outcome = run(&format!(
            r#"
            schema = 1
            [[path]]
            rate = "10 Mbit/s"
            delay = "20 ms"
            mtu = "1300 B"
            middlebox = {{ {middlebox} }}
            [transport]
            path_mtu_discovery = true
            [workload]
            size = "10 MB"
            "#
        ));
        let association = only(&outcome);
        assert!(association.forward.goodput > 0.8e6, "{}", association.forward.goodput);
    }
}
