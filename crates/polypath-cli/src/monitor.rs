//! Watches an association during a file transfer: progress, the longest time without progress, and
//! events of the paths.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use polypath::{Association, Endpoint, Event, EventsError, Path, PathId, PathState, Time};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use polypath_apps::transfer::outcome::Counts;

use crate::progress::Progress;
use crate::role::Role;

/// Resolution of the measured time without progress.
const SAMPLE: Duration = Duration::from_millis(20);

/// Shortest time without progress that counts as a standstill.
const STANDSTILL: Duration = Duration::from_millis(500);

/// A change of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    /// Time since the transfer began.
    pub(crate) at: Duration,
    pub(crate) path: PathId,
    pub(crate) what: What,
}

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The path has this state now.
    State(PathState),
    /// New data is now sent on this path.
    Current,
    /// The path is the primary now.
    Primary,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:.2} s: ", self.at.as_secs_f64())?;
        match self.what {
            What::State(state) => write!(f, "path {} is {state}", self.path),
            What::Current => write!(f, "new data goes to path {}", self.path),
            What::Primary => write!(f, "path {} is the primary", self.path),
        }
    }
}

/// Observations of one transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observations {
    /// Time from the first to the last byte.
    pub(crate) duration: Duration,
    /// Longest time without new data (receiver) or new acknowledgements (sender) before the last
    /// bytes of a file.
    pub(crate) blackout: Duration,
    /// Time from the beginning of the transfer to that of the blackout.
    pub(crate) blackout_at: Duration,
    /// Sum of all times of at least half a second without new data or acknowledgements.
    pub(crate) standstill: Duration,
    pub(crate) changes: Vec<Change>,
    /// Number of changes that were missed because too many events were queued.
    pub(crate) changes_missed: u64,
    pub(crate) paths: Vec<Path>,
}

/// The task that watches.
#[derive(Debug)]
pub(crate) struct Monitor {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Observations>,
}

impl Observations {
    /// Adds what was observed over a later connection, after a loss of `lost`.
    pub(crate) fn then(&mut self, lost: Duration, later: Self) {
        let begin = self.duration + lost;
        self.standstill += lost + later.standstill;
        if lost > self.blackout {
            (self.blackout, self.blackout_at) = (lost, self.duration);
        }
        if later.blackout > self.blackout {
            (self.blackout, self.blackout_at) = (later.blackout, begin + later.blackout_at);
        }
        let changes = later.changes.into_iter();
        self.changes.extend(changes.map(|change| Change { at: begin + change.at, ..change }));
        self.changes_missed += later.changes_missed;
        self.duration = begin + later.duration;
        self.paths = later.paths;
    }
}

impl Monitor {
    /// Starts to watch a transfer of `total` bytes that begins now.
    pub(crate) fn start(
        role: Role,
        endpoint: &Endpoint,
        association: &Association,
        counts: Arc<Counts>,
        total: Option<u64>,
        progress: Progress,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let start = endpoint.now();
        let watcher = Watcher {
            role,
            endpoint: endpoint.clone(),
            association: association.clone(),
            counts,
            total,
            progress,
            start,
            last: start,
            done: 0,
            gaps: Gaps::default(),
            seen: Observations::default(),
        };
        Self { stop, task: tokio::spawn(watcher.run(stopped)) }
    }

    /// Stops the task, clears the display and returns the observations.
    pub(crate) async fn finish(self) -> Observations {
        // An error means that the task has ended already.
        let _ = self.stop.send(());
        self.task.await.unwrap_or_default()
    }
}

struct Watcher {
    role: Role,
    endpoint: Endpoint,
    association: Association,
    counts: Arc<Counts>,
    total: Option<u64>,
    progress: Progress,
    start: Time,
    /// Time of the last progress.
    last: Time,
    /// Progress in bytes at that time.
    done: u64,
    gaps: Gaps,
    seen: Observations,
}

/// Times without progress in the bytes of the files.
///
/// A gap counts once bytes of a file have followed it: the last message of a transfer waits until
/// the receiver has synchronised the files with its disk and has reported them.
#[derive(Debug, Default)]
struct Gaps {
    /// The longest gap, and when it began.
    longest: (Duration, Duration),
    /// Sum of those that are a standstill.
    standstill: Duration,
    /// The same for gaps after which no bytes of a file have been counted yet.
    open_longest: (Duration, Duration),
    open_standstill: Duration,
    /// Bytes of files at the last sample.
    bytes: u64,
}

impl Gaps {
    /// Adds a gap that has just ended and began at `at`.
    fn add(&mut self, at: Duration, gap: Duration) {
        if gap >= STANDSTILL {
            self.open_standstill += gap;
        }
        if gap > self.open_longest.0 {
            self.open_longest = (gap, at);
        }
    }

    /// Takes a sample of the bytes of files, after the gap that it ends has been added.
    fn sample(&mut self, bytes: u64) {
        if bytes <= self.bytes {
            return;
        }
        self.bytes = bytes;
        self.standstill += std::mem::take(&mut self.open_standstill);
        let open = std::mem::take(&mut self.open_longest);
        if open.0 > self.longest.0 {
            self.longest = open;
        }
    }
}

impl Watcher {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) -> Observations {
        let mut events = self.association.events();
        let mut ended = false;
        let mut ticks = tokio::time::interval(SAMPLE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                _ = ticks.tick() => self.sample(),
                event = events.next(), if !ended => match event {
                    Ok(event) => self.event(&event),
                    Err(EventsError::Lagged { missed }) => self.seen.changes_missed += missed,
                    Err(_) => ended = true,
                },
            }
        }
        self.sample();
        while !ended {
            // Take events that are already queued.
            match tokio::time::timeout(Duration::ZERO, events.next()).await {
                Ok(Ok(event)) => self.event(&event),
                Ok(Err(EventsError::Lagged { missed })) => self.seen.changes_missed += missed,
                Ok(Err(_)) | Err(_) => ended = true,
            }
        }
        self.progress.clear();
        self.seen.duration = self.last.since(self.start);
        (self.seen.blackout, self.seen.blackout_at) = self.gaps.longest;
        self.seen.standstill = self.gaps.standstill;
        self.seen.paths = self.association.paths();
        self.seen
    }

    fn sample(&mut self) {
        let now = self.endpoint.now();
        let paths = self.association.paths();
        let counted = self.counts.moved();
        let (moved, shown) = match self.role {
            // Unacknowledged data is still in the send buffer.
            Role::Sender => {
                let acked = counted.saturating_sub(self.association.buffered() as u64);
                (acked, acked)
            }
            // New data may have arrived but not be deliverable yet.
            Role::Receiver => {
                (paths.iter().map(|path| path.stats.data_bytes_received).sum(), counted)
            }
        };
        let shown = shown + self.counts.kept();
        if moved > self.done {
            if self.done > 0 {
                self.gaps.add(self.last.since(self.start), now.since(self.last));
            }
            self.done = moved;
            self.last = now;
        }
        self.gaps.sample(match self.role {
            Role::Sender => moved,
            Role::Receiver => counted,
        });
        self.progress.update(now, shown, self.total, &paths, self.association.current_path());
    }

    fn event(&mut self, event: &Event) {
        let (path, at, what) = match *event {
            // The first confirmation of a path is not reported.
            Event::PathState { from: PathState::Unconfirmed, to: PathState::Active, .. } => return,
            Event::PathState { path, to, at, .. } => (path, at, What::State(to)),
            Event::CurrentPath { path, at } => (path, at, What::Current),
            Event::PrimaryChanged { path } => (path, self.endpoint.now(), What::Primary),
            _ => return,
        };
        let change = Change { at: at.since(self.start), path, what };
        self.progress.tell(&change);
        self.seen.changes.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_gap_counts_once_bytes_of_a_file_have_followed_it() {
        let mut gaps = Gaps::default();
        gaps.sample(100_000);
        // The path is cut: a message of 64 KiB is complete some samples after the gap.
        gaps.add(MS(300), MS(700));
        gaps.sample(100_000);
        gaps.add(MS(1000), MS(20));
        gaps.sample(100_000);
        assert_eq!((gaps.longest, gaps.standstill), ((MS(0), MS(0)), MS(0)));
        gaps.sample(165_536);
        assert_eq!((gaps.longest, gaps.standstill), ((MS(700), MS(300)), MS(700)));
        // The disk and the receiver's reply take 900 ms; the sender's last message follows.
        gaps.add(MS(1100), MS(900));
        gaps.sample(165_536);
        assert_eq!((gaps.longest, gaps.standstill), ((MS(700), MS(300)), MS(700)));
    }

    #[test]
    fn the_gap_before_the_last_bytes_of_a_file_counts() {
        let mut gaps = Gaps::default();
        gaps.sample(100_000);
        gaps.add(MS(300), MS(700));
        gaps.sample(120_000);
        assert_eq!((gaps.longest, gaps.standstill), ((MS(700), MS(300)), MS(700)));
    }
}
