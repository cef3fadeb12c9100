//! Shared code for chunks, parameters and causes: padding, fields, lists of numbers, and the writer
//! of type-length-value lists (RFC 9260 3.2, 3.2.1). [`tlv`](super::tlv) reads these lists.

use std::fmt;

/// The chunk, parameter or cause does not fit into the rest of the buffer, or exceeds the 65535
/// bytes of a length field. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it does not fit into what is left of the packet")]
pub struct DoesNotFit;

/// Bytes of type and length at the head of a chunk, parameter or cause.
pub(super) const TLV_HEADER_LEN: usize = 4;

/// `len` rounded up to the multiple of four at which the next chunk, parameter or cause starts.
///
/// `len` is the length of data in memory, so the sum cannot overflow.
#[inline]
pub(super) const fn padded(len: usize) -> usize {
    (len + 3) & !3
}

/// The 16 bits at offset `at` of a fixed part.
#[inline(always)]
pub(super) const fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32 bits at offset `at` of a fixed part.
#[inline(always)]
pub(super) const fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The bytes after the first `n`, or none if there are fewer.
#[inline]
pub(super) fn after(bytes: &[u8], n: usize) -> &[u8] {
    bytes.get(n..).unwrap_or_default()
}

/// A list of 16-bit numbers in network byte order, borrowed from a packet.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct U16List<'a>(&'a [[u8; 2]]);

impl<'a> U16List<'a> {
    /// The list in `bytes`; `None` if the number of bytes is odd.
    pub const fn from_be_bytes(bytes: &'a [u8]) -> Option<Self> {
        match bytes.as_chunks() {
            (numbers, []) => Some(Self(numbers)),
            _ => None,
        }
    }

    /// Writes numbers in network byte order into `space` and returns their length in bytes.
    pub(super) fn write(
        numbers: impl ExactSizeIterator<Item = u16>,
        space: &mut [u8],
    ) -> Result<usize, DoesNotFit> {
        let len = 2 * numbers.len();
        let (slots, _) = space.get_mut(..len).ok_or(DoesNotFit)?.as_chunks_mut();
        for (slot, number) in slots.iter_mut().zip(numbers) {
            *slot = number.to_be_bytes();
        }
        Ok(len)
    }

    /// The numbers, in order.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = u16> + DoubleEndedIterator + Clone + use<'a> {
        self.0.iter().map(|&n| u16::from_be_bytes(n))
    }

    /// Whether the list contains `number`.
    pub fn contains(&self, number: u16) -> bool {
        self.0.contains(&number.to_be_bytes())
    }

    /// Number of elements.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of the list.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

impl fmt::Debug for U16List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Writes a list of parameters or causes, with padding between the elements but not after the last.
#[derive(Debug)]
pub(super) struct TlvWriter<'b> {
    buf: &'b mut [u8],
    /// Bytes written, without the padding of the last element.
    len: usize,
}

impl<'b> TlvWriter<'b> {
    pub(super) const fn new(buf: &'b mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Maximum length of the value of one more element.
    pub(super) fn remaining(&self) -> usize {
        self.buf
            .len()
            .saturating_sub(padded(self.len) + TLV_HEADER_LEN)
            .min(usize::from(u16::MAX) - TLV_HEADER_LEN)
    }

    /// Writes one encoded element: type, length and value, without padding. Fails as well if its
    /// length field differs from the number of bytes.
    pub(super) fn raw(&mut self, raw: &[u8]) -> Result<(), DoesNotFit> {
        match raw.first_chunk::<TLV_HEADER_LEN>() {
            Some(head) if usize::from(u16_at(head, 2)) == raw.len() => self.append(raw),
            _ => Err(DoesNotFit),
        }
    }

    /// Writes encoded elements.
    pub(super) fn append(&mut self, elements: &[u8]) -> Result<(), DoesNotFit> {
        let start = padded(self.len);
        let slot = self.buf.get_mut(start..start + elements.len()).ok_or(DoesNotFit)?;
        slot.copy_from_slice(elements);
        self.commit(start, elements.len());
        Ok(())
    }

    /// Writes one element whose value is the concatenation of `parts`.
    pub(super) fn element(&mut self, ty: u16, parts: &[&[u8]]) -> Result<(), DoesNotFit> {
        self.element_with(ty, |space| {
            let mut len = 0;
            for part in parts {
                space.get_mut(len..len + part.len()).ok_or(DoesNotFit)?.copy_from_slice(part);
                len += part.len();
            }
            Ok(len)
        })
    }

    /// Writes one element; `value` writes its value and returns the length.
    pub(super) fn element_with(
        &mut self,
        ty: u16,
        value: impl FnOnce(&mut [u8]) -> Result<usize, DoesNotFit>,
    ) -> Result<(), DoesNotFit> {
        let start = padded(self.len);
        let room = self.remaining();
        let space = self.buf.get_mut(start..).ok_or(DoesNotFit)?;
        let (head, space) = space.split_first_chunk_mut::<TLV_HEADER_LEN>().ok_or(DoesNotFit)?;
        let length = TLV_HEADER_LEN + value(space.get_mut(..room).ok_or(DoesNotFit)?)?;
        let [t0, t1] = ty.to_be_bytes();
        // `room` limits the length to 16 bits.
        let [l0, l1] = u16::try_from(length).map_err(|_| DoesNotFit)?.to_be_bytes();
        *head = [t0, t1, l0, l1];
        self.commit(start, length);
        Ok(())
    }

    /// Completes the element at `start`: pads the element before it.
    fn commit(&mut self, start: usize, length: usize) {
        if let Some(padding) = self.buf.get_mut(self.len..start) {
            padding.fill(0);
        }
        self.len = start + length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(padded), [0, 4, 4, 4, 4, 8]);
    }

    #[test]
    fn list_of_numbers() {
        let list = U16List::from_be_bytes(&[0, 5, 0, 6]).unwrap();
        assert!(list.iter().eq([5, 6]));
        assert!(list.contains(6) && !list.contains(0x0500));
        assert_eq!((list.len(), list.is_empty()), (2, false));
        assert_eq!(list.as_bytes(), [0, 5, 0, 6]);
        assert!(U16List::from_be_bytes(&[0, 5, 0]).is_none());
    }

    #[test]
    fn padding_is_zero_and_not_after_the_last() {
        let mut buf = [0xff; 16];
        let mut writer = TlvWriter::new(&mut buf);
        writer.element(1, &[&[0xaa]]).unwrap();
        assert_eq!(writer.len(), 5);
        writer.element(2, &[&[0xbb], &[0xcc]]).unwrap();
        assert_eq!(writer.len(), 14);
        assert_eq!(writer.element(3, &[]), Err(DoesNotFit));
        assert_eq!(writer.append(&[1]), Err(DoesNotFit));
        assert_eq!(writer.len(), 14);
        assert_eq!(buf, [0, 1, 0, 5, 0xaa, 0, 0, 0, 0, 2, 0, 6, 0xbb, 0xcc, 0xff, 0xff]);
    }

    #[test]
    fn an_element_that_fails_changes_nothing() {
        let mut buf = [0xff; 12];
        let mut writer = TlvWriter::new(&mut buf);
        writer.element(1, &[&[0xaa]]).unwrap();
        assert_eq!(writer.element(2, &[&[0; 5]]), Err(DoesNotFit));
        assert_eq!(writer.len(), 5);
        writer.element(2, &[]).unwrap();
        assert_eq!(buf, [0, 1, 0, 5, 0xaa, 0, 0, 0, 0, 2, 0, 4]);
    }
}
