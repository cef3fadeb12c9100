//! Authentication (AUTH), RFC 4895 4.1: authenticates the chunks that follow it in the packet.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 15   |    Flags = 0  |             Length            |
//! +---------------+---------------+-------------------------------+
//! |     Shared Key Identifier     |        HMAC Identifier        |
//! +-------------------------------+-------------------------------+
//! \                             HMAC                              \
//! +---------------------------------------------------------------+
//! ```

use super::chunk_error::ChunkError;
use super::codec::{after, u16_at};
use super::tlv::{Elements, Tlv};
use super::{COMMON_HEADER_LEN, chunk_type};

/// Bytes of the chunk before the HMAC.
pub(crate) const AUTH_HEADER_LEN: usize = 8;

/// The HMAC identifiers of RFC 4895 8.1.
pub mod hmac_id {
    /// HMAC with SHA-1, which every implementation supports.
    pub const SHA_1: u16 = 1;
    /// HMAC with SHA-256.
    pub const SHA_256: u16 = 3;
}

/// An AUTH chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Auth<'a> {
    /// Shared Key Identifier: number of the endpoint pair shared key.
    pub key_id: u16,
    /// HMAC Identifier (see [`hmac_id`]).
    pub hmac_id: u16,
    /// The HMAC of this chunk, with zeros in the HMAC field, and of all chunks that follow.
    pub hmac: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Result<Self, ChunkError<'a>> {
        let Some(head) = raw.first_chunk::<AUTH_HEADER_LEN>() else {
            let ty = chunk_type::AUTH;
            return Err(ChunkError::TooShort { ty, minimum: AUTH_HEADER_LEN, raw });
        };
        let hmac = after(raw, AUTH_HEADER_LEN);
        Ok(Self { key_id: u16_at(head, 4), hmac_id: u16_at(head, 6), hmac })
    }

    /// The value of the chunk.
    pub(super) fn value(&self) -> Vec<u8> {
        [&self.key_id.to_be_bytes(), &self.hmac_id.to_be_bytes(), self.hmac].concat()
    }

    /// Inserts an AUTH chunk before the first chunk for whose type `wanted` is true, in a packet of
    /// `len` bytes in `buf`, and returns the new length. `code` computes the HMAC, of `hmac_len`
    /// bytes, a multiple of four. The packet is unchanged if no chunk needs authentication, or if
    /// the buffer has no room.
    pub(crate) fn insert(
        buf: &mut [u8],
        len: usize,
        (key_id, hmac_id, hmac_len): (u16, u16, usize),
        wanted: impl Fn(u8) -> bool,
        code: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> usize {
        let mut chunks =
            Elements::<Tlv<'_>>::new(buf.get(COMMON_HEADER_LEN..len).unwrap_or_default());
        let at = loop {
            let at = len - chunks.as_bytes().len();
            match chunks.next() {
                Some(Ok(chunk)) if wanted(chunk.head[0]) => break at,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return len,
            }
        };
        let size = AUTH_HEADER_LEN + hmac_len;
        let end = len + size;
        if end > buf.len() {
            return len;
        }
        buf.copy_within(at..len, at + size);
        let packet = &mut buf[at..end];
        packet[..size].fill(0);
        packet[0] = chunk_type::AUTH;
        packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&key_id.to_be_bytes());
        packet[6..8].copy_from_slice(&hmac_id.to_be_bytes());
        let hmac = code(packet);
        packet[AUTH_HEADER_LEN..size].copy_from_slice(&hmac[..hmac_len]);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HEADER, chunk_bytes, only_chunk};
    use super::super::{Checksum, Chunk, Packet, PacketWriter};
    use super::*;

    #[test]
    fn bytes() {
        let chunk = Auth { key_id: 0x0102, hmac_id: hmac_id::SHA_256, hmac: &[7; 5] };
        let bytes = [15, 0, 0, 13, 1, 2, 0, 3, 7, 7, 7, 7, 7, 0, 0, 0];
        assert_eq!(chunk_bytes(|w| w.chunk(&Chunk::Auth(chunk))), bytes);
        assert_eq!(only_chunk(&bytes), Ok(Chunk::Auth(chunk)));
        let short = [15, 0, 0, 7, 1, 2, 0, 0];
        assert!(matches!(only_chunk(&short), Err(ChunkError::TooShort { minimum: 8, .. })));
    }

    #[test]
    fn stands_before_the_first_that_is_wanted() {
        let mut buf = [0xff; 64];
        let mut w = PacketWriter::new(&mut buf, HEADER);
        w.cookie_ack().unwrap();
        w.shutdown_ack().unwrap();
        w.cookie_ack().unwrap();
        let len = w.finish(Checksum::Ignore);
        let ids = (5, 1, 20);
        assert_eq!(Auth::insert(&mut buf, len, ids, |_| false, |_| vec![0; 20]), len);
        assert_eq!(Auth::insert(&mut buf[..len + 24], len, ids, |_| true, |_| vec![0; 20]), len);
        let code = |data: &[u8]| {
            assert_eq!(data.len(), 28 + 8);
            assert_eq!(data[..8], [15, 0, 0, 28, 0, 5, 0, 1]);
            assert_eq!(data[8..28], [0; 20]);
            assert_eq!(data[28..], [8, 0, 0, 4, 11, 0, 0, 4]);
            vec![9; 20]
        };
        let len = Auth::insert(&mut buf, len, ids, |ty| ty == chunk_type::SHUTDOWN_ACK, code);
        let packet = Packet::parse(&buf[..len], Checksum::Ignore).unwrap();
        let auth = Chunk::Auth(Auth { key_id: 5, hmac_id: 1, hmac: &[9; 20] });
        let chunks = [Chunk::CookieAck, auth, Chunk::ShutdownAck, Chunk::CookieAck];
        assert!(packet.chunks().eq(chunks.map(Ok)));
    }
}
