//! The sender of a TCP flow that always has data: loss recovery by SACK (RFC 6675), which finds
//! retransmissions lost as RFC 8985 does, and the retransmission timer of RFC 6298.

use std::collections::VecDeque;
use std::time::Duration;

use polypath_proto::Time;

use super::receiver::Ack;
use super::window::{Congestion, TcpCongestion};

/// RFC 6675 2: DupThresh.
const DUP_THRESH: u64 = 3;
/// RFC 6298 2.1.
const FIRST_RTO: Duration = Duration::from_secs(1);
/// The timeout is at least this much longer than the round trip, as in Linux; RFC 6298 2.4 asks for
/// a second in all. With 200 ms in all, a delayed acknowledgement over a full queue is too late.
const LEAST_MARGIN: Duration = Duration::from_millis(200);
/// RFC 6298 2.5.
const MOST_RTO: Duration = Duration::from_secs(60);

/// A segment that is outstanding.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sent: Time,
    sacked: bool,
    lost: bool,
    /// It was sent again after it was found lost.
    resent: bool,
    /// It was sent more than once: its acknowledgement is no sample (Karn).
    repeated: bool,
}

impl Segment {
    /// Whether it counts as being in the network (RFC 6675 4, SetPipe).
    const fn in_pipe(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }
}

/// What ends a recovery: everything below this number has been acknowledged.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    point: u64,
    /// Fast recovery, in which the window stays.
    fast: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    congestion: Congestion,
    /// The receive window, in segments.
    window: u64,
    /// The oldest segment outstanding.
    first: u64,
    segments: VecDeque<Segment>,
    /// Number of segments in the network.
    pipe: u64,
    /// One above the highest segment that was acknowledged selectively.
    sacked_to: u64,
    /// All segments below have been examined for losses.
    judged: u64,
    /// Segments below are not waiting for retransmission.
    searched: u64,
    recovery: Option<Recovery>,
    /// Retransmissions under way, in the order in which they were sent.
    resent: VecDeque<(u64, Time)>,
    /// When the segment was sent that was sent last of those delivered (RFC 8985 5.2).
    delivered: Time,
    least_rtt: Duration,
    /// A segment may leave whatever the window is (RFC 6675 5, 4.3).
    at_once: bool,
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    timer: Option<Time>,
    /// Timeouts without an acknowledgement of new data in between.
    in_a_row: u32,
    pub(super) sent: u64,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
}

impl Sender {
    pub(super) fn new(kind: TcpCongestion, window: u64) -> Self {
        Self {
            congestion: Congestion::new(kind),
            window,
            first: 0,
            segments: VecDeque::new(),
            pipe: 0,
            sacked_to: 0,
            judged: 0,
            searched: 0,
            recovery: None,
            resent: VecDeque::new(),
            delivered: Time::ZERO,
            least_rtt: Duration::MAX,
            at_once: false,
            srtt: None,
            rttvar: Duration::ZERO,
            rto: FIRST_RTO,
            timer: None,
            in_a_row: 0,
            sent: 0,
            retransmissions: 0,
            timeouts: 0,
        }
    }

    /// When the retransmission timer expires.
    pub(super) const fn due(&self) -> Option<Time> {
        self.timer
    }

    pub(super) const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The next new segment.
    fn end(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// The next segment to send, if the windows have room.
    pub(super) fn next(&mut self, now: Time) -> Option<u64> {
        let room = (self.pipe as f64) + 1.0 <= self.congestion.cwnd.max(1.0);
        if !room && !self.at_once {
            return None;
        }
        let number = match self.next_lost() {
            Some(number) => {
                let segment = &mut self.segments[(number - self.first) as usize];
                (segment.resent, segment.repeated, segment.sent) = (true, true, now);
                self.retransmissions += 1;
                self.resent.push_back((number, now));
                number
            }
            None if (self.segments.len() as u64) < self.window && room => {
                self.segments.push_back(Segment {
                    sent: now,
                    sacked: false,
                    lost: false,
                    resent: false,
                    repeated: false,
                });
                self.end() - 1
            }
            None => return None,
        };
        self.at_once = false;
        self.pipe += 1;
        self.sent += 1;
        // RFC 6298 5.1.
        self.timer.get_or_insert(now + self.rto);
        Some(number)
    }

    /// The first segment that is lost and has not been sent again.
    fn next_lost(&mut self) -> Option<u64> {
        let from = self.searched.max(self.first);
        for number in from..self.end() {
            let segment = &self.segments[(number - self.first) as usize];
            if segment.lost && !segment.resent && !segment.sacked {
                self.searched = number;
                return Some(number);
            }
            if number >= self.judged {
                break;
            }
        }
        self.searched = self.judged.max(from);
        None
    }

    pub(super) fn acknowledge(&mut self, now: Time, ack: &Ack) {
        let mut latest: Option<Time> = None;
        let mut acked = 0;
        let (least_rtt, mut delivered) = (self.least_rtt, self.delivered);
        let mut deliver = |segment: &Segment| {
            // RFC 8985 6.2 step 2: of a segment that was sent twice, the first may have arrived.
            if !segment.repeated {
                latest = latest.max(Some(segment.sent));
            }
            if !segment.repeated || now.since(segment.sent) >= least_rtt {
                delivered = delivered.max(segment.sent);
            }
        };
        while self.first < ack.next
            && let Some(segment) = self.segments.pop_front()
        {
            self.first += 1;
            acked += 1;
            self.pipe -= u64::from(segment.in_pipe());
            if !segment.sacked {
                deliver(&segment);
            }
        }
        let mut any = false;
        for &(from, to) in ack.blocks.iter().flatten() {
            for number in from.max(self.first)..to.min(self.end()) {
                let segment = &mut self.segments[(number - self.first) as usize];
                if segment.sacked {
                    continue;
                }
                self.pipe -= u64::from(segment.in_pipe());
                segment.sacked = true;
                any = true;
                self.sacked_to = self.sacked_to.max(number + 1);
                deliver(segment);
            }
        }
        self.delivered = delivered;
        if let Some(sent) = latest {
            self.measure(now.since(sent));
        }
        if acked > 0 {
            self.in_a_row = 0;
            // RFC 6298 5.3.
            self.timer = (!self.segments.is_empty()).then_some(now + self.rto);
            if self.recovery.is_some_and(|recovery| self.first >= recovery.point) {
                self.recovery = None;
            }
            if !self.recovery.is_some_and(|recovery| recovery.fast) {
                self.congestion.grow(now, acked, self.srtt.unwrap_or(self.rto));
            }
        }
        self.judge_retransmissions();
        if any && self.judge() && self.recovery.is_none() {
            // RFC 6675 5: "(4) Invoke fast retransmit and enter loss recovery".
            self.recovery = Some(Recovery { point: self.end(), fast: true });
            self.congestion.reduce(self.segments.len() as u64);
            self.at_once = true;
        }
    }

    /// Finds segments lost above which three have arrived (RFC 6675 4, IsLost); true if there are
    /// new ones.
    fn judge(&mut self) -> bool {
        let mut above = 0;
        let mut place = self.sacked_to.max(self.first);
        while above < DUP_THRESH && place > self.first.max(self.judged) {
            place -= 1;
            above += u64::from(self.segments[(place - self.first) as usize].sacked);
        }
        if above < DUP_THRESH {
            return false;
        }
        let mut any = false;
        for number in self.judged.max(self.first)..place {
            let segment = &mut self.segments[(number - self.first) as usize];
            if !segment.sacked && !segment.lost {
                self.pipe -= 1;
                segment.lost = true;
                any = true;
            }
        }
        self.judged = place;
        any
    }

    /// Finds retransmissions lost: a segment sent a quarter of a round trip later has arrived
    /// (RFC 8985 6.2 steps 4 and 5). The window was reduced for the first loss.
    fn judge_retransmissions(&mut self) {
        let quarter = self.least_rtt.min(MOST_RTO) / 4;
        while let Some(&(number, sent)) = self.resent.front()
            && sent + quarter < self.delivered
        {
            self.resent.pop_front();
            let Some(place) = number.checked_sub(self.first) else { continue };
            let segment = &mut self.segments[place as usize];
            if segment.resent && !segment.sacked && segment.sent == sent {
                segment.resent = false;
                self.pipe -= 1;
                self.searched = self.searched.min(number);
            }
        }
    }

    /// The retransmission timer expires, if it is time (RFC 6298 5.4 to 5.6).
    pub(super) fn expire(&mut self, now: Time) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timeouts += 1;
        self.congestion.collapse(self.segments.len() as u64, self.in_a_row > 0);
        self.in_a_row += 1;
        for segment in self.segments.iter_mut().filter(|segment| !segment.sacked) {
            (segment.lost, segment.resent) = (true, false);
        }
        self.pipe = 0;
        self.resent.clear();
        self.judged = self.end();
        self.searched = self.first;
        // RFC 6582 4: no fast retransmit before all of them have been acknowledged.
        self.recovery = Some(Recovery { point: self.end(), fast: false });
        self.rto = (2 * self.rto).min(MOST_RTO);
        self.timer = None;
        self.at_once = true;
    }

    /// RFC 6298 2.2, 2.3.
    fn measure(&mut self, rtt: Duration) {
        match self.srtt {
            None => (self.srtt, self.rttvar) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                self.rttvar = (3 * self.rttvar + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((7 * srtt + rtt) / 8);
            }
        }
        self.least_rtt = self.least_rtt.min(rtt);
        let rto = self.srtt.unwrap_or_default() + (4 * self.rttvar).max(LEAST_MARGIN);
        self.rto = rto.min(MOST_RTO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn burst(sender: &mut Sender, now: Time) -> Vec<u64> {
        std::iter::from_fn(|| sender.next(now)).collect()
    }

    fn ack(next: u64, block: Option<(u64, u64)>) -> Ack {
        Ack { next, blocks: [block, None, None] }
    }

    #[test]
    fn ten_segments_at_first_and_as_many_as_the_window_holds() {
        let mut sender = Sender::new(TcpCongestion::NewReno, 11);
        assert_eq!(burst(&mut sender, at(0)), (0..10).collect::<Vec<_>>());
        sender.acknowledge(at(50), &ack(2, None));
        assert_eq!(burst(&mut sender, at(50)), [10, 11, 12]);
        assert_eq!(sender.srtt(), Some(Duration::from_millis(50)));
    }

    /// RFC 6675 5: the third segment above a hole starts recovery, with half of the flight; one
    /// retransmission leaves at once, others as the pipe drains.
    #[test]
    fn three_segments_above_a_hole_start_recovery() {
        let mut sender = Sender::new(TcpCongestion::NewReno, 1000);
        burst(&mut sender, at(0));
        for end in [2, 3] {
            sender.acknowledge(at(50), &ack(0, Some((1, end))));
        }
        assert!(sender.recovery.is_none());
        sender.acknowledge(at(50), &ack(0, Some((1, 4))));
        assert!(sender.recovery.is_some_and(|recovery| recovery.fast));
        let flight = sender.segments.len() as f64;
        assert_eq!(sender.congestion.cwnd, flight / 2.0);
        assert_eq!(burst(&mut sender, at(50)), [0]);
        sender.acknowledge(at(100), &ack(10, None));
        assert!(sender.recovery.is_none());
        assert_eq!((sender.retransmissions, sender.timeouts), (1, 0));
    }

    /// The retransmission is lost too: segments that were sent after it arrive.
    #[test]
    fn a_lost_retransmission_is_found() {
        let mut sender = Sender::new(TcpCongestion::NewReno, 1000);
        burst(&mut sender, at(0));
        sender.acknowledge(at(50), &ack(0, Some((1, 4))));
        assert_eq!(burst(&mut sender, at(50)), [0]);
        sender.acknowledge(at(51), &ack(0, Some((1, 10))));
        let new = burst(&mut sender, at(70));
        assert_eq!(new, [10, 11, 12, 13]);
        sender.acknowledge(at(120), &ack(0, Some((1, 11))));
        assert_eq!(burst(&mut sender, at(120))[0], 0);
        sender.acknowledge(at(170), &ack(14, None));
        assert!(sender.recovery.is_none());
        assert_eq!((sender.retransmissions, sender.timeouts), (2, 0));
    }

    #[test]
    fn a_timeout_begins_again_with_one_segment() {
        let mut sender = Sender::new(TcpCongestion::Cubic, 1000);
        burst(&mut sender, at(0));
        assert_eq!(sender.due(), Some(at(1000)));
        sender.expire(at(999));
        assert_eq!(sender.timeouts, 0);
        sender.expire(at(1000));
        assert_eq!(burst(&mut sender, at(1000)), [0]);
        assert_eq!(sender.due(), Some(at(3000)), "RFC 6298 5.5: back off");
        sender.acknowledge(at(1050), &ack(1, None));
        assert_eq!(burst(&mut sender, at(1050)), [1, 2]);
        // Karn: no sample, so the timer keeps its length.
        assert_eq!((sender.srtt(), sender.due()), (None, Some(at(3050))));
        sender.acknowledge(at(1100), &ack(10, None));
        assert!(sender.recovery.is_none());
        assert!(burst(&mut sender, at(1100)).starts_with(&[10]));
    }
}
