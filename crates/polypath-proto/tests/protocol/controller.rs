//! What a congestion controller sees of a path, and what its windows and pacing rates change.

use std::cell::RefCell;
use std::time::Duration;

use crate::common::*;
use polypath_proto::policy::congestion::{
    BBR, CUBIC, Congestion, CongestionController, Context, Loss, NewPath, PathAck, Sent,
};
use polypath_proto::policy::{Entry, Needs, Window};
use polypath_proto::*;

/// PMDCS over IPv4 with an MTU of 1500 (RFC 9260 1.3).
const PMDCS: u32 = 1468;

/// An event that the controller saw, and when.
type Seen = (u64, String);

thread_local! {
    static SEEN: RefCell<Vec<Seen>> = const { RefCell::new(Vec::new()) };
    static RATE: RefCell<Option<u64>> = const { RefCell::new(None) };
}

/// Notes each call; its window is 20 packets, one after a timeout.
#[derive(Debug)]
struct Witness {
    wake: Option<Time>,
}

static WITNESS: Entry<dyn CongestionController> =
    Entry::<dyn CongestionController>::new("witness", "notes what it sees", |_| {
        Box::new(Witness { wake: None })
    })
    .with_needs(Needs::NONE.sending().delivery_samples().wakes().pacing());

fn note(now: Time, what: String) {
    SEEN.with_borrow_mut(|seen| seen.push((now.as_nanos() / 1_000_000, what)));
}

fn window(packets: u32) -> Window {
    let pacing_rate = RATE.with_borrow(|rate| *rate);
    Window { pacing_rate, ..Window::unpaced(packets * PMDCS, u32::MAX) }
}

impl CongestionController for Witness {
    fn initial(&mut self, path: &NewPath) -> Window {
        assert_eq!(path.max_chunk, PMDCS);
        window(20)
    }

    fn on_sent(&mut self, context: &Context<'_>, sent: &Sent) -> Window {
        note(context.now, format!("sent {} after {}", sent.bytes, sent.in_flight_before));
        self.wake = Some(context.now + MS(500));
        context.path.window
    }

    fn on_ack(&mut self, context: &Context<'_>, ack: &PathAck) -> Window {
        let rtt = ack.rtt.map_or(0, |rtt| rtt.as_millis());
        let sample = ack.delivery.map_or(String::new(), |sample| {
            let limited = if sample.app_limited { ", limited by the application" } else { "" };
            format!(", {} delivered{limited}", sample.in_interval())
        });
        note(context.now, format!("ack {} in {rtt} ms{sample}", ack.acked));
        window(20)
    }

    fn on_loss(&mut self, context: &Context<'_>, loss: &Loss) -> Window {
        let sample = loss.delivery.expect("it was asked for");
        note(context.now, format!("loss {} of {}", loss.bytes, sample.in_flight_at_send));
        context.path.window
    }

    fn on_congestion(&mut self, context: &Context<'_>, congestion: Congestion) -> Window {
        note(context.now, format!("{congestion:?}"));
        context.path.window
    }

    fn on_recovered(&mut self, context: &Context<'_>) -> Window {
        note(context.now, "recovered".into());
        window(20)
    }

    fn on_timeout(&mut self, context: &Context<'_>) -> Window {
        note(context.now, "timeout".into());
        window(1)
    }

    fn wake_at(&self, _: PathId) -> Option<Time> {
        self.wake
    }

    fn on_wake(&mut self, context: &Context<'_>) -> Window {
        note(context.now, "awake".into());
        self.wake = None;
        context.path.window
    }
}

fn config() -> Config {
    let buffers = Config::rfc9260().to_builder().send_buffer(1 << 22).receive_buffer(1 << 22);
    buffers.congestion(&WITNESS).build().unwrap()
}

/// The texts of what was seen, without what was sent.
fn seen() -> Vec<String> {
    let all =
        SEEN.with_borrow(|seen| seen.iter().map(|(_, what)| what.clone()).collect::<Vec<_>>());
    all.into_iter().filter(|what| !what.starts_with("sent")).collect()
}

/// Sends this number of full packets from host 0, and returns the net before anything is answered.
fn sending(packets: usize, config: Config) -> Net {
    let mut net = established(1, config);
    SEEN.with_borrow_mut(Vec::clear);
    let now = net.now;
    for _ in 0..packets {
        let message = Message::new(StreamId(0), vec![1; PMDCS as usize - 16]);
        net.am(0).send(now, message).unwrap();
    }
    net.settle();
    net
}

#[test]
fn it_sees_what_is_sent_and_acknowledged() {
    let mut net = sending(5, config());
    let sent: Vec<String> =
        SEEN.with_borrow(|seen| seen.iter().map(|(_, what)| what.clone()).collect());
    // Max.Burst: four packets, in one buffer, and the fifth with the first SACK.
    assert_eq!(sent, [format!("sent {} after 0", 4 * PMDCS)]);
    net.run(MS(300));
    let sent = SEEN.with_borrow(|seen| seen.iter().filter(|(_, s)| s.starts_with("sent")).count());
    assert_eq!(sent, 2);
    let seen = seen();
    // A path of 10 ms; the first SACK is sent at once, and the path was idle before.
    assert_eq!(seen[0], "ack 1468 in 20 ms, 1468 delivered, limited by the application");
    assert!(seen[1].starts_with("ack 2936 in 20 ms, 4404 delivered"), "{seen:?}");
    let total: u32 =
        seen.iter().map(|s| s.split(' ').nth(1).unwrap().parse::<u32>().unwrap()).sum();
    assert_eq!(total, 5 * PMDCS);
}

#[test]
fn it_sees_a_loss_and_the_end_of_the_recovery() {
    let mut net = sending(0, config());
    net.nth("DATA", &[3], Fate::Drop);
    net.send(0, 0, payload(1, 40 * (PMDCS as usize - 16))).unwrap();
    net.run(S(1));
    let seen = seen();
    let place = |what: &str| seen.iter().position(|s| s.starts_with(what));
    let (loss, cut, end) = (place("loss 1468"), place("Loss"), place("recovered"));
    assert!(loss.is_some() && loss.map(|at| at + 1) == cut && end > cut, "{seen:?}");
    assert_eq!(seen.iter().filter(|s| *s == "Loss" || *s == "recovered").count(), 2);
    assert!(place("timeout").is_none());
}

#[test]
fn it_sees_a_timeout_and_the_end_of_its_recovery() {
    let mut net = sending(0, config());
    net.nth("DATA", &[1, 2, 3, 4], Fate::Drop);
    net.send(0, 0, payload(1, 4 * (PMDCS as usize - 16))).unwrap();
    net.run(S(5));
    let seen = seen();
    let events: Vec<_> = seen.iter().filter(|s| !s.starts_with("ack")).collect();
    assert_eq!(events[0], "awake", "half a second after the last packet");
    assert_eq!(events[1], "timeout");
    assert_eq!(events[2], "loss 1468 of 5872", "one record for one instant");
    assert_eq!(events.iter().filter(|s| s.starts_with("loss")).count(), 4);
    assert_eq!(events.iter().filter(|s| **s == "recovered").count(), 1);
}

/// RFC 4960 Appendix A: an ECNE is congestion on the path of the marked packet.
#[test]
fn it_sees_marks() {
    let ecn = config().to_builder().ecn(true).build().unwrap();
    let mut net = sending(0, ecn);
    let mut count = 0;
    net.filter(move |p| {
        count += u32::from(p.has("DATA"));
        if p.has("DATA") && count == 5 { Fate::Marked } else { Fate::Pass }
    });
    net.send(0, 0, payload(1, 30_000)).unwrap();
    net.run(S(1));
    assert_eq!(seen().iter().filter(|s| *s == "Ecn").count(), 1);
}

#[test]
fn data_that_waits_is_not_limited_by_the_application() {
    let mut net = sending(100, config());
    net.run(MS(100));
    // The first flight follows a pause; what its acknowledgements release does not.
    let seen_so_far = seen();
    let later = seen_so_far.iter().skip_while(|s| s.contains("limited"));
    assert!(later.clone().count() > 20 && later.clone().all(|s| !s.contains("limited")));
    net.run(S(2));
    SEEN.with_borrow_mut(Vec::clear);
    net.send(0, 0, payload(1, 1000)).unwrap();
    net.run(MS(300));
    assert!(seen()[0].contains("limited by the application"), "{:?}", seen());
}

#[test]
fn a_pacing_rate_spreads_the_packets() {
    RATE.set(Some(147_000));
    let mut net = sending(100, config());
    let begun = net.now;
    net.drive_until(S(5), |net| net.a(0).buffered() == 0);
    // 146.8 kB at 147 kB/s; the last batch leaves 20 ms before the end, which takes 20 to 220 ms.
    let took = net.now.since(begun);
    assert!((MS(980)..MS(1230)).contains(&took), "{took:?}");
    let sent = net.sent_with(0, "DATA");
    let mut instants: Vec<Time> = sent.iter().map(|p| p.at).collect();
    instants.dedup();
    // At least two packets at a time: 50 batches 20 ms apart.
    assert!((48..=52).contains(&instants.len()), "{}", instants.len());
    assert!(instants.windows(2).all(|pair| pair[1].since(pair[0]) >= MS(19)));
}

/// A message comes while nothing is in flight and the pacer is closed: its release is the only
/// deadline. The timers are asked before the packets, as by a driver that handles timers first.
#[test]
fn a_message_that_waits_for_the_pacer_alone_has_a_deadline() {
    RATE.set(Some(5 * u64::from(PMDCS)));
    let mut net = established(1, config());
    net.send(0, 0, payload(1, 2 * (PMDCS as usize - 16))).unwrap();
    net.drive_until(MS(300), |net| net.a(0).buffered() == 0);
    let (now, begun) = (net.now, net.sent_with(0, "DATA")[0].at);
    let endpoint = &mut net.hosts[0].endpoint;
    let id = endpoint.associations().next().unwrap();
    let message = Message::new(StreamId(0), payload(2, 100));
    endpoint.association_mut(id).unwrap().send(now, message).unwrap();
    endpoint.poll_timeout();
    assert_eq!(endpoint.poll_transmit(now, &mut [0; 1500]), None);
    assert_eq!(endpoint.poll_timeout(), Some(begun + MS(400)));
}

#[test]
fn a_retransmission_after_a_loss_does_not_wait_for_the_pacer() {
    RATE.set(Some(147_000));
    let mut net = sending(0, config());
    net.nth("DATA", &[3], Fate::Drop);
    net.send(0, 0, payload(1, 30 * (PMDCS as usize - 16))).unwrap();
    net.run(S(1));
    let lost = SEEN.with_borrow(|seen| seen.iter().find(|(_, what)| what == "Loss").unwrap().0);
    let again = net.sent_with(0, "DATA 3");
    assert_eq!(again.len(), 2);
    assert_eq!(again[1].ms(), lost);
}

/// Max.Burst does not apply, and no instant sees more than a batch.
#[test]
fn cubic_and_bbr_send_batches() {
    for answer in [&CUBIC, &BBR] {
        let config = config().to_builder().congestion(answer).initial_cwnd(10).build().unwrap();
        let mut net = established(1, config);
        net.send(0, 0, payload(1, 3_000_000)).unwrap();
        let mut rates = vec![(net.now, u64::MAX)];
        while net.a(0).buffered() > 0 {
            net.run(Duration::from_micros(200));
            rates.push((net.now, net.path(0, 0).window.pacing_rate.unwrap_or(u64::MAX)));
        }
        let sent = net.sent_with(0, "DATA");
        let mut largest = 0;
        for batch in sent.chunk_by(|a, b| a.at == b.at) {
            let at = rates.iter().rposition(|(time, _)| *time <= batch[0].at).unwrap_or(0);
            // The rate may have changed within the step.
            let rate = rates[at..].iter().take(2).map(|(_, rate)| *rate).max().unwrap();
            let most = (rate / 1000).min(65_536).max(2 * u64::from(PMDCS)) / u64::from(PMDCS) + 2;
            assert!(batch.len() as u64 <= most, "{} of {most} packets", batch.len());
            largest = largest.max(batch.len());
        }
        assert!(largest > 4, "{}: {largest} packets at a time", answer.name);
    }
}
