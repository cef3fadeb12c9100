//! The protocol, driven by its five verbs: one file for each procedure. One program, because linking one is faster than
//! linking twenty.

mod acknowledgement;
mod cmt_pf;
mod collisions;
mod common;
mod congestion;
mod credit;
mod data;
mod delay_aware;
mod determinism;
mod ecn;
mod error_counts;
mod error_model;
mod establishment;
mod failover;
mod failover_dormant;
mod failover_early;
mod failover_model;
mod floods;
mod hostile;
mod immediate;
mod interleaving;
mod measuring;
mod nr_sack;
mod ns2_recovery;
mod partial_reliability;
mod partial_resets;
mod path_mtu;
mod paths;
mod reconfiguration;
mod retransmissions;
mod shutdown;
mod stream_schedulers;
mod tags;
mod timers;
mod zero_checksum;
