//! Selective Acknowledgement (SACK), RFC 9260 3.3.4.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 3    |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! | Number of Gap Ack Blocks = N  |  Number of Duplicate TSNs = M |
//! +-------------------------------+-------------------------------+
//! |    Gap Ack Block #1 Start     |     Gap Ack Block #1 End      |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! |                        Duplicate TSN 1                        |
//! +---------------------------------------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```

use std::fmt;

use crate::ids::Tsn;

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, u16_at, u32_at};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, SACK_HEADER_LEN, chunk_type};

/// A run of TSNs received after a gap, as offsets from the cumulative TSN ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GapBlock {
    /// Offset of the first TSN of the run: 16 bits, or in a wide SACK 32.
    pub start: u32,
    /// Offset of the last TSN of the run. A peer may send one that is less than `start`.
    pub end: u32,
}

impl GapBlock {
    /// The first TSN of the run.
    #[inline]
    pub fn first(self, cumulative_tsn_ack: Tsn) -> Tsn {
        cumulative_tsn_ack.plus(self.start)
    }

    /// The last TSN of the run.
    #[inline]
    pub fn last(self, cumulative_tsn_ack: Tsn) -> Tsn {
        cumulative_tsn_ack.plus(self.end)
    }

    /// Whether the block starts after the cumulative TSN ack and does not end before its start.
    #[inline]
    pub const fn is_sound(self) -> bool {
        0 < self.start && self.start <= self.end
    }

    #[inline]
    pub(super) const fn from_bytes([s0, s1, e0, e1]: [u8; 4]) -> Self {
        let (start, end) = ([0, 0, s0, s1], [0, 0, e0, e1]);
        Self { start: u32::from_be_bytes(start), end: u32::from_be_bytes(end) }
    }

    /// One word, or the two of a wide SACK.
    #[inline]
    pub(super) fn from_words(words: &[[u8; 4]]) -> Self {
        match *words {
            [start, end] => Self { start: u32::from_be_bytes(start), end: u32::from_be_bytes(end) },
            _ => words.first().map_or(Self { start: 0, end: 0 }, |block| Self::from_bytes(*block)),
        }
    }

    #[inline]
    pub(super) const fn to_bytes(self) -> [u8; 4] {
        let ([_, _, s0, s1], [_, _, e0, e1]) = (self.start.to_be_bytes(), self.end.to_be_bytes());
        [s0, s1, e0, e1]
    }
}

/// A SACK chunk, or an NR-SACK chunk, which has a second list of gap ack blocks.
///
/// The gap ack blocks are those that the peer sent: neither their order nor their bounds are
/// checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sack<'a> {
    /// The last TSN before the first gap.
    pub cumulative_tsn_ack: Tsn,
    /// Free receive buffer in bytes.
    pub a_rwnd: u32,
    /// Chunk flags; reserved in RFC 9260.
    pub flags: u8,
    /// Whether two words of `gaps` are a block.
    pub(super) wide: bool,
    pub(super) gaps: &'a [[u8; 4]],
    pub(super) nr_gaps: &'a [[u8; 4]],
    pub(super) duplicates: &'a [[u8; 4]],
}

impl<'a> Sack<'a> {
    /// The R bit of the chunk flags, between peers that agreed on it: a packet with retransmissions
    /// caused this SACK (Caro 2006, retransmission policies, 4.2). RFC 9260 reserves all flags; the
    /// R bit of DATA is at the same position.
    pub const RETRANSMISSION: u8 = super::data::RETRANSMISSION;

    /// The bit of the chunk flags that shows, between peers that agreed on it, that gap ack blocks
    /// were left out, not only above the last one: the SACK shows nothing about chunks outside of
    /// its blocks.
    pub const PARTIAL: u8 = 0x20;

    /// Whether the flags show that gap ack blocks were left out.
    #[inline]
    pub const fn is_partial(&self) -> bool {
        self.flags & Self::PARTIAL != 0
    }

    /// The bit of the chunk flags that shows, between peers that agreed on it, that the offsets of
    /// the gap ack blocks have 32 bits. The number of gap ack blocks then counts words, of which a
    /// block has two, so that the chunk has the right length for all others, too.
    pub const WIDE: u8 = 0x08;

    /// The SACK as peers read it that have agreed on wide ones.
    #[must_use]
    pub const fn read_wide(self) -> Self {
        Self { wide: self.flags & Self::WIDE != 0, ..self }
    }

    /// The two bits of the chunk flags that count packets with DATA, between peers that agreed on
    /// it: the packets that this SACK acknowledges (Iyengar 2006, DAC), 3 for more. FreeBSD's stack
    /// uses the same bits.
    const PACKETS_SHIFT: u32 = 6;

    /// The flags that report `packets` packets with DATA.
    #[inline]
    pub const fn packets_flags(packets: u32) -> u8 {
        (if packets > 3 { 3 } else { packets as u8 }) << Self::PACKETS_SHIFT
    }

    /// The number of packets with DATA that the flags report.
    #[inline]
    pub const fn packets(&self) -> u32 {
        (self.flags >> Self::PACKETS_SHIFT) as u32
    }

    #[inline]
    pub(super) fn parse(raw: &'a [u8], flags: u8) -> Result<Self, ChunkError<'a>> {
        let Some((head, lists)) = raw.split_first_chunk::<SACK_HEADER_LEN>() else {
            let ty = chunk_type::SACK;
            return Err(ChunkError::TooShort { ty, minimum: SACK_HEADER_LEN, raw });
        };
        let (gaps, duplicates) = (u16_at(head, 12), u16_at(head, 14));
        let (words, _) = lists.as_chunks::<4>();
        let lists = words
            .split_at_checked(gaps.into())
            .and_then(|(gaps, rest)| Some((gaps, rest.get(..duplicates.into())?)));
        let Some((gaps, duplicates)) = lists else {
            return Err(ChunkError::SackCounts { gaps, duplicates, raw });
        };
        Ok(Self {
            cumulative_tsn_ack: Tsn(u32_at(head, 4)),
            a_rwnd: u32_at(head, 8),
            flags,
            wide: false,
            gaps,
            nr_gaps: &[],
            duplicates,
        })
    }

    /// The gap ack blocks, in the order of the chunk; in an NR-SACK, those that the receiver may
    /// still renege on.
    #[inline]
    pub fn gaps(
        &self,
    ) -> impl ExactSizeIterator<Item = GapBlock> + DoubleEndedIterator + Clone + use<'a> {
        self.gaps.chunks_exact(if self.wide { 2 } else { 1 }).map(GapBlock::from_words)
    }

    /// Bytes of the chunk, NR gap ack blocks included, as it is without duplicates.
    pub(crate) const fn chunk_len(&self) -> usize {
        SACK_HEADER_LEN + 4 * (self.gaps.len() + self.nr_gaps.len())
    }

    /// TSNs received more than once since the last SACK, in the order of the chunk; a TSN received
    /// three times is listed twice.
    #[inline]
    pub fn duplicates(
        &self,
    ) -> impl ExactSizeIterator<Item = Tsn> + DoubleEndedIterator + Clone + use<'a> {
        self.duplicates.iter().map(|&tsn| Tsn(u32::from_be_bytes(tsn)))
    }
}

/// Each flag has bits of its own.
const _: () = {
    let [r, partial, wide, packets] =
        [Sack::RETRANSMISSION, Sack::PARTIAL, Sack::WIDE, Sack::packets_flags(3)];
    assert!(r + partial + wide + packets == r ^ partial ^ wide ^ packets);
};

impl fmt::Debug for Sack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct List<I>(I);
        impl<I: Iterator<Item: fmt::Debug> + Clone> fmt::Debug for List<I> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.clone()).finish()
            }
        }
        f.debug_struct("Sack")
            .field("cumulative_tsn_ack", &self.cumulative_tsn_ack)
            .field("a_rwnd", &self.a_rwnd)
            .field("flags", &self.flags)
            .field("gaps", &List(self.gaps()))
            .field("nr_gaps", &List(self.nr_gaps()))
            .field("duplicates", &List(self.duplicates()))
            .finish()
    }
}

/// Writes items until the items or the words are exhausted, and returns the number of written
/// items.
#[inline]
pub(super) fn fill<T>(
    words: &mut [[u8; 4]],
    items: impl Iterator<Item = T>,
    bytes: fn(T) -> [u8; 4],
) -> u16 {
    let mut count = 0;
    let at_most = words.len().min(u16::MAX.into());
    for (word, item) in words.iter_mut().take(at_most).zip(items) {
        *word = bytes(item);
        count += 1;
    }
    count
}

impl PacketWriter<'_> {
    /// Writes a SACK chunk with as many gap ack blocks as fit, and then as many duplicates as fit.
    ///
    /// RFC 9260 6.2 requires as many gap ack blocks as fit into one SACK, so they precede the
    /// duplicates.
    ///
    /// # Errors
    ///
    /// Not even the 16 bytes of the fixed part fit.
    #[inline]
    pub fn sack(
        &mut self,
        cumulative_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        gaps: impl Iterator<Item = GapBlock>,
        duplicates: impl Iterator<Item = Tsn>,
    ) -> Result<(), DoesNotFit> {
        let gaps = gaps.map(GapBlock::to_bytes);
        self.sack_of_words(cumulative_tsn_ack, a_rwnd, flags, (gaps, 1), duplicates)
    }

    /// Writes a SACK chunk whose gap ack blocks have offsets of 32 bits, for a peer that has agreed
    /// on it; the flag is added.
    ///
    /// # Errors
    ///
    /// Not even the 16 bytes of the fixed part fit.
    pub fn wide_sack(
        &mut self,
        cumulative_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        gaps: impl Iterator<Item = GapBlock>,
        duplicates: impl Iterator<Item = Tsn>,
    ) -> Result<(), DoesNotFit> {
        let words = gaps.flat_map(|block| [block.start, block.end].map(u32::to_be_bytes));
        self.sack_of_words(cumulative_tsn_ack, a_rwnd, flags | Sack::WIDE, (words, 2), duplicates)
    }

    /// Writes a SACK chunk; `per_block` of the words in `gaps` are a block.
    #[inline]
    fn sack_of_words(
        &mut self,
        cumulative_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        (gaps, per_block): (impl Iterator<Item = [u8; 4]>, usize),
        duplicates: impl Iterator<Item = Tsn>,
    ) -> Result<(), DoesNotFit> {
        const FIXED: usize = SACK_HEADER_LEN - CHUNK_HEADER_LEN;
        let (head, lists) = self.space()?.split_first_chunk_mut::<FIXED>().ok_or(DoesNotFit)?;
        let (words, _) = lists.as_chunks_mut::<4>();
        let whole = words.len() / per_block * per_block;
        let gap_count = fill(&mut words[..whole], gaps, |word| word);
        let words = words.get_mut(gap_count.into()..).unwrap_or_default();
        let duplicate_count = fill(words, duplicates, |tsn| tsn.0.to_be_bytes());
        let [t0, t1, t2, t3] = cumulative_tsn_ack.0.to_be_bytes();
        let [w0, w1, w2, w3] = a_rwnd.to_be_bytes();
        let [g0, g1] = gap_count.to_be_bytes();
        let [d0, d1] = duplicate_count.to_be_bytes();
        *head = [t0, t1, t2, t3, w0, w1, w2, w3, g0, g1, d0, d1];
        let len = FIXED + 4 * (usize::from(gap_count) + usize::from(duplicate_count));
        self.reserve(chunk_type::SACK, flags, len)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, chunk_bytes_in, only_chunk, writes};
    use super::*;

    const BYTES: [u8; 28] = [
        3, 1, 0, 28, 0, 0, 0, 10, 0, 0, 0x20, 0, 0, 2, 0, 1, // fixed part
        0, 2, 0, 3, 0, 5, 1, 0, // two gap ack blocks
        0, 0, 0, 9, // one duplicate
    ];

    const GAPS: [GapBlock; 2] = [GapBlock { start: 2, end: 3 }, GapBlock { start: 5, end: 256 }];

    fn write(w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        w.sack(Tsn(10), 0x2000, 1, GAPS.into_iter(), [Tsn(9)].into_iter())
    }

    /// A block of a wide SACK takes two words. Of three words that are left, one block fits.
    #[test]
    fn wide_bytes() {
        let far =
            [GapBlock { start: 2, end: 0x1_0000 }, GapBlock { start: 0x1_0002, end: 0x2_0000 }];
        let bytes: [u8; 36] = [
            3, 0x09, 0, 36, 0, 0, 0, 10, 0, 0, 0x20, 0, 0, 4, 0, 1, // fixed part
            0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0, 2, 0, 2, 0, 0, // two gap ack blocks
            0, 0, 0, 9, // one duplicate
        ];
        let write = |w: &mut PacketWriter<'_>| {
            w.wide_sack(Tsn(10), 0x2000, 1, far.into_iter(), [Tsn(9)].into_iter())
        };
        assert_eq!(chunk_bytes(write), bytes);
        let Ok(Chunk::Sack(sack)) = only_chunk(&bytes) else { panic!("no SACK") };
        assert_eq!(sack.gaps().len(), 4, "to others these are four blocks");
        let sack = sack.read_wide();
        assert!(sack.gaps().eq(far) && sack.all_gaps().eq(far) && sack.duplicates().eq([Tsn(9)]));
        assert_eq!(chunk_bytes(|w| w.chunk(&Chunk::Sack(sack))), bytes);
        let short = chunk_bytes_in(SACK_HEADER_LEN + 12, write).unwrap();
        let Ok(Chunk::Sack(sack)) = only_chunk(&short) else { panic!("no SACK") };
        assert!(sack.read_wide().gaps().eq([far[0]]) && sack.duplicates().eq([Tsn(9)]));
    }

    #[test]
    fn bytes() {
        assert_eq!(chunk_bytes(write), BYTES);
        let Ok(Chunk::Sack(sack)) = only_chunk(&BYTES) else { panic!("no SACK") };
        assert_eq!((sack.cumulative_tsn_ack, sack.a_rwnd, sack.flags), (Tsn(10), 0x2000, 1));
        assert!(sack.gaps().eq(GAPS));
        assert_eq!(sack.gaps().len(), 2);
        assert!(sack.duplicates().eq([Tsn(9)]));
        assert_eq!(
            format!("{sack:?}"),
            "Sack { cumulative_tsn_ack: Tsn(10), a_rwnd: 8192, flags: 1, \
             gaps: [GapBlock { start: 2, end: 3 }, GapBlock { start: 5, end: 256 }], nr_gaps: [], \
             duplicates: [Tsn(9)] }"
        );
    }

    #[test]
    fn packets_in_the_flags() {
        for (packets, told) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)] {
            let flags = Sack::packets_flags(packets) | Sack::RETRANSMISSION;
            let bytes = chunk_bytes(|w| w.sack(Tsn(1), 0, flags, [].into_iter(), [].into_iter()));
            let Ok(Chunk::Sack(sack)) = only_chunk(&bytes) else { panic!("no SACK") };
            assert_eq!(sack.packets(), told);
            assert_ne!(sack.flags & Sack::RETRANSMISSION, 0);
        }
    }

    #[test]
    fn gap_block() {
        assert_eq!(GAPS[0].first(Tsn(u32::MAX)), Tsn(1));
        assert_eq!(GAPS[0].last(Tsn(u32::MAX)), Tsn(2));
        assert!(GAPS[0].is_sound());
        assert!(!GapBlock { start: 0, end: 3 }.is_sound());
        assert!(!GapBlock { start: 4, end: 3 }.is_sound());
    }

    #[test]
    fn counts_that_lie() {
        for (gaps, duplicates) in [(4, 0), (2, 2), (0, 4), (u16::MAX, u16::MAX)] {
            let mut bytes = BYTES;
            bytes[12..14].copy_from_slice(&gaps.to_be_bytes());
            bytes[14..16].copy_from_slice(&duplicates.to_be_bytes());
            assert_eq!(
                only_chunk(&bytes),
                Err(ChunkError::SackCounts { gaps, duplicates, raw: &bytes })
            );
        }
    }

    #[test]
    fn shorter_than_its_fixed_part() {
        let bytes = [3, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];
        let raw = &bytes;
        assert_eq!(only_chunk(&bytes), Err(ChunkError::TooShort { ty: 3, minimum: 16, raw }));
    }

    #[test]
    fn writes_what_fits() {
        assert!(!writes(15, write));
        for (room, gaps, duplicates) in [(16, 0, 0), (20, 1, 0), (24, 2, 0), (27, 2, 0), (28, 2, 1)]
        {
            let bytes = chunk_bytes_in(room, write).unwrap();
            assert_eq!(bytes.len(), room & !3);
            let Ok(Chunk::Sack(sack)) = only_chunk(&bytes) else { panic!("no SACK") };
            assert_eq!((sack.gaps().len(), sack.duplicates().len()), (gaps, duplicates));
        }
    }

    #[test]
    fn writes_what_a_chunk_can_hold() {
        let endless = || std::iter::repeat(GAPS[0]);
        let bytes =
            chunk_bytes_in(300_000, |w| w.sack(Tsn(0), 0, 0, endless(), std::iter::repeat(Tsn(1))))
                .unwrap();
        assert_eq!(bytes.len(), 65_532);
        let Ok(Chunk::Sack(sack)) = only_chunk(&bytes) else { panic!("no SACK") };
        assert_eq!((sack.gaps().len(), sack.duplicates().len()), (16_379, 0));
    }
}
