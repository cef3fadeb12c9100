//! Section 3.3.1: DATA.

use super::*;

/// The DATA chunks that host 0 sent to host 1 for one message.
fn sent(message: Message) -> (Net, Vec<Raw>) {
    let mut net = established(1, Config::rfc9260());
    let mark = net.log.len();
    net.send_message(0, message).unwrap();
    net.run(S(1));
    let packets = net.sent_since(0, mark);
    let all = packets.iter().flat_map(|p| chunks(&p.bytes));
    (net, all.filter(|c| c.ty == 0).collect())
}

const UNORDERED: u8 = 4;
const BEGINNING: u8 = 2;
const END: u8 = 1;

#[test]
fn s3_3_1_r1_the_format_of_a_data_chunk() {
    let message = Message { ppid: Ppid(0x0102_0304), ..Message::new(StreamId(0x21), &b"user"[..]) };
    let (net, list) = sent(message);
    let Chunk::Init(init) = net.log[0].parsed()[0] else { panic!("no INIT") };
    let [chunk] = &list[..] else { panic!("{list:?}") };
    let mut expected = init.initial_tsn.0.to_be_bytes().to_vec();
    expected.extend([0, 0x21, 0, 0, 1, 2, 3, 4, b'u', b's', b'e', b'r']);
    assert_eq!((chunk.flags, chunk.length), (BEGINNING | END, 20));
    assert_eq!(chunk.value, expected);
}

#[test]
fn s3_3_1_r2_the_ssn_of_an_unordered_chunk_is_ignored() {
    let (mut net, hand) = opened();
    for (n, ssn) in [(1, 7), (2, 0xffff), (3, 0)] {
        let chunk = wire::Data { unordered: true, ssn: Ssn(ssn), ..hand.chunk(n, b"u") };
        hand.say(&mut net, &|w| w.data(&chunk).unwrap());
    }
    let ordered = wire::Data { ssn: Ssn(0), ..hand.chunk(4, b"o") };
    hand.say(&mut net, &|w| w.data(&ordered).unwrap());
    let got: Vec<(bool, &[u8])> =
        net.hosts[1].received.iter().map(|r| (r.unordered, &r.payload[..])).collect();
    assert_eq!(got, [(true, &b"u"[..]), (true, b"u"), (true, b"u"), (false, b"o")]);
}

#[test]
fn s3_3_1_r3_unordered_messages_are_delivered_without_reordering() {
    let (mut net, hand) = opened();
    let say = |net: &mut Net, n, beginning, end, payload: &[u8]| {
        let chunk = wire::Data { unordered: true, beginning, end, ..hand.chunk(n, payload) };
        hand.say(net, &|w| w.data(&chunk).unwrap());
        net.hosts[1].received.iter().map(|r| r.payload.to_vec()).collect::<Vec<_>>()
    };
    // TSNs 1 to 3 are missing; the fragments 6 and 7 arrive in reverse order.
    assert_eq!(say(&mut net, 5, true, true, b"five"), [b"five"]);
    assert_eq!(say(&mut net, 4, true, true, b"four"), [b"five", b"four"]);
    say(&mut net, 7, false, true, b"ven");
    assert_eq!(say(&mut net, 6, true, false, b"six-se").last().unwrap(), b"six-seven");
}

#[test]
fn s3_3_1_r4_every_fragment_of_an_unordered_message_has_the_u_bit() {
    let message = Message::new(StreamId(1), payload(1, 5000));
    let (net, list) = sent(Message { unordered: true, ..message.clone() });
    let flags: Vec<u8> = list.iter().map(|c| c.flags & (UNORDERED | BEGINNING | END)).collect();
    assert_eq!(flags, [UNORDERED | BEGINNING, UNORDERED, UNORDERED, UNORDERED | END]);
    assert!(net.hosts[1].received[0].unordered);
    let (_, ordered) = sent(message);
    assert!(ordered.iter().all(|c| c.flags & UNORDERED == 0));
}

#[test]
fn s3_3_1_r5_the_length_of_a_chunk_is_16_more_than_its_user_data() {
    for len in 1..=5 {
        let (_, list) = sent(Message::new(StreamId(0), payload(1, len)));
        assert_eq!(list[0].length, 16 + len);
    }
    let mut net = established(1, Config::rfc9260());
    assert_eq!(net.send(0, 0, payload(1, 0)), Err(SendError::Empty));
}

#[test]
fn s3_3_1_r6_r7_every_fragment_has_the_ssn_of_its_message() {
    let mut net = established(1, Config::rfc9260());
    let mark = net.log.len();
    for i in 0..3 {
        net.send(0, 1, payload(i, 4000)).unwrap();
    }
    net.run(S(2));
    let packets = net.sent_since(0, mark);
    let chunks: Vec<Raw> = packets.iter().flat_map(|p| chunks(&p.bytes)).collect();
    let ssns: Vec<u8> = chunks.iter().filter(|c| c.ty == 0).map(|c| c.value[7]).collect();
    assert_eq!(ssns, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn s3_3_1_r8_r9_r10_user_data_is_padded_with_zeros_that_do_not_count() {
    for len in 1..=9 {
        let (net, list) = sent(Message::new(StreamId(0), vec![0xff; len]));
        let [chunk] = &list[..] else { panic!("{list:?}") };
        assert_eq!(chunk.value[12..], vec![0xff; len]);
        assert_eq!(chunk.padding, vec![0; (4 - len % 4) % 4]);
        let packet = net.sent_with(0, "DATA").remove(0);
        assert_eq!(packet.bytes.len(), 12 + 16 + len.next_multiple_of(4));
    }
}

#[test]
fn s3_3_1_r11_a_whole_message_has_both_the_b_and_the_e_bit() {
    // The largest payload: 1500 bytes minus 20 of IPv4, 12 of SCTP and 16 of the chunk.
    for len in [1, 1451, 1452] {
        let (_, list) = sent(Message::new(StreamId(0), payload(1, len)));
        assert_eq!((list.len(), list[0].flags), (1, BEGINNING | END), "{len} bytes");
    }
}

#[test]
fn s3_3_1_r12_r13_tsns_are_sequential_also_within_a_message() {
    let mut net = established(1, Config::rfc9260());
    let mark = net.log.len();
    for i in 0..6 {
        net.send(0, i % 3, payload(i.into(), 700 * usize::from(i) + 700)).unwrap();
    }
    net.run(S(5));
    let data: Vec<DataSeen> = net.sent_since(0, mark).iter().flat_map(Sent::data).collect();
    let tsns: Vec<u32> = data.iter().map(|d| d.n).collect();
    assert_eq!(tsns, (1..=tsns.len() as u32).collect::<Vec<_>>());
    // A message continues in the next chunk until it ends.
    let mut open = None;
    for d in &data {
        assert_eq!(
            (d.beginning, open.unwrap_or((d.stream, d.ssn))),
            (open.is_none(), (d.stream, d.ssn))
        );
        open = (!d.end).then_some((d.stream, d.ssn));
    }
    assert!(open.is_none() && data.len() > 10);
}
