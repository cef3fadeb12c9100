//! Section 5.1.2: the peer's addresses.

use super::*;

const LISTED: [u8; 4] = [10, 0, 0, 77];

/// A peer that has listed these addresses in an INIT or, if `called`, in an INIT ACK.
fn told(setup: Setup, called: bool, addresses: &[IpAddr]) -> (Net, Hand) {
    let mut net = Setup { listens: [true, true], ..setup }.build();
    if !called {
        let mut hand = Hand::new(1);
        let write = |p: &mut wire::ParameterWriter<'_>| {
            addresses.iter().for_each(|ip| p.address(*ip).unwrap());
        };
        let answers = hand.init(&mut net, &write);
        assert_eq!(texts(&answers), ["INIT ACK"]);
        hand.learn(&answers[0]);
        hand.echo(&mut net);
        return (net, hand);
    }
    let hand = Hand::new(0).be_called(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            addresses.iter().try_for_each(|ip| p.address(*ip))?;
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    assert_eq!(answers[0].text(), "COOKIE ECHO");
    hand.say(&mut net, &|w| w.cookie_ack().unwrap());
    (net, hand)
}

#[test]
fn s5_1_2_r1_without_addresses_the_source_is_the_only_one() {
    for called in [false, true] {
        let (mut net, hand) = told(Setup::default(), called, &[]);
        assert_eq!(remotes(&net, hand.host), [hand.ip].into());
        works(&mut net, &hand, 1);
    }
}

#[test]
fn s5_1_2_r3_the_abort_for_a_host_name_goes_to_the_source() {
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand { ip: v4(0, 41), ..Hand::new(1) };
    let mark = net.log.len();
    hand.init(&mut net, &|p| {
        p.ipv4(LISTED.into()).unwrap();
        p.typed(11, b"host.example\0").unwrap();
    });
    let answers = net.sent_since(1, mark);
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].to.ip()), ("ABORT", hand.ip));
}

#[test]
fn s5_1_2_r4_r5_the_listed_addresses_and_the_source_are_the_destinations() {
    for called in [false, true] {
        let (mut net, hand) = told(Setup::default(), called, &[LISTED.into(), v4(1, 5)]);
        let expected = BTreeSet::from([hand.ip, LISTED.into(), v4(1, 5)]);
        assert_eq!(remotes(&net, hand.host), expected);
        works(&mut net, &hand, 1);
        net.run(S(100));
        let used: BTreeSet<IpAddr> = net.sent(hand.host).iter().map(|p| p.to.ip()).collect();
        assert_eq!(used, expected);
    }
}

/// An INIT that lists an address of a peer belongs to the association with that peer, in all
/// states.
#[test]
fn s5_1_2_r6_an_init_belongs_to_the_association_of_each_address_that_it_lists() {
    type Make = fn() -> (Net, Hand);
    for (make, established) in [(opened as Make, true), (echoed, false), (calling, false)] {
        let (mut net, hand) = make();
        let IpAddr::V4(known) = hand.ip else { unreachable!() };
        let thief = Hand { ip: v4(0, 55), tag: 4711, ..hand.clone() };
        let count = |net: &Net| net.hosts[hand.host].endpoint.associations().count();
        assert_eq!(count(&net), 1);
        let mut answers = thief.init(&mut net, &|p| p.ipv4(known).unwrap());
        answers.retain(|p| p.has("INIT ACK"));
        assert!(answers.is_empty(), "no cookie for the stranger");
        assert_eq!((count(&net), net.a(hand.host).is_established()), (1, established));
    }
    // The same for an INIT ACK from an unknown address that lists the address of the peer.
    let (mut net, hand) = calling();
    let other = Hand { ip: v4(0, 55), ..hand.clone() };
    let IpAddr::V4(known) = hand.ip else { unreachable!() };
    let mark = net.log.len();
    other.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.ipv4(known)?;
            p.state_cookie(b"a cookie of ours")
        })
        .unwrap();
    });
    let answers = net.sent_since(0, mark);
    assert_eq!(texts(&answers), ["COOKIE ECHO"]);
    assert!(remotes(&net, 0).contains(&hand.ip));
}

#[test]
fn s5_1_2_r8_r9_of_two_families_the_supported_one_is_used() {
    let both = [LISTED.into(), v6(0, 77), v4(1, 5), v6(1, 5)];
    for called in [false, true] {
        let (mut net, hand) = told(Setup::default(), called, &both);
        assert_eq!(remotes(&net, hand.host), [hand.ip, LISTED.into(), v4(1, 5)].into());
        assert!(net.sent(hand.host).iter().all(|p| !p.has("ABORT") && !p.has("ERROR")));
        works(&mut net, &hand, 1);
    }
}

#[test]
fn s5_1_2_r10_r11_what_an_init_uses_is_supported_whatever_it_says() {
    for types in [[5], [6]] {
        let mut net = Setup { dual: true, ..Setup::default() }.build();
        let mut hand = Hand::new(1);
        let answers = hand.init(&mut net, &|p| {
            p.supported_address_types(&types).unwrap();
            p.address(hand.ip).unwrap();
            p.address(v6(0, 98)).unwrap();
        });
        assert_eq!(texts(&answers), ["INIT ACK"]);
        let list = parameters(&chunk(&answers[0].bytes, 2));
        for family in [5, 6] {
            assert!(list.iter().any(|p| p.ty == family), "an address of type {family}");
        }
        assert!(list.iter().all(|p| p.ty != 8), "no error indication");
        hand.learn(&answers[0]);
        hand.echo(&mut net);
        assert_eq!(remotes(&net, 1), [hand.ip, v6(0, 98)].into());
        works(&mut net, &hand, 1);
    }
}
