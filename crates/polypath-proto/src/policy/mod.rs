//! The decisions that the papers are about: one trait for each decision, one file for each policy.
//!
//! | decision | trait | policies |
//! |---|---|---|
//! | which path takes a retransmission? | [`RetransmissionPolicy`] | [`retransmission`] |
//! | when is a chunk lost? | [`LossDetector`] | [`loss`] |
//! | how does a window grow and shrink? | [`CongestionController`] | [`congestion`] |
//! | when may an acknowledgement make it grow? | [`CwndUpdate`] | [`cwnd_update`] |
//! | which path carries new data? | [`Scheduler`] | [`scheduler`] |
//! | when does a path fail and recover? | [`FailoverPolicy`] | [`failover`] |
//! | when is a SACK sent, and on which path? | [`AckPolicy`] | [`ack`] |
//! | which chunks measure the round-trip time? | [`RttSampling`] | [`rtt_sampling`] |
//! | which stream's message is sent next? | [`StreamScheduler`] | [`stream_scheduler`] |
//! | when is a path probed? | [`ProbingPolicy`] | [`probing`] |
//!
//! A policy gets one context or event and a read-only view of the paths and returns a decision. It
//! may keep state, but it never changes the association, and it takes time and randomness only from
//! its arguments.
//!
//! A policy of your own is an [`Entry`] that you add to a [`Registry`](crate::Registry): the
//! command line, scenarios, endpoints and the Python package take it from there. Its source imports
//! the [`prelude`]. The policies of this crate are listed in the `ENTRIES` of their modules.

pub mod ack;
pub mod congestion;
pub mod cwnd_update;
pub(crate) mod entry;
pub mod failover;
pub mod loss;
pub mod prelude;
pub mod probing;
pub mod retransmission;
pub mod rtt_sampling;
pub mod scheduler;
pub mod stream_scheduler;
pub mod testing;

pub use crate::constants::Thresholds;
pub use crate::path::{DeliverySample, LossSample, PathState, PathView, PathsView, Window};
pub use ack::AckPolicy;
pub use congestion::CongestionController;
pub use cwnd_update::CwndUpdate;
pub use entry::{Entry, Needs, Policy, Setting, Settings, Setup, find};
pub use failover::FailoverPolicy;
pub use loss::LossDetector;
pub use probing::ProbingPolicy;
pub use retransmission::RetransmissionPolicy;
pub use rtt_sampling::RttSampling;
pub use scheduler::Scheduler;
pub use stream_scheduler::StreamScheduler;
