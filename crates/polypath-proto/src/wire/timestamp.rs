//! Timestamp (TIMESTAMP): time of sending of a packet, and echo of the peer's timestamp.
//!
//! Caro 2006 (retransmission policies), 4.2: "by including timestamps in each packet, the
//! retransmission ambiguity problem is resolved", for 12 bytes a packet. The chunk precedes the
//! SACK and DATA chunks of its packet, and is sent only if both sides offered it in the handshake.
//! The two highest bits of the type make other receivers skip it silently (RFC 9260 3.2). No
//! registry has assigned the type.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+-------------+-+-------------------------------+
//! |   Type = 190  |  Reserved   |E|          Length = 12          |
//! +---------------+-------------+-+-------------------------------+
//! |                           Timestamp                           |
//! +---------------------------------------------------------------+
//! |                        Timestamp Echo                         |
//! +---------------------------------------------------------------+
//! ```

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, u32_at};
use super::writer::PacketWriter;
use super::{TIMESTAMP_LEN, chunk_type};

/// The E bit: the echo field is valid.
const ECHO: u8 = 0x01;

/// A TIMESTAMP chunk. The clock is the sender's; its values are meaningless to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Time of sending of the packet.
    pub sent: u32,
    /// The timestamp of the packet that the SACK chunk in this packet acknowledges.
    pub echo: Option<u32>,
}

impl Timestamp {
    #[inline]
    pub(super) fn parse(raw: &[u8], flags: u8) -> Result<Self, ChunkError<'_>> {
        let Some(head) = raw.first_chunk::<TIMESTAMP_LEN>() else {
            let ty = chunk_type::TIMESTAMP;
            return Err(ChunkError::TooShort { ty, minimum: TIMESTAMP_LEN, raw });
        };
        let echo = (flags & ECHO != 0).then(|| u32_at(head, 8));
        Ok(Self { sent: u32_at(head, 4), echo })
    }
}

impl PacketWriter<'_> {
    /// Writes a TIMESTAMP chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    #[inline]
    pub fn timestamp(&mut self, timestamp: Timestamp) -> Result<(), DoesNotFit> {
        let [s0, s1, s2, s3] = timestamp.sent.to_be_bytes();
        let [e0, e1, e2, e3] = timestamp.echo.unwrap_or_default().to_be_bytes();
        let flags = if timestamp.echo.is_some() { ECHO } else { 0 };
        self.typed_chunk(chunk_type::TIMESTAMP, flags, &[s0, s1, s2, s3, e0, e1, e2, e3])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Action, Chunk};
    use super::*;

    #[test]
    fn bytes() {
        let mut timestamp = Timestamp { sent: 0x0a0b_0c0d, echo: Some(0x0102_0304) };
        let echo = [190, 1, 0, 12, 10, 11, 12, 13, 1, 2, 3, 4];
        assert_eq!(chunk_bytes(|w| w.timestamp(timestamp)), echo);
        assert_eq!(only_chunk(&echo), Ok(Chunk::Timestamp(timestamp)));
        timestamp.echo = None;
        let alone = [190, 0, 0, 12, 10, 11, 12, 13, 0, 0, 0, 0];
        assert_eq!(chunk_bytes(|w| w.timestamp(timestamp)), alone);
        // Without the E bit, the echo field is meaningless; reserved bits are ignored.
        let noise = [190, 0xfe, 0, 12, 10, 11, 12, 13, 9, 9, 9, 9];
        assert_eq!(only_chunk(&noise), Ok(Chunk::Timestamp(timestamp)));
        assert!(!writes(11, |w| w.timestamp(timestamp)));
        let raw = &[190, 0, 0, 8, 1, 2, 3, 4];
        assert_eq!(only_chunk(raw), Err(ChunkError::TooShort { ty: 190, minimum: 12, raw }));
    }

    /// RFC 9260 3.2: the bits "10" of an unknown type mean: skip it, process the rest, do not
    /// report it.
    #[test]
    fn who_does_not_know_it_skips_it_silently() {
        assert_eq!(Action::of_chunk(chunk_type::TIMESTAMP), Action::Skip);
    }
}
