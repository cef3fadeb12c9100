//! Protocol tests that drive the sans-I/O endpoint, one file for each procedure. All are one test
//! binary, because linking one is faster than linking twenty.

mod acknowledgement;
mod adaptation_layer;
mod addresses;
mod authentication;
mod buffers;
mod cmt_pf;
mod collisions;
mod common;
mod congestion;
mod controller;
mod conversations;
mod cookies;
mod copies;
mod credit;
mod data;
mod delay_aware;
mod determinism;
mod early_data;
mod ecn;
mod error_counts;
mod error_model;
mod establishment;
mod extensions_off;
mod failover;
mod failover_dormant;
mod failover_early;
mod failover_model;
mod floods;
mod hostile;
mod icmp;
mod immediate;
mod interleaving;
mod measuring;
mod nr_sack;
#[cfg(feature = "ns2")]
mod ns2_recovery;
#[cfg(feature = "ns2")]
mod parameters;
mod partial_reliability;
mod partial_resets;
mod partial_sacks;
mod path_mtu;
mod paths;
mod reconfiguration;
mod recovery;
mod retransmissions;
mod shutdown;
mod stream_schedulers;
mod suspect;
mod tags;
mod takeover;
mod timers;
mod unconfirmed;
mod window_probes;
mod zero_checksum;
