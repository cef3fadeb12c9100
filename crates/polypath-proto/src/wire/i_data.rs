//! Payload Data that supports interleaving (I-DATA), RFC 8260 2.1.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------+-+-+-+-+-------------------------------+
//! |   Type = 64   |  Res  |I|U|B|E|            Length             |
//! +---------------+-------+-+-+-+-+-------------------------------+
//! |                              TSN                              |
//! +-------------------------------+-------------------------------+
//! |       Stream Identifier       |           Reserved            |
//! +-------------------------------+-------------------------------+
//! |                      Message Identifier                       |
//! +---------------------------------------------------------------+
//! |    Payload Protocol Identifier / Fragment Sequence Number     |
//! +---------------------------------------------------------------+
//! \                           User Data                           \
//! +---------------------------------------------------------------+
//! ```

use crate::ids::{Mid, Ppid, StreamId, Tsn};

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, padded, u16_at, u32_at};
use super::data::{BEGINNING, END, IMMEDIATE, RETRANSMISSION, UNORDERED};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, I_DATA_HEADER_LEN, chunk_type};

/// An I-DATA chunk: a user message or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IData<'a> {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// The stream of the message.
    pub stream: StreamId,
    /// Message Identifier: number of the message among the ordered or the unordered ones of its
    /// stream.
    pub mid: Mid,
    /// The payload protocol identifier in the first fragment; the fragment number in other
    /// fragments.
    pub mark: Mark,
    /// U bit: the message is delivered without regard to order.
    pub unordered: bool,
    /// E bit: the last fragment of the message.
    pub end: bool,
    /// I bit: the sender requests a SACK without delay (RFC 7053).
    pub immediate: bool,
    /// R bit, between peers that agreed on it (see [`Data`](super::Data)).
    pub retransmission: bool,
    /// User data; never empty in a parsed chunk, and must not be empty in a written one.
    pub payload: &'a [u8],
}

/// The last header field of an I-DATA chunk, whose meaning depends on the B bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// B bit set: the first fragment, with the payload protocol identifier.
    Beginning(Ppid),
    /// Any other fragment, with its number, counted from 0 at the first fragment.
    Fragment(u32),
}

impl<'a> IData<'a> {
    /// Bytes that an I-DATA chunk with `payload_len` bytes of user data takes in a packet,
    /// including header and padding.
    #[inline]
    pub const fn chunk_len(payload_len: usize) -> usize {
        padded(I_DATA_HEADER_LEN + payload_len)
    }

    /// B bit: the first fragment of the message.
    pub const fn beginning(&self) -> bool {
        matches!(self.mark, Mark::Beginning(_))
    }

    #[inline]
    pub(super) fn parse(raw: &'a [u8], flags: u8) -> Result<Self, ChunkError<'a>> {
        let Some((head, payload)) = raw.split_first_chunk::<I_DATA_HEADER_LEN>() else {
            let ty = chunk_type::I_DATA;
            return Err(ChunkError::TooShort { ty, minimum: I_DATA_HEADER_LEN, raw });
        };
        let tsn = Tsn(u32_at(head, 4));
        if payload.is_empty() {
            return Err(ChunkError::NoUserData { ty: chunk_type::I_DATA, tsn });
        }
        let last = u32_at(head, 16);
        Ok(Self {
            tsn,
            stream: StreamId(u16_at(head, 8)),
            mid: Mid(u32_at(head, 12)),
            mark: if flags & BEGINNING != 0 {
                Mark::Beginning(Ppid(last))
            } else {
                Mark::Fragment(last)
            },
            unordered: flags & UNORDERED != 0,
            end: flags & END != 0,
            immediate: flags & IMMEDIATE != 0,
            retransmission: flags & RETRANSMISSION != 0,
            payload,
        })
    }
}

impl PacketWriter<'_> {
    /// Writes an I-DATA chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit: [`IData::chunk_len`] exceeds [`PacketWriter::remaining`].
    #[inline]
    pub fn i_data(&mut self, data: &IData<'_>) -> Result<(), DoesNotFit> {
        const FIXED: usize = I_DATA_HEADER_LEN - CHUNK_HEADER_LEN;
        let flag = |on, bit| if on { bit } else { 0 };
        let flags = flag(data.end, END)
            | flag(data.beginning(), BEGINNING)
            | flag(data.unordered, UNORDERED)
            | flag(data.immediate, IMMEDIATE)
            | flag(data.retransmission, RETRANSMISSION);
        let value = self.reserve(chunk_type::I_DATA, flags, FIXED + data.payload.len())?;
        let (head, payload) = value.split_first_chunk_mut::<FIXED>().ok_or(DoesNotFit)?;
        let (Mark::Beginning(Ppid(last)) | Mark::Fragment(last)) = data.mark;
        let [t0, t1, t2, t3] = data.tsn.0.to_be_bytes();
        let [i0, i1] = data.stream.0.to_be_bytes();
        let [m0, m1, m2, m3] = data.mid.0.to_be_bytes();
        let [l0, l1, l2, l3] = last.to_be_bytes();
        *head = [t0, t1, t2, t3, i0, i1, 0, 0, m0, m1, m2, m3, l0, l1, l2, l3];
        payload.copy_from_slice(data.payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Action, Chunk};
    use super::*;

    const BYTES: [u8; 24] = [
        64, 0x0b, 0, 23, 0x11, 0x22, 0x33, 0x44, 0, 7, 0, 0, 1, 2, 3, 4, 0, 0, 0, 46, b'a', b'b',
        b'c', 0,
    ];

    const DATA: IData<'_> = IData {
        tsn: Tsn(0x1122_3344),
        stream: StreamId(7),
        mid: Mid(0x0102_0304),
        mark: Mark::Beginning(Ppid(46)),
        unordered: false,
        end: true,
        immediate: true,
        retransmission: false,
        payload: b"abc",
    };

    #[test]
    fn bytes() {
        assert_eq!(chunk_bytes(|w| w.i_data(&DATA)), BYTES);
        assert_eq!(only_chunk(&BYTES), Ok(Chunk::IData(DATA)));
        assert_eq!(IData::chunk_len(3), 24);
        assert!(writes(24, |w| w.i_data(&DATA)) && !writes(23, |w| w.i_data(&DATA)));
        // Reserved bits are ignored.
        let mut noise = BYTES;
        (noise[1], noise[10], noise[11]) = (noise[1] | 0xe0, 9, 9);
        assert_eq!(only_chunk(&noise), Ok(Chunk::IData(DATA)));
        // Without the B bit, the same bytes are a fragment number.
        let mut fragment = BYTES;
        fragment[1] = 4;
        let mark = Mark::Fragment(46);
        let expected = IData { mark, unordered: true, end: false, immediate: false, ..DATA };
        assert_eq!(only_chunk(&fragment), Ok(Chunk::IData(expected)));
        assert_eq!(chunk_bytes(|w| w.i_data(&expected)), fragment);
    }

    #[test]
    fn too_short_or_empty() {
        let mut empty = BYTES;
        empty[3] = 20;
        let (ty, tsn) = (chunk_type::I_DATA, Tsn(0x1122_3344));
        let none = Err(ChunkError::NoUserData { ty, tsn });
        assert_eq!(only_chunk(&empty[..20]), none);
        empty[3] = 16;
        let raw = &empty[..16];
        assert_eq!(only_chunk(raw), Err(ChunkError::TooShort { ty: 64, minimum: 20, raw }));
        assert_eq!(Action::of_chunk(chunk_type::I_DATA), Action::StopAndReport);
    }
}
