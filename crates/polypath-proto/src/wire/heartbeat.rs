//! Heartbeat Request (HEARTBEAT) and Heartbeat Acknowledgement (HEARTBEAT ACK), RFC 9260 3.3.5 and
//! 3.3.6.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 4, 5  |  Chunk Flags  |       Heartbeat Length        |
//! +---------------+---------------+-------------------------------+
//! |   Heartbeat Info Type = 1     |          Info Length          |
//! +-------------------------------+-------------------------------+
//! \               Sender-Specific Heartbeat Info                  \
//! +---------------------------------------------------------------+
//! ```

use super::chunk_error::ChunkError;
use super::codec::{DoesNotFit, after};
use super::parameter::{Parameter, ParameterWriter, Parameters};
use super::writer::PacketWriter;
use super::{CHUNK_HEADER_LEN, chunk_type};

/// A HEARTBEAT or HEARTBEAT ACK chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeartbeatInfo<'a> {
    /// Information that only the sender of the HEARTBEAT interprets and the HEARTBEAT ACK returns.
    pub info: &'a [u8],
    /// All parameters as received, including the Heartbeat Info.
    pub parameters: &'a [u8],
}

impl<'a> HeartbeatInfo<'a> {
    pub(super) fn parse(raw: &'a [u8], ty: u8) -> Result<Self, ChunkError<'a>> {
        let parameters = after(raw, CHUNK_HEADER_LEN);
        match Parameters::new(parameters).iter().next() {
            Some(Ok(Parameter::HeartbeatInfo(info))) => Ok(Self { info, parameters }),
            _ => Err(ChunkError::NoHeartbeatInfo { ty, raw }),
        }
    }
}

impl PacketWriter<'_> {
    /// Writes a HEARTBEAT chunk with this sender-specific information.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn heartbeat(&mut self, info: &[u8]) -> Result<(), DoesNotFit> {
        self.list(chunk_type::HEARTBEAT, 0, [], |space| {
            ParameterWriter::fill(space, |p| p.heartbeat_info(info))
        })
    }

    /// Writes a HEARTBEAT ACK chunk with the information of the HEARTBEAT and no other parameter.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    pub fn heartbeat_ack(&mut self, info: &[u8]) -> Result<(), DoesNotFit> {
        self.list(chunk_type::HEARTBEAT_ACK, 0, [], |space| {
            ParameterWriter::fill(space, |p| p.heartbeat_info(info))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::*;

    const BYTES: [u8; 12] = [4, 0, 0, 10, 0, 1, 0, 6, 0xab, 0xcd, 0, 0];

    #[test]
    fn bytes() {
        let info = &[0xab, 0xcd];
        assert_eq!(chunk_bytes(|w| w.heartbeat(info)), BYTES);
        assert_eq!(
            only_chunk(&BYTES),
            Ok(Chunk::Heartbeat(HeartbeatInfo { info, parameters: &BYTES[4..10] }))
        );
        let mut bytes = BYTES;
        bytes[0] = 5;
        assert_eq!(chunk_bytes(|w| w.heartbeat_ack(info)), bytes);
        let parameters = &BYTES[4..10];
        assert_eq!(only_chunk(&bytes), Ok(Chunk::HeartbeatAck(HeartbeatInfo { info, parameters })));
        // The chunk length may include the padding of the parameter.
        bytes[3] = 12;
        let parameters = &BYTES[4..];
        assert_eq!(only_chunk(&bytes), Ok(Chunk::HeartbeatAck(HeartbeatInfo { info, parameters })));
    }

    #[test]
    fn without_information() {
        for bytes in [
            &[4, 0, 0, 4][..],
            &[4, 0, 0, 8, 0, 2, 0, 4],
            &[4, 0, 0, 8, 0, 1, 0, 3],
            &[4, 0, 0, 8, 0, 1, 0, 5],
        ] {
            assert_eq!(only_chunk(bytes), Err(ChunkError::NoHeartbeatInfo { ty: 4, raw: bytes }));
        }
        let info = &[][..];
        assert_eq!(
            only_chunk(&[4, 0, 0, 8, 0, 1, 0, 4]),
            Ok(Chunk::Heartbeat(HeartbeatInfo { info, parameters: &[0, 1, 0, 4] }))
        );
    }

    #[test]
    fn fits_exactly_or_not_at_all() {
        assert!(writes(12, |w| w.heartbeat(&[1, 2])));
        assert!(!writes(11, |w| w.heartbeat(&[1, 2])));
    }
}
