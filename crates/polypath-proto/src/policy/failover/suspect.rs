//! Leaves a path as soon as it is silent for longer than its acknowledgements take, while another
//! path is active; probes decide whether it has failed.
//!
//! The states are those of SCTP-PF ([RFC 7829](super::potentially_failed)), with a third way into
//! the potentially failed state, which does not wait for a timeout:
//!
//! ```text
//!            silence, or a timeout                  errors > PMR
//!   active  ----------------------> potentially   ---------------->  inactive
//!     ^ ^                             failed                            |
//!     | +-- enough HEARTBEATs answered, | or a late SACK over the path  |
//!     +---- a HEARTBEAT answered -------+-------------------------------+
//! ```
//!
//! - A path is silent if the oldest data in flight on it is older than `R + M`, and nothing sent on
//!   it was acknowledged for `M`. `R` is the smoothed or the last round-trip time, whichever is
//!   longer, and `M` the largest of half of the shortest round-trip time, four times its jitter (at
//!   most `R`) and `least`. With at least 16 packets in flight a quarter of the shortest round-trip
//!   time is enough, and with at least 64 an eighth but not less than 20 ms, because several SACKs
//!   are missing then. A queue that fills makes acknowledgements later, not rarer, so neither the
//!   smoothed round-trip time nor its variation is in `M`. This is about the probe timeout of RFC
//!   9002 6.2.1 without its doubled round-trip time: other paths answer, so that a wrong guess
//!   costs some duplicates and a round trip of one path.
//! - SACKs for a path with a longer way may return on a shorter one while that carries data as well
//!   (RFC 9260 6.4), and on the longer one afterwards. In between none arrives for the difference
//!   of the two ways back: `M` is longer than that. It is the difference of the shortest round-trip
//!   times, if those that returned on the shorter way are among them and both ways of a path take
//!   as long.
//! - Data in flight on a silent path is sent again on other paths, the lowest TSN first. Its window
//!   stays: RFC 9002 6.2.1, "A PTO timer expiration event does not indicate packet loss". The first
//!   HEARTBEAT that is not answered within the RTO cuts it like a timeout, and counts as an error
//!   (RFC 9260 8.2).
//! - A SACK that arrives over the silent path and acknowledges its data shows that it was only
//!   slow. It is active again, `M` becomes larger by `R / 2` for some time (as the reordering
//!   window of RFC 8985 6.2, step 4), and data not yet sent again is in flight as before.
//! - A path that fails repeatedly has to answer one more HEARTBEAT in a row after each failure, up
//!   to five, before it carries data again; `STEADY` without a failure forgive one.
//! - The age counts from the second packet in flight: a receiver may acknowledge the odd last
//!   packet of a flight only with the first one of the next (RFC 9260 6.2). A single packet has the
//!   delay of a SACK in addition, but no longer than other paths take to deliver two packets, which
//!   make the receiver send one.
//! - If the other active paths should have answered as well and have not, the silence shows
//!   nothing about this one: the peer, this host or a common link has stopped for a moment, or the
//!   peer sends all SACKs over a path that has failed. Each of them gets a HEARTBEAT, and is judged
//!   again `M` after one of them has answered.
//! - A path that has lost a quarter of its recent packets for three round trips, at most of the
//!   acknowledgements in that time, is left like a silent one, if another path carries data, loses
//!   less than half of that, and delivers earlier on average. Two bursts that overfill a queue, as
//!   when the peer's window opens, are no such loss. What it loses would hold up everything behind
//!   it, and congestion control leaves it a small share of the rate anyway. It has to answer five
//!   HEARTBEATs in a row before it carries data again.
//! - While others carry data, a path that is not active gets HEARTBEATs that are a quarter of the
//!   time apart for which it has not been: a path that works again is found soon, compared with the
//!   time that it was away. They are at least two round trips and at most a second apart, or two
//!   round trips if that is longer. RFC 9260 8.3 and RFC 7829 3.2 (5) would send them an RTO apart,
//!   which doubles up to RTO.Max, so that a path that was away for half a minute would be found up
//!   to a minute later; and a path that lost one HEARTBEAT to an error, at least RTO.Min later. RFC
//!   8085 3.1.1 allows one packet each round trip, and at about a hundred bytes a second the
//!   congestion that the doubling guards against cannot arise. The errors still count after an RTO.
//! - While no path answers, the paths get HEARTBEATs that are a quarter of the silence apart, but
//!   at least the RTO without its back-off and two round trips, and at most 3 s or two round trips:
//!   an outage then lasts little longer for the application than in the network. T3-rtx alone would
//!   notice its end after up to twice the time, and a receiver of data, which has no T3-rtx, after
//!   HB.interval. A receiver begins when a stream of data has stopped for a second. The intervals
//!   grow exponentially, to what RFC 8085 3.1.1 allows senders that measure nothing: a datagram
//!   every three seconds. These HEARTBEATs are no errors if they are not answered.
//! - If no other path is active, only timeouts count, and the path stays active until
//!   Path.Max.Retrans is exceeded. Then the potentially failed path with the fewest errors is taken
//!   back, as by [CMT-PF](super::cmt_potentially_failed).

use std::time::Duration;

use super::potentially_failed::PotentiallyFailed;
use super::{Ambiguity, FailoverPolicy, NoActivePath, PathErrorKind, Patience};
use crate::ids::PathId;
use crate::path::{PathState, PathView, PathsView};
use crate::policy::congestion::PathTable;
use crate::policy::entry::{Entry, Needs, Setting};
use crate::policy::retransmission::earliest::mean_delivery;
use crate::rng::Rng;
use crate::time::Time;

/// See the [module](self).
pub static SUSPECT: Entry<dyn FailoverPolicy> = Entry::<dyn FailoverPolicy>::new(
    "suspect",
    "silence for about 1.5 round trips moves a path's data to other paths; probes decide \
              whether it has failed (RFC 7829, RFC 9002 6.2)",
    |setup| {
        Box::new(Suspect {
            states: PotentiallyFailed::new(true),
            least: setup.settings.time("least"),
            ack_delay: setup.constants.sack_delay(),
            paths: PathTable::default(),
        })
    },
)
.with_parameters(&PARAMETERS)
.with_needs(Needs::NONE.silence());

static PARAMETERS: [Setting; 1] = [Setting::time(
    "least",
    Duration::from_millis(5),
    Duration::from_millis(1)..=Duration::from_secs(10),
    "shortest silence beyond the round-trip time",
)];

/// Longest time between HEARTBEATs on a path that is not active, if two round trips are shorter.
const PROBES: Duration = Duration::from_secs(1);

/// HEARTBEATs are apart by the time for which the path has not been active, divided by this.
const AWAY: u32 = 4;

/// Longest time between HEARTBEATs while no path answers, if two round trips are shorter.
const SEARCH: Duration = Duration::from_secs(3);

/// Time without a failure after which a path has to answer one HEARTBEAT less.
const STEADY: Duration = Duration::from_secs(10);

/// Most HEARTBEATs that a path has to answer, less one.
const MOST_RELAPSES: u32 = 4;

/// Most spurious suspicions that enlarge the patience.
const MOST_SPURIOUS: u32 = 4;

/// Recent share of losses from which a path is lossy. Congestion control keeps its own losses below
/// it, but for the round trip in which a flow that has just begun overfills the queue.
const LOSSY: f64 = 0.25;

/// Packets in flight of which a quarter of a round-trip time without an answer concerns several.
const MANY: u32 = 16;

/// Packets in flight of which an eighth of a round-trip time without an answer concerns several.
const VERY_MANY: u32 = 64;

/// Links may pause for so long, as radio links do to repeat a frame.
const PAUSE: Duration = Duration::from_millis(20);

/// Packets in flight on a path that is in use: its round-trip time is up to date, and SACKs arrive.
const BUSY: u32 = 4;

/// Round-trip times for which a path has to be lossy before it is left.
const LOSSY_ROUNDS: u32 = 3;

#[derive(Debug)]
struct Suspect {
    states: PotentiallyFailed,
    least: Duration,
    /// The peer may delay the SACK for a single packet: the local SACK.Delay, since the peer does
    /// not announce its own.
    ack_delay: Duration,
    paths: PathTable<Record>,
}

/// The history of a path.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Failures that are not forgiven yet.
    relapses: u32,
    /// HEARTBEATs answered in a row since the last failure.
    proofs: u32,
    /// Recent suspicions that were spurious.
    spurious: u32,
    lossy: Option<Lossy>,
    /// When the last failure or spurious suspicion was noticed or forgiven.
    steady_since: Time,
}

/// A path has lost a large share of its packets between these times.
#[derive(Clone, Copy, Debug)]
struct Lossy {
    since: Time,
    last: Time,
    /// Acknowledgements in between: all, and those after which it was lossy.
    acks: u32,
    lossy: u32,
    /// The last of them is counted in `lossy`.
    counted: bool,
}

impl Suspect {
    fn record(&mut self, path: PathId) -> &mut Record {
        self.paths.get_or_insert_with(path, Record::default)
    }
}

/// The time in which other active paths deliver two packets, if they carry data. RFC 9260 6.2: "an
/// acknowledgement SHOULD be generated for at least every second packet" of the association, so
/// that a SACK for a single packet in flight waits no longer for the timer of the peer.
fn next_sacks(id: PathId, paths: PathsView<'_>) -> Option<Duration> {
    let others = paths.iter().filter(|other| other.id != id && other.state == PathState::Active);
    let busy = others.filter(|other| other.in_flight >= BUSY * other.max_chunk);
    let two = |other: PathView| Some(other.srtt? * (2 * other.max_chunk) / other.in_flight.max(1));
    busy.filter_map(two).min()
}

impl FailoverPolicy for Suspect {
    fn after_error(
        &mut self,
        path: &PathView,
        error: PathErrorKind,
        paths: PathsView<'_>,
    ) -> PathState {
        let record = self.record(path.id);
        record.proofs = 0;
        if path.error_count == 1 && path.state != PathState::Inactive {
            record.relapses = (record.relapses + 1).min(MOST_RELAPSES);
        }
        let state = self.states.after_error(path, error, paths);
        let leaves = path.state == PathState::Active && state == PathState::PotentiallyFailed;
        if leaves && !paths.another_is_active(path.id) { path.state } else { state }
    }

    fn after_answer(&mut self, path: &PathView, paths: PathsView<'_>) -> PathState {
        let alone = !paths.another_is_active(path.id);
        let record = self.record(path.id);
        record.proofs += 1;
        if path.state == PathState::PotentiallyFailed && record.proofs <= record.relapses && !alone
        {
            return path.state;
        }
        record.proofs = 0;
        PathState::Active
    }

    fn credits(&self, ambiguity: Ambiguity) -> bool {
        // A late acknowledgement shows that the path worked a round trip ago: not enough for one
        // that has been silent since.
        !ambiguity.timed_out && (ambiguity.dormant || !ambiguity.on_several_paths)
    }

    fn current(&mut self, paths: PathsView<'_>) -> PathId {
        self.states.current(paths)
    }

    fn retransmission(&self, last: PathId, paths: PathsView<'_>) -> PathId {
        self.states.retransmission(last, paths)
    }

    fn without_active_path(&self, paths: PathsView<'_>, _: &mut Rng) -> NoActivePath {
        let failed = paths.iter().filter(|p| p.state == PathState::PotentiallyFailed);
        let least = failed.min_by_key(|p| (p.error_count, std::cmp::Reverse(p.state_since)));
        least.map_or(NoActivePath::Send, |p| NoActivePath::Activate(p.id))
    }

    fn patience(&self, path: &PathView, paths: PathsView<'_>) -> Option<Patience> {
        let rtt = path.srtt?.max(path.last_rtt.unwrap_or_default());
        let shortest = path.rtt_range.map_or(rtt, |range| range.min);
        let part = match path.in_flight / path.max_chunk.max(1) {
            0..MANY => shortest / 2,
            MANY..VERY_MANY => shortest / 4,
            VERY_MANY.. => (shortest / 8).max(PAUSE.min(shortest / 4)),
        };
        let other = paths.shortest_of_others(path.id).unwrap_or(shortest);
        let difference = shortest.saturating_sub(other);
        // `least` covers a small one.
        let longer_way =
            if difference > self.least / 2 { difference + self.least } else { Duration::ZERO };
        let margin = part.max((4 * path.jitter).min(rtt)).max(self.least).max(longer_way);
        let spurious = self.paths.get(path.id).map_or(0, |record| record.spurious);
        let margin = margin + rtt.max(self.least) * spurious / 2;
        let single = next_sacks(path.id, paths).map_or(self.ack_delay, |at| at.min(self.ack_delay));
        Some(Patience { age: rtt + margin, quiet: margin, single })
    }

    fn probe_interval(&self, now: Time, path: &PathView) -> Option<Duration> {
        let rtt = path.srtt.unwrap_or_default().max(path.last_rtt.unwrap_or_default());
        // An inactive path has been away for as many RTOs as Path.Max.Retrans allows already.
        let away = match path.state {
            PathState::PotentiallyFailed => now.since(path.state_since) / AWAY,
            _ => PROBES,
        };
        Some(away.min(PROBES).max(2 * rtt.max(self.least)))
    }

    fn search_interval(&self, silent: Duration, path: &PathView) -> Option<Duration> {
        let rtt = path.srtt.unwrap_or_default();
        Some((silent / AWAY).min(SEARCH).max(2 * rtt))
    }

    fn after_silence(&mut self, path: &PathView, _: PathsView<'_>) -> PathState {
        let record = self.record(path.id);
        record.proofs = 0;
        PathState::PotentiallyFailed
    }

    fn most_losses(&self) -> f64 {
        LOSSY
    }

    fn after_losses(&mut self, now: Time, path: &PathView, paths: PathsView<'_>) -> PathState {
        let loss = path.loss.recent();
        let record = self.record(path.id);
        let rtt = path.srtt.unwrap_or_default().max(path.last_rtt.unwrap_or_default());
        // It lost less in between if this was not asked.
        let lossy = record.lossy.filter(|lossy| now.since(lossy.last) <= 2 * rtt);
        let begins = Lossy { since: now, last: now, acks: 1, lossy: 0, counted: false };
        let mut lossy = lossy.unwrap_or(begins);
        lossy.lossy = lossy.lossy.saturating_add(u32::from(!lossy.counted));
        (lossy.last, lossy.counted) = (now, true);
        record.lossy = Some(lossy);
        let Some(srtt) = path.srtt else { return path.state };
        let late = mean_delivery(srtt, loss);
        let earlier = |other: &PathView| {
            let theirs = other.loss.recent();
            other.id != path.id
                && other.is_usable()
                && other.in_flight >= BUSY * other.max_chunk
                && theirs < loss / 2.0
                && other.srtt.is_some_and(|srtt| mean_delivery(srtt, theirs) < late)
        };
        let lasts = now.since(lossy.since) >= LOSSY_ROUNDS * rtt && lossy.lossy > lossy.acks / 2;
        if !lasts || !paths.iter().any(|other| earlier(&other)) {
            return path.state;
        }
        (record.lossy, record.proofs) = (None, 0);
        (record.relapses, record.steady_since) = (MOST_RELAPSES, now);
        PathState::PotentiallyFailed
    }

    fn on_acknowledged(&mut self, now: Time, path: PathId) {
        let record = self.record(path);
        if let Some(lossy) = &mut record.lossy {
            (lossy.acks, lossy.counted) = (lossy.acks.saturating_add(1), false);
        }
        if (record.relapses > 0 || record.spurious > 0) && now.since(record.steady_since) >= STEADY
        {
            record.steady_since = now;
            record.relapses = record.relapses.saturating_sub(1);
            record.spurious = record.spurious.saturating_sub(1);
        }
    }

    fn on_spurious(&mut self, now: Time, path: PathId) {
        let record = self.record(path);
        record.spurious = (record.spurious + 1).min(MOST_SPURIOUS);
        record.steady_since = now;
    }

    fn probes_at_once(&self, path: &PathView) -> bool {
        self.states.probes_at_once(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{TestPaths, make};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Two paths of 20 ms with data in flight; the first has lost every `every`th of 64 packets.
    fn paths(every: u32) -> TestPaths {
        let mut paths = TestPaths::new(2);
        for path in [0, 1] {
            paths.measure(path, MS(20));
            (0..64).for_each(|n| paths.transmit(path, path == 0 && n % every == 0));
            paths.send(path, 10_000);
        }
        paths
    }

    /// The state of the first path, judged after each round trip.
    fn states(policy: &mut dyn FailoverPolicy, paths: &TestPaths, rounds: u64) -> Vec<PathState> {
        let judge = |round| {
            let now = Time::from_nanos(round * 20_000_000);
            let path = paths.view().path(PathId(0));
            if path.loss.recent() < policy.most_losses() {
                return path.state;
            }
            policy.after_losses(now, &path, paths.view())
        };
        (0..rounds).map(judge).collect()
    }

    #[test]
    fn a_path_is_left_after_three_round_trips_of_many_losses() {
        use PathState::{Active, PotentiallyFailed};
        let mut policy = make(&SUSPECT);
        let expected = [Active, Active, Active, PotentiallyFailed];
        assert_eq!(states(&mut *policy, &paths(2), 4), expected);
        // A tenth is what congestion or a poor radio link may cost.
        assert_eq!(states(&mut *make(&SUSPECT), &paths(10), 4), [Active; 4]);
    }

    #[test]
    fn a_path_that_was_left_for_losses_has_to_answer_five_times() {
        let mut policy = make(&SUSPECT);
        let mut paths = paths(2);
        states(&mut *policy, &paths, 4);
        paths.set_state(0, PathState::PotentiallyFailed);
        let answers = |_| policy.after_answer(&paths.view().path(PathId(0)), paths.view());
        let active: Vec<_> = (0..5).map(answers).map(|s| s == PathState::Active).collect();
        assert_eq!(active, [false, false, false, false, true]);
    }

    #[test]
    fn a_path_with_losses_stays_if_no_other_is_known_to_deliver_earlier() {
        let changes: [fn(&mut TestPaths); 3] = [
            // As many losses.
            |paths| (0..64).for_each(|n| paths.transmit(1, n % 2 == 0)),
            // A queue of a second.
            |paths| (0..50).for_each(|_| paths.measure(1, MS(1000))),
            |paths| paths.set_state(1, PathState::PotentiallyFailed),
        ];
        for change in changes {
            let mut paths = paths(2);
            change(&mut paths);
            assert_eq!(states(&mut *make(&SUSPECT), &paths, 9), [PathState::Active; 9]);
        }
        // Nothing is in flight on the other path: its round-trip time may be an old one.
        let mut idle = TestPaths::new(2);
        for path in [0, 1] {
            idle.measure(path, MS(20));
            (0..64).for_each(|n| idle.transmit(path, path == 0 && n % 2 == 0));
        }
        assert_eq!(states(&mut *make(&SUSPECT), &idle, 9), [PathState::Active; 9]);
    }

    /// The peer may acknowledge every second packet only, so that a few packets in flight have to
    /// be waited for longer.
    #[test]
    fn many_packets_in_flight_shorten_the_patience() {
        let policy = make(&SUSPECT);
        let mut paths = TestPaths::new(1);
        paths.measure(0, MS(200));
        let mut quiet = |bytes| {
            paths.send(0, bytes);
            policy.patience(&paths.view().path(PathId(0)), paths.view()).unwrap().quiet
        };
        assert_eq!((quiet(3000), quiet(30_000), quiet(100_000)), (MS(100), MS(50), MS(25)));
        // A short pause of a link is no failure.
        let mut paths = TestPaths::new(1);
        paths.measure(0, MS(100));
        paths.send(0, 100_000);
        let view = paths.view().path(PathId(0));
        assert_eq!(policy.patience(&view, paths.view()).unwrap().quiet, MS(20));
    }

    /// RFC 9260 6.2: "an acknowledgement SHOULD be generated for at least every second packet",
    /// whatever the path. 40 packets on the other path, which takes 100 ms, arrive 2.5 ms apart.
    #[test]
    fn packets_on_another_path_hasten_the_sack_for_a_single_one() {
        let policy = make(&SUSPECT);
        let mut paths = TestPaths::new(2);
        paths.measure(0, MS(20));
        paths.measure(1, MS(100));
        let single = |paths: &TestPaths| {
            policy.patience(&paths.view().path(PathId(0)), paths.view()).unwrap().single
        };
        let chunk = paths.view().path(PathId(0)).max_chunk;
        paths.send(0, chunk);
        let delayed = single(&paths);
        assert_eq!(delayed, MS(200));
        paths.send(1, 40 * chunk);
        assert_eq!(single(&paths), MS(5));
        paths.set_state(1, PathState::PotentiallyFailed);
        assert_eq!(single(&paths), delayed);
    }

    /// SACKs for the path of 100 ms that have returned on the one of 40 ms, after 70 ms, return on
    /// their own path from now on, and leave a gap of 30 ms. Not so on the path of 40 ms: its own
    /// data keeps its own way back in use (RFC 9260 6.4).
    #[test]
    fn a_longer_way_back_is_no_silence() {
        let policy = make(&SUSPECT);
        let mut paths = TestPaths::new(2);
        paths.measure(0, MS(40));
        paths.measure(1, MS(70));
        for path in [0, 1] {
            paths.send(path, 100_000);
        }
        let quiet = |paths: &TestPaths, path| {
            policy.patience(&paths.view().path(PathId(path)), paths.view()).unwrap().quiet
        };
        assert_eq!((quiet(&paths, 0), quiet(&paths, 1)), (MS(10), MS(35)));
        // The shorter path is not in use.
        paths.set_state(0, PathState::PotentiallyFailed);
        assert_eq!(quiet(&paths, 1), Duration::from_micros(17_500));
    }

    #[test]
    fn a_path_that_just_failed_is_probed_more_often() {
        let policy = make(&SUSPECT);
        let after = |rtt, state, ms| {
            let mut paths = TestPaths::new(1);
            paths.measure(0, rtt);
            paths.set_state(0, state);
            let view = paths.view().path(PathId(0));
            policy.probe_interval(view.state_since + MS(ms), &view).unwrap()
        };
        let failed = PathState::PotentiallyFailed;
        let intervals = [0, 160, 400, 4000, 60_000].map(|ms| after(MS(20), failed, ms));
        assert_eq!(intervals, [40, 40, 100, 1000, 1000].map(MS));
        assert_eq!(after(MS(20), PathState::Inactive, 0), MS(1000));
        // RFC 8085 3.1.1: at most one packet each round trip.
        assert_eq!(after(MS(3000), failed, 0), MS(6000));
        // Not without end where nothing takes any time.
        assert_eq!(after(Duration::ZERO, failed, 0), MS(10));
    }

    /// Two bursts that overfill the queue: the share of recent losses is high for a few
    /// acknowledgements each time, a round trip and a half apart.
    #[test]
    fn two_bursts_of_losses_are_not_a_path_that_loses_always() {
        let judge = |share_of_acks: u64| {
            let mut policy = make(&SUSPECT);
            let paths = paths(2);
            let path = paths.view().path(PathId(0));
            let mut left = false;
            for n in 0..100 {
                let now = Time::from_nanos(n * 1_000_000);
                policy.on_acknowledged(now, PathId(0));
                if n % 30 < share_of_acks {
                    let state = policy.after_losses(now, &path, paths.view());
                    left |= state == PathState::PotentiallyFailed;
                }
            }
            left
        };
        assert!(!judge(10));
        assert!(judge(30));
    }
}
