//! The formulas of draft-ietf-ccwg-bbr, its state transitions, and the test cases of its appendix
//! ("BBR Example Test Cases").

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use proptest::prelude::*;

use super::link::{CHUNK, Link};
use super::loss::inflight_at_loss;
use super::model::{Ack, AckPhase, INFINITY, Model, State};
use super::{BBR, MOST};
use crate::config::Config;
use crate::ids::PathId;
use crate::policy::congestion::testing::Drill;
use crate::policy::congestion::{Congestion, NewPath};
use crate::time::Time;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// 100 Mbit/s, 20 ms, a queue of one bandwidth-delay product.
fn link() -> Link {
    Link::new(100, MS(20), 1.0)
}

/// The link, once its sender is in `state`.
fn link_in(state: State) -> Link {
    let mut link = link();
    reach(&mut link, state);
    link
}

fn reach(link: &mut Link, state: State) {
    let end = link.drill.now() + SECS(20);
    assert!(link.run_until(end, |link| link.model().state == state), "{state:?} is not reached");
}

fn within(value: u64, expected: u64, percent: u64) -> bool {
    value.abs_diff(expected) * 100 <= expected * percent
}

/// A model with this bandwidth, in which nothing has happened.
fn model(bw: u64, rtt: Duration) -> Model {
    let remote = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let new = NewPath::new(Time::from_secs(1), PathId(0), (1000, u32::MAX, remote));
    let mut model = Model::new(&new, 10_000);
    model.max_bw.update(bw);
    model.bw = bw;
    model.min_rtt = Some(rtt);
    model
}

/// An acknowledgement of one packet.
fn ack(now: Time) -> Ack {
    Ack {
        now,
        inflight: 100_000,
        cwnd: 200_000,
        newly_acked: 1000,
        rtt: Some(MS(100)),
        recovering: false,
        prior_delivered: Some(0),
        delivered: 100_000,
        rate: 1_000_000,
        app_limited: false,
        tx_in_flight: 100_000,
        lost: 0,
    }
}

/// The table of draft 5.6.1.
#[test]
fn the_gains_are_those_of_the_table() {
    let table = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ];
    for (state, pacing, cwnd) in table {
        assert_eq!(state.gains(), (pacing, cwnd), "{state:?}");
    }
}

/// Draft 5.6.4.2: 1 MB/s * 100 ms = 100 kB; at least one quantum and four packets; two packets more
/// in UP.
#[test]
fn the_volume_in_flight_follows_from_the_model() {
    let mut m = model(1_000_000, MS(100));
    m.pacing_rate = 1_000_000;
    assert_eq!((m.bdp(1.0), m.bdp(2.0), m.inflight(m.bw, 0.5)), (100_000, 200_000, 50_000));
    m.state = State::Up;
    assert_eq!(m.quantized(100_000), 102_000);
    m.state = State::Cruise;
    assert_eq!(m.quantized(0), 4000, "MinPipeCwnd");
    m.pacing_rate = 50_000_000;
    assert_eq!(m.quantized(0), 50_000, "a millisecond");
    m.pacing_rate = 500_000_000;
    assert_eq!(m.quantized(0), 65_536);
    m.min_rtt = None;
    assert_eq!(m.bdp(1.0), 10_000, "C.InitialCwnd");
}

/// Draft 5.3.3.6: inflight_longterm less 15 %, at least a packet, at least MinPipeCwnd.
#[test]
fn headroom_is_left_for_others() {
    let mut m = model(1_000_000, MS(100));
    assert_eq!(m.inflight_with_headroom(), INFINITY);
    for (longterm, expected) in [(100_000, 85_000), (6000, 5000), (2000, 4000)] {
        m.inflight_longterm = longterm;
        assert_eq!(m.inflight_with_headroom(), expected);
    }
}

/// Draft 5.5.10.2: with 100 packets before and one of them lost, the threshold of 2 % is crossed
/// after (0.02 * 100 - 1) / 0.98 = 1.02 packets.
#[test]
fn the_volume_at_which_losses_were_too_high() {
    assert_eq!(inflight_at_loss(5000, 105_000, 6000, 0.02), 100_000 + 1020);
    assert_eq!(inflight_at_loss(1000, 1000, 9000, 0.02), 0, "never negative");
    let m = model(1_000_000, MS(100));
    assert!(m.is_inflight_too_high(2001, 100_000) && !m.is_inflight_too_high(2000, 100_000));
}

/// Draft 5.5.10.3: the bounds fall to what was delivered in the last round trip, but by no more
/// than 30 %.
#[test]
fn losses_lower_the_short_term_bounds_once_a_round_trip() {
    let mut m = model(1_000_000, MS(100));
    (m.state, m.full_bw_reached) = (State::Cruise, true);
    let round = |m: &mut Model, rate: u64, delivered: u64| {
        m.handle_lost(Time::from_secs(2), 200_000, 1000, None);
        m.delivered += 200_000;
        let prior = Some(m.delivered - 100_000);
        let ack = Ack { rate, delivered, prior_delivered: prior, ..ack(Time::from_secs(2)) };
        m.update_latest_delivery_signals(&ack);
        m.update_congestion_signals(&ack);
        m.advance_latest_delivery_signals(&ack);
    };
    round(&mut m, 900_000, 90_000);
    assert_eq!((m.bw_shortterm, m.inflight_shortterm), (900_000, 140_000));
    round(&mut m, 100_000, 10_000);
    assert_eq!(
        (m.bw_shortterm, m.inflight_shortterm),
        (900_000, 98_000),
        "bw_latest of two rounds"
    );
    round(&mut m, 100_000, 10_000);
    assert_eq!((m.bw_shortterm, m.inflight_shortterm), (630_000, 68_600));
    m.start_refill();
    assert_eq!((m.bw_shortterm, m.inflight_shortterm), (INFINITY, INFINITY));
}

/// DOWN sends 0.9 of the bandwidth: if that is delivered, losses and marks of the queue that it
/// drains do not make CRUISE as slow. What is delivered beyond that lowers the bounds.
#[test]
fn the_pace_of_down_is_no_bound() {
    // State, rate, whether the sample was sent in DOWN, and bw_shortterm after the round trip.
    let table = [
        (State::Down, 900_000, true, 1_000_000),
        (State::Down, 810_000, true, 900_000),
        (State::Cruise, 900_000, true, 1_000_000),
        (State::Cruise, 900_000, false, 900_000),
    ];
    for (state, rate, in_down, bound) in table {
        let mut m = model(1_000_000, MS(100));
        (m.state, m.full_bw_reached) = (state, true);
        m.delivered = 1_000_000;
        m.handle_mark(Time::from_secs(2), 200_000, 100_000);
        m.delivered += 200_000;
        m.cruise_delivered = if in_down { m.delivered } else { 0 };
        let prior = Some(m.delivered - 100_000);
        let delivered = rate / 10;
        let ack = Ack { rate, delivered, prior_delivered: prior, ..ack(Time::from_secs(2)) };
        m.update_latest_delivery_signals(&ack);
        m.update_congestion_signals(&ack);
        assert!(within(m.bw_shortterm, bound, 1), "{state:?} {rate}: {}", m.bw_shortterm);
    }
}

/// Draft 5.3.3.6: inflight_longterm grows by 1, 2, 4, ... packets in the round trips of UP.
#[test]
fn the_long_term_bound_grows_faster_and_faster() {
    let mut m = model(1_000_000, MS(100));
    (m.state, m.full_bw_reached, m.inflight_longterm) = (State::Refill, true, 100_000);
    m.cwnd_limited = (true, true);
    let mut now = Time::from_secs(2);
    let mut grown = Vec::new();
    for round in 0..6 {
        let before = m.inflight_longterm;
        for packet in 0..100 {
            m.delivered += 1000;
            m.round_start = packet == 0;
            m.cwnd_limited = (true, true);
            let cwnd = m.inflight_longterm;
            let tx_in_flight = 90_000;
            now = now + MS(1);
            m.update_cycle_phase(&Ack { cwnd, tx_in_flight, rate: 1_000_000 + round, ..ack(now) });
        }
        grown.push((m.inflight_longterm - before) / 1000);
    }
    assert_eq!(m.state, State::Up);
    assert!(grown[1] <= 2 && grown[5] >= 12, "{grown:?}");
    assert!(grown.windows(2).all(|pair| pair[1] >= pair[0]), "{grown:?}");
}

/// Appendix: "Exiting STARTUP on Bandwidth Plateau", "Exiting DRAIN Based on Inflight".
#[test]
fn startup_ends_on_a_plateau_and_drain_with_the_queue() {
    let mut link = link_in(State::Drain);
    let m = link.model();
    assert!(m.full_bw_reached && m.full_bw_now && m.full_bw_count == 3);
    assert!(within(m.max_bw.max(), link.rate, 2), "{} of {}", m.max_bw.max(), link.rate);
    // Doubling from ten packets: 6 round trips to the bandwidth, 3 without growth.
    assert!(m.round_count <= 12, "{}", m.round_count);
    // DOWN ends at once, because no queue is left.
    reach(&mut link, State::Cruise);
    let m = link.model();
    // A batch may have left since.
    let in_flight = u64::from(link.drill.view().in_flight);
    assert!(in_flight <= m.inflight(m.bw, 1.0) + 10 * CHUNK, "{in_flight}");
}

/// Appendix: "Exiting DRAIN Based on Time".
#[test]
fn drain_ends_after_three_round_trips() {
    let mut m = model(1_000_000, MS(100));
    m.state = State::Startup;
    m.round_count = 5;
    m.full_bw_reached = true;
    m.check_startup_done(&ack(Time::from_secs(2)));
    assert_eq!(m.state, State::Drain);
    let full = Ack { inflight: 150_000, ..ack(Time::from_secs(2)) };
    for round in 6..=8 {
        m.round_count = round;
        m.check_drain_done(&full);
        assert_eq!(m.state, State::Drain, "{round}");
    }
    m.round_count = 9;
    m.check_drain_done(&full);
    assert_eq!(m.state, State::Down);
}

/// Appendix: "Exiting STARTUP on Loss When Application-Limited": three conditions, all of which
/// must be met.
#[test]
fn startup_ends_on_high_loss() {
    for (recovering, losses, lost, ends) in [
        (true, 6, 2001, true),
        (false, 6, 2001, false),
        (true, 5, 2001, false),
        (true, 6, 2000, false),
    ] {
        let mut m = model(1_000_000, MS(100));
        for at in 0..losses {
            m.handle_lost(Time::from_millis(at), 200_000, 1000, None);
        }
        m.loss_round_start = true;
        m.inflight_latest = 120_000;
        let now = Time::from_secs(2);
        m.check_startup_done(&Ack { recovering, lost, app_limited: true, ..ack(now) });
        assert_eq!(m.full_bw_reached, ends);
        if ends {
            assert_eq!((m.state, m.inflight_longterm), (State::Drain, 120_000));
        } else {
            assert_eq!(m.state, State::Startup);
        }
    }
}

/// The cycle of draft 5.3.3, and that its wait is at most 3 s.
#[test]
fn bandwidth_is_probed_in_a_cycle() {
    let mut link = link_in(State::Down);
    for state in [State::Cruise, State::Refill, State::Up, State::Down] {
        let begun = link.drill.now();
        reach(&mut link, state);
        let took = link.drill.now().since(begun);
        let most = if state == State::Refill { MS(3_200) } else { MS(500) };
        assert!(took <= most, "{state:?} after {took:?}");
    }
    assert!(within(link.model().max_bw.max(), link.rate, 2));
}

/// Appendix: "Exiting PROBE_UP on Bandwidth Plateau": without a loss, and the queue of UP drains.
#[test]
fn the_probe_ends_on_a_plateau() {
    let mut link = link_in(State::Up);
    link.lost = 0;
    reach(&mut link, State::Down);
    assert!(link.model().full_bw_now);
    assert_eq!((link.lost, link.model().inflight_longterm), (0, INFINITY));
}

/// Appendix: "Exiting PROBE_UP on Loss", "Handling Loss During PROBE_UP After inflight_longterm is
/// Set".
#[test]
fn high_loss_ends_the_probe_and_bounds_the_volume() {
    let mut link = link_in(State::Up);
    link.loss = 100;
    reach(&mut link, State::Down);
    let m = link.model();
    assert!(m.prev_probe_too_high && !m.is_bw_probe_sample);
    let least = link.bdp() * 7 / 10;
    assert!((least..2 * link.bdp()).contains(&m.inflight_longterm), "{}", m.inflight_longterm);
}

/// Draft 5.3.3.4.2, "Precautionary Bandwidth Probing": after a probe that went too high, the next
/// one ends at its bound; if that causes no loss for a round trip, another one follows at once.
#[test]
fn a_probe_after_high_loss_stops_at_the_bound() {
    let mut m = model(1_000_000, MS(100));
    (m.state, m.full_bw_reached) = (State::Up, true);
    (m.prev_probe_too_high, m.inflight_longterm) = (true, 110_000);
    let now = Time::from_secs(2);
    m.update_cycle_phase(&Ack { inflight: 109_000, ..ack(now) });
    assert_eq!(m.state, State::Up);
    m.update_cycle_phase(&Ack { inflight: 110_000, ..ack(now) });
    assert_eq!((m.state, m.prev_probe_precautionary), (State::Down, true));
    m.round_start = true;
    m.update_cycle_phase(&ack(now));
    assert_eq!(m.state, State::Refill);
}

/// Appendix: "Exiting PROBE_DOWN After Max Time".
#[test]
fn down_goes_to_refill_after_the_wait() {
    let mut m = model(1_000_000, MS(100));
    m.full_bw_reached = true;
    m.start_down(Time::from_secs(2));
    assert!((SECS(2)..SECS(3)).contains(&m.bw_probe_wait));
    assert!(m.rounds_since_probe_up <= 1);
    m.ack_phase = AckPhase::Init;
    let late = Ack { inflight: 150_000, ..ack(Time::from_secs(2) + m.bw_probe_wait) };
    m.update_cycle_phase(&late);
    assert_eq!(m.state, State::Down);
    m.update_cycle_phase(&Ack { now: late.now + MS(1), ..late });
    assert_eq!(m.state, State::Refill);
}

/// Unlike in the draft: flows of different size come closer with each probe only if the larger one
/// does not take its headroom back at once.
#[test]
fn a_probe_into_a_queue_of_others_begins_with_headroom() {
    for (rtt, bound) in [(MS(110), 200_000), (MS(111), 170_000)] {
        let mut m = model(1_000_000, MS(100));
        m.full_bw_reached = true;
        m.inflight_longterm = 200_000;
        m.start_down(Time::from_secs(2));
        m.ack_phase = AckPhase::Init;
        // K of 200 packets is 5.3 s.
        let now = Time::from_secs(2) + SECS(6);
        m.round_rtt = (Some(MS(150)), Some(rtt));
        m.update_cycle_phase(&Ack { lost: 10_000, ..ack(now) });
        assert_eq!((m.state, m.inflight_longterm), (State::Refill, bound), "{rtt:?}");
    }
}

/// Draft 5.3.3.5.1: as many round trips as packets in flight, at most 63.
#[test]
fn small_flows_probe_as_often_as_reno() {
    for (bw, rounds) in [(100_000, 10), (1_000_000, 63)] {
        let mut m = model(bw, MS(100));
        m.full_bw_reached = true;
        m.start_down(Time::from_secs(2));
        m.ack_phase = AckPhase::Init;
        m.state = State::Cruise;
        m.rounds_since_probe_up = rounds - 1;
        m.update_cycle_phase(&ack(Time::from_secs(2)));
        assert_eq!(m.state, State::Cruise);
        m.rounds_since_probe_up = rounds;
        m.update_cycle_phase(&ack(Time::from_secs(2)));
        assert_eq!(m.state, State::Refill);
    }
}

/// A probe into a queue of others waits for K of RFC 9438 4.2: cbrt(300 * 0.3 / 0.4) = 6.08 s for
/// 300 packets, or until Reno would have got its window back, in as many round trips as packets.
/// Without such a queue, or without a bound, it waits as in the draft.
#[test]
fn a_probe_into_a_queue_of_others_leaves_cubic_the_time_to_grow() {
    const K: Duration = Duration::from_micros(6_082_202);
    let begin = Time::from_secs(2);
    let after = |wait: Duration, rounds, rtt, longterm| {
        let mut m = model(1_000_000, MS(100));
        m.full_bw_reached = true;
        m.inflight_longterm = longterm;
        m.state = State::Up;
        m.start_down(begin);
        // ProbeRTT in between does not begin the wait anew.
        m.state = State::ProbeRtt;
        m.start_down(begin + SECS(1));
        m.ack_phase = AckPhase::Init;
        m.state = State::Cruise;
        m.rounds_since_probe_up = rounds;
        m.round_rtt = (Some(rtt), Some(MS(150)));
        m.update_cycle_phase(&Ack { lost: 10_000, ..ack(begin + wait) });
        m.state
    };
    let (queue, empty) = (MS(150), MS(105));
    assert_eq!(after(K - MS(1), 63, queue, 300_000), State::Cruise);
    assert_eq!(after(K + MS(1), 20, queue, 300_000), State::Refill);
    assert_eq!(after(SECS(5), 100, queue, 300_000), State::Refill, "100 packets are the product");
    assert_eq!(after(SECS(5), 63, queue, INFINITY), State::Refill);
    assert_eq!(after(SECS(5), 63, empty, 300_000), State::Refill);
    // The draft's wait is the least, and 12 s are the most.
    assert_eq!(after(MS(2500), 20, queue, 20_000), State::Cruise, "2 s after ProbeRTT");
    assert_eq!(after(SECS(4), 20, queue, 20_000), State::Refill);
    assert_eq!(after(MS(11_999), 63, queue, 100_000_000), State::Cruise);
    assert_eq!(after(SECS(12), 63, queue, 100_000_000), State::Refill);
}

/// Unlike in the draft, which knows one path, a probe waits for that of another path, but not for
/// longer than a second wait: the other one may not end.
#[test]
fn the_paths_of_an_association_probe_in_turns() {
    for (another_probes, waits) in [(false, 1), (true, 2)] {
        let mut m = model(1_000_000, MS(100));
        m.full_bw_reached = true;
        m.start_down(Time::from_secs(2));
        m.ack_phase = AckPhase::Init;
        m.state = State::Cruise;
        m.another_probes = another_probes;
        let due = Time::from_secs(2) + m.bw_probe_wait * waits;
        m.update_cycle_phase(&ack(due));
        assert_eq!(m.state, State::Cruise);
        m.update_cycle_phase(&ack(due + MS(1)));
        assert_eq!(m.state, State::Refill);
    }
}

#[test]
fn a_path_that_takes_over_drains_the_queue_that_it_has_filled() {
    let after = |state, last_rtt| {
        let mut m = model(1_000_000, MS(100));
        (m.state, m.full_bw_reached) = (state, state != State::Startup);
        m.stop_probing(Time::from_secs(2), Some(last_rtt));
        (m.state, m.pacing_rate)
    };
    assert_eq!(after(State::Up, MS(100)), (State::Down, 891_000));
    assert_eq!(after(State::Refill, MS(100)).0, State::Down);
    assert_eq!(after(State::Startup, MS(126)), (State::Drain, 495_000));
    for (state, rtt) in [(State::Startup, MS(125)), (State::Cruise, MS(200))] {
        let before = model(1_000_000, MS(100)).pacing_rate;
        assert_eq!(after(state, rtt), (state, before));
    }
}

/// Appendix: "Entering and Exiting PROBE_RTT".
#[test]
fn the_round_trip_time_is_probed_every_five_seconds() {
    let mut link = link_in(State::Down);
    // A queue of another flow: no sample is as low as the first ones.
    link.rtt = MS(21);
    let begun = link.model().probe_rtt_min_stamp;
    reach(&mut link, State::ProbeRtt);
    let entered = link.drill.now();
    assert!((MS(5000)..MS(5200)).contains(&entered.since(begun)));
    let bdp = link.model().bdp(1.0);
    let cwnd = u64::from(link.drill.window().cwnd);
    assert!(cwnd <= bdp / 2 + CHUNK, "{cwnd} of {bdp}");
    reach(&mut link, State::Cruise);
    assert!((MS(200)..MS(300)).contains(&link.drill.now().since(entered)));
    link.run(MS(100));
    assert!(u64::from(link.drill.window().cwnd) > bdp, "restored");
    // The old sample expires after ten seconds.
    link.run(SECS(6));
    assert!(link.model().min_rtt >= Some(MS(21)));
}

/// Draft 5.3.4.2: ProbeRTT is "to sacrifice no more than roughly 2% of a flow's available
/// bandwidth". At 600 ms it takes four times as long as at 20 ms.
#[test]
fn with_long_round_trips_the_round_trip_time_is_probed_every_25_of_them() {
    let mut link = Link::new(20, MS(600), 1.0);
    reach(&mut link, State::Down);
    link.rtt = MS(630);
    let begun = link.model().probe_rtt_min_stamp;
    reach(&mut link, State::ProbeRtt);
    let waited = link.drill.now().since(begun);
    assert!((MS(15_000)..MS(16_000)).contains(&waited), "{waited:?}");
}

/// A probe for bandwidth fills a part of the queue and DOWN drains it, which takes eight seconds
/// at 600 ms. Samples at its end show the empty queue.
#[test]
fn the_queue_of_a_probe_for_bandwidth_needs_no_probe_of_the_round_trip_time() {
    let mut link = Link::new(20, MS(600), 1.0);
    reach(&mut link, State::Cruise);
    let end = link.drill.now() + SECS(60);
    assert!(!link.run_until(end, |link| link.model().state == State::ProbeRtt));
    assert!(link.model().min_rtt <= Some(MS(601)));
}

/// Samples that show the shortest round-trip time again need no ProbeRTT.
#[test]
fn an_empty_queue_postpones_the_probe() {
    let mut link = link_in(State::Cruise);
    let end = link.drill.now() + SECS(30);
    assert!(!link.run_until(end, |link| link.model().state == State::ProbeRtt));
    assert!(link.model().min_rtt <= Some(MS(20) + MS(1)));
}

/// A link that loses 3 % at random: chance exceeds the mean now and then, which lowers the
/// bandwidth by no more than what was lost beyond it.
#[test]
fn the_paths_own_losses_do_not_lower_the_bandwidth() {
    let mut m = model(1_000_000, MS(20));
    m.state = State::Cruise;
    for _ in 0..20 {
        m.ambient.note_lost(3000);
        m.ambient.note_acked(97_000, Some(MS(20)), Some(MS(20)));
        m.ambient.end_round(1000, false);
    }
    (m.is_loss_in_round, m.loss_round_delivered) = (true, 0);
    m.bw_latest = 970_000;
    m.update_congestion_signals(&Ack { rate: 970_000, ..ack(Time::from_secs(2)) });
    m.loss_round_start = true;
    m.is_loss_in_round = true;
    m.update_congestion_signals(&Ack { rate: 970_000, ..ack(Time::from_secs(2)) });
    assert!(within(m.bw_shortterm, 1_000_000, 1), "{}", m.bw_shortterm);
    // Twice as much was lost: 3 % less is delivered.
    m.bw_latest = 940_000;
    m.loss_round_start = true;
    m.is_loss_in_round = true;
    m.update_congestion_signals(&Ack { rate: 940_000, ..ack(Time::from_secs(3)) });
    assert!(within(m.bw_shortterm, 969_000, 1), "{}", m.bw_shortterm);
}

/// A link that loses 3 % at random, in the first round trips: Startup goes on without a queue, and
/// ends if there is one, or if more is lost than a path may lose by itself.
#[test]
fn startup_goes_on_while_the_path_loses_packets_without_a_queue() {
    for (rtt, lost, ends) in [(20, 6000, false), (40, 6000, true), (20, 40_000, true)] {
        let mut m = model(1_000_000, MS(20));
        for at in 0..6 {
            m.handle_lost(Time::from_millis(at), 200_000, 1000, None);
        }
        m.ambient.note_acked(60_000, Some(MS(rtt)), Some(MS(20)));
        m.loss_round_start = true;
        let now = Time::from_secs(2);
        let ack = Ack { recovering: true, lost, tx_in_flight: 60_000, ..ack(now) };
        m.check_startup_done(&ack);
        assert_eq!(m.full_bw_reached, ends, "{rtt} ms, {lost} bytes");
    }
}

/// A probe on a path that loses 3 %: of 100 packets, twice as many are lost now and then.
#[test]
fn chance_does_not_end_a_probe() {
    let mut m = model(1_000_000, MS(20));
    for _ in 0..20 {
        m.ambient.note_lost(3000);
        m.ambient.note_acked(97_000, Some(MS(20)), Some(MS(20)));
        m.ambient.end_round(1000, false);
    }
    // 3 + 4 * sqrt(3) + 3 packets of a hundred; 5 % of many.
    assert!(!m.is_inflight_too_high(12_000, 100_000) && m.is_inflight_too_high(13_000, 100_000));
    let many = 10_000_000;
    assert!(!m.is_inflight_too_high(500_000, many) && m.is_inflight_too_high(501_000, many));
}

/// Appendix: "Skipping PROBE_RTT Due to Application-Limited Sending".
#[test]
fn an_idle_path_needs_no_probe() {
    let mut link = link_in(State::Cruise);
    // One packet is left, and the next one is sent after 1468 s.
    link.application = Some(1);
    link.run(SECS(60));
    assert_eq!(link.drill.in_flight(), 0);
    link.rtt = MS(21);
    link.application = None;
    let end = link.drill.now() + SECS(3);
    assert!(!link.run_until(end, |link| link.model().state == State::ProbeRtt));
    assert!(link.drill.now() == end && link.model().state.probes_bandwidth());
}

/// Draft 5.4.1: the window is kept, and data leaves at the bandwidth.
#[test]
fn after_idling_data_leaves_at_the_bandwidth() {
    let mut link = link_in(State::Cruise);
    let window = link.drill.window();
    link.application = Some(1);
    link.run(SECS(3));
    link.application = None;
    link.run(MS(10));
    let after = link.drill.window();
    assert!(within(after.cwnd.into(), window.cwnd.into(), 5));
    assert!(within(after.pacing_rate.unwrap(), link.rate, 3), "{after:?}");
    assert!(link.goodput(MS(500)) > 0.95 * link.rate as f64);
}

/// Appendix: "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss".
#[test]
fn startup_goes_on_while_the_application_limits_it() {
    let mut link = link();
    link.application = Some(link.rate / 10);
    let end = link.drill.now() + SECS(4);
    assert!(!link.run_until(end, |link| link.model().state != State::Startup));
    link.application = None;
    reach(&mut link, State::Drain);
    assert!(within(link.model().max_bw.max(), link.rate, 2));
}

/// Appendix: "Entering and Exiting PROBE_RTT During STARTUP".
#[test]
fn startup_continues_after_a_probe_of_the_round_trip_time() {
    let mut link = link();
    link.application = Some(link.rate / 10);
    link.run(SECS(1));
    link.rtt = MS(25);
    reach(&mut link, State::ProbeRtt);
    reach(&mut link, State::Startup);
    assert!(!link.model().full_bw_reached);
}

/// Appendix: "Achieving Expected Cruise Bandwidth on a Link With Aggregation".
#[test]
fn aggregated_acknowledgements_do_not_stall() {
    let mut link = link();
    link.aggregation = MS(30);
    link.run(SECS(3));
    assert!(link.model().extra_acked > link.bdp() / 4, "{}", link.model().extra_acked);
    let share = link.goodput(SECS(5)) / link.rate as f64;
    assert!(share > 0.95, "{share}");
}

/// Appendix: "Correctly Managing Sub-Packet BDPs".
#[test]
fn four_packets_are_the_least_window() {
    let mut link = Link::new(1, MS(2), 40.0);
    link.run(SECS(3));
    assert!(u64::from(link.drill.window().cwnd) >= 4 * CHUNK);
    let share = link.goodput(SECS(5)) / link.rate as f64;
    assert!(share > 0.95, "{share}");
}

/// Appendix: "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached".
#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut link = Link::new(10, MS(20), 1.0);
    link.run(SECS(3));
    assert!(within(link.model().max_bw.max(), link.rate, 2));
    link.rate *= 10;
    link.queue *= 10;
    link.run(SECS(10));
    let share = link.goodput(SECS(3)) / link.rate as f64;
    assert!(share > 0.95, "{share}");
}

/// Appendix: "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down".
#[test]
fn a_tenth_of_the_bandwidth_is_noticed() {
    let mut link = link_in(State::Cruise);
    link.rate /= 10;
    link.queue /= 10;
    link.run(SECS(10));
    assert!(within(link.model().max_bw.max(), link.rate, 5), "{}", link.model().max_bw.max());
    let share = link.goodput(SECS(3)) / link.rate as f64;
    assert!(share > 0.9, "{share}");
}

/// Appendix: "Handling Spurious Fast Recovery", "Handling Spurious RTO Recovery".
#[test]
fn a_spurious_reaction_is_undone() {
    let mut link = link_in(State::Up);
    let before = link.drill.window();
    link.loss = 100;
    reach(&mut link, State::Down);
    assert!(link.model().inflight_longterm < INFINITY);
    link.drill.spurious(false);
    assert_eq!((link.model().state, link.model().inflight_longterm), (State::Refill, INFINITY));
    assert!(link.drill.window().cwnd >= before.cwnd);
    let before = link.drill.window();
    link.drill.timeout();
    assert_eq!(u64::from(link.drill.window().cwnd), CHUNK);
    link.drill.spurious(true);
    assert_eq!(link.drill.window().cwnd, before.cwnd);
}

/// Draft 3.7: a mark is congestion in every state.
#[test]
fn a_mark_ends_startup_and_probes() {
    let mut link = link();
    link.run(MS(50));
    link.drill.congestion(Congestion::Ecn);
    assert_eq!(link.model().state, State::Drain);
    reach(&mut link, State::Up);
    link.drill.congestion(Congestion::Ecn);
    assert_eq!(link.model().state, State::Down);
    assert!(link.model().inflight_longterm < INFINITY);
    reach(&mut link, State::Cruise);
    link.drill.congestion(Congestion::Ecn);
    link.run(MS(100));
    assert!(link.model().inflight_shortterm < INFINITY);
}

/// Goodput of half a minute after the first second, as a share of the link's rate.
fn share(mbit: u64, rtt: u64, bdp: f64, loss: u64, seed: u64) -> f64 {
    let mut link = Link::new(mbit, MS(rtt), bdp);
    link.loss = loss;
    link.seed(seed);
    link.run(SECS(1));
    link.goodput(SECS(30)) / link.rate as f64
}

#[test]
fn links_are_filled() {
    for (mbit, rtt, bdp, loss, least) in [
        (100, 20, 1.0, 0, 0.95),
        (100, 100, 1.0, 0, 0.95),
        (1000, 20, 1.0, 0, 0.95),
        (100, 20, 0.25, 0, 0.9),
        (100, 100, 0.25, 0, 0.9),
        (100, 20, 1.0, 10, 0.9),
        (100, 100, 1.0, 10, 0.9),
        (20, 100, 1.0, 10, 0.9),
        (20, 20, 1.0, 10, 0.9),
        (100, 20, 1.0, 30, 0.9),
        (100, 100, 1.0, 30, 0.9),
        (100, 100, 0.25, 30, 0.9),
        (20, 100, 1.0, 30, 0.9),
        (20, 20, 1.0, 30, 0.9),
    ] {
        for seed in 0..if loss > 0 { 5 } else { 1 } {
            let share = share(mbit, rtt, bdp, loss, seed);
            assert!(
                share >= least,
                "{mbit} Mbit/s, {rtt} ms, {bdp} BDP, {loss} per thousand, seed {seed}: {share}"
            );
        }
    }
}

/// Without losses, the queue is empty between the probes.
#[test]
fn there_is_no_standing_queue() {
    let mut link = Link::new(100, MS(20), 10.0);
    link.run(SECS(3));
    reach(&mut link, State::Cruise);
    link.run(MS(100));
    link.longest_queue = 0;
    let end = link.drill.now() + SECS(4);
    link.run_until(end, |link| link.model().state != State::Cruise);
    assert!(link.longest_queue < link.bdp() / 10, "{} bytes", link.longest_queue);
}

proptest! {
    /// Whatever happens: at least one packet, no overflow, a positive pacing rate.
    #[test]
    fn windows_and_rates_stay_within_bounds(
        steps in prop::collection::vec((0u8..11, 0u64..20_000_000_000, 1usize..400), 1..300),
    ) {
        let mut drill = Drill::new(BBR.make(&Config::rfc9260().setup()), BBR.needs);
        for (what, nanos, n) in steps {
            drill.advance(Duration::from_nanos(nanos >> (n % 34)));
            match what {
                0..3 => drill.send_all(),
                3..6 => drill.ack(n),
                6 => drill.lose(n % 8),
                7 => match n % 4 {
                    0 => drill.recovered(),
                    1 => drill.timeout(),
                    2 => drill.congestion(Congestion::Ecn),
                    _ => drill.spurious(true),
                },
                8 => drill.idle(n % 2 == 0),
                9 => drill.run_dry(),
                _ => drill.set_cwnd(n as u32),
            }
            let w = drill.window();
            prop_assert!(u64::from(w.cwnd) >= CHUNK && u64::from(w.cwnd) <= MOST, "{:?}", w);
            prop_assert!(w.pacing_rate.is_some_and(|rate| rate > 0), "{:?}", w);
        }
    }
}
