//! Loss scripts: lose the n-th packet of all, or the n-th with a chunk of some type.

use std::collections::BTreeMap;

use polypath_proto::wire::chunk_type as ty;

/// Kind of packet that a script counts, in one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// Every packet, background packets included.
    Any,
    /// Packets with at least one DATA chunk.
    Data,
    /// Packets with a SACK.
    Sack,
    /// Packets with an INIT.
    Init,
    /// Packets with an INIT ACK.
    InitAck,
    /// Packets with a COOKIE ECHO.
    CookieEcho,
    /// Packets with a COOKIE ACK.
    CookieAck,
    /// Packets with a HEARTBEAT.
    Heartbeat,
    /// Packets with a HEARTBEAT ACK.
    HeartbeatAck,
    /// Packets with a SHUTDOWN.
    Shutdown,
    /// Packets with a SHUTDOWN ACK.
    ShutdownAck,
    /// Packets with a SHUTDOWN COMPLETE.
    ShutdownComplete,
    /// Packets with an ABORT.
    Abort,
    /// Packets with an ASCONF.
    Asconf,
    /// Packets with an ASCONF-ACK.
    AsconfAck,
}

impl PacketKind {
    /// All kinds with their names in scenario files, in the order of their declaration.
    pub(super) const NAMES: [(Self, &'static str); 15] = [
        (Self::Any, "packets"),
        (Self::Data, "data"),
        (Self::Sack, "sack"),
        (Self::Init, "init"),
        (Self::InitAck, "init_ack"),
        (Self::CookieEcho, "cookie_echo"),
        (Self::CookieAck, "cookie_ack"),
        (Self::Heartbeat, "heartbeat"),
        (Self::HeartbeatAck, "heartbeat_ack"),
        (Self::Shutdown, "shutdown"),
        (Self::ShutdownAck, "shutdown_ack"),
        (Self::ShutdownComplete, "shutdown_complete"),
        (Self::Abort, "abort"),
        (Self::Asconf, "asconf"),
        (Self::AsconfAck, "asconf_ack"),
    ];

    /// The kind of packets with a chunk of this type, if scripts count them.
    const fn of_chunk(chunk: u8) -> Option<Self> {
        Some(match chunk {
            ty::DATA => Self::Data,
            ty::SACK | ty::NR_SACK => Self::Sack,
            ty::INIT => Self::Init,
            ty::INIT_ACK => Self::InitAck,
            ty::COOKIE_ECHO => Self::CookieEcho,
            ty::COOKIE_ACK => Self::CookieAck,
            ty::HEARTBEAT => Self::Heartbeat,
            ty::HEARTBEAT_ACK => Self::HeartbeatAck,
            ty::SHUTDOWN => Self::Shutdown,
            ty::SHUTDOWN_ACK => Self::ShutdownAck,
            ty::SHUTDOWN_COMPLETE => Self::ShutdownComplete,
            ty::ABORT => Self::Abort,
            ty::ASCONF => Self::Asconf,
            ty::ASCONF_ACK => Self::AsconfAck,
            _ => return None,
        })
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Loses exactly the packets with these numbers. Numbers are counted from 1 for each kind, in the
/// order in which packets are offered to this direction of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LossScript {
    numbers: BTreeMap<PacketKind, Vec<u64>>,
}

impl LossScript {
    /// Loses the packets with these numbers, counting all packets.
    pub fn packets(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self::default().and(PacketKind::Any, numbers)
    }

    /// Also loses the packets with these numbers, counting packets of this kind.
    #[must_use]
    pub fn and(mut self, kind: PacketKind, numbers: impl IntoIterator<Item = u64>) -> Self {
        let list = self.numbers.entry(kind).or_default();
        list.extend(numbers);
        list.sort_unstable();
        list.dedup();
        self
    }

    /// Whether the script lists no kind of packet.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Maximum number of packets that the script loses.
    pub fn len(&self) -> usize {
        self.numbers.values().map(Vec::len).sum()
    }

    /// Sorted packet numbers of each kind in the script.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (PacketKind, &[u64])> {
        self.numbers.iter().map(|(&kind, numbers)| (kind, numbers.as_slice()))
    }

    /// Whether the script loses the packet that was counted last, which is of these kinds.
    pub(super) fn takes(&self, seen: &Seen, kinds: Kinds) -> bool {
        self.kinds().any(|(kind, numbers)| {
            kinds.0 & kind.bit() != 0 && numbers.binary_search(&seen.0[kind as usize]).is_ok()
        })
    }
}

/// The bits of the kinds of packets with a chunk of each type: scripts count every packet.
const BITS: [u16; 256] = {
    let mut bits = [0; 256];
    let mut chunk = 0;
    while chunk < bits.len() {
        if let Some(kind) = PacketKind::of_chunk(chunk as u8) {
            bits[chunk] = kind.bit();
        }
        chunk += 1;
    }
    bits
};

/// Set of the kinds of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds(u16);

/// Number of packets of each kind so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen([u64; PacketKind::NAMES.len()]);

impl Seen {
    /// Counts a packet once for each of its kinds, and returns them.
    #[inline]
    pub(super) fn count(&mut self, sctp: &[u8]) -> Kinds {
        let kinds = kinds_of(sctp);
        let mut rest = kinds.0;
        while rest != 0 {
            self.0[rest.trailing_zeros() as usize] += 1;
            rest &= rest - 1;
        }
        kinds
    }
}

/// RFC 9260 3: a common header of 12 bytes, then chunks with type, flags and length, padded to four
/// bytes. A truncated chunk is the last one counted.
#[inline]
fn kinds_of(sctp: &[u8]) -> Kinds {
    let mut kinds = PacketKind::Any.bit();
    let mut rest = sctp.get(12..).unwrap_or_default();
    while let [chunk, _, high, low, ..] = *rest {
        kinds |= BITS[usize::from(chunk)];
        let length = usize::from(u16::from_be_bytes([high, low])).max(4);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Kinds(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with chunks of these types and lengths.
    fn packet(chunks: &[(u8, u16)]) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        for &(chunk, length) in chunks {
            let start = bytes.len();
            bytes.extend_from_slice(&[chunk, 0]);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.resize(start + usize::from(length).next_multiple_of(4), 0xff);
        }
        bytes
    }

    #[test]
    fn the_names_are_in_the_order_of_the_kinds() {
        for (place, (kind, _)) in PacketKind::NAMES.iter().enumerate() {
            assert_eq!(*kind as usize, place);
        }
    }

    #[test]
    fn each_kind_is_counted_apart_and_once_a_packet() {
        let packets = [
            packet(&[(ty::INIT, 20)]),
            packet(&[(ty::SACK, 16), (ty::DATA, 17), (ty::DATA, 21)]),
            packet(&[(ty::SACK, 20)]),
            packet(&[(ty::DATA, 17)]),
            // A background packet, a truncated packet, and chunks with wrong lengths.
            Vec::new(),
            packet(&[(ty::DATA, 20)])[..15].to_vec(),
            [packet(&[]), vec![ty::HEARTBEAT, 0, 0, 0, ty::SACK, 0, 0xff, 0xff]].concat(),
        ];
        let lost = |script: LossScript| -> Vec<usize> {
            let mut seen = Seen::default();
            let taken = |bytes: &Vec<u8>| {
                let kinds = seen.count(bytes);
                script.takes(&seen, kinds)
            };
            packets
                .iter()
                .map(taken)
                .enumerate()
                .filter_map(|(n, lost)| lost.then_some(n))
                .collect()
        };
        assert_eq!(lost(LossScript::packets([5, 2, 2])), [1, 4]);
        assert_eq!(lost(LossScript::default().and(PacketKind::Data, [2])), [3]);
        assert_eq!(lost(LossScript::default().and(PacketKind::Sack, [2, 3])), [2, 6]);
        let both = LossScript::packets([1]).and(PacketKind::Data, [1]);
        assert_eq!(lost(both.and(PacketKind::Heartbeat, [1, 2])), [0, 1, 6]);
    }
}
