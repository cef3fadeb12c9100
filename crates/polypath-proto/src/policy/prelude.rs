//! What the source of a policy imports: `use polypath_proto::policy::prelude::*`.

pub use super::ack::{AckPolicy, AckTime, Arrival};
pub use super::congestion::{
    Congestion, CongestionController, Context, Loss, PathAck, Sent, Spurious,
};
pub use super::cwnd_update::CwndUpdate;
pub use super::entry::{Entry, Needs, Setting, Setup};
pub use super::failover::{FailoverPolicy, PathErrorKind};
pub use super::loss::{LossDetector, SackView};
pub use super::probing::ProbingPolicy;
pub use super::retransmission::{LossCause, LostChunk, RetransmissionPolicy};
pub use super::rtt_sampling::{AckedChunk, RttSampling, SackCause};
pub use super::scheduler::{HasRoom, NewData, Scheduler, Turn};
pub use super::stream_scheduler::StreamScheduler;
pub use crate::ids::{PathId, StreamId, Tsn};
pub use crate::path::{PathState, PathView, PathsView, Window};
pub use crate::rng::Rng;
pub use crate::time::Time;
