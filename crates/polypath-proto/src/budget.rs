//! Limits on the memory of an association and on the work that one packet may cause.
//!
//! **Memory.** Windows and buffers count payload and chunk headers, so that both sides count alike
//! (RFC 9260 6.2.1). Small messages take more memory than that, for bookkeeping and allocator
//! overhead. [`Sending`](crate::send::Sending) and [`Receiving`](crate::receive::Receiving) account
//! for allocated bytes, spare capacity included, and do not accept data beyond limits of their own.
//! With messages of packet size, the buffer is full before either limit is reached. One step may
//! exceed the limits (a container grows, a message is cut into chunks), but the total stays below
//! twice the buffers; see [`most_memory`].
//!
//! **Work.** An operation is an access to stored state that remains stored: a chunk, a run of
//! fragments, a gap ack block. Removals are not counted, since each was paid for by an insertion;
//! nor are searches in a sorted structure. See [`most_work`].

use crate::config::Config;
use crate::event::Event;
use crate::receive::INCOMPLETE;

/// A queued event, apart from the first ones.
pub(crate) const EVENT: usize = 2 * size_of::<Event>();
/// Maximum number of queued events among those that the peer can cause without limit.
pub(crate) const MOST_EVENTS: usize = 256;

/// Maximum memory of an association: twice its `buffers` (their current sizes) and its largest
/// message, the sequence numbers of its streams and one incomplete message on each, and 512 KiB for
/// the parts of bounded size: the last datagram, queued control chunks and events, spare memory of
/// queues.
pub(crate) fn most_memory(config: &Config, buffers: usize, largest_message: usize) -> usize {
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
