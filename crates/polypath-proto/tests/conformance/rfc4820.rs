//! RFC 4820, the padding chunk and parameter: the requirements with MUST.

use crate::bytes::{Raw, chunks, parameters};
use crate::common::*;
use polypath_proto::*;

const PAD: u16 = 0x84;
const PAD_PARAMETER: u16 = 0x8005;
const STATE_COOKIE: u16 = 7;
const UNRECOGNIZED: u16 = 8;
const MARK: [u8; 4] = *b"mark";

/// The PAD chunks in these packets.
fn pads(packets: &[Sent]) -> Vec<Raw> {
    packets.iter().flat_map(|p| chunks(&p.bytes)).filter(|c| c.ty == PAD).collect()
}

#[test]
fn s3_r1_probes_are_filled_up_by_chunks_of_type_0x84() {
    let mut net =
        established(1, Config::rfc9260().to_builder().path_mtu_discovery(true).build().unwrap());
    net.run(S(30));
    for h in 0..2 {
        // The configured packet of 1500 bytes includes an IP header of 20 bytes.
        let probe = net.sent_with(h, "HEARTBEAT").into_iter().find(|p| p.bytes.len() == 1480);
        let list = chunks(&probe.expect("a probe of the configured size").bytes);
        assert_eq!(list.iter().map(|c| c.ty).collect::<Vec<_>>(), [4, PAD]);
        assert!(pads(&net.sent(h)).iter().all(|c| c.flags == 0));
    }
}

#[test]
fn s3_r2_r3_r4_flags_and_padding_data_are_ignored_and_the_chunks_behind_are_processed() {
    // Padding data that would abort the association if it were read, any flags, and no data at all.
    let abort: &[u8] = &[6, 0, 0, 4];
    for (flags, data) in [(0, abort), (0xff, &[0xff; 1000]), (0x55, &[1, 2, 3]), (0, &[])] {
        let mut net = pair(1, Config::rfc9260());
        let hand = Hand::new(1).open(&mut net);
        let answers = hand.say(&mut net, &|w| {
            w.data(&hand.chunk(1, b"before")).unwrap();
            w.typed_chunk(PAD as u8, flags, data).unwrap();
            w.data(&hand.chunk(2, b"behind")).unwrap();
        });
        let got: Vec<_> = net.hosts[1].received.iter().map(|r| &r.payload[..]).collect();
        assert_eq!(got, [b"before", b"behind"]);
        assert!(net.a(1).is_established() && answers.iter().all(|p| !p.has("ERROR")));
    }
}

/// Sends an INIT with this PAD parameter before the other parameters, or without one; returns the
/// answers.
fn init(padding: Option<&[u8]>) -> (Net, Hand, Sent) {
    let config = Config::rfc9260().to_builder().stream_reconfiguration(true).build().unwrap();
    let mut net = pair(1, config);
    let hand = Hand::new(1);
    let answers = hand.init(&mut net, &|p| {
        if let Some(padding) = padding {
            p.typed(PAD_PARAMETER, padding).unwrap();
        }
        p.supported_extensions(&[130]).unwrap();
    });
    assert_eq!(answers.len(), 1);
    (net, hand, answers[0].clone())
}

fn cookie_of(init_ack: &Sent) -> Vec<u8> {
    let list = parameters(&chunks(&init_ack.bytes)[0]);
    list.into_iter().find(|p| p.ty == STATE_COOKIE).expect("a State Cookie").value
}

#[test]
fn s4_r3_a_pad_parameter_is_discarded_without_a_word() {
    for padding in [&b""[..], b"abc", &[0xff; 1000]] {
        let (mut net, mut hand, init_ack) = init(Some(padding));
        assert!(init_ack.has("INIT ACK"));
        let list = parameters(&chunks(&init_ack.bytes)[0]);
        assert!(list.iter().all(|p| p.ty != UNRECOGNIZED && p.ty != PAD_PARAMETER));
        hand.learn(&init_ack);
        let answers = hand.echo(&mut net);
        assert!(answers[0].has("COOKIE ACK") && answers.iter().all(|p| !p.has("ERROR")));
        // The parameter after it is processed.
        let now = net.now;
        assert_eq!(net.am(1).reset_association(now), Ok(()));
    }
}

#[test]
fn s4_r4_the_size_of_the_cookie_does_not_depend_on_a_pad_parameter() {
    let without = cookie_of(&init(None).2).len();
    for padding in [&b""[..], b"abc", &[0xff; 1000]] {
        assert_eq!(cookie_of(&init(Some(padding)).2).len(), without);
    }
}

#[test]
fn s4_r5_a_pad_parameter_is_not_in_the_cookie() {
    let padding = MARK.repeat(3);
    let cookie = cookie_of(&init(Some(&padding)).2);
    let has = |bytes: &[u8]| cookie.windows(bytes.len()).any(|w| w == bytes);
    assert!(!has(&MARK) && !has(&PAD_PARAMETER.to_be_bytes()));
}
