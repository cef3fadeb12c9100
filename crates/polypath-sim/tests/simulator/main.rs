//! Whole simulated runs.

mod addresses;
mod associations;
mod cmt;
mod congestion;
mod cross_traffic;
mod messages;
mod modern;
mod nat;
mod own;
mod packets;
mod paths;
mod queues;
mod rack;
mod receive_buffer;
mod recovery;
mod retransmission;
mod runs;
mod shared_bottleneck;
mod standstill;
mod tcp;
