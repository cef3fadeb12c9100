//! Cookie Echo (COOKIE ECHO) and Cookie Acknowledgement (COOKIE ACK), RFC 9260 3.3.11 and 3.3.12.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 10   |  Chunk Flags  |            Length             |
//! +---------------+---------------+-------------------------------+
//! \                            Cookie                             \
//! +---------------------------------------------------------------+
//!
//! +---------------+---------------+-------------------------------+
//! |   Type = 11   |  Chunk Flags  |          Length = 4           |
//! +---------------+---------------+-------------------------------+
//! ```

use super::codec::{DoesNotFit, after};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// A COOKIE ECHO chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CookieEcho<'a> {
    /// The state cookie, as received in the INIT ACK.
    pub cookie: &'a [u8],
}

impl<'a> CookieEcho<'a> {
    pub(super) fn parse(raw: &'a [u8]) -> Self {
        Self { cookie: after(raw, CHUNK_HEADER_LEN) }
    }
}

impl PacketWriter<'_> {
    /// Writes a COOKIE ECHO chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn cookie_echo(&mut self, cookie: &[u8]) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::COOKIE_ECHO, 0, cookie)
    }

    /// Writes a COOKIE ACK chunk.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn cookie_ack(&mut self) -> Result<(), DoesNotFit> {
        self.typed_chunk(chunk_type::COOKIE_ACK, 0, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::*;

    #[test]
    fn cookie_echo() {
        let bytes = [10, 0, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0];
        let cookie = &[1, 2, 3, 4, 5];
        assert_eq!(chunk_bytes(|w| w.cookie_echo(cookie)), bytes);
        assert_eq!(only_chunk(&bytes), Ok(Chunk::CookieEcho(CookieEcho { cookie })));
        assert!(writes(12, |w| w.cookie_echo(cookie)));
        assert!(!writes(11, |w| w.cookie_echo(cookie)));
    }

    #[test]
    fn cookie_ack() {
        assert_eq!(chunk_bytes(|w| w.cookie_ack()), [11, 0, 0, 4]);
        assert_eq!(only_chunk(&[11, 0, 0, 4]), Ok(Chunk::CookieAck));
        assert!(!writes(3, |w| w.cookie_ack()));
    }
}
