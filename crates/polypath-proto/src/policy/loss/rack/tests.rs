//! The sentences of RFC 8985, on one path unless stated otherwise.

use proptest::prelude::*;

use super::*;
use crate::Config;
use crate::policy::rtt_sampling::AckedChunk;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SRTT: u64 = 100;
const MTU: u32 = 1452;

fn at(ms: u64) -> Time {
    Time::ZERO + MS(ms)
}

/// A detector and the chunks in flight on each of its two paths, in the order of their sending.
struct Sender {
    rack: Box<dyn LossDetector>,
    flight: [Vec<SentChunk>; 2],
    recovering: Recovering,
    next: u32,
    cumulative: u32,
}

impl Sender {
    fn new() -> Self {
        let rack = RACK.make(&Config::rfc9260().setup());
        Self {
            rack,
            flight: [Vec::new(), Vec::new()],
            recovering: Recovering::No,
            next: 1,
            cumulative: 0,
        }
    }

    fn times(&self, now: Time, path: usize) -> PathTimes {
        PathTimes {
            now,
            id: PathId(path as u8),
            srtt: Some(MS(SRTT)),
            min_rtt: Some(MS(SRTT)),
            t3: Some(now + Duration::from_secs(1)),
            in_flight: self.flight[path].len() as u32 * MTU,
            max_chunk: MTU,
            next_tsn: Tsn(self.next),
            recovering: self.recovering,
            spurious_timeout: false,
        }
    }

    fn send_as(&mut self, now: Time, path: usize, tsn: u32, transmissions: u32, probe: bool) {
        let chunk = SentChunk { tsn: Tsn(tsn), sent: now, transmissions, probe };
        self.flight[path].push(chunk);
        let times = self.times(now, path);
        self.rack.on_sent(&chunk, &times);
    }

    /// Sends a new chunk; returns its TSN.
    fn send(&mut self, now: Time, path: usize) -> u32 {
        let tsn = self.next;
        self.next += 1;
        self.send_as(now, path, tsn, 1, false);
        tsn
    }

    /// A SACK acknowledges `tsns`; returns the chunks that are lost by then.
    fn sack(&mut self, now: Time, tsns: &[u32], duplicates: &[u32]) -> Vec<u32> {
        let mut acked = Vec::new();
        for (path, flight) in self.flight.iter_mut().enumerate() {
            flight.retain(|c| {
                let gone = tsns.contains(&c.tsn.0);
                if gone {
                    acked.push(AckedChunk {
                        tsn: c.tsn,
                        bytes: MTU,
                        path: PathId(path as u8),
                        sent: c.sent,
                        transmissions: c.transmissions,
                        measured: false,
                    });
                }
                !gone
            });
        }
        acked.sort_by_key(|c| c.tsn.0);
        let duplicates: Vec<Tsn> = duplicates.iter().map(|&tsn| Tsn(tsn)).collect();
        let lowest = self.flight.iter().flatten().map(|c| c.tsn.0).min();
        self.cumulative = lowest.map_or(self.next - 1, |lowest| lowest - 1);
        let view = SackView {
            now,
            acked: &acked,
            duplicates: &duplicates,
            cumulative: Tsn(self.cumulative),
            ..SackView::default()
        };
        let paths = [self.times(now, 0), self.times(now, 1)];
        self.rack.on_sack(&view, &paths);
        self.judge(now)
    }

    fn judge(&mut self, now: Time) -> Vec<u32> {
        let mut lost = Vec::new();
        for path in 0..2 {
            loop {
                let times = self.times(now, path);
                if !self.rack.judge(self.flight[path].first(), &times) {
                    break;
                }
                lost.push(self.flight[path].remove(0).tsn.0);
            }
        }
        lost
    }

    fn deadline(&self) -> Option<Time> {
        self.rack.deadline(PathId(0))
    }

    /// Lets the deadline pass; returns what the detector asks for.
    fn expire(&mut self) -> (Time, Alarm) {
        let now = self.deadline().expect("a deadline");
        let times = self.times(now, 0);
        (now, self.rack.on_deadline(&times))
    }
}

/// Three chunks that were acknowledged after one round trip: the detector has a measurement.
fn measured() -> Sender {
    let mut s = Sender::new();
    let tsns: Vec<u32> = (0..3).map(|_| s.send(at(0), 0)).collect();
    assert!(s.sack(at(SRTT), &tsns, &[]).is_empty());
    s
}

/// 6.2 step 5: "RACK considers that segment lost if another segment that was sent later has been
/// delivered and the reordering window has passed." The window "starts with a conservative
/// RACK.reo_wnd of RACK.min_RTT/4".
#[test]
fn a_chunk_is_lost_after_the_reordering_window() {
    let mut s = measured();
    let (a, b) = (s.send(at(200), 0), s.send(at(201), 0));
    assert!(s.sack(at(301), &[b], &[]).is_empty(), "the window has not passed");
    // Segment.xmit_ts + RACK.rtt + RACK.reo_wnd.
    assert_eq!(s.deadline(), Some(at(200 + 100 + 25)));
    let (now, alarm) = s.expire();
    assert_eq!((alarm, s.judge(now)), (Alarm::Judge, vec![a]));
}

/// 6.2 step 4: "if no reordering has been observed, then one way the sender can enter fast recovery
/// is when the number of SACKed segments matches or exceeds DupThresh".
#[test]
fn three_later_packets_replace_the_window_without_reordering() {
    let mut s = measured();
    let tsns: Vec<u32> = (0..4).map(|i| s.send(at(200 + i), 0)).collect();
    assert!(s.sack(at(302), &tsns[1..3], &[]).is_empty(), "two packets");
    assert_eq!(s.sack(at(303), &tsns[3..], &[]), tsns[..1]);
}

/// Chunks that share a packet count as one of the three.
#[test]
fn chunks_of_one_packet_count_once() {
    let mut p = Path::new();
    for tsn in 5..9 {
        p.count(Sent { at: at(200), tsn: Tsn(tsn) }, 300, MTU);
    }
    let first = Sent { at: at(200), tsn: Tsn(4) };
    let path = PathTimes { srtt: Some(MS(100)), ..PathTimes::default() };
    p.min_rtt.add(at(200), MS(100));
    assert_eq!(p.reo_wnd(first, &path), MS(25));
    for tsn in [20, 30] {
        p.count(Sent { at: at(200), tsn: Tsn(tsn) }, 300, MTU);
    }
    assert_eq!(p.reo_wnd(first, &path), Duration::ZERO);
}

/// 6.2 step 4: "if some reordering has been observed, then RACK does not trigger fast recovery
/// based on DupThresh", and step 3: a "never-retransmitted segment that's below RACK.fack".
#[test]
fn after_reordering_three_packets_are_no_evidence() {
    let mut s = measured();
    let (a, b) = (s.send(at(200), 0), s.send(at(201), 0));
    assert!(s.sack(at(301), &[b], &[]).is_empty());
    assert!(s.sack(at(302), &[a], &[]).is_empty());
    let tsns: Vec<u32> = (0..5).map(|i| s.send(at(400 + i), 0)).collect();
    assert!(s.sack(at(504), &tsns[1..], &[]).is_empty());
    assert_eq!(s.deadline(), Some(at(400 + 100 + 25)));
}

/// A duplicate of a chunk that was found lost shows that its original was late.
#[test]
fn a_spurious_retransmission_shows_reordering() {
    let mut s = measured();
    let tsns: Vec<u32> = (0..4).map(|i| s.send(at(200 + i), 0)).collect();
    assert_eq!(s.sack(at(303), &tsns[1..], &[]), tsns[..1]);
    assert!(s.sack(at(350), &[], &tsns[..1]).is_empty());
    let tsns: Vec<u32> = (0..5).map(|i| s.send(at(400 + i), 0)).collect();
    assert!(s.sack(at(504), &tsns[1..], &[]).is_empty());
}

/// The acknowledgement of a retransmission that arrives sooner than in a round-trip time is for the
/// original: it was late. That is known before the duplicate is reported.
#[test]
fn an_early_acknowledgement_of_a_retransmission_shows_reordering() {
    for (ms, reordered) in [(320, true), (403, false)] {
        let mut s = measured();
        let tsns: Vec<u32> = (0..4).map(|i| s.send(at(200 + i), 0)).collect();
        assert_eq!(s.sack(at(303), &tsns[1..], &[]), tsns[..1]);
        s.send_as(at(303), 0, tsns[0], 2, false);
        assert!(s.sack(at(ms), &tsns[..1], &[]).is_empty());
        let tsns: Vec<u32> = (0..5).map(|i| s.send(at(500 + i), 0)).collect();
        assert_eq!(s.sack(at(604), &tsns[1..], &[]).is_empty(), reordered);
    }
}

/// 6.2 step 4: "when no reordering has been observed, the RACK.reo_wnd is set to 0 both upon
/// entering and during fast recovery or RTO recovery."
#[test]
fn in_recovery_the_window_is_zero() {
    for recovering in [Recovering::Loss, Recovering::Timeout] {
        let mut s = measured();
        let (a, b) = (s.send(at(200), 0), s.send(at(201), 0));
        s.recovering = recovering;
        assert_eq!(s.sack(at(301), &[b], &[]), [a]);
    }
}

/// Paths have different delays: a chunk that was sent later on another path is no evidence.
#[test]
fn another_path_is_no_evidence() {
    let mut s = measured();
    s.send(at(200), 0);
    let others: Vec<u32> = (0..5).map(|i| s.send(at(201 + i), 1)).collect();
    assert!(s.sack(at(210), &others, &[]).is_empty());
    // The PTO of path 0, where one packet is in flight: 7.2, "PTO += TLP.max_ack_delay".
    assert_eq!(s.deadline(), Some(at(200 + 2 * SRTT + 200)));
    assert!(s.judge(at(599)).is_empty());
}

/// 6.2 step 2: "ignore a segment as invalid if any of its sequence range has been retransmitted
/// before and if [...] The segment was last retransmitted less than RACK.min_rtt ago."
#[test]
fn an_early_acknowledgement_of_a_retransmission_is_no_evidence() {
    for (after, lost) in [(99, false), (100, true)] {
        let mut s = measured();
        let a = s.send(at(200), 0);
        let b = s.send(at(299), 0);
        s.flight[0].remove(0);
        s.send_as(at(300), 0, a, 2, false);
        s.recovering = Recovering::Loss;
        assert_eq!(s.sack(at(300 + after), &[a], &[]), if lost { vec![b] } else { vec![] });
    }
}

/// 6.2 step 4: "after N round trips in which a DSACK is received, the RACK.reo_wnd becomes (N+1) *
/// min_RTT / 4, with an upper-bound of SRTT", and "resets RACK.reo_wnd to its starting value" after
/// 16 recoveries.
#[test]
fn duplicates_widen_the_window_once_a_round_trip() {
    let mut s = measured();
    let mut p = Path::new();
    p.min_rtt.add(at(0), MS(SRTT));
    p.reordering_seen = true;
    let window = |p: &Path, s: &Sender| {
        p.reo_wnd(Sent { at: at(0), tsn: Tsn(1) }, &s.times(at(0), 0)).as_millis()
    };
    for n in 1..=5u32 {
        p.mark(Tsn(n));
        let duplicates = [Tsn(n)];
        let mut report = |cumulative| {
            let view = SackView {
                duplicates: &duplicates,
                cumulative: Tsn(cumulative),
                ..SackView::default()
            };
            s.next = cumulative + 10;
            p.adapt(&view, &s.times(at(0), 0));
        };
        report(n * 100);
        // The same round trip: SND.UNA is below RACK.dsack_round.
        report(n * 100 + 1);
        assert_eq!(window(&p, &s), u128::from((25 * (n + 1)).min(100)));
    }
    // A TSN that was never found lost shows no spurious retransmission.
    let view = SackView { duplicates: &[Tsn(77)], cumulative: Tsn(9999), ..SackView::default() };
    p.adapt(&view, &s.times(at(0), 0));
    assert_eq!(p.reo_wnd_mult, 6);
    let view = SackView { cumulative: Tsn(9999), ..SackView::default() };
    for recovery in 1..=16 {
        assert_eq!(p.reo_wnd_mult, 6, "recovery {recovery}");
        s.recovering = Recovering::Loss;
        p.adapt(&view, &s.times(at(0), 0));
        s.recovering = Recovering::No;
        p.adapt(&view, &s.times(at(0), 0));
    }
    assert_eq!(p.reo_wnd_mult, 1);
}

/// 6.3: "RACK only marks the segment as lost if the time elapsed since the segment was transmitted
/// is at least the sum of the recent RTT and the reordering window."
#[test]
fn a_timeout_spares_what_was_sent_just_before() {
    let s = measured();
    let chunk = |ms| SentChunk { tsn: Tsn(9), sent: at(ms), ..SentChunk::default() };
    let times = s.times(at(1000), 0);
    assert!(s.rack.survives_timeout(&chunk(876), &times));
    assert!(!s.rack.survives_timeout(&chunk(875), &times));
}

/// 7.2, TLP_calc_PTO: 2 * SRTT, TLP.max_ack_delay more for a single packet, at most until T3-rtx.
#[test]
fn the_probe_timeout() {
    let mut s = measured();
    s.send(at(200), 0);
    assert_eq!(s.deadline(), Some(at(200 + 2 * SRTT + 200)));
    s.send(at(200), 0);
    assert_eq!(s.deadline(), Some(at(200 + 2 * SRTT)));
    let early = PathTimes { t3: Some(at(330)), ..s.times(at(201), 0) };
    s.rack.on_sent(&SentChunk { tsn: Tsn(6), sent: at(201), ..SentChunk::default() }, &early);
    assert_eq!(s.deadline(), Some(at(330)), "Now() + PTO > TCP_RTO_expiration()");
    let first = PathTimes { srtt: None, t3: None, ..s.times(at(201), 0) };
    s.rack.on_sent(&SentChunk { tsn: Tsn(7), sent: at(201), ..SentChunk::default() }, &first);
    assert_eq!(s.deadline(), Some(at(1201)), "PTO = 1 sec");
}

/// 7.3: "the sender MUST check whether both of the following conditions are met".
#[test]
fn one_probe_at_a_time_and_a_measurement_between_two() {
    let mut s = measured();
    s.send(at(200), 0);
    let last = s.send(at(200), 0);
    let (now, alarm) = s.expire();
    assert_eq!((now, alarm), (at(400), Alarm::Probe));
    s.flight[0].pop();
    s.send_as(now, 0, last, 2, true);
    assert_eq!(s.deadline(), None, "T3-rtx, not the PTO timer, runs after a probe");
    s.send(at(410), 0);
    assert_eq!(s.expire().1, Alarm::NoProbe, "a probe is in flight");
}

/// 7.4.2: "Repaired the single loss" and "Case 1" (a duplicate report).
#[test]
fn a_loss_that_the_probe_repaired_is_noticed() {
    for (duplicate, repaired) in [(false, true), (true, false)] {
        let mut s = measured();
        let last = s.send(at(200), 0);
        let (now, alarm) = s.expire();
        assert_eq!(alarm, Alarm::Probe);
        s.flight[0].pop();
        s.send_as(now, 0, last, 2, true);
        let duplicates: &[u32] = if duplicate { &[last] } else { &[] };
        assert!(s.sack(now + MS(SRTT), &[last], duplicates).is_empty());
        assert_eq!(s.rack.repaired(PathId(0)), None, "not yet beyond TLP.end_seq");
        let next = s.send(at(900), 0);
        s.sack(at(1000), &[next], &[]);
        assert_eq!(s.rack.repaired(PathId(0)), repaired.then_some(Tsn(last)));
        assert_eq!(s.rack.repaired(PathId(0)), None, "once");
    }
}

proptest! {
    /// 6.2 step 5, for any order of acknowledgements and any delays: a chunk that is found lost
    /// was sent at least a round trip before, and before a delivered chunk of its path; and
    /// whenever a chunk that was sent later on the path has been delivered, a deadline is set.
    #[test]
    fn lost_chunks_are_old_enough(
        steps in prop::collection::vec((0u64..40, 0usize..2, any::<prop::sample::Index>(), 0u8..4), 1..200),
    ) {
        let mut s = Sender::new();
        let mut now = at(0);
        let mut newest: [Option<(Time, u32)>; 2] = [None, None];
        // The shortest age at which any chunk was acknowledged.
        let mut least = None;
        for (ms, path, which, what) in steps {
            now = now + MS(ms);
            let before = s.flight.clone();
            let lost = match what {
                0 | 1 => { s.send(now, path); vec![] }
                _ if s.flight[path].is_empty() => vec![],
                2 => {
                    let c = *which.get(&s.flight[path]);
                    newest[path] = newest[path].max(Some((c.sent, c.tsn.0)));
                    let age = now.since(c.sent);
                    least = Some(least.map_or(age, |l: Duration| l.min(age)));
                    s.sack(now, &[c.tsn.0], &[])
                }
                _ => s.judge(now),
            };
            for tsn in lost {
                let (path, c) = before.iter().enumerate().find_map(|(path, flight)| {
                    Some((path, *flight.iter().find(|c| c.tsn.0 == tsn)?))
                }).expect("in flight");
                prop_assert!(newest[path].is_some_and(|n| n > (c.sent, tsn)));
                prop_assert!(least.is_some_and(|least| now.since(c.sent) >= least));
            }
            for (path, (flight, newest)) in s.flight.iter().zip(newest).enumerate() {
                if let (Some(c), Some(n)) = (flight.first(), newest)
                    && n > (c.sent, c.tsn.0)
                {
                    prop_assert!(s.rack.deadline(PathId(path as u8)).is_some());
                }
            }
        }
    }
}
