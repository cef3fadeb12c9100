//! Payload Data (DATA), RFC 9260 3.3.1.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------+-+-+-+-+-------------------------------+
//! |   Type = 0    | Res |R|I|U|B|E|            Length             |
//! +---------------+-------+-+-+-+-+-------------------------------+
//! |                              TSN                              |
//! +-------------------------------+-------------------------------+
//! |       Stream Identifier       |    Stream Sequence Number     |
//! +-------------------------------+-------------------------------+
//! |                  Payload Protocol Identifier                  |
//! +---------------------------------------------------------------+
//! \                           User Data                           \
//! +---------------------------------------------------------------+
//! ```

use crate::ids::{Ppid, Ssn, StreamId, Tsn};

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, padded, u16_at, u32_at};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, DATA_HEADER_LEN, chunk_type};

pub(super) const END: u8 = 0x01;
pub(super) const BEGINNING: u8 = 0x02;
pub(super) const UNORDERED: u8 = 0x04;
pub(super) const IMMEDIATE: u8 = 0x08;
/// The lowest of the bits that RFC 9260 3.3.1 reserves (RFC 7053 took the one below it): a peer
/// that did not agree on it ignores it, as all reserved bits.
pub(super) const RETRANSMISSION: u8 = 0x10;

/// A DATA chunk: a user message or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Transmission sequence number.
    pub tsn: Tsn,
    /// The stream of the message.
    pub stream: StreamId,
    /// The position of the message in its stream; meaningless if `unordered`.
    pub ssn: Ssn,
    /// Payload protocol identifier.
    pub ppid: Ppid,
    /// U bit: the message is delivered without regard to order.
    pub unordered: bool,
    /// B bit: the first fragment of the message.
    pub beginning: bool,
    /// E bit: the last fragment of the message.
    pub end: bool,
    /// I bit: the sender requests a SACK without delay (RFC 7053).
    pub immediate: bool,
    /// R bit, between peers that agreed on it: the chunk is a retransmission (Caro 2006,
    /// retransmission policies, 4.2).
    pub retransmission: bool,
    /// User data; never empty in a parsed chunk, and must not be empty in a written one (RFC 9260
    /// 6.2).
    pub payload: &'a [u8],
}

impl<'a> Data<'a> {
    /// Bytes that a DATA chunk with `payload_len` bytes of user data takes in a packet, including
    /// header and padding.
    #[inline]
    pub const fn chunk_len(payload_len: usize) -> usize {
        padded(DATA_HEADER_LEN + payload_len)
    }

    #[inline]
    pub(super) fn parse(raw: &'a [u8], flags: u8) -> Result<Self, ChunkError<'a>> {
        let Some((head, payload)) = raw.split_first_chunk::<DATA_HEADER_LEN>() else {
            let ty = chunk_type::DATA;
            return Err(ChunkError::TooShort { ty, minimum: DATA_HEADER_LEN, raw });
        };
        let tsn = Tsn(u32_at(head, 4));
        if payload.is_empty() {
            return Err(ChunkError::NoUserData { ty: chunk_type::DATA, tsn });
        }
        Ok(Self {
            tsn,
            stream: StreamId(u16_at(head, 8)),
            ssn: Ssn(u16_at(head, 10)),
            ppid: Ppid(u32_at(head, 12)),
            unordered: flags & UNORDERED != 0,
            beginning: flags & BEGINNING != 0,
            end: flags & END != 0,
            immediate: flags & IMMEDIATE != 0,
            retransmission: flags & RETRANSMISSION != 0,
            payload,
        })
    }

    /// Whether the chunk contains a complete message.
    #[inline]
    pub const fn is_whole_message(&self) -> bool {
        self.beginning && self.end
    }
}

impl PacketWriter<'_> {
    /// Writes a DATA chunk.
    ///
    /// # Errors
    ///
    /// [`Data::chunk_len`] exceeds [`PacketWriter::remaining`].
    #[inline]
    pub fn data(&mut self, data: &Data<'_>) -> Result<(), DoesNotFit> {
        const FIXED: usize = DATA_HEADER_LEN - CHUNK_HEADER_LEN;
        let flag = |on, bit| if on { bit } else { 0 };
        let flags = flag(data.end, END)
            | flag(data.beginning, BEGINNING)
            | flag(data.unordered, UNORDERED)
            | flag(data.immediate, IMMEDIATE)
            | flag(data.retransmission, RETRANSMISSION);
        let value = self.reserve(chunk_type::DATA, flags, FIXED + data.payload.len())?;
        let (head, payload) = value.split_first_chunk_mut::<FIXED>().ok_or(DoesNotFit)?;
        let [t0, t1, t2, t3] = data.tsn.0.to_be_bytes();
        let [i0, i1] = data.stream.0.to_be_bytes();
        let [n0, n1] = data.ssn.0.to_be_bytes();
        let [p0, p1, p2, p3] = data.ppid.0.to_be_bytes();
        *head = [t0, t1, t2, t3, i0, i1, n0, n1, p0, p1, p2, p3];
        payload.copy_from_slice(data.payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Chunk, Chunks};
    use super::*;

    const BYTES: [u8; 20] =
        [0, 0x0b, 0, 19, 0x11, 0x22, 0x33, 0x44, 0, 7, 0, 9, 0, 0, 0, 46, b'a', b'b', b'c', 0];

    const DATA: Data<'_> = Data {
        tsn: Tsn(0x1122_3344),
        stream: StreamId(7),
        ssn: Ssn(9),
        ppid: Ppid(46),
        unordered: false,
        beginning: true,
        end: true,
        immediate: true,
        retransmission: false,
        payload: b"abc",
    };

    #[test]
    fn bytes() {
        assert_eq!(chunk_bytes(|w| w.data(&DATA)), BYTES);
        assert_eq!(only_chunk(&BYTES), Ok(Chunk::Data(DATA)));
        assert_eq!(Data::chunk_len(3), 20);
        assert!(DATA.is_whole_message());
    }

    #[test]
    fn each_flag_is_its_own_bit() {
        let none = Data { beginning: false, end: false, immediate: false, ..DATA };
        for (data, bits) in [
            (none, 0),
            (Data { end: true, ..none }, 1),
            (Data { beginning: true, ..none }, 2),
            (Data { unordered: true, ..none }, 4),
            (Data { immediate: true, ..none }, 8),
            (Data { retransmission: true, ..none }, 16),
        ] {
            let mut bytes = BYTES;
            bytes[1] = bits;
            assert_eq!(chunk_bytes(|w| w.data(&data)), bytes);
            // The reserved bits are ignored.
            bytes[1] |= 0xe0;
            assert_eq!(only_chunk(&bytes), Ok(Chunk::Data(data)));
        }
    }

    #[test]
    fn no_user_data() {
        let mut bytes = BYTES;
        bytes[3] = 16;
        let (ty, tsn) = (chunk_type::DATA, Tsn(0x1122_3344));
        assert_eq!(only_chunk(&bytes[..16]), Err(ChunkError::NoUserData { ty, tsn }));
    }

    #[test]
    fn shorter_than_its_header() {
        for len in 4..16 {
            let mut bytes = BYTES;
            bytes[3] = len;
            let raw = &bytes[..len.into()];
            assert_eq!(
                Chunks::new(&bytes[..16]).next(),
                Some(Err(ChunkError::TooShort { ty: 0, minimum: 16, raw }))
            );
        }
    }

    #[test]
    fn fits_exactly_or_not_at_all() {
        assert!(writes(20, |w| w.data(&DATA)));
        assert!(!writes(19, |w| w.data(&DATA)));
    }
}
