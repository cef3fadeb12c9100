//! What an association may hold, and how much work a packet may cause, whoever sends it.
//!
//! **Memory.** Windows and buffers count payload and chunk headers, so that they agree with what a peer
//! counts (RFC 9260 6.2.1). Small messages take more memory than that: bookkeeping, and what the allocator
//! adds. The account here counts both, in bytes that are allocated, spare capacity included, and nothing is taken
//! beyond [`receive_limit`] and [`send_limit`]. With messages of a packet's size neither is ever
//! reached before the buffer is full. What one step may take beyond (a container that grows, a message that is
//! cut into chunks) keeps the whole below twice the buffers; see [`most_memory`].
//!
//! **Work.** An operation is a look at something that is held and stays held: a chunk, a run of fragments, a
//! gap block. What takes a thing away for good was paid for when it came, and is not counted; neither is
//! finding it in a sorted structure. See [`most_work`].

use crate::Config;
use crate::receive::BLOCK;

/// Bytes for each entry of a B-tree: a node has room for eleven and holds five at least, and above each six
/// leaves stands another node.
pub(crate) const fn tree(entry: usize) -> usize {
    entry * 13 / 5 + 8
}

/// What the allocator adds to a small piece of memory, at most.
const ALLOCATION: usize = 32;

/// Memory of a payload of its own. One that was joined may have spare capacity.
pub(crate) const fn payload(len: usize) -> usize {
    if len < BLOCK / 16 { len + ALLOCATION } else { len + len / 4 }
}

/// A run of TSNs above a gap.
pub(crate) const GAP_RUN: usize = tree(16);
/// A run of fragments: its place, its fields, the header of its payload.
pub(crate) const RUN: usize = tree(8 + crate::receive::RUN_SIZE) + 2 * ALLOCATION;
/// A message that came too early, in both of its indices.
pub(crate) const EARLY: usize = tree(16 + crate::receive::PIECE_SIZE) + tree(24);
/// A message of I-DATA chunks of which something is missing.
pub(crate) const INCOMPLETE: usize = tree(8 + 72);
/// The first node of the tree of its fragments, and its place among the messages that can be handed over in part.
pub(crate) const FRAGMENTS: usize = 11 * 48 + ALLOCATION + tree(16);
/// One of its fragments, known above a gap.
pub(crate) const FRAGMENT: usize = tree(48) + tree(24) + ALLOCATION;
/// Messages for which there is spare memory in the queue of those that are ready.
pub(crate) const SPARE_SLOTS: usize = 1024;

/// Blocks of payload: as many as the receive buffer fills, with what is wasted at their ends.
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

/// A message that waits to be sent, with its place in the scheduler's order.
pub(crate) const QUEUED: usize = 2 * crate::send::QUEUED_SIZE + 2 * 16 + ALLOCATION;
/// A chunk that is not cumulatively acknowledged: in the ring, among what its path has sent, among what is
/// lost, and in the lists of what a SACK acknowledges and finds missing.
pub(crate) const OUTSTANDING: usize = 2 * crate::send::OUTSTANDING_SIZE + 2 * 8 + tree(8) + 96;
/// What both need more if the message may be given up.
pub(crate) const PARTIAL: usize = crate::send::PARTIAL_SIZE + ALLOCATION + tree(24);
/// A ring of so many chunks keeps its memory.
pub(crate) const SPARE_CHUNKS: usize = 1024;
/// An event that waits to be taken, the first ones aside.
pub(crate) const EVENT: usize = 2 * size_of::<crate::Event>();
/// Events that the peer can cause without end: no more than this wait.
pub(crate) const MOST_EVENTS: usize = 256;

/// What the smallest buffers need beside it.
pub(crate) const LEAST: usize = 16 * 1024;

/// What the next chunk in sequence may take beyond [`receive_limit`] where the receiver has promised to keep what
/// came above it: otherwise promises that fill the memory would keep that chunk out for ever.
pub(crate) const BEYOND_PROMISES: usize = 4 * LEAST;

/// Memory of what is received, up to which more is taken.
pub(crate) const fn receive_limit(receive_buffer: usize) -> usize {
    receive_buffer + receive_buffer / 4 * 3 + LEAST
}

/// Memory of gaps, up to which there may be more of them.
pub(crate) const fn gaps(receive_buffer: usize) -> usize {
    receive_buffer / 4 + LEAST
}

/// Memory of what is to be sent, up to which messages are taken.
pub(crate) const fn send_limit(send_buffer: usize) -> usize {
    send_buffer + send_buffer / 2 + LEAST
}

/// Memory that an association may hold at any time: twice its buffers and the message that was taken as a
/// whole, what its streams' numbers and a message begun on each of them take, and 512 KiB for all that does not
/// grow: the last datagram, control chunks and events that wait, spare memory of queues.
pub(crate) fn most_memory(config: &Config, largest_message: usize) -> usize {
    let buffers = config.receive_buffer() as usize + config.send_buffer() as usize;
    let streams = (160 + INCOMPLETE) * usize::from(config.inbound_streams())
        + 192 * usize::from(config.outbound_streams());
    2 * (buffers + largest_message) + streams + (512 << 10)
}

/// Operations that a packet of so many bytes may cause while so many chunks are outstanding: a few for each
/// chunk that has room in it; and one SACK, which RFC 9260 6.2.1 and 7.2.4 want compared with everything
/// that is outstanding.
pub(crate) const fn most_work(packet: usize, outstanding: usize) -> u64 {
    256 + 4 * packet as u64 + 4 * outstanding as u64
}
