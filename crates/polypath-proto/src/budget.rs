//! Limits on the memory of an association and on the work that one packet may cause.
//!
//! **Memory.** Windows and buffers count payload and chunk headers, so that both sides count alike
//! (RFC 9260 6.2.1). Small messages take more memory than that, for bookkeeping and allocator
//! overhead. This module accounts for allocated bytes, spare capacity included; data beyond
//! [`receive_limit`] and [`send_limit`] is not accepted. With messages of packet size, the buffer
//! is full before either limit is reached. One step may exceed the limits (a container grows, a
//! message is cut into chunks), but the total stays below twice the buffers; see [`most_memory`].
//!
//! **Work.** An operation is an access to stored state that remains stored: a chunk, a run of
//! fragments, a gap ack block. Removals are not counted, since each was paid for by an insertion;
//! nor are searches in a sorted structure. See [`most_work`].

use crate::Config;
use crate::receive::BLOCK;

/// Bytes for each entry of a B-tree: a node has room for eleven entries and holds at least five,
/// and every six leaves add an inner node.
pub(crate) const fn tree(entry: usize) -> usize {
    entry * 13 / 5 + 8
}

/// Upper bound of the allocator's overhead for a small allocation.
const ALLOCATION: usize = 32;

/// Memory of a separately allocated payload. A joined payload may have spare capacity.
pub(crate) const fn payload(len: usize) -> usize {
    if len < BLOCK / 16 { len + ALLOCATION } else { len + len / 4 }
}

/// A run of TSNs above a gap.
pub(crate) const GAP_RUN: usize = tree(16);
/// A run of fragments: its tree entry, its fields and the header of its payload.
pub(crate) const RUN: usize = tree(8 + crate::receive::RUN_SIZE) + 2 * ALLOCATION;
/// A message received ahead of its turn, in both of its indices.
pub(crate) const EARLY: usize = tree(16 + crate::receive::PIECE_SIZE) + tree(24);
/// An incomplete message of I-DATA chunks.
pub(crate) const INCOMPLETE: usize = tree(8 + 72);
/// The first node of an incomplete message's fragment tree, and its entry among the messages
/// eligible for partial delivery.
pub(crate) const FRAGMENTS: usize = 11 * 48 + ALLOCATION + tree(16);
/// A fragment of an incomplete message, also recorded above a gap.
pub(crate) const FRAGMENT: usize = tree(48) + tree(24) + ALLOCATION;
/// Number of messages for which the ready queue keeps spare memory.
pub(crate) const SPARE_SLOTS: usize = 1024;

/// Number of payload blocks that fill the receive buffer, including the space wasted at their ends.
pub(crate) const fn blocks(receive_buffer: usize) -> usize {
    let most = receive_buffer * 3 / 2 / BLOCK;
    if most > 16 {
        16
    } else if most == 0 {
        1
    } else {
        most
    }
}

/// A message waiting to be sent, with its entry in the scheduler's order.
pub(crate) const QUEUED: usize = 2 * crate::send::QUEUED_SIZE + 2 * 16 + ALLOCATION;
/// A chunk not yet cumulatively acknowledged: in the ring, in the list of its path, among the lost
/// chunks, and in the lists of chunks that a SACK acknowledges and reports missing.
pub(crate) const OUTSTANDING: usize = 2 * crate::send::OUTSTANDING_SIZE + 2 * 8 + tree(8) + 96;
/// Additional memory for each of these two if the message may be abandoned.
pub(crate) const PARTIAL: usize = crate::send::PARTIAL_SIZE + ALLOCATION + tree(24);
/// A ring for up to this number of chunks keeps its memory.
pub(crate) const SPARE_CHUNKS: usize = 1024;
/// A queued event, apart from the first ones.
pub(crate) const EVENT: usize = 2 * size_of::<crate::Event>();
/// Maximum number of queued events among those that the peer can cause without limit.
pub(crate) const MOST_EVENTS: usize = 256;

/// Additional memory that even the smallest buffers need.
pub(crate) const LEAST: usize = 16 * 1024;

/// Memory beyond [`receive_limit`] for the next chunk in sequence if the receiver has promised not
/// to renege on chunks above it: otherwise promises that fill the memory would exclude that chunk
/// for ever.
pub(crate) const BEYOND_PROMISES: usize = 4 * LEAST;

/// Limit on the memory of received data, up to which further data is accepted.
pub(crate) const fn receive_limit(receive_buffer: usize) -> usize {
    receive_buffer + receive_buffer / 4 * 3 + LEAST
}

/// Limit on the memory of gaps, up to which new gaps are accepted.
pub(crate) const fn gaps(receive_buffer: usize) -> usize {
    receive_buffer / 4 + LEAST
}

/// Limit on the memory of data to send, up to which messages are accepted.
pub(crate) const fn send_limit(send_buffer: usize) -> usize {
    send_buffer + send_buffer / 2 + LEAST
}

/// Maximum memory of an association: twice its buffers and its largest message, the sequence
/// numbers of its streams and one incomplete message on each, and 512 KiB for the parts of bounded
/// size: the last datagram, queued control chunks and events, spare memory of queues.
pub(crate) fn most_memory(config: &Config, largest_message: usize) -> usize {
    let buffers = config.receive_buffer() as usize + config.send_buffer() as usize;
    let streams = (160 + INCOMPLETE) * usize::from(config.inbound_streams())
        + 192 * usize::from(config.outbound_streams());
    2 * (buffers + largest_message) + streams + (512 << 10)
}

/// Maximum number of operations for a packet of `packet` bytes while `outstanding` chunks are
/// outstanding: a few for each chunk that fits the packet, and one SACK, which RFC 9260 6.2.1 and
/// 7.2.4 require to be compared with every outstanding chunk.
pub(crate) const fn most_work(packet: usize, outstanding: usize) -> u64 {
    256 + 4 * packet as u64 + 4 * outstanding as u64
}
