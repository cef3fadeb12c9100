//! Tests of a single link: cases and properties.

use proptest::prelude::*;

use super::*;
use crate::units::{Probability, Span};

/// A payload without chunks of known types.
const PAYLOAD: [u8; 1480] = [0xff; 1480];

fn link(config: LinkConfig) -> Link {
    Link::new(config, 1, "test")
}

fn at(verdict: Verdict) -> Time {
    match verdict {
        Verdict::Deliver { arrival, .. } => arrival.at,
        other => panic!("{other:?}"),
    }
}

fn ticket(verdict: Verdict) -> Ticket {
    match verdict {
        Verdict::Deliver { arrival, .. } => arrival.ticket,
        other => panic!("{other:?}"),
    }
}

fn ten_mbit() -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::mbit(10)),
        delay: Duration::from_millis(45),
        ..LinkConfig::default()
    }
}

#[test]
fn transmission_and_propagation() {
    let mut link = link(ten_mbit());
    let t = Time::from_millis(100);
    assert_eq!(at(link.offer(t, 1500, &PAYLOAD[..1480])), t + Duration::from_micros(46_200));
    assert_eq!(at(link.offer(t, 1500, &PAYLOAD[..1480])), t + Duration::from_micros(47_400));
    assert_eq!(link.waiting(t), (1, 1500));
    assert_eq!(link.waiting(t + Duration::from_micros(1200)), (0, 0));
}

#[test]
fn drop_tail_in_packets_does_not_count_the_one_on_the_transmitter() {
    let mut link = link(LinkConfig { queue: QueueLimit::Packets(2), ..ten_mbit() });
    let t = Time::ZERO;
    (0..3).for_each(|_| {
        at(link.offer(t, 1500, &PAYLOAD[..1480]));
    });
    assert_eq!(link.offer(t, 1500, &PAYLOAD[..1480]), Verdict::Drop(DropReason::Queue));
    // One transmission later the queue has room for one packet.
    let later = t + Duration::from_micros(1200);
    at(link.offer(later, 1500, &PAYLOAD[..1480]));
    assert_eq!(link.offer(later, 1500, &PAYLOAD[..1480]), Verdict::Drop(DropReason::Queue));
    link.counters().check().unwrap();
}

#[test]
fn drop_tail_in_bytes() {
    let mut link = link(LinkConfig { queue: QueueLimit::Bytes(3000), ..ten_mbit() });
    (0..3).for_each(|_| {
        at(link.offer(Time::ZERO, 1500, &PAYLOAD[..1480]));
    });
    assert_eq!(link.offer(Time::ZERO, 40, &PAYLOAD[..20]), Verdict::Drop(DropReason::Queue));
}

#[test]
fn an_outage_loses_what_is_queued_and_on_the_wire() {
    let mut link = link(ten_mbit());
    let first = ticket(link.offer(Time::ZERO, 1500, &PAYLOAD[..1480]));
    let second = ticket(link.offer(Time::ZERO, 1500, &PAYLOAD[..1480]));
    link.set_down(Time::from_millis(1));
    assert!(!link.arrive(first, 1500) && !link.arrive(second, 1500));
    assert_eq!(
        link.offer(Time::from_millis(2), 100, &PAYLOAD[..80]),
        Verdict::Drop(DropReason::Down)
    );
    link.set_up();
    let t = Time::from_millis(3);
    let third = link.offer(t, 1500, &PAYLOAD[..1480]);
    assert_eq!(at(third), t + Duration::from_micros(46_200), "the old queue is gone");
    assert!(link.arrive(ticket(third), 1500));
    let counters = *link.counters();
    counters.check().unwrap();
    assert_eq!((counters.lost_outage, counters.delivered, counters.in_flight), (3, 1, 0));
}

#[test]
fn a_changed_rate_applies_to_what_comes_after() {
    let mut link = link(ten_mbit());
    let before = at(link.offer(Time::ZERO, 1500, &PAYLOAD[..1480]));
    link.set_rate(Some(Rate::mbit(1)));
    link.set_delay(Duration::ZERO);
    let after = at(link.offer(Time::ZERO, 1500, &PAYLOAD[..1480]));
    assert_eq!(before, Time::ZERO + Duration::from_micros(46_200));
    assert_eq!(after, Time::ZERO + Duration::from_micros(13_200));
}

#[test]
fn too_large_for_the_mtu() {
    let mut link = link(LinkConfig { mtu: Some(1400), ..ten_mbit() });
    at(link.offer(Time::ZERO, 1400, &PAYLOAD[..1380]));
    assert_eq!(link.offer(Time::ZERO, 1401, &PAYLOAD[..1381]), Verdict::Drop(DropReason::Mtu));
}

#[test]
fn other_dice_stay_the_same_when_one_thing_is_added() {
    let fates = |config: LinkConfig| {
        let mut link = link(config);
        (0..2000)
            .map(|i| link.offer(Time::from_millis(i * 10), 1500, &PAYLOAD[..1480]))
            .map(|v| matches!(v, Verdict::Drop(DropReason::Loss)))
            .collect::<Vec<_>>()
    };
    let plain = LinkConfig { loss: LossModel::Bernoulli(Probability::percent(10)), ..ten_mbit() };
    let busy = LinkConfig {
        duplicate: Probability::percent(20),
        corrupt: Probability::percent(20),
        reorder: Some(Reordering {
            probability: Probability::percent(20),
            delay: Span::millis(30),
        }),
        ..plain.clone()
    };
    assert_eq!(fates(plain), fates(busy));
}

/// A packet that a transmitter is free for leaves at once; others wait, and a changed rate applies
/// to them.
#[test]
fn under_codel_packets_wait_for_the_transmitter() {
    let mut link = link(LinkConfig { codel: Some(Codel::default()), ..ten_mbit() });
    let t = Time::from_millis(100);
    let offer = |link: &mut Link, id| {
        link.offer_as(t, 1500, &PAYLOAD, Allows::default(), Origin { id, ..Origin::default() })
    };
    assert_eq!(at(offer(&mut link, 0)), t + Duration::from_micros(46_200));
    assert_eq!(link.departure(t), None);
    assert_eq!(offer(&mut link, 1), Verdict::Wait);
    assert_eq!(link.waiting(t), (1, 1500));
    let free = t + Duration::from_micros(1200);
    assert_eq!(link.departure(t), Some(free));
    assert_eq!(link.depart(t), None);
    link.set_rate(Some(Rate::mbit(1)));
    let (id, verdict) = link.depart(free).unwrap();
    assert_eq!((id, at(verdict)), (1, free + Duration::from_millis(45 + 12)));
    assert_eq!((link.depart(free), link.departure(free)), (None, None));
    link.counters().check().unwrap();
}

#[test]
fn an_outage_drops_what_waits_under_codel() {
    let mut link = link(LinkConfig { codel: Some(Codel::default()), ..ten_mbit() });
    let t = Time::from_millis(100);
    for id in 0..3 {
        link.offer_as(t, 1500, &PAYLOAD, Allows::default(), Origin { id, ..Origin::default() });
    }
    link.set_down(t);
    assert_eq!(link.counters().lost_outage, 3);
    let down = Verdict::Drop(DropReason::Down);
    assert_eq!([(); 3].map(|()| link.depart(t)), [Some((1, down)), Some((2, down)), None]);
    link.set_up();
    assert!(matches!(link.offer(t, 1500, &PAYLOAD), Verdict::Deliver { .. }));
    link.counters().check().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Offer { gap: u64, size: u32 },
    Down,
    Up,
    Rate(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (0u64..3_000_000, 40u32..=1500).prop_map(|(gap, size)| Step::Offer { gap, size }),
        1 => Just(Step::Down),
        2 => Just(Step::Up),
        1 => (1_000_000u64..50_000_000).prop_map(Step::Rate),
    ];
    prop::collection::vec(step, 1..200)
}

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        (0u32..30).prop_map(QueueLimit::Packets),
        (0u64..30_000).prop_map(QueueLimit::Bytes),
        Just(QueueLimit::Unlimited),
    ];
    let red = (0u32..10, 1u32..10, 0.001..0.5).prop_map(|(min, more, weight)| {
        let probability = Probability::percent(10);
        Red { min, max: min + more, probability, weight }
    });
    let codel = (1u64..20, 1u64..50, prop_oneof![Just(1u32), Just(4), Just(1024)]).prop_map(
        |(target, interval, flows)| Codel {
            target: Span::millis(target),
            interval: Span::millis(interval),
            flows,
            quantum: 1514,
        },
    );
    let managed = prop_oneof![
        2 => prop::option::of(red).prop_map(|red| (red, None)),
        1 => codel.prop_map(|codel| (None, Some(codel))),
    ];
    let queue = (queue, managed);
    let percent = || (0u8..=40).prop_map(Probability::percent);
    let rate = prop_oneof![
        (1_000_000u64..50_000_000).prop_map(|rate| (Some(Rate(rate)), None)),
        prop::collection::vec(1u64..50, 1..50).prop_map(|mut times| {
            times.sort_unstable();
            (None, RateTrace::new(times).ok())
        }),
    ];
    (rate, 0u64..100, queue, percent(), percent(), percent(), percent()).prop_map(
        |((rate, trace), delay, (queue, (red, codel)), loss, reorder, duplicate, corrupt)| {
            LinkConfig {
                rate,
                trace,
                delay: Duration::from_millis(delay),
                queue,
                mtu: Some(1400),
                mark_at: None,
                red,
                codel,
                policer: None,
                middlebox: None,
                loss: LossModel::bernoulli(loss),
                reorder: Some(Reordering { probability: reorder, delay: Span::millis(50) }),
                duplicate,
                corrupt,
            }
        },
    )
}

/// Runs the steps as a driver would, and checks the link after each step.
fn drive(config: &LinkConfig, steps: &[Step]) -> Result<Vec<Verdict>, TestCaseError> {
    let mut link = link(config.clone());
    let mut now = Time::ZERO;
    let mut due: Vec<(Time, Ticket, u32)> = Vec::new();
    let mut verdicts = Vec::new();
    let mut sizes = Vec::new();
    let depart = |link: &mut Link, until: Option<Time>, sizes: &[u32], due: &mut Vec<_>| {
        let mut verdicts = Vec::new();
        while let Some(at) =
            link.departure(Time::ZERO).filter(|at| until.is_none_or(|until| *at <= until))
        {
            while let Some((id, verdict)) = link.depart(at) {
                assert_ne!(verdict, Verdict::Wait);
                if let Verdict::Deliver { arrival, duplicate } = verdict {
                    for _ in 0..=u32::from(duplicate) {
                        due.push((arrival.at, arrival.ticket, sizes[id as usize]));
                    }
                }
                verdicts.push(verdict);
            }
        }
        verdicts
    };
    for step in steps {
        match *step {
            Step::Offer { gap, size } => {
                now = now + Duration::from_nanos(gap);
                verdicts.extend(depart(&mut link, Some(now), &sizes, &mut due));
                due.sort_by_key(|d| d.0);
                let ready = due.partition_point(|d| d.0 <= now);
                for (_, ticket, size) in due.drain(..ready) {
                    link.arrive(ticket, size);
                }
                let id = sizes.len() as u64;
                sizes.push(size);
                let payload = &PAYLOAD[..size as usize - 20];
                let allows = Allows { fragments: false, mark: id.is_multiple_of(3) };
                let origin = Origin { flow: id % 5, id, background: false };
                let verdict = link.offer_as(now, size, payload, allows, origin);
                prop_assert!(
                    verdict != Verdict::Wait || link.departure(now).is_some_and(|at| at >= now)
                );
                if let Verdict::Deliver { arrival, duplicate } = verdict {
                    prop_assert!(arrival.at >= now + config.delay);
                    for _ in 0..=u32::from(duplicate) {
                        due.push((arrival.at, arrival.ticket, size));
                    }
                    prop_assert!(arrival.inverted_bit.is_none_or(|b| b < (size - 20) * 8));
                }
                verdicts.push(verdict);
            }
            Step::Down => link.set_down(now),
            Step::Up => link.set_up(),
            Step::Rate(rate) => link.set_rate(Some(Rate(rate))),
        }
        let (packets, bytes) = link.waiting(now);
        match config.queue {
            QueueLimit::Packets(limit) => prop_assert!(packets <= limit as usize),
            QueueLimit::Bytes(limit) => prop_assert!(bytes <= limit),
            QueueLimit::Unlimited => {}
        }
        link.counters().check().map_err(TestCaseError::fail)?;
    }
    verdicts.extend(depart(&mut link, None, &sizes, &mut due));
    prop_assert!(!link.is_managed() || link.waiting(now) == (0, 0));
    for (_, ticket, size) in due {
        link.arrive(ticket, size);
    }
    link.counters().check().map_err(TestCaseError::fail)?;
    prop_assert_eq!(link.counters().in_flight, 0);
    Ok(verdicts)
}

proptest! {
    #[test]
    fn packets_are_conserved_and_limits_honoured(config in any_link(), steps in steps()) {
        drive(&config, &steps)?;
    }

    #[test]
    fn the_same_seed_gives_the_same_fates(config in any_link(), steps in steps()) {
        prop_assert_eq!(drive(&config, &steps)?, drive(&config, &steps)?);
    }

    /// A traced link delivers in order, and between two times no more than its chances carry.
    #[test]
    fn in_order_and_never_more_than_the_trace(
        mut times in prop::collection::vec(1u64..50, 1..50),
        offers in prop::collection::vec((0u64..30_000_000, 40u32..=1500), 2..200),
    ) {
        times.sort_unstable();
        let trace = RateTrace::new(times.clone()).unwrap();
        let queue = QueueLimit::Unlimited;
        let mut link = link(LinkConfig { rate: None, trace: Some(trace), queue, ..ten_mbit() });
        let delay = link.config().delay;
        let mut now = Time::ZERO;
        let mut sent: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
        let mut last = Time::ZERO;
        for (gap, size) in offers {
            now = now + Duration::from_nanos(gap);
            let arrival = at(link.offer(now, size, &PAYLOAD[..size as usize - 20]));
            prop_assert!(arrival >= last && arrival >= now + delay);
            last = arrival;
            let left = arrival.since(Time::ZERO) - delay;
            prop_assert_eq!(left.subsec_nanos() % 1_000_000, 0);
            *sent.entry(left.as_millis() as u64).or_default() += u64::from(size);
        }
        let length = *times.last().unwrap();
        let chances = |ms: u64| times.iter().filter(|&&at| {
            at % length == ms % length && ms >= at
        }).count() as u64;
        for (ms, bytes) in sent {
            // A packet that began with an earlier chance ends with this one.
            prop_assert!(bytes <= chances(ms) * 1504 + 1500, "{bytes} bytes at {ms} ms");
            prop_assert!(chances(ms) > 0);
        }
    }

    #[test]
    fn in_order_and_never_faster_than_the_rate(
        rate in 1_000_000u64..100_000_000,
        offers in prop::collection::vec((0u64..2_000_000, 40u32..=1500), 2..200),
    ) {
        let rate = Rate(rate);
        let mut link = link(LinkConfig { rate: Some(rate), queue: QueueLimit::Unlimited, ..ten_mbit() });
        let mut now = Time::ZERO;
        let mut last: Option<Time> = None;
        for (gap, size) in offers {
            now = now + Duration::from_nanos(gap);
            let arrival = at(link.offer(now, size, &PAYLOAD[..size as usize - 20]));
            if let Some(last) = last {
                prop_assert!(arrival.since(last) >= rate.time_for(size.into()), "faster than the rate");
            }
            last = Some(arrival);
        }
    }
}

const BLEACHES: Middlebox =
    Middlebox { clear_ecn: true, drop_fragments: true, drop_extensions: true };

/// RFC 9000 13.4.2 names what such devices do: a packet is no longer ECN-capable, so that a long
/// queue drops it.
#[test]
fn a_middlebox_clears_the_ecn_field_and_drops_what_it_does_not_know() {
    let config = LinkConfig { mtu: Some(1400), ..LinkConfig::default() };
    let mut plain = link(config.clone());
    let mut with = link(LinkConfig { middlebox: Some(BLEACHES), ..config });
    let allows = Allows { mark: true, fragments: true };
    let offer = |link: &mut Link, size: u32, sctp: &[u8]| {
        link.offer_as(Time::ZERO, size, sctp, allows, Origin::default())
    };
    let data = [&[0; 12][..], &[0, 3, 0, 20], &[0; 16]].concat();
    let cleared = |verdict| match verdict {
        Verdict::Deliver { arrival, .. } => Some(arrival.cleared),
        _ => None,
    };
    assert_eq!(cleared(offer(&mut plain, 100, &data)), Some(false));
    assert_eq!(cleared(offer(&mut with, 100, &data)), Some(true));
    assert_eq!(cleared(offer(&mut plain, 1401, &data)), Some(false));
    assert_eq!(offer(&mut with, 1401, &data), Verdict::Drop(DropReason::Mtu));
    let i_data = [&[0; 12][..], &[64, 3, 0, 20], &[0; 16]].concat();
    assert_eq!(cleared(offer(&mut plain, 100, &i_data)), Some(false));
    assert_eq!(offer(&mut with, 100, &i_data), Verdict::Drop(DropReason::Middlebox));
    assert_eq!((with.counters().dropped_mtu, with.counters().dropped_middlebox), (1, 1));
    with.counters().check().unwrap();
}
