//! Sections 5.3 and 5.4: adding and deleting addresses, and the primary address.

use super::*;

#[test]
fn s5_3_r2_an_acknowledgement_of_what_was_never_sent_ends_the_association() {
    for (ahead, ends) in
        [(0u32, true), (1, true), ((1 << 31) - 1, true), (u32::MAX, false), (1 << 31, false)]
    {
        let (mut net, hand) = by_hand();
        let answers = acknowledge(&mut net, &hand, ahead, &|_| ());
        assert_eq!((net.a(1).is_closed(), answers.iter().any(|p| p.has("ABORT"))), (ends, ends));
    }
    // An ASCONF that has been sent and answered is an old one.
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    for _ in 0..2 {
        acknowledge(&mut net, &hand, 0, &|_| ());
    }
    assert!(net.a(1).is_established());
    acknowledge(&mut net, &hand, 1, &|_| ());
    assert!(net.a(1).is_closed());
}

#[test]
fn s5_3_r3_r4_r5_r24_a_new_address_is_quiet_until_it_is_known_and_verified() {
    let mut net = joined(2);
    for h in 0..2 {
        net.send(h, 0, payload(h as u64, 200_000)).unwrap();
    }
    net.run(MS(50));
    net.drop_once(&["ASCONF", "ASCONF-ACK"]);
    let mark = net.log.len();
    net.comes(0, v4(7, 0));
    net.run(S(60));
    let (new, log) = (v4(7, 0), &net.log[mark..]);
    let acked = log.iter().position(|p| p.has("ASCONF-ACK") && p.delivered).unwrap();
    let names = |p: &Sent| p.chunks.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    for p in log[..acked].iter().filter(|p| p.from.ip() == new) {
        assert_eq!(names(p), ["AUTH", "ASCONF"]);
    }
    let verified = |p: &Sent| p.from.ip() == new && p.has("HEARTBEAT ACK");
    let verified = log.iter().position(verified).expect("the new path is verified");
    let quiet = ["AUTH", "ASCONF-ACK", "HEARTBEAT", "HEARTBEAT ACK"];
    for p in log[..verified].iter().filter(|p| p.to.ip() == new) {
        assert!(names(p).iter().all(|name| quiet.contains(&&name[..])), "{}", p.text());
    }
    assert!(net.states(1).iter().all(|s| *s == ACTIVE));
    // Without verification the path stays unconfirmed.
    let (mut net, hand) = by_hand();
    ask(&mut net, &hand, 0, &|p| add(p, 1, v4(6, 8)));
    net.send(1, 0, payload(1, 10_000)).unwrap();
    net.run(S(20));
    let sent = net.sent(1);
    let there: Vec<_> = sent.iter().filter(|p| p.to.ip() == v4(6, 8)).collect();
    assert!(!there.is_empty() && there.iter().all(|p| p.text() == "HEARTBEAT"));
    assert!(remotes(&net).contains(&(v4(6, 8), UNCONFIRMED)));
}

#[test]
fn s5_3_r6_a_peer_that_does_not_understand_changes_gets_no_more_of_them() {
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    let id = request(&read(&net.sent(1), ASCONF)[0].list[0]).1;
    acknowledge(&mut net, &hand, 0, &|p| not_understood(p, id));
    assert_eq!(net.address_changes(1), [(AddressChange::Added, v4(3, 1), false)]);
    let mark = net.log.len();
    net.comes(1, v4(4, 1));
    net.goes(1, v4(0, 1));
    net.run(S(20));
    let list = read(&net.sent_since(1, mark), ASCONF);
    assert!(list.iter().flat_map(|a| &a.list).all(|p| p.ty != ADD && p.ty != DELETE));
}

#[test]
fn s5_3_r7_a_peer_that_does_not_understand_a_primary_address_gets_no_more_of_them() {
    let (mut net, hand) = by_hand();
    let now = net.now;
    net.am(1).set_peer_primary(now, v4(1, 1)).unwrap();
    net.settle();
    let asked = request(&read(&net.sent(1), ASCONF)[0].list[0]);
    assert_eq!((asked.0, &asked.2), (SET_PRIMARY, &octets(v4(1, 1))));
    acknowledge(&mut net, &hand, 0, &|p| not_understood(p, asked.1));
    assert_eq!(net.address_changes(1), [(AddressChange::Primary, v4(1, 1), false)]);
    let now = net.now;
    assert_eq!(net.am(1).set_peer_primary(now, v4(0, 1)), Err(AddressError::NotAgreed));
    // The peer may still support the other requests.
    net.comes(1, v4(4, 1));
    let list = read(&net.sent(1), ASCONF);
    assert_eq!((list.len(), list[1].list[0].ty), (2, ADD));
}

/// Host 1 has deleted its address on network 0 and waits for the answer; it still receives on that
/// address.
fn deleting() -> (Net, Hand, usize) {
    let (mut net, hand) = by_hand();
    let mark = net.log.len();
    let now = net.now;
    net.hosts[1].endpoint.remove_local_address(now, v4(0, 1));
    net.settle();
    let list = read(&net.sent_since(1, mark), ASCONF);
    assert_eq!(request(&list[0].list[0]).2, octets(v4(0, 1)));
    (net, hand, mark)
}

/// Sends a packet of the peer to this address of host 1.
fn say_to(net: &mut Net, hand: &Hand, to: IpAddr, packet: &[u8]) {
    net.inject((hand.ip, 0).into(), (to, 0).into(), packet);
}

#[test]
fn s5_3_r8_r9_an_address_is_received_on_until_its_deletion_is_acknowledged_and_sends_no_more() {
    let (mut net, hand, mark) = deleting();
    let packet = hand.packet(hand.peer_tag, &|w| w.data(&hand.chunk(1, b"late")).unwrap());
    say_to(&mut net, &hand, v4(0, 1), &packet);
    // The paths from the other address are verified.
    net.run(S(1));
    for asked in net.sent_since(1, mark) {
        for chunk in asked.parsed() {
            let wire::Chunk::Heartbeat(h) = chunk else { continue };
            let packet = hand.packet(hand.peer_tag, &|w| w.heartbeat_ack(h.info).unwrap());
            say_to(&mut net, &hand, v4(1, 1), &packet);
        }
    }
    net.send(1, 0, payload(1, 5000)).unwrap();
    net.run(S(5));
    assert_eq!(net.hosts[1].received.len(), 1);
    let sent = net.sent_since(1, mark);
    for name in ["SACK", "DATA"] {
        assert!(sent.iter().any(|p| p.has(name)), "{}", net.tail(30));
    }
    assert!(sent.iter().all(|p| p.from.ip() == v4(1, 1)));
}

#[test]
fn s5_3_r10_an_abort_to_an_address_that_is_being_deleted_is_ignored() {
    for t_bit in [false, true] {
        let (mut net, hand, _) = deleting();
        let tag = if t_bit { hand.tag } else { hand.peer_tag };
        let packet = hand.packet(tag, &|w| w.abort(t_bit, |_| Ok(())).unwrap());
        say_to(&mut net, &hand, v4(0, 1), &packet);
        assert!(net.a(1).is_established());
        // An ABORT to another address is processed.
        say_to(&mut net, &hand, v4(1, 1), &packet);
        assert!(net.a(1).is_closed());
    }
}

#[test]
fn s5_3_r11_r12_r13_the_last_address_is_not_deleted() {
    for paths in [1, 2] {
        let mut net = joined(paths);
        let now = net.now;
        for n in 0..paths {
            net.hosts[0].endpoint.remove_local_address(now, v4(n, 0));
            net.settle();
        }
        net.run(S(10));
        let deleted = |net: &Net| {
            let mut list = read(&net.sent(0), ASCONF);
            list.dedup();
            let requests = list.iter().flat_map(|a| &a.list).map(request);
            requests.filter(|r| r.0 == DELETE).map(|r| r.2).collect::<Vec<_>>()
        };
        let expected: Vec<Vec<u8>> = (0..paths - 1).map(|n| octets(v4(n, 0))).collect();
        assert_eq!(deleted(&net), expected);
        // Once a new address has been added, the last one is deleted.
        net.comes(0, v4(7, 0));
        net.run(S(10));
        let mut list = read(&net.sent(0), ASCONF);
        list.dedup();
        let types: Vec<u16> = list.iter().flat_map(|a| &a.list).map(|p| p.ty).collect();
        assert_eq!(types[usize::from(paths) - 1..], [ADD, DELETE]);
    }
}

#[test]
fn s5_3_r14_an_asconf_does_not_leave_from_an_address_that_it_deletes() {
    for paths in [1, 2, 3] {
        let mut net = joined(paths);
        net.drop_once(&["ASCONF", "ASCONF-ACK"]);
        net.comes(0, v4(7, 0));
        net.run(S(9));
        for n in 0..paths {
            // The host still has the address: only the endpoint has removed it.
            let now = net.now;
            net.hosts[0].endpoint.remove_local_address(now, v4(n, 0));
            net.run(S(9));
        }
        let mut deletions = 0;
        for sent in net.sent(0) {
            for asconf in read(std::slice::from_ref(&sent), ASCONF) {
                let deleted = asconf.list.iter().map(request).filter(|r| r.0 == DELETE);
                for (_, _, address) in deleted {
                    deletions += 1;
                    assert_ne!(address, octets(sent.from.ip()));
                    // The wildcard deletes all addresses but the source.
                    assert!(address != [0; 4] || sent.from.ip() == v4(7, 0));
                }
            }
        }
        assert_eq!(deletions, paths);
    }
}

#[test]
fn s5_3_r15_r16_the_peers_last_address_stays() {
    let (mut net, hand) = by_hand();
    for (n, times) in [(0, 1), (1, 2)] {
        let answers =
            ask(&mut net, &hand, n, &|p| (0..times).for_each(|id| delete(p, id, hand.ip)));
        assert_eq!(responses(&answers, &hand, n)[0], (ERROR, 0, LAST_ADDRESS));
        assert_eq!(remotes(&net), [(hand.ip, ACTIVE)]);
    }
    let mark = net.log.len();
    ask(&mut net, &hand, 2, &|p| delete(p, 1, hand.ip));
    assert_eq!(net.sent_since(1, mark).len(), 1, "nothing but the answer");
}

#[test]
fn s5_3_r17_r18_the_source_of_an_asconf_is_not_deleted_by_it() {
    let (mut net, hand) = by_hand();
    ask(&mut net, &hand, 0, &|p| add(p, 1, v4(6, 8)));
    let answers = ask(&mut net, &hand, 1, &|p| delete(p, 1, hand.ip));
    assert_eq!(responses(&answers, &hand, 1), [(ERROR, 1, SOURCE_ADDRESS)]);
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE), (v4(6, 8), UNCONFIRMED)]);
}

#[test]
fn s5_3_r19_an_addition_beyond_the_resources_is_refused() {
    let (mut net, hand) = with(open().max_paths(3));
    let answers = ask(&mut net, &hand, 0, &|p| (1..5).for_each(|n| add(p, n.into(), v4(n, 8))));
    assert_eq!(responses(&answers, &hand, 0), [(ERROR, 3, SHORTAGE), (ERROR, 4, SHORTAGE)]);
    assert_eq!(remotes(&net).len(), 3);
}

#[test]
fn s5_3_r20_r21_behind_a_refused_change_all_changes_are_refused() {
    // Refused because no more paths are possible.
    let (mut net, hand) = with(open().max_paths(3));
    ask(&mut net, &hand, 0, &|p| (1..3).for_each(|n| add(p, n.into(), v4(n, 8))));
    let before = remotes(&net);
    let answers = ask(&mut net, &hand, 1, &|p| {
        add(p, 1, v4(3, 8));
        delete(p, 2, v4(1, 8));
        add(p, 3, v4(1, 8));
    });
    assert_eq!(responses(&answers, &hand, 1).iter().map(|r| r.0).collect::<Vec<_>>(), [ERROR; 3]);
    assert_eq!(remotes(&net), before);
    // Refused for another reason.
    let answers = ask(&mut net, &hand, 2, &|p| {
        add(p, 1, ip("224.0.0.1"));
        delete(p, 2, v4(1, 8));
    });
    let found: Vec<_> = responses(&answers, &hand, 2).iter().map(|r| (r.0, r.1)).collect();
    assert_eq!(found, [(ERROR, 1), (ERROR, 2)]);
    assert_eq!(remotes(&net), before);
    // Changes before the refused one are performed.
    let answers = ask(&mut net, &hand, 3, &|p| {
        delete(p, 1, v4(1, 8));
        delete(p, 2, v4(9, 9));
        delete(p, 3, v4(2, 8));
    });
    let found: Vec<_> = responses(&answers, &hand, 3).iter().map(|r| (r.0, r.1)).collect();
    assert_eq!(found, [(ERROR, 2), (ERROR, 3)]);
    assert_eq!(remotes(&net).len(), 2);
}

#[test]
fn s5_3_r22_a_deleted_address_is_no_part_of_the_association() {
    let (mut net, hand) = by_hand();
    let gone = Hand { ip: v4(6, 8), ..hand.clone() };
    ask(&mut net, &hand, 0, &|p| add(p, 1, gone.ip));
    ask(&mut net, &hand, 1, &|p| delete(p, 1, gone.ip));
    assert_eq!(remotes(&net), [(hand.ip, ACTIVE)]);
    let mark = net.log.len();
    net.send(1, 0, payload(1, 3000)).unwrap();
    net.run(S(20));
    assert!(net.sent_since(1, mark).iter().all(|p| p.to.ip() == hand.ip));
    gone.data(&mut net, 1);
    assert!(net.hosts[1].received.is_empty() && net.a(1).is_established());
}

#[test]
fn s5_3_r25_r26_data_to_a_new_address_before_the_answer_is_not_out_of_the_blue() {
    let (mut net, hand) = by_hand();
    net.comes(1, v4(3, 1));
    let mark = net.log.len();
    let packet = hand.packet(hand.peer_tag, &|w| w.data(&hand.chunk(1, b"early")).unwrap());
    say_to(&mut net, &hand, v4(3, 1), &packet);
    net.send(1, 0, payload(1, 3000)).unwrap();
    net.run(MS(500));
    let sent = net.sent_since(1, mark);
    assert!(sent.iter().all(|p| !p.has("ABORT")));
    assert!(sent.iter().filter(|p| p.from.ip() == v4(3, 1)).all(|p| p.text() == "ASCONF"));
}

#[test]
fn s5_3_2_r1_the_lookup_address_is_one_of_the_association() {
    // The only address is renumbered: the packet leaves from the new one.
    let mut net = joined(1);
    net.goes(0, v4(0, 0));
    net.run(S(1));
    net.comes(0, v4(7, 0));
    net.run(S(5));
    let sent = net.sent_with(0, "ASCONF");
    assert_eq!(sent[0].from.ip(), v4(7, 0));
    assert_eq!(read(&sent, ASCONF)[0].lookup.as_ref().unwrap().value, octets(v4(0, 0)));
    assert_eq!(remotes(&net), [(v4(7, 0), ACTIVE)]);
}

#[test]
fn s5_3_2_r2_r3_the_source_finds_the_association_first_and_gets_the_answer() {
    let (mut net, hand) = by_hand();
    // The source is an address of this association, the lookup address is one of another
    // association.
    let other = Hand { ip: v4(0, 60), tag: 77, ..Hand::new(1) };
    let mut other = Hand { tsn: 5000, ..other };
    let answers = other.init(&mut net, &|p| p.supported_extensions(&[193, 128]).unwrap());
    other.learn(&answers[0]);
    other.echo(&mut net);
    let before = net.a(1).paths().count();
    ask_as(&mut net, &hand, other.ip, 0, &|p| add(p, 1, v4(5, 8)));
    assert_eq!(net.a(1).paths().count(), before, "not the other association");
    // From an unknown source address, the lookup address finds the association.
    let serial = if read(&net.log, ASCONF_ACK).is_empty() { 0 } else { 1 };
    let moved = Hand { ip: v4(6, 8), ..hand.clone() };
    let answers = ask_as(&mut net, &moved, hand.ip, serial, &|p| {
        add(p, 1, moved.ip);
        delete(p, 2, hand.ip);
    });
    assert_eq!(answers[0].to.ip(), moved.ip);
    assert!(responses(&answers, &hand, serial).is_empty());
}

#[test]
fn s5_4_r1_a_primary_address_is_one_that_the_peer_knows() {
    let (mut net, hand) = by_hand();
    let now = net.now;
    let unknown = net.am(1).set_peer_primary(now, v4(9, 9));
    assert_eq!(unknown, Err(AddressError::NoSuchAddress(v4(9, 9))));
    // The request for a new address follows its addition.
    net.comes(1, v4(3, 1));
    net.comes(1, v4(4, 1));
    let now = net.now;
    net.am(1).set_peer_primary(now, v4(4, 1)).unwrap();
    acknowledge(&mut net, &hand, 0, &|_| ());
    let list = read(&net.sent(1), ASCONF);
    let types = list.iter().map(|a| a.list.iter().map(|p| p.ty).collect::<Vec<_>>());
    assert_eq!(types.collect::<Vec<_>>(), [vec![ADD], vec![ADD, SET_PRIMARY]]);
}
