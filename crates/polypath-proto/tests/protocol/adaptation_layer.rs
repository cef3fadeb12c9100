//! The Adaptation Layer Indication in the handshake (RFC 5061 4.2.6).

use crate::common::*;
use polypath_proto::wire::{Chunk, Parameter, parameter_type};
use polypath_proto::{Config, Event};

/// Connects two hosts that announce these numbers, if any.
fn connected(tells: [Option<u32>; 2]) -> Net {
    let config = |tells| Config::rfc9260().to_builder().adaptation_layer(tells).build().unwrap();
    let mut net = Setup { configs: tells.map(config), ..Setup::default() }.build();
    net.establish();
    net
}

fn heard(net: &Net) -> [Option<u32>; 2] {
    [0, 1].map(|h| net.a(h).peer_adaptation_layer())
}

/// The indications in INIT and INIT ACK.
fn told(net: &Net) -> Vec<(&'static str, Option<u32>)> {
    let mut told = Vec::new();
    for packet in &net.log {
        let parsed = packet.parsed();
        let (name, init) = match parsed.first() {
            Some(Chunk::Init(init)) => ("INIT", init),
            Some(Chunk::InitAck(init)) => ("INIT ACK", init),
            _ => continue,
        };
        let number = init.parameters.iter().find_map(|p| match p {
            Ok(Parameter::AdaptationLayer(number)) => Some(number),
            _ => None,
        });
        told.push((name, number));
    }
    told
}

#[test]
fn each_side_hears_what_the_other_tells() {
    for opens in [None, Some(0), Some(u32::MAX)] {
        for accepts in [None, Some(9), Some(0x0900_0000)] {
            let mut net = connected([opens, accepts]);
            assert_eq!(heard(&net), [accepts, opens]);
            assert_eq!(told(&net), [("INIT", opens), ("INIT ACK", accepts)]);
            net.send(0, 0, payload(1, 3000)).unwrap();
            net.run(S(1));
            assert_eq!(net.hosts[1].received.len(), 1);
        }
    }
}

/// The cookie has to contain it: a listening endpoint stores nothing for an INIT.
#[test]
fn it_is_known_after_losses_in_the_handshake() {
    for lost in 1..=4 {
        let config =
            |tells| Config::rfc9260().to_builder().adaptation_layer(Some(tells)).build().unwrap();
        let mut net = Setup { configs: [3, 4].map(config), ..Setup::default() }.build();
        let mut packet = 0;
        net.filter(move |_| {
            packet += 1;
            if packet == lost { Fate::Drop } else { Fate::Pass }
        });
        net.connect(0);
        net.run(S(10));
        assert_eq!(heard(&net), [Some(4), Some(3)], "packet {lost} lost");
    }
}

/// RFC 9260 5.2.4, actions A and B.
#[test]
fn a_restarted_peer_tells_anew_and_so_does_one_that_opens_at_once() {
    let mut net = connected([Some(1), Some(2)]);
    let now = net.now;
    let fresh = |tells| Config::rfc9260().to_builder().adaptation_layer(tells).build().unwrap();
    for (again, tells) in [Some(5), None].into_iter().enumerate() {
        let setup = Setup { seed: 1000 + again as u64, ..Setup::default() };
        net.hosts[0] = setup.host(0, &fresh(tells), false);
        net.connect(0);
        net.run(S(5));
        assert!(net.now > now && net.saw(1, &Event::Restarted));
        assert_eq!(heard(&net), [Some(2), tells]);
    }
    let config =
        |tells| Config::rfc9260().to_builder().adaptation_layer(Some(tells)).build().unwrap();
    let configs = [6, 7].map(config);
    let mut net = Setup { configs, listens: [true, true], ..Setup::default() }.build();
    net.connect(0);
    net.connect(1);
    net.run(S(5));
    assert_eq!(heard(&net), [Some(7), Some(6)]);
}

/// Indications of the wrong length are ignored, and repeated ones do no harm.
#[test]
fn indications_of_the_wrong_length_say_nothing() {
    for (value, expected) in [
        (&[][..], None),
        (&[1, 2, 3][..], None),
        (&[1, 2, 3, 4, 5][..], None),
        (&[0, 0, 0, 8][..], Some(8)),
    ] {
        let mut net = pair(1, Config::rfc9260());
        let mut hand = Hand::new(1);
        let answer = hand.init(&mut net, &|p| {
            for _ in 0..40 {
                p.typed(parameter_type::ADAPTATION_LAYER, value).unwrap();
            }
        });
        hand.learn(&answer[0]);
        assert_eq!(hand.echo(&mut net)[0].text(), "COOKIE ACK");
        assert_eq!(net.a(1).peer_adaptation_layer(), expected);
    }
}
