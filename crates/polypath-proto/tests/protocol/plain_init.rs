//! INITs without extensions, after others were not answered (`plain_init`, profile `modern`).

use crate::common::*;
use polypath_proto::wire::chunk_type;
use polypath_proto::*;

/// Bytes of a packet with an INIT without parameters.
const PLAIN: usize = 12 + 20;

/// A middlebox between both hosts drops INITs with parameters.
fn behind_firewall(setup: Setup) -> Net {
    let mut net = setup.build();
    net.filter(|p| if p.has("INIT") && p.bytes.len() > PLAIN { Fate::Drop } else { Fate::Pass });
    net.connect(0);
    net
}

fn both(config: Config) -> Setup {
    Setup { configs: [config.clone(), config], ..Setup::default() }
}

/// Times in milliseconds and kinds of the INITs of host 0.
fn inits(net: &Net) -> Vec<(u64, bool)> {
    net.sent_with(0, "INIT").iter().map(|p| (p.ms(), p.bytes.len() == PLAIN)).collect()
}

#[test]
fn the_third_init_has_no_extensions() {
    for dynamic in [false, true] {
        let config = Config::modern()
            .to_builder()
            .authentication(dynamic)
            .dynamic_addresses(dynamic)
            .interleaving(true)
            .partial_reliability(true);
        let mut net = behind_firewall(both(config.build().unwrap()));
        net.drive_until(S(5), Net::all_active);
        assert_eq!(inits(&net), [(0, false), (1000, false), (3000, true)]);
        for h in [0, 1] {
            net.send(h, 0, payload(1, 100_000)).unwrap();
        }
        net.run(S(5));
        assert!(net.hosts.iter().all(|host| host.received.len() == 1));
    }
}

/// The peer may have been away: INITs with and without extensions take turns.
#[test]
fn both_kinds_take_turns() {
    let mut net = pair(1, Config::modern());
    net.drop_all("INIT");
    net.connect(0);
    net.run(S(600));
    let plain: Vec<bool> = inits(&net).into_iter().map(|(_, plain)| plain).collect();
    assert_eq!(plain, [false, false, true, true, false, false, true, true, false]);
    assert_eq!(net.closed(0), Some(CloseReason::NoAnswer));
}

/// A path gets as many INITs as others before one without extensions is sent.
#[test]
fn every_path_is_tried_first() {
    let mut net = pair(3, Config::modern());
    net.drop_all("INIT");
    let remotes = net.remotes(1);
    let now = net.now;
    net.hosts[0].endpoint.connect(now, PORT, &remotes).unwrap();
    net.run(S(600));
    let sizes: Vec<usize> = net.sent_with(0, "INIT").iter().map(|p| p.bytes.len()).collect();
    let long: Vec<bool> = sizes.iter().map(|size| *size == sizes[0]).collect();
    assert_eq!(long, [true, true, true, false, false, false, true, true, true]);
}

/// Both kinds have tags of their own: the INIT ACK for one with extensions, which agrees on them,
/// is late, and does not open the association after one without.
#[test]
fn a_late_init_ack_of_the_other_kind_is_dropped() {
    let mut net = pair(1, Config::modern());
    let mut count = 0;
    net.filter(move |p| {
        count += u32::from(p.has("INIT ACK"));
        match p.has("INIT ACK") && count <= 2 {
            true => Fate::Late(MS(3005 - if count == 2 { 1000 } else { 0 })),
            false => Fate::Pass,
        }
    });
    net.connect(0);
    net.drive_until(S(5), Net::all_active);
    let tags: Vec<u32> = net.sent_with(1, "INIT ACK").iter().map(|p| p.tag).collect();
    assert!(tags.len() == 3 && tags[0] == tags[1] && tags[1] != tags[2], "{tags:?}");
    net.send(0, 0, payload(1, 100_000)).unwrap();
    net.run(S(2));
    assert_eq!(net.hosts[1].received.len(), 1);
}

/// Who drops INITs must not switch off what the application requires (RFC 4895).
#[test]
fn authentication_is_never_left_out() {
    let authenticated = || {
        let config = Config::modern().to_builder().authentication(true);
        config.authenticated_chunks(ChunkTypes::authenticated(&[chunk_type::DATA])).build().unwrap()
    };
    let mut keys = AuthKeys::default();
    keys.set(1, b"secret").unwrap();
    let config = Config::modern().to_builder().authentication(true).build().unwrap();
    let secret = Setup { auth_keys: [keys, AuthKeys::default()], ..both(config) };
    for setup in [both(authenticated()), secret] {
        let mut net = behind_firewall(setup);
        net.run(S(600));
        assert!(inits(&net).len() == 9 && inits(&net).iter().all(|(_, plain)| !plain));
        assert_eq!(net.closed(0), Some(CloseReason::NoAnswer));
    }
}

#[test]
fn the_profile_of_the_rfc_repeats_its_init() {
    let config = Config::rfc9260().to_builder().interleaving(true).build().unwrap();
    let mut net = behind_firewall(both(config));
    net.run(S(600));
    assert!(inits(&net).iter().all(|(_, plain)| !plain));
}
