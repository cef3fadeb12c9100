//! Section 3.3.2: INIT.

use super::*;

type Change = fn(&mut Hand);

/// A listening endpoint's answers to an INIT with changed fields.
fn answers_to(change: Change) -> (Net, Hand, Vec<Sent>) {
    let mut net = pair(1, Config::rfc9260());
    let mut hand = Hand::new(1);
    change(&mut hand);
    let answers = hand.init(&mut net, &|_| {});
    (net, hand, answers)
}

/// The INIT of a host, and its parameters.
fn init_of(setup: Setup) -> (Raw, Vec<Raw>) {
    let mut net = setup.build();
    net.connect(0);
    let init = chunks(&net.log[0].bytes).remove(0);
    let list = parameters(&init);
    (init, list)
}

const ADDRESSES: [u16; 2] = [5, 6];
const HOST_NAME: u16 = 11;

#[test]
fn s3_3_2_r1_each_parameter_but_addresses_is_there_once() {
    for setup in [rich(), Setup::default()] {
        let (_, list) = init_of(setup);
        let mut seen = BTreeSet::new();
        for parameter in list.iter().filter(|p| !ADDRESSES.contains(&p.ty)) {
            assert!(seen.insert(parameter.ty), "{:#x} twice", parameter.ty);
        }
    }
}

#[test]
fn s3_3_2_r2_no_init_and_no_init_ack_has_a_host_name() {
    for setup in [rich(), Setup::default()] {
        let mut net = setup.build();
        net.connect(0);
        net.run(MS(15));
        assert_eq!(net.script(), ["A INIT", "B INIT ACK"]);
        for packet in &net.log {
            assert!(parameters(&chunks(&packet.bytes)[0]).iter().all(|p| p.ty != HOST_NAME));
        }
    }
}

#[test]
fn s3_3_2_r4_an_init_with_all_mandatory_fields_is_answered_by_an_init_ack() {
    let (_, _, answers) = answers_to(|_| {});
    assert_eq!(answers.iter().map(Sent::text).collect::<Vec<_>>(), ["INIT ACK"]);
}

#[test]
fn s3_3_2_r5_the_flags_of_an_init_are_0_and_ignored() {
    assert_eq!(init_of(Setup::default()).0.flags, 0);
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(1);
    let mut packet = hand.packet(0, &|w| w.init(&hand.fields(), |_| Ok(())).unwrap());
    packet[13] = 0xff;
    reseal(&mut packet);
    assert_eq!(hand.raw(&mut net, &packet)[0].text(), "INIT ACK");
}

#[test]
fn s3_3_2_r7_an_init_with_tag_0_is_silently_discarded() {
    let (net, _, answers) = answers_to(|h| h.tag = 0);
    assert!(answers.is_empty());
    assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
    let (mut net, hand) = opened();
    assert!(Hand { tag: 0, ..hand.clone() }.init(&mut net, &|_| {}).is_empty());
    hand.data(&mut net, 1);
    assert_eq!(net.hosts[1].received.len(), 1);
}

#[test]
fn s3_3_2_r8_the_window_of_an_init_has_1500_bytes_at_least() {
    assert!(Config::rfc9260().to_builder().receive_buffer(1499).build().is_err());
    let config = Config::rfc9260().to_builder().receive_buffer(1500).build().unwrap();
    let (init, _) = init_of(Setup { configs: [config.clone(), config], ..Setup::default() });
    assert_eq!(u32_at(&init.value, 4), 1500);
}

#[test]
fn s3_3_2_r9_r12_r14_an_init_with_a_small_window_or_no_streams_is_aborted() {
    let changes: [Change; 4] =
        [|h| h.rwnd = 1499, |h| h.rwnd = 0, |h| h.streams.0 = 0, |h| h.streams.1 = 0];
    for change in changes {
        let (net, hand, answers) = answers_to(change);
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
        assert_eq!(net.hosts[1].endpoint.associations().count(), 0);
        // An existing association does not change.
        let (mut net, hand) = opened();
        let mut wrong = Hand { tag: 0x77, ..hand.clone() };
        change(&mut wrong);
        let answers = wrong.init(&mut net, &|_| {});
        assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", 0x77));
        hand.data(&mut net, 1);
        assert_eq!(net.hosts[1].received.len(), 1);
        assert!(net.a(1).is_established());
    }
}

#[test]
fn s3_3_2_r10_the_window_is_never_reduced() {
    let (mut net, hand) = opened();
    let ack = net.sent_with(1, "INIT ACK").remove(0);
    let window = u32_at(&chunks(&ack.bytes)[0].value, 4);
    for n in 1..=40 {
        hand.data(&mut net, n);
    }
    net.run(S(1));
    let last = net.sent_with(1, "SACK").pop().unwrap().sack().unwrap();
    assert_eq!((last.cumulative, last.rwnd), (40, window), "everything has been read");
}

#[test]
fn s3_3_2_r11_r13_an_init_offers_one_stream_at_least() {
    assert!(Config::rfc9260().to_builder().outbound_streams(0).build().is_err());
    assert!(Config::rfc9260().to_builder().inbound_streams(0).build().is_err());
    let config =
        Config::rfc9260().to_builder().outbound_streams(1).inbound_streams(1).build().unwrap();
    let (init, _) = init_of(Setup { configs: [config.clone(), config], ..Setup::default() });
    assert_eq!(init.value[8..12], [0, 1, 0, 1]);
}

/// Checks random numbers: none occurs twice, and every bit is 0 in some and 1 in others.
pub(super) fn look_random(numbers: &[u32]) {
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "{numbers:x?}");
    let and = numbers.iter().fold(u32::MAX, |all, n| all & n);
    let or = numbers.iter().fold(0, |all, n| all | n);
    assert_eq!((and, or), (0, u32::MAX));
}

#[test]
fn s3_3_2_r15_the_initial_tsn_of_an_init_is_random() {
    let tsn = |seed| u32_at(&init_of(Setup { seed, ..Setup::default() }).0.value, 12);
    look_random(&(1..=64).map(tsn).collect::<Vec<_>>());
}

#[test]
fn s3_3_2_1_r1_parameters_follow_the_fixed_fields() {
    let (init, list) = init_of(rich());
    // Tag, a_rwnd, OS, MIS and TSN take 16 bytes; a list of parameters follows.
    assert_eq!(init.value[4..12], [0, 0x10, 0, 0, 0, 64, 8, 0]);
    let length = |p: &Raw| p.length + p.padding.len();
    assert_eq!(list.iter().map(length).sum::<usize>(), init.value.len() - 16);
    assert_eq!(list.iter().filter(|p| p.ty == 5).count(), 2);
    assert_eq!(list.iter().filter(|p| p.ty == 6).count(), 2);
}

#[test]
fn s3_3_2_1_2_r1_no_ipv4_mapped_address_is_sent() {
    let mapped = "::ffff:10.9.9.9".parse().unwrap();
    let addresses = vec![v4(0, 0), mapped];
    let config = EndpointConfig::new(PORT, addresses, Encapsulation::RawIp);
    let mut endpoint = Endpoint::new(config, Seed::from_u64(1));
    let remote = Remote { address: (v4(0, 1), 0).into(), local: None };
    endpoint.connect(Time::ZERO, PORT, &[remote]).unwrap();
    let mut buf = [0; 2000];
    let init = endpoint.poll_transmit(Time::ZERO, &mut buf).expect("an INIT");
    let list = parameters(&chunks(&buf[..init.size])[0]);
    assert!(list.iter().all(|p| p.ty != 6), "{list:?}");
    assert!(list.iter().any(|p| p.ty == 5 && p.value == [10, 9, 9, 9]), "{list:?}");
}

#[test]
fn s3_3_2_1_2_r2_without_addresses_the_source_of_the_init_is_the_sole_destination() {
    let (mut net, hand) = opened();
    net.run(S(100));
    let remotes: Vec<_> = net.a(1).paths().map(|p| p.remote).collect();
    assert_eq!(remotes, [hand.ip]);
    assert!(net.sent(1).iter().all(|p| p.to.ip() == hand.ip));
}

#[test]
fn s3_3_2_1_4_r2_an_init_or_init_ack_with_a_host_name_is_aborted() {
    let (mut net, hand) = (pair(1, Config::rfc9260()), Hand::new(1));
    let answers = hand.init(&mut net, &|p| p.typed(HOST_NAME, b"host.example\0").unwrap());
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
    assert_eq!(answers[0].causes(), [cause_code::UNRESOLVABLE_ADDRESS]);
    // Also in an INIT ACK, and before an address that could be used.
    let mut net = pair(1, Config::rfc9260());
    let hand = Hand::new(0).be_called(&mut net);
    let answers = hand.say(&mut net, &|w| {
        w.init_ack(&hand.fields(), |p| {
            p.typed(HOST_NAME, b"host.example\0")?;
            p.ipv4([10, 0, 0, 99].into())?;
            p.state_cookie(b"cookie")
        })
        .unwrap();
    });
    assert_eq!((answers[0].chunks[0].name.as_str(), answers[0].tag), ("ABORT", hand.tag));
    assert_eq!(answers[0].causes(), [cause_code::UNRESOLVABLE_ADDRESS]);
    assert!(net.closed(0).is_some());
}

#[test]
fn s3_3_2_1_5_r1_host_names_are_no_supported_address_type() {
    let types = init_of(rich()).1.into_iter().find(|p| p.ty == 12).expect("the parameter");
    assert_eq!(types.value, [0, 5, 0, 6]);
    let (mut net, hand) = (pair(1, Config::rfc9260()), Hand::new(1));
    let answers = hand.init(&mut net, &|p| p.supported_address_types(&[HOST_NAME, 5]).unwrap());
    assert_eq!(answers[0].text(), "INIT ACK");
}
