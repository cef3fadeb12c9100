//! The numbers of RFC 9438 and RFC 8511.

use proptest::prelude::*;

use super::*;
use crate::config::Config;
use crate::policy::congestion::testing::Drill;

const CHUNK: u32 = 1468;
const MS: fn(u64) -> Duration = Duration::from_millis;

fn drill() -> Drill {
    Drill::new(CUBIC.make(&Config::rfc9260().setup()), CUBIC.needs)
}

/// A path with this window in packets, a round-trip time of 100 ms and a window's worth of data
/// in flight.
fn flying(packets: u32) -> Drill {
    let mut drill = drill();
    drill.send();
    drill.advance(MS(100));
    drill.ack(1);
    drill.set_cwnd(packets);
    drill.send_all();
    drill
}

fn packets(drill: &Drill) -> f64 {
    f64::from(drill.window().cwnd) / f64::from(CHUNK)
}

/// One round trip of 100 ms, in which every packet in flight is acknowledged by itself and
/// replaced as the window allows.
fn round_trip(drill: &mut Drill) {
    let packets = drill.in_flight();
    let end = drill.now() + MS(100);
    for i in 0..packets {
        drill.advance_to(end - MS(100) * (packets - 1 - i) as u32 / packets as u32);
        drill.ack(1);
        drill.send_all();
    }
}

/// RFC 9438 4.2: a window of 100 packets is cut to 70; K = cbrt((100 - 70) / 0.4) = 4.217 s;
/// W_cubic(K) = W_max, and W_cubic(0) is the window after the cut.
#[test]
fn the_curve_goes_through_the_cut_and_the_old_maximum() {
    let k = time_to_w_max(100.0 * 1468.0, 70.0 * 1468.0, 1468.0);
    assert!((k - 4.217).abs() < 0.001, "{k}");
    let at = |t| w_cubic(t, k, 100.0 * 1468.0, 1468.0) / 1468.0;
    for (t, packets) in
        [(0.0, 70.0), (k, 100.0), (k + 1.0, 100.4), (k - 2.0, 96.8), (2.0 * k, 130.0)]
    {
        assert!((at(t) - packets).abs() < 0.001, "{t}: {}", at(t));
    }
    assert_eq!(time_to_w_max(10.0, 20.0, 1468.0), 0.0);
}

/// RFC 9438 4.6 and 4.7.
#[test]
fn a_loss_cuts_by_three_tenths_and_converges_fast() {
    let mut drill = flying(1000);
    drill.lose(1);
    assert_eq!(drill.window().cwnd, 700 * CHUNK - 1, "rounded down");
    assert_eq!(drill.window().ssthresh, drill.window().cwnd);
    drill.recovered();
    drill.lose(1);
    assert!((packets(&drill) - 490.0).abs() < 0.01);
    drill.recovered();
    // The next stage aims at 700 * (1 + 0.7) / 2 = 595 packets: K = cbrt(105 / 0.4) = 6.40 s.
    let mut before = 0.0;
    for _ in 0..64 {
        before = packets(&drill);
        round_trip(&mut drill);
    }
    assert!((packets(&drill) - 595.0).abs() < 0.6, "{}", packets(&drill));
    assert!(packets(&drill) - before < 0.2, "a plateau");
}

/// RFC 9438 4.6: at least as in RFC 9260 7.2.3, four packets; for ECN one.
#[test]
fn the_window_has_a_floor() {
    let mut drill = flying(4);
    drill.lose(1);
    assert_eq!(drill.window().cwnd, 4 * CHUNK);
    for _ in 0..20 {
        drill.congestion(Congestion::Ecn);
    }
    assert_eq!(drill.window().cwnd, CHUNK);
}

/// RFC 8511: 0.85 in congestion avoidance, and as for a loss in slow start.
#[test]
fn a_mark_cuts_less() {
    let mut drill = flying(100);
    drill.congestion(Congestion::Ecn);
    assert_eq!(drill.window().cwnd, 70 * CHUNK);
    drill.set_cwnd(100);
    drill.congestion(Congestion::Ecn);
    assert_eq!(drill.window().cwnd, 85 * CHUNK);
}

/// RFC 9438 4.8: one packet, slow start to 0.7 of the window, then a stage with K = 0.
#[test]
fn a_timeout_starts_slowly_to_seven_tenths() {
    let mut drill = flying(100);
    drill.timeout();
    assert_eq!((drill.window().cwnd, drill.window().ssthresh), (CHUNK, 70 * CHUNK));
    drill.recovered();
    drill.send_all();
    let mut rounds = 0;
    while drill.window().cwnd < 70 * CHUNK {
        round_trip(&mut drill);
        rounds += 1;
    }
    assert_eq!(rounds, 7, "doubles each round trip: 2^7 > 70");
    assert!(packets(&drill) < 71.0);
    // W_cubic(1 s) = 70 + 0.4, W_est grows by 0.53 each round trip.
    (0..10).for_each(|_| round_trip(&mut drill));
    assert!((75.0..76.0).contains(&packets(&drill)), "{}", packets(&drill));
}

/// RFC 9438 4.9.2.
#[test]
fn a_spurious_event_is_undone() {
    let mut drill = flying(100);
    drill.lose(1);
    drill.recovered();
    (0..3).for_each(|_| round_trip(&mut drill));
    let (before, cwnd) = (drill.window(), drill.window().cwnd);
    drill.lose(1);
    assert!(drill.window().cwnd < cwnd);
    drill.spurious(false);
    assert_eq!((drill.window().cwnd, drill.window().ssthresh), (cwnd, before.ssthresh));
    drill.timeout();
    drill.timeout();
    drill.spurious(true);
    assert_eq!((drill.window().cwnd, drill.window().ssthresh), (cwnd, before.ssthresh));
    // "if the current cwnd is already higher than cwnd_prior", nothing changes.
    drill.lose(1);
    drill.set_cwnd(200);
    drill.spurious(false);
    assert_eq!(drill.window().cwnd, 200 * CHUNK);
}

/// Two reactions in a row that prove spurious: the second one is undone to the window from before
/// the first, and slow start goes on.
#[test]
fn spurious_events_in_a_row_are_undone() {
    let mut drill = flying(100);
    let before = drill.window();
    drill.lose(1);
    drill.recovered();
    drill.lose(1);
    drill.recovered();
    assert!(drill.window().cwnd < before.cwnd / 2);
    drill.spurious_since(before);
    assert_eq!((drill.window().cwnd, drill.window().ssthresh), (before.cwnd, before.ssthresh));
}

/// RFC 9438 4.2, 5.8: the window does not grow while the application limits the sender, and
/// that time does not count.
#[test]
fn a_pause_is_not_counted() {
    let mut drill = flying(100);
    drill.lose(1);
    drill.recovered();
    (0..10).for_each(|_| round_trip(&mut drill));
    let mut other = flying(100);
    other.lose(1);
    other.recovered();
    (0..10).for_each(|_| round_trip(&mut other));
    while other.in_flight() > 0 {
        other.ack(1);
    }
    let cwnd = other.window().cwnd;
    for _ in 0..100 {
        other.send();
        other.advance(MS(100));
        other.ack(1);
    }
    assert_eq!(other.window().cwnd, cwnd, "a tenth of the window");
    other.send_all();
    (0..10).for_each(|_| round_trip(&mut other));
    (0..10).for_each(|_| round_trip(&mut drill));
    assert!((packets(&other) - packets(&drill)).abs() < 1.5, "{other:?}");
}

/// RFC 9438 4.3: alpha is 0.529 until the window has reached that before the cut, then 1.
#[test]
fn the_reno_friendly_region_grows_by_alpha() {
    assert!((ALPHA - 0.529).abs() < 0.001);
    let mut drill = flying(20);
    drill.lose(1);
    drill.recovered();
    assert_eq!(drill.window().cwnd, 14 * CHUNK);
    let mut rounds = 0;
    while packets(&drill) < 20.0 {
        round_trip(&mut drill);
        rounds += 1;
    }
    // 6 / 0.529 = 11.3; W_cubic alone would need cbrt(6 / 0.4) = 2.5 s.
    assert!((11..=13).contains(&rounds), "{rounds}");
    let before = packets(&drill);
    (0..5).for_each(|_| round_trip(&mut drill));
    assert!((packets(&drill) - before - 5.0).abs() < 0.5, "{}", packets(&drill) - before);
}

/// The average window in packets if every `every`-th packet is lost, at a round-trip time of
/// 100 ms, over the last `stages` stages.
fn average(every: usize, stages: usize) -> f64 {
    let mut drill = flying(2);
    let (mut acked, mut sum, mut n, mut cuts) = (0, 0.0, 0.0, 0);
    while cuts < 2 * stages {
        let flight = drill.in_flight();
        drill.advance(MS(100));
        for _ in 0..flight {
            acked += 1;
            if acked % every == 0 {
                drill.lose(1);
                drill.recovered();
                cuts += 1;
            } else {
                drill.ack(1);
            }
            drill.send_all();
        }
        if cuts >= stages {
            sum += packets(&drill);
            n += 1.0;
        }
    }
    sum / n
}

/// RFC 9438 5.1, Table 1 (RTT = 0.1 s, C = 0.4): 38 packets at p = 1e-3, 187 at 1e-4, 1054 at
/// 1e-5.
#[test]
fn the_response_function_is_that_of_the_rfc() {
    for (every, expected, stages) in [(1_000, 38.0, 30), (10_000, 187.0, 30), (100_000, 1054.0, 12)]
    {
        let average = average(every, stages);
        let share = average / expected;
        assert!((0.9..1.25).contains(&share), "1 of {every}: {average} instead of {expected}");
    }
}

/// RFC 9002 7.7: the pacing rate is above the window's rate, in slow start twice that.
#[test]
fn packets_are_paced_above_the_rate_of_the_window() {
    let mut drill = flying(100);
    // Three packets in 100 ms, when the first acknowledgement arrived.
    assert_eq!(drill.window().pacing_rate, Some(2 * 30 * u64::from(CHUNK)));
    drill.lose(1);
    let window = 99 * u64::from(CHUNK);
    assert_eq!(drill.window().pacing_rate, Some(window * 125 / 10));
    drill.recovered();
    assert_eq!(drill.window().pacing_rate, Some(window * 125 / 10));
}

/// RFC 9002 7.8: "A sender that is pacing packets may delay sending packets and not fully utilize
/// the congestion window due to this delay. A sender SHOULD NOT consider itself application
/// limited if it would have fully utilized the congestion window without pacing delay." With less
/// than half of the window in flight it would not have.
#[test]
fn the_window_grows_while_the_pacer_holds_data_back() {
    let grown = |waits: bool, more: usize| {
        let mut drill = flying(100);
        drill.lose(1);
        drill.recovered();
        drill.ack(29);
        assert_eq!(drill.in_flight(), 70, "the window after the cut");
        let before = drill.window().cwnd;
        // The window has room, which the pacer does not allow to use yet.
        drill.advance(MS(1));
        drill.ack(10 + more);
        if waits {
            drill.wait();
        } else {
            drill.run_dry();
        }
        let first = drill.window().cwnd - before;
        drill.advance(MS(1));
        drill.ack(10);
        (first, drill.window().cwnd - before - first)
    };
    let (first, second) = grown(true, 0);
    assert!(first > 0 && second > 0, "{first} {second}");
    assert_eq!(grown(false, 0), (first, 0));
    assert_eq!(grown(true, 30).1, 0);
}

proptest! {
    /// Whatever happens: at least one packet, no overflow, and a positive pacing rate.
    #[test]
    fn windows_and_rates_stay_within_bounds(
        steps in prop::collection::vec((0u8..10, 0u64..5_000_000_000, 1usize..400), 1..300),
    ) {
        let mut drill = drill();
        for (what, nanos, n) in steps {
            drill.advance(Duration::from_nanos(nanos >> (n % 30)));
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
                _ => drill.set_cwnd(n as u32),
            }
            let w = drill.window();
            prop_assert!(w.cwnd >= CHUNK && f64::from(w.cwnd) <= MOST, "{:?}", w);
            prop_assert!(w.ssthresh >= CHUNK);
            prop_assert!(w.pacing_rate != Some(0), "{:?}", w);
        }
    }
}
