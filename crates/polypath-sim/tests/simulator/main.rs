//! Whole simulated runs.

mod addresses;
mod associations;
mod cmt;
mod cross_traffic;
mod packets;
mod random_case;
mod random_networks;
mod receive_buffer;
mod retransmission;
mod runs;
mod shared_bottleneck;
