//! The error type of each operation.

use std::io;
use std::net::{IpAddr, SocketAddr};

use polypath_dtls::{IdentityError, Refusal};
use polypath_proto::{CloseReason, StreamId};
use thiserror::Error;

/// Reason why an endpoint was not created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The list of local addresses is empty.
    #[error("no local address was given")]
    NoAddress,
    /// Another socket has this address and port.
    #[error("UDP {address} is in use")]
    InUse {
        /// The local address and UDP port.
        address: SocketAddr,
    },
    /// No interface of this host has the address.
    #[error("{address} is not an address of this host")]
    NotLocal {
        /// The local address and UDP port (0 on raw IP).
        address: SocketAddr,
    },
    /// Raw IP sockets require privileges.
    #[error("raw IP sockets need the capability CAP_NET_RAW")]
    RawNotPermitted,
    /// Raw IP sockets are only supported on Linux, and in no network but the operating system's.
    #[error("raw IP sockets are not supported here")]
    RawNotSupported,
    /// No UDP port is free on all of the addresses.
    #[error("found no UDP port that is free on all local addresses")]
    NoCommonPort,
    /// No certificate was created.
    #[error("cannot create a certificate: {0}")]
    Identity(#[from] IdentityError),
    /// DTLS is only supported over UDP.
    #[error("IP protocol 132 carries no DTLS")]
    RawNotEncrypted,
    /// Encrypted packets do not show their SCTP port.
    #[error("an encrypted endpoint cannot share its UDP port")]
    SharedNotEncrypted,
    /// Any other socket error.
    #[error("cannot use {address}: {source}")]
    Socket {
        /// The local address and UDP port (0 on raw IP).
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The operating system provided no random bytes.
    #[error("no randomness from the operating system: {0}")]
    Randomness(getrandom::Error),
    /// An endpoint needs a tokio runtime.
    #[error("an endpoint can only be made inside of a tokio runtime")]
    NoRuntime,
}

/// Reason why a connection was not established.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The attempt could not be started.
    #[error(transparent)]
    Start(#[from] polypath_proto::ConnectError),
    /// A remote address was paired with a local address that the endpoint does not have.
    #[error("{local} is not among the endpoint's local addresses")]
    NotBound {
        /// The requested local address.
        local: IpAddr,
    },
    /// The attempt was started and failed.
    #[error("{0}")]
    Closed(CloseReason),
    /// The attempt was started, and no encrypted connection with the peer was established.
    #[error("{0}")]
    Refused(Refusal),
    /// The message to send with the handshake was not accepted.
    #[error("the first message was not accepted: {0}")]
    First(SendError),
    /// [`close`](crate::Endpoint::close) has been called, or the runtime has ended.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// Reason why a message was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The send buffer is full. Returned by [`try_send`](crate::Association::try_send) only.
    #[error("the send buffer is full")]
    WouldBlock,
    /// Messages have at least one byte (RFC 9260 3.3.1).
    #[error("a message has at least one byte")]
    Empty,
    /// The message is larger than `max_message_size`.
    #[error("the message has {size} bytes, but at most {max} are allowed")]
    TooLarge {
        /// Bytes of the message.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The association has fewer outgoing streams.
    #[error("stream {stream} does not exist, the association has {streams} outgoing streams")]
    NoSuchStream {
        /// The requested stream.
        stream: StreamId,
        /// Number of outgoing streams.
        streams: u16,
    },
    /// One of the sides has begun a graceful shutdown.
    #[error("the association is shutting down")]
    ShuttingDown,
    /// The association is over.
    #[error("{0}")]
    Closed(CloseReason),
}

/// The association is over, and was not shut down gracefully.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ClosedError(
    /// The reason.
    pub CloseReason,
);

impl From<ClosedError> for io::Error {
    fn from(error: ClosedError) -> Self {
        let kind = match error.0 {
            CloseReason::Graceful => io::ErrorKind::BrokenPipe,
            CloseReason::LocalAbort => io::ErrorKind::ConnectionAborted,
            CloseReason::PeerAbort { .. } => io::ErrorKind::ConnectionReset,
            CloseReason::NoAnswer | CloseReason::PeerUnreachable | CloseReason::ShutdownTimeout => {
                io::ErrorKind::TimedOut
            }
            CloseReason::ProtocolViolation { .. } => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::ConnectionRefused,
        };
        Self::new(kind, error)
    }
}
