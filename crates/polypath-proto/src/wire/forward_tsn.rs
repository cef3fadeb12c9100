//! Forward Cumulative TSN (FORWARD TSN), RFC 3758 3.2: makes the receiver skip abandoned chunks.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 192   |    Reserved   |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      New Cumulative TSN                       |
//! +-------------------------------+-------------------------------+
//! |            Stream 1           |   Stream Sequence Number 1    |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! ```

use crate::ids::{Ssn, StreamId, Tsn};

use super::chunk_error::ChunkError;
use super::chunk_type;
use super::codec::{DoesNotFit, after, u16_at, u32_at};
use super::writer::PacketWriter;

/// Bytes of a FORWARD TSN or I-FORWARD-TSN chunk without streams, including the chunk header.
pub(crate) const FORWARD_TSN_HEADER_LEN: usize = 8;

/// Bytes of a stream in a FORWARD TSN chunk.
pub(crate) const SKIPPED_STREAM_LEN: usize = 4;

/// A FORWARD TSN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ForwardTsn<'a> {
    /// The whole chunk: type, flags, length and value, without padding.
    pub raw: &'a [u8],
}

/// A stream in a FORWARD TSN chunk, whose ordered messages up to `ssn` are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkippedStream {
    /// The stream.
    pub stream: StreamId,
    /// Stream sequence number of the last skipped message.
    pub ssn: Ssn,
}

impl<'a> ForwardTsn<'a> {
    pub(super) const fn parse(raw: &'a [u8]) -> Result<Self, ChunkError<'a>> {
        if raw.len() < FORWARD_TSN_HEADER_LEN {
            let minimum = FORWARD_TSN_HEADER_LEN;
            return Err(ChunkError::TooShort { ty: chunk_type::FORWARD_TSN, minimum, raw });
        }
        Ok(Self { raw })
    }

    /// New Cumulative TSN: the receiver stops waiting for chunks up to this TSN.
    pub fn new_cumulative_tsn(&self) -> Tsn {
        self.raw.first_chunk::<FORWARD_TSN_HEADER_LEN>().map_or(Tsn(0), |head| Tsn(u32_at(head, 4)))
    }

    /// The streams; a truncated last entry is omitted.
    pub fn streams(&self) -> impl Iterator<Item = SkippedStream> + use<'a> {
        let (list, _) = after(self.raw, FORWARD_TSN_HEADER_LEN).as_chunks::<SKIPPED_STREAM_LEN>();
        list.iter().map(|entry| SkippedStream {
            stream: StreamId(u16_at(entry, 0)),
            ssn: Ssn(u16_at(entry, 2)),
        })
    }
}

impl PacketWriter<'_> {
    /// Writes a FORWARD TSN chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn forward_tsn(
        &mut self,
        new_cumulative_tsn: Tsn,
        streams: impl Iterator<Item = SkippedStream>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::FORWARD_TSN, 0, new_cumulative_tsn.0.to_be_bytes(), |mut rest| {
            let mut len = 0;
            for SkippedStream { stream, ssn } in streams {
                let (entry, tail) =
                    rest.split_first_chunk_mut::<SKIPPED_STREAM_LEN>().ok_or(DoesNotFit)?;
                let ([s0, s1], [n0, n1]) = (stream.0.to_be_bytes(), ssn.0.to_be_bytes());
                *entry = [s0, s1, n0, n1];
                rest = tail;
                len += SKIPPED_STREAM_LEN;
            }
            Ok(len)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Action, Chunk};
    use super::*;

    const BYTES: [u8; 16] = [192, 0, 0, 16, 0x11, 0x22, 0x33, 0x44, 0, 7, 0, 9, 0xff, 0xff, 1, 2];

    fn streams() -> impl Iterator<Item = SkippedStream> {
        [(7, 9), (0xffff, 0x0102)]
            .into_iter()
            .map(|(stream, ssn)| SkippedStream { stream: StreamId(stream), ssn: Ssn(ssn) })
    }

    #[test]
    fn bytes() {
        let write = |w: &mut PacketWriter<'_>| w.forward_tsn(Tsn(0x1122_3344), streams());
        assert_eq!(chunk_bytes(write), BYTES);
        let Ok(Chunk::ForwardTsn(chunk)) = only_chunk(&BYTES) else { panic!("no FORWARD TSN") };
        assert_eq!(chunk.new_cumulative_tsn(), Tsn(0x1122_3344));
        assert!(chunk.streams().eq(streams()));
        assert!(writes(16, write) && !writes(15, write));
        let alone = [192, 0, 0, 8, 0, 0, 0, 1];
        assert_eq!(chunk_bytes(|w| w.forward_tsn(Tsn(1), [].into_iter())), alone);
    }

    #[test]
    fn cut_off() {
        let raw = &[192, 0, 0, 6, 0, 0];
        let padded = &[192, 0, 0, 6, 0, 0, 0, 0];
        let minimum = 8;
        assert_eq!(only_chunk(padded), Err(ChunkError::TooShort { ty: 192, minimum, raw }));
        let cut = [192, 0, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0];
        let Ok(Chunk::ForwardTsn(chunk)) = only_chunk(&cut) else { panic!("no FORWARD TSN") };
        assert_eq!(chunk.streams().count(), 0);
    }

    /// RFC 3758 3.2: the type bits "11" make a receiver that does not know it skip and report it.
    #[test]
    fn who_does_not_know_it_reports_it() {
        assert_eq!(Action::of_chunk(chunk_type::FORWARD_TSN), Action::SkipAndReport);
    }
}
