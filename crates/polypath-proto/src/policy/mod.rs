//! The decisions that the papers are about: one trait for each decision, one file for each policy.
//!
//! | decision | trait | policies |
//! |---|---|---|
//! | which path takes a retransmission? | [`RetransmissionPolicy`] | [`retransmission::ANSWERS`] |
//! | when is a chunk lost? | [`LossDetector`] | [`loss::ANSWERS`] |
//! | how does a window grow and shrink? | [`CongestionController`] | [`congestion::ANSWERS`] |
//! | when may an acknowledgement make it grow? | [`CwndUpdate`] | [`cwnd_update::ANSWERS`] |
//! | which path carries new data? | [`Scheduler`] | [`scheduler::ANSWERS`] |
//! | when does a path fail and recover? | [`FailoverPolicy`] | [`failover::ANSWERS`] |
//! | when is a SACK sent, and on which path? | [`AckPolicy`] | [`ack::ANSWERS`] |
//! | which chunks measure the round-trip time? | [`RttSampling`] | [`rtt_sampling::ANSWERS`] |
//! | which stream's message is sent next? | [`StreamScheduler`] | [`stream_scheduler::ANSWERS`] |
//! | when is a path probed? | [`ProbingPolicy`] | [`probing::ANSWERS`] |
//!
//! A policy gets one context or event and a read-only view of the paths and returns a decision. It
//! may keep state, but it never changes the association, and it takes time and randomness only from
//! its arguments.
//!
//! To add a policy, write one file and list it in its module's `ANSWERS`. The command line,
//! scenario files and the Python package show these lists.

use std::fmt;

pub mod ack;
pub mod congestion;
pub mod cwnd_update;
pub mod failover;
pub mod loss;
pub mod probing;
pub mod retransmission;
pub mod rtt_sampling;
pub mod scheduler;
pub mod stream_scheduler;

use crate::constants::Constants;

pub use crate::constants::Thresholds;
pub use crate::path::{PathState, PathView, PathsView, Window};
pub use ack::AckPolicy;
pub use congestion::CongestionController;
pub use cwnd_update::CwndUpdate;
pub use failover::FailoverPolicy;
pub use loss::LossDetector;
pub use probing::ProbingPolicy;
pub use retransmission::RetransmissionPolicy;
pub use rtt_sampling::RttSampling;
pub use scheduler::Scheduler;
pub use stream_scheduler::StreamScheduler;

/// A named policy for one decision.
pub struct Answer<T: ?Sized> {
    /// Its name on the command line and in scenario files.
    pub name: &'static str,
    /// What it does and its source (RFC or paper, and section), in one line.
    pub summary: &'static str,
    /// Makes the policy for an association.
    pub make: fn(&Setup<'_>) -> Box<T>,
}

/// What the policies of an association are made from. The policies of ns-2's SCTP module also
/// depend on two other policies.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Setup<'a> {
    /// The constants.
    pub constants: &'a Constants,
    /// The policy that chooses the paths for new data.
    pub scheduler: &'static Answer<dyn Scheduler>,
    /// The policy that probes paths.
    pub probing: &'static Answer<dyn ProbingPolicy>,
}

impl<T: ?Sized> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The name identifies a policy.
impl<T: ?Sized> PartialEq for Answer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Finds the policy with this name in a list such as [`loss::ANSWERS`].
pub fn find<T: ?Sized>(answers: &[&'static Answer<T>], name: &str) -> Option<&'static Answer<T>> {
    answers.iter().find(|a| a.name == name).copied()
}
