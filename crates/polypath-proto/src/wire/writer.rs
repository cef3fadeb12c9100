//! Writes a packet into a buffer of the caller, RFC 9260 3 and 6.10.
//!
//! The method for each chunk is in the chunk's file.

use super::checksum::checksum;
use super::codec::{DoesNotFit, padded};
use super::header::{Checksum, CommonHeader};
use super::{CHUNK_HEADER_LEN, COMMON_HEADER_LEN};

/// Writes one packet, chunk by chunk.
///
/// A chunk that does not fit leaves the writer unchanged, so that the caller can try a smaller one,
/// or finish. Padding is written as zeros (RFC 9260 3.2).
#[derive(Debug)]
pub struct PacketWriter<'b> {
    /// The buffer, truncated to a multiple of four bytes.
    buf: &'b mut [u8],
    /// Bytes written, a multiple of four.
    len: usize,
    chunks: usize,
}

impl<'b> PacketWriter<'b> {
    /// Starts a packet in `buf`, whose length limits that of the packet.
    ///
    /// If the buffer has less than 12 bytes, nothing fits, and the packet is empty.
    pub fn new(buf: &'b mut [u8], header: CommonHeader) -> Self {
        let whole = buf.len() & !3;
        let mut writer = Self { buf: buf.get_mut(..whole).unwrap_or_default(), len: 0, chunks: 0 };
        match writer.buf.first_chunk_mut() {
            Some(head) => {
                *head = header.to_bytes();
                writer.len = COMMON_HEADER_LEN;
            }
            None => writer.buf = &mut [],
        }
        writer
    }

    /// Free bytes: a chunk fits if its length, rounded up to a multiple of four, is not greater.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.buf.len() - self.len
    }

    /// Bytes written, including the common header and all padding.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no chunk has been written yet.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    /// Number of chunks written.
    #[inline]
    pub const fn chunk_count(&self) -> usize {
        self.chunks
    }

    /// Completes the packet with its checksum and returns its length in bytes.
    #[inline]
    pub fn finish(self, checksum: Checksum) -> usize {
        if let Some(packet) = self.buf.get_mut(..self.len) {
            seal(packet, checksum);
        }
        self.len
    }

    /// Truncates the packet to its earlier state of `len` bytes and `chunks` chunks.
    pub(crate) fn take_back(&mut self, len: usize, chunks: usize) {
        debug_assert!(len <= self.len && chunks <= self.chunks, "that was never written");
        self.len = self.len.min(len);
        self.chunks = self.chunks.min(chunks);
    }

    /// Writes an encoded chunk: type, flags, length and value, without padding.
    ///
    /// # Errors
    ///
    /// The chunk does not fit, or its length field differs from the number of bytes.
    pub fn raw_chunk(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        let Some((&[ty, flags, l0, l1], value)) = raw.split_first_chunk::<CHUNK_HEADER_LEN>()
        else {
            return Err(DoesNotFit);
        };
        if usize::from(u16::from_be_bytes([l0, l1])) != raw.len() {
            return Err(DoesNotFit);
        }
        self.typed_chunk(ty, flags, value)
    }

    /// Writes a chunk of any type, flags and value.
    ///
    /// # Errors
    ///
    /// The chunk does not fit.
    #[inline]
    pub fn typed_chunk(&mut self, ty: u8, flags: u8, value: &[u8]) -> Result<(), DoesNotFit> {
        self.reserve(ty, flags, value.len())?.copy_from_slice(value);
        Ok(())
    }

    /// Writes header and padding of a chunk and returns the space for its value.
    #[inline]
    pub(super) fn reserve(
        &mut self,
        ty: u8,
        flags: u8,
        value_len: usize,
    ) -> Result<&mut [u8], DoesNotFit> {
        let length = CHUNK_HEADER_LEN + value_len;
        let [l0, l1] = u16::try_from(length).map_err(|_| DoesNotFit)?.to_be_bytes();
        let end = self.len + padded(length);
        let chunk = self.buf.get_mut(self.len..end).ok_or(DoesNotFit)?;
        let (head, rest) = chunk.split_first_chunk_mut::<CHUNK_HEADER_LEN>().ok_or(DoesNotFit)?;
        let (value, padding) = rest.split_at_mut_checked(value_len).ok_or(DoesNotFit)?;
        *head = [ty, flags, l0, l1];
        padding.fill(0);
        self.len = end;
        self.chunks += 1;
        Ok(value)
    }

    /// The space available for the value of one more chunk.
    #[inline]
    pub(super) fn space(&mut self) -> Result<&mut [u8], DoesNotFit> {
        let value = self.len + CHUNK_HEADER_LEN;
        let end = self.buf.len().min(self.len + usize::from(u16::MAX));
        self.buf.get_mut(value..end).ok_or(DoesNotFit)
    }

    /// Writes a chunk with a fixed part and a list; `list` writes the list and returns its length.
    pub(super) fn list<const N: usize>(
        &mut self,
        ty: u8,
        flags: u8,
        fixed: [u8; N],
        list: impl FnOnce(&mut [u8]) -> Result<usize, DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        let (head, rest) = self.space()?.split_first_chunk_mut::<N>().ok_or(DoesNotFit)?;
        let len = N + list(rest)?;
        *head = fixed;
        self.reserve(ty, flags, len)?;
        Ok(())
    }
}

/// Completes a packet by writing its checksum.
#[inline]
pub(crate) fn seal(packet: &mut [u8], checksum: Checksum) {
    if checksum == Checksum::Verify {
        let crc = self::checksum(packet);
        if let Some(field) = packet.get_mut(8..COMMON_HEADER_LEN) {
            // RFC 9260 Appendix A: the CRC is transmitted with its lowest byte first.
            field.copy_from_slice(&crc.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerificationTag;

    const HEADER: CommonHeader =
        CommonHeader { source_port: 1, destination_port: 2, verification_tag: VerificationTag(3) };

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut buf = [0xff; 23];
        let mut writer = PacketWriter::new(&mut buf, HEADER);
        assert_eq!((writer.len(), writer.remaining(), writer.is_empty()), (12, 8, true));
        assert_eq!(writer.typed_chunk(200, 1, &[0; 5]), Err(DoesNotFit));
        assert_eq!((writer.len(), writer.remaining(), writer.chunk_count()), (12, 8, 0));
        writer.typed_chunk(200, 1, &[7]).unwrap();
        assert_eq!((writer.len(), writer.remaining(), writer.is_empty()), (20, 0, false));
        assert_eq!(writer.shutdown_ack(), Err(DoesNotFit));
        assert_eq!(writer.chunk_count(), 1);
        assert_eq!(writer.finish(Checksum::Ignore), 20);
        assert_eq!(buf[..12], [0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0]);
        assert_eq!(buf[12..20], [200, 1, 0, 5, 7, 0, 0, 0]);
        assert_eq!(buf[20..], [0xff; 3]);
    }

    #[test]
    fn buffers_too_small_for_a_packet() {
        for len in 0..12 {
            let mut buf = [0xff; 12];
            let mut writer = PacketWriter::new(&mut buf[..len], HEADER);
            assert_eq!((writer.len(), writer.remaining()), (0, 0));
            assert_eq!(writer.cookie_ack(), Err(DoesNotFit));
            assert_eq!(writer.finish(Checksum::Verify), 0);
            assert_eq!(buf, [0xff; 12]);
        }
    }

    #[test]
    fn no_chunk_is_longer_than_its_length_field_can_say() {
        let mut buf = vec![0; 140_000];
        let mut writer = PacketWriter::new(&mut buf, HEADER);
        assert_eq!(writer.typed_chunk(200, 0, &[1; 65_532]), Err(DoesNotFit));
        writer.typed_chunk(200, 0, &[1; 65_531]).unwrap();
        assert_eq!(writer.len(), 12 + 65_536);
        assert_eq!(writer.error(|c| c.protocol_violation(&[0; 65_528])), Err(DoesNotFit),);
        writer.error(|c| c.protocol_violation(&[0; 65_527])).unwrap();
        assert_eq!(writer.len(), 12 + 2 * 65_536);
    }

    #[test]
    fn raw_chunks_must_be_chunks() {
        let mut buf = [0; 64];
        let mut writer = PacketWriter::new(&mut buf, HEADER);
        for raw in [&[][..], &[1, 2, 3], &[1, 2, 0, 3], &[1, 2, 0, 5], &[1, 2, 0, 4, 0]] {
            assert_eq!(writer.raw_chunk(raw), Err(DoesNotFit));
        }
        writer.raw_chunk(&[0xc1, 2, 0, 5, 9]).unwrap();
        assert_eq!(writer.len(), 20);
    }
}
