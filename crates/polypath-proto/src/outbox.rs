//! What waits to be sent besides data: control chunks, which wait for a packet on their path, and
//! complete packets in reply to others.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::ids::{PathId, StreamId, Tsn};
use crate::init::InitError;
use crate::reply::Reply;
use crate::time::Time;
use crate::transmit::FourTuple;
use crate::wire::{AddressRefusal, CauseWriter, DoesNotFit, Parameters};

/// A chunk for the next packet on a path.
#[derive(Debug)]
pub(crate) enum Control {
    Init,
    CookieEcho,
    /// With a HEARTBEAT in the same packet (RFC 9260 5.4).
    CookieEchoVerifying,
    CookieAck,
    CookieAckVerifying,
    Heartbeat,
    /// One of two HEARTBEATs sent back to back, each a full packet, so that nothing is bundled with
    /// it.
    PairedHeartbeat {
        second: bool,
    },
    /// A HEARTBEAT that fills a packet of this many bytes, common header included.
    Probe(usize),
    /// Answers an ECNE with this TSN.
    Cwr(Tsn),
    /// A HEARTBEAT of a probe for the path's MTU: the size of the packet in bytes, `None` for the
    /// small one, and the time at which the probe was begun.
    MtuProbe(Option<usize>, Time),
    HeartbeatAck(Bytes),
    /// A whole ASCONF chunk.
    Asconf(Bytes),
    /// The parameters of a RE-CONFIG chunk.
    Reconfig(Bytes),
    ForwardTsn,
    Error(OwnedCause),
    Shutdown,
    ShutdownAck,
    ShutdownComplete,
    Abort(Option<OwnedCause>),
}

impl Control {
    /// Whether the chunk may be sent to an UNCONFIRMED address (RFC 9260 5.4). RFC 5061 has its own
    /// rules for ASCONF.
    pub(crate) const fn verifies(&self) -> bool {
        matches!(
            self,
            Self::CookieEchoVerifying
                | Self::CookieAckVerifying
                | Self::Heartbeat
                | Self::PairedHeartbeat { .. }
                | Self::Probe(_)
                | Self::HeartbeatAck(_)
                | Self::Asconf(_)
        )
    }
}

/// An error cause that this side reports (RFC 9260 3.3.10).
#[derive(Clone, Debug)]
pub(crate) enum OwnedCause {
    InvalidStream(StreamId),
    UnrecognizedChunk(Bytes),
    UnrecognizedParameters(Bytes),
    CookieWhileShuttingDown,
    NoUserData(Tsn),
    UserAbort(Bytes),
    ProtocolViolation(&'static str),
    UnsupportedHmac(u16),
    AddressRefused(AddressRefusal, Bytes),
    Init(InitError),
}

impl OwnedCause {
    pub(crate) fn write(&self, c: &mut CauseWriter<'_>) -> Result<(), DoesNotFit> {
        match self {
            Self::InvalidStream(stream) => c.invalid_stream_identifier(*stream),
            Self::UnrecognizedChunk(raw) => c.unrecognized_chunk(raw),
            Self::UnrecognizedParameters(raw) => {
                c.unrecognized_parameters(|p| p.append(Parameters::new(raw)))
            }
            Self::CookieWhileShuttingDown => c.cookie_received_while_shutting_down(),
            Self::NoUserData(tsn) => c.no_user_data(*tsn),
            Self::UserAbort(reason) => c.user_initiated_abort(reason),
            Self::ProtocolViolation(what) => c.protocol_violation(what.as_bytes()),
            Self::AddressRefused(refusal, raw) => c.address_refused(*refusal, raw),
            Self::UnsupportedHmac(id) => c.unsupported_hmac(*id),
            Self::Init(error) => error.write(c),
        }
    }
}

impl Control {
    /// Bytes of memory beyond the chunk's own size.
    fn memory(&self) -> usize {
        match self {
            Self::HeartbeatAck(bytes) | Self::Asconf(bytes) | Self::Reconfig(bytes) => bytes.len(),
            Self::Error(cause) | Self::Abort(Some(cause)) => match cause {
                OwnedCause::UnrecognizedChunk(bytes)
                | OwnedCause::UnrecognizedParameters(bytes)
                | OwnedCause::UserAbort(bytes)
                | OwnedCause::AddressRefused(_, bytes) => bytes.len(),
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// Control chunks and replies in the order in which they are sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    replies: VecDeque<Reply>,
    next: VecDeque<(PathId, Control)>,
    /// Chunks that are sent after a retransmission.
    behind: VecDeque<(PathId, Control)>,
}

/// Most queued chunks; others are dropped, so that a peer that asks faster than packets are sent
/// takes no memory.
const MOST: usize = 64;
/// Most queued replies.
const MOST_REPLIES: usize = 64;
/// Most bytes of memory in use by the queued chunks.
const MOST_MEMORY: usize = 128 << 10;

impl Outbox {
    /// Queues a complete packet; false if too many wait already.
    pub(crate) fn reply(&mut self, four_tuple: FourTuple, packet: Vec<u8>) -> bool {
        let room = self.replies.len() < MOST_REPLIES;
        if room {
            self.replies.push_back(Reply { four_tuple, packet });
        }
        room
    }

    /// The next complete packet to send.
    pub(crate) fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    pub(crate) fn push(&mut self, path: PathId, control: Control) {
        let small = control.memory() == 0 || self.memory() + control.memory() <= MOST_MEMORY;
        if self.next.len() < MOST && small {
            self.next.push_back((path, control));
        }
    }

    /// Bytes of memory in use, beyond the queue itself.
    pub(crate) fn memory(&self) -> usize {
        self.next.iter().chain(&self.behind).map(|(_, control)| control.memory()).sum()
    }

    /// Queues a chunk unless one of its kind is queued already, for any path.
    pub(crate) fn push_once(&mut self, path: PathId, control: Control) {
        let kind = std::mem::discriminant(&control);
        if self.next.iter().all(|(_, waits)| std::mem::discriminant(waits) != kind) {
            self.push(path, control);
        }
    }

    /// Reports an unrecognized chunk: as much of it as fits the reply; the cause's length shows how
    /// much that is.
    pub(crate) fn report_unrecognized(&mut self, path: PathId, raw: &[u8]) {
        let raw = Bytes::copy_from_slice(&raw[..raw.len().min(256)]);
        self.push(path, Control::Error(OwnedCause::UnrecognizedChunk(raw)));
    }

    /// Queues a CWR for that path, or raises the TSN of the queued one: it answers all lower TSNs
    /// too.
    pub(crate) fn push_cwr(&mut self, path: PathId, tsn: Tsn) {
        let waiting = self.next.iter_mut().find_map(|(p, control)| match control {
            Control::Cwr(tsn) if *p == path => Some(tsn),
            _ => None,
        });
        match waiting {
            Some(waiting) if tsn.is_after(*waiting) => *waiting = tsn,
            Some(_) => {}
            None => self.push(path, Control::Cwr(tsn)),
        }
    }

    /// Number of chunks that wait for the next packets.
    pub(crate) fn len(&self) -> usize {
        self.next.len()
    }

    /// Joins two RE-CONFIG chunks for the same path into one, among those after the first `mark`
    /// chunks, where `may_join` allows it.
    pub(crate) fn join_reconfig(&mut self, mark: usize, may_join: impl Fn(&[u8], &[u8]) -> bool) {
        for at in (mark + 1..self.next.len()).rev() {
            let joined = match (self.next.get(at - 1), self.next.get(at)) {
                (Some((path, Control::Reconfig(a))), Some((other, Control::Reconfig(b)))) => {
                    (path == other && may_join(a, b))
                        .then(|| Bytes::from([&a[..], &b[..]].concat()))
                }
                _ => None,
            };
            if let (Some(joined), Some((_, first))) = (joined, self.next.get_mut(at - 1)) {
                *first = Control::Reconfig(joined);
                self.next.remove(at);
            }
        }
    }

    /// Queues a chunk to be sent after the retransmission that is about to be sent.
    pub(crate) fn push_behind(&mut self, path: PathId, control: Control) {
        if self.behind.len() < MOST {
            self.behind.push_back((path, control));
        }
    }

    /// Queues the chunks that waited for the retransmission, which has been sent or does not exist.
    /// Returns the path of the first.
    pub(crate) fn release(&mut self) -> Option<PathId> {
        let path = self.behind.front().map(|(path, _)| *path)?;
        self.next.append(&mut self.behind);
        Some(path)
    }

    pub(crate) fn front_path(&self) -> Option<PathId> {
        self.next.front().map(|(path, _)| *path)
    }

    pub(crate) fn front(&self) -> Option<&(PathId, Control)> {
        self.next.front()
    }

    /// Moves the first chunk to another path.
    pub(crate) fn redirect(&mut self, path: PathId) {
        if let Some((old, _)) = self.next.front_mut() {
            *old = path;
        }
    }

    /// Bytes of the queued reports of unrecognized parameters.
    pub(crate) fn len_of_errors(&self) -> usize {
        let lens = self.next.iter().map(|(_, control)| match control {
            // The headers of the chunk and of the cause; the parameters are padded already.
            Control::Error(OwnedCause::UnrecognizedParameters(raw)) => 4 + 4 + raw.len(),
            _ => 0,
        });
        lens.sum()
    }

    pub(crate) fn pop(&mut self) {
        self.next.pop_front();
    }

    /// Whether neither a control chunk nor a reply waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.next.is_empty() && self.replies.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.next.clear();
        self.behind.clear();
    }
}
