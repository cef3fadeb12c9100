//! Non-Renegable Selective Acknowledgement (NR-SACK): a SACK that reports the chunks on which the
//! receiver will not renege, so that the sender can free them.
//!
//! Sources: draft-natarajan-tsvwg-sctp-nrsack; draft-tuexen-tsvwg-sctp-multipath, which uses it for
//! concurrent multipath transfer. Type and format are those of FreeBSD's stack and usrsctp.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 0x10  |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! | Number of Gap Ack Blocks = N  | Number of NR Gap Ack Blocks=M |
//! +-------------------------------+-------------------------------+
//! |  Number of Duplicate TSNs = X |           Reserved            |
//! +-------------------------------+-------------------------------+
//! |    Gap Ack Block #1 Start     |     Gap Ack Block #1 End      |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +-------------------------------+-------------------------------+
//! |   NR Gap Ack Block #1 Start   |    NR Gap Ack Block #1 End    |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! |                        Duplicate TSN 1                        |
//! +---------------------------------------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```
//!
//! Versions of the drafts differ in whether the gap ack blocks repeat the NR gap ack blocks. Both
//! lists are acknowledged, so either version is read alike.

use crate::ids::Tsn;

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, u16_at, u32_at};
use super::sack::{GapBlock, Sack, fill};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// Bytes of an NR-SACK chunk without lists, the chunk header included.
const HEADER_LEN: usize = 20;

impl<'a> Sack<'a> {
    pub(super) fn parse_nr(raw: &'a [u8], flags: u8) -> Result<Self, ChunkError<'a>> {
        let Some((head, lists)) = raw.split_first_chunk::<HEADER_LEN>() else {
            let ty = chunk_type::NR_SACK;
            return Err(ChunkError::TooShort { ty, minimum: HEADER_LEN, raw });
        };
        let counts = [u16_at(head, 12), u16_at(head, 14), u16_at(head, 16)];
        let (words, _) = lists.as_chunks::<4>();
        let lists = words.split_at_checked(counts[0].into()).and_then(|(gaps, rest)| {
            let (nr_gaps, rest) = rest.split_at_checked(counts[1].into())?;
            Some((gaps, nr_gaps, rest.get(..counts[2].into())?))
        });
        let Some((gaps, nr_gaps, duplicates)) = lists else {
            return Err(ChunkError::NrSackCounts { counts, raw });
        };
        Ok(Self {
            cumulative_tsn_ack: Tsn(u32_at(head, 4)),
            a_rwnd: u32_at(head, 8),
            flags,
            wide: false,
            gaps,
            nr_gaps,
            duplicates,
        })
    }

    /// The gap ack blocks that the receiver will not renege on, in the order of the chunk; none in
    /// a SACK.
    #[inline]
    pub fn nr_gaps(
        &self,
    ) -> impl ExactSizeIterator<Item = GapBlock> + DoubleEndedIterator + Clone + use<'a> {
        self.nr_gaps.iter().map(|&block| GapBlock::from_bytes(block))
    }

    /// Both lists of gap ack blocks merged, in ascending order if each list is.
    #[inline]
    pub fn all_gaps(&self) -> impl Iterator<Item = GapBlock> + Clone + use<'a> {
        let words = if self.wide { 2 } else { 1 };
        let (mut gaps, mut nr_gaps) = (self.gaps, self.nr_gaps);
        std::iter::from_fn(move || {
            let next = gaps.get(..words).map(GapBlock::from_words);
            let next_nr = nr_gaps.first().map(|block| GapBlock::from_bytes(*block));
            let nr_first = match (next, next_nr) {
                (Some(a), Some(b)) => b.start < a.start,
                (a, _) => a.is_none(),
            };
            if nr_first {
                nr_gaps.split_off_first();
                return next_nr;
            }
            gaps = gaps.get(words..).unwrap_or_default();
            next
        })
    }
}

impl PacketWriter<'_> {
    /// Writes an NR-SACK chunk with as many of the gap ack blocks, the NR gap ack blocks and the
    /// duplicates as fit, in this order.
    ///
    /// # Errors
    ///
    /// Not even the 20 bytes of the fixed part fit.
    pub fn nr_sack(
        &mut self,
        cumulative_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        gaps: impl Iterator<Item = GapBlock>,
        nr_gaps: impl Iterator<Item = GapBlock>,
        duplicates: impl Iterator<Item = Tsn>,
    ) -> Result<(), DoesNotFit> {
        const FIXED: usize = HEADER_LEN - CHUNK_HEADER_LEN;
        let (head, lists) = self.space()?.split_first_chunk_mut::<FIXED>().ok_or(DoesNotFit)?;
        let (words, _) = lists.as_chunks_mut::<4>();
        let gap_count = fill(words, gaps, GapBlock::to_bytes);
        let words = words.get_mut(gap_count.into()..).unwrap_or_default();
        let nr_count = fill(words, nr_gaps, GapBlock::to_bytes);
        let words = words.get_mut(nr_count.into()..).unwrap_or_default();
        let duplicate_count = fill(words, duplicates, |tsn| tsn.0.to_be_bytes());
        head[..4].copy_from_slice(&cumulative_tsn_ack.0.to_be_bytes());
        head[4..8].copy_from_slice(&a_rwnd.to_be_bytes());
        for (at, count) in [(8, gap_count), (10, nr_count), (12, duplicate_count), (14, 0)] {
            head[at..at + 2].copy_from_slice(&count.to_be_bytes());
        }
        let listed = usize::from(gap_count) + usize::from(nr_count) + usize::from(duplicate_count);
        self.reserve(chunk_type::NR_SACK, flags, FIXED + 4 * listed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, chunk_bytes_in, only_chunk, writes};
    use super::*;

    const BYTES: [u8; 36] = [
        0x10, 0x80, 0, 36, 0, 0, 0, 10, 0, 0, 0x20, 0, 0, 1, 0, 2, 0, 1, 0, 0, // fixed part
        0, 5, 0, 6, // one gap ack block
        0, 2, 0, 3, 0, 9, 1, 0, // two NR gap ack blocks
        0, 0, 0, 9, // one duplicate
    ];
    const GAPS: [GapBlock; 1] = [GapBlock { start: 5, end: 6 }];
    const NR_GAPS: [GapBlock; 2] = [GapBlock { start: 2, end: 3 }, GapBlock { start: 9, end: 256 }];

    fn write(w: &mut PacketWriter<'_>) -> Result<(), DoesNotFit> {
        let (gaps, nr_gaps) = (GAPS.into_iter(), NR_GAPS.into_iter());
        w.nr_sack(Tsn(10), 0x2000, 0x80, gaps, nr_gaps, [Tsn(9)].into_iter())
    }

    #[test]
    fn bytes() {
        assert_eq!(chunk_bytes(write), BYTES);
        let Ok(Chunk::NrSack(sack)) = only_chunk(&BYTES) else { panic!("no NR-SACK") };
        assert_eq!((sack.cumulative_tsn_ack, sack.a_rwnd, sack.flags), (Tsn(10), 0x2000, 0x80));
        assert!(sack.gaps().eq(GAPS) && sack.nr_gaps().eq(NR_GAPS));
        assert!(sack.all_gaps().eq([NR_GAPS[0], GAPS[0], NR_GAPS[1]]));
        assert!(sack.duplicates().eq([Tsn(9)]));
        assert_eq!(sack.packets(), 2);
    }

    #[test]
    fn counts_that_lie() {
        for counts in [[4, 0, 1], [2, 3, 0], [0, 0, 5], [u16::MAX; 3]] {
            let mut bytes = BYTES;
            for (i, count) in counts.iter().enumerate() {
                bytes[12 + 2 * i..14 + 2 * i].copy_from_slice(&count.to_be_bytes());
            }
            let expected = Err(ChunkError::NrSackCounts { counts, raw: &bytes });
            assert_eq!(only_chunk(&bytes), expected);
        }
    }

    #[test]
    fn shorter_than_its_fixed_part() {
        let bytes = [0x10, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let raw = &bytes;
        assert_eq!(only_chunk(&bytes), Err(ChunkError::TooShort { ty: 0x10, minimum: 20, raw }));
    }

    #[test]
    fn writes_what_fits() {
        assert!(!writes(19, write));
        for (room, listed) in [(20, [0, 0, 0]), (24, [1, 0, 0]), (32, [1, 2, 0]), (36, [1, 2, 1])] {
            let bytes = chunk_bytes_in(room, write).unwrap();
            let Ok(Chunk::NrSack(sack)) = only_chunk(&bytes) else { panic!("no NR-SACK") };
            let found = [sack.gaps().len(), sack.nr_gaps().len(), sack.duplicates().len()];
            assert_eq!((bytes.len(), found), (room, listed));
        }
    }
}
