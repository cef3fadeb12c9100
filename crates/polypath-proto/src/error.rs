//! Errors of the operations that the application starts.

use thiserror::Error;

use crate::constants::ConfigError;
use crate::ids::{PathId, StreamId};

/// Why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer is full; try again after [`Event::Writable`](crate::Event::Writable).
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
    /// The peer allows fewer streams.
    #[error("stream {stream} does not exist, the association has {streams} outgoing streams")]
    NoSuchStream {
        /// The requested stream.
        stream: StreamId,
        /// Number of outgoing streams.
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
    /// One side has not offered stream reconfiguration (`stream_reconfiguration`).
    #[error("the two sides have not agreed on stream reconfiguration")]
    NotAgreed,
    /// The association is not established, or is shutting down.
    #[error("the association is not established")]
    NotEstablished,
    /// A local request, or one that answers the peer's, is outstanding; RFC 6525 5.1.1 allows only
    /// one. An event reports its result.
    #[error("another request is in progress")]
    InProgress,
    /// There is no such stream in that direction.
    #[error("stream {stream} does not exist, there are {streams}")]
    NoSuchStream {
        /// The requested stream.
        stream: StreamId,
        /// Number of streams in that direction.
        streams: u16,
    },
    /// The list does not fit a packet; an empty list selects all streams.
    #[error("{listed} streams are listed, at most {max} fit a request; an empty list is all")]
    TooMany {
        /// Number of listed streams.
        listed: usize,
        /// The limit.
        max: usize,
    },
    /// No stream would be added, or the total would exceed 65535.
    #[error("{added} streams cannot be added to {streams}")]
    NotSoMany {
        /// Requested number of additional streams.
        added: u16,
        /// Current number of streams.
        streams: u16,
    },
}

/// Why a change of addresses was not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The two sides have not agreed on dynamic addresses (`dynamic_addresses`), or the peer has
    /// turned out not to support this change.
    #[error("the two sides have not agreed on addresses that come and go")]
    NotAgreed,
    /// Not a known local address.
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
    /// The failover policy cannot use these thresholds.
    #[error(transparent)]
    Thresholds(#[from] ConfigError),
}
