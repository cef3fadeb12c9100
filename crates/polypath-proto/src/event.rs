//! Events that an association reports to the application (RFC 9260 11.2), and messages.

use std::fmt;

use bytes::Bytes;

use crate::constants::Delivery;
use crate::ids::{Mid, PathId, Ppid, StreamId, Tsn};
use crate::path::PathState;
use crate::reliability::Reliability;
use crate::time::Time;

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete: data can flow in both directions (RFC 9260 11.2.4, COMMUNICATION
    /// UP).
    Established {
        /// The peer opened the association.
        inbound: bool,
    },
    /// [`recv`](crate::Association::recv) has a new message (RFC 9260 11.2.1, DATA ARRIVE). One
    /// event may announce several messages, but a message that becomes ready after the last event
    /// was taken causes another event.
    Readable,
    /// The send buffer has room again after a send was refused.
    Writable,
    /// The peer's SCTP has acknowledged all data given to `send`.
    Drained,
    /// A message will not be sent, or not retransmitted (RFC 9260 11.2.2, SEND FAILURE;
    /// SCTP_SEND_FAILED_EVENT, RFC 6458 6.1.11): it was abandoned according to its
    /// [`Reliability`], or it was given to `send` before the association was established, for a
    /// stream that the peer does not allow.
    SendFailed {
        /// Stream of the message.
        stream: StreamId,
        /// Payload protocol identifier.
        ppid: Ppid,
        /// [`Message::context`].
        context: u32,
        /// Whether the message was unordered.
        unordered: bool,
        /// Payload size in bytes.
        bytes: usize,
        /// The message was sent at least in part (SCTP_DATA_SENT): the peer may have it.
        sent: bool,
    },
    /// The association has a new path.
    PathAdded {
        /// The new path.
        path: PathId,
    },
    /// The peer has answered the ASCONF for a local address (RFC 5061).
    LocalAddress {
        /// The address.
        address: std::net::IpAddr,
        /// The requested change.
        change: AddressChange,
        /// Whether the peer granted it.
        granted: bool,
    },
    /// A path changed its state (RFC 9260 11.2.3, NETWORK STATUS CHANGE).
    PathState {
        /// The path.
        path: PathId,
        /// The previous state.
        from: PathState,
        /// The new state.
        to: PathState,
        /// Time of the change.
        at: Time,
    },
    /// New data uses another path from now on.
    CurrentPath {
        /// The path for new data.
        path: PathId,
        /// Time of the change.
        at: Time,
    },
    /// Another path became the primary.
    PrimaryChanged {
        /// The new primary.
        path: PathId,
    },
    /// The peer has answered a HEARTBEAT on an unconfirmed path with an ABORT: it does not know the
    /// source address that it sees (behind a NAT, or not listed). The association remains up.
    PathRefused {
        /// The path.
        path: PathId,
    },
    /// The peer restarted (RFC 9260 5.2, 11.2.7): data that it had not acknowledged is lost.
    Restarted,
    /// The sequence numbers of streams restart, or the local request for that failed (RFC 6525
    /// 6.1.1, `SCTP_STREAM_RESET_EVENT`).
    StreamsReset {
        /// Whether these are the peer's streams instead of the local ones.
        incoming: bool,
        /// The streams; empty for all.
        streams: Vec<StreamId>,
        /// Result of the request.
        outcome: Reconfigured,
    },
    /// All sequence numbers restart in both directions, TSNs included, or the local request for
    /// that failed (RFC 6525 6.1.2, `SCTP_ASSOC_RESET_EVENT`).
    AssociationReset {
        /// Result of the request.
        outcome: Reconfigured,
        /// The first TSN that this side sends next, and that of the peer, if it was performed.
        tsns: Option<(Tsn, Tsn)>,
    },
    /// Streams were added, or the local request for that failed (RFC 6525 6.1.3,
    /// `SCTP_STREAM_CHANGE_EVENT`).
    StreamsAdded {
        /// Whether these are the peer's streams instead of the local ones.
        incoming: bool,
        /// The new number of streams.
        streams: u16,
        /// Result of the request.
        outcome: Reconfigured,
    },
    /// The peer reported an error that does not end the association (RFC 9260 11.2.6, COMMUNICATION
    /// ERROR).
    PeerError {
        /// The error in words.
        cause: String,
        /// The bytes of the causes, at most 256 of them.
        causes: Bytes,
    },
    /// The peer authenticates its chunks with another key than before (SCTP_AUTH_NEW_KEY, RFC 6458
    /// 6.1.8).
    AuthKeyUsed {
        /// Number of the key.
        key: u16,
    },
    /// The peer has started the shutdown: it sends no new data (RFC 9260 9.2).
    PeerShutdown,
    /// The peer has aborted the association with these error causes (RFC 9260 3.3.10), as its ABORT
    /// has them. [`Closed`](Self::Closed) follows.
    PeerAborted {
        /// The bytes of the causes; empty if there are none.
        causes: Bytes,
    },
    /// The association has ended (RFC 9260 11.2.5 and 11.2.8: COMMUNICATION LOST, SHUTDOWN
    /// COMPLETE). This is its last event.
    Closed(CloseReason),
}

/// Result of a request to reset or add streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfigured {
    /// The peer performed it.
    Performed,
    /// The peer denied it.
    Denied,
    /// The peer could not perform it, because another request is in progress or for another reason;
    /// the application may try again.
    Failed,
}

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Orderly shutdown: all data was delivered (RFC 9260 9.2).
    Graceful,
    /// This side aborted.
    LocalAbort,
    /// The peer aborted.
    PeerAbort {
        /// The error causes in words; empty if the peer gave none.
        cause: String,
    },
    /// No answer to INIT or COOKIE ECHO (RFC 9260 4, 5.1).
    NoAnswer,
    /// Too many consecutive errors over all paths (RFC 9260 8.1).
    PeerUnreachable,
    /// The peer did not finish the shutdown in time (RFC 9260 9.2, T5-shutdown-guard).
    ShutdownTimeout,
    /// The peer violated the protocol.
    ProtocolViolation {
        /// The violation.
        what: &'static str,
    },
    /// The network reports that the peer does not support SCTP (ICMP unreachable, RFC 9260 10).
    Unreachable {
        /// The ICMP error.
        what: &'static str,
    },
}

impl CloseReason {
    /// Whether all data given to `send` has reached the peer's SCTP.
    pub const fn is_graceful(&self) -> bool {
        matches!(self, Self::Graceful)
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Graceful => f.write_str("closed gracefully"),
            Self::LocalAbort => f.write_str("aborted by this side"),
            Self::PeerAbort { cause } if cause.is_empty() => {
                f.write_str("aborted by the peer without a reason")
            }
            Self::PeerAbort { cause } => write!(f, "aborted by the peer: {cause}"),
            Self::NoAnswer => f.write_str("no answer from the peer"),
            Self::PeerUnreachable => f.write_str("the peer can no longer be reached over any path"),
            Self::ShutdownTimeout => f.write_str("the peer did not finish the shutdown in time"),
            Self::ProtocolViolation { what } => write!(f, "the peer broke the protocol: {what}"),
            Self::Unreachable { what } => write!(f, "the peer cannot be reached: {what}"),
        }
    }
}

/// A change of a local address at the peer (RFC 5061).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// The peer has added the address.
    Added,
    /// The peer has deleted the address.
    Deleted,
    /// The peer sends to the address as long as it works.
    Primary,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Stream to send on.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: Ppid,
    /// Deliver the message as soon as it is complete, unordered (RFC 9260 6.6).
    pub unordered: bool,
    /// Limit on the effort to deliver the message.
    pub reliability: Reliability,
    /// Application context, which [`Event::SendFailed`] repeats (snd_context, RFC 6458 5.3.4).
    pub context: u32,
    /// Request an acknowledgement without delay (SCTP_SACK_IMMEDIATELY, RFC 7053 5).
    pub sack_immediately: bool,
    /// How the message is sent; `None` as its stream.
    pub delivery: Option<Delivery>,
    /// The payload; at least one byte.
    pub payload: Bytes,
}

impl Message {
    /// An ordered, reliable message with payload protocol identifier 0.
    pub fn new(stream: StreamId, payload: impl Into<Bytes>) -> Self {
        Self {
            stream,
            ppid: Ppid(0),
            unordered: false,
            reliability: Reliability::Reliable,
            context: 0,
            sack_immediately: false,
            delivery: None,
            payload: payload.into(),
        }
    }
}

/// A received message, or a piece of a message larger than half the receive buffer (partial
/// delivery, RFC 9260 6.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Stream of the message.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: Ppid,
    /// It was sent unordered.
    pub unordered: bool,
    /// Its number among the ordered or among the unordered messages of its stream: the message
    /// identifier (RFC 8260 2.1), or the stream sequence number (rcv_ssn, RFC 6458 5.3.5; 0 if
    /// unordered). All pieces of a message have the same number. With interleaving, pieces of
    /// several messages may alternate; complete unordered messages may always be delivered between
    /// pieces.
    pub mid: Mid,
    /// The message starts with this piece.
    pub beginning: bool,
    /// The message ends with this piece; `beginning && end` is a whole message.
    pub end: bool,
    /// The sender has abandoned the message: its earlier pieces are void, and no further piece
    /// follows (SCTP_PARTIAL_DELIVERY_ABORTED, RFC 6458 6.1.7). This piece is empty, and its `end`
    /// is false.
    pub aborted: bool,
    /// The TSN of its first chunk (rcv_tsn, RFC 6458 5.3.5); undefined if `aborted`.
    pub tsn: Tsn,
    /// The cumulative TSN when the application took it: everything up to this TSN has arrived
    /// (rcv_cumtsn).
    pub cumulative_tsn: Tsn,
    /// The payload.
    pub payload: Bytes,
}

/// A message, or the part of one, that the peer had not acknowledged when the association ended or
/// the peer restarted (RFC 9260 11.1.14, 11.1.15: RECEIVE_UNSENT, RECEIVE_UNACKED).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Stream of the message.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: Ppid,
    /// [`Message::context`].
    pub context: u32,
    /// Whether the message was unordered.
    pub unordered: bool,
    /// The message starts with this part.
    pub beginning: bool,
    /// The message ends with this part.
    pub end: bool,
    /// It was sent at least in part (SCTP_DATA_SENT, RFC 6458 6.1.11): the peer may have it.
    pub sent: bool,
    /// The payload.
    pub payload: Bytes,
}
