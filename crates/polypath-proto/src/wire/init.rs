//! Initiation (INIT) and Initiation Acknowledgement (INIT ACK), RFC 9260 3.3.2 and 3.3.3.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 1, 2  |  Chunk Flags  |         Chunk Length          |
//! +---------------+---------------+-------------------------------+
//! |                         Initiate Tag                          |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! |  Number of Outbound Streams   |   Number of Inbound Streams   |
//! +-------------------------------+-------------------------------+
//! |                          Initial TSN                          |
//! +---------------------------------------------------------------+
//! \              Optional/Variable-Length Parameters              \
//! +---------------------------------------------------------------+
//! ```

use crate::ids::{Tsn, VerificationTag};

use super::chunk_error::ChunkError;
use super::chunk_type;
use super::codec::{DoesNotFit, u16_at, u32_at};
use super::parameter::{ParameterWriter, Parameters};
use super::writer::PacketWriter;

/// Bytes of the chunk before its parameters.
const FIXED_LEN: usize = 20;

/// An INIT or INIT ACK chunk.
///
/// Values that RFC 9260 forbids (an Initiate Tag of zero, no streams, a window below 1500 bytes)
/// parse without an error, because the response to them depends on the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init<'a> {
    /// Verification tag that the receiver of this chunk must use in every packet that it sends.
    pub initiate_tag: VerificationTag,
    /// Receive buffer reserved by the sender, in bytes.
    pub a_rwnd: u32,
    /// Number of streams that the sender requests for sending.
    pub outbound_streams: u16,
    /// Maximum number of streams on which the sender can receive.
    pub inbound_streams: u16,
    /// The TSN of the sender's first DATA chunk.
    pub initial_tsn: Tsn,
    /// The parameters.
    pub parameters: Parameters<'a>,
}

/// The fixed part of an INIT or INIT ACK chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InitFields {
    /// Verification tag that the receiver of this chunk must use in every packet that it sends.
    pub initiate_tag: VerificationTag,
    /// Receive buffer reserved by the sender, in bytes.
    pub a_rwnd: u32,
    /// Number of streams that the sender requests for sending.
    pub outbound_streams: u16,
    /// Maximum number of streams on which the sender can receive.
    pub inbound_streams: u16,
    /// The TSN of the sender's first DATA chunk.
    pub initial_tsn: Tsn,
}

impl From<&Init<'_>> for InitFields {
    fn from(init: &Init<'_>) -> Self {
        Self {
            initiate_tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            initial_tsn: init.initial_tsn,
        }
    }
}

impl InitFields {
    const fn to_bytes(self) -> [u8; FIXED_LEN - 4] {
        let [t0, t1, t2, t3] = self.initiate_tag.0.to_be_bytes();
        let [w0, w1, w2, w3] = self.a_rwnd.to_be_bytes();
        let [o0, o1] = self.outbound_streams.to_be_bytes();
        let [i0, i1] = self.inbound_streams.to_be_bytes();
        let [n0, n1, n2, n3] = self.initial_tsn.0.to_be_bytes();
        [t0, t1, t2, t3, w0, w1, w2, w3, o0, o1, i0, i1, n0, n1, n2, n3]
    }
}

impl<'a> Init<'a> {
    pub(super) fn parse(raw: &'a [u8], ty: u8) -> Result<Self, ChunkError<'a>> {
        let Some((head, parameters)) = raw.split_first_chunk::<FIXED_LEN>() else {
            return Err(ChunkError::TooShort { ty, minimum: FIXED_LEN, raw });
        };
        Ok(Self {
            initiate_tag: VerificationTag(u32_at(head, 4)),
            a_rwnd: u32_at(head, 8),
            outbound_streams: u16_at(head, 12),
            inbound_streams: u16_at(head, 14),
            initial_tsn: Tsn(u32_at(head, 16)),
            parameters: Parameters::new(parameters),
        })
    }
}

impl PacketWriter<'_> {
    /// Writes an INIT chunk with the parameters that `parameters` writes.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or `parameters` returned an error. If `parameters` ignores the error
    /// of a parameter that does not fit, that parameter is omitted.
    pub fn init(
        &mut self,
        fields: &InitFields,
        parameters: impl FnOnce(&mut ParameterWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::INIT, 0, fields.to_bytes(), |space| {
            ParameterWriter::fill(space, parameters)
        })
    }

    /// Writes an INIT ACK chunk with the parameters that `parameters` writes. One of them must be a
    /// State Cookie.
    ///
    /// # Errors
    ///
    /// See [`PacketWriter::init`].
    pub fn init_ack(
        &mut self,
        fields: &InitFields,
        parameters: impl FnOnce(&mut ParameterWriter<'_>) -> Result<(), DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        self.list(chunk_type::INIT_ACK, 0, fields.to_bytes(), |space| {
            ParameterWriter::fill(space, parameters)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{chunk_bytes, only_chunk, writes};
    use super::super::{Chunk, Parameter};
    use super::*;

    const FIELDS: InitFields = InitFields {
        initiate_tag: VerificationTag(0x0102_0304),
        a_rwnd: 0x0001_0000,
        outbound_streams: 10,
        inbound_streams: 0x0102,
        initial_tsn: Tsn(0xfffe_fdfc),
    };

    const BYTES: [u8; 36] = [
        1, 0, 0, 33, 1, 2, 3, 4, 0, 1, 0, 0, 0, 10, 1, 2, 0xff, 0xfe, 0xfd,
        0xfc, // fixed part
        0, 5, 0, 8, 127, 0, 0, 1, // IPv4 address
        0, 7, 0, 5, 0xaa, 0, 0, 0, // state cookie; its padding is not counted
    ];

    fn write(p: &mut ParameterWriter<'_>) -> Result<(), DoesNotFit> {
        p.ipv4([127, 0, 0, 1].into())?;
        p.state_cookie(&[0xaa])
    }

    #[test]
    fn bytes() {
        assert_eq!(chunk_bytes(|w| w.init(&FIELDS, write)), BYTES);
        let Ok(Chunk::Init(init)) = only_chunk(&BYTES) else { panic!("no INIT") };
        assert_eq!(InitFields::from(&init), FIELDS);
        let mut parameters = init.parameters.iter();
        assert_eq!(parameters.next(), Some(Ok(Parameter::Ipv4([127, 0, 0, 1].into()))));
        assert_eq!(parameters.next(), Some(Ok(Parameter::StateCookie(&[0xaa]))));
        assert_eq!(parameters.next(), None);

        let mut bytes = BYTES;
        bytes[0] = 2;
        assert_eq!(chunk_bytes(|w| w.init_ack(&FIELDS, write)), bytes);
        assert_eq!(only_chunk(&bytes), Ok(Chunk::InitAck(init)));

        // RFC 9260 3.2: the chunk is also accepted if its length includes the last padding.
        bytes[3] = 36;
        let Ok(Chunk::InitAck(counted)) = only_chunk(&bytes) else { panic!("no INIT ACK") };
        assert!(counted.parameters.iter().eq(init.parameters.iter()));
    }

    #[test]
    fn without_parameters() {
        let bytes = chunk_bytes(|w| w.init(&FIELDS, |_| Ok(())));
        assert_eq!(bytes.len(), 20);
        let Ok(Chunk::Init(init)) = only_chunk(&bytes) else { panic!("no INIT") };
        assert!(init.parameters.is_empty());
    }

    #[test]
    fn shorter_than_its_fixed_part() {
        for ty in [1, 2] {
            let bytes = [ty, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(
                only_chunk(&bytes),
                Err(ChunkError::TooShort { ty, minimum: 20, raw: &bytes })
            );
        }
    }

    #[test]
    fn fits_exactly_or_not_at_all() {
        assert!(writes(36, |w| w.init(&FIELDS, write)));
        for room in 0..36 {
            assert!(!writes(room, |w| w.init(&FIELDS, write)));
        }
        // The caller may omit a parameter that does not fit.
        assert!(writes(20, |w| w.init(&FIELDS, |p| {
            assert_eq!(write(p), Err(DoesNotFit));
            Ok(())
        })));
    }
}
