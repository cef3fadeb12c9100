//! One error for each operation that the application starts.

use thiserror::Error;

use crate::{ConfigError, PathId, StreamId};

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`](crate::Event::Writable) tells when to try again.
    #[error("the send buffer is full")]
    WouldBlock,
    /// Messages have at least one byte (RFC 9260 3.3.1).
    #[error("a message has at least one byte")]
    Empty,
    /// Larger than `max_message_size`.
    #[error("the message has {size} bytes, but at most {max} are allowed")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// The limit.
        max: usize,
    },
    /// The peer takes fewer streams.
    #[error("stream {stream} does not exist, the association has {streams} outgoing streams")]
    NoSuchStream {
        /// The stream asked for.
        stream: StreamId,
        /// How many there are.
        streams: u16,
    },
    /// The association is shutting down or closed.
    #[error("the association is closing or closed")]
    Closed,
}

/// Why streams cannot be reset or added now (RFC 6525).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReconfigError {
    /// One side has not offered it (`stream_reconfiguration`).
    #[error("the two sides have not agreed on stream reconfiguration")]
    NotAgreed,
    /// The association is not established, or is shutting down.
    #[error("the association is not established")]
    NotEstablished,
    /// A request is on its way, of this side or one that answers the peer's; RFC 6525 5.1.1 allows no
    /// second one. Its event tells when it has ended.
    #[error("another request is in progress")]
    InProgress,
    /// There is no such stream in that direction.
    #[error("stream {stream} does not exist, there are {streams}")]
    NoSuchStream {
        /// The stream asked for.
        stream: StreamId,
        /// How many there are.
        streams: u16,
    },
    /// The list does not fit a packet; an empty one stands for all.
    #[error("{listed} streams are listed, at most {max} fit a request; an empty list is all")]
    TooMany {
        /// How many are listed.
        listed: usize,
        /// The limit.
        max: usize,
    },
    /// No stream would be added, or there would be more than 65535.
    #[error("{added} streams cannot be added to {streams}")]
    NotSoMany {
        /// Streams to be added.
        added: u16,
        /// Streams that there are.
        streams: u16,
    },
}

/// Why a change of addresses was not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The two sides have not agreed on addresses that come and go (`dynamic_addresses`), or the peer
    /// turned out not to understand this.
    #[error("the two sides have not agreed on addresses that come and go")]
    NotAgreed,
    /// It is none of this host's addresses, as far as the endpoint has been told.
    #[error("{0} is no local address of the association")]
    NoSuchAddress(std::net::IpAddr),
}

/// Why a connection could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address of the peer was given.
    #[error("no address of the peer was given")]
    NoAddress,
    /// The SCTP port of the peer or of this endpoint is 0 (RFC 9260 3.1).
    #[error("SCTP port 0 cannot be used")]
    NoPort,
    /// No local address has the family of any of the peer's addresses.
    #[error("no local address can reach the peer's addresses (IPv4 and IPv6 do not mix)")]
    NoPath,
    /// An association with this peer exists (RFC 9260 10.1, ASSOCIATE).
    #[error("an association with this peer exists already")]
    Exists,
    /// `max_associations` are in use.
    #[error("all {max} associations that the endpoint may have are in use")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

/// Why a path operation was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// There is no such path.
    #[error("there is no path {0}")]
    NoSuchPath(PathId),
    /// The path has not been confirmed yet (RFC 9260 5.4).
    #[error("path {0} is not confirmed yet")]
    Unconfirmed(PathId),
    /// The association is not established.
    #[error("the association is not established")]
    NotEstablished,
    /// The failover mechanism has no use for such thresholds.
    #[error(transparent)]
    Thresholds(#[from] ConfigError),
}
