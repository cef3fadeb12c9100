//! Partial reliability and stream reconfiguration together, with and without interleaving: messages
//! abandoned while streams are reset, and FORWARD TSNs with sequence numbers from before a reset.

use std::collections::BTreeMap;

use crate::common::*;
use polypath_proto::{
    CloseReason, Config, ConfigBuilder, Event, Message, Reconfigured, Registry, Reliability,
    StreamId, StreamReset,
};
use proptest::prelude::*;

fn config() -> ConfigBuilder {
    Config::rfc9260().to_builder().stream_reconfiguration(true).partial_reliability(true)
}

fn reset(net: &mut Net, h: usize, stream: u16) {
    let now = net.now;
    net.am(h).reset_streams(now, StreamReset::Outgoing, &[StreamId(stream)]).unwrap();
    net.settle();
}

fn send(net: &mut Net, stream: u16, len: usize, reliability: Reliability) {
    let plain = Message::new(StreamId(stream), payload(len as u64, len));
    net.send_message(0, Message { reliability, context: len as u32, ..plain }).unwrap();
}

/// The abandoned messages that host `h` reported: when, their contexts, and whether they had been
/// sent.
fn failed(net: &Net, h: usize) -> Vec<(u64, u32, bool)> {
    let events = net.events(h, |e| matches!(e, Event::SendFailed { .. }));
    let told = |(at, event)| match event {
        Event::SendFailed { context, sent, .. } => (at, context, sent),
        other => panic!("{other:?}"),
    };
    events.into_iter().map(told).collect()
}

fn has_reset(net: &Net, h: usize) -> bool {
    let done = |e: &Event| {
        matches!(
            e,
            Event::StreamsReset { outcome: Reconfigured::Performed, .. }
                | Event::AssociationReset { outcome: Reconfigured::Performed, .. }
        )
    };
    !net.events(h, done).is_empty()
}

fn lengths(net: &Net, h: usize) -> Vec<usize> {
    net.hosts[h].received.iter().map(|r| r.payload.len()).collect()
}

fn forward_tsns(net: &Net) -> Vec<String> {
    let packets = net.sent(0);
    let chunks = packets.iter().flat_map(|p| &p.chunks).filter(|c| c.name == "FORWARD TSN");
    let mut all: Vec<_> = chunks.map(|c| c.text.clone()).collect();
    all.dedup();
    all
}

/// The peer has performed the reset, and this side does not know it yet: an SSN that was skipped
/// before the reset must not be skipped again after it.
#[test]
fn what_was_skipped_before_a_reset_is_not_skipped_behind_it() {
    let mut net = established(1, config().build().unwrap());
    net.nth("DATA 1", &[1], Fate::Drop);
    net.nth("DATA 2", &[1], Fate::Drop);
    send(&mut net, 1, 101, Reliability::Retransmissions(0));
    reset(&mut net, 0, 1);
    // Host 1's packets are dropped, so neither the response nor a SACK arrives.
    net.filter(|p| if p.from.ip() == v4(0, 1) { Fate::Drop } else { Fate::Pass });
    net.drive_until(S(20), |net| has_reset(net, 1));
    assert!(!has_reset(&net, 0));
    send(&mut net, 2, 202, Reliability::Retransmissions(0));
    net.drive_until(S(20), |net| failed(net, 0).len() == 2);
    net.run(S(5));
    net.no_filters();
    send(&mut net, 1, 300, Reliability::Reliable);
    send(&mut net, 2, 301, Reliability::Reliable);
    net.run(S(60));
    assert!(has_reset(&net, 0) && net.a(0).is_established(), "{}", net.tail(30));
    let mut got = lengths(&net, 1);
    got.sort_unstable();
    assert_eq!(got, [300, 301]);
    assert_eq!(forward_tsns(&net), ["FORWARD TSN 1 [1:0]", "FORWARD TSN 2 [2:0]"]);
}

/// A late FORWARD TSN arrives after an association reset has advanced the TSNs by 2^31.
#[test]
fn a_forward_tsn_of_before_a_reset_of_the_association_is_dropped() {
    let mut net = established(1, config().build().unwrap());
    net.nth("DATA 1", &[1], Fate::Drop);
    net.nth("FORWARD TSN", &[1], Fate::Late(S(30)));
    send(&mut net, 0, 101, Reliability::Retransmissions(0));
    for len in 102..105 {
        send(&mut net, 0, len, Reliability::Reliable);
    }
    net.run(S(10));
    assert_eq!((lengths(&net, 1), net.sent_with(0, "FORWARD TSN").len()), (vec![102, 103, 104], 2));
    let now = net.now;
    net.am(0).reset_association(now).unwrap();
    net.run(S(5));
    assert!(has_reset(&net, 0) && has_reset(&net, 1));
    send(&mut net, 0, 105, Reliability::Reliable);
    net.run(S(40));
    send(&mut net, 0, 106, Reliability::Reliable);
    net.run(S(5));
    assert_eq!(lengths(&net, 1), [102, 103, 104, 105, 106]);
    assert!(net.a(0).is_established() && net.a(0).buffered() == 0, "{}", net.tail(20));
}

/// A message that waits for the end of a reset keeps its limit, and uses no SSN if it is abandoned.
#[test]
fn what_a_reset_holds_back_can_be_given_up() {
    let mut net = established(1, config().send_buffer(3000).build().unwrap());
    net.drop_all("RE-CONFIG");
    reset(&mut net, 0, 1);
    let at = net.now.as_nanos() / 1_000_000;
    send(&mut net, 1, 300, Reliability::Lifetime(MS(250)));
    send(&mut net, 1, 301, Reliability::Reliable);
    send(&mut net, 1, 1900, Reliability::Priority(7));
    send(&mut net, 2, 302, Reliability::Lifetime(MS(250)));
    net.run(MS(400));
    assert_eq!(lengths(&net, 1), [302], "its stream is not reset");
    assert_eq!(failed(&net, 0), [(at + 250, 300, false)]);
    // The buffer is full: RFC 7496 3.2.
    send(&mut net, 1, 2000, Reliability::Priority(6));
    assert_eq!(failed(&net, 0)[1..], [(at + 400, 1900, false)]);
    assert_eq!(net.a(0).unsent(), 301 + 2000);
    net.no_filters();
    net.run(S(10));
    assert!(has_reset(&net, 0));
    assert_eq!(lengths(&net, 1), [302, 301, 2000]);
    let data =
        net.sent(0).iter().flat_map(Sent::data).filter(|d| d.stream == 1).collect::<Vec<_>>();
    assert_eq!((data[0].ssn, data[0].len, forward_tsns(&net).len()), (0, 301, 0));
}

/// The request waits for a message that is abandoned rather than sent.
#[test]
fn a_reset_waits_no_longer_for_what_is_given_up() {
    let mut net = established(1, config().build().unwrap());
    net.cuts.insert(0);
    for _ in 0..10 {
        send(&mut net, 0, 1452, Reliability::Reliable);
    }
    send(&mut net, 1, 100, Reliability::Lifetime(MS(300)));
    reset(&mut net, 0, 1);
    assert!(net.sent_with(0, "RE-CONFIG").is_empty());
    let at = net.now + MS(300);
    net.run(MS(350));
    assert_eq!(net.sent_with(0, "RE-CONFIG")[0].at, at);
    net.cuts.clear();
    net.run(S(20));
    assert!(has_reset(&net, 0));
    assert_eq!(lengths(&net, 1), [1452; 10]);
}

#[derive(Clone, Debug)]
enum Step {
    Send { host: usize, stream: u16, unordered: bool, len: usize, reliability: Reliability },
    Reset { host: usize, reset: StreamReset, streams: Vec<u16> },
    Association(usize),
    Run(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let host = 0usize..2;
    let reliability = prop_oneof![
        3 => Just(Reliability::Reliable),
        2 => (0u64..600).prop_map(|ms| Reliability::Lifetime(MS(ms))),
        3 => (0u32..2).prop_map(Reliability::Retransmissions),
        2 => (0u32..4).prop_map(Reliability::Priority),
    ];
    let sent = (host.clone(), 0u16..4, prop::bool::weighted(0.2), 1usize..6000, reliability);
    let kinds =
        prop::sample::select(vec![StreamReset::Outgoing, StreamReset::Incoming, StreamReset::Both]);
    prop_oneof![
        8 => sent.prop_map(|(host, stream, unordered, len, reliability)| {
            Step::Send { host, stream, unordered, len, reliability }
        }),
        3 => (host.clone(), kinds, prop::collection::vec(0u16..4, 0..3))
            .prop_map(|(host, reset, streams)| Step::Reset { host, reset, streams }),
        1 => host.prop_map(Step::Association),
        3 => (0u64..800).prop_map(Step::Run),
    ]
}

#[derive(Clone, Debug)]
struct Run {
    seed: u64,
    loss: u64,
    back: u64,
    buffer: u32,
    window: u32,
    interleaving: bool,
    scheduler: usize,
    steps: Vec<Step>,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    /// With any resets, over two lossy paths: every message is delivered once or reported, reliable
    /// messages are delivered, those reported as unsent are not, ordered streams are in order, and
    /// the association closes gracefully.
    #[test]
    fn delivered_or_reported_whatever_is_reset(
        seed in any::<u64>(),
        loss in 0u64..35,
        back in 0u64..60,
        buffer in prop_oneof![Just(20_000u32), Just(1 << 20)],
        window in prop_oneof![1 => 2_000u32..9_000, 2 => Just(1 << 20)],
        interleaving in any::<bool>(),
        scheduler in 0..Registry::standard().stream_scheduler().len(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        deliver_or_report(Run { seed, loss, back, buffer, window, interleaving, scheduler, steps })?;
    }
}

fn deliver_or_report(run: Run) -> Result<(), TestCaseError> {
    let Run { seed, loss, back, buffer, window, interleaving, scheduler, steps } = run;
    let config = config()
        .association_max_retrans(1000)
        .path_max_retrans(1000)
        .rto_initial(MS(200))
        .rto_min(MS(50))
        .rto_max(MS(400))
        .send_buffer(buffer)
        .receive_buffer(window)
        .interleaving(interleaving)
        .stream_scheduler(Registry::standard().stream_scheduler()[scheduler])
        .build()
        .unwrap();
    let mut net =
        Setup { paths: 2, seed: seed >> 8, configs: [config.clone(), config], ..Setup::default() }
            .build();
    net.establish();
    let mut dice = polypath_proto::Rng::new(&polypath_proto::Seed::from_u64(seed));
    net.filter(move |p| {
        // Host 1's packets, mostly SACKs and responses, have a loss rate of their own.
        let loss = if p.from.ip() == v4(0, 1) || p.from.ip() == v4(1, 1) { back } else { loss };
        match dice.below(100) {
            n if n < loss => Fate::Drop,
            n if n < loss + 5 => Fate::Twice,
            n if n < loss + 15 => Fate::Late(MS(dice.below(500))),
            _ => Fate::Pass,
        }
    });
    let mut sent = Vec::new();
    for step in steps {
        step.take(&mut net, &mut sent);
    }
    net.run(S(60));
    net.no_filters();
    net.run(S(60));
    for h in 0..2 {
        prop_assert!(net.a(h).is_established(), "{:?}\n{}", net.closed(h), net.tail(30));
        prop_assert_eq!(net.a(h).buffered(), 0, "{}", net.tail(30));
    }
    net.shutdown(0);
    net.run(S(5));
    for h in 0..2 {
        prop_assert_eq!(net.closed(h), Some(CloseReason::Graceful), "{}", net.tail(30));
    }
    judge(&net, &sent)
}

/// A message that was accepted: host, stream, unordered, reliable. Its number is its index.
type Accepted = (usize, u16, bool, bool);

impl Step {
    fn take(self, net: &mut Net, sent: &mut Vec<Accepted>) {
        let now = net.now;
        match self {
            Self::Send { host, stream, unordered, len, reliability } => {
                let number = sent.len() as u32;
                let mut bytes = payload(number.into(), len.max(4)).to_vec();
                bytes[..4].copy_from_slice(&number.to_be_bytes());
                let plain = Message::new(StreamId(stream), bytes);
                let message = Message { unordered, reliability, context: number, ..plain };
                if net.send_message(host, message).is_ok() {
                    sent.push((host, stream, unordered, reliability == Reliability::Reliable));
                }
            }
            Self::Reset { host, reset, streams } => {
                let streams: Vec<StreamId> = streams.into_iter().map(StreamId).collect();
                let _ = net.am(host).reset_streams(now, reset, &streams);
                net.settle();
            }
            Self::Association(host) => {
                let _ = net.am(host).reset_association(now);
                net.settle();
            }
            Self::Run(ms) => net.run(MS(ms)),
        }
    }
}

/// Every message was delivered once or reported.
fn judge(net: &Net, sent: &[Accepted]) -> Result<(), TestCaseError> {
    let reported = [failed(net, 0), failed(net, 1)].concat();
    let mut times = vec![0; sent.len()];
    for h in 0..2 {
        let mut last = [None; 4];
        let mut begun: BTreeMap<_, Vec<u8>> = BTreeMap::new();
        for r in &net.hosts[1 - h].received {
            let key = (r.stream, r.unordered, r.mid.0);
            let message = if r.beginning && r.end {
                // An unordered message may arrive between the pieces of another one.
                r.payload.to_vec()
            } else {
                prop_assert!(r.beginning != begun.contains_key(&key), "{:?}", key);
                let message = begun.entry(key).or_default();
                message.extend(&r.payload[..]);
                if !(r.end || r.aborted) {
                    continue;
                }
                begun.remove(&key).unwrap()
            };
            if r.aborted {
                continue;
            }
            let number = u32::from_be_bytes(message[..4].try_into().unwrap());
            prop_assert_eq!(&message[4..], &payload(number.into(), message.len())[4..]);
            let (from, stream, unordered, _) = sent[number as usize];
            prop_assert_eq!((from, stream, unordered), (h, r.stream.0, r.unordered));
            times[number as usize] += 1;
            if !unordered {
                let before = last[usize::from(stream)].replace(number);
                prop_assert!(
                    before < Some(number),
                    "{:?} before {}\n{}",
                    before,
                    number,
                    net.tail(30)
                );
            }
        }
        prop_assert!(begun.is_empty(), "{:?}", begun.keys());
    }
    for (number, &(.., reliable)) in sent.iter().enumerate() {
        let told: Vec<_> = reported.iter().filter(|r| r.1 as usize == number).collect();
        prop_assert!(times[number] <= 1 && told.len() <= 1, "{} twice", number);
        prop_assert!(times[number] + told.len() > 0, "{} vanished\n{}", number, net.tail(30));
        prop_assert!(told.is_empty() || !reliable, "{} is reliable", number);
        prop_assert!(times[number] == 0 || told.iter().all(|r| r.2), "{} was not sent", number);
    }
    Ok(())
}
