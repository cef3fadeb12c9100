//! Packetization layer path MTU discovery of one path (RFC 9260 7.3, RFC 8899).
//!
//! All sizes are those of SCTP packets, multiples of four. A probe is two packets: one of the
//! probed size, and a small one that any path delivers. A probe counts against the size only if the
//! small packet is answered and the large one is not, and the size is too large only after several
//! such probes in a row. If neither packet is answered, the path is down; if the large one is lost
//! by chance, the next probe shows that. So loss is hardly ever mistaken for a black hole; if it
//! is, the failed size is probed once more when the search ends.
//!
//! ```text
//!            base fails                    nothing larger is left
//!   Error <------------- Base, Search ------------------------------> SearchComplete
//!     |                   ^   ^    ^                                     |      |
//!     +-------------------+   |    +-------- PMTU_RAISE_TIMER -----------+      |
//!         base answers        |                                                 |
//!                             +--- timeouts in a row, and probes of the size    |
//!                                  in use fail (black hole) --------------------+
//! ```

use std::time::Duration;

use crate::time::Time;

/// Unanswered probes of a size that make it too large (RFC 8899 5.1.2, MAX_PROBES).
const MAX_PROBES: u32 = 3;

/// The same for the size in use, which has been answered before.
const MAX_VERIFICATIONS: u32 = 5;

/// BASE_PLPMTU (RFC 8899 5.1.2) as an IP packet, which nearly every path delivers. IPv6 links carry
/// 1280.
const BASE_V4: usize = 1200;
const BASE_V6: usize = 1280;

/// MIN_PLPMTU as an IP packet: the lower bound of `path_mtu`. In IPv4, fragments deliver larger
/// packets.
const LEAST: usize = 576;

/// Time after which a larger size is tried again (RFC 8899 5.1.1, PMTU_RAISE_TIMER: 600 s).
const RAISE: Duration = Duration::from_secs(600);

/// Least time to wait for an answer (RFC 8899 5.1.1, PROBE_TIMER: "MUST NOT be smaller than 1
/// second").
const PROBE: Duration = Duration::from_secs(1);

/// Longest pause between probes on a path that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The search ends when sizes differ by less than this.
const STEP: usize = 8;

/// Expirations of T3-rtx after which the size in use is verified; an acknowledged chunk that needs
/// a packet larger than the base resets the count.
const TIMEOUTS: u32 = 2;

/// State of the discovery (RFC 8899 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathMtuState {
    /// Discovery is off: the size is the configured one.
    #[default]
    Disabled,
    /// The base size is in use; nothing has been confirmed yet.
    Base,
    /// Larger sizes are being tried.
    Search,
    /// The search has ended: the largest size, as far as is known, is in use.
    SearchComplete,
    /// Not even the base size is delivered: packets are small, and may be fragmented.
    Error,
}

/// MTU of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathMtu {
    /// Largest IP packet that is sent, in bytes, headers included.
    pub mtu: u32,
    /// State of the discovery.
    pub state: PathMtuState,
}

/// An outstanding probe of two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    size: usize,
    sent: Time,
    deadline: Time,
    small_answered: bool,
}

#[derive(Debug)]
pub(crate) struct MtuSearch {
    state: PathMtuState,
    base: usize,
    least: usize,
    /// The largest size that may ever be used.
    max: usize,
    /// The size in use: the largest that has been answered, or the base.
    size: usize,
    /// The size in use has been answered.
    confirmed: bool,
    /// The least size known to be too large.
    too_large: usize,
    probe: Option<Probe>,
    /// When the next probe is sent.
    next: Option<Time>,
    /// When larger sizes are tried again.
    raise: Option<Time>,
    /// Size of the next probe, if the search would choose another one.
    wanted: Option<usize>,
    /// Probes of this size that were lost while the small packets were answered.
    failed: u32,
    /// Consecutive probes of which neither packet was answered.
    silent: u32,
    /// The size in use is being verified.
    verifies: bool,
    timeouts: u32,
    /// The failed size that was tried again at the end.
    doubted: Option<usize>,
}

impl MtuSearch {
    /// `max` is the configured size as an SCTP packet; `headers` are the bytes that IP and UDP add
    /// to it.
    pub(crate) fn new(max: usize, headers: usize, v6: bool) -> Self {
        let packet = |ip: usize| (ip - headers) / 4 * 4;
        let base = packet(if v6 { BASE_V6 } else { BASE_V4 }).min(max);
        Self {
            state: PathMtuState::Base,
            base,
            least: packet(LEAST).min(base),
            max,
            size: base,
            confirmed: false,
            too_large: max + 4,
            probe: None,
            next: None,
            raise: None,
            wanted: None,
            failed: 0,
            silent: 0,
            verifies: false,
            timeouts: 0,
            doubted: None,
        }
    }

    /// The size in use.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    pub(crate) const fn state(&self) -> PathMtuState {
        self.state
    }

    /// The path has been confirmed: starts the search, or resumes it.
    pub(crate) fn start(&mut self, now: Time) {
        let idle = self.next.is_none() && !self.confirmed;
        if self.probe.is_none() && (idle || self.silent > 0) {
            self.silent = 0;
            self.next = Some(now);
        }
    }

    /// Stops the search, and drops the outstanding probe.
    pub(crate) const fn stop(&mut self) {
        self.confirmed = false;
        self.probe = None;
        self.next = None;
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.probe.map(|p| p.deadline).or(self.next)
    }

    /// The timer has expired: returns the size of the probe to send now, if there is one.
    pub(crate) fn expire(&mut self, now: Time, rto: Duration) -> Option<usize> {
        if let Some(probe) = self.probe.filter(|p| p.deadline <= now) {
            self.probe = None;
            self.lost(now, probe, rto);
        }
        if self.probe.is_some() || self.next.is_none_or(|next| next > now) {
            return None;
        }
        if self.state == PathMtuState::SearchComplete && !self.verifies {
            // RFC 8899 5.2: PMTU_RAISE_TIMER.
            self.too_large = self.max + 4;
            (self.doubted, self.raise) = (None, None);
            self.state = PathMtuState::Search;
        }
        let Some(size) = self.candidate() else {
            self.complete(now);
            return None;
        };
        if size == self.too_large {
            self.doubted = Some(size);
        }
        self.next = None;
        let deadline = now + rto.max(PROBE);
        self.probe = Some(Probe { size, sent: now, deadline, small_answered: false });
        Some(size)
    }

    /// The size to try next.
    fn candidate(&self) -> Option<usize> {
        if self.verifies {
            return Some(self.size);
        }
        if self.state == PathMtuState::Error {
            return Some(self.base);
        }
        if let Some(wanted) = self.wanted.filter(|w| *w > self.size && *w < self.too_large) {
            return Some(wanted);
        }
        if self.too_large > self.max && self.max > self.size {
            return Some(self.max);
        }
        let middle = usize::midpoint(self.size, self.too_large) / 4 * 4;
        if self.too_large - self.size > STEP && middle > self.size {
            return Some(middle);
        }
        if !self.confirmed {
            return Some(self.base);
        }
        let again = self.too_large <= self.max && self.doubted != Some(self.too_large);
        again.then_some(self.too_large)
    }

    /// Whether an answer with this `sent` belongs to the outstanding probe.
    pub(crate) fn awaits(&self, sent: Time) -> bool {
        self.probe.is_some_and(|p| p.sent == sent)
    }

    /// A packet that carried `sent` was answered; `small` if it was the small one. True if the size
    /// in use has changed.
    pub(crate) fn answered(&mut self, now: Time, sent: Time, small: bool) -> bool {
        let Some(probe) = self.probe.as_mut().filter(|p| p.sent == sent) else { return false };
        self.silent = 0;
        if small {
            probe.small_answered = true;
            // The large one was sent at the same time.
            probe.deadline = probe.deadline.min(now.max(probe.sent + PROBE));
            return false;
        }
        let (size, old) = (probe.size, self.size);
        (self.probe, self.failed, self.timeouts) = (None, 0, 0);
        (self.verifies, self.confirmed, self.wanted) = (false, true, None);
        self.size = size;
        if size >= self.too_large {
            self.too_large = self.max + 4;
        }
        if self.candidate().is_some() {
            self.state = PathMtuState::Search;
            self.next = Some(now);
        } else {
            self.complete(now);
        }
        size != old
    }

    fn lost(&mut self, now: Time, probe: Probe, rto: Duration) {
        if !probe.small_answered {
            // The path itself does not answer.
            self.silent += 1;
            let pause = rto.max(PROBE) * (1 << self.silent.min(6));
            self.next = Some(now + pause.min(LONGEST_PAUSE));
            return;
        }
        self.next = Some(now);
        self.failed += 1;
        let most = if self.verifies { MAX_VERIFICATIONS } else { MAX_PROBES };
        if self.failed >= most {
            self.failed = 0;
            self.fails(now, probe.size);
        }
    }

    /// Marks this size too large.
    fn fails(&mut self, now: Time, size: usize) {
        self.too_large = self.too_large.min(size);
        self.wanted = None;
        if size > self.size {
            return;
        }
        self.verifies = false;
        self.timeouts = 0;
        self.confirmed = false;
        if size > self.base {
            // RFC 8899 5.2: a black hole; restart from the base.
            (self.state, self.size) = (PathMtuState::Base, self.base);
        } else {
            (self.state, self.size) = (PathMtuState::Error, self.least);
            self.too_large = self.max + 4;
            self.next = Some(now + LONGEST_PAUSE);
        }
    }

    fn complete(&mut self, now: Time) {
        self.state = PathMtuState::SearchComplete;
        self.wanted = None;
        let larger = self.size < self.max;
        self.next = larger.then(|| *self.raise.get_or_insert(now + RAISE));
    }

    /// T3-rtx has expired; after several expirations in a row, the size in use is verified.
    pub(crate) fn timed_out(&mut self, now: Time) {
        self.timeouts += 1;
        if self.timeouts >= TIMEOUTS && !self.verifies && self.state != PathMtuState::Error {
            self.verifies = true;
            self.failed = 0;
            self.probe = None;
            self.next = Some(now);
        }
    }

    /// A chunk was acknowledged that needs a packet of this size.
    pub(crate) const fn acknowledged(&mut self, packet: usize) {
        if packet > self.base {
            self.timeouts = 0;
        }
    }

    /// The network reports that it carries no more than `packet` bytes, in a message that quotes a
    /// packet of this side (RFC 8899 4.6). True if the size in use has changed.
    pub(crate) fn too_big(&mut self, now: Time, packet: usize) -> bool {
        let packet = packet / 4 * 4;
        if packet < self.base || self.state == PathMtuState::Error {
            // RFC 8899 4.6.2: ignore it; probes will find the size.
            return false;
        }
        let tried = self.probe.map_or(self.size, |p| p.size.max(self.size));
        if packet >= tried {
            return false;
        }
        self.too_large = packet + 4;
        self.wanted = Some(packet);
        (self.probe, self.failed, self.verifies) = (None, 0, false);
        self.next = Some(now);
        if packet >= self.size {
            return false;
        }
        (self.state, self.size, self.confirmed) = (PathMtuState::Base, self.base, false);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_secs(1);

    /// Runs the search for `seconds` over a path that carries `carries` bytes. `loses` decides
    /// whether a packet is lost; its argument is true for the small packet.
    fn run(
        search: &mut MtuSearch,
        from: u64,
        seconds: u64,
        mut carries: impl FnMut(u64) -> usize,
        mut loses: impl FnMut(bool) -> bool,
    ) -> u32 {
        let end = Time::from_secs(from + seconds);
        let mut probes = 0;
        let mut now = Time::from_secs(from);
        while let Some(at) = search.next_timeout().filter(|t| *t <= end) {
            now = now.max(at);
            let Some(size) = search.expire(now, RTO) else { continue };
            probes += 1;
            let path = carries(now.as_nanos() / 1_000_000_000);
            if path > 0 && !loses(true) {
                search.answered(now + Duration::from_millis(50), now, true);
            }
            if size <= path && !loses(false) {
                search.answered(now + Duration::from_millis(50), now, false);
            }
        }
        probes
    }

    fn search() -> MtuSearch {
        let mut search = MtuSearch::new(1480, 20, false);
        assert_eq!((search.size(), search.state()), (1180, PathMtuState::Base));
        search.start(Time::ZERO);
        search
    }

    #[test]
    fn the_largest_size_is_found_with_one_probe() {
        let mut s = search();
        assert_eq!(run(&mut s, 0, 1000, |_| 1480, |_| false), 1);
        assert_eq!((s.size(), s.state()), (1480, PathMtuState::SearchComplete));
        assert_eq!(s.next_timeout(), None);
    }

    #[test]
    fn any_size_is_found_and_tried_again_later() {
        for path in [1180, 1184, 1228, 1260, 1300, 1400, 1452, 1476] {
            let mut s = search();
            run(&mut s, 0, 60, |_| path, |_| false);
            assert_eq!(s.state(), PathMtuState::SearchComplete, "{path}");
            assert!(s.size() <= path && s.size() + STEP > path, "{} for {path}", s.size());
            // The path becomes wider: PMTU_RAISE_TIMER.
            run(&mut s, 60, 700, |_| 1480, |_| false);
            assert_eq!(s.size(), 1480);
        }
    }

    #[test]
    fn what_loses_everything_or_much_is_no_black_hole() {
        let mut s = search();
        run(&mut s, 0, 10, |_| 1480, |_| false);
        for t in 0..5 {
            s.timed_out(Time::from_secs(10 + t));
        }
        // The path is down for a while.
        let probes = run(&mut s, 10, 600, |t| if t < 500 { 0 } else { 1480 }, |_| false);
        assert!(probes < 30, "{probes} probes");
        assert_eq!((s.size(), s.state()), (1480, PathMtuState::SearchComplete));
        // 30 % of the packets and of the answers are lost: the size hardly ever drops, and soon
        // recovers.
        let mut dice = crate::Rng::new(&crate::Seed::from_u64(4));
        let mut shrunk = 0;
        for round in 0..1000 {
            let from = 1000 + round * 100;
            let before = s.size();
            (0..TIMEOUTS).for_each(|_| s.timed_out(Time::from_secs(from)));
            run(&mut s, from, 20, |_| 1480, |_| dice.below(100) < 51);
            shrunk += u32::from(s.size() < before);
            run(&mut s, from + 20, 80, |_| 1480, |_| dice.below(100) < 51);
        }
        assert!(shrunk < 20, "{shrunk} of 1000");
        run(&mut s, 101_000, 2000, |_| 1480, |_| false);
        assert_eq!(s.size(), 1480);
    }

    #[test]
    fn a_black_hole_is_found_and_the_new_size_too() {
        let mut s = search();
        run(&mut s, 0, 10, |_| 1480, |_| false);
        s.timed_out(Time::from_secs(10));
        assert_eq!(s.next_timeout(), None, "one timeout is nothing");
        s.acknowledged(1480);
        s.timed_out(Time::from_secs(20));
        assert_eq!(s.next_timeout(), None, "they were not in a row");
        s.timed_out(Time::from_secs(22));
        run(&mut s, 22, 5, |_| 1260, |_| false);
        assert!(s.size() < 1300, "{}", s.size());
        run(&mut s, 27, 60, |_| 1260, |_| false);
        assert!(s.size() <= 1260 && s.size() + STEP > 1260, "{}", s.size());
        assert_eq!(s.state(), PathMtuState::SearchComplete);
    }

    #[test]
    fn below_the_base_packets_are_small_and_the_base_is_tried_again() {
        let mut s = search();
        run(&mut s, 0, 120, |_| 1000, |_| false);
        assert_eq!((s.size(), s.state()), (556, PathMtuState::Error));
        run(&mut s, 120, 200, |_| 1480, |_| false);
        assert_eq!((s.size(), s.state()), (1480, PathMtuState::SearchComplete));
    }

    #[test]
    fn the_network_may_say_how_large() {
        let mut s = search();
        assert_eq!(s.expire(Time::ZERO, RTO), Some(1480));
        // The probe was too large; the size in use stays.
        assert!(!s.too_big(Time::ZERO, 1300));
        assert_eq!(s.expire(Time::ZERO, RTO), Some(1300));
        assert!(s.answered(Time::from_secs(1), Time::ZERO, false));
        run(&mut s, 1, 5, |_| 1300, |_| false);
        assert_eq!((s.size(), s.state()), (1300, PathMtuState::SearchComplete));
        // Ignored: too small, or nothing new.
        assert!(!s.too_big(Time::from_secs(9), 1000) && !s.too_big(Time::from_secs(9), 1400));
        assert_eq!(s.size(), 1300);
        // The path has become narrower.
        assert!(s.too_big(Time::from_secs(10), 1232));
        assert_eq!((s.size(), s.state()), (1180, PathMtuState::Base));
        assert_eq!(s.expire(Time::from_secs(10), RTO), Some(1232));
    }

    #[test]
    fn old_and_repeated_answers_change_nothing() {
        let mut s = search();
        let sent = Time::ZERO;
        assert_eq!(s.expire(sent, RTO), Some(1480));
        assert!(!s.answered(sent, Time::from_secs(7), false));
        assert!(s.answered(sent, sent, false));
        assert!(!s.answered(sent, sent, false) && !s.answered(sent, sent, true));
    }
}
