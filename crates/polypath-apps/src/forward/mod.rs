//! Forwarding: TCP connections of two hosts over one association.
//!
//! Each connection has a stream of its own (with I-DATA, RFC 8260, none delays another), and its
//! own window: a side sends only as many bytes as the other has granted, so that a slow program
//! holds up its own connection and no other. Both directions of a connection end by themselves, as
//! those of TCP do.
//!
//! The client uses the even stream numbers above 0, the server the odd ones. A stream is used again
//! when both directions have ended.

pub mod client;
pub mod connection;
mod credit;
mod inbox;
mod message;
pub mod mux;
pub mod port;
pub mod pump;
pub mod rules;
pub mod server;
pub mod socks;

use polypath::proto::policy::stream_scheduler::{FIRST_COME, ROUND_ROBIN_PACKET};
use polypath::{Config, ConfigError};

use crate::consent::Service;

pub use message::{Failure, Target};

/// Why a connection is not forwarded.
#[derive(Debug)]
pub enum Problem<'a> {
    /// It cannot be connected to its target.
    NotConnected(&'a Target, Failure),
    /// Connections wait to be accepted, such as for too many open files.
    NotAccepted(&'a std::io::Error),
}

/// The forwarding protocol.
pub const FORWARD: Service = Service { name: "forward", version: 1, oldest: 1 };

/// Streams in each direction, so connections at a time.
const STREAMS: u16 = 4096;

/// The configuration with what forwarding needs: interleaved messages, a stream for each
/// connection, and a scheduler that serves all of them.
///
/// # Errors
///
/// The configuration excludes one of these.
pub fn config(config: &Config) -> Result<Config, ConfigError> {
    let builder = config.to_builder().interleaving(true);
    let builder = builder.outbound_streams(STREAMS).inbound_streams(STREAMS);
    // Unless another one than the default was chosen.
    if config.stream_scheduler().is(&FIRST_COME) {
        builder.stream_scheduler(&ROUND_ROBIN_PACKET).build()
    } else {
        builder.build()
    }
}
