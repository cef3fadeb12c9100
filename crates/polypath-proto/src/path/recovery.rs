//! Loss recovery of a path, with a loss detector that watches time: proportional rate reduction
//! (RFC 6937), and what it takes to undo a spurious recovery (RFC 3708, RFC 5682).

use std::collections::{BTreeSet, VecDeque};

use super::view::Window;
use crate::ids::Tsn;
use crate::time::Time;

/// Retransmissions of one recovery that are kept; a recovery with more of them is never undone.
const MOST_RETRANSMITTED: usize = 4096;

/// Recoveries that may still prove spurious. The evidence takes a round trip, in which reordering
/// may begin further ones.
const MOST_UNDECIDED: usize = 4;

/// State of loss recovery.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// When the loss detector is to be called.
    pub(crate) deadline: Option<Time>,
    /// A probe is to be sent, whatever the window (RFC 8985 7.3).
    pub(crate) probe: bool,
    /// Bytes that the current SACK newly acknowledges; 0 between SACKs.
    pub(crate) delivered: u32,
    /// The current SACK shows that T3-rtx has expired spuriously.
    pub(crate) late: bool,
    reduction: Option<Reduction>,
    /// Bytes that may be in flight, in fast recovery.
    limit: Option<u32>,
    /// The recoveries that may prove spurious, the last one at the end.
    undo: VecDeque<Undo>,
    timeout: Option<TimedOut>,
}

/// The variables of RFC 6937 3, in bytes.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    recover_fs: u64,
    delivered: u64,
    out: u64,
}

/// What restores the window if all retransmissions of a recovery turn out to be spurious.
#[derive(Debug)]
struct Undo {
    before: Window,
    /// The chunks that were retransmitted and not yet reported as received twice.
    retransmitted: BTreeSet<u32>,
    /// Whether all chunks that were retransmitted are or were in that set.
    complete: bool,
}

/// T3-rtx has expired, and no chunk that was sent since has been acknowledged.
#[derive(Clone, Copy, Debug)]
struct TimedOut {
    /// When it expired first.
    at: Time,
    /// Whether late acknowledgements may show that it was spurious.
    testable: bool,
}

impl Recovery {
    /// Bytes that may be in flight, if fast recovery limits them.
    pub(crate) const fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// When T3-rtx expired for the first time in the current recovery from timeouts.
    pub(crate) fn timed_out_at(&self) -> Option<Time> {
        self.timeout.map(|t| t.at)
    }

    /// The same, if acknowledgements may show that the timeout was spurious.
    pub(crate) fn testable_timeout(&self) -> Option<Time> {
        self.timeout.filter(|t| t.testable).map(|t| t.at)
    }

    /// The window was cut for a loss; `before` is the window until then, and `outstanding` are the
    /// bytes in flight or lost by then.
    pub(crate) fn begin(&mut self, before: Window, outstanding: u32) {
        let recover_fs = u64::from(outstanding) + u64::from(self.delivered);
        self.reduction = Some(Reduction { recover_fs: recover_fs.max(1), delivered: 0, out: 0 });
        self.undo.retain(|undo| undo.complete && !undo.retransmitted.is_empty());
        self.note_before(before);
    }

    /// Fast recovery is over.
    pub(crate) const fn end(&mut self) {
        self.reduction = None;
        self.limit = None;
    }

    /// T3-rtx has expired; `before` is the window until then. `testable` is false if the path was
    /// in fast recovery, or if the SACKs before were incomplete.
    pub(crate) fn timed_out(&mut self, now: Time, before: Window, testable: bool) {
        self.end();
        self.probe = false;
        if self.timeout.is_none() {
            self.timeout = Some(TimedOut { at: now, testable });
            self.undo.clear();
            self.note_before(before);
        }
    }

    /// Recovery from a timeout is over.
    pub(crate) const fn end_timeout(&mut self) {
        self.timeout = None;
    }

    fn note_before(&mut self, before: Window) {
        if self.undo.len() == MOST_UNDECIDED {
            self.undo.pop_front();
        }
        self.undo.push_back(Undo { before, retransmitted: BTreeSet::new(), complete: true });
    }

    /// A chunk that was lost here is retransmitted, on any path.
    pub(crate) fn retransmitted(&mut self, tsn: Tsn) {
        if let Some(undo) = self.undo.back_mut()
            && !self.probe
        {
            undo.complete &= undo.retransmitted.len() < MOST_RETRANSMITTED;
            if undo.complete {
                undo.retransmitted.insert(tsn.0);
            }
        }
    }

    /// The retransmission of a chunk was unnecessary: its original has arrived. True if that shows
    /// that every retransmission of the last recovery was spurious. An earlier recovery that proves
    /// spurious passes the window from before it to the one that followed.
    pub(crate) fn is_spurious_by(&mut self, tsn: Tsn) -> bool {
        let found = self.undo.iter_mut().position(|undo| undo.retransmitted.remove(&tsn.0));
        let Some(at) = found else { return false };
        let undo = &self.undo[at];
        if !undo.complete || !undo.retransmitted.is_empty() {
            return false;
        }
        let before = undo.before;
        let Some(later) = self.undo.get_mut(at + 1) else { return true };
        later.before = before;
        self.undo.remove(at);
        false
    }

    /// Ends the recovery; returns the window from before it.
    pub(crate) fn undo(&mut self) -> Option<Window> {
        self.end();
        self.timeout = None;
        self.undo.pop_back().map(|undo| undo.before)
    }

    /// The window was cut for another reason than a loss.
    pub(crate) fn clear_undo(&mut self) {
        self.undo.clear();
    }

    /// Bytes were sent on this path.
    pub(super) fn sent(&mut self, bytes: u32) {
        if let Some(r) = &mut self.reduction {
            r.out += u64::from(bytes);
        }
    }

    /// Proportional rate reduction (RFC 6937 3), after a SACK or a loss that was found without one.
    /// `pipe` are the bytes in flight, `ssthresh` the window that the recovery ends with, `mss` the
    /// bytes of a full packet. `safe` if the SACK advances the cumulative ack and shows no further
    /// loss: otherwise the slow start reduction bound would add to congestion
    /// (draft-ietf-tcpm-prr-rfc6937bis, SafeACK).
    pub(crate) fn reduce(&mut self, pipe: u32, ssthresh: u32, mss: u32, safe: bool) {
        let Some(r) = &mut self.reduction else { return };
        let delivered = u64::from(std::mem::take(&mut self.delivered));
        r.delivered += delivered;
        let count = if pipe > ssthresh {
            // "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out"
            (r.delivered * u64::from(ssthresh)).div_ceil(r.recover_fs).saturating_sub(r.out)
        } else {
            // "limit = MAX(prr_delivered - prr_out, DeliveredData) + MSS"
            let most = r.delivered.saturating_sub(r.out).max(delivered);
            let most = most + if safe { u64::from(mss) } else { 0 };
            // "Attempt to catch up, as permitted by limit"
            most.min(u64::from(ssthresh - pipe))
        };
        let count = count.min(u32::MAX.into()) as u32;
        // With nothing in flight, no acknowledgement would release the next packet.
        self.limit = Some(pipe.saturating_add(count).max(mss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn window(cwnd: u32) -> Window {
        Window::unpaced(cwnd, cwnd)
    }

    /// RFC 6937 3.1, first example: "a single loss [...] FlightSize 20, ssthresh 10 [...] PRR
    /// transmits one segment for every two ACKs".
    #[test]
    fn one_packet_for_two_acknowledgements() {
        let mut r = Recovery::default();
        r.begin(window(20 * MSS), 20 * MSS);
        let mut pipe = 19 * MSS;
        let mut sent = 0;
        for acknowledged in 1..=18 {
            r.delivered = MSS;
            pipe -= MSS;
            r.reduce(pipe, 10 * MSS, MSS, false);
            let limit = r.limit().unwrap();
            let n = (limit - pipe) / MSS;
            r.sent(n * MSS);
            pipe += n * MSS;
            sent += n;
            assert!(sent.abs_diff(acknowledged / 2) <= 1, "{sent} for {acknowledged}");
        }
        assert_eq!(pipe, 10 * MSS);
    }

    /// RFC 6937 3: below ssthresh, at most what was delivered and one packet are sent.
    #[test]
    fn below_ssthresh_the_window_grows_as_in_slow_start() {
        let mut r = Recovery::default();
        r.begin(window(20 * MSS), 20 * MSS);
        r.delivered = MSS;
        r.reduce(4 * MSS, 10 * MSS, MSS, true);
        assert_eq!(r.limit(), Some(6 * MSS));
        r.sent(2 * MSS);
        r.delivered = MSS;
        r.reduce(5 * MSS, 10 * MSS, MSS, false);
        assert_eq!(r.limit(), Some(6 * MSS), "a further loss: packet conservation");
        r.delivered = 8 * MSS;
        r.reduce(5 * MSS, 10 * MSS, MSS, true);
        assert_eq!(r.limit(), Some(10 * MSS), "not beyond ssthresh");
    }

    /// Everything in flight was lost: no acknowledgement will release a packet.
    #[test]
    fn an_empty_pipe_gets_one_packet() {
        let mut r = Recovery::default();
        r.begin(window(20 * MSS), 20 * MSS);
        r.sent(5 * MSS);
        r.delivered = MSS;
        r.reduce(12 * MSS, 10 * MSS, MSS, false);
        r.reduce(0, 10 * MSS, MSS, false);
        assert_eq!(r.limit(), Some(MSS));
    }

    /// RFC 3708 3: only if all retransmissions were spurious.
    #[test]
    fn every_retransmission_must_be_a_duplicate() {
        let mut r = Recovery::default();
        r.begin(window(20 * MSS), 20 * MSS);
        r.retransmitted(Tsn(5));
        r.retransmitted(Tsn(7));
        assert!(!r.is_spurious_by(Tsn(6)));
        assert!(!r.is_spurious_by(Tsn(5)));
        assert!(!r.is_spurious_by(Tsn(5)));
        assert!(r.is_spurious_by(Tsn(7)));
        assert_eq!(r.undo(), Some(window(20 * MSS)));
        assert_eq!(r.undo(), None);
    }

    /// Reordering begins a second recovery before the peer has reported the retransmission of the
    /// first one as a duplicate: both are undone, in any order of the reports.
    #[test]
    fn two_recoveries_in_a_row_are_undone() {
        let begin = || {
            let mut r = Recovery::default();
            r.begin(window(40 * MSS), 40 * MSS);
            r.retransmitted(Tsn(5));
            r.end();
            r.begin(window(28 * MSS), 28 * MSS);
            r.retransmitted(Tsn(9));
            r
        };
        let mut r = begin();
        assert!(!r.is_spurious_by(Tsn(5)), "the second one may have a reason");
        assert!(r.is_spurious_by(Tsn(9)));
        assert_eq!(r.undo(), Some(window(40 * MSS)));
        let mut r = begin();
        assert!(r.is_spurious_by(Tsn(9)));
        assert_eq!(r.undo(), Some(window(28 * MSS)));
        assert!(r.is_spurious_by(Tsn(5)));
        assert_eq!(r.undo(), Some(window(40 * MSS)));
        assert_eq!(r.undo(), None);
        // The first one had a reason.
        let mut r = begin();
        r.is_spurious_by(Tsn(9));
        assert_eq!(r.undo(), Some(window(28 * MSS)));
        assert!(!r.is_spurious_by(Tsn(9)));
    }

    #[test]
    fn a_second_timeout_keeps_the_window_from_before_the_first() {
        let mut r = Recovery::default();
        let at = |s| Time::ZERO + std::time::Duration::from_secs(s);
        r.timed_out(at(1), window(20 * MSS), true);
        r.timed_out(at(3), window(MSS), true);
        assert_eq!((r.testable_timeout(), r.undo()), (Some(at(1)), Some(window(20 * MSS))));
    }
}
