//! What the association tells its user.

use std::fmt;

use bytes::Bytes;

use crate::{Mid, PathId, PathState, Ppid, Reliability, StreamId, Time};

/// Something that the application may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The association can carry data in both directions.
    Established {
        /// The peer asked for it.
        inbound: bool,
    },
    /// [`recv`](crate::Association::recv) has something new. One event may stand for many messages,
    /// but none becomes ready after the last event was taken without another one.
    Readable,
    /// The send buffer has room again after a send was refused.
    Writable,
    /// Everything that was given to `send` has been acknowledged by the peer's SCTP.
    Drained,
    /// A message will not be sent, or not again (SCTP_SEND_FAILED_EVENT, RFC 6458 6.1.11): it was given
    /// up as its [`Reliability`] says, or it was given to `send` before the association was
    /// established, on a stream that the peer turned out not to have.
    SendFailed {
        /// Its stream.
        stream: StreamId,
        /// Its mark.
        ppid: Ppid,
        /// What the application gave with it.
        context: u32,
        /// It was to be delivered in no order.
        unordered: bool,
        /// Its payload bytes.
        bytes: usize,
        /// A part of it, or all, has been sent (SCTP_DATA_SENT): the peer may have it.
        sent: bool,
    },
    /// A path became known.
    PathAdded {
        /// The new path.
        path: PathId,
    },
    /// The peer has answered what it was told of a local address (RFC 5061).
    LocalAddress {
        /// The address.
        address: std::net::IpAddr,
        /// What was to become of it.
        change: AddressChange,
        /// The peer has agreed.
        granted: bool,
    },
    /// A path changed its state.
    PathState {
        /// The path.
        path: PathId,
        /// Its state before.
        from: PathState,
        /// Its state now.
        to: PathState,
        /// When it changed.
        at: Time,
    },
    /// New data goes to another path from now on.
    CurrentPath {
        /// The path that takes new data.
        path: PathId,
        /// When it changed.
        at: Time,
    },
    /// Another path became the primary.
    PrimaryChanged {
        /// The new primary.
        path: PathId,
    },
    /// The peer has answered a heartbeat of an unconfirmed path with an ABORT: it does not know the
    /// address that it sees us with there (behind a NAT, or not listed). The association goes on.
    PathRefused {
        /// The path.
        path: PathId,
    },
    /// The peer restarted (RFC 9260 5.2): what was not acknowledged before is lost.
    Restarted,
    /// The sequence numbers of streams begin anew, or this side's request for that was refused
    /// (RFC 6525 6.1.1, `SCTP_STREAM_RESET_EVENT`).
    StreamsReset {
        /// Streams of the peer, not of this side.
        incoming: bool,
        /// The streams; all if there is none.
        streams: Vec<StreamId>,
        /// What became of it.
        outcome: Reconfigured,
    },
    /// All sequence numbers begin anew in both directions, TSNs included, or this side's request for
    /// that was refused (RFC 6525 6.1.2, `SCTP_ASSOC_RESET_EVENT`).
    AssociationReset {
        /// What became of it.
        outcome: Reconfigured,
    },
    /// There are more streams, or this side's request for that was refused (RFC 6525 6.1.3,
    /// `SCTP_STREAM_CHANGE_EVENT`).
    StreamsAdded {
        /// Streams of the peer, not of this side.
        incoming: bool,
        /// How many there are of them now.
        streams: u16,
        /// What became of it.
        outcome: Reconfigured,
    },
    /// The peer reported an error and the association goes on.
    PeerError {
        /// The error in words.
        cause: String,
    },
    /// The peer sends nothing new any more and waits for what is outstanding (RFC 9260 9.2).
    PeerShutdown,
    /// The association is over. The last event.
    Closed(CloseReason),
}

/// What became of a request to reset or add streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfigured {
    /// It was done.
    Performed,
    /// The peer does not want it.
    Denied,
    /// The peer could not, as it is in the middle of another one or for another reason; it may be tried
    /// again.
    Failed,
}

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both sides agreed; all data was delivered (RFC 9260 9.2).
    Graceful,
    /// This side aborted.
    LocalAbort,
    /// The peer aborted, with its reason in words.
    PeerAbort {
        /// The error causes in words; empty if the peer gave none.
        cause: String,
    },
    /// No answer to INIT or COOKIE ECHO (RFC 9260 4, 5.1).
    NoAnswer,
    /// Too many errors in a row over all paths (RFC 9260 8.1).
    PeerUnreachable,
    /// The peer did not finish the shutdown in time (RFC 9260 9.2, T5-shutdown-guard).
    ShutdownTimeout,
    /// The peer broke the protocol.
    ProtocolViolation {
        /// What it did.
        what: &'static str,
    },
    /// The network says that nothing speaks SCTP there (ICMP unreachable, RFC 9260 10).
    Unreachable {
        /// What the network said.
        what: &'static str,
    },
}

impl CloseReason {
    /// All that was given to `send` has reached the peer's SCTP.
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

/// What becomes of a local address at the peer (RFC 5061).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// The peer knows it.
    Added,
    /// The peer forgets it.
    Deleted,
    /// The peer sends to it, as long as it works.
    Primary,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Stream to send on.
    pub stream: StreamId,
    /// The application's mark.
    pub ppid: Ppid,
    /// Deliver as soon as complete, in no order (RFC 9260 6.6).
    pub unordered: bool,
    /// How long it is worth sending.
    pub reliability: Reliability,
    /// The application's note, which [`Event::SendFailed`] repeats (snd_context, RFC 6458 5.3.4).
    pub context: u32,
    /// Ask the peer to acknowledge it without delay (SCTP_SACK_IMMEDIATELY, RFC 7053 5).
    pub sack_immediately: bool,
    /// The bytes; at least one.
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
            payload: payload.into(),
        }
    }
}

/// A message received, or a piece of one that takes more than half the receive buffer
/// (partial delivery, RFC 9260 6.9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Stream that it came on.
    pub stream: StreamId,
    /// The sender's mark.
    pub ppid: Ppid,
    /// It was sent unordered.
    pub unordered: bool,
    /// Its number among the ordered or among the unordered messages of its stream: the message identifier
    /// (RFC 8260 2.1), or the stream sequence number (rcv_ssn, RFC 6458 5.3.5; 0 if unordered). Pieces
    /// of one message agree in it; where messages are interleaved, those of several may come by turns, and whole
    /// unordered ones may always come between.
    pub mid: Mid,
    /// The message starts with this piece.
    pub beginning: bool,
    /// The message ends with this piece; `beginning && end` is a whole message.
    pub end: bool,
    /// The sender has given the message up: what came of it is void, and nothing more will come
    /// (SCTP_PARTIAL_DELIVERY_ABORTED, RFC 6458 6.1.7). The piece is empty and no `end`.
    pub aborted: bool,
    /// The bytes.
    pub payload: Bytes,
}
