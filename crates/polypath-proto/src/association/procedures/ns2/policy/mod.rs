//! ns-2's policies, and its versions of others: where its SCTP module decides differently, its
//! sender makes these in place of the policies of the same name.
//!
//! The module's variables and classes select the policies:
//!
//! | policy | ns-2 |
//! |---|---|
//! | `retransmission` same, alternate, hybrid | rtxToAlt_ 0, 1, 2 |
//! | `retransmission` asap, ssthresh, loss-rate, cwnd | eCmtRtxPolicy_ 0, 2, 3, 4 |
//! | `loss` multiple-fast-retransmit | Agent/SCTP/MultipleFastRtx |
//! | `loss` split-fast-retransmit | useCmtReordering_, useCmtDelAck_ |
//! | `cwnd_update` cuc-v2 | useCmtCwnd_ |
//! | `scheduler` concurrent | SctpCMTAgent::SendMuch |
//! | `failover` dormant-hop, dormant-primary | dormantAction_ 0 (the default), 1 |
//! | `failover` dormant-last-dest | dormantAction_ 2 |
//! | `failover` permanent | changePrimaryThresh_ |
//! | `failover` cmt-potentially-failed | useCmtPF_, cmtPFCwnd_ |
//! | `ack` delayed-cmt | useCmtDelAck_ |
//! | `rtt_sampling` timestamps | Agent/SCTP/Timestamp |
//! | `probing` after-rto | Agent/SCTP/HbAfterRto |
//!
//! `set-destination-lossrate` sets the loss rates for loss-rate. Of equal paths, asap takes the
//! earlier one if the random number is odd, all others the later one. changePrimaryThresh_ is
//! compared with the primary's error count. In the dormant state of dormant-hop only
//! retransmissions rotate over the paths. HbAfterRto sends the HEARTBEAT only if the next
//! destination is another one, active or not: otherwise the retransmission probes this path.

use crate::policy::entry::Replacement;
use crate::policy::{
    ack as acks, congestion as controllers, cwnd_update as updates, failover as failovers,
    loss as detectors, scheduler as schedulers,
};

mod ack;
mod congestion;
mod cwnd_update;
mod failover;
mod loss;
mod scheduler;

pub use ack::ACK;
pub use congestion::CONGESTION;
pub(super) use congestion::counts_acknowledged;
pub use cwnd_update::CWND_UPDATE;
pub(super) use cwnd_update::pseudo_cumulative;
pub use loss::LOSS;
pub(super) use loss::bar_from_fast_retransmission;

/// The versions of the module.
pub(super) static REPLACEMENTS: &[Replacement] = &[
    Replacement::new(&CONGESTION, &congestion::COUNTED),
    Replacement::new(&controllers::COUPLED, &congestion::COUPLED),
    Replacement::new(&controllers::RESOURCE_POOLING, &congestion::RESOURCE_POOLING),
    Replacement::new(&detectors::MULTIPLE_FAST_RETRANSMIT, &loss::MULTIPLE),
    Replacement::new(&detectors::SPLIT_FAST_RETRANSMIT, &loss::SPLIT),
    Replacement::new(&detectors::SPLIT_MULTIPLE_FAST_RETRANSMIT, &loss::SPLIT_MULTIPLE),
    Replacement::new(&updates::CUC, &cwnd_update::CUC),
    Replacement::new(&updates::CUC_V2, &cwnd_update::CUC_V2),
    Replacement::new(&acks::DELAYED_CMT, &ack::DELAYED_CMT),
    Replacement::new(&failovers::STANDARD, &failover::STANDARD),
    Replacement::new(&failovers::DORMANT_HOP, &failover::DORMANT_HOP),
    Replacement::new(&failovers::DORMANT_PRIMARY, &failover::DORMANT_PRIMARY),
    Replacement::new(&failovers::DORMANT_LAST_DEST, &failover::DORMANT_LAST_DEST),
    Replacement::new(&failovers::CMT_POTENTIALLY_FAILED, &failover::CMT_POTENTIALLY_FAILED),
    Replacement::new(&schedulers::DELAY_AWARE, &scheduler::DELAY_AWARE),
];
