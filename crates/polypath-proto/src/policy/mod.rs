//! The decisions that the papers are about: one seam each, one file for each answer.
//!
//! | decision | seam | answers |
//! |---|---|---|
//! | where does a retransmission go? | [`RetransmissionPolicy`] | [`retransmission::ANSWERS`] |
//! | when is a chunk lost? | [`LossDetector`] | [`loss::ANSWERS`] |
//! | how does a window grow and shrink? | [`CongestionController`] | [`congestion::ANSWERS`] |
//! | when may an acknowledgement make it grow? | [`CwndUpdate`] | [`cwnd_update::ANSWERS`] |
//! | which path takes new data? | [`Scheduler`] | [`scheduler::ANSWERS`] |
//! | when is a path given up, and taken back? | [`FailoverPolicy`] | [`failover::ANSWERS`] |
//! | when is an acknowledgement sent, and where? | [`AckPolicy`] | [`ack::ANSWERS`] |
//! | what is a sample of the round-trip time? | [`RttSampling`] | [`rtt_sampling::ANSWERS`] |
//! | which stream's message leaves next? | [`StreamScheduler`] | [`stream_scheduler::ANSWERS`] |
//! | when is a path probed? | [`ProbingPolicy`] | [`probing::ANSWERS`] |
//!
//! A policy gets one context or event and a read-only view of the paths and returns a decision. It
//! may keep notes of its own, but it never changes the association, reads a clock or draws
//! randomness other than from what it is handed.
//!
//! To add an answer: write one file, name it in the list of its seam. The lists are what the command
//! line, scenario files and the Python package show.

use std::fmt;

pub mod ack;
mod combinations;
pub mod congestion;
pub mod cwnd_update;
pub mod failover;
pub mod loss;
pub mod probing;
pub mod retransmission;
pub mod rtt_sampling;
pub mod scheduler;
pub mod stream_scheduler;
mod view;

pub use ack::AckPolicy;
pub(crate) use combinations::{refused as refused_combination, refused_thresholds};
pub use congestion::CongestionController;
pub use cwnd_update::CwndUpdate;
pub use failover::{FailoverPolicy, Thresholds};
pub use loss::LossDetector;
pub use probing::ProbingPolicy;
pub use retransmission::RetransmissionPolicy;
pub use rtt_sampling::RttSampling;
pub use scheduler::Scheduler;
pub use stream_scheduler::StreamScheduler;
pub use view::{PathState, PathView, PathsView, Window};

/// One named answer to a decision.
pub struct Answer<T: ?Sized> {
    /// How the command line and scenario files call it.
    pub name: &'static str,
    /// Where it comes from (RFC and section, paper and section) and what it does, in one line.
    pub summary: &'static str,
    /// Makes one for an association.
    pub make: fn(&crate::Config) -> Box<T>,
}

impl<T: ?Sized> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The answer of this name in a seam's list.
pub fn find<T: ?Sized>(answers: &[&'static Answer<T>], name: &str) -> Option<&'static Answer<T>> {
    answers.iter().find(|a| a.name == name).copied()
}
