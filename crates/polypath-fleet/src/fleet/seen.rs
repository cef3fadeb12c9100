//! Counts the cases in which events happened.

use polypath_sim::link::LinkCounters;
use polypath_sim::outcome::{Outcome, PathChange, PathCounts, SideOutcome};

macro_rules! counters {
    ($( $(#[$doc:meta])* $name:ident, )*) => {
        /// Number of cases in which each event happened at least once.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Seen {
            $( $(#[$doc])* pub $name: u64, )*
        }

        impl Seen {
            /// Adds the counts of another.
            pub const fn merge(&mut self, other: &Self) {
                $( self.$name += other.$name; )*
            }

            fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$( (stringify!($name), self.$name), )*]
            }
        }
    };
}

counters! {
    /// Cases that complete.
    complete,
    /// A path fails.
    path_failures,
    /// All paths of a side fail.
    failures_of_all_paths,
    /// A fast retransmission.
    fast_retransmissions,
    /// A T3-rtx timeout.
    timeouts,
    /// A lost HEARTBEAT.
    heartbeats_lost,
    /// A duplicate TSN.
    duplicates,
    /// A wrong checksum.
    bad_checksums,
    /// A full queue.
    full_queues,
    /// A reordered packet.
    reordered,
    /// A full receive buffer.
    no_buffer,
    /// A side closes because its peer is unreachable.
    unreachable,
    /// A handshake without a reply.
    no_answer,
    /// A time without newly delivered data.
    blackouts,
    /// Background traffic.
    background,
    /// Background traffic that a full queue drops.
    background_dropped,
    /// An abandoned message.
    abandoned,
    /// An address that is removed.
    addresses_gone,
    /// An address that is added again.
    addresses_back,
}

impl Seen {
    /// Counts the events of a case.
    pub fn add(&mut self, outcome: &Outcome) {
        let Some(association) = outcome.associations.first() else { return };
        let sides = [&association.sender, &association.receiver];
        let any = |test: &dyn Fn(&SideOutcome) -> bool| u64::from(sides.iter().any(|s| test(s)));
        let any_path = |test: &dyn Fn(&PathCounts) -> bool| {
            any(&|side| side.paths.iter().any(|path| test(&path.counts)))
        };
        let any_link = |test: &dyn Fn(&LinkCounters) -> bool| {
            u64::from(outcome.links.iter().any(|link| test(&link.counts)))
        };
        let closed = |reason: &str| any(&|side| side.close.as_deref() == Some(reason));
        self.complete += u64::from(association.complete);
        self.path_failures += any_path(&|path| path.failures > 0);
        self.failures_of_all_paths +=
            any(&|s| !s.paths.is_empty() && s.paths.iter().all(|p| p.counts.failures > 0));
        self.fast_retransmissions += any_path(&|path| path.fast_retransmissions > 0);
        self.timeouts += any_path(&|path| path.timeouts > 0);
        self.heartbeats_lost += any_path(&|path| path.heartbeats_lost > 0);
        self.duplicates += any(&|side| side.counts.duplicates_received > 0);
        self.bad_checksums +=
            u64::from(outcome.endpoints.iter().any(|e| e.counts.bad_checksum > 0));
        self.full_queues += any_link(&|link| link.dropped_queue > 0);
        self.reordered += any_link(&|link| link.reordered > 0);
        let background = |test: &dyn Fn(&LinkCounters) -> bool| {
            u64::from(outcome.links.iter().any(|link| test(&link.background)))
        };
        self.background += background(&|link| link.delivered > 0);
        self.background_dropped += background(&|link| link.dropped_queue > 0);
        let flows = [&association.forward, &association.back];
        self.abandoned += u64::from(flows.iter().any(|flow| flow.messages_abandoned > 0));
        let removed = |change: &&PathChange| change.to.as_deref() == Some("removed");
        self.addresses_gone += u64::from(association.changes.iter().any(|c| removed(&c)));
        // A new path has the number of the removed one.
        let back = |n: usize| {
            let gone = &association.changes[n];
            let after = &association.changes[n..];
            removed(&gone)
                && after.iter().any(|c| {
                    (c.side == gone.side && c.path == gone.path)
                        && c.from.as_deref() == Some("unconfirmed")
                })
        };
        self.addresses_back += u64::from((0..association.changes.len()).any(back));
        self.no_buffer += any(&|side| side.counts.dropped_no_buffer > 0);
        self.unreachable += closed("peer-unreachable");
        self.no_answer += closed("no-answer");
        self.blackouts += u64::from(!association.forward.blackouts.is_empty());
    }

    /// Checks that events were frequent enough: a test without failing paths shows nothing about
    /// failing paths.
    ///
    /// # Errors
    /// The event that happened in too few of `cases` cases.
    pub fn check(&self, cases: u64) -> Result<(), String> {
        // Some outages cannot be survived, but most cases must complete.
        if self.complete * 10 < cases * 8 {
            return Err(format!("too few complete: {self:?}"));
        }
        match self.all().iter().find(|(_, n)| n * 1000 < cases) {
            Some((what, n)) => Err(format!("{what} in {n} of {cases} cases only: {self:?}")),
            None => Ok(()),
        }
    }
}
