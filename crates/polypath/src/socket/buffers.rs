//! Receive buffers for one system call.

use std::net::SocketAddr;

use polypath_proto::{Ecn, FourTuple};

/// Bytes of one buffer: the largest UDP datagram, or several that the kernel has coalesced.
pub(super) const BUFFER: usize = 1 << 16;

/// Number of buffers: as many as `quinn-udp` fills at a time. Untouched memory costs nothing.
pub(super) const COUNT: usize = quinn_udp::BATCH_SIZE;

/// Filled by a socket, read by the driver. The sockets of an endpoint take turns with one instance.
pub(crate) struct ReceiveBuffers {
    storage: Box<[u8]>,
    filled: Vec<Option<Filled>>,
}

/// Description of one buffer's contents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filled {
    pub(super) four_tuple: FourTuple,
    pub(super) ecn: Ecn,
    /// Offset of the first SCTP packet in the buffer.
    pub(super) start: usize,
    /// Offset of the end of the last one.
    pub(super) end: usize,
    /// Size of each datagram except the last, in bytes.
    pub(super) stride: usize,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        Self {
            storage: vec![0; BUFFER * COUNT].into_boxed_slice(),
            filled: Vec::with_capacity(COUNT),
        }
    }

    pub(super) fn clear(&mut self) {
        self.filled.clear();
    }

    /// The memory, in pieces of [`BUFFER`] bytes.
    pub(super) fn storage(&mut self) -> &mut [u8] {
        &mut self.storage
    }

    /// Records the contents of the next buffer; `None` if it holds nothing useful.
    pub(super) fn push(&mut self, filled: Option<Filled>) {
        self.filled.push(filled);
    }

    /// Datagrams in all buffers.
    pub(super) fn datagrams(&self) -> usize {
        self.filled.iter().flatten().map(|f| (f.end - f.start).div_ceil(f.stride)).sum()
    }

    /// Whether more datagrams have probably arrived than those in the buffers: every buffer is
    /// filled, or they hold `many` bytes.
    pub(crate) fn suggest_more(&self, many: usize) -> bool {
        let bytes: usize = self.filled.iter().flatten().map(|f| f.end - f.start).sum();
        bytes >= many || self.filled.iter().all(Option::is_some)
    }

    /// The contents of each buffer, and their description.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&Filled, &[u8])> {
        self.storage.chunks(BUFFER).zip(&self.filled).filter_map(|(buffer, filled)| {
            let filled = filled.as_ref()?;
            Some((filled, &buffer[filled.start..filled.end]))
        })
    }

    /// One item for each buffer: its addresses, ECN and datagrams.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (FourTuple, Ecn, impl Iterator<Item = &[u8]>)> {
        self.pieces()
            .map(|(filled, piece)| (filled.four_tuple, filled.ecn, piece.chunks(filled.stride)))
    }
}

impl Filled {
    /// `None` if the buffer is empty.
    pub(super) fn new(
        (local, remote): (SocketAddr, SocketAddr),
        ecn: Ecn,
        (start, end): (usize, usize),
        stride: usize,
    ) -> Option<Self> {
        (start < end).then_some(Self {
            four_tuple: FourTuple { local, remote },
            ecn,
            start,
            end,
            stride: stride.max(1),
        })
    }
}
