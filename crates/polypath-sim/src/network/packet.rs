//! Packets under way, in buffers that are reused.

use std::net::SocketAddr;
use std::ops::Range;

use polypath_proto::{Ecn, Fragmentation};

use super::topology::NodeId;
use crate::wire;

/// A packet. Its SCTP bytes are real; its IP (and UDP) header is only a known size until it is
/// captured.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Source address; port 0 on raw IP.
    pub(crate) source: SocketAddr,
    /// Destination address; port 0 on raw IP.
    pub(crate) destination: SocketAddr,
    /// The node that has the destination address.
    pub(crate) to: NodeId,
    pub(crate) ecn: Ecn,
    pub(crate) fragmentation: Fragmentation,
    /// Whether the bytes are those that an endpoint has sent.
    pub(crate) intact: bool,
    /// Number of bytes of `buffer` that are used.
    pub(crate) len: usize,
    /// Bytes on the wire, with the headers in front of the SCTP packet; set when it is sent.
    pub(crate) wire_size: u32,
    pub(crate) buffer: Box<[u8]>,
}

impl Packet {
    /// The SCTP packet.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Measures the packet with its IP header, and its UDP header if it is encapsulated.
    #[inline]
    pub(crate) fn measure(&mut self) {
        let udp = if self.destination.port() == 0 { 0 } else { wire::UDP_HEADER };
        self.wire_size = wire::ip_header_size(self.destination.ip()) + udp + self.len as u32;
    }

    /// Replaces the bytes; the buffer grows if it is too small.
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        if self.buffer.len() < bytes.len() {
            self.buffer = vec![0; bytes.len()].into_boxed_slice();
        }
        self.len = bytes.len();
        self.buffer[..bytes.len()].copy_from_slice(bytes);
    }

    /// Inverts a bit of the SCTP packet.
    pub(crate) fn invert_bit(&mut self, bit: u32) {
        self.intact = false;
        self.buffer[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
    }
}

/// A packet of a [`PacketPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(u32);

impl PacketId {
    /// The packet with this index in its pool.
    pub(crate) const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// Index of the packet in the pool.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// All packets of a run. In the steady state nothing is allocated: buffers are reused.
#[derive(Debug)]
pub(crate) struct PacketPool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
    capacity: usize,
}

impl PacketPool {
    /// A pool whose buffers hold `capacity` bytes each.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { packets: Vec::new(), free: Vec::new(), capacity }
    }

    /// A packet to fill; its buffer has old contents.
    #[inline]
    pub(crate) fn take(&mut self) -> PacketId {
        self.free.pop().unwrap_or_else(|| self.grow())
    }

    #[cold]
    fn grow(&mut self) -> PacketId {
        let nobody = SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0);
        self.packets.push(Packet {
            source: nobody,
            destination: nobody,
            to: NodeId(0),
            ecn: Ecn::NotEct,
            fragmentation: Fragmentation::System,
            intact: true,
            len: 0,
            wire_size: 0,
            buffer: vec![0; self.capacity].into_boxed_slice(),
        });
        PacketId(self.packets.len() as u32 - 1)
    }

    /// Returns a packet to the pool.
    #[inline]
    pub(crate) fn give_back(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// A copy of a packet.
    pub(crate) fn copy(&mut self, id: PacketId) -> PacketId {
        self.copy_part(id, 0..self.get(id).len)
    }

    /// A packet with the same addresses and a part of the bytes.
    pub(crate) fn copy_part(&mut self, id: PacketId, bytes: Range<usize>) -> PacketId {
        let copy = self.take();
        // The two ids differ and both are valid: ids come from this pool only.
        let (from, to) = (id.0 as usize, copy.0 as usize);
        let (low, high) = self.packets.split_at_mut(from.max(to));
        let (original, copied) =
            if from < to { (&low[from], &mut high[0]) } else { (&high[0], &mut low[to]) };
        copied.fill(&original.buffer[bytes]);
        copied.source = original.source;
        copied.destination = original.destination;
        copied.to = original.to;
        copied.wire_size = original.wire_size;
        copied.ecn = original.ecn;
        copied.fragmentation = original.fragmentation;
        copied.intact = original.intact;
        copy
    }

    #[inline]
    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.0 as usize]
    }

    /// Number of packets in use.
    pub(crate) fn in_use(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_copies_are_apart() {
        let mut pool = PacketPool::new(64);
        let a = pool.take();
        pool.get_mut(a).len = 3;
        pool.get_mut(a).buffer[..3].copy_from_slice(&[1, 2, 3]);
        let b = pool.copy(a);
        pool.get_mut(b).invert_bit(8);
        assert_eq!(pool.get(a).bytes(), [1, 2, 3]);
        assert_eq!(pool.get(b).bytes(), [1, 0x82, 3]);
        assert!(pool.get(a).intact && !pool.get(b).intact);
        assert_eq!(pool.in_use(), 2);
        pool.give_back(a);
        let c = pool.copy(b);
        assert_eq!(c, a);
        assert_eq!(pool.get(c).bytes(), [1, 0x82, 3]);
    }
}
