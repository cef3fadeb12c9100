//! I-FORWARD-TSN, RFC 8260 2.3.1: FORWARD TSN for interleaved messages.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 194   |    Reserved   |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      New Cumulative TSN                       |
//! +-------------------------------+-----------------------------+-+
//! |       Stream Identifier       |          Reserved           |U|
//! +-------------------------------+-----------------------------+-+
//! |                      Message Identifier                       |
//! +---------------------------------------------------------------+
//! \                              ...                              \
//! ```

use crate::ids::{Mid, StreamId, Tsn};

use super::chunk_error::ChunkError;
use super::chunk_type;
use super::codec::{DoesNotFit, after, u16_at, u32_at};
use super::forward_tsn::FORWARD_TSN_HEADER_LEN;
use super::writer::PacketWriter;

/// Bytes of a stream in an I-FORWARD-TSN chunk.
pub(crate) const SKIPPED_MESSAGE_LEN: usize = 8;

/// An I-FORWARD-TSN chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IForwardTsn<'a> {
    /// The whole chunk: type, flags, length and value, without padding.
    pub raw: &'a [u8],
}

/// A stream in an I-FORWARD-TSN chunk, whose messages up to `mid` are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkippedMessage {
    /// The stream.
    pub stream: StreamId,
    /// Whether the unordered messages of the stream are skipped, or the ordered ones.
    pub unordered: bool,
    /// Message identifier of the last skipped message.
    pub mid: Mid,
}

impl<'a> IForwardTsn<'a> {
    pub(super) const fn parse(raw: &'a [u8]) -> Result<Self, ChunkError<'a>> {
        if raw.len() < FORWARD_TSN_HEADER_LEN {
            let minimum = FORWARD_TSN_HEADER_LEN;
            return Err(ChunkError::TooShort { ty: chunk_type::I_FORWARD_TSN, minimum, raw });
        }
        Ok(Self { raw })
    }

    /// New Cumulative TSN: the receiver stops waiting for chunks up to this TSN.
    pub fn new_cumulative_tsn(&self) -> Tsn {
        self.raw.first_chunk::<FORWARD_TSN_HEADER_LEN>().map_or(Tsn(0), |head| Tsn(u32_at(head, 4)))
    }

    /// The streams; a truncated last entry is omitted.
    pub fn messages(&self) -> impl Iterator<Item = SkippedMessage> + use<'a> {
        let (list, _) = after(self.raw, FORWARD_TSN_HEADER_LEN).as_chunks::<SKIPPED_MESSAGE_LEN>();
        list.iter().map(|entry| SkippedMessage {
            stream: StreamId(u16_at(entry, 0)),
            unordered: entry[3] & 1 != 0,
            mid: Mid(u32_at(entry, 4)),
        })
    }
}

impl PacketWriter<'_> {
    /// Writes an I-FORWARD-TSN chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn i_forward_tsn(
        &mut self,
        new_cumulative_tsn: Tsn,
        messages: impl Iterator<Item = SkippedMessage>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::I_FORWARD_TSN, 0, new_cumulative_tsn.0.to_be_bytes(), |mut rest| {
            let mut len = 0;
            for SkippedMessage { stream, unordered, mid } in messages {
                let (entry, tail) =
                    rest.split_first_chunk_mut::<SKIPPED_MESSAGE_LEN>().ok_or(DoesNotFit)?;
                let ([s0, s1], [m0, m1, m2, m3]) = (stream.0.to_be_bytes(), mid.0.to_be_bytes());
                *entry = [s0, s1, 0, u8::from(unordered), m0, m1, m2, m3];
                rest = tail;
                len += SKIPPED_MESSAGE_LEN;
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

    #[test]
    fn bytes() {
        let messages = || {
            [(7, false, 9), (3, true, 0x0102_0304)].into_iter().map(|(stream, unordered, mid)| {
                SkippedMessage { stream: StreamId(stream), unordered, mid: Mid(mid) }
            })
        };
        let write = |w: &mut PacketWriter<'_>| w.i_forward_tsn(Tsn(0x1122_3344), messages());
        let bytes =
            [194, 0, 0, 24, 0x11, 0x22, 0x33, 0x44, 0, 7, 0, 0, 0, 0, 0, 9, 0, 3, 0, 1, 1, 2, 3, 4];
        assert_eq!(chunk_bytes(write), bytes);
        let Ok(Chunk::IForwardTsn(chunk)) = only_chunk(&bytes) else { panic!("another chunk") };
        assert_eq!(chunk.new_cumulative_tsn(), Tsn(0x1122_3344));
        assert!(chunk.messages().eq(messages()));
        assert!(writes(24, write) && !writes(23, write));
        // Reserved bits are ignored.
        let noise = [194, 9, 0, 16, 0, 0, 0, 1, 0, 7, 0xff, 0xfe, 0, 0, 0, 9];
        let Ok(Chunk::IForwardTsn(chunk)) = only_chunk(&noise) else { panic!("another chunk") };
        assert!(chunk.messages().eq(messages().take(1)));
    }

    #[test]
    fn cut_off() {
        let raw = &[194, 0, 0, 4];
        assert_eq!(only_chunk(raw), Err(ChunkError::TooShort { ty: 194, minimum: 8, raw }));
        let cut = [194, 0, 0, 12, 0, 0, 0, 1, 0, 7, 0, 0];
        let Ok(Chunk::IForwardTsn(chunk)) = only_chunk(&cut) else { panic!("another chunk") };
        assert_eq!(chunk.messages().count(), 0);
        assert_eq!(Action::of_chunk(chunk_type::I_FORWARD_TSN), Action::SkipAndReport);
    }
}
