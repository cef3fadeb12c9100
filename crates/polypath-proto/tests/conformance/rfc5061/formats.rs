//! Sections 3 and 4: numbers, chunks and parameters.

use super::*;

#[test]
fn s3_r1_r2_sequence_numbers_come_around() {
    let (mut net, hand) = by_hand();
    assert_eq!(hand.tsn, 0xffff_fff0);
    for n in 0..40 {
        let serial = hand.tsn.wrapping_add(n);
        assert_eq!(serial == 0, n == 16);
        let answers = ask(&mut net, &hand, n, &|p| add(p, n, v4(5, 8)));
        assert!(responses(&answers, &hand, n).is_empty());
    }
}

#[test]
fn s4_1_1_r1_each_asconf_is_acknowledged() {
    let (mut net, hand) = by_hand();
    for (n, requests) in [
        (0, (&|_: &mut AsconfWriter<'_>| ()) as Requests<'_>),
        (1, &|p| add(p, 1, v4(5, 8))),
        (2, &|p| delete(p, 1, v4(5, 8))),
        (3, &|p| p.request(SET_PRIMARY, 1, v4(0, 98)).unwrap()),
        (4, &|p| delete(p, 1, v4(9, 9))),
    ] {
        assert_eq!(read(&ask(&mut net, &hand, n, requests), ASCONF_ACK).len(), 1);
    }
}

#[test]
fn s4_1_1_r2_asconf_and_asconf_ack_stand_behind_an_auth_chunk() {
    let mut net = joined(2);
    for h in 0..2 {
        net.comes(h, v4(7, h));
        net.run(S(3));
        net.goes(h, v4(0, h));
        net.run(S(3));
    }
    let mut seen = 0;
    for sent in &net.log {
        let types: Vec<u16> = bytes::chunks(&sent.bytes).iter().map(|c| c.ty).collect();
        for ty in [ASCONF, ASCONF_ACK] {
            let Some(at) = types.iter().position(|t| *t == ty) else { continue };
            assert!(types[..at].contains(&AUTH), "{types:?}");
            seen += 1;
        }
    }
    assert!(seen >= 8);
    for h in 0..2 {
        assert!(net.address_changes(h).iter().all(|(.., granted)| *granted));
    }
}

#[test]
fn s4_1_1_r3_without_auth_both_chunks_are_discarded_in_silence() {
    let mut net = joined(2);
    net.drop_all("ASCONF-ACK");
    net.comes(1, v4(7, 1));
    net.run(MS(100));
    let serial = read(&net.sent_with(1, "ASCONF"), ASCONF)[0].serial;
    let tag = net.sent_with(0, "HEARTBEAT")[0].tag;
    let hand = Hand { ip: v4(0, 0), ..Hand::new(1) };
    let expected = net.sent_with(0, "INIT").remove(0);
    let first = u32_at(&bytes::chunk(&expected.bytes, 1).value, 12);
    let (paths, mark) = (remotes(&net), net.log.len());
    for packet in [
        hand.packet(tag, &|w| w.asconf_ack(serial, |_| Ok(())).unwrap()),
        hand.packet(tag, &|w| {
            w.asconf(first, v4(0, 0), |p| p.request(ADD, 1, v4(6, 6))).unwrap();
        }),
    ] {
        net.inject((hand.ip, 0).into(), (v4(0, 1), 0).into(), &packet);
    }
    assert_eq!((net.log.len(), remotes(&net)), (mark + 2, paths));
    assert!(net.address_changes(1).is_empty());
}

#[test]
fn s4_1_1_r4_r5_the_first_parameter_is_an_address_that_the_peer_knows() {
    for paths in [1, 2, 3] {
        let mut net = joined(paths);
        let before: Vec<Vec<u8>> = (0..paths).map(|n| octets(v4(n, 0))).collect();
        net.comes(0, v4(7, 0));
        net.run(S(3));
        net.goes(0, v4(0, 0));
        net.run(S(3));
        let list = read(&net.log, ASCONF);
        assert!(list.len() >= 2);
        for (n, asconf) in list.iter().enumerate() {
            let lookup = asconf.lookup.clone().unwrap();
            let known = before.contains(&lookup.value) || (n > 0 && lookup.value == [10, 7, 0, 1]);
            assert!(lookup.ty == 5 && known, "{asconf:?}");
        }
    }
}

#[test]
fn s4_1_1_r6_host_names_are_ignored() {
    let (mut net, hand) = by_hand();
    let name = [&[0, 11, 0, 16][..], b"example.org\0"].concat();
    let add_name = [&[0xc0, 1, 0, 24, 0, 0, 0, 1][..], &name].concat();
    ask(&mut net, &hand, 0, &|p| p.raw(&add_name).unwrap());
    // The same as the lookup address.
    let value = [&hand.tsn.wrapping_add(1).to_be_bytes()[..], &name].concat();
    hand.say(&mut net, &|w| w.typed_chunk(ASCONF as u8, 0, &value).unwrap());
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE)]);
    assert!(net.a(1).is_established());
}

#[test]
fn s4_1_1_r7_who_does_not_understand_asconf_skips_and_reports_it() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1).open(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.asconf(hand.tsn, hand.ip, |p| p.request(ADD, 1, v4(6, 6))).unwrap();
        w.data(&hand.chunk(1, b"behind")).unwrap();
    });
    let causes: Vec<u16> = answers.iter().flat_map(Sent::causes).collect();
    assert_eq!(causes, [6], "Unrecognized Chunk Type");
    assert_eq!(net.hosts[1].received.len(), 1);
    assert!(net.a(1).is_established());
}

#[test]
fn s4_2_r1_parameters_where_they_do_not_belong_are_ignored() {
    let mut net = pair(1, open().build().unwrap());
    let mut hand = Hand::new(1);
    let address = [0, 5, 0, 8, 10, 6, 0, 7];
    let request = [&[0, 0, 0, 1][..], &address].concat();
    let answers = hand.init(&mut net, &|p| {
        p.supported_extensions(&[193, 128]).unwrap();
        p.typed(ADD, &request).unwrap();
        p.typed(DELETE, &request).unwrap();
        p.typed(ERROR, &[0, 0, 0, 1]).unwrap();
        p.typed(SUCCESS, &[0, 0, 0, 1]).unwrap();
    });
    hand.learn(&answers[0]);
    hand.echo(&mut net);
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE)]);
    // Responses in a request.
    ask(&mut net, &hand, 0, &|p| p.success(1).unwrap());
    assert!(net.a(1).is_established());
}

#[test]
fn s4_2_1_r2_no_multicast_or_broadcast_address_is_added() {
    let wrong = ["224.0.0.1", "255.255.255.255", "ff02::1"].map(ip);
    let (mut net, hand) = by_hand();
    for (n, address) in (0..).zip(wrong) {
        let answers = ask(&mut net, &hand, n, &|p| add(p, 9, address));
        assert_eq!(responses(&answers, &hand, n), [(ERROR, 9, UNRESOLVABLE)]);
    }
    net.run(S(5));
    assert!(net.sent(1).iter().all(|p| p.to.ip() == hand.ip));
    // polypath does not announce such an address either.
    let mut net = joined(2);
    for address in wrong {
        net.comes(0, address);
        net.run(S(1));
    }
    assert!(read(&net.sent(0), ASCONF).is_empty());
}

#[test]
fn s4_2_1_r3_the_wildcard_adds_the_source_of_the_packet() {
    let (mut net, hand) = by_hand();
    let moved = Hand { ip: v4(6, 8), ..hand.clone() };
    let any = ip("0.0.0.0");
    let answers = ask_as(&mut net, &moved, hand.ip, 0, &|p| add(p, 1, any));
    assert!(responses(&answers, &hand, 0).is_empty());
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE), (moved.ip, UNCONFIRMED)]);
}

#[test]
fn s4_2_2_r3_the_wildcard_deletes_all_addresses_but_the_source() {
    let (mut net, hand) = by_hand();
    ask(&mut net, &hand, 0, &|p| (1..4).for_each(|n| add(p, n.into(), v4(n, 8))));
    assert_eq!(remotes(&net).len(), 4);
    let answers = ask(&mut net, &hand, 1, &|p| delete(p, 1, ip("0.0.0.0")));
    assert!(responses(&answers, &hand, 1).is_empty());
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE)]);
}

#[test]
fn s4_2_6_r2_the_adaptation_layer_is_told_and_read_in_init_and_init_ack_alone() {
    let config = config().adaptation_layer(Some(7)).build().unwrap();
    let mut net = established(2, config);
    net.comes(0, v4(7, 0));
    net.run(S(3));
    let mut seen = 0;
    for sent in &net.log {
        for chunk in bytes::chunks(&sent.bytes) {
            let list = match chunk.ty {
                1 | 2 => {
                    seen += 1;
                    assert_eq!(parameters_of(&chunk, 0xc006).len(), 1);
                    continue;
                }
                ASCONF | ASCONF_ACK => elements(&chunk.value[4..]),
                9 => elements(&chunk.value),
                _ => continue,
            };
            assert!(list.iter().all(|p| p.ty != 0xc006));
        }
    }
    assert_eq!(seen, 2);
    let (mut net, hand) = by_hand();
    ask(&mut net, &hand, 0, &|p| p.raw(&[0xc0, 6, 0, 8, 0, 0, 0, 9]).unwrap());
    assert_eq!(net.a(1).peer_adaptation_layer(), None);
    assert!(net.a(1).is_established());
}

/// The parameters of this type in an INIT or INIT ACK.
fn parameters_of(chunk: &Raw, ty: u16) -> Vec<Raw> {
    bytes::parameters(chunk).into_iter().filter(|p| p.ty == ty).collect()
}

#[test]
fn s4_2_7_r2_r3_r4_r5_init_and_init_ack_list_the_chunk_types_once() {
    let mut net = joined(1);
    net.comes(0, v4(7, 0));
    net.run(S(3));
    let mut seen = 0;
    for sent in &net.log {
        for chunk in bytes::chunks(&sent.bytes) {
            match chunk.ty {
                1 | 2 => {
                    let list = parameters_of(&chunk, 0x8008);
                    assert_eq!(list.len(), 1);
                    let types = &list[0].value;
                    for ty in [ASCONF, ASCONF_ACK, AUTH] {
                        assert!(types.contains(&(ty as u8)));
                    }
                    // There is no chunk type 0: the length excludes the padding.
                    assert!(!types.contains(&0) && list[0].length == 4 + types.len());
                    seen += 1;
                }
                ASCONF | ASCONF_ACK => {
                    assert!(elements(&chunk.value[4..]).iter().all(|p| p.ty != 0x8008));
                }
                _ => {}
            }
        }
    }
    assert_eq!(seen, 2);
}
