//! Whole simulated runs.

mod addresses;
mod associations;
mod cmt;
mod cross_traffic;
mod packets;
mod receive_buffer;
mod retransmission;
mod runs;
mod shared_bottleneck;
